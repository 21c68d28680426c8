//! Spans as OTLP's protobuf (opentelemetry/proto/collector/trace/v1). The numbers of the fields are those of its `.proto` files, which are stable.

use super::span::{Span, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// The scope of all spans.
const SCOPE: &str = "carillon";
/// Bit 0: sampled (W3C).
const SAMPLED: u32 = 1;
/// `STATUS_CODE_ERROR`
const ERROR: u64 = 2;

/// An `ExportTraceServiceRequest` with these spans, of a process that is described so.
pub(super) fn request(resource: &[(&'static str, Value)], spans: &[Span]) -> Vec<u8> {
    message(|resource_spans| {
        resource_spans.part(1, |all| {
            all.part(1, |described| described.attributes(1, resource));
            all.part(2, |scoped| {
                scoped.part(1, |scope| {
                    scope.bytes(1, SCOPE.as_bytes());
                    scope.bytes(2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                spans.iter().for_each(|one| scoped.part(2, |out| span(out, one)));
            });
        });
    })
}

fn span(out: &mut Message, span: &Span) {
    out.bytes(1, &span.context.trace.to_be_bytes());
    out.bytes(2, &span.context.span.to_be_bytes());
    if span.parent != 0 {
        out.bytes(4, &span.parent.to_be_bytes());
    }
    out.bytes(5, span.name.as_bytes());
    out.varint(6, span.kind as u64);
    out.fixed64(7, nanos(span.start));
    // A clock that was set back makes no span of negative length.
    out.fixed64(8, nanos(span.end.max(span.start)));
    out.attributes(9, &span.attributes);
    for link in &span.links {
        out.part(13, |out| {
            out.bytes(1, &link.trace.to_be_bytes());
            out.bytes(2, &link.span.to_be_bytes());
        });
    }
    if let Some(error) = &span.error {
        out.part(15, |out| {
            out.bytes(2, error.as_bytes());
            out.varint(3, ERROR);
        });
    }
    out.fixed32(16, SAMPLED);
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A message of protobuf that is being written.
struct Message(Vec<u8>);

fn message(write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut out = Message(Vec::new());
    write(&mut out);
    out.0
}

impl Message {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u64, wire: u64) {
        self.number(field << 3 | wire);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.tag(field, 0);
        self.number(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u64, value: u32) {
        self.tag(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, 2);
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn part(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        self.bytes(field, &message(write));
    }

    /// `KeyValue`s.
    fn attributes(&mut self, field: u64, attributes: &[(&'static str, Value)]) {
        for (key, value) in attributes {
            self.part(field, |out| {
                out.bytes(1, key.as_bytes());
                out.part(2, |out| match value {
                    Value::Text(text) => out.bytes(1, text.as_bytes()),
                    Value::Number(number) => out.varint(3, number.cast_unsigned()),
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::SpanKind;
    use super::*;
    use carillon_core::model::TraceContext;
    use std::time::Duration;

    /// What `opentelemetry-proto` makes of the same; the whole of it is read by that in `tests/interop/test_otel.py`.
    #[test]
    fn a_span_is_written_as_protobuf() {
        let at = |ns| UNIX_EPOCH + Duration::from_nanos(ns);
        let context = TraceContext { trace: 1, span: 2 };
        let attributes = vec![("n", Value::Number(300))];
        let (links, error) = (Vec::new(), Some("no".into()));
        let (start, end) = (at(1), at(2));
        let one = Span {
            name: "a".into(),
            kind: SpanKind::Server,
            context,
            parent: 0,
            start,
            end,
            attributes,
            links,
            error,
        };
        let written = message(|out| span(out, &one));
        let trace = [&[0x0a, 16][..], &[0; 15], &[1], &[0x12, 8], &[0; 7], &[2]].concat();
        let rest = [
            &[0x2a, 1, b'a', 0x30, 2][..],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x41, 2, 0, 0, 0, 0, 0, 0, 0],
            &[0x4a, 8, 0x0a, 1, b'n', 0x12, 3, 0x18, 0xac, 0x02],
            &[0x7a, 6, 0x12, 2, b'n', b'o', 0x18, 2],
            &[0x85, 0x01, 1, 0, 0, 0],
        ]
        .concat();
        assert_eq!(written, [trace, rest].concat());
    }
}
