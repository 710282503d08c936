//! What is wrong with a scenario file, where, and what was probably meant.
use std::fmt;

/// A place in a file; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A mistake in a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

/// What reading a part of a scenario gives.
pub type Reading<T> = Result<T, Trouble>;

impl Trouble {
    /// Something is wrong here.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            suggestion: None,
        }
    }

    /// Say what was probably meant.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// A word that is none of those that may stand here.
    pub fn unknown<'a>(
        place: Place,
        what: &str,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let trouble = Self::new(place, format!("unknown {what} {word:?}"));
        match nearest(word, &known) {
            Some(near) => trouble.suggest(format!("did you mean {near:?}?")),
            None => trouble.suggest(format!("known are: {}", known.join(", "))),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "{line}:{column}: {}", self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " ({suggestion})"),
            None => Ok(()),
        }
    }
}

/// The known word that is most like `word`, if any is alike.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let (near, distance) = known
        .iter()
        .map(|known| (*known, distance(&word, &known.to_lowercase())))
        .min_by_key(|(_, distance)| *distance)?;
    let is_part = word.len() > 2 && (near.contains(&word) || word.contains(near));
    (distance <= 1 + near.len().max(word.len()) / 3 || is_part).then_some(near)
}

/// Insertions, deletions, replacements and swaps of neighbours that make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_nonsense_is_answered_with_all() {
        let known = ["calls", "store", "requests", "watermark"];
        let told = |word| Trouble::unknown(Place::default(), "key", word, known).suggestion;
        assert_eq!(told("clals").as_deref(), Some("did you mean \"calls\"?"));
        assert_eq!(
            told("request").as_deref(),
            Some("did you mean \"requests\"?")
        );
        assert_eq!(
            told("water-mark").as_deref(),
            Some("did you mean \"watermark\"?")
        );
        assert!(
            told("xyzzyxyz")
                .unwrap()
                .starts_with("known are: calls, store")
        );
    }
}
