//! Any calls in any order, against an oracle that keeps every state in full.
use super::*;
use crate::source::memory::{Disconnect, Write};
use crate::source::{Recovery, Selectors, VersionMatch};
use proptest::prelude::*;
use std::collections::BTreeMap;

type World = BTreeMap<ObjectKey, u32>;

/// The oracle: the whole collection after each write.
struct Oracle {
    worlds: BTreeMap<u64, World>,
}

impl Oracle {
    fn at(&self, version: u64) -> &World {
        self.worlds.range(..=version).next_back().unwrap().1
    }

    fn note(&mut self, version: &ResourceVersion, change: impl FnOnce(&mut World)) {
        let version = version.as_number().unwrap();
        let mut world = self.worlds.values().next_back().unwrap().clone();
        change(&mut world);
        assert!(
            self.worlds.insert(version, world).is_none(),
            "versions rise"
        );
    }
}

/// What is selected: objects with even values, or everything.
#[derive(Clone, Copy, Debug)]
struct Even(bool);

impl Even {
    fn selectors(self) -> Selectors {
        Selectors {
            labels: self.0.then(|| "parity=even".to_owned()),
            ..Selectors::default()
        }
    }

    fn of(self, world: &World) -> World {
        let selected = world
            .iter()
            .filter(|(_, value)| !self.0 || **value % 2 == 0);
        selected.map(|(key, value)| (key.clone(), *value)).collect()
    }
}

/// One client: a view folded from a watch.
struct Client {
    selected: Even,
    stream: WatchStream<u32>,
    view: World,
    version: u64,
}

impl Client {
    /// Read what there is; an error or the end makes it resume or start over.
    fn read(&mut self, source: &MemorySource<u32>, oracle: &Oracle) {
        loop {
            let (frames, ended) = take(&mut self.stream);
            let mut recovery = ended.then_some(Recovery::Resume);
            for frame in frames {
                match frame {
                    Ok(WatchEvent::Added(item)) => {
                        self.version = item.meta.resource_version.as_number().unwrap();
                        assert!(self.view.insert(item.meta.key, item.object).is_none());
                    }
                    Ok(WatchEvent::Modified(item)) => {
                        self.version = item.meta.resource_version.as_number().unwrap();
                        assert!(self.view.insert(item.meta.key, item.object).is_some());
                    }
                    Ok(WatchEvent::Deleted(item)) => {
                        self.version = item.meta.resource_version.as_number().unwrap();
                        self.view.remove(&item.meta.key).unwrap();
                    }
                    Ok(WatchEvent::Bookmark {
                        resource_version, ..
                    }) => self.version = resource_version.as_number().unwrap(),
                    Ok(other) => panic!("{other:?}"),
                    Err(error) => recovery = Some(error.recovery()),
                }
                // After every single frame, the view is the state at the frame's version.
                assert_eq!(self.view, self.selected.of(oracle.at(self.version)));
            }
            match recovery {
                None => break,
                Some(Recovery::Relist) => *self = Self::streaming(source, self.selected),
                Some(_) => self.stream = self.open(source),
            }
        }
        let newest = source.resource_version().as_number().unwrap();
        assert_eq!(self.view, self.selected.of(oracle.at(newest)));
    }

    fn open(&self, source: &MemorySource<u32>) -> WatchStream<u32> {
        let options = WatchOptions {
            selectors: self.selected.selectors(),
            ..from(&self.version.into())
        };
        open(source, options).unwrap()
    }

    fn at(source: &MemorySource<u32>, oracle: &Oracle, version: u64, selected: Even) -> Self {
        let options = WatchOptions {
            selectors: selected.selectors(),
            ..from(&version.into())
        };
        Self {
            selected,
            stream: open(source, options).unwrap(),
            view: selected.of(oracle.at(version)),
            version,
        }
    }

    fn streaming(source: &MemorySource<u32>, selected: Even) -> Self {
        let options = WatchOptions {
            selectors: selected.selectors(),
            ..streaming()
        };
        let mut stream = open(source, options).unwrap();
        let (mut view, mut context) = (World::new(), Context::from_waker(Waker::noop()));
        loop {
            match stream.as_mut().poll_next(&mut context) {
                Poll::Ready(Some(Ok(WatchEvent::Added(item)))) => {
                    assert!(view.insert(item.meta.key, item.object).is_none());
                }
                Poll::Ready(Some(Ok(WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                }))) => {
                    let version = resource_version.as_number().unwrap();
                    return Self {
                        selected,
                        stream,
                        view,
                        version,
                    };
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A list that is being read page by page while the collection changes.
struct Pages {
    options: ListOptions,
    selected: Even,
    version: u64,
    found: World,
}

impl Pages {
    fn begin(selected: Even, limit: u32) -> Self {
        Self {
            options: ListOptions {
                limit: Some(limit),
                selectors: selected.selectors(),
                ..ListOptions::default()
            },
            selected,
            version: 0,
            found: World::new(),
        }
    }

    /// Read one page; true when the list is over.
    fn step(&mut self, source: &MemorySource<u32>, oracle: &Oracle) -> bool {
        let oldest = source.oldest_version().as_number().unwrap();
        let page = match list(source, self.options.clone()) {
            Ok(page) => page,
            Err(error) => {
                assert_eq!(error.recovery(), Recovery::Relist);
                assert!(self.version < oldest, "the state is forgotten");
                return true;
            }
        };
        let version = page.resource_version.as_number().unwrap();
        assert!(self.version == 0 || self.version == version);
        self.version = version;
        for item in page.items {
            let item = item.unwrap();
            let last = self.found.keys().next_back();
            assert!(last.is_none_or(|last| *last < item.meta.key), "key order");
            self.found.insert(item.meta.key, item.object);
        }
        self.options.continue_token = page.continue_token;
        let over = self.options.continue_token.is_none();
        if over {
            assert_eq!(self.found, self.selected.of(oracle.at(version)));
        }
        over
    }
}

#[derive(Clone, Debug)]
enum Step {
    Upsert(u8, u32),
    Delete(u8),
    Batch(Vec<(u8, u32)>),
    Skip(u64),
    Compact(u64),
    Disconnect(Disconnect),
    Bookmark,
    /// A new client, at a version this far back.
    Join(u64, bool),
    JoinStreaming(bool),
    Read(usize),
    BeginPages(u32, bool),
    Page,
    Exact(u64, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..8u8;
    prop_oneof![
        6 => (name.clone(), 0..4u32).prop_map(|(name, value)| Step::Upsert(name, value)),
        3 => name.clone().prop_map(Step::Delete),
        1 => prop::collection::vec((name, 0..4u32), 0..5).prop_map(Step::Batch),
        1 => (0..3u64).prop_map(Step::Skip),
        1 => (0..20u64).prop_map(Step::Compact),
        1 => prop_oneof![Just(Disconnect::Clean), Just(Disconnect::Broken)].prop_map(Step::Disconnect),
        1 => Just(Step::Bookmark),
        2 => (0..20u64, any::<bool>()).prop_map(|(back, even)| Step::Join(back, even)),
        1 => any::<bool>().prop_map(Step::JoinStreaming),
        4 => (0..4usize).prop_map(Step::Read),
        2 => (1..4u32, any::<bool>()).prop_map(|(limit, even)| Step::BeginPages(limit, even)),
        3 => Just(Step::Page),
        2 => (0..20u64, any::<bool>()).prop_map(|(back, even)| Step::Exact(back, even)),
    ]
}

fn run(steps: Vec<Step>, history: usize, version_step: u64, bookmark_every: u64) {
    let config = MemoryConfig {
        version_step,
        history,
        bookmark_every,
        ..MemoryConfig::default()
    };
    let source = with(config.labels(|value, name| match (name, value % 2) {
        ("parity", 0) => Some("even"),
        ("parity", _) => Some("odd"),
        _ => None,
    }));
    let mut oracle = Oracle {
        worlds: BTreeMap::from([(1, World::new())]),
    };
    let (mut clients, mut pages): (Vec<Client>, Vec<Pages>) = (Vec::new(), Vec::new());
    for step in steps {
        let newest = source.resource_version().as_number().unwrap();
        let oldest = source.oldest_version().as_number().unwrap();
        let back_to = |back: u64| newest.saturating_sub(back).max(oldest);
        match step {
            Step::Upsert(name, value) => {
                let meta = source.upsert(key(name), value);
                let note = |world: &mut World| {
                    world.insert(meta.key, value);
                };
                oracle.note(&meta.resource_version, note);
            }
            Step::Delete(name) => {
                if let Ok(meta) = source.delete(&key(name), None) {
                    let note = |world: &mut World| {
                        assert!(world.remove(&meta.key).is_some());
                    };
                    oracle.note(&meta.resource_version, note);
                }
            }
            Step::Batch(writes) => {
                let upserts = writes
                    .iter()
                    .map(|(name, value)| Write::Upsert(key(*name), *value));
                let results = source.write_all(upserts);
                for (meta, (_, value)) in results.into_iter().zip(writes) {
                    let meta = meta.unwrap();
                    let note = |world: &mut World| {
                        world.insert(meta.key, value);
                    };
                    oracle.note(&meta.resource_version, note);
                }
            }
            Step::Skip(count) => source.skip_versions(count),
            Step::Compact(back) => source.compact(&back_to(back).into()),
            Step::Disconnect(how) => source.disconnect(how),
            Step::Bookmark => source.send_bookmark(),
            Step::Join(back, even) => {
                clients.push(Client::at(&source, &oracle, back_to(back), Even(even)));
            }
            Step::JoinStreaming(even) => clients.push(Client::streaming(&source, Even(even))),
            Step::Read(at) => {
                if let Some(client) = clients.get_mut(at) {
                    client.read(&source, &oracle);
                }
            }
            Step::BeginPages(limit, even) => pages.push(Pages::begin(Even(even), limit)),
            Step::Page => pages.retain_mut(|pages| !pages.step(&source, &oracle)),
            Step::Exact(back, even) => {
                let version = back_to(back);
                let options = ListOptions {
                    resource_version: version.into(),
                    version_match: Some(VersionMatch::Exact),
                    selectors: Even(even).selectors(),
                    ..ListOptions::default()
                };
                let page = list(&source, options).unwrap();
                let found: World = page
                    .items
                    .into_iter()
                    .map(|item| item.map(|item| (item.meta.key, item.object)).unwrap())
                    .collect();
                assert_eq!(found, Even(even).of(oracle.at(version)));
            }
        }
    }
    while !pages.is_empty() {
        pages.retain_mut(|pages| !pages.step(&source, &oracle));
    }
    for client in &mut clients {
        client.read(&source, &oracle);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A list and a watch from any version, at any time, with compaction, paging, selection and
    /// disconnects in between, give exactly the collection: at every page and after every frame.
    #[test]
    fn lists_and_watches_reconstruct_the_collection_exactly(
        steps in prop::collection::vec(step(), 1..150),
        history in prop_oneof![1..8usize, Just(1_000)],
        version_step in 1..4u64,
        bookmark_every in 0..4u64,
    ) {
        run(steps, history, version_step, bookmark_every);
    }
}
