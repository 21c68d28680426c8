//! Modules where the binary runs none: they are listed, and nothing is activated. What they do is in `tests/interop/test_modules.py`.

use crate::support::{ask, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use carillon_core::model::{Scope, UnixMs};
use carillon_core::ports::modules::OnFailure;
use carillon_core::ports::store::modules::{
    ActivateModule, Activation, Configured, DeactivateModule, PushModule,
};
use serde_json::json;

const PATH: &str = "/v1/admin/modules/filter";

#[tokio::test]
async fn a_node_without_modules_says_so() {
    let world = world();
    assert_eq!(world.get("/v1/admin/modules").await.expect(StatusCode::OK), json!({ "modules": [] }));
    world.get(PATH).await.problem(404, "unknown-module");
    let mut push = world.request(Method::POST, PATH, Body::from("code"));
    push.headers_mut().insert(header::CONTENT_TYPE, "application/wasm".parse().unwrap());
    world.call(push).await.problem(501, "no-modules");
    world.post(PATH, json!({})).await.problem(415, "wrong-content-type");
    let code = PushModule { name: "filter".into(), hash: [7; 32], code: "code".into(), now: UnixMs(1) };
    assert_eq!(ask(&*world.store, code), Ok(()));
    let activated = world.put(&format!("{PATH}/activation"), json!({"hash": "07070707"})).await;
    activated.problem(501, "no-modules");
    world.post(&format!("{PATH}/rollback"), json!({})).await.problem(409, "not-activated");
    let module = world.get(PATH).await.expect(StatusCode::OK);
    assert_eq!(module["versions"][0]["bytes"], 4);
    let activation = Activation {
        version: Configured { hash: [7; 32], config: "".into() },
        base: None,
        node: None,
        domain: None,
        percent: 100,
        is_shadow: false,
        on_failure: OnFailure::Open,
        since: UnixMs(1),
    };
    assert_eq!(ask(&*world.store, ActivateModule { name: "filter".into(), activation }), Ok(()));
    world.delete(PATH).await.problem(409, "module-active");
    ask(&*world.store, DeactivateModule { name: "filter".into() });
    world.delete(PATH).await.expect(StatusCode::NO_CONTENT);
    world.delete(PATH).await.problem(404, "unknown-module");
}

#[tokio::test]
async fn modules_are_the_nodes_and_no_domains() {
    let world = world();
    let key = world.key("localhost", &[Scope::Admin]);
    let list = world.request(Method::GET, "/v1/admin/modules", Body::empty());
    world.call(with_key(list, &key)).await.problem(403, "other-domain");
}
