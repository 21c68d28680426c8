//! The routes put together, with what surrounds each of them.

use crate::app::App;
use crate::auth::{acts, quota};
use crate::links::{self, Front};
use crate::metrics::requests;
use crate::problem::{Code, Problem};
use crate::public::{console, health};
use crate::{cells, demo, invitations, metrics, openapi, request_id, telemetry, upload};
use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

/// Everything that is served: the API, and links and files on their hosts.
pub(crate) fn build(app: App) -> Front {
    let links = surrounded(links::routes(), &app);
    let files = surrounded(upload::routes(), &app);
    let api = api(&app);
    Front::new(app, api, links, files)
}

/// What is served to whoever looks after the node: whether it lives, whether it takes sessions, and its figures.
pub(crate) fn health(app: App) -> Front {
    let routes = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::open))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method);
    let routes = surrounded(routes, &app);
    Front::alone(app, routes)
}

/// Everything the API serves.
fn api(app: &App) -> Router {
    let (api, mut document) = openapi::routes().split_for_parts();
    openapi::bound(&mut document, &app.options);
    let document: Bytes = serde_json::to_vec(&document).expect("the document is plain data").into();
    let document = move || async move { ([(header::CONTENT_TYPE, "application/json")], document.clone()) };
    let routes = api
        .route("/openapi.json", get(document))
        .route("/", get(console::root))
        .route("/console", get(console::index))
        .route("/console/{file}", get(console::asset))
        .route("/docs", get(console::docs))
        .route("/invitations/{domain}/{token}", get(invitations::page::show))
        .merge(demo::routes(app))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method);
    let node = surrounded(routes, app);
    if app.as_front().is_none() {
        return node;
    }
    // Each of the two is surrounded: the routes of the node are behind those of the front.
    let front = cells::front::routes().method_not_allowed_fallback(wrong_method);
    surrounded(front, app).fallback_service(node)
}

/// Routes with what surrounds each of them.
fn surrounded(routes: Router<App>, app: &App) -> Router {
    routes
        .layer(axum::middleware::from_fn(quota::tell))
        .layer(axum::middleware::from_fn_with_state(app.clone(), acts::note))
        .layer(axum::middleware::from_fn_with_state(app.clone(), requests::count))
        .layer(axum::middleware::from_fn_with_state(app.clone(), telemetry::trace))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(default_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(default_header(header::REFERRER_POLICY, "no-referrer"))
        // Secrets and keys are in what the API answers.
        .layer(default_header(header::CACHE_CONTROL, "no-store"))
        .layer(axum::middleware::from_fn(request_id::tag))
        .with_state(app.clone())
}

async fn unknown_route() -> Problem {
    Problem::new(Code::UnknownRoute, "no route has this path; see /docs")
}

async fn wrong_method() -> Problem {
    Problem::new(Code::WrongMethod, "the path exists, but not with this method; see /docs")
}

#[expect(clippy::needless_pass_by_value, reason = "tower-http's signature")]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let message =
        panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    tracing::error!(message, request_id = request_id::current().as_deref(), "a request panicked");
    Problem::new(Code::Internal, "the node failed").into_response()
}

fn default_header(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}
