//! What an expectation says, and how it is made wrong.
use super::notation::{CallPattern, Count, DeltaPattern, Item, ObjectText, RequestPattern};
use super::sequence::Order;
use super::trouble::Place;
use std::time::Duration;

/// One expectation.
#[derive(Clone, Debug)]
pub struct Check {
    /// Where it is written.
    pub place: Place,
    /// What it says.
    pub what: Claim,
}

/// What an expectation says.
#[derive(Clone, Debug)]
pub enum Claim {
    /// The calls of a handler since this was last asked.
    Calls {
        /// Which handler; all of them, without one.
        handler: Option<String>,
        /// What they shall be.
        calls: Vec<Item>,
        /// In which order.
        order: Order,
    },
    /// How many calls a handler got since this was last asked.
    CallCount {
        /// Which handler; all of them, without one.
        handler: Option<String>,
        /// How many.
        count: Count,
    },
    /// The requests since this was last asked.
    Requests {
        /// Of which source; all of them, without one.
        source: Option<String>,
        /// What they shall be, with the time at which they shall come.
        requests: Vec<(RequestPattern, Option<Duration>)>,
    },
    /// How many requests came since this was last asked.
    RequestCount {
        /// Those that are like this; all, without one.
        like: Option<RequestPattern>,
        /// How many.
        count: Count,
    },
    /// The times between the requests of one sort since the start.
    Gaps {
        /// Between which requests.
        like: RequestPattern,
        /// What they shall be.
        gaps: Vec<Gap>,
    },
    /// What the error hook was told since this was last asked.
    Errors(Vec<String>),
    /// How often it was told.
    ErrorCount(Count),
    /// What is stored: exactly this.
    Store {
        /// Of which informer (factories only).
        of: Option<String>,
        /// The objects.
        objects: Vec<ObjectText>,
    },
    /// These are stored, perhaps among others.
    Stored(Vec<ObjectText>),
    /// These are not stored.
    NotStored(Vec<ObjectText>),
    /// How many objects are stored.
    StoreSize(Count),
    /// What an index gives for a value: exactly these objects.
    Index {
        /// The index.
        index: String,
        /// The value.
        value: String,
        /// The objects.
        objects: Vec<ObjectText>,
    },
    /// Asking this index is an error, or is none.
    NoIndex {
        /// The index.
        index: String,
        /// It is an error.
        error: bool,
    },
    /// The values of an index.
    IndexValues {
        /// The index.
        index: String,
        /// Its values.
        values: Vec<String>,
    },
    /// The objects on which the function of an index failed.
    Poisoned {
        /// The index.
        index: String,
        /// The objects.
        objects: Vec<ObjectText>,
    },
    /// What stands in quarantine: the failed states.
    Quarantine(Vec<ObjectText>),
    /// Something is known to be missing or stale, or nothing is.
    Complete(bool),
    /// The version that the cache shows.
    Watermark {
        /// Of which source.
        source: Option<String>,
        /// The version.
        version: String,
    },
    /// The version from which the reflector would go on.
    LastSeen {
        /// Of which source.
        source: Option<String>,
        /// The version.
        version: String,
    },
    /// The cache is synced.
    Synced {
        /// Which informer (factories only).
        of: Option<String>,
        /// Or is not.
        synced: bool,
    },
    /// A handler is synced.
    HandlerSynced {
        /// Which one.
        handler: String,
        /// Or is not.
        synced: bool,
    },
    /// What a handler has been told adds up to this.
    View {
        /// Which one.
        handler: Option<String>,
        /// The objects.
        objects: Vec<ObjectText>,
    },
    /// How a wait stands, or ended.
    Wait {
        /// Its name.
        name: String,
        /// `pending`, `ok`, or why not.
        outcome: String,
    },
    /// What the reflector is doing.
    State {
        /// Of which source.
        source: Option<String>,
        /// `watching`, `listing`, `streaming`, `backing_off`, `stopped` or `initialising`.
        state: String,
    },
    /// It runs.
    Running(bool),
    /// A number of the status of a handler.
    HandlerNumber {
        /// Which handler.
        handler: String,
        /// Which number.
        number: String,
        /// What it shall be.
        count: Count,
    },
    /// How often a handler is told of everything; `None`: never.
    ResyncPeriod {
        /// Which handler.
        handler: String,
        /// The period.
        period: Option<Duration>,
    },
    /// Keys that wait in the queue.
    QueueDepth(Count),
    /// What waits for one key.
    Pending {
        /// The key.
        key: String,
        /// One of these sequences.
        choices: Vec<Vec<DeltaPattern>>,
    },
    /// Streams that are open.
    OpenWatches(Count),
    /// How often the source was reset.
    Epoch(Count),
    /// How often the transform ran.
    TransformCalls(Count),
    /// What a held snapshot shows.
    Snapshot {
        /// Its name.
        name: String,
        /// The objects.
        objects: Vec<ObjectText>,
    },
    /// What a look-up by key gives.
    Lookup {
        /// The key as the program would write it.
        key: String,
        /// What it gives.
        object: Option<ObjectText>,
    },
    /// Whether a text is a key.
    Key {
        /// The text.
        text: String,
        /// It is one.
        valid: bool,
    },
    /// Two informers of a factory are one, or not.
    Same {
        /// Their names.
        names: Vec<String>,
        /// They are one.
        same: bool,
    },
    /// How many informers the factory has.
    Informers(Count),
    /// Keys of the work queue that are ready.
    Len(Count),
    /// Keys of the work queue that wait for their time.
    Delayed(Count),
    /// Keys in the hands of workers.
    InFlight(Count),
    /// What a worker has, or waits for.
    Worker {
        /// Its name.
        name: String,
        /// A key, `waiting`, or `shutdown`.
        state: String,
    },
    /// Failures that are remembered of a key.
    Retries {
        /// The key.
        key: String,
        /// How many.
        count: Count,
    },
    /// Entries that became ready.
    Adds(Count),
    /// The time is this.
    Now(Duration),
}

/// A time between two requests.
#[derive(Clone, Debug)]
pub enum Gap {
    /// Exactly (to a millisecond).
    Exactly(Duration),
    /// Within these.
    Between(Duration, Duration),
    /// At least as long as the one before.
    Growing,
    /// Any.
    Any,
}

const BOGUS: &str = "ns/self-check";

fn bogus() -> ObjectText {
    ObjectText {
        key: BOGUS.to_owned(),
        version: Some("4711".to_owned()),
        ..ObjectText::default()
    }
}

impl Claim {
    /// Make it say something that is wrong whenever it was right: in place of its last part, or
    /// beside the others, there is something that cannot be.
    pub fn flip(&mut self) {
        match self {
            Self::Calls { calls, .. } => {
                let call = CallPattern::Add {
                    object: bogus(),
                    initial: false,
                };
                match calls.last_mut() {
                    Some(last @ Item::One(_)) => *last = Item::One(call),
                    _ => calls.push(Item::One(call)),
                }
            }
            Self::Requests { requests, .. } => {
                let wrong = RequestPattern::parse(Place::default(), "LIST(rv=self-check)");
                if let Ok((wrong, _)) = wrong {
                    requests.pop();
                    requests.push((wrong, None));
                }
            }
            Self::Gaps { gaps, .. } => {
                gaps.pop();
                gaps.push(Gap::Exactly(Duration::from_secs(4711)));
            }
            Self::Errors(errors) => {
                errors.pop();
                errors.push("self-check".to_owned());
            }
            Self::Store { objects, .. }
            | Self::Stored(objects)
            | Self::Index { objects, .. }
            | Self::Poisoned { objects, .. }
            | Self::Quarantine(objects)
            | Self::View { objects, .. }
            | Self::Snapshot { objects, .. } => {
                objects.pop();
                objects.push(bogus());
            }
            Self::NotStored(objects) => *self = Self::Stored(std::mem::take(objects)),
            Self::IndexValues { values, .. } => {
                values.pop();
                values.push("self-check".to_owned());
            }
            Self::CallCount { count, .. }
            | Self::RequestCount { count, .. }
            | Self::ErrorCount(count)
            | Self::StoreSize(count)
            | Self::HandlerNumber { count, .. }
            | Self::QueueDepth(count)
            | Self::OpenWatches(count)
            | Self::Epoch(count)
            | Self::TransformCalls(count)
            | Self::Informers(count)
            | Self::Len(count)
            | Self::Delayed(count)
            | Self::InFlight(count)
            | Self::Retries { count, .. }
            | Self::Adds(count) => count.negate(),
            Self::Complete(value)
            | Self::Synced { synced: value, .. }
            | Self::HandlerSynced { synced: value, .. }
            | Self::Running(value)
            | Self::Same { same: value, .. }
            | Self::NoIndex { error: value, .. }
            | Self::Key { valid: value, .. } => *value = !*value,
            Self::Watermark { version, .. } | Self::LastSeen { version, .. } => {
                version.push_str("-self-check");
            }
            Self::Wait { outcome, .. } => outcome.push_str("-self-check"),
            Self::State { state, .. } | Self::Worker { state, .. } => state.push_str("-self-check"),
            Self::ResyncPeriod { period, .. } => *period = Some(Duration::from_micros(1)),
            Self::Pending { choices, .. } => {
                let wrong = DeltaPattern::parse(Place::default(), "Added(self-check@4711)");
                *choices = wrong.into_iter().map(|delta| vec![delta]).collect();
            }
            Self::Lookup { object, .. } => *object = Some(bogus()),
            Self::Now(time) => *time += Duration::from_micros(1),
        }
    }
}
