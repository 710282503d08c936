//! Compaction of one key: whatever arrives and whatever is stored, the end is the same.
use super::rig::object;
use crate::delta::compaction::{Deltas, push};
use crate::delta::{Compaction, Deleted, Delta};
use crate::object::{Cached, ResourceVersion, Uid, Versioning};
use proptest::prelude::*;

/// One delta of the key, in a few versions and lives; `None` for an object: it is a deletion.
#[derive(Clone, Copy, Debug)]
struct Input {
    life: u8,
    /// 0 has no version, 1 is one that does not compare.
    version: u8,
    is_delete: bool,
    is_known: bool,
}

fn version(number: u8) -> String {
    match number {
        0 => String::new(),
        1 => "x1".to_owned(),
        number => number.to_string(),
    }
}

fn state(life: u8, number: u8) -> Cached<String> {
    object(&format!("a#u{life}@{}", version(number))).into()
}

impl Input {
    fn delta(self) -> Delta<String> {
        let object = state(self.life, self.version);
        match (self.is_delete, self.is_known) {
            (false, false) => Delta::Added(object),
            (false, true) => Delta::Updated(object),
            (true, true) => Delta::deleted(Deleted::known(object)),
            (true, false) => Delta::deleted(Deleted::of(object.meta())),
        }
    }
}

/// The plain rules of identity order, on uid and version alone.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    stored: Option<(Uid, ResourceVersion)>,
    versioning: Versioning,
}

impl Plain {
    fn apply(&mut self, delta: &Delta<String>) {
        let (Some((uid, stored)), versioning) = (self.stored.clone(), self.versioning) else {
            if !matches!(delta, Delta::Deleted(_)) {
                self.store(delta);
            }
            return;
        };
        let arriving = delta.resource_version();
        let is_older = arriving.is_older_than(&stored, versioning);
        match delta {
            Delta::Deleted(deleted) => {
                let is_newer = stored.is_older_than(arriving, versioning);
                if !is_older && (is_newer || uid == deleted.uid) {
                    self.stored = None;
                }
            }
            _ if is_older => (),
            delta => self.store(delta),
        }
    }

    fn store(&mut self, delta: &Delta<String>) {
        let object = delta.object().unwrap();
        self.stored = Some((object.uid().clone(), object.resource_version().clone()));
    }
}

/// A version names one state, so it belongs to one life; which one differs from run to run.
fn inputs(wild: bool) -> impl Strategy<Value = (Vec<u8>, Vec<Input>)> {
    let lowest = if wild { 0_u8 } else { 2 };
    let lives = prop::collection::vec(1..4_u8, 10);
    let input = (lowest..9, any::<bool>(), any::<bool>());
    (lives, prop::collection::vec(input, 0..12)).prop_map(|(lives, inputs)| {
        let inputs = inputs
            .into_iter()
            .map(|(version, is_delete, is_known)| Input {
                life: lives[usize::from(version)],
                version,
                is_delete,
                is_known,
            })
            .collect();
        (lives, inputs)
    })
}

/// Everything that a consumer may hold before.
fn worlds(lives: &[u8], wild: bool) -> Vec<Option<(Uid, ResourceVersion)>> {
    let lowest = if wild { 0 } else { 2 };
    let some = (lowest..10).map(|number| {
        let object = state(lives[usize::from(number)], number);
        Some((object.uid().clone(), object.resource_version().clone()))
    });
    some.chain([None]).collect()
}

fn folded(
    deltas: &[Delta<String>],
    stored: Option<(Uid, ResourceVersion)>,
    versioning: Versioning,
) -> Plain {
    let mut plain = Plain { stored, versioning };
    for delta in deltas {
        plain.apply(delta);
    }
    plain
}

fn check(
    lives: &[u8],
    inputs: &[Input],
    compaction: Compaction,
    versioning: Versioning,
    wild: bool,
) -> Result<(), TestCaseError> {
    let all: Vec<_> = inputs.iter().map(|input| input.delta()).collect();
    let mut compacted = Deltas::new();
    for delta in all.clone() {
        push(&mut compacted, delta, compaction, versioning);
        if compaction == Compaction::FirstAndLast {
            prop_assert!(compacted.len() <= Compaction::DELTAS_PER_KEY);
        }
    }
    for stored in worlds(lives, wild) {
        prop_assert_eq!(
            folded(&compacted, stored.clone(), versioning),
            folded(&all, stored.clone(), versioning),
            "from {:?}: {:?} became {:?}",
            stored,
            all,
            compacted
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// I-DF3, I-DF17: the end is the same as that of every input, one by one.
    #[test]
    fn what_is_compacted_ends_in_the_same_state((lives, inputs) in inputs(false)) {
        check(&lives, &inputs, Compaction::FirstAndLast, Versioning::Decimal, false)?;
        check(&lives, &inputs, Compaction::KeepAll, Versioning::Decimal, false)?;
    }

    #[test]
    fn versions_that_do_not_compare_end_in_the_same_state((lives, inputs) in inputs(true)) {
        check(&lives, &inputs, Compaction::KeepAll, Versioning::Decimal, true)?;
        check(&lives, &inputs, Compaction::FirstAndLast, Versioning::Opaque, true)?;
        // Mixed with others in one key there is no bound within which all could be kept.
        let few = &inputs[..inputs.len().min(Compaction::DELTAS_PER_KEY)];
        check(&lives, few, Compaction::FirstAndLast, Versioning::Decimal, true)?;
    }
}

fn compacted(deltas: &[Delta<String>]) -> String {
    let mut pending = Deltas::new();
    for delta in deltas {
        push(
            &mut pending,
            delta.clone(),
            Compaction::KeepAll,
            Versioning::Decimal,
        );
    }
    format!("{pending:?}")
}

/// I-DF4: of two deletions in a row the one that knows more stays; it ends what either ends.
/// I-DF8: no deletion is wrapped in another.
#[test]
fn deletions_in_a_row_collapse_to_the_one_that_knows_more() {
    let real = |number| Delta::deleted(Deleted::known(state(1, number)));
    let unknown = |number| Delta::deleted(Deleted::of(state(1, number).meta()));
    assert_eq!(compacted(&[real(5), real(5)]), "[Deleted(ns/a@5, last @5)]");
    assert_eq!(compacted(&[real(5), real(6)]), "[Deleted(ns/a@6, last @5)]");
    assert_eq!(
        compacted(&[real(5), unknown(6)]),
        "[Deleted(ns/a@6, last @5)]"
    );
    assert_eq!(
        compacted(&[unknown(5), real(6)]),
        "[Deleted(ns/a@6, last @6)]"
    );
    assert_eq!(compacted(&[unknown(5), unknown(6)]), "[Deleted?(ns/a@6)]");
    let other = Delta::deleted(Deleted::known(state(2, 6)));
    assert_eq!(
        compacted(&[real(5), other]),
        "[Deleted(ns/a@5, last @5), Deleted(ns/a@6, last @6)]",
        "two lives ended"
    );
}

/// I-DF3: every state is kept where everything is kept. The same state again is none (C034, C050):
/// whoever applies both drops it, and it must not pile up while nobody does.
#[test]
fn every_state_is_kept_once_where_everything_is_kept() {
    let update = |version| Delta::Updated(state(1, version));
    assert_eq!(
        compacted(&[update(5), update(6), update(7)]),
        "[Updated(ns/a@5), Updated(ns/a@6), Updated(ns/a@7)]"
    );
    assert_eq!(
        compacted(&[update(5), update(5), update(6), update(5), update(6)]),
        "[Updated(ns/a@5), Updated(ns/a@6)]"
    );
    let gone = || Delta::deleted(Deleted::known(state(1, 6)));
    assert_eq!(
        compacted(&[update(5), gone(), update(5)]),
        "[Updated(ns/a@5), Deleted(ns/a@6, last @6), Updated(ns/a@5)]",
        "behind a deletion it says something"
    );
}
