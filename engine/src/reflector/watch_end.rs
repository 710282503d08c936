//! How it goes on after each kind of end of a watch.
use super::cycle::{Cycle, Next, Retry};
use super::open_watch::WatchLife;
use super::sink::DeltaSink;
use super::{Call, Fault};
use crate::source::{ListWatch, Recovery, SourceError, WatchOptions};
use std::time::Duration;

/// A watch that ends sooner, without progress, is very short: reopening it at once would spin.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// After so many watches in a row without any progress the source is asked for a list: it may have
/// forgotten the version without saying so.
const FRUITLESS_WATCHES: u32 = 10;

/// Within the window for internal errors a watch is opened once a second at the most.
const INTERNAL_ERROR_PACE: Duration = Duration::from_secs(1);

impl<S: ListWatch, K: DeltaSink<S::Object>> Cycle<S, K> {
    /// The ordinary end of a watch: go on at once, unless it ended at once without progress.
    pub(super) async fn ended(&mut self, life: WatchLife) -> Next<S::Object> {
        let lasted = self.now().since(life.opened_at);
        if life.moved || lasted >= VERY_SHORT || cfg!(informant_mutant = "very_short_watches_spin")
        {
            self.progressed();
            return Next::Watch(None);
        }
        if life.alive && self.fruitless_watches == 0 {
            // A sign of life, such as a bookmark that says nothing new: forgiven, once in a row.
            self.fruitless_watches = 1;
            return Next::Watch(None);
        }
        self.status.count(|metrics| metrics.very_short_watches += 1);
        self.fruitless(life.options, Fault::VeryShortWatch(lasted))
            .await
    }

    /// The watch could not be opened, or broke.
    pub(super) async fn failed(&mut self, life: WatchLife, fault: Fault) -> Next<S::Object> {
        self.status.count(|metrics| metrics.watch_failures += 1);
        if life.moved {
            self.progressed();
        }
        let recovery = match &fault {
            Fault::Source(SourceError::Transport(_)) | Fault::NoAnswer(_) => {
                // The version is as good as before: a broken connection costs no list.
                return self.fruitless(life.options, fault).await;
            }
            Fault::Source(error) => error.recovery(),
            _ => Recovery::BackOff,
        };
        let call = Call::Watch(life.options);
        match recovery {
            Recovery::Resume | Recovery::RetryLater => {
                self.back_off(call, fault, Retry::Watch).await;
                Next::Watch(None)
            }
            Recovery::InternalError
                if self.internal_errors.allows_retry(self.config.clock.now()) =>
            {
                let delay = INTERNAL_ERROR_PACE.saturating_sub(self.now().since(life.opened_at));
                self.pause(call, fault, Retry::Watch, delay).await;
                Next::Watch(None)
            }
            Recovery::TooLarge => {
                self.resume.mark_unavailable();
                self.back_off(call, fault, Retry::List).await;
                Next::List
            }
            Recovery::Relist | Recovery::InternalError | Recovery::Refused | Recovery::BackOff => {
                self.back_off(call, fault, Retry::List).await;
                Next::List
            }
        }
    }

    /// A watch without progress: wait, then watch again from the same version; after many in a row,
    /// list.
    async fn fruitless(&mut self, options: WatchOptions, fault: Fault) -> Next<S::Object> {
        self.fruitless_watches += 1;
        let (retry, next) = if self.fruitless_watches < FRUITLESS_WATCHES {
            (Retry::Watch, Next::Watch(None))
        } else {
            self.fruitless_watches = 0;
            (Retry::List, Next::List)
        };
        self.back_off(Call::Watch(options), fault, retry).await;
        next
    }
}
