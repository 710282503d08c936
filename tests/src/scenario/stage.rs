//! Where a scenario is played: a clock that moves when told, and the transports.
use super::action::{Action, Step};
use super::notation::{Answer, Exchange, Frame, Kind, Request, RequestPattern, show_duration};
use super::transport::{Log, Offer, Transport};
use informant::{Clock, ManualClock, SharedClock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a step waits for a request, on the scenario's clock: longer than any backoff.
const PATIENCE: Duration = Duration::from_secs(61);

/// What went wrong in a step.
pub type Outcome = Result<(), String>;

/// The clock and the transports.
pub struct Stage {
    /// The clock of everything.
    pub clock: ManualClock,
    /// The transports, in the order of their sources.
    pub transports: Vec<Transport>,
    /// All requests.
    pub log: Log,
    /// Counts what happens one after the other.
    pub round: Arc<AtomicUsize>,
    patience: Duration,
}

impl Stage {
    /// A stage at the clock's origin.
    pub fn new(patience: Option<Duration>) -> Self {
        Self {
            clock: ManualClock::new(),
            transports: Vec::new(),
            log: Log::default(),
            round: Arc::default(),
            patience: patience.unwrap_or(PATIENCE),
        }
    }

    /// The clock as the engine takes it.
    pub fn shared_clock(&self) -> SharedClock {
        Arc::new(self.clock.clone())
    }

    /// Let everything run that can run while the clock stands.
    pub async fn settle(&self) {
        // Tokio's own time is paused and moves only when every task waits.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// Let this much time pass, running whatever becomes due on the way.
    pub async fn pass(&self, time: Duration) {
        let target = self.clock.now() + time;
        self.settle().await;
        while let Some(deadline) = self.clock.next_deadline()
            && deadline <= target
        {
            self.clock.advance_to(deadline);
            self.settle().await;
        }
        self.clock.advance_to(target);
        self.settle().await;
    }

    /// Let time pass until `done`, from one thing that is due to the next, but no longer than this.
    pub async fn pass_until(&self, most: Duration, mut done: impl FnMut() -> bool) -> bool {
        let limit = self.clock.now() + most;
        loop {
            self.settle().await;
            if done() {
                return true;
            }
            match self.clock.next_deadline() {
                Some(deadline) if deadline <= limit => self.clock.advance_to(deadline),
                _ => {
                    self.clock.advance_to(limit);
                    self.settle().await;
                    return done();
                }
            }
        }
    }

    /// The transport of a source; without a name, the only one.
    ///
    /// # Errors
    /// When there is none of the name, or several.
    pub fn transport(&self, source: Option<&str>) -> Result<&Transport, String> {
        let names = || {
            let names: Vec<_> = self.transports.iter().map(Transport::name).collect();
            names.join(", ")
        };
        match (source, self.transports.as_slice()) {
            (None, [only]) => Ok(only),
            (None, _) => Err(format!(
                "which source is meant? There are: {}. Write {{name: request or frames}}",
                names()
            )),
            (Some(name), transports) => transports
                .iter()
                .find(|transport| transport.name() == name)
                .ok_or_else(|| format!("there is no source {name:?}; there are: {}", names())),
        }
    }

    /// A request shall come, and is answered.
    ///
    /// # Errors
    /// When none comes, or another.
    pub async fn exchange(&self, exchange: &Exchange) -> Outcome {
        for time in 0..exchange.times {
            let of = if exchange.times > 1 {
                format!(" ({} of {})", time + 1, exchange.times)
            } else {
                String::new()
            };
            self.exchange_once(exchange)
                .await
                .map_err(|told| format!("{told}{of}"))?;
        }
        Ok(())
    }

    async fn exchange_once(&self, exchange: &Exchange) -> Outcome {
        let transport = self.transport(exchange.source.as_deref())?;
        self.settle().await;
        match transport.offer(exchange) {
            Offer::Taken => {}
            Offer::Mismatch(told) => return Err(told),
            Offer::Ready => {
                let taken = self
                    .pass_until(self.patience, || !transport.has_planned())
                    .await;
                self.faults()?;
                if !taken {
                    return Err(format!(
                        "expected request: {}\n    none came within {}",
                        exchange.request,
                        show_duration(self.patience)
                    ));
                }
            }
        }
        self.settle().await;
        if let Answer::Watch(watch) = &exchange.answer {
            if exchange.delay > Duration::ZERO {
                self.pass(exchange.delay).await;
            }
            self.send(transport, &watch.frames).await?;
        }
        self.faults()
    }

    /// Let time pass until everything in the script of the server has come to pass.
    ///
    /// # Errors
    /// When something in it does not.
    pub async fn play_server(&self) -> Outcome {
        let planned = || {
            self.transports
                .iter()
                .map(Transport::planned)
                .sum::<usize>()
        };
        let mut left = planned();
        while left > 0 {
            if !self.pass_until(self.patience, || planned() < left).await {
                self.faults()?;
                return Err(format!(
                    "{left} of the requests in the script of the server did not come within {}",
                    show_duration(self.patience)
                ));
            }
            left = planned();
        }
        self.faults()
    }

    /// The open watch says this, one frame after the other.
    ///
    /// # Errors
    /// When none is open.
    pub async fn frames(&self, source: Option<&str>, frames: &[Frame]) -> Outcome {
        let transport = self.transport(source)?;
        self.settle().await;
        transport.open_waiting_watch();
        self.settle().await;
        self.send(transport, frames).await
    }

    async fn send(&self, transport: &Transport, frames: &[Frame]) -> Outcome {
        for frame in frames {
            if let Frame::Wait(time) = frame {
                self.pass(*time).await;
                continue;
            }
            transport.send(frame)?;
            self.settle().await;
        }
        Ok(())
    }

    /// Before time passes: watches that no later step asks about are opened, and stay idle.
    pub fn open_idle_watches(&self, later: &[Step]) {
        for transport in &self.transports {
            let next = later.iter().find_map(|step| match &step.what {
                Action::Exchange(exchange) => {
                    let here = exchange
                        .source
                        .as_deref()
                        .is_none_or(|source| source == transport.name());
                    here.then_some(exchange.request.kind == Kind::Watch)
                }
                Action::Frames { source, .. } => {
                    let here = source
                        .as_deref()
                        .is_none_or(|source| source == transport.name());
                    here.then_some(false)
                }
                _ => None,
            });
            if next != Some(true) {
                transport.open_waiting_watch();
            }
        }
    }

    /// What went against the script so far.
    ///
    /// # Errors
    /// When something did.
    pub fn faults(&self) -> Outcome {
        let faults: Vec<_> = self
            .transports
            .iter()
            .flat_map(Transport::take_faults)
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults.join("\n    "))
        }
    }

    /// The end of the script: no list may be left without an answer.
    ///
    /// # Errors
    /// When one is.
    pub fn nothing_left(&self) -> Outcome {
        self.faults()?;
        for transport in &self.transports {
            if let Some(request) = transport.waiting_list() {
                return Err(format!(
                    "the engine asked for {request}, which no step expects"
                ));
            }
            if transport.has_planned() {
                return Err("not everything in the script of the server came to pass".to_owned());
            }
        }
        Ok(())
    }
}

/// Requests since the last look, compared.
///
/// # Errors
/// When they are not as expected.
pub fn compare_requests(
    expected: &[(RequestPattern, Option<Duration>)],
    came: &[Request],
) -> Outcome {
    let fits = expected.len() == came.len()
        && expected.iter().zip(came).all(|((pattern, at), request)| {
            pattern.matches(request) && at.is_none_or(|at| request.at == Timestamp::new(at))
        });
    if fits {
        return Ok(());
    }
    let list = |texts: Vec<String>| match texts.as_slice() {
        [] => " none".to_owned(),
        texts => format!("\n      {}", texts.join("\n      ")),
    };
    let expected = list(
        expected
            .iter()
            .map(|(pattern, at)| match at {
                Some(at) => format!("{pattern} at {}", show_duration(*at)),
                None => pattern.to_string(),
            })
            .collect(),
    );
    let came = list(
        came.iter()
            .map(|request| format!("{request} at {}", show_duration(request.at.since_origin())))
            .collect(),
    );
    Err(format!(
        "expected requests:{expected}\n    requests that came:{came}"
    ))
}
