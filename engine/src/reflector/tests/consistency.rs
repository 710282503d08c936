//! The consistency check, against a scripted source and a real indexer.
use super::rig::{Rig, Script, api, page};
use crate::clock::{ManualClock, SharedClock};
use crate::delta::{Batch, Delta, KeyDeltas, Replace, SourceId, Step};
use crate::indexer::{IndexWriter, Indexer};
use crate::object::Cached;
use crate::reflector::{
    Comparison, ConsistencyCheck, ConsistencyConfig, Differences, DigestFeed, Fault,
};
use crate::source::{
    BadObject, ListOptions, ListPage, ListWatch, SourceError, WatchOptions, WatchStream,
};
use crate::stop::StopToken;
use crate::sync::{Mutex, block_on};
use smallvec::smallvec;
use std::sync::Arc;
use std::time::Duration;

/// A cache that was filled by a list in the notation of the scripts, and its digest.
struct Filled {
    cache: Indexer<String>,
    writer: IndexWriter<String>,
    feed: DigestFeed,
}

impl Filled {
    fn new(list: &str) -> Self {
        let (cache, writer) = Indexer::builder().build();
        let mut filled = Self {
            cache,
            writer,
            feed: DigestFeed::new(),
        };
        let page = page(list);
        let (good, bad): (Vec<_>, Vec<_>) = page.items.into_iter().partition(Result::is_ok);
        filled.apply(
            Step::Replace(Replace {
                source: SourceId(0),
                resource_version: page.resource_version.clone(),
                items: good.into_iter().flatten().map(Cached::from).collect(),
                bad: bad
                    .into_iter()
                    .filter_map(Result::err)
                    .collect::<Vec<BadObject>>(),
                initial: true,
                reset: false,
                superseded_deletes: vec![],
            }),
            &page.resource_version.to_string(),
        );
        filled
    }

    fn update(&mut self, object: &str, version: &str) {
        let item = page(&format!("0 {object}")).items.remove(0).unwrap();
        let change = KeyDeltas {
            source: SourceId(0),
            deltas: smallvec![Delta::Updated(Cached::from(item))],
        };
        self.apply(Step::Changes(vec![change]), version);
    }

    fn apply(&mut self, step: Step<String>, version: &str) {
        let applied = self.writer.apply(Batch {
            steps: vec![step],
            versions: smallvec![(SourceId(0), version.into())],
            inputs: 1,
        });
        self.feed.follow(&applied, self.cache.snapshot().sequence());
    }

    fn compare(
        &self,
        script: impl FnOnce(Script) -> Script,
    ) -> (Result<Comparison, Fault>, Vec<String>) {
        let clock: SharedClock = Arc::new(ManualClock::new());
        let source = Arc::new(script(Script::new(clock.clone())));
        let mut config = ConsistencyConfig::new(clock);
        config.page_size = 2;
        config.named = 2;
        let check = ConsistencyCheck::new(source.clone(), config);
        let snapshot = self.cache.snapshot();
        let digest = self.feed.digest_of(&snapshot).unwrap();
        let outcome = block_on(check.compare(&snapshot, digest));
        (outcome, source.calls())
    }
}

fn equal(version: &str, objects: u64) -> Comparison {
    Comparison::Equal {
        resource_version: version.into(),
        objects,
    }
}

#[test]
fn an_equal_cache_costs_one_list_of_metadata_at_its_own_version() {
    let mut filled = Filled::new("10 a@5 b@6");
    filled.update("b@12", "12");
    filled.update("c@13", "13");
    let (outcome, calls) =
        filled.compare(|script| script.list("13 c@13 a@5 cont=t1").list("13 b@12"));
    assert_eq!(outcome.unwrap(), equal("13", 3));
    assert_eq!(
        calls,
        [
            "LIST(rv=13,match=Exact,limit=2,metadata)",
            "LIST(cont=t1,limit=2,metadata)"
        ]
    );
}

#[test]
fn differences_are_counted_and_the_first_are_named() {
    let filled = Filled::new("10 ghost@5 same@6 stale@7 again#u1@8");
    let truth = "10 same@6 stale@9 again#u2@8 missing@4";
    let (outcome, _) = filled.compare(|script| script.list(truth).list(truth));
    let Comparison::Different(differences) = outcome.unwrap() else {
        panic!("it differs");
    };
    let key = |name| crate::ObjectKey::new("ns", name).unwrap();
    assert_eq!(
        differences,
        Differences {
            resource_version: "10".into(),
            missing: 1,
            extra: 1,
            other_version: 2,
            first: vec![key("again"), key("ghost")],
        }
    );
    assert_eq!(differences.count(), 4);
}

#[test]
fn what_is_in_quarantine_is_no_difference() {
    let filled = Filled::new("10 a@5 bad:spam@6");
    let truth = "10 a@5 spam@6";
    let (outcome, _) = filled.compare(|script| script.list(truth).list(truth));
    assert_eq!(outcome.unwrap(), equal("10", 2));

    let filled = Filled::new("10 a@5 bad:?@6");
    let (outcome, _) = filled.compare(|script| script.list(truth).list(truth));
    assert_eq!(
        outcome.unwrap(),
        equal("10", 2),
        "it may be the one of unknown key"
    );
}

/// A quarantine excuses the version that failed, not whatever came after it.
#[test]
fn what_has_changed_since_it_failed_is_a_difference() {
    let filled = Filled::new("10 a@5 bad:spam@6");
    let truth = "10 a@5 spam@9";
    let (outcome, _) = filled.compare(|script| script.list(truth).list(truth));
    let Ok(Comparison::Different(differences)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((differences.missing, differences.count()), (1, 1));

    let filled = Filled::new("10 a@5 bad:?@6");
    let truth = "10 a@5 spam@6 eggs@7";
    let (outcome, _) = filled.compare(|script| script.list(truth).list(truth));
    let Ok(Comparison::Different(differences)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(differences.missing, 2, "only one of them is excused");
}

/// It must go on checking afterwards, so a panic is an outcome like others.
#[test]
fn a_panic_of_the_source_is_a_failed_comparison() {
    struct Panics;
    impl ListWatch for Panics {
        type Object = String;
        async fn list(&self, _: ListOptions) -> Result<ListPage<String>, SourceError> {
            std::panic::resume_unwind(Box::new("no list today"));
        }
        async fn watch(&self, _: WatchOptions) -> Result<WatchStream<String>, SourceError> {
            Ok(Box::pin(futures_util::stream::pending()))
        }
    }
    let filled = Filled::new("10 a@5");
    let view = filled.cache.load();
    let digest = filled.feed.digest_of(&view).expect("the feed follows");
    let config = ConsistencyConfig::new(Arc::new(ManualClock::new()));
    let check = ConsistencyCheck::new(Arc::new(Panics), config);
    let outcome = block_on(check.compare(&view, digest));
    assert_eq!(
        outcome,
        Err(Fault::SourcePanicked("panicked: no list today".into()))
    );
}

#[test]
fn a_version_that_the_source_has_forgotten_cannot_be_compared() {
    let filled = Filled::new("10 a@5");
    let (outcome, _) = filled.compare(|script| script.lists_fail(1, &api(410, "Expired")));
    assert_eq!(outcome.unwrap(), Comparison::NotComparable);
    let (outcome, _) = filled.compare(|script| script.list("11 a@5"));
    assert_eq!(
        outcome.unwrap(),
        Comparison::NotComparable,
        "another version came"
    );
    let (outcome, _) = filled.compare(|script| script.lists_fail(1, &api(500, "InternalError")));
    assert_eq!(outcome.unwrap_err(), api(500, "InternalError").into());
}

/// The repair: a difference leads to a relist.
#[test]
fn a_difference_found_on_the_period_leads_to_a_relist() {
    let filled = Filled::new("10 a@5 ghost@6");
    let mut rig = Rig::new(|script| script.list("10 a@5 ghost@6").list("11 a@5"));
    let shared: SharedClock = Arc::new(rig.clock.clone());
    let truth = Arc::new(Script::new(shared.clone()).list("10 a@5").list("10 a@5"));
    let mut config = ConsistencyConfig::new(shared);
    config.period = Duration::from_secs(60);
    let found = Arc::new(Mutex::new(Vec::new()));
    let seen = found.clone();
    let stop = StopToken::new();
    let check = ConsistencyCheck::new(truth.clone(), config).run(
        filled.cache.clone(),
        filled.feed.clone(),
        rig.handle.clone(),
        move |outcome| seen.lock().push(outcome),
        stop.clone(),
    );
    let mut check = Box::pin(check);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(check.as_mut().poll(&mut context).is_pending());
    rig.pass(120.0);
    assert_eq!(rig.count_calls("LIST"), 1);
    while found.lock().is_empty() {
        assert!(check.as_mut().poll(&mut context).is_pending());
    }
    rig.settle();
    assert_eq!(rig.inputs(), ["=10 [a@5 ghost@6]", "=11 [a@5]"]);
    assert!(matches!(found.lock()[0], Ok(Comparison::Different(_))));
    stop.stop();
    assert!(check.as_mut().poll(&mut context).is_ready());
}
