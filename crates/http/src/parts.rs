//! What an app consists of: each feature that keeps something for all requests, once.

use crate::app::{App, Parts};
use crate::auth::Keys;
use crate::auth::acts::Refusals;
use crate::auth::quota::Quotas;
use crate::auth::scram::Derivations;
use crate::cells::Cells;
use crate::diagnostics::probe::Probes;
use crate::diagnostics::trace::Traces;
use crate::extract::Bodies;
use crate::hops::Hops;
use crate::links::Links;
use crate::metrics::requests::Requests;
use crate::options::Options;
use crate::provider::events::{Feeds, Tail};
use crate::push::Pushes;
use crate::push_service::PushService;
use crate::telemetry::Telemetry;
use crate::upload::Uploads;
use crate::webhooks::Webhooks;
use crate::{cells, intake};
use carillon_core::model::Domain;
use carillon_server::node::Node;
use std::sync::Arc;
use tokio::sync::Notify;

/// The app of a node.
pub(crate) fn app(node: Node, options: Options) -> App {
    let events = Arc::new(Notify::new());
    let telemetry = Telemetry::new(&options.settings.otel, node.own());
    let parts = Parts::default()
        .with(Keys::default())
        .with(Quotas::default())
        .with(Refusals::default())
        .with(Bodies::new(options.settings.bodies_bytes_max))
        .with(Derivations::default())
        .with(Requests::default())
        .with(Feeds::new(options.settings.stream_events_max, options.settings.streams_max))
        .with(Arc::new(Tail::new(options.settings.stream_events_max, events.clone())))
        .with(Traces::default())
        .with(Probes::default())
        .with(Arc::new(Hops::default()))
        .with(Arc::new(telemetry))
        .with(Arc::new(Webhooks::new(&options)))
        .with(Pushes::new(&options))
        .with(PushService::new(&options))
        .with(intake::of(&options))
        .with(Links::new(&options.settings.links))
        .with(Uploads::new(&options))
        .with(Cells::new(&options))
        .with(cells::elsewhere(&options));
    let app = App::new(node, options, events, parts);
    app.on_removed_domain(forget_domain);
    app.take_hops();
    app
}

/// Forgets what is kept of a domain that is gone.
fn forget_domain(app: &App, domain: &Domain) {
    app.feeds().forget(domain.id);
    app.quotas().forget(domain.id);
    app.links().forget_domain(domain);
    app.webhooks().changed();
}
