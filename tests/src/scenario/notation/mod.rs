//! The compact notation: objects, frames, requests, answers, calls, deltas, times and counts.
mod answer;
mod call;
mod count;
mod delta;
mod duration;
mod error;
mod frame;
mod object;
mod request;

pub use answer::{Answer, Exchange, ListAnswer, WatchAnswer, answer};
pub use call::{Call, CallPattern, Item, call_pattern, calls};
pub use count::Count;
pub use delta::{DeltaKind, DeltaPattern, QueueVerb};
pub use duration::{duration, show_duration};
pub use error::source_error;
pub use frame::{Frame, frames, is_frame};
pub use object::{ListItem, ObjectText, default_uid, show_key};
pub use request::{Kind, Matcher, Request, RequestPattern, is_request};

use super::trouble::{Place, Reading, Trouble};
use super::yaml::split_at;

/// `name(inside)rest`, where the text has that form: the parentheses belong together.
pub fn function(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('(')?;
    let name = text[..open].trim_end();
    let mut depth = 0;
    let mut quoted = false;
    for (at, c) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some((name, &text[open + 1..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

/// Text without the quotes around it.
pub fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// `name=value` arguments and bare words, separated by commas (or blanks).
fn arguments(text: &str, separator: char) -> Vec<(String, Option<String>)> {
    split_at(text, separator)
        .into_iter()
        .map(|part| match part.split_once('=') {
            Some((name, value)) if !name.starts_with('"') => {
                (name.trim().to_owned(), Some(unquoted(value).to_owned()))
            }
            _ => (unquoted(&part).to_owned(), None),
        })
        .collect()
}

fn inside<'a>(place: Place, text: &'a str, name: &str) -> Reading<&'a str> {
    match function(text) {
        Some((found, inner, rest)) if found == name && rest.trim().is_empty() => Ok(inner),
        _ => Err(Trouble::new(
            place,
            format!("{text:?} is not of the form {name}(…)"),
        )),
    }
}
