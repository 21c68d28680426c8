//! What a domain's own administrators may do: less than the operator grants, never more.

use crate::support::{Reply, World, ask, with_key, world};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use carillon_core::model::{Policy, Scope, Scopes, UnixMs};
use carillon_core::ports::store::keys::{CreateKey, NODE_KEYS_MAX};
use serde_json::{Value, json};

const OWN: &str = "/v1/admin/domains/other.example";

async fn tenant(world: &World, own: &str, method: Method, uri: &str, body: Value) -> Reply {
    world.call(with_key(world.request(method, uri, Body::from(body.to_string())), own)).await
}

/// Each member of a policy, with a grant in which a tenant can have more or less, and these.
const MEMBERS: &[(&str, &str, &str, &str)] = &[
    ("sessions", "\"single\"", "\"multi\"", "\"single\""),
    ("registration", "false", "true", "false"),
    ("account_management", "false", "true", "false"),
    ("pubsub_create", "\"admin\"", "\"any\"", "\"admin\""),
    ("sessions_max", "20", "1000", "1"),
    ("messages_durable", "false", "true", "false"),
    ("resumption_ms_max", "60000", "60001", "0"),
    ("archive", "false", "true", "false"),
    ("archive_days", "30", "0", "7"),
    ("archive_messages_max", "1000", "1001", "1"),
    ("archive_bytes_max", "1000000", "0", "1"),
    ("keys_max", "10", "11", "1"),
    ("other_domains", "false", "true", "false"),
    ("requests_per_second", "1000", "0", "999"),
    ("stanzas_per_second", "1000", "1001", "999"),
    ("bytes_per_second", "1000000", "0", "1"),
    ("rooms_create", "\"admin\"", "\"any\"", "\"admin\""),
    ("rooms_owned_max", "10", "0", "1"),
    ("rooms_max", "100", "101", "1"),
    ("accounts_max", "100", "0", "1"),
    ("topics_max", "100", "101", "1"),
    ("topics_owned_max", "10", "0", "1"),
    ("subscriptions_max", "10", "11", "1"),
    ("sessions_total_max", "1000", "0", "1"),
    ("bytes_out_per_second", "1000000", "0", "1"),
    ("stored_bytes_max", "1000000", "1000001", "1"),
    ("room_events", "\"membership\"", "\"all\"", "\"off\""),
    ("room_archive_days", "30", "31", "7"),
];

#[tokio::test]
async fn a_tenant_may_tighten_each_member_of_its_policy_and_loosen_none() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    let members = serde_json::to_value(Policy::default()).unwrap();
    assert_eq!(members.as_object().unwrap().len(), MEMBERS.len(), "a member has no test");
    for (member, granted, more, less) in MEMBERS {
        let body = |value: &str| json!({*member: serde_json::from_str::<Value>(value).unwrap()});
        world.patch(OWN, body(granted)).await.expect(StatusCode::OK);
        let refused = tenant(&world, &own, Method::PATCH, OWN, body(more)).await;
        assert_eq!(refused.problem(403, "not-granted").as_deref(), Some(&*format!("/{member}")));
        let said =
            format!("the operator of the node grants the domain no more than {granted} for `{member}`");
        assert_eq!(refused.json()["detail"], said);
        let tightened = tenant(&world, &own, Method::PATCH, OWN, body(less)).await.expect(StatusCode::OK);
        assert_eq!(tightened["policy"][member], body(less)[member], "{member}");
        assert_eq!(tightened["granted"][member], body(granted)[member], "{member}");
        // Back to what is granted, but not beyond.
        let back = tenant(&world, &own, Method::PATCH, OWN, body(granted)).await.expect(StatusCode::OK);
        assert_eq!(back["policy"][member], body(granted)[member], "{member}");
        assert_eq!(world.get(OWN).await.expect(StatusCode::OK), back);
    }
    // `null` is a member's default, which may be more than is granted.
    tenant(&world, &own, Method::PATCH, OWN, json!({"pubsub_create": null}))
        .await
        .problem(403, "not-granted");
}

#[tokio::test]
async fn a_tenant_changes_nothing_by_put_and_no_other_domain() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    let call = |method, uri, body| tenant(&world, &own, method, uri, body);
    call(Method::PUT, OWN, json!({"sessions_max": 1000})).await.problem(409, "already-exists");
    call(Method::PUT, OWN, json!({"sessions_max": 20})).await.expect(StatusCode::OK);
    for uri in ["/v1/admin/domains/localhost", "/v1/admin/domains/new.example"] {
        call(Method::PUT, uri, json!({})).await.problem(403, "other-domain");
        call(Method::PATCH, uri, json!({"sessions_max": 1})).await.problem(403, "other-domain");
    }
    world.patch("/v1/admin/domains/none.example", json!({})).await.problem(404, "unknown-domain");
}

#[tokio::test]
async fn a_domain_has_as_many_keys_as_it_may() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    world.patch(OWN, json!({"keys_max": 2})).await.expect(StatusCode::OK);
    let create =
        || tenant(&world, &own, Method::POST, "/v1/admin/keys", json!({"name": "k", "scopes": ["send"]}));
    let made = create().await.expect(StatusCode::CREATED);
    create().await.problem(409, "too-many-keys");
    let of_operator = json!({"name": "k", "scopes": ["send"], "domain": "other.example"});
    world.post("/v1/admin/keys", of_operator).await.problem(409, "too-many-keys");
    world.post("/v1/admin/keys", json!({"name": "k", "scopes": ["send"]})).await.expect(StatusCode::CREATED);
    world.delete(&format!("/v1/admin/keys/{}", made["id"])).await.expect(StatusCode::NO_CONTENT);
    create().await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn keys_expire() {
    let world = world();
    let create = |body: Value| world.post("/v1/admin/keys", body);
    let past = json!({"name": "k", "scopes": ["send"], "expires_at": "2026-01-01T00:00:00Z"});
    assert_eq!(create(past).await.problem(422, "invalid-value").as_deref(), Some("/expires_at"));
    let later = json!({"name": "k", "scopes": ["admin"], "expires_at": "2999-01-01T00:00:00Z"});
    let made = create(later).await.expect(StatusCode::CREATED);
    assert_eq!(made["expires_at"], "2999-01-01T00:00:00.000Z");
    let uri = format!("/v1/admin/keys/{}", made["id"]);
    assert_eq!(world.get(&uri).await.expect(StatusCode::OK)["expires_at"], made["expires_at"]);
    world.get("/v1/admin/keys/77").await.problem(404, "unknown-key-id");

    // What it makes does not outlive it.
    let text = made["key"].as_str().unwrap();
    let by_it = |body: Value| tenant(&world, text, Method::POST, "/v1/admin/keys", body);
    let made = by_it(json!({"name": "k", "scopes": ["send"]})).await.expect(StatusCode::CREATED);
    assert_eq!(made["expires_at"], "2999-01-01T00:00:00.000Z");
    let longer = json!({"name": "k", "scopes": ["send"], "expires_at": "2999-01-01T00:00:01Z"});
    assert_eq!(by_it(longer).await.problem(422, "invalid-value").as_deref(), Some("/expires_at"));

    let (expired, hash) = carillon_http::generate_key();
    let scopes = Scopes::of(&[Scope::Admin]);
    let (name, expires) = ("old".into(), Some(UnixMs(1)));
    ask(
        &*world.store,
        CreateKey {
            hash,
            name,
            domain: None,
            scopes,
            expires,
            networks: Box::default(),
            certificates: Box::default(),
            node_keys_max: NODE_KEYS_MAX,
            now: UnixMs(0),
        },
    );
    let reply = tenant(&world, &expired, Method::GET, "/v1/key", json!({})).await;
    reply.problem(401, "expired-key");
    assert_eq!(reply.json()["detail"], "the key expired at 1970-01-01T00:00:00.001Z");
    assert!(reply.headers["www-authenticate"].to_str().unwrap().contains("invalid_token"));
}

#[tokio::test]
async fn the_keys_of_a_domain_make_so_many_requests_per_second() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    let second = world.key("other.example", &[Scope::Admin]);
    let first = tenant(&world, &own, Method::GET, OWN, Value::Null).await;
    assert!(first.headers.get("ratelimit").is_none(), "there is no quota");
    world.patch(OWN, json!({"requests_per_second": 2})).await.expect(StatusCode::OK);
    let asked = tenant(&world, &own, Method::GET, OWN, Value::Null).await;
    assert_eq!(asked.headers["ratelimit-policy"], "\"domain\";q=2;w=1");
    assert_eq!(asked.headers["ratelimit"], "\"domain\";r=1;t=1");
    asked.expect(StatusCode::OK);
    // Those of all keys count, also of requests that fail for another reason.
    let refused = loop {
        let answer = tenant(&world, &second, Method::GET, "/v1/admin/domains/nowhere", Value::Null).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            break answer;
        }
        answer.problem(403, "other-domain");
    };
    assert_eq!(refused.headers["retry-after"], "1");
    assert!(refused.headers["ratelimit"].to_str().unwrap().starts_with("\"domain\";r=0;t=1"));
    refused.problem(429, "too-many-requests");
    // The operator's keys are not counted.
    for _ in 0..5 {
        world.get(OWN).await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn what_administrators_do_is_noted_and_shown_to_their_domain() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    let sender = world.key("other.example", &[Scope::Send]);
    tenant(&world, &own, Method::PATCH, OWN, json!({"archive_days": 7})).await.expect(StatusCode::OK);
    tenant(&world, &own, Method::DELETE, OWN, Value::Null).await.problem(403, "other-domain");
    tenant(&world, &sender, Method::PATCH, OWN, json!({})).await.problem(403, "missing-scope");
    // Who only looks is not noted.
    tenant(&world, &own, Method::GET, OWN, Value::Null).await.expect(StatusCode::OK);
    let command = json!({"command": "drain", "reason": "new disks", "outcome": "begun", "took_ms": 3});
    world.post("/v1/admin/audit", command).await.expect(StatusCode::NO_CONTENT);
    let acts = |list: Value| -> Vec<[String; 2]> {
        let member = |act: &Value, name: &str| act[name].as_str().unwrap_or("-").to_owned();
        let acts = list["acts"].as_array().unwrap().iter();
        acts.map(|act| [member(act, "what"), member(act, "outcome")]).collect()
    };
    let list = tenant(&world, &own, Method::GET, "/v1/admin/audit", Value::Null).await;
    let of_domain = [
        [format!("PATCH {OWN}"), "403 missing-scope".to_owned()],
        [format!("DELETE {OWN}"), "403 other-domain".to_owned()],
        [format!("PATCH {OWN}"), "200".to_owned()],
    ];
    assert_eq!(acts(list.expect(StatusCode::OK)), of_domain);
    let list = world.get("/v1/admin/audit?limit=1").await.expect(StatusCode::OK);
    assert_eq!(acts(list.clone()), [["drain".to_owned(), "begun".to_owned()]]);
    assert_eq!(list["acts"][0]["reason"], "new disks");
    let after = list["next"].as_str().unwrap();
    let rest = world.get(&format!("/v1/admin/audit?after={after}")).await.expect(StatusCode::OK);
    assert_eq!(acts(rest.clone()), of_domain);
    assert_eq!(rest["acts"][0]["domain"], "other.example");
    let key = rest["acts"][0]["key_id"].as_u64().unwrap();
    let of_key = world.get(&format!("/v1/admin/audit?key={key}")).await.expect(StatusCode::OK);
    assert_eq!(acts(of_key), of_domain[..1]);
    world.get("/v1/admin/audit?limit=0").await.problem(400, "invalid-parameter");
    acts_are_filtered(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_domain_has_of_its_quotas_is_told_and_more_is_refused() {
    let world = world();
    let own = world.key("other.example", &[Scope::Admin]);
    let quotas = json!({"accounts_max": 2, "topics_max": 2, "subscriptions_max": 1, "rooms_max": 1});
    world.patch(OWN, quotas).await.expect(StatusCode::OK);
    for id in ["a", "b"] {
        world.post("/v1/devices?domain=other.example", json!({"id": id})).await.expect(StatusCode::CREATED);
    }
    let refused = world.post("/v1/devices?domain=other.example", json!({"id": "c"})).await;
    refused.problem(409, "too-many-accounts");
    let said = "the domain has as many accounts as its policy's `accounts_max` allows";
    assert_eq!(refused.json()["detail"], said);
    let account = json!({"jid": "c@other.example", "password": "c"});
    world.post("/v1/admin/accounts", account).await.problem(409, "too-many-accounts");
    for topic in ["one", "two"] {
        let uri = format!("/v1/topics/{topic}?domain=other.example");
        world.put(&uri, json!({})).await.expect(StatusCode::CREATED);
        world.put(&uri, json!({})).await.expect(StatusCode::OK);
    }
    let refused = world.put("/v1/topics/three?domain=other.example", json!({})).await;
    refused.problem(409, "too-many-topics");
    let said = "the domain has as many topics as its policy's `topics_max` allows";
    assert_eq!(refused.json()["detail"], said);
    let subscribe = async |topic: &str| {
        let uri = format!("/v1/devices/a/subscriptions/{topic}?domain=other.example");
        world.call(world.request(Method::PUT, &uri, Body::empty())).await
    };
    assert!(subscribe("one").await.status.is_success());
    subscribe("two").await.problem(409, "too-many-subscriptions");
    // Another domain has no such bounds.
    world.put("/v1/topics/three", json!({})).await.expect(StatusCode::CREATED);

    let uri = format!("{OWN}/usage");
    let usage = tenant(&world, &own, Method::GET, &uri, json!({})).await.expect(StatusCode::OK);
    assert_eq!(usage, world.get(&uri).await.expect(StatusCode::OK));
    assert_eq!(usage["domain"], "other.example");
    let quotas = usage["quotas"].as_array().unwrap();
    let none = &Value::Null;
    // Shards count the sessions of a domain when they have heard of it.
    let used = |q: &Value| if q["quota"] == "sessions" { none.clone() } else { q["used"].clone() };
    let told: Vec<_> = quotas.iter().map(|q| (&q["quota"], &q["member"], used(q), &q["max"])).collect();
    assert_eq!(
        told,
        [
            (&json!("accounts"), &json!("accounts_max"), json!(2), &json!(2)),
            (&json!("sessions"), &json!("sessions_total_max"), Value::Null, none),
            (&json!("topics"), &json!("topics_max"), json!(2), &json!(2)),
            (&json!("rooms"), &json!("rooms_max"), json!(0), &json!(1)),
            (&json!("keys"), &json!("keys_max"), json!(1), &json!(100)),
            (&json!("stored-bytes"), &json!("stored_bytes_max"), Value::Null, none),
        ]
    );
    world.delete("/v1/topics/one?domain=other.example").await.expect(StatusCode::NO_CONTENT);
    world.put("/v1/topics/three?domain=other.example", json!({})).await.expect(StatusCode::CREATED);
    tenant(&world, &own, Method::GET, "/v1/admin/domains/localhost/usage", json!({}))
        .await
        .problem(403, "other-domain");
    world.get("/v1/admin/domains/none.example/usage").await.problem(404, "unknown-domain");
}

/// By what was asked for and by what became of it, also where pages have none of them.
async fn acts_are_filtered(world: &World) {
    world.delete("/v1/admin/keys/1000").await.problem(404, "unknown-key-id");
    let listed = async |query: &str| {
        let (mut acts, mut after) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/admin/audit?{query}{after}")).await.expect(StatusCode::OK);
            acts.extend(page["acts"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return acts };
            after = format!("&after={next}");
        }
    };
    let all = listed("limit=1000").await;
    let is_refused = |act: &&Value| act["outcome"].as_str().unwrap().starts_with('4');
    let refused: Vec<Value> = all.iter().filter(is_refused).cloned().collect();
    assert!(refused.len() < all.len());
    assert_eq!(listed("outcome=refused&limit=2").await, refused, "in pages of two");
    let done = listed("outcome=done&limit=3").await;
    assert_eq!(done.len() + refused.len(), all.len());
    let [only] = &listed("what=admin/KEYS/1000&limit=1").await[..] else { panic!("there is one") };
    assert_eq!(only["outcome"], "404 unknown-key-id");
    assert_eq!(listed("what=nothing-like-this&limit=1").await, Vec::<Value>::new());
    assert_eq!(listed("outcome=failed").await, Vec::<Value>::new());
    world.get("/v1/admin/audit?outcome=other").await.problem(400, "invalid-parameter");
    let long = "x".repeat(257);
    world.get(&format!("/v1/admin/audit?what={long}")).await.problem(400, "invalid-parameter");
}

#[tokio::test]
async fn a_key_that_is_bound_to_certificates_is_refused_without_one_of_them() {
    let world = world();
    let create = |certificates: Value| {
        world.post("/v1/admin/keys", json!({"name": "k", "scopes": ["send"], "certificates": certificates}))
    };
    for (at, wrong) in
        ["", "dns:", "shop", "other:x", "sha256:12", "ip:nowhere", "cn:a\nb"].iter().enumerate()
    {
        let mut names = vec!["dns:a.example"; at % 3];
        names.push(*wrong);
        let pointer = create(json!(names)).await.problem(422, "invalid-value");
        assert_eq!(pointer, Some(format!("/certificates/{}", at % 3)), "{wrong}");
    }
    let many: Vec<String> = (0..33).map(|n| format!("cn:{n}")).collect();
    assert_eq!(create(json!(many)).await.problem(422, "invalid-value").as_deref(), Some("/certificates"));
    let hash = format!("SHA256:{}", "AB".repeat(32)).replace("SHA256", "sha256");
    let names = json!(["dns:Shop.Example.org", "cn:The Shop", hash, "ip:2001:DB8:0::1", "uri:spiffe://a/b"]);
    let made = create(names).await.expect(StatusCode::CREATED);
    let kept = json!([
        "dns:shop.example.org",
        "cn:The Shop",
        format!("sha256:{}", "ab".repeat(32)),
        "ip:2001:db8::1",
        "uri:spiffe://a/b"
    ]);
    assert_eq!(made["certificates"], kept);
    let uri = format!("/v1/admin/keys/{}", made["id"]);
    assert_eq!(world.get(&uri).await.expect(StatusCode::OK)["certificates"], kept);
    let text = made["key"].as_str().unwrap();
    let refused = tenant(&world, text, Method::GET, "/v1/key", json!({})).await;
    refused.problem(403, "other-certificate");
    let said = "the key is bound to certificates, and the client shows none that is known here";
    assert_eq!(refused.json()["detail"], said);
    // One that takes its place is bound in the same way.
    let rotated = world.post(&format!("{uri}/rotate"), json!({})).await.expect(StatusCode::CREATED);
    assert_eq!(rotated["certificates"], kept);
}
