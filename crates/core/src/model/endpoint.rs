//! Endpoints of this server as a push service (RFC 8030): where senders of Web Push reach an application on a device, and the tokens in their URLs.

use super::{Audience, DomainId, Notification, NotificationId, Priority, UnixMs};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, Payload, Stanza};
use carillon_wire::xml::Element;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The id of an endpoint: 128 random bits. Who knows it cannot push: that takes the token ([`EndpointKey`]).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u128);

crate::form! { struct EndpointId(number) }

impl std::fmt::Debug for EndpointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for EndpointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::str::FromStr for EndpointId {
    type Err = NoEndpointId;

    fn from_str(text: &str) -> Result<EndpointId, NoEndpointId> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        number.map(EndpointId).ok_or(NoEndpointId)
    }
}

/// The text is not the id of an endpoint: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an endpoint")]
pub struct NoEndpointId;

/// What names an application, or one of its instances, to a client that distributes pushes: the SHA-256 of a text that the client knows.
pub type PushName = [u8; 32];

/// The public key of a sender of Web Push (RFC 8292 §3.2): an uncompressed point of P-256.
pub type SenderKey = [u8; 65];

/// Where senders of Web Push reach one instance of an application on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// The domain of its account.
    pub domain: DomainId,
    /// Its account.
    pub account: BareJid,
    /// The resource of the client that distributes its pushes.
    pub resource: Box<str>,
    /// The application.
    pub application: PushName,
    /// The instance of the application.
    pub instance: PushName,
    /// The only sender that it takes pushes of, if it is restricted to one.
    pub sender: Option<SenderKey>,
    /// When it was first asked for.
    pub created: UnixMs,
    /// Until when it takes pushes.
    pub expires: UnixMs,
}

/// What a sender of Web Push pushes to an endpoint (RFC 8030 §5).
#[derive(Clone, Copy, Debug)]
pub struct PushedMessage<'a> {
    /// What the application is given, which is encrypted for it where the sender follows RFC 8291.
    pub body: &'a [u8],
    /// How long it may wait for the client, milliseconds (`TTL`). With 0 it is for a client that is there.
    pub ttl_ms: u64,
    /// How urgent it is (`Urgency`).
    pub priority: Priority,
    /// It replaces an undelivered one of the same topic (`Topic`).
    pub topic: Option<&'a str>,
}

impl Endpoint {
    /// The notification that brings a push to the client.
    pub fn notification(&self, id: NotificationId, message: &PushedMessage<'_>, now: UnixMs) -> Notification {
        let element = Element::new("push", UNIFIED_PUSH)
            .with_attr("application", STANDARD.encode(self.application))
            .with_attr("instance", STANDARD.encode(self.instance))
            .with_text(STANDARD.encode(message.body));
        let element = Payload::from_element(&element).bytes().clone();
        let request = PushRequest { endpoint: self.id, resource: self.resource.clone(), element };
        let is_kept = message.ttl_ms > 0;
        Notification {
            id,
            domain: self.domain,
            to: self.account.clone(),
            audience: if is_kept { Audience::Always } else { Audience::Connected },
            priority: message.priority,
            expires: is_kept.then(|| now.plus(message.ttl_ms)),
            collapse_key: message.topic.map(|topic| self.collapse_key(topic).into()),
            key: None,
            payload: super::Payload::Request(request.into()),
            accepted: now,
            send_at: None,
        }
    }

    /// Pushes to this endpoint with this topic (RFC 8030 §5.4) replace each other, and no others.
    fn collapse_key(&self, topic: &str) -> String {
        let digest = Sha256::new().chain_update(self.id.0.to_be_bytes()).chain_update(topic).finalize();
        format!("webpush:{}", URL_SAFE_NO_PAD.encode(digest))
    }
}

/// The namespace in which clients ask for endpoints, and are given pushes: <https://codeberg.org/iNPUTmice/up>.
pub const UNIFIED_PUSH: &str = "http://gultsch.de/xmpp/drafts/unified-push";

/// What one client of an account is asked to take, by an IQ request to its full JID: a push to one of its endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushRequest {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The resource of the client.
    pub resource: Box<str>,
    /// The payload of the request: one element.
    pub element: Bytes,
}

crate::form! { struct PushRequest { endpoint, resource, element } }

impl PushRequest {
    /// The id of the request that carries this notification. It names the endpoint, too, so that whoever is told that an application is gone knows which.
    pub fn id(&self, notification: NotificationId) -> String {
        format!("{notification}.{}", self.endpoint)
    }

    /// The notification and the endpoint of a text of [`PushRequest::id`].
    pub fn read_id(text: &str) -> Option<(NotificationId, EndpointId)> {
        let (notification, endpoint) = text.split_once('.')?;
        Some((notification.parse().ok()?, endpoint.parse().ok()?))
    }

    /// Whether a response says that the application is gone, or that the client distributes no pushes: it never takes what it was asked to.
    pub fn is_refused_for_good(response: &Stanza) -> bool {
        let error = response.payload.find("error", ns::CLIENT).map(|error| error.element());
        let has = |condition| {
            error.as_ref().is_some_and(|error| error.child(condition, ns::STANZA_ERRORS).is_some())
        };
        response.kind == Kind::Iq(IqType::Error) && (has("item-not-found") || has("feature-not-implemented"))
    }
}

/// What the tokens in the URLs of endpoints and of messages are signed with.
#[derive(Clone)]
pub struct EndpointKey([u8; 32]);

impl std::fmt::Debug for EndpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EndpointKey")
    }
}

/// Bytes of a signature in a token.
const SIGNATURE: usize = 16;

impl EndpointKey {
    /// The key of a node, or of all nodes of a cell, with this secret.
    pub fn of(secret: &[u8; 32]) -> EndpointKey {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
        mac.update(b"carillon web push");
        EndpointKey(mac.finalize().into_bytes().into())
    }

    /// What stands for an endpoint in its URL: who has it may push. The same one for the same endpoint.
    pub fn endpoint(&self, domain: DomainId, id: EndpointId) -> String {
        self.sign(b"endpoint", domain, id.0)
    }

    /// The endpoint that a text of [`EndpointKey::endpoint`] stands for.
    pub fn read_endpoint(&self, text: &str) -> Option<(DomainId, EndpointId)> {
        self.check(b"endpoint", text).map(|(domain, id)| (domain, EndpointId(id)))
    }

    /// What stands for a push in the URL of its message: who has it may take it back.
    pub fn message(&self, domain: DomainId, id: NotificationId) -> String {
        self.sign(b"message", domain, id.0)
    }

    /// The push that a text of [`EndpointKey::message`] stands for.
    pub fn read_message(&self, text: &str) -> Option<(DomainId, NotificationId)> {
        self.check(b"message", text).map(|(domain, id)| (domain, NotificationId(id)))
    }

    fn mac(&self, purpose: &[u8], signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose);
        mac.update(signed);
        mac
    }

    fn sign(&self, purpose: &[u8], domain: DomainId, id: u128) -> String {
        let mut signed = [&domain.0.to_be_bytes()[..], &id.to_be_bytes()].concat();
        let signature = self.mac(purpose, &signed).finalize().into_bytes();
        signed.extend(signature.into_iter().take(SIGNATURE));
        URL_SAFE_NO_PAD.encode(signed)
    }

    /// What was signed for this purpose.
    fn check(&self, purpose: &[u8], text: &str) -> Option<(DomainId, u128)> {
        let mut signed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = signed.split_off(signed.len().checked_sub(SIGNATURE)?);
        self.mac(purpose, &signed).verify_truncated_left(&signature).ok()?;
        let (domain, id) = signed.split_first_chunk()?;
        Some((DomainId(u32::from_be_bytes(*domain)), u128::from_be_bytes(id.try_into().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        let (resource, element) = ("phone".into(), Bytes::from_static(b"<push xmlns='urn:x'/>"));
        proves("PushRequest", &PushRequest { endpoint: EndpointId(7), resource, element });
    }

    #[test]
    fn what_was_signed_is_read_and_nothing_else() {
        let (key, domain) = (EndpointKey::of(&[1; 32]), DomainId(7));
        let (endpoint, message) = (EndpointId(u128::MAX), NotificationId(1 << 100));
        let token = key.endpoint(domain, endpoint);
        assert_eq!(key.read_endpoint(&token), Some((domain, endpoint)));
        assert_eq!(key.endpoint(domain, endpoint), token, "the URL of an endpoint stays");
        assert_eq!(key.read_message(&key.message(domain, message)), Some((domain, message)));
        assert_eq!(key.read_message(&token), None, "it is for another purpose");
        assert_eq!(EndpointKey::of(&[2; 32]).read_endpoint(&token), None, "another node signed it");
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).expect("ASCII");
            assert_eq!(key.read_endpoint(&altered), None, "byte {at}");
        }
        for text in ["", "A", "AAAA", token.get(1..).unwrap_or_default(), &format!("{token}AAAA")] {
            assert_eq!(key.read_endpoint(text), None, "{text}");
        }
    }

    #[test]
    fn ids_are_32_digits() {
        let id = EndpointId(0x00ab);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "ab", "+00000000000000000000000000000ab", &"g".repeat(32), &"0".repeat(33)] {
            assert_eq!(wrong.parse::<EndpointId>(), Err(NoEndpointId), "{wrong}");
        }
    }

    #[test]
    fn pushes_of_one_topic_and_endpoint_replace_each_other() {
        let endpoint = |id| Endpoint {
            id: EndpointId(id),
            domain: DomainId(1),
            account: BareJid::new("alice@example.org").expect("an address"),
            resource: "phone".into(),
            application: [1; 32],
            instance: [2; 32],
            sender: None,
            created: UnixMs(0),
            expires: UnixMs(1),
        };
        let key = endpoint(1).collapse_key("news");
        assert!(key.len() <= 64, "{key}");
        assert_eq!(endpoint(1).collapse_key("news"), key);
        assert_ne!(endpoint(1).collapse_key("new"), key);
        assert_ne!(endpoint(2).collapse_key("news"), key);
    }
}
