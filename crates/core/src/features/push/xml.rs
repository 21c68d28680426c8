//! What an app says of itself when it wants to be woken.

use crate::error::StanzaError;
use crate::model::{
    AppToken, PUSH_ROOMS_MAX, PushChannel, PushSecret, PushShown, PushWakes, RoomKind, WakesOn, WebPushKeys,
};
use crate::settings::Push;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// What an app wants.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) node: Box<str>,
    pub(super) channel: PushChannel,
    pub(super) shown: PushShown,
    pub(super) wakes: PushWakes,
    pub(super) rooms: Vec<(RoomKind, Box<str>)>,
}

/// Reads `<enable/>` of an account of `domain`. Its options are those of a form of publish-options (XEP-0357 §5): `endpoint`, `p256dh` and `auth` of a subscription
/// of Web Push, `endpoint` and `secret` of a webhook, or `app` and `token` of an app on a device; and `body`, `wakes` and `rooms`. Others are for app servers, and mean nothing here.
pub(super) fn read(enable: &Element, domain: &str, settings: &Push) -> Result<Wanted, StanzaError> {
    let node = enable.attr("node").unwrap_or_default();
    if node.is_empty() || node.len() > NODE_BYTES_MAX {
        return Err(bad_request("`node` is a name of 1 to 1024 bytes"));
    }
    let options = enable.child("x", ns::DATA_FORMS);
    let option = |name: &str| options.and_then(|form| value(form, name)).filter(|value| !value.is_empty());
    let shown = match option("body").as_deref() {
        None => PushShown::default(),
        Some("nothing") => PushShown::Nothing,
        Some("sender") => PushShown::Sender,
        Some("whole") => PushShown::Whole,
        Some(_) => return Err(not_acceptable("`body` is `nothing`, `sender` or `whole`")),
    };
    let wakes = options.map(wakes).transpose()?.unwrap_or_default();
    let rooms = options.map(|form| rooms(form, domain)).transpose()?.unwrap_or_default();
    let channel = match option("app") {
        Some(name) => app(&name, &option("token").unwrap_or_default(), domain, settings)?,
        None => by_url(option)?,
    };
    Ok(Wanted { node: node.into(), channel, shown, wakes, rooms })
}

/// What is to wake the app: the values of a field, if there is one.
fn wakes(form: &Element) -> Result<PushWakes, StanzaError> {
    let Some(field) = field(form, "wakes") else { return Ok(PushWakes::default()) };
    let values = field.children().filter(|child| child.is("value", ns::DATA_FORMS));
    let kind = |value: &Element| {
        let text = value.text();
        WakesOn::ALL.into_iter().find(|kind| kind.as_str() == text)
    };
    let kinds: Option<PushWakes> = values.map(kind).collect();
    kinds.ok_or_else(|| not_acceptable("`wakes` is some of `notifications`, `messages` and `mentions`"))
}

/// The rooms of which every message is to wake the app: the values of a field, if there is one.
fn rooms(form: &Element, domain: &str) -> Result<Vec<(RoomKind, Box<str>)>, StanzaError> {
    let Some(field) = field(form, "rooms") else { return Ok(Vec::new()) };
    let values = field.children().filter(|child| child.is("value", ns::DATA_FORMS));
    let room = |value: &Element| {
        let room = BareJid::new(&value.text()).ok()?;
        let (kind, of) = RoomKind::of_host(room.domain())?;
        room.local().filter(|_| of == domain).map(|name| (kind, name.into()))
    };
    let rooms: Option<Vec<_>> = values.take(PUSH_ROOMS_MAX + 1).map(room).collect();
    let rooms = rooms.filter(|rooms| rooms.len() <= PUSH_ROOMS_MAX);
    rooms.ok_or_else(|| not_acceptable("`rooms` are at most 100 addresses of rooms of your domain"))
}

/// An app on a device, which an operator has set up for the domain.
fn app(name: &str, token: &str, domain: &str, settings: &Push) -> Result<PushChannel, StanzaError> {
    let app = settings.app(name, domain);
    let app = app.ok_or_else(|| {
        StanzaError::new(Condition::ItemNotFound)
            .with_text("this domain has no app of the name that `app` gives")
    })?;
    let token = app.service.token(token).ok_or_else(|| {
        not_acceptable(
            "`token` is what the push service gave to the app: of APNs 64 to 200 hexadecimal digits",
        )
    })?;
    Ok(PushChannel::App(AppToken { service: app.service, app: app.name.clone(), token }))
}

/// A subscription of Web Push, or a webhook.
fn by_url(option: impl Fn(&str) -> Option<String>) -> Result<PushChannel, StanzaError> {
    let endpoint =
        option("endpoint").ok_or_else(|| not_acceptable("`endpoint` is the URL of a subscription"))?;
    let is_url = ["https://", "http://"].iter().any(|scheme| endpoint.starts_with(scheme));
    if !is_url || endpoint.len() > URL_BYTES_MAX || endpoint.bytes().any(|byte| byte <= b' ' || byte > b'~') {
        return Err(not_acceptable("`endpoint` is a URL of at most 2048 bytes"));
    }
    match (option("p256dh"), option("auth"), option("secret")) {
        (Some(key), Some(auth), _) => web_push(endpoint, &key, &auth),
        (None, None, Some(secret)) => webhook(endpoint, &secret),
        _ => {
            let text = "`p256dh` and `auth` of a subscription of Web Push, or the `secret` of a webhook";
            Err(not_acceptable(text))
        }
    }
}

fn web_push(endpoint: String, key: &str, auth: &str) -> Result<PushChannel, StanzaError> {
    let key = decode(key).and_then(|key| <[u8; 65]>::try_from(key).ok()).filter(|key| key[0] == 4);
    let p256dh =
        key.ok_or_else(|| not_acceptable("`p256dh` is an uncompressed point of P-256, in base64url"))?;
    let auth = decode(auth).filter(|auth| auth.len() == 16);
    let auth = auth.ok_or_else(|| not_acceptable("`auth` is 16 bytes, in base64url"))?;
    let auth = PushSecret(auth.into());
    Ok(PushChannel::WebPush(WebPushKeys { endpoint: endpoint.into(), p256dh, auth }))
}

fn webhook(url: String, secret: &str) -> Result<PushChannel, StanzaError> {
    let bytes = secret.strip_prefix("whsec_").and_then(decode);
    let bytes = bytes.filter(|bytes| (24..=64).contains(&bytes.len()));
    let bytes = bytes.ok_or_else(|| not_acceptable("`secret` is `whsec_` and 24 to 64 bytes in base64"))?;
    Ok(PushChannel::Webhook { url: url.into(), secret: PushSecret(bytes.into()) })
}

/// The first value of a field of a form.
fn value(form: &Element, name: &str) -> Option<String> {
    field(form, name)?.child("value", ns::DATA_FORMS).map(Element::text)
}

fn field<'a>(form: &'a Element, name: &str) -> Option<&'a Element> {
    let mut fields = form.children().filter(|child| child.is("field", ns::DATA_FORMS));
    fields.find(|field| field.attr("var") == Some(name))
}

/// Bytes in base64 or base64url, with or without padding.
fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.trim().replace('+', "-").replace('/', "_")).ok()
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}

fn not_acceptable(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::NotAcceptable).with_text(text)
}

/// The longest name of a registration.
const NODE_BYTES_MAX: usize = 1024;
/// The longest URL.
const URL_BYTES_MAX: usize = 2048;
