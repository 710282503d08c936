//! Known words, and what was perhaps meant by an unknown one.

/// An error text for a word that is none of the known ones.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 2);
    match nearest {
        Some((_, nearest)) => format!("unknown {what} {word:?}; did you mean {nearest:?}?"),
        None => format!("unknown {what} {word:?}; there are {}", known.join(", ")),
    }
}

/// How many letters have to be changed, added or left out to get from one word to the other; two
/// neighbours that have changed places count as one.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut swapped: Vec<char> = from.chars().collect();
    for at in 1..swapped.len() {
        swapped.swap(at - 1, at);
        if swapped == to {
            return 1;
        }
        swapped.swap(at - 1, at);
    }
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for column in 0..to.len() {
            let substituted = diagonal + usize::from(letter != to[column]);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(row[column + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_unless_nothing_is_near() {
        assert!(unknown("key", "hanlders", &["handlers", "steps"]).contains("\"handlers\""));
        assert!(unknown("key", "zzzzzz", &["handlers", "steps"]).contains("there are"));
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("stroe", "store"), 1);
    }
}
