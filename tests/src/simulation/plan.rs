//! What a run is made of: everything that is random is decided here, from the seed, so that a run
//! can be repeated with some of its steps left out.
use super::world::{KEYS, Selection, Split};
use informant::source::memory::{Corruption, Dialect, Disconnect, ExpiredWatch};
use informant::source::memory::{GoneReason, TooLargeText};
use std::fmt::Write;

/// A run: settings and steps.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

impl Plan {
    /// How many steps it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True when nothing happens but the start, the probes and the stop.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// How many of the steps are writes, faults, handlers that come or go: not just time.
    #[must_use]
    pub fn events(&self) -> usize {
        let idle = |step: &&Step| matches!(step, Step::Wait(_) | Step::Yield(_));
        self.steps.len() - self.steps.iter().filter(idle).count()
    }

    /// The settings that differ from the plainest ones, and the steps, a line each.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("  {:?}\n", self.setup);
        for step in &self.steps {
            let _infallible = writeln!(text, "  {step:?}");
        }
        text
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// Of the informer's own randomness.
    pub(crate) seed: u64,
    pub(crate) split: Split,
    pub(crate) selection: Selection,
    pub(crate) streaming: bool,
    pub(crate) streaming_tries: u32,
    pub(crate) page_size: Option<u32>,
    pub(crate) queue_bound: Option<usize>,
    /// Seconds.
    pub(crate) resync: Option<u64>,
    /// Seconds.
    pub(crate) internal_error_retry: u64,
    pub(crate) history: usize,
    pub(crate) bookmark_every: u64,
    pub(crate) version_step: u64,
    /// The source breaks its contract: frames get lost or out of order. The consistency check runs,
    /// and only the end is compared.
    pub(crate) lossy: bool,
    pub(crate) transform: bool,
    pub(crate) workers: u8,
}

/// How fast a handler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Instant,
    /// Each call takes up to so many milliseconds.
    Slow(u64),
    /// A stream, read with pauses of up to so many milliseconds.
    Stream(u64),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HandlerPlan {
    pub(crate) policy: usize,
    pub(crate) pace: Pace,
    /// One call in so many panics.
    pub(crate) panics: Option<u8>,
    /// Seconds; `None`: as the informer.
    pub(crate) resync: Option<u64>,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Expired,
    Gone,
    GoneByReason,
    Throttled,
    ThrottledFor(u64),
    Internal,
    StoreRead,
    TooLarge,
    Timeout,
    Forbidden,
    Unauthorized,
    NotFound,
    Transport,
    Refused,
    TimedOut,
    WrongKind,
    Decode,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    FailList(ErrorKind),
    FailWatch(ErrorKind),
    FailOpen(ErrorKind),
    Disconnect(Disconnect),
    Silence,
    HoldFrames,
    ReleaseFrames,
    Duplicate(u64),
    /// Lossy.
    Reorder(usize),
    /// Lossy.
    Drop(u64),
    /// Milliseconds.
    Delay(u64),
    Foreign,
    EmptyBookmark,
    OldBookmark,
    KeylessFrame,
    ResendDelete(usize),
    Corrupt(usize, Corruption),
    Mend(usize),
    Speak(Dialect),
    RefuseStreaming(bool),
    OmitMarkers(u32),
    BreakInitial(usize, Disconnect),
    ExpireTokens,
    /// Lists at "0" are answered with a state so many versions old.
    Lag(Option<u64>),
    Backup,
    /// To the last backup.
    Restore,
    /// The next lists at a version are answered by a replica that is behind.
    StaleLists(u8),
    /// The end marker of the next streaming list comes after so many further frames.
    LateMarker(u8),
    /// The next calls take so many milliseconds, before or after the source looks.
    SlowCalls(u8, u64, bool),
    /// The next call never ends.
    Hang,
    PanicInCall,
    PanicInStream,
}

impl Fault {
    /// The source breaks its contract with it.
    pub(crate) fn is_lossy(&self) -> bool {
        matches!(self, Self::Reorder(_) | Self::Drop(_))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Start,
    Put {
        key: usize,
        team: u8,
        refused: bool,
    },
    Delete(usize),
    Recreate(usize),
    SkipVersions(u64),
    /// Forget all but so many versions.
    Compact(u64),
    Bookmark,
    /// Milliseconds.
    Wait(u64),
    /// Let others run so many times.
    Yield(u8),
    /// The cache is held; what arrives is coalesced.
    Hold,
    Unhold,
    Join(HandlerPlan),
    /// Which one, and whether its end is waited for.
    Leave(usize, bool),
    AddIndex,
    /// Take a snapshot; the one before is looked at again.
    Look,
    Relist,
    /// The informer is stopped and another one started on the same source.
    Restart,
    Fault(Fault),
}

/// What kind of run it is.
#[derive(Clone, Copy)]
struct Mood {
    /// Faults among a thousand steps.
    faults: u32,
    /// Handlers that come or go, too.
    crowd: u32,
    keys: usize,
    longest_wait: u64,
    restores: bool,
    /// Objects that cannot be used.
    unusable: bool,
    handlers: bool,
}

/// The plan of a seed.
#[must_use]
pub fn plan(seed: u64) -> Plan {
    let mut rng = fastrand::Rng::with_seed(seed);
    let lossy = rng.u8(..8) == 0;
    let setup = setup(&mut rng, lossy);
    let crowded = rng.u8(..50) == 0;
    let sharded = matches!(setup.split, Split::Shards(_));
    let restores = rng.u8(..3) == 0 && !sharded;
    let mood = Mood {
        faults: pick(&mut rng, &[0, 60, 150, 300]),
        crowd: if crowded { 500 } else { 25 },
        keys: rng.usize(1..=KEYS),
        longest_wait: pick(&mut rng, &[20, 3_000, 40_000, 700_000]),
        restores,
        unusable: true,
        handlers: rng.u8(..4) > 0,
    };
    let count = if crowded { 300 } else { rng.usize(5..90) };
    let mut steps = Vec::new();
    for _ in 0..rng.usize(..4) {
        steps.push(Step::Join(handler(&mut rng)));
    }
    let start = rng.usize(..12);
    for at in 0..count {
        if at == start {
            steps.push(Step::Start);
        }
        steps.push(step(&mut rng, mood, &setup));
    }
    Plan { setup, steps }
}

/// A plan in which very many handlers come and go, and the informer is stopped in the midst of it.
#[must_use]
pub fn crowd(seed: u64, handlers: usize) -> Plan {
    let mut rng = fastrand::Rng::with_seed(seed);
    let setup = setup(&mut rng, false);
    let mood = Mood {
        faults: 20,
        crowd: 0,
        keys: KEYS,
        longest_wait: 500,
        restores: false,
        unusable: true,
        handlers: true,
    };
    let mut steps = vec![Step::Start];
    for at in 0..handlers {
        steps.push(Step::Join(handler(&mut rng)));
        if at > 30 {
            steps.push(Step::Leave(rng.usize(..64), rng.bool()));
        }
        for _ in 0..2 {
            steps.push(step(&mut rng, mood, &setup));
        }
        if at == handlers / 2 {
            steps.push(Step::Restart);
        }
    }
    Plan { setup, steps }
}

fn setup(rng: &mut fastrand::Rng, lossy: bool) -> Setup {
    let split = match rng.u8(..8) {
        _ if lossy => Split::Whole,
        0 => Split::Namespaces,
        1 => Split::Shards(rng.u32(2..4)),
        _ => Split::Whole,
    };
    Setup {
        seed: rng.u64(..),
        split,
        selection: match rng.u8(..6) {
            0 => Selection::Labels,
            1 => Selection::Fields,
            _ => Selection::Everything,
        },
        streaming: rng.bool(),
        streaming_tries: rng.u32(1..4),
        page_size: match rng.u8(..4) {
            0 => None,
            1 => Some(0),
            _ => Some(rng.u32(1..4)),
        },
        queue_bound: rng.bool().then(|| rng.usize(1..4)),
        resync: (rng.u8(..3) == 0).then(|| rng.u64(20..90)),
        internal_error_retry: pick(rng, &[0, 0, 30]),
        history: pick(rng, &[2, 8, 30, 1000]),
        bookmark_every: pick(rng, &[0, 1, 3, 20]),
        version_step: pick(rng, &[1, 1, 3]),
        lossy,
        transform: rng.u8(..3) == 0,
        workers: rng.u8(..3),
    }
}

fn handler(rng: &mut fastrand::Rng) -> HandlerPlan {
    HandlerPlan {
        policy: rng.usize(..5),
        pace: match rng.u8(..8) {
            0 => Pace::Slow(pick(rng, &[3, 300, 4000])),
            1 => Pace::Stream(pick(rng, &[0, 30, 2000])),
            _ => Pace::Instant,
        },
        panics: (rng.u8(..8) == 0).then(|| rng.u8(2..20)),
        resync: (rng.u8(..4) == 0).then(|| rng.u64(10..60)),
        seed: rng.u64(..),
    }
}

fn step(rng: &mut fastrand::Rng, mood: Mood, setup: &Setup) -> Step {
    let which = rng.u32(..1000);
    if which < mood.faults {
        return Step::Fault(fault(rng, mood, setup));
    }
    if rng.u32(..1000) < mood.crowd && mood.handlers {
        return if rng.bool() {
            Step::Join(handler(rng))
        } else {
            Step::Leave(rng.usize(..64), rng.bool())
        };
    }
    match rng.u32(..1000) {
        0..430 => Step::Put {
            key: rng.usize(..mood.keys),
            team: u8::from(rng.u8(..3) == 0),
            refused: setup.transform && mood.unusable && rng.u8(..10) == 0,
        },
        430..550 => Step::Delete(rng.usize(..mood.keys)),
        550..590 => Step::Recreate(rng.usize(..mood.keys)),
        590..600 => Step::SkipVersions(rng.u64(1..20)),
        600..620 => Step::Compact(rng.u64(..6)),
        620..640 => Step::Bookmark,
        640..800 => Step::Wait(rng.u64(..mood.longest_wait)),
        800..910 => Step::Yield(rng.u8(1..12)),
        910..930 => Step::Hold,
        930..955 => Step::Unhold,
        955..965 => Step::AddIndex,
        965..980 => Step::Look,
        980..992 => Step::Relist,
        992..996 => Step::Restart,
        _ => Step::Start,
    }
}

fn fault(rng: &mut fastrand::Rng, mood: Mood, setup: &Setup) -> Fault {
    if setup.lossy && rng.u8(..4) == 0 {
        return if rng.bool() {
            Fault::Reorder(rng.usize(2..6))
        } else {
            Fault::Drop(rng.u64(1..3))
        };
    }
    if mood.restores && rng.u8(..8) == 0 {
        return match rng.u8(..5) {
            0 | 1 => Fault::Backup,
            _ => Fault::Restore,
        };
    }
    // Where frames get lost, an object of unknown key may hide that.
    let corruption = |rng: &mut fastrand::Rng| {
        if rng.u8(..4) == 0 && !setup.lossy {
            Corruption::Everything
        } else {
            Corruption::Body
        }
    };
    match rng.u8(..32) {
        0 | 1 => Fault::FailList(error(rng)),
        2 | 3 => Fault::FailWatch(error(rng)),
        4 | 5 => Fault::FailOpen(error(rng)),
        6 => Fault::Disconnect(Disconnect::Clean),
        7 => Fault::Disconnect(Disconnect::Broken),
        8 => Fault::Silence,
        9 => Fault::HoldFrames,
        10 => Fault::ReleaseFrames,
        11 => Fault::Duplicate(rng.u64(1..5)),
        12 => Fault::Delay(rng.u64(..5000)),
        13 => Fault::Foreign,
        14 => Fault::EmptyBookmark,
        15 => Fault::KeylessFrame,
        16 | 17 => Fault::ResendDelete(rng.usize(..mood.keys)),
        18 if mood.unusable => Fault::Corrupt(rng.usize(..mood.keys), corruption(rng)),
        18 | 19 => Fault::Mend(rng.usize(..mood.keys)),
        20 => Fault::Speak(dialect(rng)),
        21 => Fault::RefuseStreaming(rng.bool()),
        22 => Fault::OmitMarkers(rng.u32(..3)),
        23 => Fault::BreakInitial(
            rng.usize(..4),
            if rng.bool() {
                Disconnect::Clean
            } else {
                Disconnect::Broken
            },
        ),
        24 => Fault::ExpireTokens,
        25 => Fault::Lag(rng.bool().then(|| rng.u64(1..10))),
        26 => Fault::StaleLists(rng.u8(1..3)),
        27 => Fault::LateMarker(rng.u8(1..4)),
        28 => Fault::SlowCalls(rng.u8(1..4), rng.u64(1..4000), rng.bool()),
        29 => Fault::Hang,
        30 => Fault::PanicInCall,
        _ if rng.bool() => Fault::OldBookmark,
        _ => Fault::PanicInStream,
    }
}

fn error(rng: &mut fastrand::Rng) -> ErrorKind {
    use ErrorKind::{
        Decode, Expired, Forbidden, Gone, GoneByReason, Internal, NotFound, Refused, StoreRead,
        Throttled, ThrottledFor, TimedOut, Timeout, TooLarge, Transport, Unauthorized, WrongKind,
    };
    pick(
        rng,
        &[
            Expired,
            Gone,
            GoneByReason,
            Throttled,
            ThrottledFor(7),
            Internal,
            StoreRead,
            TooLarge,
            Timeout,
            Forbidden,
            Unauthorized,
            NotFound,
            Transport,
            Refused,
            TimedOut,
            WrongKind,
            Decode,
        ],
    )
}

fn pick<T: Copy>(rng: &mut fastrand::Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

fn dialect(rng: &mut fastrand::Rng) -> Dialect {
    Dialect {
        expired_watch: if rng.bool() {
            ExpiredWatch::Frame
        } else {
            ExpiredWatch::Call
        },
        reason: if rng.bool() {
            GoneReason::Expired
        } else {
            GoneReason::Gone
        },
        too_large: match rng.u8(..3) {
            0 => TooLargeText::Cause,
            1 => TooLargeText::CauseMessage,
            _ => TooLargeText::Message,
        },
    }
}
