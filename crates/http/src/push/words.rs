//! In which words devices show the pushes of a domain, as its administrators have said by the API: for all gateways, and for each of them.

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, JsonBody, Params};
use crate::problem::{Code, Problem};
use crate::push_settings::templates::{PushTemplate, PushTemplateSettings};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{Domain, DomainId, PushKind};
use carillon_core::ports::Missing;
use carillon_core::ports::store::domains::SetPushTemplates;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Templates of a domain: what its administrators set takes the place of what the settings have for it.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DomainTemplates {
    /// Titles: the first is shown of which all placeholders are known and may be told. At most 8, of 500 bytes.
    #[schema(max_items = 8, example = json!(["{sender} in {room}", "{sender}"]))]
    title: Vec<String>,
    /// Texts, likewise.
    #[schema(max_items = 8, example = json!(["{body}", "{messages} new messages"]))]
    body: Vec<String>,
    /// Those of pushes by Web Push, instead of the ones above.
    #[serde(skip_serializing_if = "Option::is_none")]
    web_push: Option<GatewayTemplates>,
    /// Those of pushes by APNs.
    #[serde(skip_serializing_if = "Option::is_none")]
    apns: Option<GatewayTemplates>,
    /// Those of pushes by FCM.
    #[serde(skip_serializing_if = "Option::is_none")]
    fcm: Option<GatewayTemplates>,
    /// Those of pushes to webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<GatewayTemplates>,
}

/// Templates of a domain for one gateway. Where both lists are empty it is as without templates.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewayTemplates {
    /// Titles, at most 8 of 500 bytes.
    #[schema(max_items = 8)]
    title: Vec<String>,
    /// Texts, likewise.
    #[schema(max_items = 8)]
    body: Vec<String>,
}

/// The templates of a domain, if its administrators have set any.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct TemplatesView {
    /// The domain.
    domain: String,
    /// Its templates; none where the settings of the node decide.
    templates: Option<DomainTemplates>,
}

/// Read a domain's templates for pushes
#[utoipa::path(
    get, path = "/v1/push/templates", operation_id = "getPushTemplates", tag = "push", params(DomainQuery),
    responses((status = 200, description = "The templates that were set", body = TemplatesView), crate::values::schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
) -> Result<Json<TemplatesView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let templates = domain.push_templates.as_deref().map(serde_json::from_str).transpose();
    let templates = templates.map_err(|error| Problem::unexpected(&error))?;
    Ok(Json(TemplatesView { domain: domain.name.to_string(), templates }))
}

/// Set a domain's templates for pushes
///
/// In these words devices show the pushes of the domain's accounts, from now on: see `docs/book/push.md`. They take the place of all that was set before, and of
/// templates of the node's settings. What is wrong is refused with where it is.
#[utoipa::path(
    put, path = "/v1/push/templates", operation_id = "putPushTemplates", tag = "push", params(DomainQuery), request_body = DomainTemplates,
    responses((status = 200, description = "They are set", body = TemplatesView), crate::values::schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    JsonBody { value: templates, .. }: JsonBody<DomainTemplates>,
) -> Result<Json<TemplatesView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    check(&templates)?;
    let json = serde_json::to_string(&templates).map_err(|error| Problem::unexpected(&error))?;
    if json.len() > BYTES_MAX {
        let detail = format!("templates of a domain have at most {BYTES_MAX} bytes together, as JSON");
        return Err(Problem::new(Code::InvalidValue, detail));
    }
    set(&app, &domain, Some(json.into())).await?;
    Ok(Json(TemplatesView { domain: domain.name.to_string(), templates: Some(templates) }))
}

/// Remove a domain's templates for pushes
///
/// Those of the node's settings are used again.
#[utoipa::path(
    delete, path = "/v1/push/templates", operation_id = "deletePushTemplates", tag = "push", params(DomainQuery),
    responses((status = 204, description = "The domain has none of its own"), crate::values::schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    set(&app, &domain, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn set(app: &App, domain: &Domain, templates: Option<Box<str>>) -> Result<(), Problem> {
    let done = app.ask(SetPushTemplates { domain: domain.id, templates }).await?;
    app.reload_domains().await?;
    let gone = || Problem::new(Code::UnknownDomain, format!("there is no domain `{}`", domain.name));
    done.map_err(|Missing| gone())
}

/// Refuses templates that are wrong, with where.
fn check(templates: &DomainTemplates) -> Result<(), Problem> {
    for (name, settings) in parts(templates) {
        if let Some((member, why)) = settings.broken() {
            let at = if name.is_empty() { format!("/{member}") } else { format!("/{name}/{member}") };
            return Err(Problem::new(Code::InvalidValue, why).at(at));
        }
    }
    Ok(())
}

/// The templates for gateways that have none of their own, and those of the others, by their names.
fn parts(templates: &DomainTemplates) -> impl Iterator<Item = (&'static str, PushTemplateSettings)> {
    let of = |title: &[String], body: &[String]| PushTemplateSettings {
        domains: Vec::new(),
        title: title.to_vec(),
        body: body.to_vec(),
    };
    let DomainTemplates { title, body, web_push, apns, fcm, webhook } = templates;
    let of_gateways = [
        (PushKind::WebPush, web_push),
        (PushKind::Apns, apns),
        (PushKind::Fcm, fcm),
        (PushKind::Webhook, webhook),
    ];
    let of_gateways =
        of_gateways.into_iter().filter_map(|(kind, templates)| Some((kind.as_str(), templates.as_ref()?)));
    let all = std::iter::once(("", of(title, body)));
    all.chain(of_gateways.map(move |(name, templates)| (name, of(&templates.title, &templates.body))))
}

/// The templates of domains as they were last read, so that they are not read for each push.
#[derive(Default)]
pub(super) struct Words(Mutex<BTreeMap<DomainId, ReadTemplates>>);

struct ReadTemplates {
    /// What they were read from.
    json: Arc<str>,
    by_gateway: BTreeMap<&'static str, Arc<PushTemplate>>,
}

impl Words {
    /// The template that administrators of a domain have set for a gateway, if they have set any.
    pub(super) fn of(&self, domain: &Domain, kind: PushKind) -> Option<Arc<PushTemplate>> {
        let json = domain.push_templates.as_ref()?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&domain.id).is_none_or(|known| !Arc::ptr_eq(&known.json, json)) {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            // They were checked when they were set.
            let templates: DomainTemplates = serde_json::from_str(json).ok()?;
            let template = |(name, settings)| Some((name, Arc::new(PushTemplate::new(&settings).ok()?)));
            let by_gateway = parts(&templates).filter_map(template).collect();
            known.insert(domain.id, ReadTemplates { json: json.clone(), by_gateway });
        }
        let by_gateway = &known.get(&domain.id)?.by_gateway;
        by_gateway.get(kind.as_str()).or_else(|| by_gateway.get("")).cloned()
    }
}

/// What the templates of a domain may take up, in bytes.
const BYTES_MAX: usize = 16 * 1024;
/// Domains whose templates are remembered.
const KNOWN_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::Policy;

    #[test]
    fn a_gateway_has_its_own_templates_or_those_of_the_domain() {
        let words = Words::default();
        let domain = |json: Option<&str>| Domain {
            push_templates: json.map(Into::into),
            ..Domain::new(DomainId(1), "d.example", Policy::default())
        };
        let shown = |domain: &Domain, kind| {
            words.of(domain, kind).map(|template| template.alert(|_| None).and_then(|alert| alert.body))
        };
        assert_eq!(shown(&domain(None), PushKind::Fcm), None, "the settings decide");
        let set = domain(Some(r#"{"body": ["all"], "apns": {"body": ["iPhone"]}, "webhook": {}}"#));
        for (kind, body) in [
            (PushKind::Fcm, Some("all")),
            (PushKind::Apns, Some("iPhone")),
            (PushKind::WebPush, Some("all")),
            (PushKind::Webhook, None),
        ] {
            assert_eq!(shown(&set, kind), Some(body.map(str::to_owned)), "{kind:?}");
        }
        // They are read again when others are set.
        let other = domain(Some(r#"{"body": ["other"]}"#));
        assert_eq!(shown(&other, PushKind::Apns), Some(Some("other".to_owned())));
        assert_eq!(shown(&domain(None), PushKind::Apns), None);
    }
}
