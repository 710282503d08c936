//! Asking a factory for an informer.
use super::super::builder::{InformerBuilder, short_type_name};
use super::super::shared::SharedInformer;
use super::super::transform::Transform;
use super::key::Key;
use super::{FactoryError, InformerFactory};
use crate::source::Selectors;
use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;

type Configure<T> = Box<dyn FnOnce(InformerBuilder<T>) -> InformerBuilder<T> + Send>;

/// Which part of the objects of a type is wanted, and how: see [`InformerFactory::request`].
#[must_use]
pub struct InformerRequest<T: Send + Sync + 'static> {
    factory: InformerFactory,
    selectors: Selectors,
    namespaces: BTreeSet<String>,
    transform: Option<Transform<T>>,
    configure: Option<Configure<T>>,
}

impl<T: Send + Sync + 'static> InformerRequest<T> {
    pub(super) fn new(factory: InformerFactory) -> Self {
        Self {
            factory,
            selectors: Selectors::default(),
            namespaces: BTreeSet::new(),
            transform: None,
            configure: None,
        }
    }

    /// Only objects of this namespace; called again: of these namespaces.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespaces.insert(namespace.to_owned());
        self
    }

    /// Only objects that this label selector selects.
    pub fn labels(mut self, selector: &str) -> Self {
        self.selectors.labels = Some(selector.to_owned());
        self
    }

    /// Only objects that this field selector selects.
    pub fn fields(mut self, selector: &str) -> Self {
        self.selectors.fields = Some(selector.to_owned());
        self
    }

    /// Only this shard of the objects.
    pub fn shard(mut self, selector: &str) -> Self {
        self.selectors.shard = Some(selector.to_owned());
        self
    }

    /// What is made of each object, instead of what the factory does by default. Transforms are told
    /// apart by their names.
    pub fn transform(mut self, transform: Transform<T>) -> Self {
        self.transform = Some(transform);
        self
    }

    /// What else to set on an informer that has to be made for this request: indexes, resync, name.
    /// It has no effect on one that is there already, and is no part of what tells informers apart.
    pub fn configure(
        mut self,
        configure: impl FnOnce(InformerBuilder<T>) -> InformerBuilder<T> + Send + 'static,
    ) -> Self {
        self.configure = Some(Box::new(configure));
        self
    }

    /// The informer: the one that is there, or a new one. A new one is not running; see
    /// [`InformerFactory::start`].
    ///
    /// # Errors
    /// [`FactoryError::NoSource`] or [`FactoryError::ShutDown`].
    pub fn get(self) -> Result<SharedInformer<T>, FactoryError> {
        let provided = self.factory.provided::<T>()?;
        let transform = self.transform.or_else(|| provided.transform.clone());
        let key = Key {
            object: TypeId::of::<T>(),
            selectors: self.selectors,
            namespaces: self.namespaces,
            transform: transform.as_ref().map(|t| t.name().into()),
        };
        let factory = &self.factory.shared;
        let build = {
            let key = key.clone();
            move || {
                let mut builder = (provided.builder)()
                    .name(&key.name(short_type_name::<T>()))
                    .clock(factory.clock.clone())
                    .selectors(key.selectors)
                    .namespaces(key.namespaces);
                if let Some(period) = factory.resync {
                    builder = builder.resync(period);
                }
                if let Some(hook) = factory.hook.clone() {
                    builder = builder.on_error(move |error| hook(error));
                }
                if let Some(transform) = transform {
                    builder = builder.transform(transform);
                }
                match self.configure {
                    Some(configure) => configure(builder),
                    None => builder,
                }
                .build()
            }
        };
        self.factory.get_or_insert(key, build)
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for InformerRequest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerRequest")
            .field("selectors", &self.selectors)
            .field("namespaces", &self.namespaces)
            .field("transform", &self.transform)
            .finish_non_exhaustive()
    }
}
