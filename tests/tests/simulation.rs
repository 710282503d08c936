//! A few runs of the simulation; `simulate` plays many.
use informant_tests::simulation::{crowd, plan, run};

fn passes(name: &str, plan: &informant_tests::simulation::Plan) {
    let outcome = run(plan, false);
    if let Some(failure) = outcome.failure {
        panic!("{name}: {failure}\n{}", plan.describe());
    }
}

#[test]
fn random_runs_come_right() {
    for seed in 0..300 {
        passes(&format!("seed {seed}"), &plan(seed));
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    for seed in 0..60 {
        let plan = plan(seed);
        let (one, other) = (run(&plan, false), run(&plan, false));
        assert_eq!(
            (one.digest, one.events, one.virtual_time),
            (other.digest, other.events, other.virtual_time),
            "seed {seed}"
        );
    }
}

/// Handlers come and go at random while events flow, and the informer is stopped in the midst of it:
/// no first addition is missed or doubled, and nothing is left.
#[test]
fn a_thousand_handlers_come_and_go() {
    for seed in 0..3 {
        passes(&format!("crowd {seed}"), &crowd(seed, 1_000));
    }
}
