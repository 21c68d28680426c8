//! What is asked and told of slots.

use super::{UPLOAD, name};
use crate::error::StanzaError;
use crate::model::UnixMs;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// What a client wants to upload.
pub(super) struct Wanted {
    pub(super) name: Box<str>,
    /// Empty if it is not told.
    pub(super) media_type: Box<str>,
    pub(super) bytes: u64,
}

/// Reads a request (XEP-0363 §4).
pub(super) fn read(request: &Element) -> Result<Wanted, StanzaError> {
    let file_name = request.attr("filename").filter(|text| name::is_name(text));
    let file_name = file_name.ok_or_else(|| bad_request("`filename` is the name of a file"))?;
    let bytes = request.attr("size").and_then(|size| size.parse().ok()).filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or_else(|| bad_request("`size` is a number of bytes"))?;
    let media_type = request.attr("content-type").unwrap_or_default();
    if !media_type.is_empty() && !name::is_media_type(media_type) {
        return Err(bad_request("`content-type` is a media type"));
    }
    Ok(Wanted { name: file_name.into(), media_type: media_type.into(), bytes })
}

/// A slot (§5): the file is put where it is then found.
pub(super) fn slot(url: &str, right: &str) -> Element {
    let header = Element::new("header", UPLOAD)
        .with_attr("name", "Authorization")
        .with_text(format!("Bearer {right}"));
    Element::new("slot", UPLOAD)
        .with_child(Element::new("put", UPLOAD).with_attr("url", url).with_child(header))
        .with_child(Element::new("get", UPLOAD).with_attr("url", url))
}

/// What the service is and takes (§3).
pub(super) fn info((category, kind): (&str, &str), title: &str, file_bytes: u64) -> Element {
    let identity = Element::new("identity", ns::DISCO_INFO)
        .with_attr("category", category)
        .with_attr("type", kind)
        .with_attr("name", title);
    let feature = |var: &str| Element::new("feature", ns::DISCO_INFO).with_attr("var", var);
    let field = |var: &str, value: &str| {
        Element::new("field", ns::DATA_FORMS)
            .with_attr("var", var)
            .with_child(Element::new("value", ns::DATA_FORMS).with_text(value))
    };
    let form = Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "result")
        .with_child(field("FORM_TYPE", UPLOAD).with_attr("type", "hidden"))
        .with_child(field("max-file-size", &file_bytes.to_string()));
    Element::new("query", ns::DISCO_INFO)
        .with_child(identity)
        .with_child(feature(ns::DISCO_INFO))
        .with_child(feature(UPLOAD))
        .with_child(form)
}

/// The file is larger than files may be (§5).
pub(super) fn too_large(file_bytes: u64) -> StanzaError {
    let largest = Element::new("max-file-size", UPLOAD).with_text(file_bytes.to_string());
    StanzaError::new(Condition::NotAcceptable)
        .with_text(format!("a file has at most {file_bytes} bytes"))
        .with_app(Element::new("file-too-large", UPLOAD).with_child(largest))
}

/// There is no room, until a file of the account expires (§5).
pub(super) fn full(until: Option<UnixMs>) -> StanzaError {
    let error = StanzaError::new(Condition::ResourceConstraint)
        .with_text("your files, or those of your domain, take all the room there is");
    match until {
        Some(until) => error.with_app(Element::new("retry", UPLOAD).with_attr("stamp", until.to_xmpp())),
        None => error,
    }
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
