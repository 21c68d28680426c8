//! The examples of the document, sent to a node.

use crate::support::World;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use serde_json::Value;

/// What an operation is, and its example as a request.
fn example(world: &World, document: &Value, id: &str) -> Request<Body> {
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["operationId"] != id {
                continue;
            }
            let mut uri = path.clone();
            for part in operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "path")
            {
                let value = part["schema"]["examples"][0].as_str().unwrap_or_else(|| panic!("{id}: {part}"));
                uri = uri.replace(&format!("{{{}}}", part["name"].as_str().unwrap()), value);
            }
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let Some(content) = operation["requestBody"]["content"].as_object() else {
                return world.request(method, &uri, Body::empty());
            };
            let (kind, content) = content.iter().next().unwrap();
            let body = match &content["example"] {
                Value::Null => panic!("{id} has a body and no example"),
                Value::String(text) => text.clone(),
                json => json.to_string(),
            };
            let mut request = world.request(method, &uri, Body::from(body));
            request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
            return request;
        }
    }
    panic!("no operation {id}");
}

/// Operations that make what the others are about.
const MADE: &[&str] = &[
    "putDomain",
    "createAccount",
    "enrolDevice",
    "createKey",
    "createWebhook",
    "createRegistration",
    "putTopic",
    "putRoom",
    "createLink",
    "takeLease",
    "createInvitation",
    "putMatchQueue",
];

/// Those that use it.
const USED: &[&str] = &[
    "logCommand",
    "listActs",
    "rotateKey",
    "updateTopic",
    "updateRoom",
    "getRoom",
    "putRoomMember",
    "changeRoomMembers",
    "listRoomMembers",
    "listOccupants",
    "sendRoomMessage",
    "retractRoomMessage",
    "updateDomain",
    "getAccount",
    "lookUpPresence",
    "sendProbe",
    "sendMessage",
    "putContact",
    "putPushTemplates",
    "getRoster",
    "deleteContact",
    "block",
    "listBlocked",
    "unblock",
    "updateConversation",
    "eraseMessages",
    "sendNotification",
    "sendBroadcast",
    "listBroadcasts",
    "sendBatch",
    "publishItem",
    "rotateSecret",
    "validateSecret",
    "setPassword",
    "importAccounts",
    "subscribeDevice",
    "getTopic",
    "listItems",
    "getDevice",
    "getEndpoint",
    "readTransfer",
    "takeTransfer",
    "disableDevice",
    "enableDevice",
    "listSubscriptions",
    "updateWebhook",
    "getWebhook",
    "listWebhooks",
    "listRegistrations",
    "getRegistration",
    "listDeadLetters",
    "listInvitations",
    "updateLink",
    "getLink",
    "listLinks",
    "putLinkFile",
    "getLinkFile",
    "getMatchQueue",
    "enterTicket",
    "getTicket",
];

/// Those that remove it.
const GONE: &[&str] = &[
    "deleteRegistration",
    "unsubscribeDevice",
    "retractItem",
    "deleteTopic",
    "deleteRoomMember",
    "eraseRoomMessages",
    "deleteRoom",
    "deleteDevice",
    "deleteAccount",
    "deleteWebhook",
    "deleteLink",
    "deleteLinkFile",
    "cancelTicket",
    "deleteMatchQueue",
    "deleteDomain",
];

/// The last: it ends what there is.
const DRAINED: &[&str] = &["startDrain"];

/// Those that need a client in a room: `tests/interop/test_rooms.py` sends them.
const OF_OCCUPANTS: &[&str] = &["updateOccupant"];

/// Those whose body is an image: `rooms.rs` sends them.
const OF_IMAGES: &[&str] = &["putRoomAvatar"];

/// Those that are about an id which the node gives: `broadcasts.rs` sends them.
const OF_BROADCASTS: &[&str] = &["updateBroadcast"];

/// Those that need a cell: `tests/interop/test_cell_operated.py` sends them.
const OF_CELLS: &[&str] = &["startNodeDrain", "evictNode"];

/// Those that need a front with cells, or an id that one gives: `cells.rs` and `tests/interop/test_cells.py` send them.
const OF_FRONTS: &[&str] = &["putCell", "updateCell", "moveDevice", "takeNotification"];

/// Those that need a module: `tests/interop/test_modules.py` sends them.
const OF_MODULES: &[&str] = &["pushModule", "activateModule"];

/// Those of a push service, which need an endpoint that a client has made: `tests/interop/test_web_push.py` sends them.
const OF_ENDPOINTS: &[&str] = &["pushToEndpoint"];

/// One after the other, as a reader would try them.
#[tokio::test]
async fn examples_work() {
    let world = crate::links::world_of_links();
    let document = world.get("/openapi.json").await.expect(StatusCode::OK);
    for id in [MADE, USED, GONE, DRAINED].concat() {
        if id == "updateConversation" {
            crate::messages::keep(&world, "alice", "bob", 1);
        }
        let request = example(&world, &document, id);
        // What is read may tell of something that failed meanwhile, such as a push.
        let is_read = request.method() == Method::GET;
        let reply = world.call(request).await;
        assert!(reply.status.is_success() && reply.status != StatusCode::MULTI_STATUS, "{id}: {reply:?}");
        let failed =
            reply.text.lines().any(|line| line.contains("\"error\"") || line.contains("\"failed\":1"));
        assert!(is_read || !failed, "{id}: {}", reply.text);
        if id == "validateSecret" {
            assert_eq!(reply.json()["valid"], true);
        }
    }
    are_all(
        &document,
        &[
            MADE,
            USED,
            DRAINED,
            OF_OCCUPANTS,
            OF_IMAGES,
            OF_CELLS,
            OF_FRONTS,
            OF_BROADCASTS,
            OF_MODULES,
            OF_ENDPOINTS,
        ]
        .concat(),
    );
}

/// Whatever has a body has an example that was sent.
fn are_all(document: &Value, sent: &[&str]) {
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values().filter(|o| o.get("requestBody").is_some()) {
            let id = operation["operationId"].as_str().unwrap();
            assert!(sent.contains(&id), "{id}");
        }
    }
}
