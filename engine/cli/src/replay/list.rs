//! A list that takes several frames: nothing of it is published before its end.
use informant::json::JsonObject;
use informant::source::{BadObject, WatchEvent};
use informant::{Incoming, KeyRef, ResourceVersion};

type Items = Vec<Result<Incoming<JsonObject>, BadObject>>;

/// Where the stream is in its lists.
pub(super) enum Listing {
    /// The cache follows the watch.
    Complete,
    /// Pages came, and another one is due.
    Paged {
        version: ResourceVersion,
        items: Items,
    },
    /// The watch has expired: events are lost, so a list must follow. Watch frames that come
    /// instead are the objects of a streaming list, which a bookmark ends.
    Due(Items),
}

impl Listing {
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self, Self::Complete)
    }
}

/// Take a watch frame into a streaming list.
pub(super) fn collect(items: &mut Items, event: WatchEvent<JsonObject>) {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => items.push(Ok(object)),
        WatchEvent::Deleted(object) => remove(items, object.meta.key.as_ref()),
        WatchEvent::Bad { object, deleted } => match object.key {
            Some(key) if deleted => remove(items, key.as_ref()),
            _ => items.push(Err(object)),
        },
        WatchEvent::Bookmark { .. } | WatchEvent::Foreign { .. } => (),
    }
}

fn remove(items: &mut Items, key: KeyRef<'_>) {
    items.retain(|item| match item {
        Ok(object) => object.meta.key.as_ref() != key,
        Err(bad) => bad.key.as_ref().is_none_or(|bad| bad.as_ref() != key),
    });
}
