//! Whether the calls that came are those that were expected.
//!
//! Within one round (what one frame or one relist leads to) the order between keys is free, unless
//! the scenario says otherwise; the order of one key never is, nor that of rounds.
use super::notation::{Call, Item};

/// How much order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// Per key, and between rounds.
    #[default]
    Rounds,
    /// Exactly as written.
    Exact,
    /// Only per key.
    PerKey,
}

/// What is wrong, or nothing.
pub fn compare(expected: &[Item], seen: &[Call], order: Order) -> Option<String> {
    let mut search = Search {
        seen,
        used: vec![false; seen.len()],
        order,
        most_used: 0,
        tries: 0,
    };
    let todo: Vec<&Item> = expected.iter().rev().collect();
    if search.solve(&todo) {
        return None;
    }
    let list = |texts: Vec<String>| match texts.as_slice() {
        [] => " none".to_owned(),
        texts if texts.len() > 60 => format!(
            "\n      {} calls, beginning with\n      {}",
            texts.len(),
            texts[..60].join("\n      ")
        ),
        texts => format!("\n      {}", texts.join("\n      ")),
    };
    let wanted = list(expected.iter().map(ToString::to_string).collect());
    let came = list(
        seen.iter()
            .enumerate()
            .map(|(at, call)| {
                let mark = if at == search.most_used {
                    "   <- not as expected from here on"
                } else {
                    ""
                };
                format!("{}{mark}", call.what)
            })
            .collect(),
    );
    Some(format!(
        "expected calls:{wanted}\n    calls that came:{came}"
    ))
}

struct Search<'a> {
    seen: &'a [Call],
    used: Vec<bool>,
    order: Order,
    most_used: usize,
    tries: usize,
}

impl<'a> Search<'a> {
    /// `todo` is reversed: its last item comes next.
    fn solve(&mut self, todo: &[&'a Item]) -> bool {
        let mut todo = todo.to_vec();
        // Calls for which there is only one candidate need no recursion.
        let mut taken = Vec::new();
        let solved = loop {
            self.tries += 1;
            self.most_used = self
                .most_used
                .max(self.used.iter().filter(|used| **used).count());
            if self.tries > 200_000 {
                break false;
            }
            let Some(item) = todo.pop() else {
                break self.used.iter().all(|used| *used);
            };
            let candidates = self.candidates();
            match item {
                Item::One(pattern) => {
                    let fitting: Vec<usize> = candidates
                        .into_iter()
                        .filter(|at| pattern.matches(&self.seen[*at].what))
                        .collect();
                    match fitting.as_slice() {
                        [] => break false,
                        [only] => {
                            self.used[*only] = true;
                            taken.push(*only);
                        }
                        several => break self.try_each(several, &todo),
                    }
                }
                Item::OneOf(choices) => {
                    break choices
                        .iter()
                        .any(|choice| self.solve(&with(&todo, choice)));
                }
                Item::Maybe(items) => break self.solve(&with(&todo, items)) || self.solve(&todo),
                Item::AnyOrder(items) => {
                    break self.any_order(&items.iter().collect::<Vec<_>>(), &todo);
                }
                Item::Anything => {
                    if self.solve(&todo) {
                        break true;
                    }
                    todo.push(item);
                    match candidates.first() {
                        Some(first) => {
                            self.used[*first] = true;
                            taken.push(*first);
                        }
                        None => break false,
                    }
                }
            }
        };
        if !solved {
            for at in taken {
                self.used[at] = false;
            }
        }
        solved
    }

    fn try_each(&mut self, candidates: &[usize], todo: &[&'a Item]) -> bool {
        for at in candidates {
            self.used[*at] = true;
            if self.solve(todo) {
                return true;
            }
            self.used[*at] = false;
        }
        false
    }

    fn any_order(&mut self, items: &[&'a Item], todo: &[&'a Item]) -> bool {
        if items.is_empty() {
            return self.solve(todo);
        }
        for first in 0..items.len() {
            let mut rest = items.to_vec();
            let item = rest.remove(first);
            // Only what can come next at all is worth a try.
            if let Item::One(pattern) = item {
                let before = self.used.clone();
                let candidates = self.candidates();
                for at in candidates {
                    if pattern.matches(&self.seen[at].what) {
                        self.used[at] = true;
                        if self.any_order(&rest, todo) {
                            return true;
                        }
                        self.used.clone_from(&before);
                    }
                }
            } else {
                let mut next = todo.to_vec();
                next.extend(rest.iter().rev());
                next.push(item);
                if self.solve(&next) {
                    return true;
                }
            }
        }
        false
    }

    /// The calls that may come next.
    fn candidates(&self) -> Vec<usize> {
        let Some(first) = self.used.iter().position(|used| !used) else {
            return Vec::new();
        };
        if self.order == Order::Exact {
            return vec![first];
        }
        let round = self.seen[first].round;
        let mut keys = Vec::new();
        let mut candidates = Vec::new();
        for at in first..self.seen.len() {
            if self.order == Order::Rounds && self.seen[at].round != round {
                break;
            }
            if self.used[at] {
                continue;
            }
            let key = self.seen[at].what.key();
            if !keys.contains(&key) {
                keys.push(key);
                candidates.push(at);
            }
        }
        candidates
    }
}

fn with<'a>(todo: &[&'a Item], items: &'a [Item]) -> Vec<&'a Item> {
    let mut todo = todo.to_vec();
    todo.extend(items.iter().rev());
    todo
}

#[cfg(test)]
mod tests {
    use super::super::notation::{call_pattern, calls};
    use super::super::trouble::Place;
    use super::super::yaml::documents;
    use super::*;
    use informant::Timestamp;

    /// `ADD(a@1), ADD(b@1) | UPD(a@1 -> a@2)`: rounds are separated by bars.
    fn seen(text: &str) -> Vec<Call> {
        let mut seen = Vec::new();
        for (round, part) in text.split('|').enumerate() {
            for call in super::super::yaml::split_at(part, ',') {
                let what = call_pattern(Place::default(), &call).unwrap();
                seen.push(Call {
                    what,
                    round,
                    at: Timestamp::default(),
                });
            }
        }
        seen
    }

    fn fits(expected: &str, came: &str, order: Order) -> bool {
        let expected = calls(&documents(expected).unwrap()[0]).unwrap();
        compare(&expected, &seen(came), order).is_none()
    }

    #[test]
    fn the_order_between_keys_of_one_round_is_free_and_no_other() {
        let came = "ADD(a@1), ADD(b@1), UPD(a@1 -> a@2) | UPD(b@1 -> b@2)";
        for (expected, rounds, exact, per_key) in [
            (
                "[ADD(a@1), ADD(b@1), UPD(a@1 -> a@2), UPD(b@1 -> b@2)]",
                true,
                true,
                true,
            ),
            (
                "[ADD(b@1), ADD(a@1), UPD(a@1 -> a@2), UPD(b@1 -> b@2)]",
                true,
                false,
                true,
            ),
            (
                "[ADD(b@1), UPD(b@1 -> b@2), ADD(a@1), UPD(a@1 -> a@2)]",
                false,
                false,
                true,
            ),
            (
                "[UPD(a@1 -> a@2), ADD(a@1), ADD(b@1), UPD(b@1 -> b@2)]",
                false,
                false,
                false,
            ),
            ("[ADD(a@1), ADD(b@1), UPD(a@1 -> a@2)]", false, false, false),
            ("[]", false, false, false),
        ] {
            assert_eq!(fits(expected, came, Order::Rounds), rounds, "{expected}");
            assert_eq!(fits(expected, came, Order::Exact), exact, "{expected}");
            assert_eq!(fits(expected, came, Order::PerKey), per_key, "{expected}");
        }
    }

    #[test]
    fn alternatives_options_and_gaps() {
        for (expected, came, is_fit) in [
            ("[ADD(a@1) or ADD(a@2)]", "ADD(a@2)", true),
            ("[ADD(a@1) | nothing]", "", true),
            (
                "[{one_of: [[ADD(a@1), DEL(a@2)], []]}]",
                "ADD(a@1) | DEL(a@2)",
                true,
            ),
            ("[{one_of: [[ADD(a@1), DEL(a@2)], []]}]", "ADD(a@1)", false),
            (
                "[ADD(a@1), maybe UPD(a@1 -> a@1), DEL(a@2)]",
                "ADD(a@1) | DEL(a@2)",
                true,
            ),
            (
                "[ADD(a@1), maybe UPD(a@1 -> a@1), DEL(a@2)]",
                "ADD(a@1) | UPD(a@1 -> a@1) | DEL(a@2)",
                true,
            ),
            (
                "[{any_order: [ADD(a@1), ADD(b@1)]}]",
                "ADD(b@1) | ADD(a@1)",
                true,
            ),
            (
                "[ADD(a@1), ..., DEL(a@3)]",
                "ADD(a@1) | UPD(a@1 -> a@2) | DEL(a@3)",
                true,
            ),
            ("[..., DEL(a@4)]", "ADD(a@1) | DEL(a@3)", false),
            ("[\"...\"]", "", true),
        ] {
            assert_eq!(
                fits(expected, came, Order::Rounds),
                is_fit,
                "{expected} {came}"
            );
        }
    }
}
