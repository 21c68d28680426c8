//! Invitations: made, listed and revoked by the API; and the page that shows one to whoever was given it.

pub(crate) mod page;

use crate::app::App;
use crate::auth::{Enrol, Granted};
use crate::extract::{DomainQuery, Named, Optional, Params, limit};
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::time::{Time, now};
use crate::values::{jids, schema};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{Domain, Invitation, InvitationId, TokenHash};
use carillon_core::ports::Missing;
use carillon_core::ports::store::invitations::{
    CreateInvitation, CreateInvitationAnswer, Invitations, RevokeInvitation,
};

/// Longest time that an invitation is valid, in milliseconds.
const VALID_MAX_MS: u64 = 365 * 24 * 60 * 60 * 1000;
/// How often one can be used at most.
const USES_MAX: u32 = 10_000;

/// An invitation to be made.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InvitationBody {
    /// The local part of the account that invites: whoever uses the invitation becomes its contact. Left out: nobody in particular.
    inviter: Option<String>,
    /// The only local part that can be registered with it. Left out: any.
    localpart: Option<String>,
    /// How often it can be used.
    #[schema(minimum = 1, maximum = 10000, default = 1)]
    uses: u32,
    /// When it expires, within a year. Left out: after `invitations.valid_ms`.
    expires_at: Option<Time>,
    /// Whether an account can be registered with it. Otherwise it is for people who have one: their clients ask the inviter, and it may accept.
    #[schema(default = true)]
    registers: bool,
}

impl Default for InvitationBody {
    fn default() -> InvitationBody {
        InvitationBody { inviter: None, localpart: None, uses: 1, expires_at: None, registers: true }
    }
}

/// An invitation, without its token.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct InvitationView {
    /// Its number.
    id: u64,
    /// The local part of the account that invites; none for nobody in particular.
    inviter: Option<String>,
    /// The only local part that can be registered with it; none for any.
    localpart: Option<String>,
    /// Whether an account can be registered with it.
    registers: bool,
    /// How often it can be used.
    uses_max: u32,
    /// How often it was used.
    uses: u32,
    /// When it was made.
    created_at: Time,
    /// When it expires, or since when it is expired.
    expires_at: Time,
}

/// A new invitation.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct InvitationCreated {
    /// Its token: shown now and never again.
    token: String,
    /// The URI that XMPP clients open (XEP-0445, XEP-0379).
    #[schema(example = "xmpp:romeo@example.com?roster;preauth=3kTMd9xQ;ibr=y")]
    uri: String,
    /// The page that shows it; none where `invitations.url` is empty.
    landing_url: Option<String>,
    /// The invitation without its token.
    #[serde(flatten)]
    view: InvitationView,
}

/// A page of invitations.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct InvitationList {
    /// Newest first.
    invitations: Vec<InvitationView>,
    /// The value of `after` for the next page; none when there are no more.
    next: Option<String>,
}

/// Which invitations to list.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InvitationsQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Only invitations after this one in the list: the `next` of the page before.
    after: Option<u64>,
    /// How many, 1 to 1000.
    limit: Option<u16>,
}

impl InvitationView {
    fn of(invitation: &Invitation) -> InvitationView {
        InvitationView {
            id: invitation.id.0,
            inviter: invitation.inviter.as_deref().map(str::to_owned),
            localpart: invitation.local.as_deref().map(str::to_owned),
            registers: invitation.registers,
            uses_max: invitation.uses_max,
            uses: invitation.uses,
            created_at: Time(invitation.created),
            expires_at: Time(invitation.expires),
        }
    }
}

/// Make an invitation
///
/// Whoever has its token registers an account of the domain in-band (XEP-0445), whatever the domain's policy says, and becomes a contact of the
/// inviter. The token is not kept: it cannot be shown again.
#[utoipa::path(
    post, path = "/v1/invitations", operation_id = "createInvitation", tag = "devices", params(DomainQuery),
    request_body(content = Option<InvitationBody>),
    responses((status = 201, description = "The new invitation", body = InvitationCreated), schema::Problems)
)]
pub(crate) async fn create(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Optional(body): Optional<InvitationBody>,
) -> Result<(StatusCode, Json<InvitationCreated>), Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let token = random::secret();
    let ask = asked(&app, &domain, &token, body)?;
    match app.ask(ask).await? {
        CreateInvitationAnswer::Created(made) => Ok((
            StatusCode::CREATED,
            Json(InvitationCreated {
                uri: made.uri(&domain.name, &token),
                landing_url: app.options.core.invitations.page_of(&domain.name, &token),
                view: InvitationView::of(&made),
                token,
            }),
        )),
        CreateInvitationAnswer::Full => {
            let detail =
                "the domain has as many invitations as `invitations.per_domain` allows; revoke some first";
            Err(Problem::new(Code::TooManyInvitations, detail))
        }
        CreateInvitationAnswer::Missing => {
            let detail = format!("the domain `{}` has no account of the inviter", domain.name);
            Err(Problem::new(Code::UnknownAccount, detail).at("/inviter"))
        }
        CreateInvitationAnswer::Exists => Err(Problem::unexpected(&"a token that is there")),
    }
}

fn asked(app: &App, domain: &Domain, token: &str, body: InvitationBody) -> Result<CreateInvitation, Problem> {
    let settings = &app.options.core.invitations;
    if !settings.enabled {
        let detail = "the setting `invitations.enabled` is off: clients could not use it";
        return Err(Problem::new(Code::NoInvitations, detail));
    }
    let local = |text: Option<String>, member: &'static str| {
        let prepared = text.map(|text| jids::device(&text, domain)).transpose();
        prepared.map(|jid| jid.as_ref().map(jids::local)).map_err(|problem| problem.at(member))
    };
    let invalid = |detail: String, member| Err(Problem::new(Code::InvalidValue, detail).at(member));
    if !(1..=USES_MAX).contains(&body.uses) {
        return invalid(format!("`uses` is 1 to {USES_MAX}"), "/uses");
    }
    let now = now();
    let expires = body.expires_at.map_or(now.plus(settings.valid_ms), |Time(at)| at);
    if expires <= now || expires > now.plus(VALID_MAX_MS) {
        return invalid("`expires_at` is later than now, and within a year".to_owned(), "/expires_at");
    }
    let (inviter, localpart) = (local(body.inviter, "/inviter")?, local(body.localpart, "/localpart")?);
    if !body.registers && (inviter.is_none() || localpart.is_some()) {
        let detail = "without `registers` an invitation needs an `inviter`, and has no `localpart`";
        return invalid(detail.to_owned(), "/registers");
    }
    Ok(CreateInvitation {
        domain: domain.id,
        hash: TokenHash::of(token),
        inviter,
        local: localpart,
        registers: body.registers,
        uses_max: body.uses,
        expires,
        max: settings.per_domain,
        inviter_max: u32::MAX,
        now,
    })
}

/// List invitations
///
/// Newest first. Those that are used up are there until they expire; those that have expired until the next is made.
#[utoipa::path(
    get, path = "/v1/invitations", operation_id = "listInvitations", tag = "devices", params(InvitationsQuery),
    responses((status = 200, description = "The invitations", body = InvitationList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<InvitationsQuery>,
) -> Result<Json<InvitationList>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let limit = limit(query.limit)?;
    let before = InvitationId(query.after.unwrap_or(u64::MAX >> 1));
    let mut found = app.ask(Invitations { domain: domain.id, before, limit: limit + 1 }).await?;
    let more = found.len() > usize::from(limit);
    found.truncate(limit.into());
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    Ok(Json(InvitationList { invitations: found.iter().map(InvitationView::of).collect(), next }))
}

/// Revoke an invitation
///
/// It cannot be used any more. Accounts that were registered with it stay.
#[utoipa::path(
    delete, path = "/v1/invitations/{id}", operation_id = "deleteInvitation", tag = "devices",
    params(DomainQuery, ("id" = u64, Path, description = "The invitation's number")),
    responses((status = 204, description = "It is revoked"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<u64>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    match app.ask(RevokeInvitation { domain: domain.id, id: InvitationId(id) }).await? {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(Missing) => {
            let detail = format!("the domain `{}` has no invitation {id}", domain.name);
            Err(Problem::new(Code::UnknownInvitation, detail))
        }
    }
}
