//! Objects without a schema, and the text form of list answers and watch frames.
//!
//! [`JsonObject`] is any Kubernetes object as its JSON; a [`FieldPath`] reads fields of it, for
//! index functions. [`Frame::decode`] reads one recorded or received frame.
mod frame;
mod meta;
mod object;
mod path;

pub use frame::{Frame, FrameError, MAX_DEPTH};
pub use object::JsonObject;
pub use path::{FieldPath, FieldPathError};

/// What a JSON text is, by its first character: for messages about a wrong type.
fn type_of(text: &str) -> &'static str {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') | None => "null",
        Some(_) => "a number",
    }
}

/// What a JSON value is: for messages about a wrong type.
fn type_of_value(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
