//! Selection by namespace, labels, fields and shard, in lists and watches alike.
use super::*;
use crate::source::memory::MemoryConfig;
use crate::source::{Selectors, ShardSelector};
use std::borrow::Cow;
use std::collections::BTreeMap;

#[derive(Clone, Default)]
struct Pod {
    labels: BTreeMap<String, String>,
    node: Option<String>,
    version: String,
}

fn pod(app: &str, node: Option<&str>) -> Pod {
    Pod {
        labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
        node: node.map(str::to_owned),
        version: String::new(),
    }
}

fn pods() -> MemorySource<Pod> {
    let config = MemoryConfig::default()
        .stamp(|pod: &mut Pod, meta| pod.version = meta.resource_version.to_string())
        .labels(|pod, name| pod.labels.get(name).map(String::as_str))
        .field("spec.nodeName", |pod| {
            pod.node.as_deref().map(Cow::Borrowed)
        });
    MemorySource::with(config)
}

fn labels(text: &str) -> Selectors {
    Selectors {
        labels: Some(text.to_owned()),
        ..Selectors::default()
    }
}

fn fields(text: &str) -> Selectors {
    Selectors {
        fields: Some(text.to_owned()),
        ..Selectors::default()
    }
}

fn listed(source: &MemorySource<Pod>, selectors: Selectors) -> String {
    let options = ListOptions {
        selectors,
        ..ListOptions::default()
    };
    items(&list(source, options).unwrap())
}

fn watched(source: &MemorySource<Pod>, selectors: Selectors) -> WatchStream<Pod> {
    let options = WatchOptions {
        selectors,
        ..from(&source.resource_version())
    };
    open(source, options).unwrap()
}

#[test]
fn lists_give_what_the_selectors_select() {
    let source = pods();
    source.upsert(key(1), pod("web", Some("n1")));
    source.upsert(key(2), pod("web", None));
    source.upsert(key(3), pod("db", Some("n1")));
    source.upsert(
        ObjectKey::new("other", "o1").unwrap(),
        pod("web", Some("n2")),
    );
    assert_eq!(listed(&source, labels("app=web")), "o1@2 o2@3 o1@5");
    assert_eq!(listed(&source, labels("app notin (web)")), "o3@4");
    assert_eq!(listed(&source, labels("")), "o1@2 o2@3 o3@4 o1@5");
    assert_eq!(listed(&source, fields("spec.nodeName=n1")), "o1@2 o3@4");
    assert_eq!(listed(&source, fields("spec.nodeName=")), "o2@3");
    assert_eq!(
        listed(&source, fields("spec.nodeName!=n1,metadata.namespace=ns")),
        "o2@3"
    );
    assert_eq!(listed(&source, fields("metadata.name==o1")), "o1@2 o1@5");
    let all = Selectors {
        namespace: Some("ns".into()),
        labels: Some("app".into()),
        ..fields("spec.nodeName=n1")
    };
    assert_eq!(listed(&source, all), "o1@2 o3@4");
}

#[test]
fn pages_hold_what_is_selected_up_to_the_limit() {
    let source = pods();
    for n in 0..100 {
        source.upsert(
            key(n),
            pod(if n % 10 == 0 { "rare" } else { "common" }, None),
        );
    }
    let mut options = ListOptions {
        limit: Some(3),
        selectors: labels("app=rare"),
        ..ListOptions::default()
    };
    let mut sizes = Vec::new();
    loop {
        let page = list(&source, options.clone()).unwrap();
        sizes.push(page.items.len());
        source.upsert(key(0), pod("rare", None));
        match page.continue_token {
            None => break,
            token => options.continue_token = token,
        }
    }
    assert_eq!(sizes, [3, 3, 3, 1]);
}

#[test]
fn an_object_that_ceases_to_be_selected_is_deleted_and_one_that_begins_is_added() {
    let source = pods();
    let mut web = watched(&source, labels("app=web"));
    let mut on_n1 = watched(&source, fields("spec.nodeName=n1"));
    source.upsert(key(1), pod("db", None)); // 2
    source.upsert(key(1), pod("web", None)); // 3
    source.upsert(key(1), pod("web", Some("n1"))); // 4
    source.upsert(key(1), pod("db", Some("n1"))); // 5
    source.upsert(key(1), pod("db", Some("n2"))); // 6
    source.delete(&key(1), None).unwrap(); // 7
    let (frames, _) = take(&mut web);
    let words: Vec<_> = frames.iter().map(word).collect();
    assert_eq!(words, ["+o1@3", "~o1@4", "-o1@5"]);
    let Ok(WatchEvent::Deleted(left)) = &frames[2] else {
        panic!()
    };
    assert_eq!(
        left.object.labels["app"], "web",
        "its last selected content"
    );
    assert_eq!(left.object.version, "5", "at the version of the change");
    assert_eq!(seen(&mut on_n1), "+o1@4 ~o1@5 -o1@6");
}

#[test]
fn shards_split_lists_and_watches_without_loss_or_repeat() {
    let source = pods();
    let shards: Vec<Selectors> = ShardSelector::shards(3)
        .iter()
        .map(|shard| Selectors {
            shard: Some(shard.to_string()),
            ..Selectors::default()
        })
        .collect();
    let mut streams: Vec<_> = shards.iter().map(|s| watched(&source, s.clone())).collect();
    for n in 0..60 {
        source.upsert(key(n), Pod::default());
    }
    let count = |words: String| words.split(' ').filter(|word| !word.is_empty()).count();
    let lists: Vec<_> = shards
        .iter()
        .map(|s| count(listed(&source, s.clone())))
        .collect();
    let watches: Vec<_> = streams.iter_mut().map(|s| count(seen(s))).collect();
    assert_eq!(lists, watches);
    assert_eq!(lists.iter().sum::<usize>(), 60);
    assert!(lists.iter().all(|count| *count > 5), "{lists:?}");
}

#[test]
fn streaming_lists_select_too() {
    let source = pods();
    source.upsert(key(1), pod("web", None));
    source.upsert(key(2), pod("db", None));
    let options = WatchOptions {
        selectors: labels("app=db"),
        ..streaming()
    };
    assert_eq!(
        seen(&mut open(&source, options).unwrap()),
        "+o2@3 BM@3(end)"
    );
}

#[test]
fn selectors_that_cannot_be_read_are_refused() {
    let source = pods();
    let shard = Selectors {
        shard: Some("shardRange(x)".into()),
        ..Selectors::default()
    };
    for selectors in [
        labels("app=="),
        labels("=web"),
        fields("spec.nodeName"),
        fields("status.phase=Running"),
        shard,
    ] {
        if selectors.labels.as_deref() == Some("app==") {
            // The empty value is one.
            assert_eq!(listed(&source, selectors), "");
            continue;
        }
        let options = ListOptions {
            selectors: selectors.clone(),
            ..ListOptions::default()
        };
        assert_eq!(code(list(&source, options)), 400, "{selectors:?}");
        let options = WatchOptions {
            selectors,
            ..from(&1.into())
        };
        assert_eq!(code(open(&source, options)), 400);
    }
    let blind = filled(1);
    let options = ListOptions {
        selectors: labels("app=web"),
        ..ListOptions::default()
    };
    assert_eq!(code(list(&blind, options)), 400, "no way to read labels");
    assert_eq!(source.open_watches(), 0);
}

#[test]
fn an_accessor_that_panics_fails_the_call_and_nothing_else() {
    let config = MemoryConfig::default().labels(|object: &u32, _| {
        assert_ne!(*object, 13, "scripted");
        Some("yes")
    });
    let source = MemorySource::with(config);
    let listed = || {
        let options = ListOptions {
            selectors: labels("any"),
            ..ListOptions::default()
        };
        list(&source, options)
    };
    let options = WatchOptions {
        selectors: labels("any"),
        ..from(&1.into())
    };
    let mut stream = open(&source, options).unwrap();
    source.upsert(key(1), 1);
    source.upsert(key(2), 13);
    assert_eq!(code(listed()), 500);
    assert_eq!(seen(&mut stream), "+o1@2 500 EOF");
    source.delete(&key(2), None).unwrap();
    assert_eq!(items(&listed().unwrap()), "o1@2");
}
