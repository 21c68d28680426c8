//! Webhooks, with a receiver that listens on loopback.

use crate::links::{HOST, at, payload_of};
use crate::support::receiver::Receiver;
use crate::support::{Reply, World, ask, with_key, world, world_with};
use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, header};
use carillon_core::model::{Scope, UnixMs};
use carillon_core::ports::store::notifications::Sweep;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A node that may call receivers on loopback, and does not wait long.
fn calling() -> World {
    world_with(|options| {
        options.settings.webhooks.allow_addresses = vec!["127.0.0.0/8".parse().unwrap()];
        options.settings.webhooks.retry_first_ms = 10;
    })
}

/// Creates a webhook; its path and its secret.
async fn create(world: &World, body: Value) -> (String, String) {
    let made = world.post("/v1/webhooks", body).await.expect(StatusCode::CREATED);
    (format!("/v1/webhooks/{}", made["id"]), made["secret"].as_str().unwrap().to_owned())
}

/// Has so many notifications to alice end, as replaced; their ids, in this order.
async fn replace(world: &World, count: usize) -> Vec<Value> {
    let mut ids = Vec::new();
    for n in 0..=count {
        let body = json!({"to": "alice", "payload": n, "collapse_key": "k"});
        ids.push(world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED)["id"].clone());
    }
    // The last one ends, too, so that the next round begins anew.
    let last = ids.pop().unwrap();
    world.delete(&format!("/v1/notifications/{}", last.as_str().unwrap())).await.expect(StatusCode::OK);
    ids.push(last);
    ids
}

async fn change(world: &World, path: &str, body: Value) -> Reply {
    world.call(world.request(Method::PATCH, path, Body::from(body.to_string()))).await
}

fn ids(events: &[(u64, Value, Value)]) -> Vec<Value> {
    events.iter().map(|(_, id, _)| id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_are_sent_signed_and_in_order() {
    let world = calling();
    world.enrol("alice").await;
    replace(&world, 1).await;
    let mut receiver = Receiver::start().await;
    let (path, secret) = create(&world, json!({"url": receiver.url})).await;
    let sent = replace(&world, 4).await;
    let first = receiver.next().await;
    assert!(first.is_signed_with(&secret) && first.header("content-type") == "application/json");
    assert!(first.header("webhook-id").starts_with("msg_") && !first.header("webhook-id").contains('.'));
    let json = first.json();
    assert_eq!((&json["type"], json.get("gap")), (&json!("notifications.ended"), None));
    assert_eq!(path, format!("/v1/webhooks/{}", json["webhook"]));
    let mut events = first.events();
    while events.len() < 5 {
        events.extend(receiver.next().await.events());
    }
    // Only what ended since it was created.
    assert_eq!(ids(&events), sent);
    assert!(events.is_sorted_by_key(|(number, ..)| *number));
    let states: Vec<_> = events.iter().map(|(.., state)| state.as_str().unwrap()).collect();
    assert_eq!(states, ["replaced", "replaced", "replaced", "replaced", "cancelled"]);
    let trace = world.get(&format!("/v1/notifications/{}", sent[0].as_str().unwrap())).await;
    assert_eq!(json["events"][0]["notification"], trace.expect(StatusCode::OK));
    let view = world.until(&path, |view| view["behind"] == 0).await;
    assert_eq!((&view["failures"], &view["dead_letters"]["count"]), (&json!(0), &json!(0)));
    assert!(receiver.is_quiet());
    // What nobody is interested in counts as dealt with.
    change(&world, &path, json!({"states": ["dropped"]})).await.expect(StatusCode::OK);
    world.until(&path, |view| view["states"] == json!(["dropped"])).await;
    replace(&world, 2).await;
    world.until(&path, |view| view["behind"] == 0).await;
    assert!(receiver.is_quiet());
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_of_their_domain() {
    let world = calling();
    world.enrol("alice").await;
    world.post("/v1/devices?domain=other.example", json!({"id": "bob"})).await.expect(StatusCode::CREATED);
    let mut receiver = Receiver::start().await;
    let key = world.key("other.example", &[Scope::Admin]);
    let call = |method, uri: &str, body: Value| {
        let request = world.request(method, uri, Body::from(body.to_string()));
        world.call(with_key(request, &key))
    };
    let (nodes, _) = create(&world, json!({"url": receiver.url, "states": ["acknowledged"]})).await;
    let theirs = call(Method::POST, "/v1/webhooks", json!({"url": receiver.url})).await;
    let theirs = theirs.expect(StatusCode::CREATED);
    assert_eq!(theirs["domain"], "other.example");
    let path = format!("/v1/webhooks/{}", theirs["id"]);
    let listed = call(Method::GET, "/v1/webhooks", json!(null)).await.expect(StatusCode::OK);
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(world.get("/v1/webhooks").await.json()["webhooks"].as_array().unwrap().len(), 2);
    for (method, uri) in [
        (Method::GET, nodes.clone()),
        (Method::PATCH, nodes.clone()),
        (Method::DELETE, nodes.clone()),
        (Method::POST, format!("{nodes}/test")),
        (Method::GET, format!("{nodes}/dead-letters")),
        (Method::POST, format!("{nodes}/dead-letters/resend")),
    ] {
        call(method, &uri, json!({})).await.problem(404, "unknown-webhook");
    }
    let foreign = json!({"url": receiver.url, "domain": "localhost"});
    call(Method::POST, "/v1/webhooks", foreign).await.problem(403, "other-domain");
    let sender = world.key("other.example", &[Scope::Send]);
    let request = world.request(Method::GET, "/v1/webhooks", Body::empty());
    world.call(with_key(request, &sender)).await.problem(403, "missing-scope");

    replace(&world, 1).await;
    let bob = json!({"to": "bob@other.example", "payload": 1});
    let sent = world.post("/v1/notifications", bob).await.expect(StatusCode::ACCEPTED)["id"].clone();
    world.delete(&format!("/v1/notifications/{}", sent.as_str().unwrap())).await.expect(StatusCode::OK);
    assert_eq!(ids(&receiver.events(1).await), [sent]);
    world.delete("/v1/admin/domains/other.example").await.expect(StatusCode::NO_CONTENT);
    world.get(&path).await.problem(404, "unknown-webhook");
    assert_eq!(world.get("/v1/webhooks").await.json()["webhooks"].as_array().unwrap().len(), 1);
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let world = world();
    let create = |body: Value| world.post("/v1/webhooks", body);
    let url = "https://a.example/";
    for (body, pointer) in [
        (json!({"url": "http://a.example/"}), "/url"),
        (json!({"url": "https://127.0.0.1/"}), "/url"),
        (json!({"url": "https://[::ffff:169.254.169.254]/"}), "/url"),
        (json!({"url": url, "states": []}), "/states"),
        (json!({"url": url, "states": ["sent"]}), "/states"),
    ] {
        let reply = create(body.clone()).await;
        assert_eq!(reply.problem(422, "invalid-value").as_deref(), Some(pointer), "{body}");
    }
    let short = json!({"url": url, "secret": "whsec_c2hvcnQ="});
    assert_eq!(create(short).await.problem(422, "invalid-secret").as_deref(), Some("/secret"));
    create(json!({"url": url, "domain": "no.example"})).await.problem(404, "unknown-domain");
    create(json!({"url": url, "events": []})).await.problem(400, "unknown-field");
    world.get("/v1/webhooks/7").await.problem(404, "unknown-webhook");
    world.get("/v1/webhooks/x").await.problem(400, "invalid-parameter");

    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let made = create(json!({"url": url, "secret": secret})).await.expect(StatusCode::CREATED);
    assert_eq!(made["secret"], secret);
    let path = format!("/v1/webhooks/{}", made["id"]);
    assert!(world.get(&path).await.json().get("secret").is_none(), "it is shown once");
    let changed = change(&world, &path, json!({"enabled": false})).await.expect(StatusCode::OK);
    assert_eq!((&changed["status"], changed.get("secret")), (&json!("disabled"), None));
    let rotated = change(&world, &path, json!({"rotate_secret": true})).await.expect(StatusCode::OK);
    assert!(rotated["secret"].as_str().is_some_and(|new| new.starts_with("whsec_") && new != secret));
    let both = json!({"rotate_secret": true, "secret": secret});
    change(&world, &path, both).await.problem(422, "invalid-value");
    world.get(&format!("{path}/dead-letters?limit=0")).await.problem(400, "invalid-parameter");
    world.delete(&format!("{path}/dead-letters/1")).await.problem(404, "unknown-dead-letter");
    world.post(&format!("{path}/dead-letters/0/resend"), json!({})).await.problem(404, "unknown-dead-letter");
    world.delete(&path).await.expect(StatusCode::NO_CONTENT);
    world.delete(&path).await.problem(404, "unknown-webhook");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_fails_is_tried_until_it_works() {
    let world = calling();
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    receiver.answers_by(|_| {
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, "0".parse().unwrap());
        (StatusCode::SERVICE_UNAVAILABLE, headers, "the database\nis away")
    });
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    let sent = replace(&world, 2).await;
    let [first, second] = [receiver.next().await, receiver.next().await];
    assert_eq!(ids(&first.events())[0], sent[0]);
    assert_eq!(ids(&second.events())[0], sent[0], "nothing is skipped");
    let failing = world.until(&path, |view| view["failures"].as_u64() > Some(1)).await;
    assert_eq!(failing["last_error"]["error"], "503 Service Unavailable: the database is away");
    receiver.answers(200);
    let well = world.until(&path, |view| view["failures"] == 0 && view["behind"] == 0).await;
    assert!(well.get("next_attempt_at").is_none() && well["dead_letters"]["count"] == 0);
    let mut got = Vec::new();
    while got.last() != sent.last() {
        got.extend(ids(&receiver.next().await.events()));
    }
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains("carillon_webhook_events_total 3\n"), "{metrics}");
    assert!(!metrics.contains("carillon_webhook_requests_total{result=\"failed\"} 0\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_refused_is_a_dead_letter_and_can_be_sent_again() {
    let world = calling();
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    // Gathered while it is disabled, so that they come together.
    change(&world, &path, json!({"enabled": false})).await.expect(StatusCode::OK);
    let sent = replace(&world, 3).await;
    let bad = sent[1].clone();
    receiver.answers_by(move |body| {
        let is_bad = body["events"].as_array().unwrap().iter().any(|e| e["notification"]["id"] == bad);
        let status = if is_bad { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        (status, HeaderMap::new(), "no")
    });
    change(&world, &path, json!({"enabled": true})).await.expect(StatusCode::OK);
    let view = world.until(&path, |view| view["behind"] == 0).await;
    assert_eq!((&view["dead_letters"]["count"], &view["failures"]), (&json!(1), &json!(0)));
    let mut seen: Vec<Vec<Value>> = Vec::new();
    while seen.last().is_none_or(|last| last.last() != sent.last()) || seen.len() < 7 {
        seen.push(ids(&receiver.next().await.events()));
    }
    let (all, one) = (sent.clone(), |n: usize| vec![sent[n].clone()]);
    let rest = sent[1..].to_vec();
    // Together; the first alone; the others; then five times the one that is refused, and what follows it.
    let expected = [vec![all, one(0), rest], vec![one(1); 5], vec![one(2), one(3)]].concat();
    assert_eq!(seen, expected);

    let letters = world.get(&format!("{path}/dead-letters")).await.expect(StatusCode::OK);
    let [letter] = &letters["dead_letters"].as_array().unwrap()[..] else { panic!("{letters}") };
    assert_eq!(letter["error"], "422 Unprocessable Entity: no");
    assert_eq!((&letter["body"]["id"], &letter["body"]["notification"]["id"]), (&letter["event"], &sent[1]));
    let one = format!("{path}/dead-letters/{}", letter["event"]);
    for uri in [format!("{one}/resend"), format!("{path}/dead-letters/resend")] {
        let again = world.post(&uri, json!({})).await.expect(StatusCode::OK);
        assert_eq!(again, json!({"taken": 0, "left": 1, "error": "422 Unprocessable Entity: no"}));
    }
    receiver.answers(200);
    let again = world.post(&format!("{one}/resend"), json!({})).await.expect(StatusCode::OK);
    assert_eq!(again, json!({"taken": 1, "left": 0, "error": null}));
    world.post(&format!("{one}/resend"), json!({})).await.problem(404, "unknown-dead-letter");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_sent_again_together_and_come_in_pages() {
    let world = calling();
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    receiver.answers(400);
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    let sent = replace(&world, 2).await;
    world.until(&path, |view| view["dead_letters"]["count"] == 3).await;
    let page = world.get(&format!("{path}/dead-letters?limit=2")).await.expect(StatusCode::OK);
    assert_eq!(page["dead_letters"].as_array().unwrap().len(), 2);
    let next = page["next"].as_str().unwrap();
    let page = world.get(&format!("{path}/dead-letters?after={next}")).await.expect(StatusCode::OK);
    assert_eq!((page["dead_letters"].as_array().unwrap().len(), page.get("next")), (1, None));
    let last = format!("{path}/dead-letters/{}", page["dead_letters"][0]["event"]);
    world.delete(&last).await.expect(StatusCode::NO_CONTENT);
    while !receiver.is_quiet() {}
    receiver.answers(200);
    let again = world.post(&format!("{path}/dead-letters/resend"), json!({})).await.expect(StatusCode::OK);
    assert_eq!(again, json!({"taken": 2, "left": 0, "error": null}));
    assert_eq!(ids(&receiver.next().await.events()), sent[..2], "in one request");
    assert_eq!(world.post(&format!("{path}/dead-letters/resend"), json!({})).await.json()["taken"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_disabled_until_somebody_enables_it() {
    let world = calling();
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    receiver.answers(410);
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    let sent = replace(&world, 1).await;
    let gone = world.until(&path, |view| view["status"] == "gone").await;
    assert_eq!(gone["last_error"]["error"], "410 Gone: so it is");
    while !receiver.is_quiet() {}
    receiver.answers(200);
    change(&world, &path, json!({"enabled": true})).await.expect(StatusCode::OK);
    assert_eq!(ids(&receiver.events(2).await), sent, "nothing was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_says_what_the_receiver_says() {
    let world = calling();
    let mut receiver = Receiver::start().await;
    let (path, secret) = create(&world, json!({"url": receiver.url})).await;
    let test = async || world.post(&format!("{path}/test"), json!({})).await.expect(StatusCode::OK);
    let tried = test().await;
    assert_eq!(
        (&tried["taken"], &tried["status"], &tried["error"]),
        (&json!(true), &json!(204), &json!(null))
    );
    let request = receiver.next().await;
    assert!(request.is_signed_with(&secret));
    assert_eq!(request.json()["type"], "test");
    // A redirect is not followed.
    receiver.answers_by(|_| {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, "/hook".parse().unwrap());
        (StatusCode::TEMPORARY_REDIRECT, headers, "")
    });
    let tried = test().await;
    assert_eq!((&tried["taken"], &tried["status"]), (&json!(false), &json!(307)));
    receiver.next().await;
    assert!(receiver.is_quiet());
    assert_eq!(world.get(&path).await.json()["failures"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_leads_to_no_address_that_is_not_allowed() {
    let world = world_with(|options| options.settings.webhooks.allow_http = true);
    let mut receiver = Receiver::start().await;
    let url = receiver.url.replace("127.0.0.1", "localhost");
    let (path, _) = create(&world, json!({"url": url})).await;
    let tried = world.post(&format!("{path}/test"), json!({})).await.expect(StatusCode::OK);
    let error = tried["error"].as_str().unwrap();
    assert!(error.contains("is not a public address"), "{error}");
    assert_eq!((&tried["taken"], &tried["status"]), (&json!(false), &json!(null)));
    assert!(receiver.is_quiet());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_forgotten_before_it_was_sent_is_told() {
    let world = world_with(|options| {
        options.settings.webhooks.allow_addresses = vec!["127.0.0.0/8".parse().unwrap()];
        // Longer than this test waits for anything.
        options.settings.webhooks.retry_first_ms = 3_600_000;
        // Nothing is sent from memory.
        options.settings.stream_events_max = 0;
    });
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    receiver.answers(500);
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    let cursor = world.get(&path).await.json()["cursor"].as_u64().unwrap();
    replace(&world, 0).await;
    receiver.next().await;
    world.until(&path, |view| view["failures"] == 1).await;
    replace(&world, 2).await;
    ask(&*world.store, Sweep { now: UnixMs(0), forget: UnixMs(u64::MAX >> 1), max: 99 });
    receiver.answers(204);
    change(&world, &path, json!({"enabled": true})).await.expect(StatusCode::OK);
    let told = receiver.next().await.json();
    assert_eq!(told["gap"], json!({"after": cursor, "next": cursor + 5}));
    assert_eq!(told["events"], json!([]));
    let sent = replace(&world, 0).await;
    let next = receiver.next().await;
    assert_eq!((ids(&next.events()), next.json().get("gap").cloned()), (sent, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_url_counts_at_once_though_the_old_one_does_not_answer() {
    let world = world_with(|options| {
        options.settings.webhooks.allow_addresses = vec!["127.0.0.0/8".parse().unwrap()];
        // Longer than this test waits for anything.
        options.settings.webhooks.timeout_ms = 60_000;
    });
    world.enrol("alice").await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (path, _) = create(&world, json!({"url": url})).await;
    let sent = replace(&world, 1).await;
    let (_connection, _) = silent.accept().await.unwrap();
    let mut receiver = Receiver::start().await;
    change(&world, &path, json!({"url": receiver.url})).await.expect(StatusCode::OK);
    assert_eq!(ids(&receiver.events(2).await), sent);
    world.until(&path, |view| view["behind"] == 0 && view["failures"] == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_is_told() {
    let world = world_with(|options| {
        options.settings.webhooks.allow_addresses = vec!["127.0.0.0/8".parse().unwrap()];
        options.settings.links.hosts = vec![format!("{HOST}=localhost")];
    });
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    create(&world, json!({"url": receiver.url, "states": ["opened"]})).await;
    let body = json!({"to": "alice", "link": "https://example.com/orders/17"});
    let sent = world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    let url = payload_of(&world, "alice")["link"].as_str().unwrap().to_owned();
    let mut click = at(Method::GET, HOST, url.strip_prefix(&format!("https://{HOST}")).unwrap());
    let agent = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0";
    click.headers_mut().insert(header::USER_AGENT, agent.parse().unwrap());
    assert_eq!(world.call(click).await.status, StatusCode::PERMANENT_REDIRECT);
    let told = receiver.next().await;
    let told = &told.json()["events"][0]["notification"];
    assert_eq!((&told["id"], &told["state"]), (&sent["id"], &json!("opened")));
    assert_eq!((&told["opened_by"], &told["acknowledged_by"]), (&json!("desktop"), &json!("link")));
    assert!(told["opened_at"].is_string() && !told.to_string().contains("Firefox"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failing_store_cannot_note_is_not_sent_again_and_again() {
    let world = calling();
    world.enrol("alice").await;
    let mut receiver = Receiver::start().await;
    let (path, _) = create(&world, json!({"url": receiver.url})).await;
    world.store.refuse_webhooks(2);
    let sent = replace(&world, 0).await;
    world.until(&path, |view| view["behind"] == 0).await;
    assert_eq!(ids(&receiver.next().await.events()), sent);
    assert!(receiver.is_quiet());
}
