//! What a step does.
use super::claim::Check;
use super::notation::{Exchange, Frame, QueueVerb};
use super::spec::{HandlerSpec, IndexSpec, TransformSpec};
use super::trouble::Place;
use super::work_verb::WorkVerb;
use informant::source::Selectors;
use std::time::Duration;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Where it is written.
    pub place: Place,
    /// What it does.
    pub what: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// The next request shall be this, and is answered so.
    Exchange(Exchange),
    /// The open watch says this.
    Frames {
        /// Of which source.
        source: Option<String>,
        /// What.
        frames: Vec<Frame>,
    },
    /// From now on, requests that no step asks for are answered so; without an exchange: not any more.
    Forever(Vec<Exchange>),
    /// Time passes.
    Advance(Duration),
    /// Time passes, and no request comes.
    Quiet(Duration),
    /// Time passes until the script of the server has been played.
    PlayServer,
    /// Expectations.
    Expect(Vec<Check>),
    /// The informer (or all of the factory's) is started.
    Start {
        /// What the call gives.
        gives: String,
    },
    /// It is stopped.
    Stop {
        /// The call ends while the clock stands.
        at_once: bool,
    },
    /// The last handles are dropped.
    Drop,
    /// A handler is added.
    AddHandler {
        /// Which.
        handler: HandlerSpec,
        /// What the call gives.
        gives: String,
    },
    /// A handler is removed.
    RemoveHandler(String),
    /// A handler blocks from its next call on.
    Block(String),
    /// It does no more.
    Release(String),
    /// Nothing is applied any more.
    Pause,
    /// Things are applied again.
    Resume,
    /// A relist is asked for.
    Relist(Option<String>),
    /// An index is added.
    AddIndex {
        /// Which.
        index: IndexSpec,
        /// What the call gives.
        gives: String,
    },
    /// A snapshot is taken, under a name.
    Snapshot(String),
    /// A wait for sync or for a version begins.
    Wait(WaitSpec),
    /// An input of the queue.
    Queue(QueueVerb),
    /// The consumer takes and applies everything that is pending.
    Drain,
    /// The queue is closed.
    Close,
    /// Something is done with the work queue.
    Work(WorkVerb),
    /// An informer is asked for.
    Get(GetSpec),
    /// An informer is taken out of the factory.
    Remove(String),
    /// These steps, several times.
    Repeat {
        /// How often.
        times: usize,
        /// Which.
        steps: Vec<Step>,
    },
    /// A remark.
    Note,
}

/// A wait that goes on while other steps run.
#[derive(Clone, Debug)]
pub struct WaitSpec {
    /// For this version; for sync, without one.
    pub version: Option<String>,
    /// No longer than this.
    pub timeout: Option<Duration>,
    /// Of this informer of a factory; of all of them, without one.
    pub of: Option<String>,
    /// Its name, when it goes on beside other steps.
    pub name: Option<String>,
    /// How it shall end, when it is waited for here.
    pub gives: String,
}

/// A request to a factory.
#[derive(Clone, Debug)]
pub struct GetSpec {
    /// Of which kind.
    pub kind: String,
    /// Under which name it is known here.
    pub name: String,
    /// Which part.
    pub selectors: Selectors,
    /// Its own transform.
    pub transform: Option<TransformSpec>,
}
