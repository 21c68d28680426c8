//! What serde says of a request, in the words of JSON: the types of Rust mean nothing to a sender.

/// What is wrong, for the one who sent it.
pub(super) fn plain(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    let known = [
        ("unknown field ", unknown_member as fn(&str) -> Option<String>),
        ("unknown variant ", unknown_word),
        ("missing field ", |rest| Some(format!("{rest} is missing"))),
        ("duplicate field ", |rest| Some(format!("{rest} is given twice"))),
        ("invalid type: ", wrong_type),
        ("invalid value: ", wrong_value),
        ("invalid length ", wrong_length),
    ];
    let found = known.iter().find_map(|(begin, say)| say(message.strip_prefix(begin)?));
    found.unwrap_or_else(|| syntax(message))
}

/// `` `a`, expected one of `b`, `c` ``
fn unknown_member(rest: &str) -> Option<String> {
    let (name, allowed) = rest.split_once(", ")?;
    Some(match allowed.strip_prefix("expected ") {
        Some(allowed) => format!("{name} is not known here; known: {}", list(allowed)),
        None => format!("{name} is not known here"),
    })
}

fn unknown_word(rest: &str) -> Option<String> {
    let (word, allowed) = rest.split_once(", expected ")?;
    Some(format!("{word} is not one of {}", list(allowed)))
}

fn wrong_type(rest: &str) -> Option<String> {
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!("expected {}, got {}", kind(expected), value(found)))
}

fn wrong_value(rest: &str) -> Option<String> {
    let (found, expected) = rest.rsplit_once(", expected ")?;
    Some(format!("{} is out of range: expected {}", value(found), kind(expected)))
}

/// `0, expected struct Name with 2 elements`: an array, which serde would take for a struct.
fn wrong_length(rest: &str) -> Option<String> {
    let (found, expected) = rest.split_once(", expected ")?;
    Some(match expected.starts_with("struct ") {
        true => "expected an object, got an array".to_owned(),
        false => format!("expected {}, got {found} entries", kind(expected)),
    })
}

fn list(allowed: &str) -> String {
    allowed.strip_prefix("one of ").unwrap_or(allowed).replace(" or ", ", ")
}

/// The expected type in the words of JSON.
fn kind(expected: &str) -> String {
    let known = match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer that is not negative",
        "i8" | "i16" | "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        "str" | "string" | "a formatted string" => "a string",
        "a sequence" => "an array",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("enum ") || other == "variant identifier" => "a string",
        other => other,
    };
    known.to_owned()
}

/// What was found. Strings are not repeated: a sender knows what it sent.
fn value(found: &str) -> &str {
    match found.split_once(' ') {
        Some(("string", _)) => "a string",
        Some(("integer" | "boolean", text)) => text.trim_matches('`'),
        Some(("floating", text)) => text.trim_start_matches("point ").trim_matches('`'),
        _ => match found {
            "sequence" => "an array",
            "map" => "an object",
            "unit value" => "null",
            other => other,
        },
    }
}

/// Errors of the JSON text itself, and of numbers in a query.
fn syntax(message: &str) -> String {
    let known = [
        ("invalid digit found in string", "expected an integer that is not negative"),
        ("cannot parse integer from empty string", "expected an integer, got nothing"),
        ("number too large to fit in target type", "the number is too large"),
        ("EOF while parsing", "the text ends too early: it breaks off in"),
        ("expected value", "expected a JSON value"),
        ("expected ident", "expected a JSON value"),
        ("trailing characters", "there is more after the JSON value"),
        ("recursion limit exceeded", "the values are nested too deeply"),
        ("provided string was not `true` or `false`", "expected `true` or `false`"),
    ];
    match known.iter().find(|(theirs, _)| message.contains(theirs)) {
        Some((theirs, ours)) => message.replace(theirs, ours),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn no_type_of_rust_and_no_word_of_serde_comes_through() {
        for (theirs, ours) in [
            ("unknown field `too`, expected `to`", "`too` is not known here; known: `to`"),
            (
                "unknown field `x`, expected one of `a`, `b` at line 1 column 4",
                "`x` is not known here; known: `a`, `b`",
            ),
            ("unknown field `x`, expected `a` or `b`", "`x` is not known here; known: `a`, `b`"),
            ("unknown field `x`, there are no fields", "`x` is not known here"),
            (
                "unknown variant `all`, expected one of `active`, `always`",
                "`all` is not one of `active`, `always`",
            ),
            ("missing field `to`", "`to` is missing"),
            ("duplicate field `to`", "`to` is given twice"),
            (
                "invalid type: string \"a, expected b\", expected u64",
                "expected an integer that is not negative, got a string",
            ),
            (
                "invalid type: floating point `1.5`, expected u64",
                "expected an integer that is not negative, got 1.5",
            ),
            ("invalid type: integer `1`, expected a string", "expected a string, got 1"),
            ("invalid type: null, expected struct NotificationBody", "expected an object, got null"),
            (
                "invalid type: map, expected a device or a list of devices",
                "expected a device or a list of devices, got an object",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "-1 is out of range: expected an integer that is not negative",
            ),
            (
                "invalid value: integer `300`, expected u8",
                "300 is out of range: expected an integer from 0 to 255",
            ),
            (
                "invalid length 0, expected struct NotificationBody with 9 elements",
                "expected an object, got an array",
            ),
            (
                "invalid length 3, expected an array of length 2",
                "expected an array of length 2, got 3 entries",
            ),
            ("limit: invalid digit found in string", "limit: expected an integer that is not negative"),
            (
                "EOF while parsing an object at line 1 column 1",
                "the text ends too early: it breaks off in an object",
            ),
        ] {
            assert_eq!(plain(theirs), ours);
        }
    }
}
