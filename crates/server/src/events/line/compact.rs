//! The compact format: the kind, the time in Unix milliseconds, the shard, the number, and the values of the kind's
//! fields, separated by tabs. In texts, backslash, tab, line feed and carriage return are written as `\\`, `\t`, `\n` and
//! `\r`.

use super::time::Stamp;
use super::{Head, digits, json, number};
use carillon_core::event::{Kind, Shape, Value};
use carillon_core::model::UnixMs;
use std::borrow::Cow;
use std::io::Write;

/// Appends the beginning of every line.
pub(super) fn begin(out: &mut Vec<u8>, head: &Head) {
    out.extend_from_slice(head.kind.as_str().as_bytes());
    for n in [head.at.0, head.shard.into(), head.seq] {
        out.push(b'\t');
        number(out, n);
    }
}

/// Appends a value.
pub(super) fn field(out: &mut Vec<u8>, value: Value<'_>) {
    out.push(b'\t');
    let written = match value {
        Value::Text(text) => {
            escape(out, text);
            Ok(())
        }
        Value::Number(n) => {
            number(out, n);
            Ok(())
        }
        Value::Notification(id) => write!(out, "{id}"),
        Value::Address(address) => write!(out, "{address}"),
        Value::Flag(None) => Ok(()),
        Value::Flag(Some(flag)) => write!(out, "{flag}"),
    };
    written.expect("writing to memory does not fail");
}

fn escape(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|c| matches!(c, b'\\' | b'\t' | b'\n' | b'\r')) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            _ => b"\\\\",
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

fn unescape(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text));
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(Cow::Owned(plain))
}

/// The head of a line.
pub(super) fn head(line: &[u8]) -> Option<Head> {
    parts(line).map(|(head, _)| head)
}

/// The head of a line, and the values behind it.
fn parts(line: &[u8]) -> Option<(Head, impl Iterator<Item = &[u8]>)> {
    let mut values = line.split(|&c| c == b'\t');
    let kind = Kind::named(std::str::from_utf8(values.next()?).ok()?)?;
    let at = UnixMs(digits(values.next()?)?);
    let shard = digits(values.next()?)?.try_into().ok()?;
    let seq = digits(values.next()?)?;
    Some((Head { at, shard, seq, kind }, values))
}

/// A line in the JSON form.
pub(super) fn to_json(line: &[u8]) -> Option<Vec<u8>> {
    let (head, mut values) = parts(line)?;
    let mut out = Vec::with_capacity(line.len() * 2);
    json::begin(&mut out, &head, Stamp::default().of(head.at));
    for field in head.kind.fields() {
        let text = match (values.next(), field.shape) {
            (Some(text), _) => std::str::from_utf8(text).ok()?,
            // A line that an older release wrote ends before its flag.
            (None, Shape::Flag) => "",
            (None, _) => return None,
        };
        let plain = unescape(text)?;
        let value = match field.shape {
            Shape::Text => Value::Text(&plain),
            Shape::Number => Value::Number(digits(text.as_bytes())?),
            Shape::Notification => Value::Notification(text.parse().ok()?),
            Shape::Address => Value::Address(text.parse().ok()?),
            Shape::Flag if text.is_empty() => Value::Flag(None),
            Shape::Flag => Value::Flag(Some(text.parse().ok()?)),
        };
        json::field(&mut out, field.name, value);
    }
    out.push(b'}');
    values.next().is_none().then_some(out)
}
