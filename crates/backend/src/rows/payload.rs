//! What a notification carries, as columns.

use bytes::Bytes;
use carillon_core::model::{EndpointId, Payload, PushRequest};
use std::borrow::Cow;

/// A payload as columns.
pub(crate) struct PayloadColumns<'a> {
    /// Whether it is XML.
    pub(crate) xml: bool,
    /// The text, or the element; for a request to push, the id of its endpoint and then the element.
    pub(crate) payload: Cow<'a, [u8]>,
    /// The resource of the client that a request is for.
    pub(crate) resource: Option<&'a str>,
}

impl PayloadColumns<'_> {
    /// The columns of a payload.
    pub(crate) fn of(payload: &Payload) -> PayloadColumns<'_> {
        let (xml, payload, resource) = match payload {
            Payload::Json(text) => (false, Cow::Borrowed(text.as_bytes()), None),
            Payload::Xml(element) => (true, Cow::Borrowed(&element[..]), None),
            Payload::Request(request) => {
                let PushRequest { endpoint, resource, element } = &**request;
                (true, Cow::Owned([&endpoint.0.to_be_bytes()[..], element].concat()), Some(&**resource))
            }
        };
        PayloadColumns { xml, payload, resource }
    }

    /// The payload of these columns, if it is one.
    pub(crate) fn read(&self) -> Option<Payload> {
        let PayloadColumns { xml, payload, resource } = self;
        if let Some(resource) = resource {
            let (endpoint, element) = payload.split_first_chunk()?;
            let endpoint = EndpointId(u128::from_be_bytes(*endpoint));
            let element = Bytes::copy_from_slice(element);
            let request = PushRequest { endpoint, resource: (*resource).into(), element };
            return Some(Payload::Request(request.into()));
        }
        match xml {
            true => Some(Payload::Xml(Bytes::copy_from_slice(payload))),
            false => Some(Payload::Json(std::str::from_utf8(payload).ok()?.into())),
        }
    }
}
