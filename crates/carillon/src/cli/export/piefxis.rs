//! PIEFXIS (XEP-0227), the form that other servers import: a file for each account, and for a domain one that includes them. The export of a node, a line of
//! JSON for each thing, becomes a `<user/>`; what the form has no place for is counted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_wire::ns;
use carillon_wire::xml::Element;
use serde_json::Value;
use std::collections::BTreeMap;

/// The namespace of the form.
const FORM: &str = "urn:xmpp:pie:0";
/// The namespace of SCRAM keys (§4.3).
const SCRAM: &str = "urn:xmpp:pie:0#scram";
/// The namespace of inclusions.
const INCLUDE: &str = "http://www.w3.org/2001/XInclude";

/// An account as the lines of its export come.
pub(super) struct User {
    name: String,
    host: String,
    /// In their order: keys, then what belongs to it.
    keys: Vec<Element>,
    roster: Element,
    asked: Vec<Element>,
    private: Element,
    vcard: Option<Element>,
    /// By their names: how a node is configured, and its items, newest first.
    nodes: BTreeMap<String, (Element, Vec<Element>)>,
    offline: Element,
    /// What has no place in the form, and how often it came.
    passed: BTreeMap<String, u64>,
}

impl User {
    /// The account of an address.
    pub(super) fn new(name: &str, host: &str) -> User {
        User {
            name: name.to_owned(),
            host: host.to_owned(),
            keys: Vec::new(),
            roster: Element::new("query", ns::ROSTER),
            asked: Vec::new(),
            private: Element::new("query", ns::PRIVATE),
            vcard: None,
            nodes: BTreeMap::new(),
            offline: Element::new("offline-messages", FORM),
            passed: BTreeMap::new(),
        }
    }

    /// Takes a line of the export.
    pub(super) fn take(&mut self, line: &Value) {
        let kind = line["kind"].as_str().unwrap_or_default();
        let is_taken = match kind {
            "account" | "end" => true,
            "credentials" => self.credentials(line),
            "contact" => self.contact(line),
            "private" => xml(line, "xml", "").map(|element| self.private.push(element)).is_some(),
            "vcard" => {
                self.vcard = xml(line, "xml", "");
                self.vcard.is_some()
            }
            "node" => self.node(line),
            "item" => self.item(line),
            "offline_message" => self.message(line),
            _ => false,
        };
        if !is_taken {
            *self.passed.entry(kind.to_owned()).or_default() += 1;
        }
    }

    /// What has no place in the form.
    pub(super) fn passed(&self) -> &BTreeMap<String, u64> {
        &self.passed
    }

    /// The file of the account.
    pub(super) fn file(self) -> Vec<u8> {
        let User { name, host, keys, roster, asked, private, vcard, nodes, offline, .. } = self;
        let mut user = Element::new("user", FORM).with_attr("name", name);
        let filled = |element: &Element| element.children().next().is_some();
        let (mut owned, mut published) =
            (Element::new("pubsub", ns::PUBSUB_OWNER), Element::new("pubsub", ns::PUBSUB));
        for (name, (configure, items)) in nodes {
            owned.push(configure);
            let mut list = Element::new("items", ns::PUBSUB).with_attr("node", name);
            // They are published in this order where the file is imported.
            items.into_iter().rev().for_each(|item| list.push(item));
            if filled(&list) {
                published.push(list);
            }
        }
        keys.into_iter().for_each(|keys| user.push(keys));
        user.push(roster);
        asked.into_iter().chain(vcard).for_each(|element| user.push(element));
        for element in [private, owned, published, offline].into_iter().filter(filled) {
            user.push(element);
        }
        let host = Element::new("host", FORM).with_attr("jid", host).with_child(user);
        document(&Element::new("server-data", FORM).with_child(host))
    }

    fn credentials(&mut self, line: &Value) -> bool {
        for (member, mechanism) in [("scram_sha1", "SCRAM-SHA-1"), ("scram_sha256", "SCRAM-SHA-256")] {
            let keys = &line[member];
            let text = |name: &str| keys[name].as_str().filter(|text| STANDARD.decode(text).is_ok());
            let (Some(salt), Some(stored), Some(server)) =
                (text("salt"), text("stored_key"), text("server_key"))
            else {
                continue;
            };
            let part = |name: &str, text: String| Element::new(name, SCRAM).with_text(text);
            let credentials = Element::new("scram-credentials", SCRAM)
                .with_attr("mechanism", mechanism)
                .with_child(part("iter-count", keys["iterations"].to_string()))
                .with_child(part("salt", salt.to_owned()))
                .with_child(part("server-key", server.to_owned()))
                .with_child(part("stored-key", stored.to_owned()));
            self.keys.push(credentials);
        }
        true
    }

    fn contact(&mut self, line: &Value) -> bool {
        let Some(jid) = line["jid"].as_str() else { return false };
        let is = |name: &str| line[name].as_bool() == Some(true);
        if is("was_asked") {
            // §4.8: a request that was not answered.
            let asked =
                Element::new("presence", ns::CLIENT).with_attr("from", jid).with_attr("type", "subscribe");
            self.asked.push(asked);
        }
        if !is("is_listed") {
            return true;
        }
        let subscription = match (is("to"), is("from")) {
            (true, true) => "both",
            (true, false) => "to",
            (false, true) => "from",
            (false, false) => "none",
        };
        let mut item = Element::new("item", ns::ROSTER).with_attr("jid", jid);
        if let Some(name) = line["name"].as_str().filter(|name| !name.is_empty()) {
            item.set_attr("name", name);
        }
        item.set_attr("subscription", subscription);
        if is("asked") {
            item.set_attr("ask", "subscribe");
        }
        if is("approved") {
            item.set_attr("approved", "true");
        }
        for group in line["groups"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            item.push(Element::new("group", ns::ROSTER).with_text(group));
        }
        self.roster.push(item);
        true
    }

    fn node(&mut self, line: &Value) -> bool {
        let Some(name) = line["name"].as_str() else { return false };
        let field = |var: &str, value: &str| {
            let value = Element::new("value", ns::DATA_FORMS).with_text(value);
            Element::new("field", ns::DATA_FORMS).with_attr("var", var).with_child(value)
        };
        let kind =
            field("FORM_TYPE", "http://jabber.org/protocol/pubsub#node_config").with_attr("type", "hidden");
        let mut form = Element::new("x", ns::DATA_FORMS).with_attr("type", "submit").with_child(kind);
        if let Some(access) = line["access_model"].as_str() {
            form.push(field("pubsub#access_model", access));
        }
        let configure = Element::new("configure", ns::PUBSUB_OWNER).with_attr("node", name).with_child(form);
        self.nodes.insert(name.to_owned(), (configure, Vec::new()));
        true
    }

    fn item(&mut self, line: &Value) -> bool {
        let node = line["node"].as_str().and_then(|name| self.nodes.get_mut(name));
        let (Some((_, items)), Some(id), Some(payload)) =
            (node, line["id"].as_str(), xml(line, "payload_xml", ""))
        else {
            return false;
        };
        items.push(Element::new("item", ns::PUBSUB).with_attr("id", id).with_child(payload));
        true
    }

    fn message(&mut self, line: &Value) -> bool {
        let Some(mut message) = xml(line, "xml", ns::CLIENT) else { return false };
        if let Some(stamp) = line["received_at"].as_str()
            && message.child("delay", ns::DELAY).is_none()
        {
            let delay = Element::new("delay", ns::DELAY).with_attr("from", self.host.as_str());
            message.push(delay.with_attr("stamp", stamp));
        }
        self.offline.push(message);
        true
    }
}

/// The file of a host, which includes those of its accounts.
pub(super) fn main(host: &str, files: &[String]) -> Vec<u8> {
    let mut element = Element::new("host", FORM).with_attr("jid", host);
    for file in files {
        element.push(Element::new("include", INCLUDE).with_attr("href", file.as_str()));
    }
    document(&Element::new("server-data", FORM).with_child(element))
}

fn document(element: &Element) -> Vec<u8> {
    let mut bytes = b"<?xml version='1.0' encoding='UTF-8'?>\n".to_vec();
    element.write(&mut bytes, "");
    bytes.push(b'\n');
    bytes
}

fn xml(line: &Value, member: &str, ns: &str) -> Option<Element> {
    Element::parse(line[member].as_str()?.as_bytes(), ns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_is_written_as_others_read_it() {
        let mut user = User::new("alice", "x.example");
        let keys = json!({ "salt": "c2E=", "iterations": 4096, "stored_key": "AA==", "server_key": "BQ==" });
        for line in [
            json!({ "kind": "account", "jid": "alice@x.example" }),
            json!({ "kind": "credentials", "scram_sha256": keys }),
            json!({ "kind": "contact", "jid": "bob@x.example", "name": "B & B", "groups": ["Friends"], "to": true, "from": true, "asked": false, "was_asked": false, "approved": false, "is_listed": true }),
            json!({ "kind": "contact", "jid": "eve@x.example", "name": "", "groups": [], "to": false, "from": false, "asked": false, "was_asked": true, "approved": false, "is_listed": false }),
            json!({ "kind": "private", "xml": "<e xmlns='exodus:prefs'/>" }),
            json!({ "kind": "vcard", "xml": "<vCard xmlns='vcard-temp'><FN>A</FN></vCard>" }),
            json!({ "kind": "node", "name": "n", "access_model": "whitelist" }),
            json!({ "kind": "item", "node": "n", "id": "2", "payload_xml": "<two xmlns='urn:x'/>" }),
            json!({ "kind": "item", "node": "n", "id": "1", "payload_xml": "<one xmlns='urn:x'/>" }),
            json!({ "kind": "offline_message", "received_at": "2026-01-02T03:04:05.000Z", "xml": "<message from='bob@x.example/r'><body>hi</body></message>" }),
            json!({ "kind": "message", "body": "in the archive" }),
            json!({ "kind": "end", "records": 11 }),
        ] {
            user.take(&line);
        }
        assert_eq!(user.passed(), &BTreeMap::from([("message".to_owned(), 1)]));
        let text = String::from_utf8(user.file()).expect("text");
        let (head, rest) = text.split_once('\n').expect("two lines");
        assert_eq!(head, "<?xml version='1.0' encoding='UTF-8'?>");
        assert_eq!(
            rest.trim_end(),
            "<server-data xmlns='urn:xmpp:pie:0'><host jid='x.example'><user name='alice'>\
             <scram-credentials xmlns='urn:xmpp:pie:0#scram' mechanism='SCRAM-SHA-256'><iter-count>4096</iter-count><salt>c2E=</salt><server-key>BQ==</server-key><stored-key>AA==</stored-key></scram-credentials>\
             <query xmlns='jabber:iq:roster'><item jid='bob@x.example' name='B &amp; B' subscription='both'><group>Friends</group></item></query>\
             <presence xmlns='jabber:client' from='eve@x.example' type='subscribe'/>\
             <vCard xmlns='vcard-temp'><FN>A</FN></vCard>\
             <query xmlns='jabber:iq:private'><e xmlns='exodus:prefs'/></query>\
             <pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='n'><x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE' type='hidden'><value>http://jabber.org/protocol/pubsub#node_config</value></field><field var='pubsub#access_model'><value>whitelist</value></field></x></configure></pubsub>\
             <pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n'><item id='1'><one xmlns='urn:x'/></item><item id='2'><two xmlns='urn:x'/></item></items></pubsub>\
             <offline-messages><message xmlns='jabber:client' from='bob@x.example/r'><body>hi</body><delay xmlns='urn:xmpp:delay' from='x.example' stamp='2026-01-02T03:04:05.000Z'/></message></offline-messages>\
             </user></host></server-data>"
        );
    }

    #[test]
    fn the_file_of_a_host_includes_those_of_its_accounts() {
        let text = String::from_utf8(main("x.example", &["a&b@x.example.xml".to_owned()])).expect("text");
        assert!(text.ends_with(
            "<host jid='x.example'><include xmlns='http://www.w3.org/2001/XInclude' href='a&amp;b@x.example.xml'/></host></server-data>\n"
        ));
    }
}
