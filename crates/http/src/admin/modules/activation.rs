//! Which version of a module decides, and for whom.

use super::{ModuleView, activation_of, built, read, unknown};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{JsonBody, Named};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::hex;
use crate::values::time::now;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::ports::Missing;
use carillon_core::ports::modules::{ModuleHash, OnFailure};
use carillon_core::ports::store::modules::{
    ActivateModule, Activation, Configured, DeactivateModule, ListModules, ModuleList,
};
use carillon_server::ModulesError;

/// The longest configuration of a module, in bytes.
const CONFIG_BYTES_MAX: usize = 4096;
/// The fewest digits of a hash that name a version.
const HASH_DIGITS_MIN: usize = 8;

/// What is to be activated.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActivationBody {
    /// The hash of the version, or at least eight digits of its beginning.
    hash: String,
    /// On this node of the cell alone: its name, or its number. Left out: on all.
    #[serde(default)]
    node: Option<String>,
    /// For this domain alone. Left out: for all.
    #[serde(default)]
    domain: Option<String>,
    /// For so many accounts of a hundred, chosen by a hash of the account's name.
    #[serde(default = "all")]
    #[schema(minimum = 1, maximum = 100)]
    percent: u8,
    /// It decides nothing, and is compared with the version before it.
    #[serde(default)]
    shadow: bool,
    /// What becomes of what it fails to decide about.
    #[serde(default)]
    on_failure: FailureBody,
    /// What the module is told: at most 4,096 bytes.
    #[serde(default)]
    config: String,
}

/// What becomes of what a module fails to decide about.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FailureBody {
    /// It goes on.
    #[default]
    Open,
    /// It goes no further.
    Closed,
}

fn all() -> u8 {
    100
}

/// Activate a version of a module
///
/// Every shard has it when this is answered, and takes it between two of its turns: nothing that is under way is lost, delayed or reordered.
/// For accounts that it is not for, on nodes that it is not for, and in `shadow`, the last version decides that was activated for all. Needs a key of the whole node.
#[utoipa::path(
    put, path = "/v1/admin/modules/{module}/activation", operation_id = "activateModule", tag = "admin",
    request_body = ActivationBody,
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "It is activated", body = ModuleView), schema::Problems)
)]
pub(crate) async fn activate(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    JsonBody { value: body, .. }: JsonBody<ActivationBody>,
) -> Result<Json<ModuleView>, Problem> {
    key.whole_node()?;
    built(&app)?;
    if !(1..=100).contains(&body.percent) {
        return Err(Problem::new(Code::InvalidValue, "`percent` is from 1 to 100").at("/percent"));
    }
    if body.config.len() > CONFIG_BYTES_MAX {
        let detail = format!("`config` has at most {CONFIG_BYTES_MAX} bytes");
        return Err(Problem::new(Code::InvalidValue, detail).at("/config"));
    }
    let domain = match &body.domain {
        Some(domain) => {
            Some(key.reach(&app, domain).map_err(|problem| problem.at("/domain"))?.name.as_ref().into())
        }
        None => None,
    };
    let node = body.node.as_deref().map(|node| node_of(&app, node)).transpose()?;
    let list = app.ask(ListModules).await?;
    let version = Configured { hash: found(&list, &name, &body.hash)?, config: body.config.into() };
    let activation = Activation {
        base: base_of(activation_of(&list, &name), &version),
        version,
        node,
        domain,
        percent: body.percent,
        is_shadow: body.shadow,
        on_failure: match body.on_failure {
            FailureBody::Open => OnFailure::Open,
            FailureBody::Closed => OnFailure::Closed,
        },
        since: now(),
    };
    set(&app, &key, &name, activation).await
}

/// Deactivate a module
///
/// What it decided about passes from then on; its versions are kept. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/admin/modules/{module}/activation", operation_id = "deactivateModule", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 204, description = "None of its versions is activated"), schema::Problems)
)]
pub(crate) async fn deactivate(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    read(&app, &name).await?;
    app.ask(DeactivateModule { name: name.as_str().into() }).await?;
    reload(&app).await?;
    tracing::info!(module = name, key = %key.key.name, "a module was deactivated");
    Ok(StatusCode::NO_CONTENT)
}

/// Go back to the last good version of a module
///
/// The version that is the base of the activated one is activated for all. Needs a key of the whole node.
#[utoipa::path(
    post, path = "/v1/admin/modules/{module}/rollback", operation_id = "rollBackModule", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "The version before is activated", body = ModuleView), schema::Problems)
)]
pub(crate) async fn roll_back(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<ModuleView>, Problem> {
    key.whole_node()?;
    read(&app, &name).await?;
    let list = app.ask(ListModules).await?;
    let now_active = activation_of(&list, &name)
        .ok_or_else(|| Problem::new(Code::NotActivated, format!("no version of `{name}` is activated")))?;
    let base = now_active.base.clone().ok_or_else(|| {
        let detail =
            format!("no version of `{name}` was activated for all before this one; deactivate it instead");
        Problem::new(Code::NotActivated, detail)
    })?;
    let activation = Activation {
        version: base,
        base: None,
        node: None,
        domain: None,
        percent: 100,
        is_shadow: false,
        on_failure: now_active.on_failure,
        since: now(),
    };
    set(&app, &key, &name, activation).await
}

/// The name of a node of the cell, which outlives its number.
fn node_of(app: &App, node: &str) -> Result<Box<str>, Problem> {
    let refuse = |code, why: String| Problem::new(code, why).at("/node");
    let cell = app.node.cell();
    let cell =
        cell.ok_or_else(|| refuse(Code::InvalidValue, "this node runs alone: it is in no cell".into()))?;
    let found = cell.named(node).map(|member| member.name.clone());
    found.ok_or_else(|| refuse(Code::UnknownNode, format!("the cell has no node `{node}`")))
}

/// The last good version: the newest that decides for all.
fn base_of(active: Option<&Activation>, version: &Configured) -> Option<Configured> {
    let active = active?;
    match active.is_for_all() && active.version != *version {
        true => Some(active.version.clone()),
        false => active.base.clone(),
    }
}

/// The version of a module that a hash, or its beginning, names.
fn found(list: &ModuleList, name: &str, hash: &str) -> Result<ModuleHash, Problem> {
    if !list.versions.iter().any(|version| *version.name == *name) {
        return Err(unknown(name));
    }
    let refuse = |code, detail: String| Err(Problem::new(code, detail).at("/hash"));
    if hash.len() < HASH_DIGITS_MIN {
        return refuse(Code::InvalidValue, format!("a hash has at least {HASH_DIGITS_MIN} of its digits"));
    }
    let of_name = list.versions.iter().filter(|version| *version.name == *name);
    let named: Vec<ModuleHash> = of_name
        .map(|version| version.hash)
        .filter(|of| hex(of).starts_with(&hash.to_ascii_lowercase()))
        .collect();
    match named[..] {
        [hash] => Ok(hash),
        [] => refuse(Code::UnknownModule, format!("`{name}` has no version `{hash}`")),
        _ => refuse(Code::InvalidValue, format!("several versions of `{name}` begin with `{hash}`")),
    }
}

async fn set(
    app: &App,
    key: &Granted<Admin>,
    name: &str,
    activation: Activation,
) -> Result<Json<ModuleView>, Problem> {
    let (hash, percent, is_shadow) =
        (hex(&activation.version.hash), activation.percent, activation.is_shadow);
    let (node, named, checked) = (app.node.clone(), name.to_owned(), activation.clone());
    let checked = tokio::task::spawn_blocking(move || node.check_activation(&named, &checked)).await;
    checked
        .map_err(|error| Problem::new(Code::Internal, error.to_string()))?
        .map_err(|error| problem(&error))?;
    let gone =
        |Missing| Problem::new(Code::UnknownModule, format!("`{name}` has lost this version meanwhile"));
    app.ask(ActivateModule { name: name.into(), activation }).await?.map_err(gone)?;
    reload(app).await?;
    tracing::info!(module = name, hash, percent, is_shadow, key = %key.key.name, "a module was activated");
    Ok(Json(read(app, name).await?))
}

async fn reload(app: &App) -> Result<(), Problem> {
    match app.reload_modules().await? {
        // Another module: this one was checked. The node's log says why.
        Ok(()) | Err(ModulesError::Unfit { .. }) => Ok(()),
        Err(error) => Err(problem(&error)),
    }
}

fn problem(error: &ModulesError) -> Problem {
    match error {
        ModulesError::NotBuilt => Problem::new(Code::NoModules, error.to_string()),
        ModulesError::Store(fault) => (*fault).into(),
        ModulesError::Unfit { .. } => Problem::new(Code::InvalidModule, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::UnixMs;

    fn version(hash: u8) -> Configured {
        Configured { hash: [hash; 32], config: "".into() }
    }

    fn active(hash: u8, base: Option<u8>, percent: u8) -> Activation {
        Activation {
            version: version(hash),
            base: base.map(version),
            node: None,
            domain: None,
            percent,
            is_shadow: false,
            on_failure: OnFailure::Open,
            since: UnixMs(0),
        }
    }

    #[test]
    fn the_base_is_the_last_version_that_decided_for_all() {
        assert_eq!(base_of(None, &version(1)), None);
        assert_eq!(base_of(Some(&active(1, None, 100)), &version(2)), Some(version(1)));
        let canary = active(2, Some(1), 5);
        assert_eq!(base_of(Some(&canary), &version(2)), Some(version(1)), "for more of them");
        assert_eq!(base_of(Some(&canary), &version(3)), Some(version(1)), "another canary");
        assert_eq!(base_of(Some(&active(2, Some(1), 100)), &version(2)), Some(version(1)), "once more");
        let on_one = Activation { node: Some("a".into()), ..active(2, Some(1), 100) };
        assert_eq!(base_of(Some(&on_one), &version(2)), Some(version(1)), "on all of them");
        let shadow = Activation { is_shadow: true, ..active(2, Some(1), 100) };
        assert_eq!(base_of(Some(&shadow), &version(2)), Some(version(1)));
    }
}
