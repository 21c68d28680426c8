//! The routes of a front: those of a node that are about devices, topics and broadcasts go to cells; those about keys, domains and the node itself it
//! answers as every node; and the rest it does not do.

use super::{device, everywhere};
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::provider::notifications;
use axum::Router;
use axum::routing::{any, delete, get, post};

/// Routes that stand in front of those of a node.
pub(crate) fn routes() -> Router<App> {
    let devices = Router::new()
        .route("/v1/devices", post(device::enrol).get(device::list))
        .route("/v1/devices/{id}", get(device::pass).delete(device::pass))
        .route("/v1/devices/{id}/endpoint", get(device::endpoint))
        .route("/v1/devices/{id}/{*rest}", any(device::pass));
    let notifications = Router::new()
        .route("/v1/notifications", post(notifications::send).get(not_here))
        .route("/v1/notifications/batch", post(notifications::send_batch))
        .route("/v1/notifications/{id}", get(device::trace).delete(device::trace))
        .route("/v1/domains/{domain}/notifications", post(everywhere::broadcast).get(everywhere::list))
        .route(
            "/v1/domains/{domain}/notifications/{id}",
            get(everywhere::progress).patch(everywhere::steer).delete(everywhere::steer),
        );
    let topics = Router::new()
        .route("/v1/topics", get(everywhere::read_topics))
        .route(
            "/v1/topics/{topic}",
            get(everywhere::read_topics)
                .put(everywhere::change_topics)
                .patch(everywhere::change_topics)
                .delete(everywhere::change_topics),
        )
        .route("/v1/topics/{topic}/items", post(everywhere::publish).get(everywhere::read_topics))
        .route("/v1/topics/{topic}/items/{item}", delete(everywhere::change_topics));
    let others = [
        "accounts",
        "events",
        "invitations",
        "link-files",
        "links",
        "matches",
        "matchmaking",
        "presence",
        "push",
        "rooms",
    ];
    let refused = others.into_iter().fold(Router::new(), |router, name| {
        router
            .route(&format!("/v1/{name}"), any(not_here))
            .route(&format!("/v1/{name}/{{*rest}}"), any(not_here))
    });
    devices.merge(notifications).merge(topics).merge(refused)
}

async fn not_here() -> Problem {
    Problem::new(Code::NotAtFront, "a front does not do this: ask the cells themselves")
}
