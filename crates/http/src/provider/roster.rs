//! The roster of an account (RFC 6121 §2), as its sessions see and edit it.

use super::act::{ask, exists};
use crate::accounts::find;
use crate::app::App;
use crate::auth::{Chat, Granted};
use crate::extract::{DomainQuery, JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::text::sendable;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, PresenceType, Stanza};
use carillon_wire::xml::Element;

/// The contacts of an account.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Roster {
    /// In no particular order.
    contacts: Vec<ContactView>,
}

/// A contact.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ContactView {
    /// Its bare JID.
    jid: String,
    /// What the account calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The groups that the account has put it in.
    groups: Vec<String>,
    /// Who sees whose presence: `none`, `to` (the account that of the contact), `from` (the contact that of the account) or `both`.
    subscription: String,
    /// Whether the account has asked to see the contact's presence, and was not answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    asked: bool,
}

/// A contact as it is to be; what is left out stays as it is.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContactBody {
    /// What the account calls it; empty for nothing.
    name: Option<String>,
    /// The groups that it is in.
    groups: Option<Vec<String>>,
    /// Whether both are to see each other's presence, without either being asked. The contact must be an account in a domain that the key reaches; the account
    /// becomes a contact of it, too.
    #[serde(default)]
    mutual: bool,
}

/// Read an account's roster
#[utoipa::path(
    get, path = "/v1/accounts/{jid}/roster", operation_id = "getRoster", tag = "contacts",
    params(DomainQuery, ("jid" = String, Path, description = "Its bare JID or local part")),
    responses((status = 200, description = "The contacts", body = Roster), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(jid): Named<String>,
) -> Result<Json<Roster>, Problem> {
    let (domain, account) = find(&key, &app, &jid, query.domain.as_deref())?;
    exists(&app, &domain, &account).await?;
    Ok(Json(Roster { contacts: read(&app, &account).await? }))
}

/// Put a contact into an account's roster
///
/// New, or with another name or other groups. The account's sessions are told. Without `mutual` nobody sees anybody's presence who did not before.
#[utoipa::path(
    put, path = "/v1/accounts/{jid}/roster/{contact}", operation_id = "putContact", tag = "contacts", request_body = ContactBody,
    params(
        DomainQuery,
        ("jid" = String, Path, description = "The account's bare JID or local part"),
        ("contact" = String, Path, description = "The contact's bare JID or local part")
    ),
    responses((status = 200, description = "The contact as it is now", body = ContactView), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((jid, contact)): Named<(String, String)>,
    JsonBody { value: body, .. }: JsonBody<ContactBody>,
) -> Result<Json<ContactView>, Problem> {
    let (domain, account) = find(&key, &app, &jid, query.domain.as_deref())?;
    let contact = jids::account(&contact, &domain.name).map_err(|problem| problem.at("contact"))?;
    exists(&app, &domain, &account).await?;
    if body.mutual {
        let other = key.reach(&app, contact.domain())?;
        if app.node.domains().reachable(&domain.name, &other.name).is_none() {
            let detail = format!(
                "the policies of `{}` and `{}` keep their accounts apart (`other_domains`)",
                domain.name, other.name
            );
            return Err(Problem::new(Code::Refused, detail).at("contact"));
        }
        exists(&app, &other, &contact).await?;
    }
    sendable(body.name.as_deref().unwrap_or_default(), "name")?;
    body.groups.iter().flatten().try_for_each(|group| sendable(group, "groups"))?;
    let known = match (&body.name, &body.groups) {
        (Some(_), Some(_)) => None,
        _ => read(&app, &account).await?.into_iter().find(|known| known.jid == contact.as_str()),
    };
    let (known_name, known_groups) = known.map(|known| (known.name, known.groups)).unwrap_or_default();
    let mut item = Element::new("item", ns::ROSTER).with_attr("jid", contact.as_str());
    if let Some(name) = body.name.or(known_name).filter(|name| !name.is_empty()) {
        item.set_attr("name", name);
    }
    for group in body.groups.unwrap_or(known_groups) {
        item.push(Element::new("group", ns::ROSTER).with_text(group));
    }
    set(&app, &account, item, Code::UnknownAccount).await?;
    if body.mutual {
        for (viewer, seen) in [(&account, &contact), (&contact, &account)] {
            // Who is seen agrees before the other asks (RFC 6121 §3.4), so that nobody is asked.
            say(&app, seen, PresenceType::Subscribed, viewer).await?;
            say(&app, viewer, PresenceType::Subscribe, seen).await?;
        }
    }
    let contacts = read(&app, &account).await?;
    let found = contacts.into_iter().find(|view| view.jid == contact.as_str());
    found.map(Json).ok_or_else(|| unknown(&account, &contact))
}

/// Remove a contact from an account's roster
///
/// With the subscriptions between the two.
#[utoipa::path(
    delete, path = "/v1/accounts/{jid}/roster/{contact}", operation_id = "deleteContact", tag = "contacts",
    params(
        DomainQuery,
        ("jid" = String, Path, description = "The account's bare JID or local part"),
        ("contact" = String, Path, description = "The contact's bare JID or local part")
    ),
    responses((status = 204, description = "It is removed"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Chat>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((jid, contact)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (domain, account) = find(&key, &app, &jid, query.domain.as_deref())?;
    let contact = jids::account(&contact, &domain.name).map_err(|problem| problem.at("contact"))?;
    exists(&app, &domain, &account).await?;
    match set(&app, &account, removed(contact.as_str()), Code::UnknownContact).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(problem) if problem.code() == Code::UnknownContact => Err(unknown(&account, &contact)),
        Err(problem) => Err(problem),
    }
}

fn unknown(account: &BareJid, contact: &BareJid) -> Problem {
    Problem::new(Code::UnknownContact, format!("`{account}` has no contact `{contact}`"))
}

async fn read(app: &App, account: &BareJid) -> Result<Vec<ContactView>, Problem> {
    let request = Stanza::iq(IqType::Get).with_payload(Element::new("query", ns::ROSTER));
    let roster = ask(app, account, request, Code::UnknownAccount).await?;
    Ok(contacts(roster.as_ref()))
}

fn contacts(roster: Option<&Element>) -> Vec<ContactView> {
    let items = roster.into_iter().flat_map(Element::children).filter(|child| child.is("item", ns::ROSTER));
    items.map(ContactView::of).collect()
}

fn removed(contact: &str) -> Element {
    Element::new("item", ns::ROSTER).with_attr("jid", contact).with_attr("subscription", "remove")
}

async fn set(app: &App, account: &BareJid, item: Element, missing: Code) -> Result<(), Problem> {
    let request = Stanza::iq(IqType::Set).with_payload(Element::new("query", ns::ROSTER).with_child(item));
    ask(app, account, request, missing).await.map(drop)
}

/// An account says something about the subscriptions between it and another.
async fn say(app: &App, account: &BareJid, what: PresenceType, to: &BareJid) -> Result<(), Problem> {
    ask(app, account, Stanza::presence(what).with_to(to.clone()), Code::UnknownAccount).await.map(drop)
}

impl ContactView {
    fn of(item: &Element) -> ContactView {
        let groups = item.children().filter(|child| child.is("group", ns::ROSTER));
        ContactView {
            jid: item.attr("jid").unwrap_or_default().to_owned(),
            name: item.attr("name").map(str::to_owned),
            groups: groups.map(Element::text).collect(),
            subscription: item.attr("subscription").unwrap_or("none").to_owned(),
            asked: item.attr("ask") == Some("subscribe"),
        }
    }
}
