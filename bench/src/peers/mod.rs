//! What the engine is measured against.
pub(crate) mod client_go;
pub(crate) mod client_go_model;
pub(crate) mod floor;
#[cfg_attr(not(feature = "peers-kube"), path = "kube_absent.rs")]
pub(crate) mod kube;
#[cfg_attr(not(feature = "peers-kube"), path = "kube_pods_absent.rs")]
pub(crate) mod kube_pods;
#[cfg_attr(not(feature = "peers-kube"), path = "kube_shared_absent.rs")]
pub(crate) mod kube_shared;

/// Names of the peers in rows.
pub(crate) const FLOOR: &str = "floor";
pub(crate) const MODEL: &str = "client-go-model";
pub(crate) const CLIENT_GO: &str = "client-go";
pub(crate) const KUBE: &str = "kube-runtime";
