//! Fewer steps that still fail.
use super::plan::{HandlerPlan, Plan, Setup, Step};
use super::world::{Selection, Split};
use super::{Outcome, run};

/// A plan that fails, from which nothing can be left out.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// What is left.
    pub plan: Plan,
    /// How it fails.
    pub failure: String,
    /// How many runs it took.
    pub runs: u32,
}

/// Runs that a minimisation may take.
const MOST_RUNS: u32 = 4_000;

/// Leave out steps, and make the settings plainer, for as long as the run still fails in the same
/// way. `None` when the plan does not fail.
#[must_use]
pub fn minimise(plan: &Plan) -> Option<Minimised> {
    let Outcome { failure, .. } = run(plan, false);
    let mut best = Minimised {
        plan: plan.clone(),
        failure: failure?,
        runs: 1,
    };
    loop {
        let before = (best.plan.len(), best.plan.setup.clone());
        remove_steps(&mut best);
        plainer_settings(&mut best);
        plainer_steps(&mut best);
        if (best.plan.len(), best.plan.setup.clone()) == before || best.runs >= MOST_RUNS {
            return Some(best);
        }
    }
}

/// Try a plan; true when it fails, and then it is the best so far.
fn accept(best: &mut Minimised, plan: Plan) -> bool {
    best.runs += 1;
    match run(&plan, false).failure {
        Some(failure) if way(&failure) == way(&best.failure) => {
            best.plan = plan;
            best.failure = failure;
            true
        }
        _ => false,
    }
}

/// How it begins to be told, without the names and numbers of one run.
fn way(failure: &str) -> String {
    let words = failure.chars().filter(|c| c.is_alphabetic());
    words.take(18).collect()
}

/// Delta debugging: ever smaller parts are left out.
fn remove_steps(best: &mut Minimised) {
    let mut size = best.plan.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed = false;
        while at < best.plan.len() && best.runs < MOST_RUNS {
            let mut plan = best.plan.clone();
            let end = (at + size).min(plan.len());
            plan.steps.drain(at..end);
            if accept(best, plan) {
                removed = true;
            } else {
                at += size;
            }
        }
        if best.runs >= MOST_RUNS || (size == 1 && !removed) {
            return;
        }
        if !removed || size > 1 {
            size = (size / 2).max(1);
        }
    }
}

fn plainer_settings(best: &mut Minimised) {
    let changes: [fn(&mut Setup); 14] = [
        |setup| setup.split = Split::Whole,
        |setup| setup.selection = Selection::Everything,
        |setup| setup.streaming = false,
        |setup| setup.streaming_tries = 1,
        |setup| setup.page_size = None,
        |setup| setup.queue_bound = None,
        |setup| setup.resync = None,
        |setup| setup.internal_error_retry = 0,
        |setup| setup.history = 1000,
        |setup| setup.bookmark_every = 0,
        |setup| setup.version_step = 1,
        |setup| setup.lossy = false,
        |setup| setup.transform = false,
        |setup| setup.workers = 0,
    ];
    for change in changes {
        let mut plan = best.plan.clone();
        change(&mut plan.setup);
        if plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::Fault(fault) if fault.is_lossy()))
        {
            plan.setup.lossy = true;
        }
        if plan.setup != best.plan.setup && best.runs < MOST_RUNS {
            accept(best, plan);
        }
    }
}

fn plainer_steps(best: &mut Minimised) {
    for at in 0..best.plan.len() {
        let Some(plainer) = plainer(&best.plan.steps[at]) else {
            continue;
        };
        if best.runs >= MOST_RUNS {
            return;
        }
        let mut plan = best.plan.clone();
        plan.steps[at] = plainer;
        accept(best, plan);
    }
}

fn plainer(step: &Step) -> Option<Step> {
    let plain = match step {
        Step::Put { key, .. } => Step::Put {
            key: *key,
            team: 0,
            refused: false,
        },
        Step::Yield(_) => Step::Wait(1),
        Step::Wait(millis) if *millis > 1 => Step::Wait(millis / 2),
        Step::Recreate(key) => Step::Delete(*key),
        Step::Join(plan) => Step::Join(HandlerPlan {
            panics: None,
            resync: None,
            seed: 0,
            ..plan.clone()
        }),
        _ => return None,
    };
    (plain != *step).then_some(plain)
}
