//! What a mechanism says, as it stands in XML: base 64 (RFC 6120 §6.4.2), in both profiles.

use super::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::xml::Element;

/// What the client sent in an `<auth/>`, `<response/>` or `<initial-response/>`: none when nothing, as opposed to `=`,
/// which is the empty string (RFC 6120 §6.4.2).
pub fn decode(element: &Element) -> Result<Option<String>, Failure> {
    let text = |bytes| String::from_utf8(bytes).map_err(|_| Failure::MalformedRequest);
    decode_bytes(element)?.map(text).transpose()
}

/// The data of a mechanism whose messages are not text.
pub fn decode_bytes(element: &Element) -> Result<Option<Vec<u8>>, Failure> {
    match element.text().trim() {
        "" => Ok(None),
        "=" => Ok(Some(Vec::new())),
        text => BASE64.decode(text).map(Some).map_err(|_| Failure::IncorrectEncoding),
    }
}

/// Encodes a message; `=` stands for the empty one.
pub fn encode(data: &[u8]) -> String {
    if data.is_empty() { "=".to_owned() } else { BASE64.encode(data) }
}
