//! Short links: made, followed, changed, taken down, counted.

use crate::support::{Reply, World, with_key, world, world_with};
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use carillon_core::model::Scope;
use serde_json::{Value, json};
use std::collections::HashSet;

pub(crate) const HOST: &str = "go.example.com";
const URL: &str = "https://example.com/offers?id=7";

pub(crate) fn world_of_links() -> World {
    world_with(|options| {
        options.settings.links.hosts =
            vec![format!("{HOST}=localhost"), "http://l.example.org:8080=other.example".into()];
        options.settings.links.app_schemes = vec!["myapp".into()];
        std::sync::Arc::make_mut(&mut options.core).invitations.enabled = true;
    })
}

pub(crate) fn at(method: Method, host: &str, path: &str) -> Request<Body> {
    Request::builder().method(method).uri(path).header(header::HOST, host).body(Body::empty()).unwrap()
}

pub(crate) async fn follow(world: &World, path: &str) -> Reply {
    world.call(at(Method::GET, HOST, path)).await
}

/// `POST /` on a host of links, with a body of this type.
fn post(kind: &'static str, body: String) -> Request<Body> {
    let mut request = at(Method::POST, HOST, "/");
    request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
    *request.body_mut() = Body::from(body);
    request
}

fn post_json(body: &Value) -> Request<Body> {
    post("application/json", body.to_string())
}

async fn made(world: &World, body: Value) -> Value {
    world.post("/v1/links", body).await.expect(StatusCode::CREATED)
}

fn location(reply: &Reply) -> &str {
    reply.headers.get(header::LOCATION).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_url_is_shortened_and_the_link_leads_there() {
    let world = world_of_links();
    let link = made(&world, json!({"url": "HTTPS://Example.com/offers?id=7"})).await;
    let code = link["code"].as_str().unwrap();
    assert_eq!((code.len(), &link["url"]), (8, &json!(URL)));
    assert_eq!(link["short_url"], format!("https://{HOST}/{code}"));
    for _ in 0..2 {
        // From the store, then from memory.
        let reply = follow(&world, &format!("/{code}")).await;
        assert_eq!((reply.status, location(&reply)), (StatusCode::PERMANENT_REDIRECT, URL));
        assert_eq!(reply.headers[header::CACHE_CONTROL], "private, max-age=86400");
        assert_eq!(reply.headers[header::REFERRER_POLICY], "no-referrer");
        assert_eq!(reply.headers["x-robots-tag"], "noindex, nofollow");
    }
    assert_eq!(
        world.call(at(Method::HEAD, HOST, &format!("/{code}"))).await.status,
        StatusCode::PERMANENT_REDIRECT
    );
    let again = world.post("/v1/links", json!({"url": URL})).await.expect(StatusCode::OK);
    assert_eq!(again["code"], code, "the same URL has the same code");
    assert_eq!(world.get(&format!("/v1/links/{code}")).await.expect(StatusCode::OK)["url"], URL);
    let other =
        world.post("/v1/links?domain=other.example", json!({"url": URL})).await.expect(StatusCode::CREATED);
    assert_ne!(other["code"], code, "each domain derives others");
    assert!(other["short_url"].as_str().unwrap().starts_with("http://l.example.org:8080/"));
    assert_eq!(
        follow(&world, &format!("/{}", other["code"].as_str().unwrap())).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn the_hosts_have_links_and_the_api_has_none() {
    let world = world_of_links();
    let code = made(&world, json!({"url": URL})).await["code"].as_str().unwrap().to_owned();
    let page = follow(&world, "/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<form method=\"post\"") && !page.text.contains("<script"));
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(follow(&world, "/v1/links").await.status, StatusCode::NOT_FOUND);
    assert_eq!(follow(&world, "/v1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(follow(&world, "/console").await.status, StatusCode::NOT_FOUND, "a code like any");
    assert!(follow(&world, "/robots.txt").await.text.contains("Disallow: /"));
    assert_eq!(
        world.call(at(Method::DELETE, HOST, &format!("/{code}"))).await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    world.get(&format!("/{code}")).await.problem(404, "unknown-route");
    let none = self::world();
    none.post("/v1/links", json!({"url": URL})).await.problem(409, "no-link-host");
    assert_eq!(
        none.call(at(Method::GET, HOST, "/healthz")).await.status,
        StatusCode::OK,
        "no host is one of links"
    );
}

#[tokio::test]
async fn a_link_is_made_on_its_host_by_json_and_by_form() {
    let world = world_of_links();
    let key = world.key("localhost", &[Scope::Links]);
    let reply = world.call(with_key(post_json(&json!({"url": URL})), &key)).await;
    let link = reply.expect(StatusCode::CREATED);
    assert_eq!(location(&reply), link["short_url"].as_str().unwrap());
    assert_eq!(link["short_url"], format!("https://{HOST}/{}", link["code"].as_str().unwrap()));
    let form = |fields: &str| post("application/x-www-form-urlencoded", fields.to_owned());
    let page =
        world.call(form(&format!("url=https%3A%2F%2Fexample.com%2Foffers%3Fid%3D7&code=&key={key}"))).await;
    assert_eq!(page.status, StatusCode::OK, "it is there already: {}", page.text);
    assert!(page.text.contains(link["short_url"].as_str().unwrap()) && !page.text.contains(&key));
    let page = world.call(form(&format!("url=https%3A%2F%2Fexample.com%2F&code=Summer&key={key}"))).await;
    assert_eq!(page.status, StatusCode::CREATED);
    assert_eq!(location(&follow(&world, "/Summer").await), "https://example.com/");
    // What was wrong is said, and what was filled in is kept; the key is not.
    let page = world.call(form(&format!("url=javascript%3Aalert(1)&code=&key={key}"))).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.text.contains("role=\"alert\"") && page.text.contains("value=\"javascript:alert(1)\""));
    assert!(!page.text.contains(&key));
    assert_eq!(world.call(form("url=https%3A%2F%2Fexample.com%2F")).await.status, StatusCode::UNAUTHORIZED);
    world.call(post("text/plain", URL.into())).await.problem(415, "wrong-content-type");
}

#[tokio::test]
async fn making_links_needs_the_scope() {
    let world = world_of_links();
    world.call(post_json(&json!({"url": URL}))).await.problem(401, "missing-key");
    let sender = world.key("localhost", &[Scope::Send]);
    world.call(with_key(post_json(&json!({"url": URL})), &sender)).await.problem(403, "missing-scope");
    let other = world.key("other.example", &[Scope::Links]);
    world.call(with_key(post_json(&json!({"url": URL})), &other)).await.problem(403, "other-domain");
    let reader = with_key(world.request(Method::GET, "/v1/links", Body::empty()), &sender);
    world.call(reader).await.problem(403, "missing-scope");
}

#[tokio::test]
async fn the_public_may_make_few_links_to_few_hosts_where_it_may() {
    let world = world_with(|options| {
        let links = &mut options.settings.links;
        links.hosts = vec![format!("{HOST}=localhost")];
        (links.public, links.public_per_minute) = (true, 2);
        links.public_targets = vec!["example.com".into()];
    });
    let post = |url: &str| post_json(&json!({ "url": url }));
    assert_eq!(world.call(post(URL)).await.status, StatusCode::CREATED);
    let refused = world.call(post("https://example.org/")).await;
    assert_eq!(refused.problem(422, "invalid-value").as_deref(), Some("/url"));
    let third = world.call(post("https://www.example.com/")).await;
    third.problem(429, "too-many-requests");
    assert!(third.headers.contains_key(header::RETRY_AFTER));
    let key = world.key("localhost", &[Scope::Links]);
    assert_eq!(world.call(with_key(post("https://example.org/"), &key)).await.status, StatusCode::CREATED);
    let world = world_with(|options| {
        options.settings.links.hosts = vec![format!("{HOST}=localhost")];
        options.settings.links.public = true;
        options.settings.links.public_targets = vec!["example.com".into()];
    });
    world.call(post_json(&json!({"url": URL, "code": "mine"}))).await.problem(401, "missing-key");
    assert!(follow(&world, "/").await.text.contains("API key, if you have one"));
}

#[tokio::test]
async fn a_link_is_previewed() {
    let world = world_of_links();
    made(&world, json!({"url": "https://example.com/<b>?\"'", "code": "abc"})).await;
    let page = follow(&world, "/abc+").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text.contains("This link leads to example.com") && page.text.contains("%3Cb%3E"),
        "{}",
        page.text
    );
    assert!(page.headers.get(header::LOCATION).is_none());
    assert_eq!(follow(&world, "/none+").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/v1/links/abc").await.json()["clicks"], 0);
}

#[tokio::test]
async fn a_link_is_taken_down_and_brought_back() {
    let world = world_of_links();
    made(&world, json!({"url": URL, "code": "abc"})).await;
    assert_eq!(follow(&world, "/abc").await.status, StatusCode::PERMANENT_REDIRECT);
    world.delete("/v1/links/abc").await.expect(StatusCode::NO_CONTENT);
    let gone = follow(&world, "/abc").await;
    assert_eq!((gone.status, gone.headers.get(header::LOCATION)), (StatusCode::GONE, None));
    assert_eq!(follow(&world, "/abc+").await.status, StatusCode::GONE);
    world.post("/v1/links", json!({"url": URL, "code": "abc"})).await.problem(409, "link-removed");
    assert!(world.get("/v1/links/abc").await.json()["removed_at"].is_string());
    world.patch("/v1/links/abc", json!({"removed": false})).await.expect(StatusCode::OK);
    assert_eq!(follow(&world, "/abc").await.status, StatusCode::PERMANENT_REDIRECT);
    world.delete("/v1/links/none").await.problem(404, "unknown-link");
}

#[tokio::test]
async fn a_link_that_may_change_is_not_remembered() {
    let world = world_of_links();
    made(&world, json!({"url": URL, "code": "now", "may_change": true})).await;
    made(&world, json!({"url": URL, "code": "ever"})).await;
    let reply = follow(&world, "/now").await;
    assert_eq!(reply.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(reply.headers[header::CACHE_CONTROL], "no-store");
    let new = json!({"url": "https://example.com/new"});
    world.patch("/v1/links/now", new.clone()).await.expect(StatusCode::OK);
    assert_eq!(location(&follow(&world, "/now").await), "https://example.com/new");
    assert_eq!(
        world.patch("/v1/links/ever", new).await.problem(422, "invalid-value").as_deref(),
        Some("/url")
    );
    let differs = world.post("/v1/links", json!({"url": URL, "code": "ever", "may_change": true})).await;
    assert_eq!(differs.problem(409, "already-exists").as_deref(), Some("/may_change"));
    let taken = world.post("/v1/links", json!({"url": "https://example.com/b", "code": "ever"})).await;
    assert_eq!(taken.problem(409, "already-exists").as_deref(), Some("/code"));
}

#[tokio::test]
async fn a_link_expires() {
    let world = world_of_links();
    let past = world.post("/v1/links", json!({"url": URL, "expires_at": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(past.problem(422, "invalid-value").as_deref(), Some("/expires_at"));
    made(&world, json!({"url": URL, "code": "soon", "expires_at": "2100-01-01T00:00:00Z"})).await;
    assert_eq!(follow(&world, "/soon").await.headers[header::CACHE_CONTROL], "private, max-age=86400");
    let change = json!({"expires_at": "2020-01-01T00:00:00Z"});
    world.patch("/v1/links/soon", change).await.expect(StatusCode::OK);
    assert_eq!(follow(&world, "/soon").await.status, StatusCode::GONE);
    world.patch("/v1/links/soon", json!({"expires_at": null})).await.expect(StatusCode::OK);
    assert_eq!(follow(&world, "/soon").await.status, StatusCode::PERMANENT_REDIRECT);
}

#[tokio::test]
async fn links_are_listed_and_searched() {
    let world = world_of_links();
    for n in 0..5 {
        made(&world, json!({"url": format!("https://example.com/{n}"), "code": format!("code-{n}")})).await;
    }
    let codes = |list: &Value| -> Vec<String> {
        list["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| link["code"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = world.get("/v1/links?limit=2").await.expect(StatusCode::OK);
    assert_eq!(codes(&first), ["code-4", "code-3"]);
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        codes(&world.get(&format!("/v1/links?after={next}")).await.json()),
        ["code-2", "code-1", "code-0"]
    );
    assert_eq!(codes(&world.get("/v1/links?search=com/3").await.json()), ["code-3"]);
    assert_eq!(codes(&world.get("/v1/links?domain=other.example").await.json()), [""; 0]);
}

#[tokio::test]
async fn many_links_are_made_by_lines() {
    let world = world_of_links();
    let lines =
        [json!({"url": URL}), json!({"url": "ftp://example.com/"}), json!({"url": URL}), json!({"uri": 1})];
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut request = world.request(Method::POST, "/v1/links", Body::from(body));
    request.headers_mut().insert(header::CONTENT_TYPE, "application/x-ndjson".parse().unwrap());
    let results = world.call(request).await.lines();
    let numbers: Vec<_> = results.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!((&results[0]["code"], &results[0]["url"]), (&results[2]["code"], &json!(URL)));
    assert_eq!(
        (&results[1]["error"]["code"], &results[3]["error"]["code"]),
        (&json!("invalid-value"), &json!("unknown-field"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_at_once_for_one_url_make_one_link() {
    let world = std::sync::Arc::new(world_of_links());
    let posts = (0..1000).map(|_| {
        let world = world.clone();
        tokio::spawn(async move {
            let reply = world.post("/v1/links", json!({"url": URL})).await;
            assert!(reply.status.is_success(), "{}", reply.text);
            reply.json()["code"].as_str().unwrap().to_owned()
        })
    });
    let codes: Vec<_> = futures_util::future::join_all(posts).await;
    let codes: HashSet<String> = codes.into_iter().map(Result::unwrap).collect();
    assert_eq!(codes.len(), 1);
    assert_eq!(world.get("/v1/links").await.json()["links"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_domain_has_so_many_links() {
    let world = world_with(|options| {
        options.settings.links.hosts = vec![format!("{HOST}=localhost")];
        options.settings.links.per_domain_max = 1;
    });
    made(&world, json!({"url": URL})).await;
    world.post("/v1/links", json!({"url": "https://example.com/"})).await.problem(409, "too-many-links");
}

#[tokio::test]
async fn clicks_are_counted() {
    let world = world_of_links();
    made(&world, json!({"url": URL, "code": "abc"})).await;
    for _ in 0..7 {
        follow(&world, "/abc").await;
    }
    world.call(at(Method::HEAD, HOST, "/abc")).await;
    let link = world.until("/v1/links/abc", |link| link["clicks"] == 7).await;
    assert!(link["last_click_at"].is_string());
}

#[tokio::test]
async fn links_end_with_their_domain() {
    let world = world_of_links();
    let code = made(&world, json!({"url": URL})).await["code"].clone();
    let path = format!("/{}", code.as_str().unwrap());
    assert_eq!(follow(&world, &path).await.status, StatusCode::PERMANENT_REDIRECT);
    world.delete("/v1/admin/domains/localhost").await.expect(StatusCode::NO_CONTENT);
    assert_eq!(follow(&world, &path).await.status, StatusCode::NOT_FOUND);
    world.put("/v1/admin/domains/localhost", json!({})).await.expect(StatusCode::CREATED);
    let anew = made(&world, json!({"url": URL})).await;
    assert_ne!(anew["code"], code, "it has a secret of its own");
}

#[tokio::test]
async fn the_files_of_apps_are_served() {
    let world = world_of_links();
    let apple = json!({"applinks": {"details": [{"appIDs": ["ABCDE12345.com.example.app"]}]}});
    let path = "/.well-known/apple-app-site-association";
    follow(&world, path).await.problem(404, "unknown-link-file");
    world
        .put("/v1/link-files/apple-app-site-association", apple.clone())
        .await
        .expect(StatusCode::NO_CONTENT);
    for path in [path, "/apple-app-site-association"] {
        let reply = follow(&world, path).await;
        assert_eq!((reply.status, reply.json()), (StatusCode::OK, apple.clone()));
        assert_eq!(reply.headers[header::CONTENT_TYPE], "application/json");
        let mut again = at(Method::GET, HOST, path);
        again.headers_mut().insert(header::IF_NONE_MATCH, reply.headers[header::ETAG].clone());
        assert_eq!(world.call(again).await.status, StatusCode::NOT_MODIFIED);
    }
    follow(&world, "/.well-known/assetlinks.json").await.problem(404, "unknown-link-file");
    world.put("/v1/link-files/assetlinks.json", json!([{}])).await.problem(422, "invalid-value");
    world.put("/v1/link-files/robots.txt", json!([])).await.problem(404, "unknown-link-file");
    world.delete("/v1/link-files/apple-app-site-association").await.expect(StatusCode::NO_CONTENT);
    follow(&world, path).await.problem(404, "unknown-link-file");
}

#[tokio::test]
async fn a_click_opens_the_notification() {
    let world = world_of_links();
    world.enrol("alice").await;
    world.enrol("bob").await;
    let body = json!({"to": ["alice", "bob"], "link": URL, "payload": {"n": 1}});
    let sent = world.post("/v1/notifications", body).await.expect(StatusCode::ACCEPTED);
    let ids: Vec<String> = sent["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    // Two recipients, one link.
    let links = world.get("/v1/links").await.json()["links"].as_array().unwrap().clone();
    assert_eq!(links.len(), 1);
    let payloads = [payload_of(&world, "alice"), payload_of(&world, "bob")];
    let short = links[0]["short_url"].as_str().unwrap();
    let urls = payloads.map(|payload| {
        assert_eq!(payload["n"], 1);
        payload["link"].as_str().unwrap().to_owned()
    });
    assert!(urls.iter().all(|url| url.starts_with(&format!("{short}."))) && urls[0] != urls[1], "{urls:?}");
    let path = urls[0].strip_prefix(&format!("https://{HOST}")).unwrap();
    let phone = |path: &str| {
        let mut request = at(Method::GET, HOST, path);
        request
            .headers_mut()
            .insert(header::USER_AGENT, "Mozilla/5.0 (iPhone) Mobile/15E148".parse().unwrap());
        request
    };
    // Neither a preview nor a robot opens anything, nor does what somebody made up.
    follow(&world, &format!("{path}+")).await;
    let mut robot = phone(path);
    robot.headers_mut().insert(header::USER_AGENT, "Slackbot-LinkExpanding 1.0".parse().unwrap());
    assert_eq!(location(&world.call(robot).await), URL);
    assert_eq!(location(&follow(&world, &format!("{}0", &path[..path.len() - 1])).await), URL);
    let reply = world.call(phone(path)).await;
    assert_eq!((reply.status, location(&reply)), (StatusCode::PERMANENT_REDIRECT, URL));
    let opened =
        world.until(&format!("/v1/notifications/{}", ids[0]), |trace| trace["state"] == "opened").await;
    assert_eq!((&opened["opened_by"], &opened["acknowledged_by"]), (&json!("mobile"), &json!("link")));
    assert!(opened["opened_at"].is_string() && opened.to_string().matches("iPhone").count() == 0);
    assert_eq!(world.get(&format!("/v1/notifications/{}", ids[1])).await.json()["state"], "stored");
    let listed = world.get("/v1/notifications?state=opened").await.expect(StatusCode::OK);
    assert_eq!(listed["notifications"][0]["id"], ids[0].as_str());
}

/// What waits for a device.
pub(crate) fn payload_of(world: &World, device: &str) -> Value {
    use carillon_core::model::{Payload, UnixMs};
    use carillon_core::ports::Page;
    use carillon_core::ports::store::notifications::Pending;
    let page = Page { entries: 9, bytes: usize::MAX };
    let asked = Pending {
        domain: world.domain("localhost"),
        local: device.into(),
        resource: None,
        except: Vec::new(),
        page,
        now: UnixMs(0),
    };
    let part = crate::support::ask(&*world.store, asked);
    match &part.entries[0].payload {
        Payload::Json(json) => serde_json::from_str(json).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_click_is_an_event() {
    let world = world_of_links();
    world.enrol("alice").await;
    let request = world.request(Method::GET, "/v1/events?state=opened&after=0", Body::empty());
    let mut events = crate::support::Events::of(world.open(request).await);
    world.post("/v1/notifications", json!({"to": "alice", "link": URL})).await.expect(StatusCode::ACCEPTED);
    let url = payload_of(&world, "alice")["link"].as_str().unwrap().to_owned();
    follow(&world, url.strip_prefix(&format!("https://{HOST}")).unwrap()).await;
    let (name, data) = events.next().await.expect("it is told");
    assert_eq!(
        (&*name, &data["state"], &data["opened_by"]),
        ("notification", &json!("opened"), &json!("other"))
    );
    assert!(events.last_id() > 0);
}

#[tokio::test]
async fn lines_of_a_batch_have_links() {
    let world = world_of_links();
    world.enrol("alice").await;
    let line = |link: &str| format!("{}\n", json!({"to": "alice", "link": link}));
    let body = line(URL) + &line("https://example.com/b") + &line("javascript:1") + &line(URL);
    let mut request = world.request(Method::POST, "/v1/notifications/batch", Body::from(body));
    request.headers_mut().insert(header::CONTENT_TYPE, "application/x-ndjson".parse().unwrap());
    let results = world.call(request).await.lines();
    let states: Vec<_> = results.iter().map(|line| line["state"].as_str().unwrap_or("")).collect();
    assert_eq!(states, ["stored", "stored", "", "stored"], "{results:?}");
    assert_eq!(results[2]["error"]["pointer"], "/link");
    assert_eq!(world.get("/v1/links").await.json()["links"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_notification_with_a_link_needs_what_it_takes() {
    let world = world_of_links();
    world.enrol("alice").await;
    let refused = async |body: Value, status, code: &str, pointer: &str| {
        let reply = world.post("/v1/notifications", body).await;
        assert_eq!(reply.problem(status, code).as_deref(), Some(pointer));
    };
    let with = |member: &str, value: Value| {
        let mut body = json!({"to": "alice", "link": URL});
        body[member] = value;
        body
    };
    refused(with("audience", json!("connected")), 422, "invalid-value", "/link").await;
    refused(with("payload", json!([1])), 422, "invalid-value", "/payload").await;
    refused(with("payload", json!({"link": 1})), 422, "invalid-value", "/payload/link").await;
    refused(with("payload_xml", json!("<a xmlns='b'/>")), 422, "invalid-value", "/payload_xml").await;
    refused(with("link", json!("https://bit.ly/a")), 422, "invalid-value", "/link").await;
    let sender = world.key("localhost", &[Scope::Send]);
    let body = Body::from(json!({"to": "alice", "link": URL}).to_string());
    let reply = world.call(with_key(world.request(Method::POST, "/v1/notifications", body), &sender)).await;
    assert_eq!(reply.problem(403, "missing-scope").as_deref(), Some("/link"));
    let rehearsed = world.post("/v1/notifications", with("dry_run", json!(true))).await;
    rehearsed.expect(StatusCode::ACCEPTED);
    assert_eq!(world.get("/v1/links").await.json()["links"], json!([]), "nothing was made");
}
