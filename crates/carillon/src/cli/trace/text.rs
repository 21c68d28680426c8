//! A line of a trace for people.

use crate::cli::output::{bytes, printable};
use serde_json::Value;

/// `12:30:01.123  in       alice@example.org/phone  message chat id=7 to=bob@example.org [body jabber:client] 112 B`
pub(super) fn line(line: &Value) -> String {
    let text = |key: &str| line[key].as_str().map(printable);
    let named = |key: &str| text(key).map(|value| format!("{key}={value}"));
    let list = |values: &Vec<Value>| {
        let values: Vec<String> = values.iter().filter_map(Value::as_str).map(printable).collect();
        format!("[{}]", values.join(", "))
    };
    let count = line["count"].as_u64().map(|count| format!("{count}"));
    let parts = [
        text("session"),
        text("what"),
        text("detail"),
        named("account"),
        named("node"),
        named("home"),
        named("until"),
        text("name"),
        text("type"),
        named("id"),
        named("from"),
        named("to"),
        line["payload"].as_array().map(list),
        line["bytes"].as_u64().map(bytes),
        count,
        text("xml"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // The time of day: the date is that of the reader.
    let at = text("at").and_then(|at| at.get(11..23).map(str::to_owned)).unwrap_or_default();
    format!("{at}  {:7}  {}", text("kind").unwrap_or_default(), parts.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_for_people() {
        let said = json!({
            "at": "2026-11-20T09:30:00.125Z", "kind": "in", "session": "a@x/r", "name": "message", "type": "chat", "id": "7\u{1b}[2J",
            "to": "b@x", "payload": ["body jabber:client"], "bytes": 112,
        });
        assert_eq!(
            line(&said),
            "09:30:00.125  in       a@x/r  message  chat  id=7\\u{1b}[2J  to=b@x  [body jabber:client]  112 B"
        );
        let missed = json!({"at": "2026-11-20T09:30:00.125Z", "kind": "missed", "count": 12});
        assert_eq!(line(&missed), "09:30:00.125  missed   12");
    }
}
