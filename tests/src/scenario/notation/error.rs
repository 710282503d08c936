//! Errors of the transport: `410`, `ERR(504, Timeout, "text", cause=…)`, `refused`, `CUT`.
use super::super::trouble::{Place, Reading, Trouble};
use super::super::yaml::{Node, Value, split_at};
use super::{arguments, duration, function};
use informant::source::{ApiStatus, SourceError, StatusCause};

const WORDS: [&str; 6] = [
    "refused",
    "CUT",
    "timeout",
    "decode",
    "kind=Table",
    "ERR(410,Expired)",
];

/// Read an error: one of the words, a code, or `ERR(code, reason, …)`.
///
/// # Errors
/// When it is none.
pub fn source_error(node: &Node) -> Reading<SourceError> {
    if let Value::Mapping(entries) = &node.value {
        return from_mapping(node, entries);
    }
    let place = node.place;
    let text = node.expect_text("an error")?.trim();
    let lower = text.to_lowercase();
    match lower.as_str() {
        "cut" | "broken" => return Ok(SourceError::Transport("the connection was cut".to_owned())),
        "refused" | "connection refused" => {
            return Ok(SourceError::ConnectionRefused("nobody listens".to_owned()));
        }
        "timeout" | "read timeout" | "timed out" => return Ok(SourceError::TimedOut),
        "decode" | "garbage" => return Ok(SourceError::Decode("scripted garbage".to_owned())),
        _ => {}
    }
    if let Some(kind) = lower
        .strip_prefix("kind=")
        .or_else(|| lower.strip_prefix("kind "))
    {
        return Ok(SourceError::WrongKind {
            expected: "ThingList".to_owned(),
            found: text[text.len() - kind.len()..].trim().to_owned(),
        });
    }
    let inner = match function(text) {
        Some((name, inner, rest))
            if name.eq_ignore_ascii_case("err") || name.eq_ignore_ascii_case("error") =>
        {
            format!("{inner},{}", words_to_list(rest))
        }
        Some(_) => return Err(unknown(place, text)),
        None => words_to_list(text),
    };
    status(place, text, &inner)
}

/// `429 retry_after=3s` as a list of arguments.
fn words_to_list(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("HTTP ").unwrap_or(text);
    let text = text.strip_suffix(" at open").unwrap_or(text);
    split_at(&text.replace(',', " "), ' ').join(",")
}

fn status(place: Place, text: &str, arguments_text: &str) -> Reading<SourceError> {
    let mut status = ApiStatus::default();
    let (mut reason_given, mut causes) = (false, StatusCause::default());
    for (at, (name, value)) in arguments(arguments_text, ',').into_iter().enumerate() {
        match (name.as_str(), value) {
            (code, None) if at == 0 => {
                status.code = code.parse().map_err(|_| unknown(place, text))?;
            }
            (word, None) if !reason_given && !word.contains(' ') => {
                word.clone_into(&mut status.reason);
                reason_given = true;
            }
            (words, None) => words.clone_into(&mut status.message),
            (field, Some(value)) => {
                reason_given |= field == "reason";
                set(place, &mut status, &mut causes, field, &value)?;
            }
        }
    }
    Ok(finished(status, causes))
}

fn set(
    place: Place,
    status: &mut ApiStatus,
    cause: &mut StatusCause,
    field: &str,
    value: &str,
) -> Reading<()> {
    match field {
        "code" => {
            status.code = value
                .parse()
                .map_err(|_| Trouble::new(place, format!("{value:?} is no HTTP status code")))?;
        }
        "reason" => value.clone_into(&mut status.reason),
        "message" => value.clone_into(&mut status.message),
        "retry_after" | "retryAfterSeconds" => {
            let with_unit = format!("{value}s");
            let bare = value.parse::<f64>().is_ok();
            status.retry_after = Some(duration(place, if bare { &with_unit } else { value })?);
        }
        "cause" => value.clone_into(&mut cause.reason),
        "cause_message" => value.clone_into(&mut cause.message),
        other => {
            let known = [
                "code",
                "reason",
                "message",
                "retry_after",
                "cause",
                "cause_message",
            ];
            return Err(Trouble::unknown(place, "part of an error", other, known));
        }
    }
    Ok(())
}

fn finished(mut status: ApiStatus, cause: StatusCause) -> SourceError {
    if status.reason.is_empty() {
        usual_reason(status.code).clone_into(&mut status.reason);
    }
    if cause != StatusCause::default() {
        status.causes.push(cause);
    }
    SourceError::Api(status)
}

fn from_mapping(node: &Node, entries: &[(Node, Node)]) -> Reading<SourceError> {
    let mut status = ApiStatus::default();
    let mut cause = StatusCause::default();
    for (field, value) in entries {
        let text = value.expect_text("a part of an error")?;
        set(
            field.place,
            &mut status,
            &mut cause,
            field.expect_text("a key")?,
            text,
        )?;
    }
    if status.code == 0 {
        return Err(node.trouble("an error needs a code").suggest("code: 410"));
    }
    Ok(finished(status, cause))
}

/// What the API server says with a code.
fn usual_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    }
}

fn unknown(place: Place, text: &str) -> Trouble {
    let word = text.split(['(', ' ']).next().unwrap_or(text);
    Trouble::unknown(place, "answer", word, WORDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(text: &str) -> ApiStatus {
        match source_error(&Node::scalar(Place::default(), text)).unwrap() {
            SourceError::Api(status) => status,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_error_is_the_same_in_each_of_its_notations() {
        for text in [
            "410",
            "ERR(410)",
            "ERR(410,Expired)",
            "ERR(410, reason=Expired)",
            "HTTP 410 at open",
        ] {
            assert_eq!(api(text), ApiStatus::new(410, "Expired", ""), "{text}");
        }
        let status = api(
            "ERR(504, Timeout, \"Too large resource version\", cause=X, cause_message=\"a b\", retry_after=3s)",
        );
        assert_eq!(
            (status.message.as_str(), status.causes[0].reason.as_str()),
            ("Too large resource version", "X")
        );
        assert_eq!(status.causes[0].message, "a b");
        assert_eq!(api("429 retry_after=3s").retry_after.unwrap().as_secs(), 3);
    }

    #[test]
    fn what_is_no_error_is_refused_with_a_suggestion() {
        let told = source_error(&Node::scalar(Place::default(), "refuesd")).unwrap_err();
        assert_eq!(
            told.suggestion.as_deref(),
            Some("did you mean \"refused\"?")
        );
        assert!(source_error(&Node::scalar(Place::default(), "ERR(410, resaon=X)")).is_err());
    }
}
