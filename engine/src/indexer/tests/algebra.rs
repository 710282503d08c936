//! Queries against brute force.
use super::{changes, object, zone_indexer};
use crate::delta::Delta;
use crate::indexer::{Index, IndexDeclaration, Query, View};
use crate::object::Cached;
use crate::selector::LabelSelector;
use proptest::prelude::*;

type Zones = super::Zones;

/// A query, and the same as a function of one object.
#[derive(Clone, Debug)]
enum Tree {
    Everything,
    Zone(u8),
    Long,
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn query(&self, zone: &Index<Zones, u8>) -> Query<Zones> {
        match self {
            Self::Everything => Query::everything(),
            Self::Zone(value) => Query::has(zone, *value),
            Self::Long => Query::matches(|object: &Cached<Zones>| object.len() > 1),
            Self::Not(part) => part.query(zone).not(),
            Self::And(a, b) => a.query(zone).and(b.query(zone)),
            Self::Or(a, b) => a.query(zone).or(b.query(zone)),
        }
    }

    fn holds(&self, object: &Zones) -> bool {
        match self {
            Self::Everything => true,
            Self::Zone(value) => object.contains(value),
            Self::Long => object.len() > 1,
            Self::Not(part) => !part.holds(object),
            Self::And(a, b) => a.holds(object) && b.holds(object),
            Self::Or(a, b) => a.holds(object) || b.holds(object),
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        1 => Just(Tree::Everything),
        6 => (0..7u8).prop_map(Tree::Zone),
        1 => Just(Tree::Long),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|part| Tree::Not(Box::new(part))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Tree::Or(Box::new(a), Box::new(b))),
        ]
    })
}

fn names<'a, T: 'a>(objects: impl Iterator<Item = &'a Cached<T>>) -> Vec<String> {
    let mut names: Vec<_> = objects.map(|object| object.name().to_owned()).collect();
    names.sort_unstable();
    names
}

proptest! {
    #[test]
    fn any_combination_selects_what_a_scan_selects(
        objects in prop::collection::vec(prop::collection::vec(0..6u8, 0..4), 0..150),
        trees in prop::collection::vec(tree(), 1..6),
    ) {
        let (indexer, mut writer) = zone_indexer();
        let zone = indexer.index::<u8>("zone").unwrap();
        let deltas = objects.iter().enumerate().map(|(at, zones)| {
            Delta::Added(object(&format!("o{at}"), "u", at as u64, zones))
        });
        writer.apply(changes(1, deltas.collect()));
        let view = indexer.snapshot();
        for tree in trees {
            let query = tree.query(&zone);
            let found = view.select(&query).unwrap();
            prop_assert_eq!(names(found), names(view.iter().filter(|o| tree.holds(o))), "{:?}", tree);
            prop_assert!(!view.explain(&query).unwrap().is_empty());
        }
    }

    #[test]
    fn label_selectors_select_what_they_match(
        objects in prop::collection::vec(prop::collection::vec((0..3usize, 0..3usize), 0..3), 0..60),
        selector in prop::collection::vec((0..3usize, 0..6usize, 0..3usize), 0..4),
    ) {
        const KEYS: [&str; 3] = ["app", "tier", "canary"];
        const VALUES: [&str; 3] = ["a", "b", ""];
        type Labels = Vec<(usize, usize)>;
        let label = |labels: &Labels, key: &str| {
            labels.iter().find(|(k, _)| KEYS[*k] == key).map(|(_, v)| VALUES[*v])
        };
        let (indexer, mut writer) = crate::indexer::Indexer::<Labels>::builder()
            .declare(IndexDeclaration::labels("labels", |object: &Cached<Labels>, label| {
                for (key, value) in object.iter() {
                    label(KEYS[*key], VALUES[*value]);
                }
            }))
            .build();
        for (at, labels) in objects.iter().enumerate() {
            let mut labels = labels.clone();
            labels.sort_unstable();
            labels.dedup_by_key(|(key, _)| *key);
            let meta = crate::object::Meta::new("ns", &format!("o{at}"), "u", &at.to_string()).unwrap();
            let object = crate::object::Incoming::new(meta, labels);
            writer.apply(crate::delta::Batch::of(crate::delta::SourceId(0), Delta::Added(object.into())));
        }
        let text: Vec<_> = selector.iter().map(|(key, operator, value)| {
            let (key, value) = (KEYS[*key], ["a", "b", "c"][*value]);
            match operator {
                0 => format!("{key}={value}"),
                1 => format!("{key}!={value}"),
                2 => format!("{key} in (a, {value})"),
                3 => format!("{key} notin (a, {value})"),
                4 => key.to_owned(),
                _ => format!("!{key}"),
            }
        }).collect();
        let selector: LabelSelector = text.join(",").parse().unwrap();
        let index = indexer.index::<String>("labels").unwrap();
        let view = indexer.snapshot();
        let found = view.select(&Query::labels(&index, &selector)).unwrap();
        let expected = view.iter().filter(|object| selector.matches(|key| label(object, key)));
        prop_assert_eq!(names(found), names(expected), "{}", selector);
    }
}

#[test]
fn a_query_on_an_index_of_another_cache_is_an_error() {
    let (_, _writer) = zone_indexer();
    let (indexer, _other) = zone_indexer();
    let zone = indexer.index::<u8>("zone").unwrap();
    let (other, _its_writer) = zone_indexer();
    let view: &View<Zones> = &other.snapshot();
    assert!(view.select(&Query::has(&zone, 1)).is_err());
    assert!(view.explain(&Query::has(&zone, 1).not()).is_err());
}
