//! The embedded source, call by call and against plain oracles.
mod faults;
mod lists;
mod properties;
mod selection;
mod threads;
mod watches;
mod writes;

use super::{MemoryConfig, MemorySource};
use crate::object::{ObjectKey, ResourceVersion};
use crate::source::{
    ListOptions, ListPage, ListWatch, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use crate::sync::block_on;
use std::task::{Context, Poll, Waker};

fn key(name: u8) -> ObjectKey {
    ObjectKey::new("ns", &format!("o{name}")).unwrap()
}

fn filled(objects: u8) -> MemorySource<u32> {
    let source = MemorySource::new();
    for name in 0..objects {
        source.create(key(name), 0).unwrap();
    }
    source
}

fn list<T: Clone + Send + Sync + 'static>(
    source: &MemorySource<T>,
    options: ListOptions,
) -> Result<ListPage<T>, SourceError> {
    block_on(source.list(options))
}

fn open<T: Clone + Send + Sync + 'static>(
    source: &MemorySource<T>,
    options: WatchOptions,
) -> Result<WatchStream<T>, SourceError> {
    block_on(source.watch(options))
}

/// From this version, with bookmarks.
fn watch_from(source: &MemorySource<u32>, version: &ResourceVersion) -> WatchStream<u32> {
    open(source, from(version)).unwrap()
}

/// From now on, with bookmarks.
fn watch(source: &MemorySource<u32>) -> WatchStream<u32> {
    watch_from(source, &source.resource_version())
}

fn from(version: &ResourceVersion) -> WatchOptions {
    WatchOptions {
        resource_version: version.clone(),
        allow_bookmarks: true,
        ..WatchOptions::default()
    }
}

fn streaming() -> WatchOptions {
    WatchOptions {
        allow_bookmarks: true,
        send_initial_events: true,
        version_match: Some(crate::source::VersionMatch::NotOlderThan),
        ..WatchOptions::default()
    }
}

type Frames<T> = Vec<Result<WatchEvent<T>, SourceError>>;

/// What the stream gives without waiting; the flag says whether it ended.
fn take<T>(stream: &mut WatchStream<T>) -> (Frames<T>, bool) {
    let mut frames = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(frame)) => frames.push(frame),
            Poll::Ready(None) => return (frames, true),
            Poll::Pending => return (frames, false),
        }
    }
}

/// The frames in the notation of the cases: `+o1@2`, `~o1@3`, `-o1@4`, `BM@4`, `BM@4(end)`, `?o1@5`
/// for one that cannot be read, `410` for an error, `EOF`.
fn seen<T>(stream: &mut WatchStream<T>) -> String {
    let (frames, ended) = take(stream);
    let mut words: Vec<String> = frames.iter().map(word).collect();
    words.extend(ended.then(|| "EOF".to_owned()));
    words.join(" ")
}

fn word<T>(frame: &Result<WatchEvent<T>, SourceError>) -> String {
    let object = |sign: &str, meta: &crate::Meta| {
        format!("{sign}{}@{}", meta.key.name(), meta.resource_version)
    };
    match frame {
        Ok(WatchEvent::Added(item)) => object("+", &item.meta),
        Ok(WatchEvent::Modified(item)) => object("~", &item.meta),
        Ok(WatchEvent::Deleted(item)) => object("-", &item.meta),
        Ok(WatchEvent::Bookmark {
            resource_version,
            initial_events_end,
        }) => {
            let end = if *initial_events_end { "(end)" } else { "" };
            format!("BM@{resource_version}{end}")
        }
        Ok(WatchEvent::Bad { object, deleted }) => {
            let name = object.key.as_ref().map_or("unknown", ObjectKey::name);
            let gone = if *deleted { "-" } else { "" };
            format!("{gone}?{name}@{}", object.resource_version)
        }
        Ok(WatchEvent::Foreign { description }) => description.clone(),
        Err(SourceError::Api(status)) => status.code.to_string(),
        Err(SourceError::Transport(_)) => "CUT".to_owned(),
        Err(other) => other.to_string(),
    }
}

fn code<T>(result: Result<T, SourceError>) -> u16 {
    match result.map(|_| ()) {
        Err(SourceError::Api(status)) => status.code,
        other => panic!("{other:?}"),
    }
}

/// The page in words: `o1@2 o3@4`, `?o5` for one that cannot be read.
fn items<T>(page: &ListPage<T>) -> String {
    let words = page.items.iter().map(|item| match item {
        Ok(item) => format!("{}@{}", item.meta.key.name(), item.meta.resource_version),
        Err(bad) => format!("?{}", bad.key.as_ref().map_or("unknown", ObjectKey::name)),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn with(config: MemoryConfig<u32>) -> MemorySource<u32> {
    MemorySource::with(config)
}
