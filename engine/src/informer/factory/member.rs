//! Informers of all types side by side.
use super::super::report::NotSynced;
use super::super::shared::{SharedInformer, StartError};
use super::key::Key;
use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

type Wait<'a, R> = Pin<Box<dyn Future<Output = R> + Send + 'a>>;

/// An informer, whatever its objects are.
pub(super) trait Member: Send + Sync {
    fn name(&self) -> Arc<str>;
    fn start(&self) -> Result<(), StartError>;
    fn is_stopped(&self) -> bool;
    fn wait_for_sync(&self, deadline: Duration) -> Wait<'_, Result<(), NotSynced>>;
    fn stop(&self) -> Wait<'_, ()>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Send + Sync + 'static> Member for SharedInformer<T> {
    fn name(&self) -> Arc<str> {
        self.name().clone()
    }
    fn start(&self) -> Result<(), StartError> {
        self.start()
    }
    fn is_stopped(&self) -> bool {
        self.is_stopped()
    }
    fn wait_for_sync(&self, deadline: Duration) -> Wait<'_, Result<(), NotSynced>> {
        Box::pin(self.wait_for_sync(deadline))
    }
    fn stop(&self) -> Wait<'_, ()> {
        Box::pin(self.stop())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The informers of a factory, in no order.
#[derive(Default)]
pub(super) struct Members(HashMap<Key, Arc<dyn Member>>);

impl Members {
    /// The informer behind `key`, unless it has stopped: such a one is as good as gone.
    pub(super) fn get<T: Send + Sync + 'static>(&self, key: &Key) -> Option<SharedInformer<T>> {
        let member = self.0.get(key).filter(|member| !member.is_stopped())?;
        member.as_any().downcast_ref().cloned()
    }

    pub(super) fn insert<T: Send + Sync + 'static>(
        &mut self,
        key: Key,
        informer: &SharedInformer<T>,
    ) {
        self.0.insert(key, Arc::new(informer.clone()));
    }

    pub(super) fn remove<T: Send + Sync + 'static>(
        &mut self,
        informer: &SharedInformer<T>,
    ) -> bool {
        let before = self.0.len();
        self.0.retain(|_, member| {
            let known = member.as_any().downcast_ref::<SharedInformer<T>>();
            !known.is_some_and(|known| known.is_same(informer))
        });
        self.0.len() < before
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Member>> {
        self.0.values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
