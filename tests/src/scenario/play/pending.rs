//! What waits for a key in the queue: its deltas, and what the relists among them mean for it.
use super::super::notation::{DeltaKind, DeltaPattern};
use super::super::thing::{Scripted, key_only, show};
use super::Outcome;
use informant::delta::{Batch, Deleted, Delta, Step};
use informant::indexer::View;

/// The deltas of a key, oldest first.
pub(super) fn pending<T: Scripted>(
    batch: &Batch<T>,
    view: &View<T>,
    key: &str,
) -> Vec<DeltaPattern> {
    let mut known = view.get(key).map(show);
    let mut deltas = Vec::new();
    for step in &batch.steps {
        match step {
            Step::Changes(groups) => {
                let of_key = groups
                    .iter()
                    .flat_map(|group| &group.deltas)
                    .filter(|delta| delta.key().as_str() == key);
                for delta in of_key {
                    let delta = one(delta);
                    known = (!matches!(delta.kind, DeltaKind::Deleted | DeltaKind::Tombstone))
                        .then(|| delta.object.clone());
                    deltas.push(delta);
                }
            }
            Step::Replace(replace) => {
                for end in replace
                    .superseded_deletes
                    .iter()
                    .filter(|end| end.key.as_str() == key)
                {
                    deltas.push(ended(end));
                    known = None;
                }
                let item = replace
                    .items
                    .iter()
                    .rfind(|item| item.key().as_str() == key)
                    .map(show);
                match (item, known.take()) {
                    (Some(item), _) => {
                        deltas.push(DeltaPattern {
                            kind: DeltaKind::Replaced,
                            object: item.clone(),
                        });
                        known = Some(item);
                    }
                    (None, Some(last)) => deltas.push(DeltaPattern {
                        kind: DeltaKind::Tombstone,
                        object: last,
                    }),
                    (None, None) => {}
                }
            }
            Step::Resync(_) => {
                // What changes in the batch is announced by its change.
                if let Some(object) = known.clone().filter(|_| deltas.is_empty()) {
                    deltas.push(DeltaPattern {
                        kind: DeltaKind::Sync,
                        object,
                    });
                }
            }
            Step::Bad { .. } => {}
        }
    }
    deltas
}

fn one<T: Scripted>(delta: &Delta<T>) -> DeltaPattern {
    let (kind, object) = match delta {
        Delta::Added(object) => (DeltaKind::Added, show(object)),
        Delta::Updated(object) => (DeltaKind::Updated, show(object)),
        Delta::Replaced(object) => (DeltaKind::Replaced, show(object)),
        Delta::Sync(object) => (DeltaKind::Sync, show(object)),
        Delta::Deleted(end) => return ended(end),
    };
    DeltaPattern { kind, object }
}

fn ended<T: Scripted>(end: &Deleted<T>) -> DeltaPattern {
    DeltaPattern {
        kind: if end.final_state_unknown {
            DeltaKind::Tombstone
        } else {
            DeltaKind::Deleted
        },
        object: end.last.as_ref().map_or_else(|| key_only(&end.key), show),
    }
}

/// What waits for a key against what shall.
pub(super) fn compare(key: &str, choices: &[Vec<DeltaPattern>], found: &[DeltaPattern]) -> Outcome {
    let fits = choices.iter().any(|choice| {
        choice.len() == found.len()
            && choice
                .iter()
                .zip(found)
                .all(|(pattern, delta)| pattern.matches(delta))
    });
    if fits {
        return Ok(());
    }
    let list = |deltas: &[DeltaPattern]| {
        let texts: Vec<_> = deltas.iter().map(ToString::to_string).collect();
        format!("[{}]", texts.join(", "))
    };
    let expected: Vec<_> = choices.iter().map(|choice| list(choice)).collect();
    Err(format!(
        "pending for {}: expected {}, found {}",
        super::super::notation::show_key(key),
        expected.join(" or "),
        list(found)
    ))
}
