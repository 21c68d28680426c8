//! Bodies that are streams of lines: NDJSON and CSV. One line is held at a time, so a stream may go on for ever.

use crate::problem::{Code, Problem};
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::StreamExt;
use std::time::Duration;

/// A line that is not blank, counted from 1, blank ones too.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its number.
    pub(crate) number: u64,
    /// Its text without the line's end, or why it could not be read.
    pub(crate) text: Result<Bytes, Problem>,
}

/// What a stream's lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A JSON value each.
    Ndjson,
    /// A record of RFC 4180 each.
    Csv,
}

/// Cuts a body into lines.
pub(crate) struct LineStream {
    body: BodyDataStream,
    /// What came and was not looked at yet.
    chunk: Bytes,
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
    /// Whether the present line is over the bound: the rest of it is passed over.
    skipping: bool,
    number: u64,
    bytes_max: usize,
    timeout: Duration,
    ended: bool,
}

impl LineStream {
    /// The lines of `body`, each of at most `bytes_max` bytes. The stream ends with an error when nothing comes for
    /// `timeout`.
    pub(crate) fn new(body: Body, bytes_max: usize, timeout: Duration) -> LineStream {
        LineStream {
            body: body.into_data_stream(),
            chunk: Bytes::new(),
            carry: Vec::new(),
            skipping: false,
            number: 0,
            bytes_max,
            timeout,
            ended: false,
        }
    }

    /// The next line that is not blank.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            while let Some(end) = memchr::memchr(b'\n', &self.chunk) {
                let mut piece = self.chunk.split_to(end + 1);
                piece.truncate(end);
                if let Some(line) = self.finish(piece) {
                    return Some(line);
                }
            }
            if self.ended {
                return None;
            }
            let rest = std::mem::take(&mut self.chunk);
            self.hold(&rest);
            match tokio::time::timeout(self.timeout, self.body.next()).await {
                Ok(Some(Ok(chunk))) => self.chunk = chunk,
                Ok(None) => {
                    self.ended = true;
                    return self.finish(Bytes::new());
                }
                Ok(Some(Err(_))) => return self.broken(Code::NotJson, "the body broke off"),
                Err(_) => return self.broken(Code::SlowBody, "no more of the body came in time"),
            }
        }
    }

    fn broken(&mut self, code: Code, why: &str) -> Option<Line> {
        self.ended = true;
        Some(Line { number: self.number + 1, text: Err(Problem::new(code, why)) })
    }

    /// Keeps the beginning of a line, unless the line is over the bound.
    fn hold(&mut self, rest: &[u8]) {
        if self.carry.len() + rest.len() > self.bytes_max {
            self.skipping = true;
            self.carry.clear();
        }
        if !self.skipping {
            self.carry.extend_from_slice(rest);
        }
    }

    /// The line that ends with `piece`; none if it is blank.
    fn finish(&mut self, piece: Bytes) -> Option<Line> {
        self.number += 1;
        let too_long = std::mem::take(&mut self.skipping) || self.carry.len() + piece.len() > self.bytes_max;
        let mut carry = std::mem::take(&mut self.carry);
        if too_long {
            let detail = format!("a line may have at most {} bytes", self.bytes_max);
            return Some(Line { number: self.number, text: Err(Problem::new(Code::TooLarge, detail)) });
        }
        let mut line = if carry.is_empty() {
            piece
        } else {
            carry.extend_from_slice(&piece);
            Bytes::from(carry)
        };
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        let blank = line.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Line { number: self.number, text: Ok(line) })
    }
}

/// What the lines of a body with these headers are.
pub(crate) fn content_type(headers: &HeaderMap, allowed: &[Format]) -> Result<Format, Problem> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let format = match essence.as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Format::Ndjson),
        "text/csv" => Some(Format::Csv),
        _ => None,
    };
    format.filter(|f| allowed.contains(f)).ok_or_else(|| {
        let csv = if allowed.contains(&Format::Csv) { " or `text/csv`" } else { "" };
        Problem::new(Code::WrongContentType, format!("send `Content-Type: application/x-ndjson`{csv}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    async fn lines(chunks: &[&'static str], max: usize) -> Vec<(u64, Result<String, Code>)> {
        let chunks: Vec<Result<&'static str, Infallible>> = chunks.iter().copied().map(Ok).collect();
        let body = Body::from_stream(stream::iter(chunks));
        let mut stream = LineStream::new(body, max, Duration::from_secs(5));
        let mut lines = Vec::new();
        while let Some(line) = stream.next().await {
            let text = line.text.map(|t| String::from_utf8(t.to_vec()).unwrap());
            lines.push((line.number, text.map_err(|p| p.code())));
        }
        lines
    }

    fn ok(number: u64, text: &str) -> (u64, Result<String, Code>) {
        (number, Ok(text.to_owned()))
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_how_the_body_is_cut() {
        let expected = vec![ok(1, "one"), ok(2, "two"), ok(4, "four")];
        assert_eq!(lines(&["one\ntwo\r\n\nfour"], 100).await, expected);
        assert_eq!(lines(&["o", "ne", "\n", "two\r", "\n\nfo", "ur\n"], 100).await, expected);
        assert_eq!(lines(&["one\n", "two\n  \n", "four\n\n\n"], 100).await, expected);
        assert_eq!(lines(&[], 100).await, vec![]);
    }

    #[tokio::test]
    async fn a_long_line_is_refused_and_the_next_is_read() {
        let expected = vec![(1, Err(Code::TooLarge)), ok(2, "abcd")];
        assert_eq!(lines(&["abcde\nabcd\n"], 4).await, expected);
        assert_eq!(lines(&["ab", "cd", "ef", "gh\nab", "cd"], 4).await, expected);
        assert_eq!(lines(&["abc", "de"], 4).await, vec![(1, Err(Code::TooLarge))]);
    }

    #[tokio::test]
    async fn a_silent_body_ends() {
        let body = Body::from_stream(
            stream::once(async { Ok::<_, Infallible>("one\ntw") }).chain(stream::pending()),
        );
        let mut lines = LineStream::new(body, 100, Duration::from_millis(20));
        assert!(lines.next().await.unwrap().text.is_ok());
        assert_eq!(lines.next().await.unwrap().text.unwrap_err().code(), Code::SlowBody);
        assert!(lines.next().await.is_none());
    }
}
