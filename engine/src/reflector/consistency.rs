//! An opt-in check for production: is the cache what the source says it is?
use super::digest::Digest;
use super::{Fault, ReflectorHandle};
use crate::clock::SharedClock;
use crate::indexer::{Applied, Indexer, Snapshot, View, panic_message};
use crate::object::{Meta, ObjectKey, ResourceVersion};
use crate::source::{BadObject, ListOptions, ListWatch, Selectors, SourceError, VersionMatch};
use crate::stop::StopToken;
use crate::sync::Mutex;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// The settings of a [`ConsistencyCheck`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConsistencyConfig {
    /// The clock of the waits.
    pub clock: SharedClock,
    /// Of the jitter: each wait is drawn from `[period, 2 period)`.
    pub seed: u64,
    /// How long to wait between two comparisons. Default: 10 minutes.
    pub period: Duration,
    /// Objects a page of the metadata list. Default: 500.
    pub page_size: u32,
    /// How long a page may take. Default: 2 minutes.
    pub call_timeout: Duration,
    /// How many differing objects are named. Default: 10.
    pub named: usize,
    /// The same as the reflector's.
    pub selectors: Selectors,
}

impl ConsistencyConfig {
    /// The defaults, on `clock`.
    #[must_use]
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            seed: fastrand::u64(..),
            period: Duration::from_secs(600),
            page_size: 500,
            call_timeout: Duration::from_secs(120),
            named: 10,
            selectors: Selectors::default(),
        }
    }
}

/// The digest of a cache at its last publication, written by whoever applies batches.
#[derive(Clone, Debug, Default)]
pub struct DigestFeed(Arc<Mutex<(u64, Digest)>>);

impl DigestFeed {
    /// A feed for an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The batch `applied` was published as the version with this [`View::sequence`].
    pub fn follow<T>(&self, applied: &Applied<T>, sequence: u64) {
        let mut last = self.0.lock();
        last.0 = sequence;
        last.1.apply(applied);
    }

    /// The same objects were published again as the version with this [`View::sequence`]: an index
    /// was added or removed.
    pub fn republished(&self, sequence: u64) {
        self.0.lock().0 = sequence;
    }

    /// The digest of exactly this view, unless the feed is ahead of it or behind.
    #[must_use]
    pub fn digest_of<T>(&self, view: &View<T>) -> Option<Digest> {
        let (sequence, digest) = *self.0.lock();
        (sequence == view.sequence()).then_some(digest)
    }
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The cache is what the source was at this version, but for its quarantine.
    Equal {
        /// The version that was compared.
        resource_version: ResourceVersion,
        /// How many objects the source has.
        objects: u64,
    },
    /// It is not.
    Different(Differences),
    /// The source does not remember the cache's version, or the cache has none: ask again later.
    NotComparable,
}

/// How a cache differs from its source.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Differences {
    /// The version that was compared.
    pub resource_version: ResourceVersion,
    /// How many objects of the source the cache does not have.
    pub missing: usize,
    /// How many objects of the cache the source does not have.
    pub extra: usize,
    /// How many objects are of another version, or another life of the key.
    pub other_version: usize,
    /// The first differing keys, in order of the keys.
    pub first: Vec<ObjectKey>,
}

impl Differences {
    /// How many objects differ.
    #[must_use]
    pub fn count(&self) -> usize {
        self.missing + self.extra + self.other_version
    }
}

/// Compares a cache, now and then, with a metadata list of the source at the cache's own version,
/// and asks the reflector for a relist when they differ; a relist is applied as a difference, so it
/// repairs what differs and touches nothing else.
///
/// A comparison costs the source a paged list of metadata, and here one page at a time: the list is
/// folded into a [`Digest`] beside the cache's own, which is kept up incrementally. Only when the
/// two differ is the list taken once more, to name the objects.
///
/// It is for caches with one source.
pub struct ConsistencyCheck<S> {
    source: Arc<S>,
    config: ConsistencyConfig,
}

impl<S: ListWatch> ConsistencyCheck<S> {
    /// A check against `source`.
    #[must_use]
    pub fn new(source: Arc<S>, config: ConsistencyConfig) -> Self {
        Self { source, config }
    }

    /// Compare on the period until stopped. Each outcome is given to `report`; a difference also
    /// leads to a relist of the reflector. Failed comparisons are repeated at the next period.
    pub async fn run<T: Send + Sync + 'static>(
        self,
        cache: Indexer<T>,
        feed: DigestFeed,
        reflector: ReflectorHandle,
        report: impl Fn(Result<Comparison, Fault>) + Send,
        stop: StopToken,
    ) {
        let mut rng = fastrand::Rng::with_seed(self.config.seed);
        let work = async {
            loop {
                let wait = self.config.period.mul_f64(1.0 + rng.f64());
                let clock = &self.config.clock;
                clock.sleep_until(clock.now() + wait).await;
                let outcome = match moment(&cache, &feed).await {
                    Some((snapshot, digest)) => self.compare(&snapshot, digest).await,
                    None => Ok(Comparison::NotComparable),
                };
                if let Ok(Comparison::Different(differences)) = &outcome {
                    tracing::warn!(?differences, "the cache differs from its source: relist");
                    reflector.relist();
                }
                if catch_unwind(AssertUnwindSafe(|| report(outcome))).is_err() {
                    tracing::warn!("the report of a consistency check panicked");
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.stopped() => {}
            () = work => {}
        }
    }

    /// Compare once: `digest` is that of `view`.
    ///
    /// # Errors
    /// The fault of the list, when it failed for another reason than a forgotten version.
    pub async fn compare<T>(&self, view: &View<T>, digest: Digest) -> Result<Comparison, Fault> {
        let version = view.resource_version();
        if version.is_empty() {
            return Ok(Comparison::NotComparable);
        }
        let mut theirs = Digest::default();
        let known = self
            .each_meta(&version, |meta| {
                theirs.add(meta.key.as_ref(), &meta.uid, &meta.resource_version);
            })
            .await?;
        if !known {
            return Ok(Comparison::NotComparable);
        }
        let equal = Comparison::Equal {
            resource_version: version.clone(),
            objects: theirs.objects(),
        };
        if theirs == digest {
            return Ok(equal);
        }
        let mut listed = HashMap::new();
        let known = self
            .each_meta(&version, |meta| {
                listed.insert(meta.key, (meta.uid, meta.resource_version));
            })
            .await?;
        if !known {
            return Ok(Comparison::NotComparable);
        }
        let failed: HashMap<_, _> = view
            .quarantine()
            .filter_map(|q| Some((q.key.as_ref()?, &q.failed_version)))
            .collect();
        // What is known to be unusable need not be here, as long as it is still that which failed.
        let is_known_to_fail = |key: &ObjectKey, theirs: &ResourceVersion| {
            let failed = failed.get(key);
            failed.is_some_and(|failed| failed.is_empty() || *failed == theirs)
        };
        let unknown_keys = view.quarantine().filter(|q| q.key.is_none()).count();
        let mut differing = Vec::new();
        let mut differences = Differences {
            resource_version: version,
            ..Differences::default()
        };
        for object in view.iter() {
            let theirs = listed.remove(object.key());
            match theirs {
                Some((uid, version))
                    if is_known_to_fail(object.key(), &version)
                        || (uid == *object.uid() && version == *object.resource_version()) =>
                {
                    continue;
                }
                Some(_) => differences.other_version += 1,
                None => differences.extra += 1,
            }
            differing.push(object.key().clone());
        }
        // What is left of the list is not in the cache. As many of them as there are objects of unknown
        // key may be these.
        listed.retain(|key, (_, version)| !is_known_to_fail(key, version));
        if listed.len() > unknown_keys {
            differences.missing = listed.len();
            differing.extend(listed.into_keys());
        }
        if differences.count() == 0 {
            return Ok(equal);
        }
        differing.sort_unstable();
        differing.truncate(self.config.named);
        differences.first = differing;
        Ok(Comparison::Different(differences))
    }

    /// Visit the metadata of everything that the source had at `version`; false when the source
    /// cannot tell any more.
    async fn each_meta(
        &self,
        version: &ResourceVersion,
        mut visit: impl FnMut(Meta),
    ) -> Result<bool, Fault> {
        let mut token: Option<String> = None;
        loop {
            let first = token.is_none();
            let options = ListOptions {
                resource_version: if first {
                    version.clone()
                } else {
                    ResourceVersion::empty()
                },
                version_match: first.then_some(VersionMatch::Exact),
                limit: Some(self.config.page_size),
                continue_token: token.take(),
                selectors: self.config.selectors.clone(),
                metadata_only: true,
            };
            let clock = &self.config.clock;
            let overdue = clock.sleep_until(clock.now() + self.config.call_timeout);
            let page = tokio::select! {
                biased;
                page = AssertUnwindSafe(self.source.list(options)).catch_unwind() => page
                    .map_err(|panic| Fault::SourcePanicked(panic_message(panic.as_ref())))?,
                () = overdue => return Err(Fault::NoAnswer(self.config.call_timeout)),
            };
            let page = match page {
                Ok(page) => page,
                Err(SourceError::Api(status)) if status.is_expired() || status.is_too_large() => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            };
            if first && page.resource_version != *version {
                return Ok(false);
            }
            for item in page.items {
                match item {
                    Ok(object) => visit(object.meta),
                    Err(bad) => {
                        if let Some(meta) = meta_of(bad) {
                            visit(meta);
                        }
                    }
                }
            }
            token = page.continue_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(true);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// A snapshot and the digest of exactly that version. The feed follows each publication at once, so
/// it takes a pause of the writer between the two to miss; `None` after many misses in a row.
async fn moment<T: Send + Sync + 'static>(
    cache: &Indexer<T>,
    feed: &DigestFeed,
) -> Option<(Snapshot<T>, Digest)> {
    for _ in 0..1000 {
        let snapshot = cache.snapshot();
        if let Some(digest) = feed.digest_of(&snapshot) {
            return Some((snapshot, digest));
        }
        tokio::task::yield_now().await;
    }
    None
}

fn meta_of(bad: BadObject) -> Option<Meta> {
    Some(Meta {
        key: bad.key?,
        uid: bad.uid,
        resource_version: bad.resource_version,
    })
}
