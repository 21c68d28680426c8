//! The JSON format: one object per line (RFC 8259). Empty texts are left out.

use super::{Head, digits, number, time};
use carillon_core::event::{Kind, Value};
use std::io::Write;

/// Appends the beginning of every line.
pub(super) fn begin(out: &mut Vec<u8>, head: &Head, at: &str) {
    out.extend_from_slice(b"{\"at\":\"");
    out.extend_from_slice(at.as_bytes());
    out.extend_from_slice(b"\",\"shard\":");
    number(out, head.shard.into());
    out.extend_from_slice(b",\"seq\":");
    number(out, head.seq);
    out.extend_from_slice(b",\"kind\":\"");
    out.extend_from_slice(head.kind.as_str().as_bytes());
    out.push(b'"');
}

/// Appends a field.
pub(super) fn field(out: &mut Vec<u8>, name: &str, value: Value<'_>) {
    if matches!(value, Value::Text("") | Value::Flag(None)) {
        return;
    }
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    let written = match value {
        Value::Text(text) => {
            string(out, text);
            Ok(())
        }
        Value::Number(n) => {
            number(out, n);
            Ok(())
        }
        Value::Notification(id) => write!(out, "\"{id}\""),
        Value::Address(address) => write!(out, "\"{address}\""),
        Value::Flag(flag) => write!(out, "{}", flag.unwrap_or_default()),
    };
    written.expect("writing to memory does not fail");
}

/// Appends a string (RFC 8259 §7).
fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&c| c < 0x20 || c == b'"' || c == b'\\') {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            c @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', c]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            c => write!(out, "\\u{c:04x}").expect("writing to memory does not fail"),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// The head of a line that [`begin`] began.
pub(super) fn head(line: &[u8]) -> Option<Head> {
    let (at, rest) = until(line.strip_prefix(b"{\"at\":\"")?, b'"')?;
    let (shard, rest) = until(rest.strip_prefix(b",\"shard\":")?, b',')?;
    let (seq, rest) = until(rest.strip_prefix(b"\"seq\":")?, b',')?;
    let (kind, _) = until(rest.strip_prefix(b"\"kind\":\"")?, b'"')?;
    Some(Head {
        at: time::parse(at)?,
        shard: digits(shard)?.try_into().ok()?,
        seq: digits(seq)?,
        kind: Kind::named(std::str::from_utf8(kind).ok()?)?,
    })
}

/// The text before the next `end`, and the text after it.
fn until(text: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&c| c == end)?;
    Some((&text[..at], &text[at + 1..]))
}
