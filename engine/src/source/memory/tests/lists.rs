//! Lists: versions and their match, pages and their tokens.
use super::*;
use crate::source::{Recovery, VersionMatch, memory::Corruption};

fn limited(limit: u32) -> ListOptions {
    ListOptions {
        limit: Some(limit),
        ..ListOptions::default()
    }
}

fn at(version: &str, version_match: Option<VersionMatch>) -> ListOptions {
    ListOptions {
        resource_version: version.into(),
        version_match,
        ..ListOptions::default()
    }
}

fn next(token: Option<String>) -> ListOptions {
    ListOptions {
        continue_token: token,
        ..limited(2)
    }
}

#[test]
fn all_pages_are_of_the_state_of_the_first() {
    let source = filled(5);
    let first = list(&source, limited(2)).unwrap();
    assert_eq!(items(&first), "o0@2 o1@3");
    assert_eq!(first.resource_version, 6.into());
    source.upsert(key(4), 1);
    source.delete(&key(2), None).unwrap();
    source.create(key(3).as_ref().to_owned(), 9).unwrap_err();
    source
        .create(ObjectKey::new("ns", "o2b").unwrap(), 9)
        .unwrap();
    source.upsert(key(0), 1);
    let second = list(&source, next(first.continue_token.clone())).unwrap();
    assert_eq!(items(&second), "o2@4 o3@5");
    let third = list(&source, next(second.continue_token)).unwrap();
    assert_eq!(
        (items(&third).as_str(), &third.continue_token),
        ("o4@6", &None)
    );
    assert_eq!(third.resource_version, first.resource_version);
    // A token may be used again, as long as its version is remembered.
    let again = list(&source, next(first.continue_token)).unwrap();
    assert_eq!(items(&again), "o2@4 o3@5");
}

#[test]
fn the_last_page_has_no_token_also_when_it_is_full() {
    let source = filled(4);
    for (limit, pages) in [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)] {
        let mut page = list(&source, limited(limit)).unwrap();
        let mut count = 1;
        while page.continue_token.is_some() {
            let options = ListOptions {
                continue_token: page.continue_token,
                ..limited(limit)
            };
            page = list(&source, options).unwrap();
            assert!(!page.items.is_empty());
            count += 1;
        }
        assert_eq!(count, pages, "limit {limit}");
    }
    let empty = list(&filled(0), limited(2)).unwrap();
    assert_eq!((empty.items.len(), empty.continue_token), (0, None));
    let zero = list(&source, limited(0)).unwrap();
    assert_eq!(zero.items.len(), 4, "a limit of zero is none");
}

#[test]
fn tokens_expire_with_their_version_and_on_demand() {
    let source = filled(5);
    let token = list(&source, limited(2)).unwrap().continue_token;
    source.compact(&6.into());
    assert!(
        list(&source, next(token.clone())).is_ok(),
        "6 is still known"
    );
    source.upsert(key(1), 1);
    source.compact(&7.into());
    let expired = list(&source, next(token));
    assert_eq!(expired.unwrap_err().recovery(), Recovery::Relist);

    let token = list(&source, limited(2)).unwrap().continue_token;
    source.expire_continue_tokens();
    assert_eq!(code(list(&source, next(token))), 410);
    let token = list(&source, limited(2)).unwrap().continue_token;
    assert!(list(&source, next(token)).is_ok(), "new ones are good");
}

#[test]
fn c005_a_token_with_a_version_or_a_match_is_refused() {
    let source = filled(5);
    let token = list(&source, limited(2)).unwrap().continue_token;
    for options in [
        at("5", None),
        at("0", None),
        at("", Some(VersionMatch::NotOlderThan)),
    ] {
        let options = ListOptions {
            continue_token: token.clone(),
            ..options
        };
        assert_eq!(code(list(&source, options)), 400);
    }
    for broken in ["page-2", "0.6", "0.6.", "0.x.ns/o1", "0.6.a/b/c"] {
        assert_eq!(
            code(list(&source, next(Some(broken.into())))),
            400,
            "{broken}"
        );
    }
    let empty = next(Some(String::new()));
    assert_eq!(
        list(&source, empty).unwrap().items.len(),
        2,
        "C004: no token"
    );
}

#[test]
fn a_version_asks_for_at_least_or_exactly_itself() {
    use VersionMatch::{Exact, NotOlderThan};
    let source = filled(3);
    source.upsert(key(1), 1);
    source.delete(&key(0), None).unwrap();
    let newest = "o1@5 o2@4";
    for (version, version_match, expected) in [
        ("", None, newest),
        ("0", None, newest),
        ("3", None, newest),
        ("6", None, newest),
        ("0", Some(NotOlderThan), newest),
        ("3", Some(NotOlderThan), newest),
        ("6", Some(Exact), newest),
        ("5", Some(Exact), "o0@2 o1@5 o2@4"),
        ("3", Some(Exact), "o0@2 o1@3"),
        ("1", Some(Exact), ""),
    ] {
        let page = list(&source, at(version, version_match)).unwrap();
        assert_eq!(items(&page), expected, "{version:?} {version_match:?}");
        let exact = version_match == Some(Exact);
        let stated = if exact { version } else { "6" };
        assert_eq!(page.resource_version, stated.into());
    }
    for (version, version_match, expected) in [
        ("7", None, 504),
        ("7", Some(NotOlderThan), 504),
        ("7", Some(Exact), 504),
        ("0", Some(Exact), 422),
        ("", Some(Exact), 422),
        ("", Some(NotOlderThan), 422),
        ("x", None, 400),
        ("-1", None, 400),
    ] {
        let answer = list(&source, at(version, version_match));
        assert_eq!(code(answer), expected, "{version:?} {version_match:?}");
    }
    // Before there was a match, a version with a limit meant exactly that version.
    let options = ListOptions {
        limit: Some(10),
        ..at("3", None)
    };
    assert_eq!(items(&list(&source, options).unwrap()), "o0@2 o1@3");
}

#[test]
fn an_exact_list_of_a_forgotten_version_is_expired() {
    let source = filled(3);
    source.compact(&3.into());
    let exact = |version| list(&source, at(version, Some(VersionMatch::Exact)));
    assert_eq!(code(exact("2")), 410);
    assert_eq!(items(&exact("3").unwrap()), "o0@2 o1@3");
    assert_eq!(source.oldest_version(), 3.into());
    assert!(source.objects_at(&2.into()).is_none());
    assert_eq!(source.objects_at(&3.into()).unwrap().len(), 2);
    assert!(source.objects_at(&9.into()).is_none());
    // A version between two changes has a state too.
    source.skip_versions(10);
    source.upsert(key(9), 1);
    assert_eq!(exact("9").unwrap().items.len(), 3);
}

#[test]
fn a_list_of_metadata_at_an_exact_version_has_also_what_cannot_be_decoded() {
    let source = filled(3);
    source.upsert(key(2), 1);
    source.corrupt(key(1), Corruption::Body);
    let exact = at("4", Some(VersionMatch::Exact));
    let page = list(&source, exact.clone()).unwrap();
    assert_eq!(items(&page), "o0@2 ?o1 o2@4");
    let metadata = ListOptions {
        metadata_only: true,
        ..exact
    };
    assert_eq!(items(&list(&source, metadata).unwrap()), "o0@2 o1@3 o2@4");
}

#[test]
fn a_lagging_server_answers_any_version_with_an_old_state() {
    let source = filled(3);
    source.lag_at(Some(&3.into()));
    let page = list(&source, at("0", None)).unwrap();
    assert_eq!(
        (items(&page).as_str(), page.resource_version),
        ("o0@2 o1@3", 3.into())
    );
    for (version, version_match) in [("", None), ("4", Some(VersionMatch::NotOlderThan))] {
        let page = list(&source, at(version, version_match)).unwrap();
        assert_eq!(page.resource_version, 4.into());
    }
    source.compact(&4.into());
    let page = list(&source, at("0", None)).unwrap();
    assert_eq!(page.resource_version, 4.into(), "3 is forgotten");
}

#[test]
fn c026_a_namespace_is_listed_alone_in_pages_too() {
    let source = MemorySource::new();
    for namespace in ["a", "ab", "b", ""] {
        for name in ["x", "y", "z"] {
            source.upsert(ObjectKey::new(namespace, name).unwrap(), 0);
        }
    }
    for namespace in ["a", "ab", "b", "", "c"] {
        let mut options = limited(2);
        options.selectors.namespace = Some(namespace.to_owned());
        let first = list(&source, options.clone()).unwrap();
        source.upsert(ObjectKey::new(namespace, "w").unwrap(), 0);
        source
            .delete(&ObjectKey::new(namespace, "w").unwrap(), None)
            .unwrap();
        let known = namespace != "c";
        assert_eq!(first.items.len(), if known { 2 } else { 0 });
        if !known {
            continue;
        }
        options.continue_token = first.continue_token;
        let second = list(&source, options).unwrap();
        let keys: Vec<_> = first.items.into_iter().chain(second.items).collect();
        assert_eq!(keys.len(), 3);
        for item in keys {
            assert_eq!(item.unwrap().meta.key.namespace(), namespace);
        }
    }
    assert_eq!(list(&source, limited(0)).unwrap().items.len(), 12);
}
