//! What is wrong with a JSON text, for the one who sent it.

use super::words::plain;
use crate::problem::{Code, Problem};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};

/// Why `body` is not a `T`. Reads it a second time: the first, quick reading keeps no track of where it is.
pub(super) fn explain<T: DeserializeOwned>(body: &[u8]) -> Problem {
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => return syntax_error(&error),
        Ok(_) if !is_object(body) => {
            let detail = format!("expected an object, got {}", kind(body));
            return Problem::new(Code::WrongType, detail).at("");
        }
        Ok(_) => {}
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) if error.inner().classify() == Category::Data => {
            data_error(&pointer(error.path()), &error.into_inner().to_string())
        }
        Err(error) => syntax_error(error.inner()),
        Ok(_) => Problem::new(Code::NotJson, "there is more after the JSON value"),
    }
}

fn syntax_error(error: &serde_json::Error) -> Problem {
    let (what, line, column) = (plain(&error.to_string()), error.line(), error.column());
    Problem::new(Code::NotJson, format!("{what} (line {line}, column {column})"))
}

/// Whether a JSON text is that of an object.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|c| !c.is_ascii_whitespace()) == Some(&b'{')
}

/// What a JSON text is that is no object.
fn kind(body: &[u8]) -> &'static str {
    match body.iter().find(|c| !c.is_ascii_whitespace()) {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Tells serde's messages apart; they are the only place where it says which field it means.
fn data_error(pointer: &str, message: &str) -> Problem {
    let message = message.split(" at line ").next().unwrap_or(message);
    let field = message.split('`').nth(1).unwrap_or_default();
    let member = || child(pointer, field);
    let detail = plain(message);
    if message.starts_with("unknown field") {
        Problem::new(Code::UnknownField, detail).at(member())
    } else if message.starts_with("missing field") {
        Problem::new(Code::MissingField, detail).at(member())
    } else if message.starts_with("duplicate field") {
        Problem::new(Code::DuplicateField, detail).at(member())
    } else {
        Problem::new(Code::WrongType, detail).at(pointer)
    }
}

/// `pointer/field`, unless the path already ended at that field.
fn child(pointer: &str, field: &str) -> String {
    let step = format!("/{}", escape(field));
    if pointer.ends_with(&step) { pointer.to_owned() } else { format!("{pointer}{step}") }
}

fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escape(key))),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
        pointer
    })
}

/// RFC 6901 §3.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is tested")]
    struct Outer {
        name: String,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is tested")]
    struct Inner {
        size: u8,
    }

    fn why(body: &str) -> (Code, Option<String>) {
        let problem = explain::<Outer>(body.as_bytes());
        (problem.code(), problem.pointer().map(str::to_owned))
    }

    #[test]
    fn names_the_field() {
        assert_eq!(why(r#"{"name":"a","too/much":1}"#), (Code::UnknownField, Some("/too~1much".into())));
        assert_eq!(
            why(r#"{"name":"a","inner":[{"size":1},{"size":1,"x":2}]}"#),
            (Code::UnknownField, Some("/inner/1/x".into()))
        );
        assert_eq!(why("{}"), (Code::MissingField, Some("/name".into())));
        assert_eq!(why(r#"{"name":"a","name":"b"}"#), (Code::DuplicateField, Some("/name".into())));
        assert_eq!(
            why(r#"{"name":"a","inner":[{"size":300}]}"#),
            (Code::WrongType, Some("/inner/0/size".into()))
        );
    }

    #[test]
    fn what_is_not_json_is_not_json() {
        for body in ["", "{", "nope", "{\"name\":\"a\"}x", "\u{1}"] {
            assert_eq!(why(body).0, Code::NotJson, "{body}");
        }
    }

    #[test]
    fn what_is_no_object_is_said_to_be_none() {
        let said = |body: &str| {
            let problem = explain::<Outer>(body.as_bytes());
            (problem.code(), problem.detail().to_owned())
        };
        for (body, kind) in [
            ("[]", "an array"),
            (" [\"a\",null]", "an array"),
            ("3", "a number"),
            ("-1", "a number"),
            ("\"a\"", "a string"),
            ("true", "a boolean"),
            ("null", "null"),
        ] {
            assert_eq!(said(body), (Code::WrongType, format!("expected an object, got {kind}")), "{body}");
        }
        assert_eq!(said("not json"), (Code::NotJson, "expected a JSON value (line 1, column 2)".into()));
        assert_eq!(
            said("{} x"),
            (Code::NotJson, "there is more after the JSON value (line 1, column 4)".into())
        );
        let inner = said(r#"{"name":"a","inner":[[]]}"#);
        assert_eq!(inner, (Code::WrongType, "expected an object, got an array".into()));
    }
}
