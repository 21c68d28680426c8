//! The HTTP side of Carillon: the APIs for providers, consumers and operators.
//!
//! - [`serve`] runs it on a listener; [`router`] gives it as a value. [`Options`] configures it and contains its [`Settings`].
//! - `provider/` is for those who send: notifications, their receipts as a stream, topics and items.
//! - `consumer/` is for those who enrol devices: devices, their secrets, what they follow.
//! - `admin/` is for operators: domains, accounts, keys, sessions, figures. `cluster/` is too: the nodes of a cell.
//! - `cells/` is for several cells: what a front does with them, and what a cell does for its front.
//! - `links/` are short links, on hosts of their own; their routes of the API are in it.
//! - `upload/` are files that clients upload, on a host of their own.
//! - `intake/` takes notifications and items from durable queues; it does with them what the routes of `provider/` do.
//! - `webhooks/` tells URLs how notifications ended; their routes are in `admin/`.
//! - `auth/` makes a `Granted` of a request's key; a handler that asks for one is not run without it.
//! - `extract/` reads bodies, paths and queries, strictly; `values/` are the JIDs, times and payloads in them, and how the OpenAPI
//!   document describes them. [`problem`] has every error there is, in one table.
//! - `push/` wakes apps by push services, `push_service/` is a push service itself; `push_settings/` is what an operator says of both.
//! - `outgoing/` is where this server's own requests may go.
//! - `telemetry/` exports spans of OpenTelemetry.
//! - `metrics/` counts requests and writes `/metrics`; `diagnostics/` are the costliest accounts, traces, probes and dumps; `hops/` takes the steps
//!   of followed notifications from the shards.
//! - `public/` is what is served without a key: health, where clients connect, and the console and `/docs` from files inside the binary.
//! - `app` is what each handler has at hand; what a feature keeps for all requests is a part of it that it names itself, and `parts` lists these.
//! - `openapi/` lists the routes once; the router and `/openapi.json` are both made from that list. `routes` surrounds them.
//! - `demo/` is a game for two windows of a browser, where that is switched on.
//!
//! Nothing is decided here: each handler turns a request into a `Command` or an `Ask`, hands it to the node, and writes
//! the answer.

mod accounts;
mod admin;
mod app;
mod auth;
mod cells;
mod cluster;
mod consumer;
mod demo;
mod diagnostics;
mod exposition;
mod extract;
mod hops;
mod intake;
mod invitations;
mod links;
mod metrics;
mod objects;
mod openapi;
mod options;
mod outgoing;
mod parts;
pub mod problem;
mod provider;
mod public;
mod push;
mod push_service;
mod push_settings;
mod random;
mod request_id;
mod routes;
mod serve;
mod telemetry;
mod upload;
mod values;
mod webhooks;

pub use auth::key::generate as generate_key;
pub use auth::key::hash as key_hash;
pub use links::{check as check_links, check_file as check_link_file};
pub use objects::ObjectStore;
pub use options::{
    CellsSettings, Endpoints, IntakeQueue, LinkSettings, Options, OtelSettings, PushSettings, S3Settings,
    Settings, UploadSettings, WebhookRoots, WebhookSettings,
};
pub use push_service::check as check_push_service;
pub use push_settings::apps::{ApnsPushType, PushAppSettings, PushApps};
pub use push_settings::templates::{PushTemplateSettings, PushTemplates};
pub use push_settings::vapid::VapidKey;
pub use serve::{Listener, Serves, https, router, serve};
pub use telemetry::check as check_otel;
pub use upload::check as check_uploads;

/// The OpenAPI document of the API as a node with these options serves it, as JSON.
pub fn openapi(options: &Options) -> String {
    let mut document = openapi::routes().into_openapi();
    openapi::bound(&mut document, options);
    serde_json::to_string_pretty(&document).expect("the document is plain data")
}
