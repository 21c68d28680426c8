//! The API's routes, and the OpenAPI document that comes out of the same list. `examples` are the bodies and paths that it shows.

mod examples;

use crate::admin::{
    accounts, audit, domains, drain, export, history, import, keys, leases, modules, sessions, status, usage,
    webhooks,
};
use crate::app::App;
use crate::cells::{api as cell, transfer};
use crate::cluster;
use crate::consumer::{credentials, devices, subscriptions};
use crate::diagnostics::{dump, probe, top, trace};
use crate::links::{api as link, file_api as link_file};
use crate::options::Options;
use crate::provider::{
    blocked, broadcasts, chat, conversations, events, items, matches, matchmaking, messages, notifications,
    presence, rooms, roster, topics,
};
use crate::public::{health, well_known};
use crate::push::{api as push, words as push_words};
use crate::push_service::{api as endpoint, receipt as push_receipt, resource as push_resource};
use crate::values::schema;
use crate::{intake, invitations, metrics};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{RefOr, Schema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Carillon",
        description = "Push and chat to millions of connected devices. A provider sends notifications and publishes to \
                       topics, a consumer service enrols devices, an operator manages the node.\n\n\
                       Bodies are JSON and read strictly: a member that a route does not know is an error. Times are \
                       RFC 3339 in UTC with milliseconds. Errors are RFC 9457 problem details, with a `code` that \
                       keeps its meaning.\n\n\
                       `PUT` creates. What exists it leaves as it is: the answer is `200` if that has all that the request names, \
                       and else `409` with the members that differ. `PATCH` changes what exists, and takes a JSON merge patch \
                       (RFC 7396): what is left out stays as it is.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "notifications", description = "Send to devices, and follow what becomes of it. Scope `send`."),
        (name = "broadcasts", description = "Send to every account of a domain, and steer that. Scope `broadcast`."),
        (name = "topics", description = "Publish to everyone who follows. Scope `topics`."),
        (name = "devices", description = "Enrol devices, invite people, and manage what they follow. Scope `enrol`."),
        (name = "messages", description = "What people write to each other: send as an account and see its conversations, with scope `chat`. Messages are read with scope `read_messages`, and erased with `admin`."),
        (name = "rooms", description = "Conversations of many (XEP-0045). Scope `rooms`; their messages are read with scope `read_messages`, and archives erased with `admin`."),
        (name = "contacts", description = "Rosters and block lists of accounts. Scope `chat`."),
        (name = "links", description = "Short links on hosts of their own. Scope `links`; the files of apps need `admin`."),
        (name = "matches", description = "Real-time matches: queues of the matchmaker, tickets, and the tokens of seats. Scope `matches`."),
        (name = "keys", description = "The API key of the request. Any scope."),
        (name = "webhooks", description = "Have a URL told how notifications ended. Scope `admin`."),
        (name = "push", description = "Have apps woken by push services while their accounts have no session. Scope `enrol`. And the node as a push service itself: senders push to endpoints, without a key."),
        (name = "cells", description = "Several cells behind a front, devices that move between them, and what a cell does for its front. Scope `admin`."),
        (name = "admin", description = "Domains, accounts, keys, sessions and figures. Scope `admin`."),
        (name = "operation", description = "For load balancers, monitoring and clients that look for a domain. No key.")
    )
)]
struct Document;

/// Every route of the API with its description.
pub(crate) fn routes() -> OpenApiRouter<App> {
    let mut document = Document::openapi();
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("crl_ and 43 characters")
        .description(Some(
            "An API key, as made by `POST /v1/admin/keys` or `carillon key create NAME --scope SCOPE`.",
        ))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(scheme));
    components.schemas.insert("Problem".to_owned(), schema::problem());
    let mut router = OpenApiRouter::with_openapi(document)
        .merge(provider())
        .merge(consumer())
        .merge(links())
        .merge(cells())
        .merge(admin())
        .merge(operation());
    secure(router.get_openapi_mut());
    examples::add(router.get_openapi_mut());
    router
}

/// Puts the bounds of this node's settings into its document.
pub(crate) fn bound(document: &mut utoipa::openapi::OpenApi, options: &Options) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    if let Some(RefOr::T(Schema::Object(body))) = schemas.get_mut("NotificationBody")
        && let Some(RefOr::T(Schema::Object(ttl))) = body.properties.get_mut("ttl")
    {
        ttl.maximum = Some(((options.core.notification_ttl_max_ms / 1000) as usize).into());
    }
    if let Some(RefOr::T(Schema::OneOf(targets))) = schemas.get_mut("Targets") {
        for form in &mut targets.items {
            if let RefOr::T(Schema::Array(many)) = form {
                many.max_items = Some(options.settings.targets_max);
            }
        }
    }
}

fn provider() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(notifications::send, notifications::list))
        .routes(routes!(notifications::send_batch))
        .routes(routes!(notifications::trace, notifications::cancel))
        .routes(routes!(broadcasts::send, broadcasts::list))
        .routes(routes!(broadcasts::get, broadcasts::update, broadcasts::abort))
        .routes(routes!(broadcasts::device))
        .routes(routes!(events::events))
        .routes(routes!(presence::look_up))
        .routes(routes!(messages::list, messages::erase, chat::send))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::update))
        .routes(routes!(roster::list))
        .routes(routes!(roster::put, roster::delete))
        .routes(routes!(blocked::list))
        .routes(routes!(blocked::put, blocked::delete))
        .routes(routes!(rooms::list))
        .routes(routes!(rooms::put, rooms::get, rooms::update, rooms::delete))
        .routes(routes!(rooms::avatar::put, rooms::avatar::get, rooms::avatar::delete))
        .routes(routes!(rooms::members::list, rooms::members::change_many))
        .routes(routes!(rooms::members::put, rooms::members::delete))
        .routes(routes!(rooms::occupants::list))
        .routes(routes!(rooms::occupants::update, rooms::occupants::kick))
        .routes(routes!(rooms::messages::send, rooms::messages::list, rooms::messages::erase))
        .routes(routes!(rooms::messages::retract))
        .routes(routes!(matchmaking::put, matchmaking::get, matchmaking::delete, matchmaking::enter))
        .routes(routes!(matchmaking::ticket, matchmaking::cancel))
        .routes(routes!(matches::get, matches::end))
        .routes(routes!(matches::watch))
        .routes(routes!(matches::replay))
        .routes(routes!(topics::list))
        .routes(routes!(topics::put, topics::get, topics::update, topics::delete))
        .routes(routes!(topics::subscribers))
        .routes(routes!(items::publish, items::list))
        .routes(routes!(items::retract))
}

fn consumer() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(devices::enrol, devices::list))
        .routes(routes!(devices::get, devices::delete))
        .routes(routes!(devices::endpoint))
        .routes(routes!(credentials::rotate))
        .routes(routes!(credentials::validate))
        .routes(routes!(credentials::disable))
        .routes(routes!(credentials::enable))
        .routes(routes!(subscriptions::list))
        .routes(routes!(subscriptions::put, subscriptions::delete))
        .routes(routes!(invitations::create, invitations::list))
        .routes(routes!(invitations::delete))
        .routes(routes!(push::key))
        .routes(routes!(push_words::get, push_words::put, push_words::delete))
        .routes(routes!(push::list, push::create))
        .routes(routes!(push::get, push::delete))
        .routes(routes!(endpoint::list))
        .routes(routes!(endpoint::revoke))
        .routes(routes!(push_resource::discover, push_resource::push))
        .routes(routes!(push_receipt::receipt, push_resource::cancel))
}

fn links() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(link::make, link::list))
        .routes(routes!(link::get, link::update, link::delete))
        .routes(routes!(link_file::get, link_file::put, link_file::delete))
}

fn cells() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(cell::list))
        .routes(routes!(cell::put, cell::get, cell::update, cell::delete))
        .routes(routes!(cell::start, cell::moves))
        .routes(routes!(transfer::take))
        .routes(routes!(transfer::read, transfer::put))
}

fn admin() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(keys::own))
        .routes(routes!(domains::list))
        .routes(routes!(usage::usage))
        .routes(routes!(domains::put, domains::get, domains::update, domains::delete))
        .routes(routes!(accounts::list, accounts::create))
        .routes(routes!(accounts::get, accounts::delete))
        .routes(routes!(accounts::set_password))
        .routes(routes!(accounts::revoke_tokens))
        .routes(routes!(export::export))
        .routes(routes!(import::import))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::get, keys::delete))
        .routes(routes!(keys::rotate))
        .routes(routes!(webhooks::list, webhooks::create))
        .routes(routes!(webhooks::get, webhooks::update, webhooks::delete))
        .routes(routes!(webhooks::test))
        .routes(routes!(webhooks::dead_letters::list))
        .routes(routes!(webhooks::dead_letters::resend_all))
        .routes(routes!(webhooks::dead_letters::delete))
        .routes(routes!(webhooks::dead_letters::resend))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end))
        .routes(routes!(status::status))
        .routes(routes!(trace::trace))
        .routes(routes!(probe::send))
        .routes(routes!(top::top))
        .routes(routes!(audit::list, audit::log))
        .routes(routes!(dump::dump))
        .routes(routes!(drain::start, drain::progress, drain::cancel))
        .routes(routes!(leases::list))
        .routes(routes!(leases::take, leases::get, leases::release))
        .routes(routes!(history::history))
        .routes(routes!(intake::api::list))
        .routes(routes!(intake::api::get))
        .routes(routes!(intake::api::dead))
        .routes(routes!(intake::api::redrive))
        .routes(routes!(modules::list))
        .routes(routes!(modules::get, modules::push::push, modules::push::remove))
        .routes(routes!(modules::activation::activate, modules::activation::deactivate))
        .routes(routes!(modules::activation::roll_back))
        .routes(routes!(modules::logs))
        .routes(routes!(modules::differences))
        .routes(routes!(cluster::status::status))
        .routes(routes!(cluster::nodes::list))
        .routes(routes!(cluster::nodes::get))
        .routes(routes!(cluster::drain::start, cluster::drain::progress, cluster::drain::cancel))
        .routes(routes!(cluster::evict::evict))
        .routes(routes!(cluster::locate::locate))
}

fn operation() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(metrics::metrics))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(well_known::xrd))
        .routes(routes!(well_known::json))
}

/// Marks what needs a key: all that is under `/v1`.
fn secure(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        if path.starts_with("/v1/") {
            let operations =
                [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                operation.security = Some(vec![SecurityRequirement::new("key", Vec::<String>::new())]);
            }
        }
    }
}
