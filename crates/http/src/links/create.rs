//! Making links: for the page, for the API, and for notifications.

use super::{Host, Links, bounds, code, count, url};
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::problem::{Code, Problem};
use crate::values::time::{Time, now};
use carillon_core::model::{Domain, DomainId, KeyId, Link, LinkFile, NotificationId, Scope};
use carillon_core::ports::store::links::{CreateLink, CreateLinkAnswer};
use std::sync::Arc;

/// A link to be made.
#[derive(Clone, Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkBody {
    /// Where it is to lead: an `http` or `https` URL, or one of a scheme in `links.app_schemes`.
    #[schema(example = "https://example.com/offers?id=7", max_length = 2048)]
    pub(crate) url: String,
    /// Its code: letters, digits, `-` and `_`. Left out: 8 characters, the same for the same URL.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 64)]
    pub(crate) code: Option<String>,
    /// When it stops leading anywhere. Left out: never.
    #[serde(default)]
    pub(crate) expires_at: Option<Time>,
    /// Whether its URL may be changed later. Browsers do not remember such a link: it is answered with 307 instead of 308.
    #[serde(default)]
    pub(crate) may_change: Option<bool>,
}

/// Who makes a link.
#[derive(Clone, Copy)]
pub(super) enum Maker {
    /// Whoever has this key.
    Key(KeyId),
    /// Anybody.
    Public,
}

/// A link that was asked for, and whether it is new.
pub(super) struct Made {
    pub(super) link: Link,
    pub(super) is_new: bool,
}

/// The host of a domain's short URLs.
pub(super) fn host<'a>(app: &'a App, domain: &Domain) -> Result<&'a Host, Problem> {
    app.links().host_of(&domain.name).ok_or_else(|| {
        let detail = format!("the domain `{}` has no host in the setting `links.hosts`", domain.name);
        Problem::new(Code::NoLinkHost, detail)
    })
}

/// The normal form of a URL that may be shortened.
pub(super) fn checked_url(app: &App, text: &str, maker: Maker) -> Result<String, Problem> {
    let settings = &app.options.settings.links;
    let own_hosts: Vec<&str> = app.links().hosts.iter().map(|host| &*host.name).collect();
    let rules = url::Rules {
        own_hosts: &own_hosts,
        app_schemes: &settings.app_schemes,
        targets: matches!(maker, Maker::Public).then_some(&settings.public_targets[..]),
    };
    url::read(text, rules).map_err(|why| Problem::new(Code::InvalidValue, format!("`url`: {why}")).at("/url"))
}

/// Makes a link of a domain that has a host, unless it is there already.
pub(super) async fn create(
    app: &App,
    domain: &Domain,
    body: &LinkBody,
    maker: Maker,
) -> Result<Made, Problem> {
    let url = checked_url(app, &body.url, maker)?;
    let now = now();
    let expires = body.expires_at.map(|Time(at)| at);
    if expires.is_some_and(|at| at <= now) {
        let detail = format!("`expires_at` is in the past: it is {} now", now.to_xmpp());
        return Err(Problem::new(Code::InvalidValue, detail).at("/expires_at"));
    }
    let secret = Links::secret(app, domain.id).await?;
    let codes = match &body.code {
        None => code::of_url(&secret, &url),
        // A file is served there.
        Some(custom) if LinkFile::named(custom).is_some() => {
            let detail = format!("`code` is the name of a file of apps, `{custom}`");
            return Err(Problem::new(Code::InvalidValue, detail).at("/code"));
        }
        Some(custom) if code::is_valid(custom) => vec![custom.as_str().into()],
        Some(_) => {
            let detail = "`code` has 1 to 64 letters, digits, `-` and `_`";
            return Err(Problem::new(Code::InvalidValue, detail).at("/code"));
        }
    };
    let asked = CreateLink {
        domain: domain.id,
        codes,
        url: url.into(),
        may_change: body.may_change.unwrap_or_default(),
        expires,
        key: if let Maker::Key(key) = maker { Some(key) } else { None },
        now,
        bounds: bounds(app),
    };
    match app.ask(asked).await? {
        CreateLinkAnswer::Created(link) => {
            count(&app.links().figures.created);
            app.links().forget(&domain.name, &link.code);
            met(body, *link, true)
        }
        CreateLinkAnswer::Exists(link) => met(body, *link, false),
        CreateLinkAnswer::Taken if body.code.is_some() => {
            Err(Problem::new(Code::AlreadyExists, "the code leads to another URL").at("/code"))
        }
        CreateLinkAnswer::Taken => {
            Err(Problem::new(Code::AlreadyExists, "the codes of this URL lead to others; choose a `code`"))
        }
        CreateLinkAnswer::Full => {
            let detail = "the domain has as many links as `links.per_domain_max` and `links.bytes_per_domain_max` allow";
            Err(Problem::new(Code::TooManyLinks, detail))
        }
        CreateLinkAnswer::NoDomain => {
            Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted"))
        }
    }
}

/// A link that has all that was asked for. One that is there is not changed by being made again.
fn met(body: &LinkBody, link: Link, is_new: bool) -> Result<Made, Problem> {
    if link.removed.is_some() {
        let detail = format!(
            "the link `{}` of this URL was taken down; `PATCH` with `removed` false brings it back",
            link.code
        );
        return Err(Problem::new(Code::LinkRemoved, detail).at("/url"));
    }
    let differs = |member: &str| {
        let detail = format!(
            "the link `{}` of this URL has another value of `{member}`; `PATCH` changes it",
            link.code
        );
        Problem::new(Code::AlreadyExists, detail).at(format!("/{member}"))
    };
    if body.expires_at.is_some_and(|Time(at)| link.expires != Some(at)) {
        return Err(differs("expires_at"));
    }
    if body.may_change.is_some_and(|may| link.may_change != may) {
        return Err(differs("may_change"));
    }
    Ok(Made { link, is_new })
}

/// The short URL of a notification's link, which lacks only what stands for the notification.
#[derive(Clone, Debug)]
pub(crate) struct Shortened {
    /// All up to there.
    head: Box<str>,
    secret: code::Secret,
}

impl Shortened {
    /// Shortens the URL of notifications to accounts of a domain, for a key that may.
    pub(crate) async fn new(
        app: &App,
        key: &Granted<Send>,
        domain: DomainId,
        url: &str,
    ) -> Result<Shortened, Problem> {
        let (domain, host) = Shortened::place(app, key, domain)?;
        let body = LinkBody { url: url.to_owned(), ..LinkBody::default() };
        let made = create(app, &domain, &body, Maker::Key(key.key.id)).await.map_err(at_link)?;
        let secret = Links::secret(app, domain.id).await?;
        Ok(Shortened { head: format!("{}.", super::short_url(host, &made.link)).into(), secret })
    }

    /// Checks whether it could be shortened.
    pub(crate) fn rehearse(
        app: &App,
        key: &Granted<Send>,
        domain: DomainId,
        url: &str,
    ) -> Result<(), Problem> {
        Shortened::place(app, key, domain)?;
        checked_url(app, url, Maker::Key(key.key.id)).map_err(at_link).map(drop)
    }

    fn place<'a>(
        app: &'a App,
        key: &Granted<Send>,
        domain: DomainId,
    ) -> Result<(Arc<Domain>, &'a Host), Problem> {
        key.needs(Scope::Links).map_err(|problem| problem.at("/link"))?;
        let domain = app.node.domains().numbered(domain).cloned();
        let gone = || Problem::new(Code::UnknownDomain, "the domain has just been deleted");
        let domain = domain.ok_or_else(gone)?;
        let host = host(app, &domain).map_err(|problem| problem.at("/link"))?;
        Ok((domain, host))
    }

    /// The link of one notification.
    pub(crate) fn of(&self, id: NotificationId) -> String {
        format!("{}{}", self.head, code::of_notification(&self.secret, id))
    }
}

/// A problem with a URL, as one of the member that a notification has it in.
fn at_link(problem: Problem) -> Problem {
    if problem.pointer() == Some("/url") { problem.at("/link") } else { problem }
}
