//! What a push tells its app: JSON, as much of it as its policy shows and as push services take.

use super::encrypt::PLAINTEXT_MAX;
use crate::push_settings::templates::{Alert, Placeholder, PushTemplate};
use crate::values::time::Time;
use carillon_core::model::{Notification, Payload, Priority, Push, PushShown, PushSubject, RoomKind, UnixMs};
use carillon_core::ports::modules::PushText;
use carillon_wire::Framing;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Stanza, Unit, read};
use carillon_wire::xml::Limits;
use serde::Serialize;
use std::sync::Arc;

/// How much a push may tell, and in which words a device shows it.
#[derive(Clone, Debug)]
pub(super) struct Showing {
    /// The most that is told.
    pub(super) most: PushShown,
    /// The words of the account's domain, if it has any.
    pub(super) template: Option<Arc<PushTemplate>>,
    /// What a module has told instead.
    pub(super) rendered: Rendered,
}

/// What a module has told instead of what there is to tell, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rendered {
    title: Option<Box<str>>,
    body: Option<Box<str>>,
    data: Option<Box<str>>,
}

impl Rendered {
    /// What is told otherwise now than it was before a module saw it.
    pub(super) fn of(before: &PushText, now: PushText) -> Rendered {
        let changed =
            |now: Option<Box<str>>, before: &Option<Box<str>>| if now == *before { None } else { now };
        let title = changed(now.title, &before.title);
        Rendered {
            title: title.map(|title| title[..title.floor_char_boundary(TITLE_BYTES_MAX)].into()),
            body: changed(now.body, &before.body),
            data: changed(now.data, &before.data),
        }
    }
}

impl Showing {
    /// What a device shows of this, if that is said.
    fn alert(&self, told: &Told<'_>) -> Option<Alert> {
        let worded = self.template.as_deref().and_then(|template| template.alert(|of| told.value(of)));
        let Alert { mut title, mut body } = worded.unwrap_or(Alert { title: None, body: None });
        if let Some(other) = &self.rendered.title {
            title = Some(other.to_string());
        }
        if self.rendered.body.is_some() {
            // As much of it as has room.
            body.clone_from(&told.body);
        }
        (title.is_some() || body.is_some()).then_some(Alert { title, body })
    }
}

/// What a push tells its app.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told<'a> {
    /// `message` or `notification`.
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// Whose it is.
    #[serde(skip_serializing_if = "str::is_empty")]
    account: &'a str,
    /// The app's own name for its registration.
    #[serde(skip_serializing_if = "str::is_empty")]
    node: &'a str,
    /// Chat messages that wait.
    pub(super) messages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// The room that it is from, and the nick of its sender there.
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nick: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<serde_json::Value>,
    /// What a device shows, where there is a template for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) alert: Option<Alert>,
    /// Something was left out, or is not whole, because there was no room.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Told<'_> {
    /// What stands for a placeholder, if it is told.
    fn value(&self, placeholder: Placeholder) -> Option<String> {
        let in_payload = |name: &str| Some(self.payload.as_ref()?.get(name)?.as_str()?.to_owned());
        match placeholder {
            Placeholder::Account => Some(self.account.to_owned()),
            Placeholder::Sender => self.nick.clone().or_else(|| self.from.clone()),
            Placeholder::Room => self.room.as_deref()?.split('@').next().map(str::to_owned),
            Placeholder::Title => in_payload("title"),
            Placeholder::Body => self.body.clone().or_else(|| in_payload("body")),
            Placeholder::Messages => (self.kind == "message").then(|| self.messages.to_string()),
        }
    }
}

/// How soon a device is to be given it (RFC 8030 §5.3).
pub(super) fn urgency(push: &Push) -> &'static str {
    match &push.subject {
        PushSubject::Message { .. } => "high",
        PushSubject::Notification(notification) => match notification.priority {
            Priority::High => "high",
            Priority::Normal => "normal",
            Priority::Low => "low",
        },
    }
}

/// For how many seconds a push service keeps it (RFC 8030 §5.2).
pub(super) fn ttl(push: &Push, now: UnixMs) -> u64 {
    let expires = match &push.subject {
        PushSubject::Message { .. } => None,
        PushSubject::Notification(notification) => notification.expires,
    };
    expires.map_or(TTL_MAX, |at| (at.0.saturating_sub(now.0) / 1000).min(TTL_MAX))
}

/// Whether one that a push service still has is replaced by the next of the same topic (RFC 8030 §5.4).
pub(super) fn collapses(push: &Push) -> bool {
    match &push.subject {
        PushSubject::Message { .. } => true,
        PushSubject::Notification(notification) => notification.collapse_key.is_some(),
    }
}

/// What the app is told, as Web Push and webhooks have it.
pub(super) fn plaintext(push: &Push, showing: &Showing) -> Vec<u8> {
    within(push, showing, PLAINTEXT_MAX, write)
}

/// What the app is told, in at most `bytes_max` bytes as `render` writes it.
pub(super) fn within(
    push: &Push,
    showing: &Showing,
    bytes_max: usize,
    render: impl Fn(&Told<'_>) -> Vec<u8>,
) -> Vec<u8> {
    fit(told(push, showing), bytes_max, |told| {
        told.alert = showing.alert(told);
        render(told)
    })
}

/// What a module is given to decide on: what would be told, and shown.
pub(super) fn text(push: &Push, showing: &Showing) -> PushText {
    let told = told(push, showing);
    let alert = showing.alert(&told).unwrap_or(Alert { title: None, body: None });
    let in_payload = |name: &str| Some(told.payload.as_ref()?.get(name)?.as_str()?.to_owned());
    let title = alert.title.or_else(|| in_payload("title"));
    let body = alert.body.or_else(|| told.body.clone()).or_else(|| in_payload("body"));
    PushText {
        kind: told.kind.into(),
        account: told.account.into(),
        channel: push.registration.channel.kind().as_str().into(),
        from: told.from.map(String::into_boxed_str),
        title: title.map(String::into_boxed_str),
        body: body.map(String::into_boxed_str),
        data: told.payload.map(|payload| payload.to_string().into()),
    }
}

/// All that may be told.
fn told<'a>(push: &'a Push, showing: &Showing) -> Told<'a> {
    let shown = push.registration.shown.min(showing.most);
    let mut told = Told {
        kind: "message",
        account: push.registration.account.as_str(),
        node: &push.registration.node,
        messages: push.messages,
        id: None,
        from: None,
        room: None,
        nick: None,
        sent: None,
        body: None,
        collapse_key: None,
        payload: None,
        alert: None,
        truncated: false,
    };
    match &push.subject {
        PushSubject::Message { stanza, received } => message(&mut told, stanza, *received, shown),
        PushSubject::Notification(notification) => notified(&mut told, notification, shown),
    }
    let Rendered { title: _, body, data } = &showing.rendered;
    if let Some(body) = body {
        told.body = Some(body.to_string());
    }
    if let Some(data) = data {
        told.payload = serde_json::from_str(data).ok();
    }
    told
}

fn message(told: &mut Told<'_>, stanza: &[u8], received: UnixMs, shown: PushShown) {
    let Some(stanza) = parsed(stanza).filter(|_| shown >= PushShown::Sender) else { return };
    told.from = stanza.from.as_ref().map(|from| from.bare_str().to_owned());
    if let Some(from) = stanza.from.as_ref().filter(|from| is_of_room(from, told.account)) {
        told.room = Some(from.bare_str().to_owned());
        told.nick = from.resource().map(str::to_owned);
    }
    told.id = stanza.id.as_deref().map(str::to_owned);
    told.sent = Some(Time(received));
    if shown >= PushShown::Whole {
        told.body = stanza.payload.find("body", ns::CLIENT).map(|body| body.element().text());
    }
}

/// Whether it is a room of the account's domain: anybody else may only look like one.
fn is_of_room(from: &Jid, account: &str) -> bool {
    let domain = account.split_once('@').map(|(_, domain)| domain);
    RoomKind::of_host(from.domain()).is_some_and(|(_, of)| Some(of) == domain)
}

fn parsed(stanza: &[u8]) -> Option<Stanza> {
    match read(stanza, &Context::new(Framing::Tcp, Limits::trusted())) {
        Ok(Unit::Stanza(stanza)) => Some(stanza),
        _ => None,
    }
}

fn notified<'a>(told: &mut Told<'a>, notification: &'a Notification, shown: PushShown) {
    told.kind = "notification";
    told.id = Some(notification.id.to_string());
    told.sent = Some(Time(notification.accepted));
    told.collapse_key = notification.collapse_key.as_deref().filter(|_| shown >= PushShown::Sender);
    if shown >= PushShown::Whole {
        told.payload = Some(match &notification.payload {
            // It was checked when it was taken.
            Payload::Json(json) => serde_json::from_str(json).unwrap_or_else(|_| (&**json).into()),
            Payload::Xml(xml) => String::from_utf8_lossy(xml).into(),
            // What is for one client wakes no app.
            Payload::Request(request) => String::from_utf8_lossy(&request.element).into(),
        });
    }
}

/// Leaves out what does not fit: the payload, the end of the body, and then the rest that is not needed.
fn fit<'a>(mut told: Told<'a>, bytes_max: usize, render: impl Fn(&mut Told<'a>) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = render(&mut told);
    while bytes.len() > bytes_max {
        told.truncated = true;
        let over = bytes.len() - bytes_max;
        match &mut told {
            Told { payload: payload @ Some(_), .. } => *payload = None,
            Told { body: Some(body), .. } if !body.is_empty() => {
                // At least as much as is over, since no character takes less room in JSON than by itself; and never half a character.
                let keep = body.len().saturating_sub(over.max(1).div_ceil(6));
                body.truncate(body.floor_char_boundary(keep));
            }
            Told { id: id @ Some(_), .. } => *id = None,
            Told { from: from @ Some(_), room, nick, .. } => (*from, *room, *nick) = (None, None, None),
            Told { collapse_key: key @ Some(_), .. } => *key = None,
            Told { account: "", node: "", .. } => break,
            Told { account, node, .. } => (*account, *node) = ("", ""),
        }
        bytes = render(&mut told);
    }
    bytes
}

/// As JSON.
pub(super) fn write(told: &Told<'_>) -> Vec<u8> {
    serde_json::to_vec(told).expect("it is plain data")
}

/// The longest title by a module, in bytes: that of templates.
const TITLE_BYTES_MAX: usize = 500;
/// Four weeks: some push services refuse more.
const TTL_MAX: u64 = 28 * 86_400;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::push_settings::templates::{PushTemplateSettings, PushTemplates};
    use carillon_core::model::{
        Audience, DomainId, NotificationId, PushChannel, PushHealth, PushId, PushRegistration, PushSecret,
        PushWakes, RegistrationId, WebPushKeys,
    };
    use carillon_wire::jid::BareJid;
    use serde_json::{Value, json};

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    impl From<PushShown> for Showing {
        fn from(most: PushShown) -> Showing {
            Showing { most, template: None, rendered: Rendered::default() }
        }
    }

    /// With the words of a template.
    pub(in super::super) fn worded(most: PushShown, title: &str, body: &str) -> Showing {
        let settings = PushTemplateSettings {
            domains: Vec::new(),
            title: vec![title.to_owned()],
            body: vec![body.to_owned()],
        };
        let templates = PushTemplates::new(&[("a".to_owned(), settings)].into()).expect("a template");
        Showing { most, template: templates.of("d.example"), rendered: Rendered::default() }
    }

    pub(in super::super) fn push(id: u64, endpoint: &str, subject: PushSubject) -> Push {
        let keys =
            WebPushKeys { endpoint: endpoint.into(), p256dh: [4; 65], auth: PushSecret([1; 16].into()) };
        let registration = PushRegistration {
            id: RegistrationId(1),
            domain: DomainId(1),
            account: BareJid::new("alice@d.example").expect("an address"),
            node: "phone".into(),
            channel: PushChannel::WebPush(keys),
            shown: PushShown::Whole,
            wakes: PushWakes::default(),
            rooms: Vec::new(),
            created: NOW,
            health: PushHealth::default(),
        };
        let topic = "m:bob@d.example".into();
        Push { id: PushId(id), version: 1, topic, registration: registration.into(), messages: 2, subject }
    }

    pub(in super::super) fn said(body: &str) -> PushSubject {
        let stanza =
            format!("<message from='bob@d.example/r' id='7' type='chat'><body>{body}</body></message>");
        PushSubject::Message { stanza: stanza.into(), received: NOW }
    }

    fn notification(payload: Payload) -> PushSubject {
        let notification = Notification {
            id: NotificationId(7),
            domain: DomainId(1),
            to: BareJid::new("alice@d.example").expect("an address"),
            audience: Audience::Always,
            priority: Priority::Low,
            expires: Some(NOW.plus(90_500)),
            collapse_key: Some("news".into()),
            key: None,
            payload,
            accepted: NOW,
            send_at: None,
        };
        PushSubject::Notification(notification.into())
    }

    fn told(push: &Push, most: PushShown) -> Value {
        serde_json::from_slice(&plaintext(push, &most.into())).expect("JSON")
    }

    #[test]
    fn no_more_is_shown_than_the_app_and_the_operator_want() {
        let push = push(1, "https://push.example/", said("hi &amp; bye"));
        let (account, node) = ("alice@d.example", "phone");
        let nothing = json!({ "type": "message", "account": account, "node": node, "messages": 2 });
        assert_eq!(told(&push, PushShown::Nothing), nothing);
        let mut sender = nothing;
        sender["from"] = "bob@d.example".into();
        sender["id"] = "7".into();
        sender["sent"] = NOW.to_xmpp().into();
        assert_eq!(told(&push, PushShown::Sender), sender);
        let mut whole = sender.clone();
        whole["body"] = "hi & bye".into();
        assert_eq!(told(&push, PushShown::Whole), whole);
        let mut modest = push;
        let registration = PushRegistration { shown: PushShown::Sender, ..(*modest.registration).clone() };
        modest.registration = registration.into();
        assert_eq!(told(&modest, PushShown::Whole), sender);
    }

    #[test]
    fn notifications_carry_their_payload() {
        let push = push(1, "https://push.example/", notification(Payload::Json(r#"{"n":1}"#.into())));
        let all = told(&push, PushShown::Whole);
        assert_eq!((&all["payload"], &all["collapse_key"]), (&json!({ "n": 1 }), &json!("news")));
        assert_eq!(told(&push, PushShown::Nothing).get("payload"), None);
        assert_eq!((urgency(&push), ttl(&push, NOW), collapses(&push)), ("low", 90, true));
        assert_eq!(ttl(&push, NOW.plus(1_000_000)), 0);
    }

    #[test]
    fn what_is_shown_is_in_the_words_of_the_domain() {
        let alert = |push: &Push, most, title: &str, body: &str| {
            let text = plaintext(push, &worded(most, title, body));
            serde_json::from_slice::<Value>(&text).expect("JSON")["alert"].clone()
        };
        let chat = push(1, "https://push.example/", said("hi"));
        let whole = json!({ "title": "From bob@d.example", "body": "hi (2)" });
        assert_eq!(alert(&chat, PushShown::Whole, "From {sender}", "{body} ({messages})"), whole);
        // No more than may be told.
        assert_eq!(
            alert(&chat, PushShown::Sender, "From {sender}", "{body}"),
            json!({ "title": "From bob@d.example" })
        );
        assert_eq!(
            alert(&chat, PushShown::Nothing, "From {sender}", "News for {account}"),
            json!({ "body": "News for alice@d.example" })
        );
        assert_eq!(alert(&chat, PushShown::Nothing, "From {sender}", "{body}"), Value::Null);
        let goal = push(
            1,
            "https://push.example/",
            notification(Payload::Json(r#"{"title":"Goal","body":"2:1"}"#.into())),
        );
        assert_eq!(
            alert(&goal, PushShown::Whole, "{title}!", "{body}"),
            json!({ "title": "Goal!", "body": "2:1" })
        );
        assert_eq!(alert(&goal, PushShown::Whole, "{sender}", "{messages}"), Value::Null);
        for (room, shown) in [
            ("tea@rooms.d.example/Bob", json!({ "title": "Bob in tea", "body": "hi" })),
            ("tea@rooms.other.example/Bob", json!({ "body": "hi" })),
        ] {
            let stanza = format!(
                "<message from='{room}' type='chat'><body>hi</body><x xmlns='http://jabber.org/protocol/muc#user'/></message>"
            );
            let subject = PushSubject::Message { stanza: stanza.into(), received: NOW };
            let private = push(1, "https://push.example/", subject);
            assert_eq!(alert(&private, PushShown::Whole, "{sender} in {room}", "{body}"), shown);
        }
        // What is told and shown fits together.
        let long = push(1, "https://push.example/", said(&"a".repeat(9000)));
        let text = plaintext(&long, &worded(PushShown::Whole, "{sender}", "{body}"));
        let told: Value = serde_json::from_slice(&text).expect("JSON");
        assert!(text.len() <= PLAINTEXT_MAX && told["body"].as_str().is_some_and(|body| body.len() > 2000));
        assert!(told["alert"]["body"].as_str().is_some_and(|body| body.ends_with("a\u{2026}")));
    }

    /// What is told of a push when a module has changed its text so.
    fn rendered(push: &Push, mut showing: Showing, change: impl FnOnce(&mut PushText)) -> Value {
        let before = text(push, &showing);
        let mut now = before.clone();
        change(&mut now);
        showing.rendered = Rendered::of(&before, now);
        serde_json::from_slice(&plaintext(push, &showing)).expect("JSON")
    }

    #[test]
    fn a_module_decides_on_what_is_told_and_shown() {
        let chat = push(1, "https://push.example/", said("hi"));
        let words = || worded(PushShown::Whole, "From {sender}", "{body}!");
        let given = text(&chat, &words());
        assert_eq!(
            (&*given.kind, &*given.account, &*given.channel),
            ("message", "alice@d.example", "web_push")
        );
        assert_eq!(
            (given.title.as_deref(), given.body.as_deref()),
            (Some("From bob@d.example"), Some("hi!"))
        );
        assert_eq!((given.from.as_deref(), given.data), (Some("bob@d.example"), None));
        let told = rendered(&chat, words(), |_| {});
        assert_eq!((&told["body"], &told["alert"]["body"]), (&json!("hi"), &json!("hi!")));
        // Nothing of what is replaced is told.
        let told = rendered(&chat, words(), |text| text.body = Some("…".into()));
        assert_eq!(told["alert"], json!({ "title": "From bob@d.example", "body": "…" }));
        assert!(!told.to_string().contains("hi"), "{told}");
        let told = rendered(&chat, PushShown::Nothing.into(), |text| text.title = Some("News".into()));
        assert_eq!(told["alert"], json!({ "title": "News" }));
        let goal = notification(Payload::Json(r#"{"title":"Goal","body":"2:1"}"#.into()));
        let goal = push(1, "https://push.example/", goal);
        let given = text(&goal, &PushShown::Whole.into());
        assert_eq!((given.title.as_deref(), given.body.as_deref()), (Some("Goal"), Some("2:1")));
        assert_eq!(given.data.as_deref(), Some(r#"{"body":"2:1","title":"Goal"}"#));
        let told = rendered(&goal, PushShown::Whole.into(), |text| text.data = Some("[1]".into()));
        assert_eq!((&told["payload"], told.get("alert")), (&json!([1]), None));
        // What is told has room, and is shown as far.
        let long = |text: &mut PushText| {
            (text.title, text.body) = (Some("t".repeat(9000).into()), Some("b".repeat(9000).into()));
        };
        let told = rendered(&chat, words(), long);
        assert_eq!(told["alert"]["title"].as_str().map(str::len), Some(TITLE_BYTES_MAX));
        assert!(told.to_string().len() <= PLAINTEXT_MAX && told["truncated"] == true, "{told}");
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        for body in ["a".repeat(9000), "\u{e9}\u{1f514}".repeat(3000), "\u{7f}\\".repeat(4000)] {
            let push = push(1, "https://push.example/", said(&body));
            let text = plaintext(&push, &PushShown::Whole.into());
            assert!((PLAINTEXT_MAX - 20..=PLAINTEXT_MAX).contains(&text.len()), "{}", text.len());
            let told: Value = serde_json::from_slice(&text).expect("JSON");
            let told_body = told["body"].as_str().expect("a text");
            assert!(body.starts_with(told_body) && told["truncated"] == true);
        }
        let payload = Payload::Json(format!("\"{}\"", "a".repeat(5000)).into());
        let told = told(&push(1, "https://push.example/", notification(payload)), PushShown::Whole);
        assert_eq!((told.get("payload"), &told["truncated"]), (None, &json!(true)));
    }
}
