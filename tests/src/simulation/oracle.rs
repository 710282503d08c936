//! What must be true of everything that is published.
use super::world::{History, KEYS, Part, Split, State, Thing, World, number, number_of};
use informant::Cached;
use informant::indexer::View;
use std::sync::Arc;

/// The names of the indexes: by team, from the start, and by the value's parity, added later.
pub(super) const TEAM: &str = "team";
pub(super) const PARITY: &str = "parity";

/// Keys of which less is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    None,
    /// Something of it could not be used: it may be in quarantine, and is exact where it is not.
    Unusable,
    /// Not even its key could be read: it may be anything that it ever was, as long as something of
    /// unknown key stands in quarantine.
    Unreadable,
}

pub(super) struct Oracle {
    split: Split,
    lossy: bool,
    pub(super) doubts: [Doubt; KEYS],
    pub(super) restores: u64,
    /// Of the source's history, which of each source's published state was last seen to be.
    generations: Vec<usize>,
    last_sequence: u64,
    last_epoch: u64,
    last_versions: Vec<Option<u64>>,
    /// What was published first.
    pub(super) first_version: Option<u64>,
    pub(super) publishes: u64,
}

type Found<'v> = [Option<&'v Cached<Thing>>; KEYS];

impl Oracle {
    pub(super) fn new(split: Split, lossy: bool, sources: usize) -> Self {
        Self {
            split,
            lossy,
            doubts: [Doubt::None; KEYS],
            restores: 0,
            generations: vec![0; sources],
            last_sequence: u64::MAX,
            last_epoch: 0,
            last_versions: vec![None; sources],
            first_version: None,
            publishes: 0,
        }
    }

    /// A new informer begins, with an empty cache.
    pub(super) fn begin(&mut self, generation: usize, sequence: u64) {
        self.generations.fill(generation);
        self.last_sequence = sequence;
        self.last_epoch = 0;
        self.first_version = None;
        self.last_versions.fill(None);
    }

    pub(super) fn generation(&self, source: usize) -> usize {
        self.generations[source]
    }

    pub(super) fn has_seen(&self, sequence: u64) -> bool {
        sequence == self.last_sequence
    }

    pub(super) fn check(
        &mut self,
        view: &View<Thing>,
        history: &History,
        parts: &[Part],
    ) -> Result<(), String> {
        self.publishes += 1;
        let versions = self.check_versions(view)?;
        let mut found: Found<'_> = [None; KEYS];
        for object in view.iter() {
            found[number(object.key())] = Some(object);
        }
        if found.iter().flatten().count() != view.len() {
            return Err("a key stands twice in the cache".to_owned());
        }
        check_indexes(view, &found)?;
        let mut quarantined = [false; KEYS];
        for bad in view.quarantine() {
            let Some(key) = &bad.key else { continue };
            let number = number(key);
            quarantined[number] = true;
            if self.doubts[number] == Doubt::None {
                return Err(format!(
                    "{key} is in quarantine, and nothing was wrong with it"
                ));
            }
        }
        let hides_a_key = view.quarantine().any(|bad| bad.key.is_none());
        let is_loose = |number: usize| {
            self.lossy
                || quarantined[number]
                || (hides_a_key && self.doubts[number] == Doubt::Unreadable)
        };
        for number in (0..KEYS).filter(|number| is_loose(*number)) {
            if let Some(object) = found[number]
                && !history.knows(number, object)
            {
                return Err(format!("{} was never so", show(object)));
            }
        }
        if let Split::Shards(_) = self.split {
            return check_shards(&found, &versions, history, parts, &is_loose);
        }
        for (source, part) in parts.iter().enumerate() {
            let exact = |generation: usize| {
                let world = match versions[source].map(|version| history.at(generation, version)) {
                    // Before the first list nothing is there.
                    None => None,
                    Some(None) => return Err("there was no such version".to_owned()),
                    Some(world) => world,
                };
                difference(&found, part, world, &is_loose)
            };
            let from = self.generations[source];
            let mut result = exact(from);
            for generation in from + 1..=history.generation() {
                if result.is_ok() {
                    break;
                }
                let later = exact(generation);
                if later.is_ok() {
                    self.generations[source] = generation;
                    result = later;
                }
            }
            result.map_err(|what| {
                format!(
                    "the cache is not the source at {:?}: {what}",
                    versions[source]
                )
            })?;
        }
        Ok(())
    }

    /// The watermark never goes back, except by a reset that there was a reason for.
    fn check_versions(&mut self, view: &View<Thing>) -> Result<Vec<Option<u64>>, String> {
        let epoch = view.epoch();
        let mut versions = vec![None; self.last_versions.len()];
        for (source, version) in view.versions() {
            versions[source.0 as usize] = Some(number_of(version));
        }
        if epoch < self.last_epoch {
            return Err(format!("the epoch went back to {epoch}"));
        }
        if epoch > self.restores * self.last_versions.len() as u64 {
            return Err(format!(
                "{epoch} resets were declared, and the source was restored {} times",
                self.restores
            ));
        }
        if epoch == self.last_epoch {
            for (last, now) in self.last_versions.iter().zip(&versions) {
                if now < last {
                    return Err(format!("the watermark went back from {last:?} to {now:?}"));
                }
            }
        }
        self.first_version = self.first_version.or(versions[0]);
        self.last_sequence = view.sequence();
        self.last_epoch = epoch;
        self.last_versions.clone_from(&versions);
        Ok(versions)
    }
}

/// How the keys of a part differ from its world, if they do.
fn difference(
    found: &Found<'_>,
    part: &Part,
    world: Option<&World>,
    is_loose: &impl Fn(usize) -> bool,
) -> Result<(), String> {
    for number in (0..KEYS).filter(|number| part.covers(*number) && !is_loose(*number)) {
        let expected = world.and_then(|world| part.select(number, world[number].as_ref()));
        expect(found[number], number, expected)?;
    }
    Ok(())
}

fn expect(
    found: Option<&Cached<Thing>>,
    number: usize,
    expected: Option<&Arc<State>>,
) -> Result<(), String> {
    match (found, expected) {
        (None, None) => Ok(()),
        (Some(object), Some(state)) if state.is(object) => Ok(()),
        (Some(object), None) => Err(format!("{} should be gone", show(object))),
        (found, Some(state)) => Err(format!(
            "k{number} should be at {}, and is {}",
            state.version,
            found.map_or("absent".to_owned(), show)
        )),
    }
}

/// Shards by uid may be at different versions, so that one still has an object that another has
/// seen the successor of: the newest state counts, and a key whose end one of them has seen may be
/// gone already.
fn check_shards(
    found: &Found<'_>,
    versions: &[Option<u64>],
    history: &History,
    parts: &[Part],
    is_loose: &impl Fn(usize) -> bool,
) -> Result<(), String> {
    let generation = history.generation();
    let newest = versions.iter().flatten().max().copied().unwrap_or(0);
    let Some(truth) = history.at(generation, newest) else {
        return Ok(());
    };
    for number in (0..KEYS).filter(|number| !is_loose(*number)) {
        let shown: Vec<_> = parts
            .iter()
            .zip(versions)
            .filter_map(|(part, version)| {
                let world = history.at(generation, (*version)?)?;
                part.select(number, world[number].as_ref())
            })
            .collect();
        let true_state = parts
            .iter()
            .find_map(|part| part.select(number, truth[number].as_ref()));
        match true_state {
            Some(state) if shown.contains(&state) => {
                expect(found[number], number, Some(state))?;
            }
            _ => {
                let object = found[number];
                if object.is_some_and(|object| !shown.iter().any(|state| state.is(object))) {
                    return Err(format!(
                        "k{number} is {}, which no shard shows",
                        object.map_or_else(String::new, show)
                    ));
                }
                if true_state.is_none() && shown.is_empty() && object.is_some() {
                    return Err(format!("k{number} should be gone"));
                }
            }
        }
    }
    Ok(())
}

/// Indexes say of the objects what their functions say.
fn check_indexes(view: &View<Thing>, found: &Found<'_>) -> Result<(), String> {
    if let Ok(index) = view.index::<u8>(TEAM) {
        for team in 0..2 {
            let listed = view.by_index(&index, &team).map_err(|e| e.to_string())?;
            compare(TEAM, listed, found, |thing| thing.team == team)?;
        }
    }
    if let Ok(index) = view.index::<bool>(PARITY) {
        for odd in [false, true] {
            let listed = view.by_index(&index, &odd).map_err(|e| e.to_string())?;
            compare(PARITY, listed, found, |thing| (thing.value % 2 == 1) == odd)?;
        }
    }
    Ok(())
}

fn compare<'v>(
    name: &str,
    listed: impl IntoIterator<Item = &'v Cached<Thing>>,
    found: &Found<'_>,
    belongs: impl Fn(&Thing) -> bool,
) -> Result<(), String> {
    let mut expected: Found<'_> = *found;
    for slot in &mut expected {
        *slot = slot.filter(|object| belongs(object));
    }
    for object in listed {
        let known = expected[number(object.key())].take();
        if !known.is_some_and(|known| known.ptr_eq(object)) {
            return Err(format!("the index {name} has {}", show(object)));
        }
    }
    match expected.iter().flatten().next() {
        Some(object) => Err(format!("the index {name} lacks {}", show(object))),
        None => Ok(()),
    }
}

fn show(object: &Cached<Thing>) -> String {
    format!("{}@{}", object.key().name(), object.resource_version())
}
