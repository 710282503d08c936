//! Transforms before storage: drop what nobody reads, or store a slim type instead.
use crate::indexer::panic_message;
use crate::object::{Incoming, Meta, Versioning};
use crate::source::{
    BadObject, ListOptions, ListPage, ListWatch, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use futures_util::StreamExt;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type Function<S, T> = dyn Fn(S) -> Result<T, String> + Send + Sync;

/// What is made of each object before anyone sees it. It has a name, so that two requests for an
/// informer can tell whether they mean the same.
///
/// It runs once on each object that a source sends, and never on what is stored, on resyncs, or on
/// tombstones. Key, uid and version were read before it and stay as they are. When it fails or
/// panics, the object goes to the quarantine with the reason: it neither disappears nor stops others.
///
/// ```
/// use informant::informer::Transform;
/// let upper = Transform::new("upper", |text: String| Ok::<_, String>(text.to_uppercase()));
/// let length = Transform::new("length", |text: String| Ok::<_, String>(text.len()));
/// ```
pub struct Transform<S, T = S> {
    name: Arc<str>,
    function: Arc<Function<S, T>>,
}

impl<S, T> Transform<S, T> {
    /// A transform (same type) or a projection (another type).
    pub fn new<E: fmt::Display>(
        name: &str,
        function: impl Fn(S) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            function: Arc::new(move |object| function(object).map_err(|error| error.to_string())),
        }
    }

    /// Its name: transforms of one name are taken for the same.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[allow(clippy::result_large_err)] // The port's own form of an object that cannot be used.
    fn apply(&self, incoming: Incoming<S>) -> Result<Incoming<T>, BadObject> {
        let Incoming { meta, object } = incoming;
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.function)(object)));
        let failure = match outcome {
            Ok(Ok(object)) => return Ok(Incoming { meta, object }),
            Ok(Err(error)) => error,
            Err(panic) => panic_message(&*panic),
        };
        let Meta {
            key,
            uid,
            resource_version,
        } = meta;
        Err(BadObject {
            key: Some(key),
            uid,
            resource_version,
            reason: format!("transform {:?}: {failure}", self.name),
        })
    }

    fn apply_event(&self, event: WatchEvent<S>) -> WatchEvent<T> {
        type Wrap<T> = fn(Incoming<T>) -> WatchEvent<T>;
        let (object, wrap, deleted): (_, Wrap<T>, _) = match event {
            WatchEvent::Added(object) => (object, WatchEvent::Added, false),
            WatchEvent::Modified(object) => (object, WatchEvent::Modified, false),
            WatchEvent::Deleted(object) => (object, WatchEvent::Deleted, true),
            WatchEvent::Bookmark {
                resource_version,
                initial_events_end,
            } => {
                return WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end,
                };
            }
            WatchEvent::Bad { object, deleted } => return WatchEvent::Bad { object, deleted },
            WatchEvent::Foreign { description } => return WatchEvent::Foreign { description },
        };
        match self.apply(object) {
            Ok(object) => wrap(object),
            Err(object) => WatchEvent::Bad { object, deleted },
        }
    }
}

impl<S, T> Clone for Transform<S, T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            function: self.function.clone(),
        }
    }
}

impl<S, T> fmt::Debug for Transform<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transform({:?})", self.name)
    }
}

/// A source whose objects pass a [`Transform`] first: the way to store a slim type.
///
/// ```
/// use informant::informer::{SharedInformer, Transform, Transformed};
/// use informant::source::ListWatch;
/// fn lengths<S: ListWatch<Object = String>>(source: S) -> SharedInformer<usize> {
///     let length = Transform::new("length", |text: String| Ok::<_, String>(text.len()));
///     SharedInformer::builder(Transformed::new(source, length)).build()
/// }
/// ```
pub struct Transformed<S: ListWatch, T> {
    source: S,
    transform: Transform<S::Object, T>,
}

impl<S: ListWatch, T> Transformed<S, T> {
    /// `source`, seen through `transform`.
    pub fn new(source: S, transform: Transform<S::Object, T>) -> Self {
        Self { source, transform }
    }
}

impl<S: ListWatch, T: Send + Sync + 'static> ListWatch for Transformed<S, T> {
    type Object = T;

    #[allow(clippy::result_large_err)] // As above.
    async fn list(&self, options: ListOptions) -> Result<ListPage<T>, SourceError> {
        let page = self.source.list(options).await?;
        Ok(ListPage {
            resource_version: page.resource_version,
            continue_token: page.continue_token,
            items: page
                .items
                .into_iter()
                .map(|item| item.and_then(|object| self.transform.apply(object)))
                .collect(),
        })
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<T>, SourceError> {
        let stream = self.source.watch(options).await?;
        let transform = self.transform.clone();
        Ok(Box::pin(stream.map(move |frame| {
            frame.map(|event| transform.apply_event(event))
        })))
    }

    fn versioning(&self) -> Versioning {
        self.source.versioning()
    }

    fn supports_streaming_list(&self) -> bool {
        self.source.supports_streaming_list()
    }
}

impl<S: ListWatch + fmt::Debug, T> fmt::Debug for Transformed<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transformed")
            .field("source", &self.source)
            .field("transform", &self.transform)
            .finish()
    }
}
