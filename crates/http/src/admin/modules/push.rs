//! A version of a module is pushed: checked, compiled, started once, and kept.

use super::{built, read};
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::Named;
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::{fits, hex};
use crate::values::time::now;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use carillon_core::ports::modules::{ModuleHook, NotAModule};
use carillon_core::ports::store::modules::{
    MODULES_MAX, ModuleIsActive, PushModule, RemoveModule, TooManyModules,
};
use std::time::Duration;

/// The largest module, in bytes.
const CODE_BYTES_MAX: usize = 4 << 20;

/// A version that was pushed.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PushedView {
    /// The name of the module.
    name: String,
    /// The SHA-256 of its code, in hexadecimal.
    hash: String,
    /// The hooks that it has.
    hooks: Vec<&'static str>,
    /// Bytes of code.
    bytes: u64,
}

/// A module's code, as the body of a request.
pub(crate) struct Wasm(Bytes);

impl FromRequest<App> for Wasm {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Wasm, Problem> {
        let is_wasm = request.headers().get(header::CONTENT_TYPE).is_some_and(|of| of == "application/wasm");
        if !is_wasm {
            return Err(Problem::new(Code::WrongContentType, "send `Content-Type: application/wasm`"));
        }
        let _room = app.bodies().room(CODE_BYTES_MAX)?;
        let reading = axum::body::to_bytes(Body::new(request.into_body()), CODE_BYTES_MAX);
        let limit = Duration::from_millis(app.options.settings.read_timeout_ms);
        match tokio::time::timeout(limit, reading).await {
            Ok(Ok(bytes)) => Ok(Wasm(bytes)),
            Ok(Err(_)) => {
                let detail = format!("the body broke off, or has more than {CODE_BYTES_MAX} bytes");
                Err(Problem::new(Code::TooLarge, detail))
            }
            Err(_) => Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
        }
    }
}

/// Push a version of a module
///
/// The body is a core module of `carillon:hooks@1`, at most 4 MiB. It is checked, compiled and started once; nothing calls it before it is
/// activated. A version that is there is answered the same. Of a module the eight newest versions are kept, and those that are activated.
/// Needs a key of the whole node.
#[utoipa::path(
    post, path = "/v1/admin/modules/{module}", operation_id = "pushModule", tag = "admin",
    params(("module" = String, Path, description = "The name of the module: 1 to 64 letters, digits, `-` and `_`")),
    request_body(content = Vec<u8>, content_type = "application/wasm", description = "The module"),
    responses((status = 201, description = "It is kept", body = PushedView), schema::Problems)
)]
pub(crate) async fn push(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
    Wasm(code): Wasm,
) -> Result<(StatusCode, Json<PushedView>), Problem> {
    key.whole_node()?;
    built(&app)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !fits(&name, 1..=64) || !name.chars().all(is_plain) {
        let detail = "the name of a module has 1 to 64 letters, digits, `-` and `_`";
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let (node, checked) = (app.node.clone(), code.clone());
    let checked = tokio::task::spawn_blocking(move || node.check_module(&checked)).await;
    let pushed = match checked.map_err(|error| Problem::new(Code::Internal, error.to_string()))? {
        Ok(pushed) => pushed,
        Err(NotAModule::Invalid(why)) => return Err(Problem::new(Code::InvalidModule, why)),
        Err(NotAModule::Busy) => return Err(Problem::unavailable("another module is being compiled")),
    };
    let bytes = code.len() as u64;
    let ask = PushModule { name: name.as_str().into(), hash: pushed.hash, code, now: now() };
    app.ask(ask).await?.map_err(|TooManyModules| {
        Problem::new(Code::TooManyModules, format!("there are {MODULES_MAX} modules, of at most as many"))
    })?;
    tracing::info!(module = name, hash = hex(&pushed.hash), key = %key.key.name, "a module was pushed");
    let hooks = pushed.hooks.iter().map(ModuleHook::name).collect();
    Ok((StatusCode::CREATED, Json(PushedView { name, hash: hex(&pushed.hash), hooks, bytes })))
}

/// Remove a module
///
/// All versions of it, if none is activated. Needs a key of the whole node.
#[utoipa::path(
    delete, path = "/v1/admin/modules/{module}", operation_id = "removeModule", tag = "admin",
    params(("module" = String, Path, description = "The name of the module")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn remove(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    key.whole_node()?;
    read(&app, &name).await?;
    app.ask(RemoveModule { name: name.as_str().into() }).await?.map_err(|ModuleIsActive| {
        Problem::new(Code::ModuleActive, format!("a version of `{name}` is activated; deactivate it first"))
    })?;
    tracing::info!(module = name, key = %key.key.name, "a module was removed");
    Ok(StatusCode::NO_CONTENT)
}
