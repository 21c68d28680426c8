//! A client that speaks XMPP: it says all that a login needs at once, then listens, and acknowledges as its kind does.

use super::{Got, PASSWORD, value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// How a client acknowledges what it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// By stream management (XEP-0198).
    pub is_managed: bool,
    /// By receipts (XEP-0184).
    pub sends_receipts: bool,
}

/// A client that speaks XMPP, on one connection.
#[derive(Clone, Debug)]
pub struct XmppClient {
    /// The local part of its account.
    pub account: String,
    domain: String,
    kind: Kind,
    /// Its session is bound.
    pub is_bound: bool,
    /// It sent initial presence.
    pub is_available: bool,
    /// Stanzas that came since stream management was enabled; none before.
    handled: Option<u32>,
    /// What it was given.
    pub got: Vec<Got>,
    /// What it was told that ends its stream, or its login.
    pub error: Option<String>,
}

impl XmppClient {
    /// A client of `account@domain`.
    pub fn new(account: &str, domain: &str, kind: Kind) -> XmppClient {
        XmppClient {
            account: account.to_owned(),
            domain: domain.to_owned(),
            kind,
            is_bound: false,
            is_available: false,
            handled: None,
            got: Vec::new(),
            error: None,
        }
    }

    /// All that a login needs, on a connection that is secured.
    pub fn login(&self) -> String {
        let (account, domain) = (&self.account, &self.domain);
        let open = format!(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='{domain}' version='1.0'>"
        );
        let plain = BASE64.encode(format!("\0{account}\0{PASSWORD}"));
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let bind = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
        let enable = if self.kind.is_managed { "<enable xmlns='urn:xmpp:sm:3'/>" } else { "" };
        [&*open, &auth, &open, bind, enable].concat()
    }

    /// Initial presence.
    pub fn becomes_available(&mut self) -> &'static str {
        self.is_available = true;
        "<presence/>"
    }

    /// Hears an element; what it answers.
    pub fn hears(&mut self, element: &[u8]) -> String {
        let text = String::from_utf8_lossy(element);
        if text.starts_with("<stream:error") || text.starts_with("<failure") {
            self.error = Some(text.into_owned());
            return String::new();
        }
        if text.starts_with("<enabled") {
            self.handled = Some(0);
            return String::new();
        }
        if text.starts_with("<r ") {
            return format!("<a xmlns='urn:xmpp:sm:3' h='{}'/>", self.handled.unwrap_or(0));
        }
        let is_stanza = ["<iq", "<message", "<presence"].into_iter().any(|start| text.starts_with(start));
        if is_stanza && let Some(handled) = &mut self.handled {
            *handled += 1;
        }
        self.is_bound |= text.starts_with("<iq") && text.contains(" id='b'");
        self.got.extend(read(&text));
        self.receipt(&text).unwrap_or_default()
    }

    /// The receipt of a message that asks for one.
    fn receipt(&self, text: &str) -> Option<String> {
        let is_asked = self.kind.sends_receipts && text.contains("<request xmlns='urn:xmpp:receipts'/>");
        let (id, from) = (value(text, " id='")?, value(text, " from='")?);
        is_asked.then(|| {
            format!("<message to='{from}'><received xmlns='urn:xmpp:receipts' id='{id}'/></message>")
        })
    }
}

/// What a stanza gives its reader.
fn read(text: &str) -> Option<Got> {
    if text.contains("<notification ") {
        return Some(Got::Notification { id: value(text, " id='")?.to_owned() });
    }
    let topic = value(text, "node='")?.to_owned();
    Some(match value(text, "<item id='") {
        Some(id) => Got::Item { topic, id: id.to_owned(), is_last: text.contains("<delay") },
        None => Got::Notice { topic },
    })
}
