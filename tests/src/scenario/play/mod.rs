//! Playing a scenario: what each kind of machine does with its steps.
mod cache;
mod factory;
mod informer;
mod pending;
mod queue;
mod work_queue;

use super::action::{Action, Step};
use super::claim::Check;
use super::document::{Machine, Scenario};
use super::notation::ObjectText;
use super::trouble::Place;
use std::future::Future;
use std::pin::Pin;

/// A step that did not go as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where the step is written.
    pub place: Place,
    /// What went otherwise.
    pub message: String,
}

/// Play a scenario from its beginning to its end, or to the first step that fails.
///
/// # Errors
/// The first step that did not go as it should, with everything that was wrong in it.
pub fn play(scenario: &Scenario) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| Failure {
            place: scenario.place,
            message: format!("no runtime: {error}"),
        })?;
    silence_scripted_panics();
    runtime.block_on(async {
        match scenario.machine {
            Machine::Informer => run(informer::InformerPlay::new(scenario), scenario).await,
            Machine::Queue => run(queue::QueuePlay::new(scenario), scenario).await,
            Machine::WorkQueue => run(Ok(work_queue::WorkPlay::new(scenario)), scenario).await,
            Machine::Factory => run(factory::FactoryPlay::new(scenario), scenario).await,
        }
    })
}

type Outcome = Result<(), String>;

/// One kind of machine.
trait Play {
    /// Before the first step.
    async fn begin(&mut self) -> Outcome;
    /// One step; `later` are those after it.
    async fn step(&mut self, action: &Action, later: &[Step]) -> Outcome;
    /// One expectation.
    async fn check(&mut self, check: &Check) -> Outcome;
    /// After the last step: nothing may be left over.
    async fn end(&mut self) -> Outcome;
}

async fn run(play: Result<impl Play, String>, scenario: &Scenario) -> Result<(), Failure> {
    let at = |place| move |message| Failure { place, message };
    let mut play = play.map_err(at(scenario.place))?;
    play.begin().await.map_err(at(scenario.place))?;
    steps(&mut play, &scenario.steps, &[]).await?;
    let last = scenario
        .steps
        .last()
        .map_or(scenario.place, |step| step.place);
    play.end().await.map_err(|message| Failure {
        place: last,
        message: format!("at the end: {message}"),
    })
}

/// Boxed, because steps that are repeated hold steps.
fn steps<'a, P: Play>(
    play: &'a mut P,
    list: &'a [Step],
    after: &'a [Step],
) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>> {
    Box::pin(async move {
        for (at, step) in list.iter().enumerate() {
            // What comes later matters only where time passes, or more steps are inside.
            let looks_ahead = matches!(
                step.what,
                Action::Advance(_) | Action::Quiet(_) | Action::Repeat { .. }
            );
            let ahead = if looks_ahead {
                list[at + 1..].iter().chain(after)
            } else {
                [].iter().chain(&[])
            };
            let later: Vec<Step> = ahead.cloned().collect();
            match &step.what {
                Action::Expect(checks) => expect(play, step, checks).await?,
                Action::Note => {}
                Action::Repeat {
                    times,
                    steps: inner,
                } => {
                    for _ in 0..*times {
                        steps(play, inner, &later).await?;
                    }
                }
                action => play.step(action, &later).await.map_err(|message| Failure {
                    place: step.place,
                    message,
                })?,
            }
        }
        Ok(())
    })
}

async fn expect(play: &mut impl Play, step: &Step, checks: &[Check]) -> Result<(), Failure> {
    let mut place = None;
    let mut wrong = Vec::new();
    for check in checks {
        if let Err(message) = play.check(check).await {
            place.get_or_insert(check.place);
            wrong.push(message);
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure {
        place: place.unwrap_or(step.place),
        message: wrong.join("\n    "),
    })
}

/// `what: expected …, found …`, unless they are equal.
fn equal<T: PartialEq + std::fmt::Display>(what: &str, expected: &T, found: &T) -> Outcome {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}: expected {expected}, found {found}"))
}

/// A set of objects against patterns: each pattern has its object, and none is left.
fn same_objects(what: &str, expected: &[ObjectText], found: &[ObjectText]) -> Outcome {
    let fits = expected.len() == found.len()
        && expected
            .iter()
            .all(|pattern| found.iter().any(|object| pattern.matches(object)))
        && found
            .iter()
            .all(|object| expected.iter().any(|pattern| pattern.matches(object)));
    if fits {
        return Ok(());
    }
    let list = |objects: &[ObjectText]| {
        let mut texts: Vec<_> = objects.iter().map(ToString::to_string).collect();
        texts.sort();
        format!("{{{}}}", texts.join(", "))
    };
    Err(format!(
        "{what}: expected {}, found {}",
        list(expected),
        list(found)
    ))
}

/// The panics that scenarios ask for are no news.
fn silence_scripted_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
                .unwrap_or_default();
            if !text.starts_with("scripted") {
                usual(panic);
            }
        }));
    });
}
