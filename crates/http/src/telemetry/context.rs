//! The header `traceparent` (W3C Trace Context, level 1).

use carillon_core::model::TraceContext;

/// What a caller says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) is_sampled: bool,
}

/// Reads a header; none if it says nothing that can be followed (§3.2.2, §4.3).
pub(super) fn read(header: &str) -> Option<Caller> {
    let (version, rest) = (number(header.get(..2)?, 2)?, header.get(2..)?);
    let [trace, span, flags] = [rest.get(1..33)?, rest.get(34..50)?, rest.get(51..53)?];
    let dashes = [rest.as_bytes().first(), rest.as_bytes().get(33), rest.as_bytes().get(50)];
    // Later versions may say more behind a dash.
    let is_whole = match rest.as_bytes().get(53) {
        None => true,
        Some(next) => version > 0 && *next == b'-',
    };
    if version == 0xff || !is_whole || dashes != [Some(&b'-'); 3] {
        return None;
    }
    let (trace, span) = (number(trace, 32)?, number(span, 16)? as u64);
    let is_sampled = number(flags, 2)? & 1 == 1;
    (trace != 0 && span != 0).then_some(Caller { trace, span, is_sampled })
}

/// A number in so many hexadecimal digits, in lower case.
fn number(text: &str, digits: usize) -> Option<u128> {
    let is_lower = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let is_number = text.len() == digits && text.bytes().all(is_lower);
    is_number.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// Writes the header of what is sampled.
pub(super) fn write(context: TraceContext) -> String {
    format!("00-{:032x}-{:016x}-01", context.trace, context.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa01c902b7";

    #[test]
    fn what_is_written_is_read() {
        let text = format!("00-{TRACE}-{SPAN}-01");
        let caller = read(&text).expect("a header");
        assert!(caller.is_sampled);
        assert_eq!(write(TraceContext { trace: caller.trace, span: caller.span }), text);
        assert_eq!(read(&format!("00-{TRACE}-{SPAN}-00")).map(|caller| caller.is_sampled), Some(false));
        assert_eq!(read(&format!("00-{TRACE}-{SPAN}-03")).map(|caller| caller.is_sampled), Some(true));
        assert!(read(&format!("01-{TRACE}-{SPAN}-01-more")).is_some(), "a later version");
    }

    #[test]
    fn what_cannot_be_followed_is_ignored() {
        let zero = "0".repeat(32);
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{zero}-{SPAN}-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-0"),
            format!("00_{TRACE}-{SPAN}-01"),
            format!("01-{TRACE}-{SPAN}-01.more"),
            format!("00-{TRACE}é{SPAN}-01"),
            format!("+0-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(read(&wrong), None, "{wrong}");
        }
    }
}
