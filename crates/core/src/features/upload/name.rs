//! Names and media types of files.

use std::fmt::Write;

/// Bytes of a file's name: what file systems take.
const NAME_BYTES_MAX: usize = 255;
/// Bytes of a media type.
const TYPE_BYTES_MAX: usize = 127;

/// Whether a file may be called so: it is a name, no path, and nothing that a browser or a file system reads otherwise.
pub(super) fn is_name(name: &str) -> bool {
    let has_path = name.contains(['/', '\\']) || matches!(name, "." | "..");
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !has_path && !name.chars().any(char::is_control)
}

/// Whether it is a media type, with parameters or without (RFC 9110 §8.3.1).
pub(super) fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_token_byte);
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_essence =
        essence.trim_end().split_once('/').is_some_and(|(kind, of)| is_token(kind) && is_token(of));
    let is_printable = parameters.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_essence && is_printable && text.len() <= TYPE_BYTES_MAX
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a media type is one of these, such as `image/png` or `audio/*`; if there are none, any is. One that is not told is none of them.
pub(super) fn is_among(types: &[String], media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim_end();
    let is_one = |wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => essence.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start)),
        None => essence.eq_ignore_ascii_case(wanted),
    };
    types.is_empty() || types.iter().any(is_one)
}

/// A name as a segment of a URL (RFC 3986 §3.3).
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes everything");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        for name in ["a.png", "très cool.jpg", "...", "a\u{202e}b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a\\b", "a\r\nb", "a\0", "\u{85}", &"x".repeat(256)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn media_types_fit_into_a_header() {
        for text in ["image/png", "application/vnd.a+xml", "text/plain; charset=utf-8", "text/plain ;a=\"b\""]
        {
            assert!(is_media_type(text), "{text}");
        }
        for text in
            ["", "image", "/png", "image/", "a b/c", "text/plain\r\nx: y", "text/plain;\u{e9}", "a/b/c"]
        {
            assert!(!is_media_type(text), "{text}");
        }
    }

    #[test]
    fn types_are_listed_whole_or_by_their_beginning() {
        let types = ["image/*".to_owned(), "text/plain".to_owned()];
        for text in ["image/png", "Image/PNG", "text/plain; charset=utf-8"] {
            assert!(is_among(&types, text), "{text}");
        }
        for text in ["", "imag", "text/html", "image", "video/image/*"] {
            assert!(!is_among(&types, text), "{text}");
        }
        assert!(is_among(&[], ""));
    }

    #[test]
    fn names_are_segments_of_urls() {
        assert_eq!(encoded("très cool?.jpg"), "tr%C3%A8s%20cool%3F.jpg");
        assert_eq!(encoded("a-b_c.~#%"), "a-b_c.~%23%25");
    }
}
