//! For how long a watch that meets internal errors is retried before a relist.
use crate::clock::Timestamp;
use std::time::Duration;

/// A quiet time this long between two errors starts a new window.
const QUIET: Duration = Duration::from_secs(60);

/// The first error opens a window of fixed length; retries are allowed in it, its end included. A
/// window that was used up, or left quiet for a minute, is closed: the next error opens another.
#[derive(Debug)]
pub(super) struct RetryWindow {
    length: Duration,
    opened: Option<Timestamp>,
    last_error: Timestamp,
}

impl RetryWindow {
    /// A window of `length`; zero allows no retry at all.
    pub(super) fn new(length: Duration) -> Self {
        Self {
            length,
            opened: None,
            last_error: Timestamp::default(),
        }
    }

    /// An error happened now: may the watch be retried?
    pub(super) fn allows_retry(&mut self, now: Timestamp) -> bool {
        if self.length.is_zero() {
            return false;
        }
        if now.since(self.last_error) >= QUIET {
            self.opened = None;
        }
        self.last_error = now;
        let opened = *self.opened.get_or_insert(now);
        let allowed = now.since(opened) <= self.length;
        if !allowed {
            self.opened = None;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::new(Duration::from_secs(secs))
    }

    /// I-R10: 30 s of window and one error a second give 31 retries.
    #[test]
    fn i_r10_the_window_includes_its_end_and_closes_when_used_up() {
        let mut window = RetryWindow::new(Duration::from_secs(30));
        let start = 100;
        let allowed = (start..).take_while(|&secs| window.allows_retry(at(secs)));
        assert_eq!(allowed.count(), 31);
        assert!(window.allows_retry(at(start + 32)), "a new window");
    }

    #[test]
    fn i_r10_a_quiet_minute_opens_a_new_window() {
        let mut window = RetryWindow::new(Duration::from_secs(30));
        assert!((0..=8).all(|secs| window.allows_retry(at(secs))));
        let later = 8 + 60;
        assert!((later..=later + 30).all(|secs| window.allows_retry(at(secs))));
        assert!(!window.allows_retry(at(later + 31)));
    }

    #[test]
    fn i_r10_no_window_is_no_retry() {
        assert!(!RetryWindow::new(Duration::ZERO).allows_retry(at(1)));
    }
}
