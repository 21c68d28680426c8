//! What commands print: aligned tables for people, JSON for programs.

use super::failure::Failure;
use serde_json::Value;
use std::io::Write;

/// Where a command prints to, and how.
pub(super) struct Output<'a> {
    out: &'a mut dyn Write,
    json: bool,
}

/// A column of a table: its head, and the member of each row that it shows; empty for the row itself.
pub(super) type Column = (&'static str, &'static str);

impl<'a> Output<'a> {
    /// An output to `out`.
    pub(super) fn new(out: &'a mut dyn Write, json: bool) -> Output<'a> {
        Output { out, json }
    }

    /// Whether programs read it.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A list of things.
    pub(super) fn rows(&mut self, rows: &[Value], columns: &[Column]) -> Result<(), Failure> {
        if self.json {
            return self.value(&Value::from(rows));
        }
        let heads = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        let cells =
            rows.iter().map(|row| columns.iter().map(|(_, key)| cell(key, member(row, key))).collect());
        let lines: Vec<Vec<String>> = std::iter::once(heads).chain(cells).collect();
        self.text(&align(&lines))
    }

    /// One thing with its members, nested ones too: first those that `order` names, then all others by name.
    pub(super) fn record(&mut self, record: &Value, order: &[&str]) -> Result<(), Failure> {
        if self.json {
            return self.value(record);
        }
        let mut lines = Vec::new();
        members("", record, &mut lines);
        let rank = |key: &str| order.iter().position(|first| key == *first).unwrap_or(order.len());
        lines.sort_by_key(|line| rank(&line[0]));
        self.text(&align(&lines))
    }

    /// That something was done: `said` to people, `value` to programs.
    pub(super) fn done(&mut self, said: &str, value: &Value) -> Result<(), Failure> {
        if self.json { self.value(value) } else { self.text(&format!("{said}\n")) }
    }

    /// Text for people, as it is.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    fn value(&mut self, value: &Value) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).expect("a JSON value has no keys that are not text");
        self.text(&format!("{text}\n"))
    }
}

/// What is said of something that was to be created: `what` and its name.
pub(super) fn created(what: &str, name: &str, is_new: bool) -> String {
    match is_new {
        true => format!("created {name}"),
        false => format!("{what} {name} exists already; nothing was changed"),
    }
}

fn member<'a>(row: &'a Value, key: &str) -> Option<&'a Value> {
    if key.is_empty() { Some(row) } else { row.get(key) }
}

/// The members of an object as lines of key and value.
fn members(prefix: &str, value: &Value, lines: &mut Vec<Vec<String>>) {
    let Value::Object(map) = value else {
        lines.push(vec![prefix.to_owned(), cell(prefix, Some(value))]);
        return;
    };
    for (key, value) in map {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        members(&key, value, lines);
    }
}

/// A value in a cell. `key` says by its last word what it counts.
fn cell(key: &str, value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
        Some(Value::String(text)) => printable(text),
        Some(Value::Number(number)) => match number.as_u64() {
            Some(n) if key.ends_with("bytes") || key.starts_with("bytes_") => bytes(n),
            Some(n) if key == "uptime_ms" => uptime(n),
            Some(n) if key.ends_with("_ms") => format!("{n} ms"),
            _ if key.ends_with("_ms") => format!("{} ms", decimal(number)),
            _ => decimal(number),
        },
        Some(Value::Array(items)) if items.is_empty() => "-".to_owned(),
        Some(Value::Array(items)) => {
            items.iter().map(|item| cell(key, Some(item))).collect::<Vec<_>>().join(" ")
        }
        Some(object @ Value::Object(_)) => object.to_string(),
    }
}

/// A number without the noise behind its second decimal.
fn decimal(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(fraction) => format!("{fraction:.2}"),
        None => number.to_string(),
    }
}

/// Text that others chose must not command the terminal.
pub(super) fn printable(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Bytes in the largest binary unit that leaves a digit before the point.
pub(super) fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = units.len().min((n.max(1).ilog2() / 10) as usize + 1) - 1;
    if power == 0 {
        return format!("{n} B");
    }
    format!("{:.1} {}", n as f64 / (1u64 << (10 * power)) as f64, units[power])
}

fn uptime(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, ..) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

/// Lines of cells with each column as wide as its widest cell, two spaces apart.
pub(super) fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| lines.iter().filter_map(|l| l.get(c)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    lines
        .iter()
        .map(|line| {
            let cells: Vec<String> =
                line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            format!("{}\n", cells.join("  ").trim_end())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(json: bool, print: impl FnOnce(&mut Output<'_>) -> Result<(), Failure>) -> String {
        let mut out = Vec::new();
        print(&mut Output::new(&mut out, json)).expect("a Vec takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn rows_are_aligned() {
        let rows =
            [json!({"name": "a", "on": true, "tags": ["x", "y"]}), json!({"name": "längere", "on": null})];
        let columns = [("NAME", "name"), ("ON", "on"), ("TAGS", "tags")];
        assert_eq!(
            printed(false, |o| o.rows(&rows, &columns)),
            "NAME     ON   TAGS\na        yes  x y\nlängere  -    -\n"
        );
        assert_eq!(printed(false, |o| o.rows(&[], &columns)), "NAME  ON  TAGS\n");
        let json: Value = serde_json::from_str(&printed(true, |o| o.rows(&rows, &columns))).expect("JSON");
        assert_eq!(json, Value::from(&rows[..]));
    }

    #[test]
    fn records_say_units_and_control_characters_are_harmless() {
        let record = json!({
            "resident_bytes": 1_572_864, "uptime_ms": 3_661_000, "delivery_p50_ms": 0.25, "store": {"waiting": 3},
            "who": "\u{1b}[2Jä",
        });
        assert_eq!(
            printed(false, |o| o.record(&record, &["store.waiting", "uptime_ms"])),
            "store.waiting    3\n\
             uptime_ms        1h 1m\n\
             delivery_p50_ms  0.25 ms\n\
             resident_bytes   1.5 MiB\n\
             who              \\u{1b}[2Jä\n"
        );
    }

    #[test]
    fn sizes_and_times_for_people() {
        assert_eq!([0, 1023, 1024, 1 << 30].map(bytes), ["0 B", "1023 B", "1.0 KiB", "1.0 GiB"]);
        assert_eq!([999, 61_000, 3_600_000, 90_000_000].map(uptime), ["0s", "1m 1s", "1h 0m", "1d 1h"]);
    }
}
