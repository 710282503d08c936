//! Counts: `3`, `>= 3`, `2..60`.
use super::super::trouble::{Place, Reading, Trouble};
use std::fmt;

/// What a number shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    least: u64,
    most: u64,
    negated: bool,
}

impl Count {
    /// Exactly this.
    pub fn exactly(number: u64) -> Self {
        Self {
            least: number,
            most: number,
            negated: false,
        }
    }

    /// Read a count.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(place: Place, text: &str) -> Reading<Self> {
        let text = text.trim();
        let number = |text: &str| {
            text.trim()
                .replace(['_', ' '], "")
                .parse::<u64>()
                .map_err(|_| {
                    Trouble::new(place, format!("{text:?} is no count"))
                        .suggest("write 3, \">= 3\", \"< 200\" or 2..60")
                })
        };
        let (least, most) = if let Some(rest) = text.strip_prefix(">=") {
            (number(rest)?, u64::MAX)
        } else if let Some(rest) = text.strip_prefix("<=") {
            (0, number(rest)?)
        } else if let Some(rest) = text.strip_prefix('>') {
            (number(rest)?.saturating_add(1), u64::MAX)
        } else if let Some(rest) = text.strip_prefix('<') {
            let limit = number(rest)?;
            (
                0,
                limit
                    .checked_sub(1)
                    .ok_or_else(|| Trouble::new(place, "nothing is less than 0"))?,
            )
        } else if let Some((least, most)) = text.split_once("..") {
            (number(least)?, number(most.trim_start_matches('='))?)
        } else {
            let number = number(text)?;
            (number, number)
        };
        Ok(Self {
            least,
            most,
            negated: false,
        })
    }

    /// True when the number is as it shall be.
    pub fn allows(&self, number: u64) -> bool {
        (self.least..=self.most).contains(&number) != self.negated
    }

    /// The opposite.
    pub fn negate(&mut self) {
        self.negated = !self.negated;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("not ")?;
        }
        match (self.least, self.most) {
            (least, most) if least == most => write!(f, "{least}"),
            (least, u64::MAX) => write!(f, "at least {least}"),
            (0, most) => write!(f, "at most {most}"),
            (least, most) => write!(f, "{least} to {most}"),
        }
    }
}
