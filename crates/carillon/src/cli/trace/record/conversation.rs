//! The lines of a trace as a conversation: what the account's clients and others send, and what the account's clients must be sent.

use super::redact::{DOMAIN, Redaction, Way};
use carillon_wire::ns;
use carillon_wire::xml::Element;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A conversation that is being written.
pub(super) struct Conversation {
    account: String,
    domain: String,
    /// Addresses of clients whose resource is no word, and what stands for them.
    addresses: Vec<(String, String)>,
    accounts: BTreeSet<String>,
    /// What is sent before any client of the account connects.
    before: Vec<String>,
    lines: Vec<String>,
    /// Sessions of the account: whether they were there before, with stream management of which nothing is known.
    sessions: BTreeMap<String, bool>,
    /// Others that are connected.
    others: BTreeSet<String>,
    /// Ids of requests of the server, and what stands for them.
    requests: BTreeMap<String, String>,
    left_out: usize,
}

impl Conversation {
    /// One of an account. `lines` are all that will be added.
    pub(super) fn new(account: &str, lines: &[Value]) -> Conversation {
        let domain = account.split_once('@').map_or(account, |(_, domain)| domain).to_owned();
        let mut conversation = Conversation {
            account: account.to_owned(),
            domain,
            addresses: Vec::new(),
            accounts: BTreeSet::new(),
            before: Vec::new(),
            lines: Vec::new(),
            sessions: BTreeMap::new(),
            others: BTreeSet::new(),
            requests: BTreeMap::new(),
            left_out: 0,
        };
        conversation.meet(account);
        for line in lines {
            let is_absent =
                line["type"] == "error" && line["from"].as_str().is_some_and(|from| !from.contains('/'));
            let named = ["session", "from", "to"].into_iter().filter_map(|key| line[key].as_str());
            named.filter(|_| !is_absent).for_each(|jid| conversation.meet(jid));
            // An account that only answers with errors is none.
            if is_absent && let Some(from) = line["from"].as_str() {
                let local = from.split('@').next().unwrap_or_default().to_owned();
                conversation.accounts.remove(&local);
            }
        }
        conversation
    }

    /// Somebody takes part: there is an account of this name.
    fn meet(&mut self, jid: &str) {
        let (bare, resource) = jid.split_once('/').map_or((jid, None), |(bare, of)| (bare, Some(of)));
        let Some((local, _)) = bare.split_once('@').filter(|(_, domain)| *domain == self.domain) else {
            return;
        };
        self.accounts.insert(local.to_owned());
        let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if let Some(resource) = resource
            && !is_word(resource)
            && !self.addresses.iter().any(|(of, _)| of == jid)
        {
            let name = format!("{local}@{DOMAIN}/r{}", self.addresses.len() + 1);
            self.addresses.push((jid.to_owned(), name));
        }
    }

    /// A session that was there before the trace.
    pub(super) fn is_present(&mut self, session: &Value) {
        let Some(jid) = session["jid"].as_str() else { return };
        self.meet(jid);
        let how = if session["presence"] == "unavailable" { " quietly" } else { "" };
        self.lines.push(format!("{} connects{how}", self.client(jid)));
        self.sessions.insert(jid.to_owned(), true);
    }

    /// Adds what a line of the trace says.
    pub(super) fn add(&mut self, line: &Value) {
        let session = line["session"].as_str().unwrap_or_default();
        match line["kind"].as_str() {
            Some("session") => self.session(session, line),
            Some("in") => self.element(session, line, Way::In),
            Some("out") => self.element(session, line, Way::Out),
            Some("missed") => {
                self.lines.push(format!("# {} entries are missing here.", line["count"]));
                self.left_out += line["count"].as_u64().unwrap_or_default() as usize;
            }
            _ => {}
        }
    }

    fn session(&mut self, session: &str, line: &Value) {
        let client = self.client(session);
        match (line["what"].as_str(), line["detail"].as_str()) {
            (Some("opened"), _) => {
                self.sessions.insert(session.to_owned(), false);
                self.lines.push(format!("{client} connects quietly"));
            }
            (Some("closed"), Some("closed")) => {
                self.lines.extend([
                    format!("{client} >> </stream:stream>"),
                    format!("{client} << </stream:stream>"),
                    format!("{client} closed"),
                ]);
                self.sessions.remove(session);
            }
            (Some("closed" | "parked"), reason) => {
                self.lines.push(format!("# It ended: {}.", reason.unwrap_or_default()));
                self.lines.push(format!("{client} drops"));
                self.sessions.remove(session);
            }
            // How much of what it was sent its client has is not in a trace.
            _ => self.leave_out(&format!("{client} resumed its session")),
        }
    }

    fn element(&mut self, session: &str, line: &Value, way: Way) {
        // What comes before a session is open belongs to its login.
        let Some(&was_there) = self.sessions.get(session) else { return };
        let element = line["xml"].as_str().and_then(|xml| Element::parse(xml.as_bytes(), ns::CLIENT).ok());
        let Some(element) = element else { return self.leave_out("an element that cannot be read") };
        if was_there && element.ns() == "urn:xmpp:sm:3" {
            return self.leave_out("stream management of a session that was there before");
        }
        let client = self.client(session);
        if way == Way::Out && self.is_of_another(&element) {
            self.other(&element);
        }
        let mut made = self.redaction().element(&element, way);
        self.match_request(&element, &mut made, way);
        let arrow = if way == Way::In { ">>" } else { "<<" };
        self.lines.push(format!("{client} {arrow} {}", text(&made)));
    }

    /// Whether another client sent this, and not the server or the account itself.
    fn is_of_another(&self, element: &Element) -> bool {
        let Some((bare, _)) = element.attr("from").and_then(|from| from.split_once('/')) else {
            return false;
        };
        bare != self.account && bare.split_once('@').is_some_and(|(_, domain)| domain == self.domain)
    }

    /// Another client sends what the account's was sent, without what the server added.
    fn other(&mut self, element: &Element) {
        let Some(from) = element.attr("from").map(str::to_owned) else { return };
        let mut sent = Element::new(element.name(), element.ns());
        for attribute in element.attrs().filter(|attribute| attribute.name() != "from") {
            sent.set_attr(attribute.name(), attribute.value());
        }
        let is_added = |child: &Element| matches!(child.ns(), "urn:xmpp:sid:0" | "urn:xmpp:delay");
        let was_stored = element.children().any(|child| child.ns() == "urn:xmpp:delay");
        element.children().filter(|child| !is_added(child)).for_each(|child| sent.push(child.clone()));
        let line = format!("{} >> {}", self.client(&from), text(&self.redaction().element(&sent, Way::In)));
        let client = self.client(&from);
        let is_new = self.others.insert(client.clone());
        let lines = if was_stored { &mut self.before } else { &mut self.lines };
        if is_new {
            lines.push(format!("{client} connects quietly"));
        }
        lines.push(line);
    }

    /// A request of the server has another id each time, and its answer, too.
    fn match_request(&mut self, element: &Element, made: &mut Element, way: Way) {
        let Some(id) = element.attr("id").filter(|_| element.name() == "iq") else { return };
        let is_request = matches!(element.attr("type"), Some("get" | "set"));
        if way == Way::Out && is_request && !self.is_of_another(element) {
            let name = format!("{{request{}}}", self.requests.len() + 1);
            self.requests.insert(id.to_owned(), name);
        }
        if let Some(name) = self.requests.get(id).filter(|_| (way == Way::Out) == is_request) {
            made.set_attr("id", name.clone());
        }
    }

    fn leave_out(&mut self, what: &str) {
        self.left_out += 1;
        self.lines.push(format!("# Left out: {what}."));
    }

    /// The name of a client in the conversation.
    fn client(&self, jid: &str) -> String {
        self.redaction().address(jid).replace(&format!("@{DOMAIN}/"), "/")
    }

    fn redaction(&self) -> Redaction<'_> {
        Redaction { domain: &self.domain, addresses: &self.addresses }
    }

    /// The conversation, and how much of the trace is not in it.
    pub(super) fn text(self) -> (String, usize) {
        let accounts = self.accounts.iter().map(|local| format!("account {local} secret"));
        // What the trace ended before is not in it, nor what others are sent.
        let present = self.sessions.keys().map(|jid| self.client(jid)).chain(self.others.iter().cloned());
        let ends = present.map(|client| format!("{client} drops"));
        let head = ["# Recorded by `carillon trace record`; what people wrote is replaced by as much of the letter x.".to_owned()];
        let lines: Vec<String> = head
            .into_iter()
            .chain(accounts)
            .chain(self.before.iter().cloned())
            .chain(self.lines.iter().cloned())
            .chain(ends)
            .collect();
        (lines.join("\n") + "\n", self.left_out)
    }
}

fn text(element: &Element) -> String {
    element.to_string_in(ns::CLIENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trace_becomes_a_conversation() {
        let a = "alice@x.example/My phone";
        let line = |kind: &str, xml: &str| json!({"kind": kind, "session": a, "xml": xml});
        let lines = [
            json!({"kind": "begun", "account": "alice@x.example"}),
            line("out", "<iq type='result' id='bind'/>"),
            json!({"kind": "session", "session": a, "what": "opened", "detail": "bound"}),
            line("in", "<presence/>"),
            line("out", "<presence from='alice@x.example/My phone' to='alice@x.example/My phone'/>"),
            json!({"kind": "out", "session": a, "from": "bob@x.example/home", "to": a, "xml":
                "<message from='bob@x.example/home' to='alice@x.example/My phone' id='1'><body>hi</body>\
                 <stanza-id xmlns='urn:xmpp:sid:0' id='17' by='alice@x.example'/></message>"}),
            line("out", "<iq type='get' id='q7' from='x.example'><ping xmlns='urn:xmpp:ping'/></iq>"),
            line("in", "<iq type='result' id='q7' to='x.example'/>"),
            json!({"kind": "session", "session": a, "what": "closed", "detail": "closed"}),
        ];
        let mut conversation = Conversation::new("alice@x.example", &lines);
        lines.iter().for_each(|line| conversation.add(line));
        let (text, left_out) = conversation.text();
        let expected = "\
account alice secret
account bob secret
alice/r1 connects quietly
alice/r1 >> <presence/>
alice/r1 << <presence from='alice@localhost/r1' to='alice@localhost/r1'/>
bob/home connects quietly
bob/home >> <message to='alice@localhost/r1' id='1'><body>xx</body></message>
alice/r1 << <message from='bob@localhost/home' to='alice@localhost/r1' id='1'><body>xx</body>\
<stanza-id xmlns='urn:xmpp:sid:0' id='{any}' by='alice@localhost'/></message>
alice/r1 << <iq type='get' id='{request1}' from='localhost'><ping xmlns='urn:xmpp:ping'/></iq>
alice/r1 >> <iq type='result' id='{request1}' to='localhost'/>
alice/r1 >> </stream:stream>
alice/r1 << </stream:stream>
alice/r1 closed
bob/home drops
";
        assert_eq!((text.split_once('\n').map(|(_, rest)| rest), left_out), (Some(expected), 0));
    }

    #[test]
    fn what_cannot_be_played_is_said() {
        let session = json!({"jid": "a@x/r", "presence": "available"});
        let lines = [
            json!({"kind": "in", "session": "a@x/r", "xml": "<a xmlns='urn:xmpp:sm:3' h='7'/>"}),
            json!({"kind": "missed", "count": 3}),
            json!({"kind": "session", "session": "a@x/r", "what": "parked", "detail": "lost"}),
        ];
        let mut conversation = Conversation::new("a@x", &lines);
        conversation.is_present(&session);
        lines.iter().for_each(|line| conversation.add(line));
        let (text, left_out) = conversation.text();
        assert_eq!(left_out, 4);
        let expected = "a/r connects\n# Left out: stream management of a session that was there before.\n\
                        # 3 entries are missing here.\n# It ended: lost.\na/r drops\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
