//! What belongs to an account besides its keys: contacts, what its clients keep, its vCard, its nodes, and messages that wait for it.

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::text::sendable;
use crate::values::time::{Time, now};
use bytes::Bytes;
use carillon_core::model::{
    Access, ConfigChange, DomainId, NodeEdit, NodeRefusal, SendLast, Standing, TopicConfig, UnixMs,
};
use carillon_core::ports::Page;
use carillon_core::ports::store::nodes::EditNode;
use carillon_core::ports::store::offline::{Offline, StoreOffline, StoreOfflineAnswer};
use carillon_core::ports::store::private::{PrivateElement, StorePrivate, StorePrivateAnswer};
use carillon_core::ports::store::roster::{PutContact, PutContactAnswer};
use carillon_core::ports::store::vcard::StoreVcard;
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Kind, Payload, Stanza, Unit, read as read_unit};
use carillon_wire::xml::{Element, Limits};

/// A part of an account, which the node has already or that a line before this one made.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Part {
    /// A contact, in place of what the account's roster says of it. The contact's own roster stays as it is.
    Contact {
        /// Its bare JID.
        jid: String,
        /// What the account calls it.
        #[serde(default)]
        name: String,
        /// The groups that the account has put it in.
        #[serde(default)]
        groups: Vec<String>,
        /// The account sees the contact's presence.
        #[serde(default)]
        to: bool,
        /// The contact sees the account's presence.
        #[serde(default)]
        from: bool,
        /// The account has asked to see the contact's, and was not answered.
        #[serde(default)]
        asked: bool,
        /// The account agrees when the contact asks.
        #[serde(default)]
        approved: bool,
    },
    /// An element that its clients keep (XEP-0049), in place of the one of this name and namespace.
    Private {
        /// The element.
        xml: String,
    },
    /// Its vCard (XEP-0054).
    Vcard {
        /// The element.
        xml: String,
    },
    /// A node of it (XEP-0163), created or configured.
    Node {
        /// The node's name.
        name: String,
        /// Who may read it: `open`, `presence`, `roster` or `whitelist`.
        #[serde(default)]
        access_model: Option<String>,
    },
    /// An item of one of its nodes, in place of one with its id. A node that is not there is created.
    Item {
        /// The node's name.
        node: String,
        /// The item's id.
        id: String,
        /// The payload.
        xml: String,
    },
    /// A message that waits for it, unless that waits already.
    OfflineMessage {
        /// When it was received; now, if that is left out.
        #[serde(default)]
        received_at: Option<Time>,
        /// The message, with `from`.
        xml: String,
    },
}

/// Whose part is written.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub(super) domain: DomainId,
    pub(super) jid: BareJid,
}

/// Writes a part.
pub(super) async fn write(app: &App, owner: &Owner, part: Part) -> Result<(), Problem> {
    match part {
        Part::Contact { jid, name, groups, to, from, asked, approved } => {
            let standing = Standing { to, from, pending_out: asked && !to, pending_in: false, approved };
            contact(app, owner, &jid, name, groups, standing).await
        }
        Part::Private { xml } => private(app, owner, &xml).await,
        Part::Vcard { xml } => vcard(app, owner, &xml).await,
        Part::Node { name, access_model } => node(app, owner, &name, access_model.as_deref()).await,
        Part::Item { node, id, xml } => item(app, owner, node, id, &xml).await,
        Part::OfflineMessage { received_at, xml } => {
            offline(app, owner, received_at.map_or_else(now, |time| time.0), &xml).await
        }
    }
}

async fn contact(
    app: &App,
    owner: &Owner,
    jid: &str,
    name: String,
    groups: Vec<String>,
    standing: Standing,
) -> Result<(), Problem> {
    let contact =
        BareJid::new(jid).map_err(|error| Problem::new(Code::InvalidJid, format!("`{jid}`: {error}")))?;
    if contact == owner.jid {
        return Err(bad("an account cannot be its own contact"));
    }
    sendable(&name, "name")?;
    groups.iter().try_for_each(|group| sendable(group, "groups"))?;
    let asked = PutContact {
        domain: owner.domain,
        local: owner.local(),
        contact,
        name: name.into(),
        groups: groups.into_iter().map(Into::into).collect(),
        stand: Some(standing),
        bounds: app.options.core.limits.roster,
    };
    match app.ask(asked).await? {
        PutContactAnswer::Put(_) => Ok(()),
        PutContactAnswer::NoAccount => Err(owner.missing()),
        PutContactAnswer::Full => Err(full("the account's roster")),
    }
}

async fn private(app: &App, owner: &Owner, xml: &str) -> Result<(), Problem> {
    let element = parsed(xml)?;
    if matches!(element.ns(), ns::PRIVATE | ns::CLIENT | "") {
        return Err(bad("an element to be kept needs a namespace of its own"));
    }
    let xml = Payload::from_element(&element).bytes().clone();
    let elements = vec![PrivateElement { name: element.name().into(), ns: element.ns().into(), xml }];
    let bytes_max = app.options.core.limits.private_bytes;
    let asked = StorePrivate { domain: owner.domain, local: owner.local(), elements, bytes_max };
    match app.ask(asked).await? {
        StorePrivateAnswer::Stored => Ok(()),
        StorePrivateAnswer::NoAccount => Err(owner.missing()),
        StorePrivateAnswer::Full => Err(full("the account's private storage")),
    }
}

async fn vcard(app: &App, owner: &Owner, xml: &str) -> Result<(), Problem> {
    let element = parsed(xml)?;
    if !element.is("vCard", ns::VCARD) {
        return Err(Problem::new(Code::InvalidXml, "it is no `vCard` in the namespace `vcard-temp`"));
    }
    let xml = Payload::from_element(&element).bytes().clone();
    let most = app.options.core.limits.vcard_bytes;
    if xml.len() > most {
        return Err(bad(format!("the vCard has {} bytes; this node keeps {most}", xml.len())));
    }
    let asked = StoreVcard { domain: owner.domain, local: owner.local(), xml };
    app.ask(asked).await?.map_err(|_| owner.missing())
}

async fn node(app: &App, owner: &Owner, name: &str, access_model: Option<&str>) -> Result<(), Problem> {
    let access_model = access_model.map(access).transpose()?;
    let change = ConfigChange {
        access_model,
        max_items: Some(app.options.core.limits.nodes.items),
        ..ConfigChange::default()
    };
    match edit(app, owner, name, NodeEdit::Create(change.apply(&of_node(app, name)))).await? {
        Err(NodeRefusal::Exists) => done(owner, edit(app, owner, name, NodeEdit::Configure(change)).await?),
        other => done(owner, other),
    }
}

async fn item(app: &App, owner: &Owner, node: String, id: String, xml: &str) -> Result<(), Problem> {
    let element = parsed(xml)?;
    if element.ns().is_empty() {
        return Err(Problem::new(Code::InvalidXml, "a payload needs a namespace"));
    }
    if id.is_empty() || id.len() > NAME_MAX {
        return Err(bad(format!("the id of an item has 1 to {NAME_MAX} bytes")));
    }
    let mut payload = Vec::with_capacity(xml.len() + 64);
    element.write(&mut payload, "");
    let default = of_node(app, &node);
    let options = ConfigChange::default();
    let publish = NodeEdit::Publish { id: id.into(), payload: payload.into(), options, default };
    done(owner, edit(app, owner, &node, publish).await?)
}

/// A node of which nothing else is said: with as many items as a node may have.
fn of_node(app: &App, name: &str) -> TopicConfig {
    let max_items = app.options.core.limits.nodes.items;
    TopicConfig {
        max_items,
        send_last_published_item: SendLast::OnSubAndPresence,
        ..TopicConfig::of_node(name)
    }
}

async fn edit(
    app: &App,
    owner: &Owner,
    name: &str,
    edit: NodeEdit,
) -> Result<Result<(), NodeRefusal>, Problem> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(bad(format!("the name of a node has 1 to {NAME_MAX} bytes")));
    }
    let (domain, local, bounds) = (owner.domain, owner.local(), app.options.core.limits.nodes);
    let asked = EditNode { domain, local, node: name.into(), edit, bounds, now: now() };
    Ok(app.ask(asked).await?.map(drop))
}

fn done(owner: &Owner, edited: Result<(), NodeRefusal>) -> Result<(), Problem> {
    edited.map_err(|refusal| match refusal {
        NodeRefusal::TooManyNodes => full("what an account may have of nodes"),
        NodeRefusal::TooManyBytes => full("what an account may keep on its nodes"),
        NodeRefusal::NoAccount => owner.missing(),
        NodeRefusal::NoNode | NodeRefusal::NoItem | NodeRefusal::Exists | NodeRefusal::Unmet(_) => {
            bad("somebody else has just changed the node")
        }
    })
}

async fn offline(app: &App, owner: &Owner, received: UnixMs, xml: &str) -> Result<(), Problem> {
    let stanza = message(owner, xml)?;
    if waits(app, owner, &stanza).await? {
        return Ok(());
    }
    let limits = &app.options.core.limits;
    let asked = StoreOffline {
        domain: owner.domain,
        local: owner.local(),
        received,
        stanza,
        expires: None,
        queue_max: limits.offline_messages,
        bytes_max: limits.offline_bytes,
        wake: None,
    };
    match app.ask(asked).await? {
        StoreOfflineAnswer::Stored(_) => Ok(()),
        StoreOfflineAnswer::NoAccount => Err(owner.missing()),
        StoreOfflineAnswer::Full => Err(full("the account's queue of messages")),
    }
}

/// A message as it is kept: without the stamp of the server that it was kept by.
fn message(owner: &Owner, xml: &str) -> Result<Bytes, Problem> {
    let no_message = |why: &str| Problem::new(Code::InvalidXml, format!("it is no message: {why}"));
    let mut bytes = Vec::new();
    parsed(xml)?.write(&mut bytes, ns::CLIENT);
    let context = Context::new(Framing::Tcp, Limits::trusted());
    let stanza = match read_unit(&bytes, &context) {
        Ok(Unit::Stanza(stanza)) => stanza,
        Ok(_) => return Err(no_message("another element")),
        Err(error) => return Err(no_message(&error.to_string())),
    };
    let mut stanza: Stanza = stanza;
    if !matches!(stanza.kind, Kind::Message(_)) || stanza.from.is_none() {
        return Err(no_message("`message` with `from` is needed"));
    }
    stanza.to.get_or_insert_with(|| owner.jid.to_jid());
    stanza.payload.remove("delay", ns::DELAY);
    stanza.payload.remove("x", "jabber:x:delay");
    let mut out = Vec::new();
    stanza.write(&mut out, Framing::Tcp);
    Ok(out.into())
}

/// Whether a message waits already: a file that is imported again changes nothing.
async fn waits(app: &App, owner: &Owner, stanza: &Bytes) -> Result<bool, Problem> {
    let mut after = 0;
    loop {
        let (domain, local) = (owner.domain, owner.local());
        let part = app.ask(Offline { domain, local, after, page: PAGE }).await?;
        if part.entries.iter().any(|waiting| waiting.stanza == *stanza) {
            return Ok(true);
        }
        match part.entries.last().filter(|_| part.more) {
            Some(last) => after = last.seq,
            None => return Ok(false),
        }
    }
}

impl Owner {
    fn local(&self) -> Box<str> {
        crate::values::jids::local(&self.jid)
    }

    fn missing(&self) -> Problem {
        Problem::new(Code::UnknownAccount, format!("there is no account `{}`", self.jid))
    }
}

/// What is asked for at a time.
const PAGE: Page = Page { entries: 200, bytes: 256 << 10 };

/// Bytes of the name of a node, and of the id of an item.
const NAME_MAX: usize = 1023;

fn access(word: &str) -> Result<Access, Problem> {
    match word {
        "open" => Ok(Access::Open),
        "presence" => Ok(Access::Presence),
        "roster" => Ok(Access::Roster),
        "whitelist" => Ok(Access::Whitelist),
        _ => Err(bad(format!("`access_model` is open, presence, roster or whitelist, not `{word}`"))),
    }
}

fn parsed(xml: &str) -> Result<Element, Problem> {
    Element::parse(xml.as_bytes(), ns::CLIENT)
        .map_err(|error| Problem::new(Code::InvalidXml, format!("`xml`: {error}")))
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidValue, detail.into())
}

fn full(what: &str) -> Problem {
    Problem::new(Code::Refused, format!("{what} is full"))
}
