//! Creates, updates and deletes are guarded, numbered and stamped as a server does it.
use super::*;
use crate::object::Uid;
use crate::source::memory::{Preconditions, Write, WriteError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn writes_are_guarded_as_a_server_guards_them() {
    let source = MemorySource::new();
    let first = source.create(key(1), 1).unwrap();
    let exists = source.create(key(1), 2).unwrap_err();
    assert_eq!(exists, WriteError::AlreadyExists(key(1)));
    let second = source
        .update(&key(1), Some(&first.resource_version), 2)
        .unwrap();
    assert_eq!(first.uid, second.uid);
    let conflict = source
        .update(&key(1), Some(&first.resource_version), 3)
        .unwrap_err();
    assert!(matches!(conflict, WriteError::Conflict { .. }));
    let late = source.delete(&key(1), Some(&first.resource_version));
    assert!(matches!(late, Err(WriteError::Conflict { .. })));
    assert_eq!(
        source.get(&key(1)).unwrap().object,
        2,
        "nothing was changed"
    );
    assert_eq!(source.resource_version(), second.resource_version);
    source.delete(&key(1), None).unwrap();
    let missing = source.update(&key(1), None, 1).unwrap_err();
    assert_eq!(missing, WriteError::NotFound(key(1)));
    assert_eq!(source.delete(&key(1), None), Err(missing.clone()));
    let again = source.create(key(1), 1).unwrap();
    assert_ne!(again.uid, first.uid, "a new life has a new uid");
    let codes = [&exists, &conflict, &missing].map(|error| error.status().code);
    assert_eq!(codes, [409, 409, 404]);
}

#[test]
fn a_delete_can_be_bound_to_a_uid() {
    let source = filled(1);
    let old = source.get(&key(0)).unwrap().meta;
    source.delete(&key(0), None).unwrap();
    source.create(key(0), 1).unwrap();
    let bound = |uid: &Uid, version: &ResourceVersion| Preconditions {
        uid: Some(uid.clone()),
        resource_version: Some(version.clone()),
    };
    let refused = source.delete_if(&key(0), bound(&old.uid, &old.resource_version));
    assert!(matches!(refused, Err(WriteError::OtherUid { .. })));
    let new = source.get(&key(0)).unwrap().meta;
    let refused = source.delete_if(&key(0), bound(&new.uid, &old.resource_version));
    assert!(matches!(refused, Err(WriteError::Conflict { .. })));
    let done = source.delete_if(&key(0), bound(&new.uid, &new.resource_version));
    assert_eq!(done.unwrap().uid, new.uid);
}

#[test]
fn versions_begin_and_step_as_configured_and_can_be_skipped() {
    let source = with(MemoryConfig {
        first_version: 100,
        version_step: 7,
        ..MemoryConfig::default()
    });
    assert_eq!(source.resource_version(), 100.into());
    assert_eq!(source.upsert(key(1), 1).resource_version, 107.into());
    source.skip_versions(1000);
    assert_eq!(source.resource_version(), 1107.into());
    let deleted = source.delete(&key(1), None).unwrap();
    assert_eq!(
        deleted.resource_version,
        1114.into(),
        "a deletion has its own"
    );
    // Neither can be zero: "0" means any version, and each write moves the version.
    let least = with(MemoryConfig {
        first_version: 0,
        version_step: 0,
        ..MemoryConfig::default()
    });
    assert_eq!(least.resource_version(), 1.into());
    assert_eq!(least.upsert(key(1), 1).resource_version, 2.into());
}

#[test]
fn each_stored_state_is_stamped_also_the_last_one() {
    type Stamped = (String, String);
    let config = MemoryConfig::default().stamp(|object: &mut Stamped, meta| {
        *object = (meta.uid.to_string(), meta.resource_version.to_string());
    });
    let source = MemorySource::with(config);
    let mut stream = open(&source, from(&1.into())).unwrap();
    source.create(key(1), Stamped::default()).unwrap();
    source.upsert(key(1), Stamped::default());
    source.delete(&key(1), None).unwrap();
    let (frames, _) = take(&mut stream);
    assert_eq!(frames.len(), 3);
    for frame in frames {
        let (WatchEvent::Added(item) | WatchEvent::Modified(item) | WatchEvent::Deleted(item)) =
            frame.unwrap()
        else {
            panic!()
        };
        let meta = &item.meta;
        let inside = (meta.uid.to_string(), meta.resource_version.to_string());
        assert_eq!(item.object, inside);
    }
}

/// No user code runs under the lock: neither the stamp, nor the copy, nor the end of an object.
#[test]
fn user_code_may_use_the_source_and_may_panic() {
    #[derive(Clone)]
    struct Reader(Option<MemorySource<Reader>>, Arc<AtomicU32>);
    impl Drop for Reader {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
            if let Some(source) = &self.0 {
                assert!(!source.resource_version().is_empty());
            }
        }
    }
    let drops = Arc::new(AtomicU32::new(0));
    let config = MemoryConfig {
        history: 1,
        ..MemoryConfig::default()
    }
    .stamp(|object: &mut Reader, meta| {
        let source = object.0.as_ref().unwrap();
        let _ = source.get(&meta.key);
        assert_ne!(meta.key.name(), "o9", "scripted");
    });
    let source = MemorySource::with(config);
    let object = || Reader(Some(source.clone()), drops.clone());
    source.upsert(key(1), object());
    source.upsert(key(1), object());
    source.delete(&key(1), None).unwrap();
    source.compact(&source.resource_version());
    // Three that were stored, and two that the stamp looked at.
    assert_eq!(drops.load(Ordering::Relaxed), 5, "nothing is kept alive");
    let before = source.resource_version();
    let poisoned = std::panic::AssertUnwindSafe(|| source.upsert(key(9), object()));
    assert!(std::panic::catch_unwind(poisoned).is_err());
    assert_eq!(source.resource_version(), before, "nothing was written");
}

#[test]
fn many_writes_are_told_in_their_order_and_a_refused_one_stops_nothing() {
    let source = MemorySource::new();
    let mut stream = watch(&source);
    let results = source.write_all([
        Write::Create(key(1), 1),
        Write::Create(key(1), 2),
        Write::Update(key(1), Preconditions::default(), 3),
        Write::Upsert(key(2), 4),
        Write::Delete(key(1), Preconditions::default()),
        Write::Delete(key(1), Preconditions::default()),
    ]);
    let refused: Vec<_> = results.iter().map(Result::is_err).collect();
    assert_eq!(refused, [false, true, false, false, false, true]);
    assert_eq!(seen(&mut stream), "+o1@2 ~o1@3 +o2@4 -o1@5");
}

#[test]
fn a_hundred_thousand_objects_are_loaded_and_listed() {
    let source = MemorySource::new();
    let name = |n: u32| ObjectKey::new("ns", &format!("pod-{n:06}")).unwrap();
    let began = std::time::Instant::now();
    source.write_all((0..100_000).map(|n| Write::Upsert(name(n), n)));
    println!("loaded in {:?}", began.elapsed());
    assert_eq!(source.len(), 100_000);
    let began = std::time::Instant::now();
    let mut options = ListOptions {
        limit: Some(500),
        ..ListOptions::default()
    };
    let mut pages = 0;
    loop {
        let page = list(&source, options.clone()).unwrap();
        pages += 1;
        match page.continue_token {
            None => break,
            token => options.continue_token = token,
        }
        source.upsert(name(0), 1);
    }
    println!("{pages} pages in {:?}", began.elapsed());
    assert_eq!(pages, 200);
}
