//! Modules: extensions in WebAssembly, pushed, activated and looked at.

pub(crate) mod activation;
pub(crate) mod push;

use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::hex;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use carillon_core::ports::store::modules::{Activation, Configured, ListModules, ModuleList, PushedModule};
use carillon_core::shard::{ModuleFigures, ModuleLine};
use std::collections::BTreeMap;

/// All modules.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Modules {
    /// By name.
    modules: Vec<ModuleView>,
}

/// A module.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ModuleView {
    /// Its name.
    name: String,
    /// Its versions, the newest first.
    versions: Vec<VersionView>,
    /// What is activated of it.
    activation: Option<ActivationView>,
    /// What this node counted since it was activated.
    figures: Option<FiguresView>,
}

/// A version of a module.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct VersionView {
    /// The SHA-256 of its code, in hexadecimal.
    hash: String,
    /// Bytes of code.
    bytes: u64,
    /// When it was pushed.
    pushed_at: Time,
}

/// What is activated of a module.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ActivationView {
    /// The version that is activated.
    hash: String,
    /// The last good version, which decides for all others, and to which a shard goes back when this one fails.
    base: Option<String>,
    /// On this node of the cell alone, by its name; none on all.
    node: Option<String>,
    /// For this domain alone; none for all.
    domain: Option<String>,
    /// For so many accounts of a hundred.
    percent: u8,
    /// Whether it decides nothing, and is compared with the base.
    shadow: bool,
    /// `open`: what it fails to decide about goes on; `closed`: it does not.
    on_failure: &'static str,
    /// What the module is told.
    config: String,
    /// Since when.
    since: Time,
}

/// What a node counted of a module since the version was activated.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct FiguresView {
    /// `active`; or `rolled-back` or `off` where at least one shard turned the version off, because it failed five times in ten seconds.
    standing: &'static str,
    /// Decisions, by verdict: `pass`, `drop`, `reject`, `replace`; what only observes has `noted`.
    verdicts: BTreeMap<String, u64>,
    /// Calls without a verdict, by the reason.
    failures: BTreeMap<String, u64>,
    /// Fuel that was used: about one unit per instruction.
    fuel: u64,
    /// In shadow: calls of which both versions said the same.
    same: u64,
    /// In shadow: calls of which they did not.
    different: u64,
    /// The module's own counters.
    counts: Vec<u64>,
}

/// What modules said, oldest first.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Lines {
    /// At most 32 of each shard.
    lines: Vec<LineView>,
}

/// A line.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LineView {
    /// When.
    at: Time,
    /// What.
    text: String,
}

/// How a version in shadow differs.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Differences {
    /// Calls of which both versions said the same.
    same: u64,
    /// Calls of which they did not.
    different: u64,
    /// The last of these, at most 32 of each shard, oldest first.
    lines: Vec<LineView>,
}

/// List modules
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/modules", operation_id = "listModules", tag = "admin",
    responses((status = 200, description = "All modules", body = Modules), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<Modules>, Problem> {
    key.whole_node()?;
    let list = app.ask(ListModules).await?;
    let figures = app.node.status().modules;
    let mut names: Vec<&str> = list.versions.iter().map(|version| &*version.name).collect();
    names.dedup();
    Ok(Json(Modules { modules: names.iter().map(|name| view(name, &list, &figures)).collect() }))
}

/// Read a module
///
/// Its versions, what is activated, and what this node counted of it. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/modules/{module}", operation_id = "getModule", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "The module", body = ModuleView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<ModuleView>, Problem> {
    key.whole_node()?;
    Ok(Json(read(&app, &name).await?))
}

/// Read what a module logged
///
/// Lines of this node since the version was activated, failures among them. Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/modules/{module}/logs", operation_id = "getModuleLogs", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "The last lines", body = Lines), schema::Problems)
)]
pub(crate) async fn logs(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<Lines>, Problem> {
    key.whole_node()?;
    read(&app, &name).await?;
    let figures = figures_of(&app.node.status().modules, &name).cloned().unwrap_or_default();
    Ok(Json(Lines { lines: lines(&figures.lines) }))
}

/// Read how a version in shadow differs from the one that decides
///
/// Needs a key of the whole node.
#[utoipa::path(
    get, path = "/v1/admin/modules/{module}/differences", operation_id = "getModuleDifferences", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 200, description = "What was compared", body = Differences), schema::Problems)
)]
pub(crate) async fn differences(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<Json<Differences>, Problem> {
    key.whole_node()?;
    read(&app, &name).await?;
    let figures = figures_of(&app.node.status().modules, &name).cloned().unwrap_or_default();
    let lines = lines(&figures.differences);
    Ok(Json(Differences { same: figures.same, different: figures.different, lines }))
}

/// Refuses what a binary without modules cannot do.
fn built(app: &App) -> Result<(), Problem> {
    match app.node.has_modules() {
        true => Ok(()),
        false => {
            Err(Problem::new(Code::NoModules, "this node's binary was built without the feature `modules`"))
        }
    }
}

/// A module as it is now.
async fn read(app: &App, name: &str) -> Result<ModuleView, Problem> {
    let list = app.ask(ListModules).await?;
    if !list.versions.iter().any(|version| *version.name == *name) {
        return Err(unknown(name));
    }
    Ok(view(name, &list, &app.node.status().modules))
}

fn unknown(name: &str) -> Problem {
    Problem::new(Code::UnknownModule, format!("there is no module `{name}`"))
}

fn view(name: &str, list: &ModuleList, figures: &[ModuleFigures]) -> ModuleView {
    let versions = list.versions.iter().filter(|version| *version.name == *name);
    let activation = activation_of(list, name);
    ModuleView {
        name: name.to_owned(),
        versions: versions.map(VersionView::of).collect(),
        activation: activation.map(ActivationView::of),
        figures: figures_of(figures, name).filter(|_| activation.is_some()).map(FiguresView::of),
    }
}

fn activation_of<'a>(list: &'a ModuleList, name: &str) -> Option<&'a Activation> {
    list.activated.iter().find(|(known, _)| **known == *name).map(|(_, activation)| activation)
}

fn figures_of<'a>(figures: &'a [ModuleFigures], name: &str) -> Option<&'a ModuleFigures> {
    figures.iter().find(|figures| *figures.name == *name)
}

fn lines<'a>(lines: impl IntoIterator<Item = &'a ModuleLine>) -> Vec<LineView> {
    lines.into_iter().map(|line| LineView { at: Time(line.at), text: line.text.to_string() }).collect()
}

impl VersionView {
    fn of(version: &PushedModule) -> VersionView {
        let PushedModule { name: _, hash, code_bytes, pushed } = version;
        VersionView { hash: hex(hash), bytes: *code_bytes, pushed_at: Time(*pushed) }
    }
}

impl ActivationView {
    fn of(activation: &Activation) -> ActivationView {
        let Activation {
            version: Configured { hash, config },
            base,
            node,
            domain,
            percent,
            is_shadow,
            on_failure,
            since,
        } = activation;
        ActivationView {
            hash: hex(hash),
            base: base.as_ref().map(|base| hex(&base.hash)),
            node: node.as_deref().map(str::to_owned),
            domain: domain.as_deref().map(str::to_owned),
            percent: *percent,
            shadow: *is_shadow,
            on_failure: on_failure.name(),
            config: config.to_string(),
            since: Time(*since),
        }
    }
}

impl FiguresView {
    fn of(figures: &ModuleFigures) -> FiguresView {
        let named = |(name, count): (&'static str, u64)| (name.to_owned(), count);
        FiguresView {
            standing: figures.standing.name(),
            verdicts: figures.verdicts.iter().map(named).collect(),
            failures: figures.failures.iter().map(named).collect(),
            fuel: figures.fuel,
            same: figures.same,
            different: figures.different,
            counts: figures.counts.to_vec(),
        }
    }
}
