//! What the error hook was told, as expectations name it.
use super::notation::show_key;
use informant::ObjectKey;
use informant::informer::InformerError;
use informant::reflector::Fault;
use informant::source::{BadObject, SourceError};

/// One thing that the hook was told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its short name: `410`, `refused`, `bad(a)`, `panic(h1, a)`.
    pub name: String,
    /// The whole message.
    pub message: String,
}

impl Told {
    /// Give an error its name.
    pub fn of(error: &InformerError) -> Self {
        let key =
            |key: Option<&ObjectKey>| key.map_or("?".to_owned(), |key| show_key(key.as_str()));
        let name = match error {
            InformerError::Reflector { error, .. } => match &error.fault {
                Fault::Source(error) => source(error),
                Fault::NoAnswer(_) => "no_answer".to_owned(),
                Fault::SourcePanicked(_) => "source_panic".to_owned(),
                Fault::BadObject(BadObject { key: bad, .. }) => {
                    format!("bad({})", key(bad.as_ref()))
                }
                Fault::Foreign(kind) => format!("foreign({kind})"),
                Fault::ListWithoutVersion => "list_without_version".to_owned(),
                Fault::BookmarkWithoutVersion => "bookmark_without_version".to_owned(),
                Fault::WentBack { .. } => "went_back".to_owned(),
                Fault::VeryShortWatch(_) => "short_watch".to_owned(),
                Fault::StreamingListIncomplete { .. } => "incomplete_stream".to_owned(),
                other => format!("other({other})"),
            },
            InformerError::HandlerPanicked {
                handler,
                key: about,
                ..
            } => match about {
                Some(about) => format!("panic({handler}, {})", key(Some(about))),
                None => format!("panic({handler})"),
            },
            InformerError::Index(failure) => {
                format!("index({}, {})", failure.index, key(Some(&failure.key)))
            }
            InformerError::Inconsistent(_) => "inconsistent".to_owned(),
            other => format!("other({other})"),
        };
        Self {
            name,
            message: error.to_string(),
        }
    }

    /// True when `expected` names this: the whole name, the word before its parentheses, `~` and a
    /// part of the message, or `any`.
    pub fn is(&self, expected: &str) -> bool {
        if let Some(part) = expected.strip_prefix('~') {
            return self.message.contains(part.trim());
        }
        let bare = |text: &str| text.replace(' ', "").to_lowercase();
        let (name, expected) = (bare(&self.name), bare(expected));
        expected == "any" || name == expected || name.split('(').next() == Some(expected.as_str())
    }
}

fn source(error: &SourceError) -> String {
    match error {
        SourceError::Api(status) => status.code.to_string(),
        SourceError::ConnectionRefused(_) => "refused".to_owned(),
        SourceError::Transport(_) => "cut".to_owned(),
        SourceError::TimedOut => "timeout".to_owned(),
        SourceError::WrongKind { found, .. } => format!("kind({found})"),
        SourceError::Decode(_) => "decode".to_owned(),
        other => format!("other({other})"),
    }
}

/// The errors since the last look, compared.
///
/// # Errors
/// When they are not as expected.
pub fn compare(expected: &[String], told: &[Told]) -> Result<(), String> {
    let fits = expected.len() == told.len()
        && expected
            .iter()
            .zip(told)
            .all(|(expected, told)| told.is(expected));
    if fits {
        return Ok(());
    }
    let came: Vec<_> = told
        .iter()
        .map(|told| format!("\n      {}: {}", told.name, told.message))
        .collect();
    let came = if came.is_empty() {
        " none".to_owned()
    } else {
        came.concat()
    };
    Err(format!(
        "expected errors: {}\n    errors that came:{came}",
        if expected.is_empty() {
            "none".to_owned()
        } else {
            expected.join(", ")
        }
    ))
}
