//! The collection: its objects, and everything it ever was.
use informant::source::memory::{MemoryConfig, MemorySource};
use informant::source::{Selectors, ShardSelector};
use informant::{Cached, ObjectKey, ResourceVersion, Uid};
use std::borrow::Cow;
use std::sync::Arc;

/// How many keys there are: few, so that much happens to each.
pub(super) const KEYS: usize = 8;

/// The label and the field that selectors look at.
const TEAMS: [&str; 2] = ["a", "b"];

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thing {
    pub(super) team: u8,
    /// No two writes have the same one.
    pub(super) value: u32,
    /// The informer's transform refuses it.
    pub(super) refused: bool,
}

/// One state of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) uid: Uid,
    pub(super) version: u64,
    pub(super) thing: Thing,
}

impl State {
    /// True when the cached object is this state.
    pub(super) fn is(&self, cached: &Cached<Thing>) -> bool {
        cached.resource_version().as_number() == Some(self.version)
            && cached.uid() == &self.uid
            && **cached == self.thing
    }
}

/// The state of each key at one moment.
pub(super) type World = [Option<Arc<State>>; KEYS];

pub(super) fn key(number: usize) -> ObjectKey {
    ObjectKey::new(namespace(number), &format!("k{number}")).expect("a valid key")
}

fn namespace(number: usize) -> &'static str {
    ["ns0", "ns1"][number % 2]
}

/// The number of a key that [`key`] has made.
pub(super) fn number(key: &ObjectKey) -> usize {
    key.name()[1..].parse().expect("a key of this world")
}

/// How several sources share the collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// One source has all.
    Whole,
    /// One source for each of the two namespaces.
    Namespaces,
    /// Ranges of hashes of the uid: an object created again may move to another source.
    Shards(u32),
}

/// What the sources ask for of their part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Everything,
    Labels,
    Fields,
}

/// One source's part of the collection.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) selectors: Selectors,
    namespace: Option<usize>,
    team: Option<u8>,
    shard: Option<ShardSelector>,
}

impl Part {
    pub(super) fn all(split: Split, selection: Selection) -> Vec<Self> {
        let mut whole = Self {
            selectors: Selectors::default(),
            namespace: None,
            team: None,
            shard: None,
        };
        match selection {
            Selection::Everything => {}
            Selection::Labels => whole.selectors.labels = Some("team in (a)".to_owned()),
            Selection::Fields => whole.selectors.fields = Some("spec.team=a".to_owned()),
        }
        if selection != Selection::Everything {
            whole.team = Some(0);
        }
        match split {
            Split::Whole => vec![whole],
            Split::Namespaces => (0..2)
                .map(|number| {
                    let mut part = whole.clone();
                    part.namespace = Some(number);
                    part.selectors.namespace = Some(namespace(number).to_owned());
                    part
                })
                .collect(),
            Split::Shards(count) => ShardSelector::shards(count)
                .into_iter()
                .map(|shard| {
                    let mut part = whole.clone();
                    part.selectors.shard = Some(shard.to_string());
                    part.shard = Some(shard);
                    part
                })
                .collect(),
        }
    }

    /// Whether this part may have anything under the key.
    pub(super) fn covers(&self, number: usize) -> bool {
        self.namespace.is_none_or(|wanted| wanted == number % 2)
    }

    /// Whether an object of this uid under the key may be of this part.
    pub(super) fn owns(&self, number: usize, uid: &Uid) -> bool {
        self.covers(number)
            && self
                .shard
                .as_ref()
                .is_none_or(|shard| shard.matches(&uid.to_string(), namespace(number)))
    }

    /// The state, if the part has it.
    pub(super) fn select<'s>(
        &self,
        number: usize,
        state: Option<&'s Arc<State>>,
    ) -> Option<&'s Arc<State>> {
        state.filter(|state| {
            self.team.is_none_or(|team| team == state.thing.team) && self.owns(number, &state.uid)
        })
    }
}

/// What is remembered between two restores from backup: within one, versions only rise.
struct Generation {
    worlds: Vec<(u64, World)>,
}

/// Every state that the collection ever had.
pub(super) struct History {
    generations: Vec<Generation>,
    /// Of each key.
    states: [Vec<Arc<State>>; KEYS],
}

impl History {
    pub(super) fn new(first_version: u64) -> Self {
        Self {
            generations: vec![Generation {
                worlds: vec![(first_version, World::default())],
            }],
            states: Default::default(),
        }
    }

    pub(super) fn generation(&self) -> usize {
        self.generations.len() - 1
    }

    fn newest(&self) -> &World {
        let (_, world) = self.worlds(self.generation()).last().expect("never empty");
        world
    }

    fn worlds(&self, generation: usize) -> &[(u64, World)] {
        &self.generations[generation].worlds
    }

    pub(super) fn now(&self) -> &World {
        self.newest()
    }

    /// The world at `version`; `None` when the generation begins later.
    pub(super) fn at(&self, generation: usize, version: u64) -> Option<&World> {
        let worlds = self.worlds(generation);
        let after = worlds.partition_point(|(known, _)| *known <= version);
        Some(&worlds[after.checked_sub(1)?].1)
    }

    /// The changes of the newest generation after `version`, as the part sees them: the key, the
    /// version, and whether it is an end.
    pub(super) fn changes_after(&self, version: u64, part: &Part) -> Vec<(usize, u64, bool)> {
        let worlds = self.worlds(self.generation());
        let mut changes = Vec::new();
        for pair in worlds.windows(2) {
            let ((_, before), (at, after)) = (&pair[0], &pair[1]);
            for number in (0..KEYS).filter(|_| *at > version) {
                let before = part.select(number, before[number].as_ref());
                let after = part.select(number, after[number].as_ref());
                if before != after {
                    changes.push((number, *at, after.is_none()));
                }
            }
        }
        changes
    }

    pub(super) fn change(&mut self, number: usize, version: u64, state: Option<State>) {
        let mut world = self.newest().clone();
        world[number] = state.map(Arc::new);
        self.states[number].extend(world[number].clone());
        let last = self.generations.last_mut().expect("never empty");
        last.worlds.push((version, world));
    }

    /// A new generation begins with `world`.
    pub(super) fn restore(&mut self, version: u64, world: World) {
        self.generations.push(Generation {
            worlds: vec![(version, world)],
        });
    }

    /// Whether the key was ever in the state that is cached.
    pub(super) fn knows(&self, number: usize, cached: &Cached<Thing>) -> bool {
        self.states[number].iter().any(|state| state.is(cached))
    }
}

/// A source of such objects.
pub(super) fn source(mut config: MemoryConfig<Thing>) -> MemorySource<Thing> {
    config = config
        .labels(|thing: &Thing, name| (name == "team").then(|| TEAMS[usize::from(thing.team)]))
        .field("spec.team", |thing| {
            Some(Cow::Borrowed(TEAMS[usize::from(thing.team)]))
        });
    MemorySource::with(config)
}

pub(super) fn number_of(version: &ResourceVersion) -> u64 {
    version.as_number().unwrap_or(0)
}
