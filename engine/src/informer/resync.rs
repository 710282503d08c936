//! When which handler is told of everything again.
//!
//! There is one tick per informer, on a fixed grid from its start. At a tick, every handler whose
//! period has passed since its last resync is due, and the list of these travels with the resync
//! through the queue. The rules are client-go's:
//! - The tick is the shortest of the informer's default and the periods asked for before the start.
//! - A period below [`MIN_RESYNC_PERIOD`] is raised to that.
//! - After the start the tick is fixed: a shorter period is raised to it; where there is no tick,
//!   there is no resync. What became of a request can be read from the registration.
use crate::Timestamp;
use crate::delta::HandlerId;
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest resync period; shorter ones are raised to it.
pub const MIN_RESYNC_PERIOD: Duration = Duration::from_secs(1);

/// How often a handler wants to be told of every object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Resync {
    /// As the informer's default says.
    #[default]
    Default,
    /// Never.
    Never,
    /// At the ticks after this long since the last one.
    Every(Duration),
}

/// See the [module](self).
pub(crate) struct ResyncSchedule {
    default: Option<Duration>,
    handlers: BTreeMap<HandlerId, Entry>,
    running: Option<Running>,
}

struct Entry {
    period: Option<Duration>,
    next: Timestamp,
}

#[derive(Clone, Copy)]
struct Running {
    tick: Option<Duration>,
    next_tick: Timestamp,
}

impl ResyncSchedule {
    pub(crate) fn new(default: Option<Duration>) -> Self {
        Self {
            default: default.and_then(raised),
            handlers: BTreeMap::new(),
            running: None,
        }
    }

    /// Take up a handler. Returns its effective period.
    pub(crate) fn add(
        &mut self,
        id: HandlerId,
        wanted: Resync,
        now: Timestamp,
    ) -> Option<Duration> {
        let period = match wanted {
            Resync::Default => self.default,
            Resync::Never => None,
            Resync::Every(period) => raised(period),
        };
        let period = match self.running {
            None => period,
            Some(Running { tick, .. }) => period.and_then(|p| tick.map(|tick| p.max(tick))),
        };
        let next = period.map_or(now, |period| now + period);
        self.handlers.insert(id, Entry { period, next });
        period
    }

    pub(crate) fn remove(&mut self, id: HandlerId) {
        self.handlers.remove(&id);
    }

    /// Fix the tick; periods count from now.
    pub(crate) fn start(&mut self, now: Timestamp) {
        let periods = self.handlers.values().filter_map(|entry| entry.period);
        let tick = periods.chain(self.default).min();
        for entry in self.handlers.values_mut() {
            entry.next = entry.period.map_or(now, |period| now + period);
        }
        self.running = Some(Running {
            tick,
            next_tick: now + tick.unwrap_or_default(),
        });
    }

    /// The shortest period that is served, once started.
    pub(crate) fn tick(&self) -> Option<Duration> {
        self.running.and_then(|running| running.tick)
    }

    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        self.running
            .and_then(|running| running.tick.map(|_| running.next_tick))
    }

    /// Who is due at the tick that has come, if one has. Ticks that were slept through are one.
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<HandlerId> {
        let Some(Running {
            tick: Some(tick),
            next_tick,
        }) = self.running
        else {
            return Vec::new();
        };
        if now < next_tick {
            return Vec::new();
        }
        // The last tick of the grid that is not after now: lateness does not add up.
        let mut at = next_tick;
        while at + tick <= now {
            at = at + tick;
        }
        self.running = Some(Running {
            tick: Some(tick),
            next_tick: at + tick,
        });
        let mut due = Vec::new();
        for (id, entry) in &mut self.handlers {
            if let Some(period) = entry.period
                && entry.next <= at
            {
                entry.next = at + period;
                due.push(*id);
            }
        }
        due
    }
}

/// Zero means never, anything else is raised to the minimum.
fn raised(period: Duration) -> Option<Duration> {
    (!period.is_zero()).then(|| period.max(MIN_RESYNC_PERIOD))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::new(Duration::from_secs(secs))
    }

    fn due_times(schedule: &mut ResyncSchedule, until: u64) -> Vec<(u64, Vec<u64>)> {
        (0..=until)
            .map(|s| (s, schedule.due(at(s)).into_iter().map(|id| id.0).collect()))
            .filter(|(_, ids): &(u64, Vec<u64>)| !ids.is_empty())
            .collect()
    }

    /// I-S7: at multiples of the tick, once the handler's own period has passed.
    #[test]
    fn each_handler_is_due_at_its_own_period() {
        let mut schedule = ResyncSchedule::new(Some(secs(1)));
        schedule.add(HandlerId(1), Resync::Every(secs(2)), at(0));
        schedule.add(HandlerId(2), Resync::Every(secs(3)), at(0));
        schedule.add(HandlerId(3), Resync::Never, at(0));
        schedule.start(at(0));
        assert_eq!(
            due_times(&mut schedule, 6),
            [(2, vec![1]), (3, vec![2]), (4, vec![1]), (6, vec![1, 2])]
        );
    }

    #[test]
    fn a_period_is_served_at_the_first_tick_after_it() {
        let mut schedule = ResyncSchedule::new(None);
        schedule.add(HandlerId(1), Resync::Every(secs(2)), at(0));
        schedule.add(HandlerId(2), Resync::Every(secs(3)), at(0));
        schedule.start(at(0));
        assert_eq!(
            due_times(&mut schedule, 8),
            [(2, vec![1]), (4, vec![1, 2]), (6, vec![1]), (8, vec![1, 2])]
        );
    }

    /// I-S8: before the start a shorter period shortens the tick; afterwards it is raised to it.
    #[test]
    fn c079_a_period_asked_for_after_the_start_is_raised_visibly() {
        let mut schedule = ResyncSchedule::new(Some(secs(36_000)));
        assert_eq!(
            schedule.add(HandlerId(1), Resync::Every(secs(300)), at(0)),
            Some(secs(300))
        );
        assert_eq!(
            schedule.add(HandlerId(2), Resync::Default, at(0)),
            Some(secs(36_000)),
            "others keep their own"
        );
        schedule.start(at(0));
        assert_eq!(schedule.tick(), Some(secs(300)));

        let mut schedule = ResyncSchedule::new(Some(secs(36_000)));
        schedule.start(at(0));
        assert_eq!(
            schedule.add(HandlerId(1), Resync::Every(secs(300)), at(0)),
            Some(secs(36_000))
        );

        let mut schedule = ResyncSchedule::new(None);
        assert_eq!(
            schedule.add(
                HandlerId(1),
                Resync::Every(Duration::from_millis(10)),
                at(0)
            ),
            Some(MIN_RESYNC_PERIOD)
        );
    }

    #[test]
    fn c078_an_informer_without_resync_serves_early_requests_and_says_no_to_late_ones() {
        let mut schedule = ResyncSchedule::new(None);
        schedule.add(HandlerId(1), Resync::Every(secs(5)), at(0));
        schedule.add(HandlerId(2), Resync::Default, at(0));
        schedule.start(at(0));
        assert_eq!(due_times(&mut schedule, 10), [(5, vec![1]), (10, vec![1])]);

        let mut schedule = ResyncSchedule::new(None);
        schedule.start(at(0));
        assert_eq!(
            schedule.add(HandlerId(1), Resync::Every(secs(5)), at(0)),
            None
        );
        assert_eq!(schedule.next_tick(), None);
    }

    /// I-R16: each tick arms the next one, none overlap, and each asks anew who is due.
    #[test]
    fn i_r16_each_tick_arms_the_next_and_asks_anew_who_is_due() {
        let mut schedule = ResyncSchedule::new(Some(secs(2)));
        schedule.add(HandlerId(1), Resync::Default, at(0));
        schedule.start(at(0));
        assert_eq!(schedule.next_tick(), Some(at(2)));
        assert_eq!(schedule.due(at(2)), [HandlerId(1)]);
        assert_eq!(schedule.due(at(2)), [], "the tick was served");
        assert_eq!(schedule.next_tick(), Some(at(4)));
        schedule.remove(HandlerId(1));
        schedule.add(HandlerId(2), Resync::Default, at(2));
        assert_eq!(schedule.due(at(4)), [HandlerId(2)]);
        assert_eq!(schedule.next_tick(), Some(at(6)));
    }

    #[test]
    fn ticks_slept_through_are_one() {
        let mut schedule = ResyncSchedule::new(Some(secs(2)));
        schedule.add(HandlerId(1), Resync::Default, at(0));
        schedule.start(at(0));
        assert_eq!(schedule.due(at(7)), [HandlerId(1)]);
        assert_eq!(schedule.next_tick(), Some(at(8)));
        assert_eq!(schedule.due(at(7)), []);
    }
}
