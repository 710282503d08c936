//! The embedded source against a plain replay.
use super::{Disconnect, MemoryConfig, MemorySource, WriteError};
use crate::object::{ObjectKey, ResourceVersion};
use crate::source::{
    ListOptions, ListWatch, Recovery, SourceError, WatchEvent, WatchOptions, WatchStream,
};
use crate::sync::block_on;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

fn key(name: u8) -> ObjectKey {
    ObjectKey::new("ns", &format!("o{name}")).unwrap()
}

fn watch(
    source: &MemorySource<u32>,
    version: &ResourceVersion,
) -> Result<WatchStream<u32>, SourceError> {
    block_on(source.watch(WatchOptions {
        resource_version: version.clone(),
        allow_bookmarks: true,
        ..WatchOptions::default()
    }))
}

type Frames = Vec<Result<WatchEvent<u32>, SourceError>>;

/// What the stream gives without waiting; the flag says whether it ended.
fn take(stream: &mut WatchStream<u32>) -> (Frames, bool) {
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

/// All pages of a list.
fn list(
    source: &MemorySource<u32>,
    limit: u32,
) -> Result<(ResourceVersion, BTreeMap<ObjectKey, u32>), SourceError> {
    let mut options = ListOptions {
        limit: Some(limit),
        ..ListOptions::default()
    };
    let mut all = BTreeMap::new();
    loop {
        let page = block_on(source.list(options.clone()))?;
        for item in page.items {
            let item = item.unwrap();
            assert!(all.insert(item.meta.key, item.object).is_none());
        }
        match page.continue_token {
            None => return Ok((page.resource_version, all)),
            token => options.continue_token = token,
        }
    }
}

fn fold(view: &mut BTreeMap<ObjectKey, u32>, frames: Frames) -> Option<Recovery> {
    for frame in frames {
        match frame {
            Ok(WatchEvent::Added(item) | WatchEvent::Modified(item)) => {
                view.insert(item.meta.key, item.object);
            }
            Ok(WatchEvent::Deleted(item)) => {
                view.remove(&item.meta.key).unwrap();
            }
            Ok(WatchEvent::Bookmark { .. }) => (),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return Some(error.recovery()),
        }
    }
    None
}

proptest! {
    #[test]
    fn a_list_and_a_watch_from_it_reconstruct_the_collection_at_any_time(
        script in prop::collection::vec((0..6u8, 0..12u8), 1..200), limit in 1..5u32,
    ) {
        let source = MemorySource::with(MemoryConfig { history: 40, bookmark_every: 3, ..MemoryConfig::default() });
        let mut client: Option<(WatchStream<u32>, BTreeMap<ObjectKey, u32>)> = None;
        for (at, (verb, name)) in script.into_iter().enumerate() {
            let value = u32::try_from(at).unwrap();
            match verb {
                0..=2 => drop(source.upsert(key(name), value)),
                3 => drop(source.delete(&key(name), None)),
                4 => source.disconnect(if name % 2 == 0 { Disconnect::Clean } else { Disconnect::Broken }),
                _ => source.compact(&source.resource_version()),
            }
            if name > 8 && verb != 4 {
                continue; // The client does not look every time.
            }
            let over = match &mut client {
                None => true,
                Some((stream, view)) => {
                    let (frames, ended) = take(stream);
                    fold(view, frames).is_some() || ended
                }
            };
            if over {
                let (version, view) = list(&source, limit).unwrap();
                client = Some((watch(&source, &version).unwrap(), view));
            }
            let now: BTreeMap<_, _> = source.objects().1.iter().map(|i| (i.meta.key.clone(), i.object)).collect();
            prop_assert_eq!(&client.as_ref().unwrap().1, &now);
        }
    }
}

#[test]
fn writes_are_guarded_as_a_server_guards_them() {
    let source = MemorySource::new();
    let first = source.create(key(1), 1).unwrap();
    assert_eq!(
        source.create(key(1), 2),
        Err(WriteError::AlreadyExists(key(1)))
    );
    let second = source
        .update(&key(1), Some(&first.resource_version), 2)
        .unwrap();
    assert_eq!(first.uid, second.uid);
    assert!(matches!(
        source.update(&key(1), Some(&first.resource_version), 3),
        Err(WriteError::Conflict { .. })
    ));
    assert!(matches!(
        source.delete(&key(1), Some(&first.resource_version)),
        Err(WriteError::Conflict { .. })
    ));
    source.delete(&key(1), None).unwrap();
    assert_eq!(
        source.update(&key(1), None, 1),
        Err(WriteError::NotFound(key(1)))
    );
    assert_ne!(
        source.create(key(1), 1).unwrap().uid,
        first.uid,
        "a new life has a new uid"
    );
}

#[test]
fn a_watch_from_a_compacted_version_is_expired_and_one_from_the_future_too_large() {
    let source = MemorySource::new();
    let old = source.create(key(1), 1).unwrap().resource_version;
    source.upsert(key(1), 2);
    source.compact(&source.resource_version());
    let (frames, ended) = take(&mut watch(&source, &old).unwrap());
    assert_eq!(frames[0].as_ref().unwrap_err().recovery(), Recovery::Relist);
    assert!(ended);
    let Err(error) = watch(&source, &ResourceVersion::from(99)) else {
        panic!()
    };
    assert_eq!(error.recovery(), Recovery::TooLarge);
}

#[test]
fn pages_are_of_one_version_and_their_tokens_expire() {
    let source = MemorySource::new();
    (0..5).for_each(|n| drop(source.create(key(n), 0).unwrap()));
    let first = block_on(source.list(ListOptions {
        limit: Some(2),
        ..ListOptions::default()
    }))
    .unwrap();
    source.upsert(key(4), 1);
    let next = |version: &str| {
        block_on(source.list(ListOptions {
            limit: Some(2),
            resource_version: version.into(),
            continue_token: first.continue_token.clone(),
            ..ListOptions::default()
        }))
    };
    assert!(
        next("5").is_err(),
        "a token and a version together are refused"
    );
    let second = next("").unwrap();
    assert_eq!(second.resource_version, first.resource_version);
    source.compact(&source.resource_version());
    let third = block_on(source.list(ListOptions {
        continue_token: second.continue_token,
        ..ListOptions::default()
    }));
    assert_eq!(third.unwrap_err().recovery(), Recovery::Relist);
}

#[test]
fn dropped_frames_are_lost_without_a_word() {
    let source = MemorySource::new();
    let mut stream = watch(&source, &source.resource_version()).unwrap();
    source.drop_frames(1);
    source.create(key(1), 1).unwrap();
    source.create(key(2), 2).unwrap();
    let (frames, _) = take(&mut stream);
    assert_eq!(frames.len(), 1);
    source.send_bookmark();
    assert!(
        take(&mut stream).0.is_empty(),
        "the last frame said how far the source is"
    );
}
