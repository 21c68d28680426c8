//! The avatar of a room (XEP-0486): the photos of its vCard, and how clients are told of them.

use crate::command::RoomPhoto;
use crate::error::StanzaError;
use crate::model::PhotoHash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Payload, PresenceType, Stanza};
use carillon_wire::xml::Element;
use sha1::{Digest, Sha1};

/// Photos of a vCard: the same image in several formats.
pub(in crate::room) const PHOTOS_MAX: usize = 4;

/// The hashes of the photos in a vCard. One that names an address instead of bytes has none.
pub(in crate::room) fn photos(vcard: &Element) -> Result<Box<[PhotoHash]>, StanzaError> {
    let refuse = |text: String| StanzaError::new(Condition::NotAcceptable).with_text(text);
    let mut hashes = Vec::new();
    for photo in vcard.children().filter(|child| child.is("PHOTO", ns::VCARD)) {
        let Some(bytes) = photo.child("BINVAL", ns::VCARD) else { continue };
        // XEP-0054 has it in lines.
        let text: String = bytes.text().split_ascii_whitespace().collect();
        let bytes = BASE64.decode(text).map_err(|_| refuse("the photo is not base64".to_owned()))?;
        if bytes.is_empty() {
            continue;
        }
        if hashes.len() == PHOTOS_MAX {
            return Err(refuse(format!("a vCard of a room has at most {PHOTOS_MAX} photos")));
        }
        hashes.push(PhotoHash(Sha1::digest(bytes).into()));
    }
    Ok(hashes.into())
}

/// A vCard with this photo in place of those that it had, or with none, and the hash of it. Empty bytes for one that says nothing else.
pub(in crate::room) fn replaced(
    before: Option<Bytes>,
    photo: Option<&RoomPhoto>,
) -> (Bytes, Box<[PhotoHash]>) {
    let before = Payload::from_raw(before.unwrap_or_default());
    let vcard = before.find("vCard", ns::VCARD).map(|vcard| vcard.element());
    let mut vcard = vcard.unwrap_or_else(|| Element::new("vCard", ns::VCARD));
    while vcard.take_child("PHOTO", ns::VCARD).is_some() {}
    let Some(RoomPhoto { media_type, bytes }) = photo else {
        let is_empty = vcard.children().next().is_none();
        let xml = if is_empty { Bytes::new() } else { Payload::from_element(&vcard).bytes().clone() };
        return (xml, Box::default());
    };
    let text = |name, text: String| Element::new(name, ns::VCARD).with_text(text);
    let photo = Element::new("PHOTO", ns::VCARD)
        .with_child(text("TYPE", media_type.to_string()))
        .with_child(text("BINVAL", BASE64.encode(bytes)));
    vcard.push(photo);
    let hash = PhotoHash(Sha1::digest(bytes).into());
    (Payload::from_element(&vcard).bytes().clone(), Box::new([hash]))
}

/// The presence by which a room tells which avatar it has (XEP-0486 §5.2, XEP-0153): the first, if there are several; an empty one for none.
pub(in crate::room) fn presence(room: &BareJid, photos: &[PhotoHash]) -> Stanza {
    let photo = Element::new("photo", ns::VCARD_UPDATE);
    let photo = match photos.first() {
        Some(hash) => photo.with_text(hash.to_string()),
        None => photo,
    };
    let mut presence = Stanza::presence(PresenceType::Available).with_from(room.to_jid());
    presence.payload.push_element(&Element::new("x", ns::VCARD_UPDATE).with_child(photo));
    presence
}

/// The field of disco#info that tells the same (XEP-0486 §3.3).
pub(in crate::room) fn hashes(photos: &[PhotoHash]) -> Element {
    let field = Element::new("field", ns::DATA_FORMS)
        .with_attr("var", "muc#roominfo_avatarhash")
        .with_attr("type", "text-multi")
        .with_attr("label", "Avatar hash");
    photos.iter().fold(field, |field, hash| {
        field.with_child(Element::new("value", ns::DATA_FORMS).with_text(hash.to_string()))
    })
}
