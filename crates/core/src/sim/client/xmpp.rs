//! A client that speaks XMPP: it says all that a login needs at once, then listens, and acknowledges as its kind does.

use super::{Contacts, Got, PASSWORD, value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::Framing;
use std::collections::VecDeque;

/// What a client speaks, and how it acknowledges what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Over TCP, or WebSocket: then each stanza is a message of its own (RFC 7395). The frames around messages are the server's, and
    /// not simulated.
    pub framing: Framing,
    /// By stream management (XEP-0198).
    pub is_managed: bool,
    /// And it resumes its session when its connection is lost.
    pub resumes: bool,
    /// By receipts (XEP-0184).
    pub sends_receipts: bool,
}

/// The hash of what a client can do (XEP-0115), and what that is.
pub const HASH: &str = "UM4nNab5GChHIggeWonZYKs1lqU=";

fn info(node: &str) -> String {
    format!(
        "<query xmlns='http://jabber.org/protocol/disco#info' node='{node}'><identity category='client' type='pc' name='C'/>\
         <feature var='http://jabber.org/protocol/disco#info'/><feature var='m+notify'/></query>"
    )
}

/// A client that speaks XMPP, on one connection.
#[derive(Clone, Debug)]
pub struct XmppClient {
    /// The local part of its account.
    pub account: String,
    domain: String,
    /// What it speaks.
    pub kind: Kind,
    /// Its full JID, once its session is bound.
    pub jid: Option<String>,
    /// It sent presence, and did not withdraw it.
    pub is_available: bool,
    /// It closed its stream.
    pub is_leaving: bool,
    /// Stanzas that came since stream management was enabled; none before.
    handled: Option<u32>,
    /// How many of them it has acknowledged.
    pub acknowledges: u32,
    /// Stanzas that it sent.
    pub sent: u32,
    /// How many of them the server says it has dealt with.
    pub covered: u32,
    /// What it was given.
    pub got: Vec<Got>,
    /// What it knows of its contacts.
    pub contacts: Contacts,
    /// Ids of requests that it sent and that were not answered.
    pub requests: Vec<String>,
    /// What it was told that ends its stream, or its login.
    pub error: Option<String>,
    /// What it was told that breaks the protocol.
    pub nonsense: Option<String>,
    /// What it names its session by to resume it.
    key: Option<String>,
    /// It asked to resume its session, and has no answer.
    pub is_returning: bool,
    /// What it sent and was not told to be dealt with: it repeats that in a resumed session.
    uncovered: VecDeque<String>,
    /// What it had sent, and was not told to be dealt with, when the node restarted: the node answers requests among it again.
    may_be_answered_again: Vec<String>,
}

impl XmppClient {
    /// A client of `account@domain`.
    pub fn new(account: &str, domain: &str, kind: Kind) -> XmppClient {
        XmppClient {
            account: account.to_owned(),
            domain: domain.to_owned(),
            kind,
            jid: None,
            is_available: false,
            is_leaving: false,
            handled: None,
            acknowledges: 0,
            sent: 0,
            covered: 0,
            got: Vec::new(),
            contacts: Contacts::default(),
            requests: Vec::new(),
            error: None,
            nonsense: None,
            key: None,
            is_returning: false,
            uncovered: VecDeque::new(),
            may_be_answered_again: Vec::new(),
        }
    }

    /// All that a login needs, on a connection that is secured: one piece of a stream, or the messages of WebSocket.
    pub fn login(&self) -> Vec<String> {
        let (account, domain) = (&self.account, &self.domain);
        let open = match self.kind.framing {
            Framing::Tcp => format!(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='{domain}' version='1.0'>"
            ),
            Framing::WebSocket => {
                format!("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='{domain}' version='1.0'/>")
            }
        };
        let plain = BASE64.encode(format!("\0{account}\0{PASSWORD}"));
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let mut login = vec![open.clone(), auth, open];
        match &self.key {
            Some(key) if self.is_returning => {
                let h = self.handled();
                login.push(format!("<resume xmlns='urn:xmpp:sm:3' h='{h}' previd='{key}'/>"));
            }
            _ => {
                let bind = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
                login.push(self.framed(bind));
                let resume = if self.kind.resumes { " resume='true'" } else { "" };
                if self.kind.is_managed {
                    login.push(format!("<enable xmlns='urn:xmpp:sm:3'{resume}/>"));
                }
            }
        }
        match self.kind.framing {
            Framing::Tcp => vec![login.concat()],
            Framing::WebSocket => login,
        }
    }

    /// How many stanzas it has of its session.
    pub fn handled(&self) -> u32 {
        self.handled.unwrap_or(0)
    }

    /// Whether it may resume its session.
    pub fn can_return(&self) -> bool {
        self.key.is_some() && !self.is_leaving && self.error.is_none()
    }

    /// It resumes its session over a new connection: all that this needs, as in [`XmppClient::login`].
    pub fn returns(&mut self) -> Vec<String> {
        self.is_returning = true;
        self.acknowledges = self.handled();
        self.login()
    }

    /// What is sent again in a resumed session, the server having dealt with `h` stanzas.
    fn repeats(&mut self, h: u32) -> Vec<String> {
        if h < self.covered || h > self.sent {
            self.nonsense = Some(format!("resumed with h={h}, of {} and {} before", self.sent, self.covered));
        }
        self.is_covered(h);
        self.is_returning = false;
        self.uncovered.iter().cloned().collect()
    }

    fn is_covered(&mut self, h: u32) {
        let more = h.saturating_sub(self.covered) as usize;
        self.uncovered.drain(..more.min(self.uncovered.len()));
        self.covered = h;
    }

    /// The node restarts: what is not settled then, and all behind it, is handled again when it is repeated.
    pub fn node_restarts(&mut self) {
        self.may_be_answered_again.extend(self.uncovered.iter().cloned());
    }

    /// Whether its session is bound.
    pub fn is_bound(&self) -> bool {
        self.jid.is_some()
    }

    /// Presence with this payload.
    pub fn becomes_available(&mut self, payload: &str) -> String {
        self.is_available = true;
        self.contacts.here.clear();
        self.contacts.told.clear();
        self.stanza(&format!("<presence>{payload}</presence>"))
    }

    /// Withdraws its presence.
    pub fn becomes_unavailable(&mut self) -> String {
        self.is_available = false;
        self.stanza("<presence type='unavailable'/>")
    }

    /// Closes its stream.
    pub fn leaves(&mut self) -> &'static str {
        (self.is_available, self.is_leaving) = (false, true);
        match self.kind.framing {
            Framing::Tcp => "</stream:stream>",
            Framing::WebSocket => "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>",
        }
    }

    /// Sends a request that the server answers.
    pub fn requests(&mut self, id: String) -> String {
        let request =
            format!("<iq type='get' id='{id}' to='{}'><ping xmlns='urn:xmpp:ping'/></iq>", self.domain);
        self.requests.push(id);
        self.stanza(&request)
    }

    /// A stanza of its own.
    pub fn stanza(&mut self, stanza: &str) -> String {
        self.sent += 1;
        let says = self.framed(stanza);
        if self.kind.resumes {
            self.uncovered.push_back(says.clone());
        }
        says
    }

    /// A stanza as it is written on its transport: each message of WebSocket declares its namespace.
    fn framed(&self, stanza: &str) -> String {
        let name = stanza.find([' ', '>', '/']).unwrap_or_default();
        match self.kind.framing {
            Framing::Tcp => stanza.to_owned(),
            Framing::WebSocket => format!("{} xmlns='jabber:client'{}", &stanza[..name], &stanza[name..]),
        }
    }

    /// Hears an element; what it answers, each a message of its own.
    pub fn hears(&mut self, element: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(element);
        if text.starts_with("<stream:error") || text.starts_with("<failure") {
            self.error = Some(text.into_owned());
            return Vec::new();
        }
        if text.starts_with("<enabled") {
            self.handled = Some(0);
            self.key = value(&text, " id='").map(str::to_owned);
            return Vec::new();
        }
        if text.starts_with("<resumed") {
            let h = value(&text, " h='").and_then(|h| h.parse().ok()).unwrap_or(u32::MAX);
            return self.repeats(h);
        }
        if text.starts_with("<failed") {
            self.error = Some(text.into_owned());
            return Vec::new();
        }
        if text.starts_with("<r ") {
            self.acknowledges = self.handled.unwrap_or(0);
            return vec![format!("<a xmlns='urn:xmpp:sm:3' h='{}'/>", self.acknowledges)];
        }
        if text.starts_with("<a ") {
            let h = value(&text, " h='").and_then(|h| h.parse().ok()).unwrap_or(u32::MAX);
            self.is_covered(h);
            return Vec::new();
        }
        if !is_stanza(&text) {
            return Vec::new();
        }
        if let Some(handled) = &mut self.handled {
            *handled += 1;
        }
        if text.starts_with("<iq") {
            return self.hears_iq(&text).into_iter().collect();
        }
        // Those of a room are of occupants.
        let is_of_room = value(&text, " from='").is_some_and(|from| from.contains("@rooms."));
        if text.starts_with("<presence") && self.is_available && !is_of_room {
            self.contacts.hears(&text);
        }
        if self.contacts.are_told(&text) {
            return Vec::new();
        }
        self.got.extend(read(&text));
        self.receipt(&text).into_iter().collect()
    }

    fn hears_iq(&mut self, text: &str) -> Option<String> {
        let id = value(text, " id='")?.to_owned();
        let quoted = format!(" id='{id}'");
        let is_roster = text.contains("<query xmlns='jabber:iq:roster'");
        if is_roster && text.contains(" type='set'") {
            if let Err(what) = self.contacts.change(text) {
                self.nonsense = Some(format!("a push of the roster that {what}"));
            }
            return Some(self.stanza(&format!("<iq type='result' id='{id}'/>")));
        }
        if is_roster
            && text.contains(" type='result'")
            && let Err(what) = self.contacts.are(text)
        {
            self.nonsense = Some(what);
        }
        if text.contains(" type='get'") {
            let from = value(text, " from='").map_or(String::new(), |from| format!(" to='{from}'"));
            let info = value(text, " node='").map_or(String::new(), info);
            return Some(self.stanza(&format!("<iq type='result' id='{id}'{from}>{info}</iq>")));
        }
        if id == "b" {
            let jid = text.split_once("<jid>").and_then(|(_, rest)| rest.split_once("</jid>"));
            self.jid = jid.map(|(jid, _)| jid.to_owned());
        } else if let Some(place) = self.requests.iter().position(|request| *request == id) {
            self.requests.remove(place);
        } else if let Some(place) = self.may_be_answered_again.iter().position(|says| says.contains(&quoted))
        {
            self.may_be_answered_again.remove(place);
        } else {
            self.nonsense =
                Some(format!("an answer to nothing that was asked, or to something again: {text}"));
        }
        None
    }

    /// The receipt of a message that asks for one.
    fn receipt(&mut self, text: &str) -> Option<String> {
        let is_asked = self.kind.sends_receipts && text.contains("<request xmlns='urn:xmpp:receipts'/>");
        let (id, from) = (value(text, " id='")?, value(text, " from='")?);
        let receipt =
            format!("<message to='{from}'><received xmlns='urn:xmpp:receipts' id='{id}'/></message>");
        is_asked.then(|| self.stanza(&receipt))
    }
}

/// Whether an element is one of the three that stream management counts.
pub fn is_stanza(text: &str) -> bool {
    ["<iq", "<message", "<presence"].into_iter().any(|start| text.starts_with(start))
}

/// What a stanza gives its reader.
fn read(text: &str) -> Option<Got> {
    let id = || value(text, " id='").map(str::to_owned);
    if text.contains("<notification ") {
        return Some(Got::Notification { id: id()? });
    }
    if text.starts_with("<message") && text.contains(" type='error'") {
        return Some(Got::Refused { id: id()? });
    }
    if text.starts_with("<message") && text.contains(" type='chat'") {
        return Some(Got::Chat { id: id()? });
    }
    let topic = value(text, "node='")?.to_owned();
    Some(match value(text, "<item id='") {
        Some(id) => Got::Item { topic, id: id.to_owned(), is_last: text.contains("<delay") },
        None => Got::Notice { topic },
    })
}
