//! Streams that are resumed on another connection (XEP-0198 §5).

use carillon_wire::jid::Jid;

use super::talk::*;
use crate::client::unacknowledged::Unacknowledged;
use crate::client::{
    Client, ClientState, Entropy, Options, Outbox, Profile, Resumable, SendOutcome, Settings,
    StreamManagement, stanzas,
};

const ENABLED: &str = "<enabled xmlns='urn:xmpp:sm:3' id='x' resume='true' max='300' location='[::1]:5223'/>";
const REQUEST: &str = "<r xmlns='urn:xmpp:sm:3'/>";
const INLINE_OFFER: &str = "<stream:features><authentication xmlns='urn:xmpp:sasl:2'>\
    <mechanism>PLAIN</mechanism><inline><sm xmlns='urn:xmpp:sm:3'/><bind xmlns='urn:xmpp:bind:0'><inline>\
    <feature var='urn:xmpp:sm:3'/></inline></bind></inline></authentication></stream:features>";

fn resumable() -> Settings {
    Settings { stream_management: StreamManagement::Resumable, ..bare() }
}

/// alice in a session that can be resumed.
fn session(settings: Settings) -> Talk {
    let mut talk = Talk::session(settings);
    talk.server(ENABLED).events(&["managed Some(\"x\")", "ready"]);
    talk
}

/// The connection is lost.
fn cut(talk: &mut Talk) -> Box<Resumable> {
    talk.client.receive_end(&mut talk.out);
    talk.events(&["closed: the connection was lost"]);
    assert!(talk.client.is_over());
    talk.client.take_resumable().expect("the server allows it")
}

/// alice on another connection.
fn back(settings: Settings, resumable: Box<Resumable>) -> Talk {
    let profile = Profile::new(settings).expect("valid settings");
    let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", &profile);
    let client = Client::resuming(options.with_resource("r"), Entropy::from_seed(SEED), resumable);
    let mut talk = Talk { client, out: Outbox::default() };
    talk.client.start(&mut talk.out);
    talk
}

/// The same, authenticated, on a stream that offers stream management.
fn back_and_authenticated(resumable: Box<Resumable>) -> Talk {
    let mut talk = back(self::resumable(), resumable);
    talk.server([HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND].concat());
    talk.out.events.clear();
    let said = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    let said = said.strip_prefix(&[OPEN, AUTH_PLAIN, OPEN].concat()).expect("the login").to_owned();
    talk.out.bytes = said.into_bytes();
    talk
}

fn text(body: &str) -> String {
    format!("<message to='bob@example.org' type='chat'><body>{body}</body></message>")
}

fn send(talk: &mut Talk, body: &str) -> SendOutcome {
    let bob = Jid::new("bob@example.org").expect("a JID");
    talk.client.send(&stanzas::message(bob, body), &mut talk.out)
}

#[test]
fn what_was_not_handled_is_sent_again_in_order_and_counting_goes_on() {
    let mut talk = session(resumable());
    for body in ["1", "2", "3", "4"] {
        assert_eq!(send(&mut talk, body), SendOutcome::Sent);
    }
    talk.server("<message/><message/><a xmlns='urn:xmpp:sm:3' h='1'/><message>");
    talk.events(&["<message/>", "<message/>", "acknowledged 1"]);
    let state = cut(&mut talk);
    assert_eq!((state.jid().to_string().as_str(), state.id()), ("alice@example.org/r", "x"));
    assert_eq!((state.max().map(|max| max.as_secs()), state.location()), (Some(300), Some("[::1]:5223")));
    assert_eq!(state.unacknowledged(), 3);

    let mut talk = back_and_authenticated(state);
    talk.client("<resume xmlns='urn:xmpp:sm:3' h='2' previd='x'/>").events(&[]);
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='2'/>");
    talk.client(&[&text("3"), &text("4"), REQUEST].concat());
    talk.events(&["resumed, 2 sent again", "ready"]);
    assert_eq!(talk.client.ready().map(ToString::to_string).as_deref(), Some("alice@example.org/r"));
    talk.server("<message/><r xmlns='urn:xmpp:sm:3'/><a xmlns='urn:xmpp:sm:3' h='4'/>");
    talk.client("<a xmlns='urn:xmpp:sm:3' h='3'/>").events(&["<message/>", "acknowledged 4"]);
    assert_eq!(send(&mut talk, "5"), SendOutcome::Sent);
    let state = cut(talk.client(&text("5")));
    assert_eq!(state.unacknowledged(), 1);
}

#[test]
fn presence_is_kept_and_the_client_state_told_again() {
    let settings = || Settings { client_state: ClientState::Inactive, ..resumable() };
    let state = cut(&mut session(settings()));
    let mut talk = back(settings(), state);
    talk.server([HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND].concat());
    talk.out.bytes.clear();
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='0'/>");
    talk.client("<inactive xmlns='urn:xmpp:csi:0'/>");
}

#[test]
fn a_refused_resumption_becomes_a_new_session() {
    let not_found = "<item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>";
    for (h, handled, unhandled) in [
        (" h='1'", "Some(1)", format!("{:?}", [text("2")])),
        ("", "None", format!("{:?}", [text("1"), text("2")])),
        (" h='7'", "None", format!("{:?}", [text("1"), text("2")])),
    ] {
        let mut talk = session(resumable());
        send(&mut talk, "1");
        send(&mut talk, "2");
        let mut talk = back_and_authenticated(cut(&mut talk));
        talk.client("<resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/>");
        talk.server(format!("<failed xmlns='urn:xmpp:sm:3'{h}>{not_found}</failed>")).client(BIND);
        talk.events(&[&format!("not resumed: item-not-found, {handled} handled, not {unhandled}")]);
        talk.server(BOUND).client("<enable xmlns='urn:xmpp:sm:3' resume='true'/>");
        talk.server(ENABLED.replace("'x'", "'y'"));
        talk.events(&["bound alice@example.org/r", "managed Some(\"y\")", "ready"]);
        let state = cut(&mut talk);
        assert_eq!((state.id(), state.unacknowledged()), ("y", 0));
    }
}

#[test]
fn a_server_without_stream_management_is_bound_to_anew() {
    let state = cut(&mut session(resumable()));
    let offer_bind = OFFER_BIND.replace("<sm xmlns='urn:xmpp:sm:3'/>", "");
    let mut talk = back(resumable(), state);
    talk.server([HEADER, OFFER_PLAIN, SUCCESS, HEADER, &offer_bind].concat());
    talk.client(&[OPEN, AUTH_PLAIN, OPEN, BIND].concat());
    talk.events(&["connected", "authenticated by PLAIN", "not resumed: not-offered, None handled, not []"]);
}

#[test]
fn resumption_goes_along_with_sasl2() {
    let settings = || Settings { sasl2: true, ..resumable() };
    let authenticate = |resume: &str| {
        format!(
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>\
             <initial-response>AGFsaWNlAHNlY3JldA==</initial-response>{resume}<bind xmlns='urn:xmpp:bind:0'>\
             <tag>r</tag><enable xmlns='urn:xmpp:sm:3' resume='true'/></bind></authenticate>"
        )
    };
    let success = |inside: &str| {
        format!(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>alice@example.org/r.1\
             </authorization-identifier>{inside}</success><stream:features/>"
        )
    };
    let bound = format!("<bound xmlns='urn:xmpp:bind:0'>{ENABLED}</bound>");
    let mut talk = Talk::new(settings());
    talk.client(OPEN).server(HEADER).server(INLINE_OFFER).client(&authenticate(""));
    talk.server(success(&bound));
    talk.events(&[
        "connected",
        "authenticated by PLAIN",
        "managed Some(\"x\")",
        "bound alice@example.org/r.1",
        "ready",
    ]);
    send(&mut talk, "1");

    let resume = "<resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/>";
    let state = cut(&mut talk);
    for (inside, said, told) in [
        (
            "<resumed xmlns='urn:xmpp:sm:3' previd='x' h='0'/>",
            [&text("1"), REQUEST].concat(),
            vec!["resumed, 1 sent again", "ready"],
        ),
        (
            "<failed xmlns='urn:xmpp:sm:3' h='1'/><bound xmlns='urn:xmpp:bind:0'/>",
            String::new(),
            vec!["not resumed: , Some(1) handled, not []", "bound alice@example.org/r.1", "ready"],
        ),
    ] {
        let mut talk = back(settings(), state.clone());
        talk.client(OPEN).server(HEADER).server(INLINE_OFFER).client(&authenticate(resume));
        talk.server(success(inside)).client(&said);
        talk.events(&[&["connected", "authenticated by PLAIN"], &*told].concat());
    }

    // Where it is not offered along, it follows the success, and no resource is bound before.
    let offer = INLINE_OFFER.replace("<sm xmlns='urn:xmpp:sm:3'/>", "");
    let mut talk = back(settings(), state);
    talk.server(HEADER).server(&offer).client(
        &[
            OPEN,
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>\
             <initial-response>AGFsaWNlAHNlY3JldA==</initial-response></authenticate>",
        ]
        .concat(),
    );
    talk.server("<success xmlns='urn:xmpp:sasl:2'/>").server(OFFER_BIND).client(resume);
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>").client("");
    talk.events(&["connected", "authenticated by PLAIN", "resumed, 0 sent again", "ready"]);
}

#[test]
fn counts_wrap_at_2_to_the_32() {
    let mut talk = session(resumable());
    let mut state = cut(&mut talk);
    (state.handled, state.sent) = (u32::MAX, Unacknowledged::from_count(u32::MAX));
    let mut talk = back_and_authenticated(state);
    talk.client("<resume xmlns='urn:xmpp:sm:3' h='4294967295' previd='x'/>");
    talk.server(
        "<resumed xmlns='urn:xmpp:sm:3' previd='x' h='4294967295'/><message/><r xmlns='urn:xmpp:sm:3'/>",
    );
    talk.client("<a xmlns='urn:xmpp:sm:3' h='0'/>");
    send(&mut talk, "1");
    send(&mut talk, "2");
    talk.server("<a xmlns='urn:xmpp:sm:3' h='0'/>");
    talk.out.events.clear();
    let mut talk = back_and_authenticated(cut(&mut talk));
    talk.client("<resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/>");
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>").client("");
    talk.events(&["resumed, 0 sent again", "ready"]);
}

#[test]
fn a_count_that_cannot_be_ends_the_stream() {
    let error = |h: u32, sent: u32| {
        format!(
            "<stream:error><undefined-condition xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>\
             <handled-count-too-high xmlns='urn:xmpp:sm:3' h='{h}' send-count='{sent}'/></stream:error></stream:stream>"
        )
    };
    let mut talk = session(resumable());
    send(&mut talk, "1");
    talk.client(&text("1")).server("<a xmlns='urn:xmpp:sm:3' h='2'/>").client(&error(2, 1));
    talk.events(&["closed: the server acknowledges 2 stanzas, but 1 were sent"]);

    let state = cut(&mut session(resumable()));
    let mut talk = back_and_authenticated(state.clone());
    talk.out.bytes.clear();
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>").client(&error(1, 0));

    let mut talk = back_and_authenticated(state);
    talk.server("<resumed xmlns='urn:xmpp:sm:3' previd='another' h='0'/>");
    talk.events(&["closed: unexpected <resumed/> while resuming"]);
}

#[test]
fn a_cut_at_every_byte_of_a_resumption_loses_nothing() {
    let script = [
        HEADER,
        OFFER_PLAIN,
        SUCCESS,
        HEADER,
        OFFER_BIND,
        "<resumed xmlns='urn:xmpp:sm:3' previd='x' h='1'/>",
        "<message id='1'/><a xmlns='urn:xmpp:sm:3' h='2'/><message id='2'/>",
    ]
    .concat();
    let mut talk = session(resumable());
    ["1", "2", "3"].iter().for_each(|body| assert_eq!(send(&mut talk, body), SendOutcome::Sent));
    let state = cut(&mut talk);
    for at in 0..=script.len() {
        let mut talk = back(resumable(), state.clone());
        talk.server(&script.as_bytes()[..at]);
        let received = talk.out.events.drain(..).filter(is_stanza).count();
        let mut state = cut(&mut talk);
        let acknowledged = 3 - state.unacknowledged();
        assert_eq!(state.handled as usize, received, "cut at {at}");

        // Cut again at the same place: nothing has changed.
        let mut talk = back(resumable(), state);
        talk.server(&script.as_bytes()[..at.min(script.len() / 2)]);
        talk.out.events.clear();
        state = cut(&mut talk);

        let mut talk = back_and_authenticated(state);
        talk.client(&format!("<resume xmlns='urn:xmpp:sm:3' h='{received}' previd='x'/>"));
        talk.server(format!("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='{acknowledged}'/>"));
        let again: String = ["1", "2", "3"][acknowledged..].iter().map(|body| text(body)).collect();
        talk.client(&format!("{again}{REQUEST}"));
        talk.events(&[&format!("resumed, {} sent again", 3 - acknowledged), "ready"]);
    }
}

fn is_stanza(event: &crate::client::ClientEvent) -> bool {
    matches!(event, crate::client::ClientEvent::Stanza(_))
}

#[test]
fn what_is_kept_is_bounded() {
    let bytes_max = text("1").len() * 3;
    let mut talk = session(Settings { unacknowledged_bytes_max: bytes_max, ..resumable() });
    talk.out.bytes.clear();
    assert_eq!(
        [(); 4].map(|()| send(&mut talk, "1")),
        [SendOutcome::Sent, SendOutcome::Sent, SendOutcome::Sent, SendOutcome::Full]
    );
    let said = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    assert!(said.contains(REQUEST), "asked before the bound: {said}");
    assert_eq!(send(&mut talk, "1"), SendOutcome::Full);
    talk.client("").server("<a xmlns='urn:xmpp:sm:3' h='1'/>").events(&["acknowledged 1"]);
    assert_eq!(send(&mut talk, "1"), SendOutcome::Sent);

    // What the server provokes is bounded, too.
    let ping = "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>";
    for _ in 0..1000 {
        talk.server(ping);
    }
    talk.events(&["closed: the server does not acknowledge what it is sent"]);
}

#[test]
fn an_acknowledgement_is_asked_for_now_and_then() {
    let mut talk = session(resumable());
    talk.out.bytes.clear();
    (0..16).for_each(|_| assert_eq!(send(&mut talk, "1"), SendOutcome::Sent));
    let said = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    assert_eq!(said.matches(REQUEST).count(), 2);
    talk.client.send_xml(&text("2"), &mut talk.out);
    talk.client.send_xml("<r xmlns='urn:xmpp:sm:3'/>", &mut talk.out);
    assert_eq!(cut(&mut talk).unacknowledged(), 17);
}

#[test]
fn presence_and_answers_are_counted_as_sent() {
    let settings =
        || Settings { receipts: true, presence: crate::client::InitialPresence::Available, ..resumable() };
    let mut talk = session(settings());
    talk.server("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>");
    talk.server("<message from='bob@example.org' id='1'><request xmlns='urn:xmpp:receipts'/></message>");
    talk.out.events.clear();
    assert_eq!(cut(&mut talk).unacknowledged(), 3);
}

#[test]
fn only_what_was_not_closed_in_order_is_resumed() {
    let closed = |end: &dyn Fn(&mut Talk)| {
        let mut talk = session(resumable());
        end(&mut talk);
        talk.client.receive_end(&mut talk.out);
        talk.client.take_resumable().is_some()
    };
    let error = |condition: &str| {
        format!(
            "<stream:error><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        )
    };
    assert!(!closed(&|talk| talk.client.close(&mut talk.out)));
    assert!(!closed(&|talk| {
        talk.server("</stream:stream>");
    }));
    assert!(!closed(&|talk| {
        talk.server(error("conflict"));
    }));
    assert!(closed(&|talk| {
        talk.server(error("system-shutdown"));
    }));
    let reset = std::io::ErrorKind::ConnectionReset;
    assert!(closed(&|talk| talk.client.connection_failed(reset, &mut talk.out)));
    assert!(closed(&|_| {}));

    // A login that ends leaves the earlier stream as it was.
    let state = cut(&mut session(resumable()));
    let mut talk = back(resumable(), state);
    talk.server([HEADER, "</stream:stream>"].concat());
    assert!(talk.client.take_resumable().is_some());
    assert!(Talk::session(managed()).client.take_resumable().is_none());
}
