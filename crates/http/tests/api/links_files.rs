//! The files of apps on hosts of links, and what else is served there.

use crate::links::{HOST, at, follow, world_of_links};
use crate::support::{World, with_key, world_with};
use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use carillon_core::model::{LinkFile, UnixMs};
use serde_json::{Value, json};

const ANDROID: &str = "/.well-known/assetlinks.json";

fn statements() -> Value {
    let print = vec!["AB"; 32].join(":");
    json!([{
        "relation": ["delegate_permission/common.handle_all_urls"],
        "target": {"namespace": "android_app", "package_name": "com.example", "sha256_cert_fingerprints": [print]},
    }])
}

async fn served() -> World {
    let world = world_of_links();
    world.put("/v1/link-files/assetlinks.json", statements()).await.expect(StatusCode::NO_CONTENT);
    world
}

#[tokio::test]
async fn what_android_fetches_is_served_on_each_host_of_the_domain() {
    let world = world_with(|options| {
        options.settings.links.hosts = vec![format!("{HOST}=localhost"), "s.example.com=localhost".into()];
    });
    world.put("/v1/link-files/assetlinks.json", statements()).await.expect(StatusCode::NO_CONTENT);
    let link = json!({"url": "https://example.com/", "code": "abc"});
    world.post("/v1/links", link).await.expect(StatusCode::CREATED);
    for host in [HOST, "s.example.com"] {
        let file = world.call(at(Method::GET, host, ANDROID)).await;
        assert_eq!((file.status, file.json()), (StatusCode::OK, statements()), "{host}");
        assert_eq!(file.headers[header::CONTENT_TYPE], "application/json");
        let reply = world.call(at(Method::GET, host, "/abc")).await;
        assert_eq!(reply.status, StatusCode::PERMANENT_REDIRECT, "{host}");
    }
    assert_eq!(world.call(at(Method::GET, "t.example.com", "/abc")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_has_the_file_is_told_so_however_it_is_asked() {
    let world = served().await;
    let tag = follow(&world, ANDROID).await.headers[header::ETAG].to_str().unwrap().to_owned();
    let status = async |seen: &[&str]| {
        let mut request = at(Method::GET, HOST, ANDROID);
        for value in seen {
            request.headers_mut().append(header::IF_NONE_MATCH, value.parse().unwrap());
        }
        world.call(request).await.status
    };
    let (weak, list) = (format!("W/{tag}"), format!("\"other\" , {tag}"));
    for seen in [&tag[..], &weak[..], &list[..], "*"] {
        assert_eq!(status(&[seen]).await, StatusCode::NOT_MODIFIED, "{seen}");
    }
    assert_eq!(status(&["\"other\"", tag.as_str()]).await, StatusCode::NOT_MODIFIED);
    for seen in ["\"other\"", "W/\"other\", \"more\"", &tag[1..], ""] {
        assert_eq!(status(&[seen]).await, StatusCode::OK, "{seen}");
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused() {
    let world = served().await;
    let large = format!("[{}]", " ".repeat(LinkFile::BYTES_MAX));
    let request = world.request(Method::PUT, "/v1/link-files/assetlinks.json", Body::from(large));
    world.call(request).await.problem(413, "too-large");
    assert_eq!(follow(&world, ANDROID).await.json(), statements(), "it is as it was");
}

#[tokio::test]
async fn the_name_of_a_file_is_no_code() {
    let world = served().await;
    let body = json!({"url": "https://example.com/", "code": "apple-app-site-association"});
    let refused = world.post("/v1/links", body).await;
    assert_eq!(refused.problem(422, "invalid-value").as_deref(), Some("/code"));
}

#[tokio::test]
async fn browsers_remember_a_link_no_longer_than_it_leads() {
    let world = world_of_links();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let expires = UnixMs(now.as_millis() as u64 + 3_600_000).to_xmpp();
    let body = json!({"url": "https://example.com/", "code": "abc", "expires_at": expires});
    world.post("/v1/links", body).await.expect(StatusCode::CREATED);
    let kept = follow(&world, "/abc").await.headers[header::CACHE_CONTROL].to_str().unwrap().to_owned();
    let seconds: u64 = kept.strip_prefix("private, max-age=").unwrap().parse().unwrap();
    assert!((3000..=3600).contains(&seconds), "{kept}");
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_share() {
    let world = |trusted: &str| {
        let trusted = [trusted.parse().unwrap()];
        world_with(move |options| {
            options.trusted_proxies = carillon_server::TrustedProxies::new(&trusted);
            let links = &mut options.settings.links;
            links.hosts = vec![format!("{HOST}=localhost")];
            (links.public, links.public_per_minute) = (true, 1);
            links.public_targets = vec!["example.com".into()];
        })
    };
    let post = |forwarded: &str| {
        let mut request = at(Method::POST, HOST, "/");
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        *request.body_mut() = Body::from(json!({"url": "https://example.com/"}).to_string());
        request
    };
    let (proxied, direct) = (world("127.0.0.0/8"), world("192.0.2.0/24"));
    assert_eq!(proxied.call(post("198.51.100.1")).await.status, StatusCode::CREATED);
    assert_eq!(proxied.call(post("198.51.100.2")).await.status, StatusCode::OK);
    // What the client itself wrote before the address that the proxy saw changes nothing.
    proxied.call(post("198.51.100.9, 198.51.100.1")).await.problem(429, "too-many-requests");
    // Nobody is believed who is no proxy.
    assert_eq!(direct.call(post("198.51.100.1")).await.status, StatusCode::CREATED);
    direct.call(post("198.51.100.2")).await.problem(429, "too-many-requests");
    let key = direct.key("localhost", &[carillon_core::model::Scope::Links]);
    assert_eq!(direct.call(with_key(post("198.51.100.2"), &key)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_hosts_of_links_describe_themselves() {
    let world = served().await;
    let body = json!({"url": "https://example.com/", "code": "abc"});
    world.post("/v1/links", body).await.expect(StatusCode::CREATED);
    let document = follow(&world, "/openapi.json").await.expect(StatusCode::OK);
    let mut routes: Vec<String> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let reply = world.call(at(method.clone(), HOST, &path.replace("{code}", "abc"))).await;
            let answers = &item[method.as_str().to_lowercase()]["responses"];
            let is_described = !answers[reply.status.as_str()].is_null();
            let kind = reply.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
            let is_problem = kind == Some(b"application/problem+json");
            assert!(
                is_described || is_problem && !answers["default"].is_null(),
                "{method} {path}: {reply:?}"
            );
            routes.push(format!("{method} {path}"));
        }
    }
    routes.sort();
    let expected = [
        "GET /",
        "GET /.well-known/apple-app-site-association",
        "GET /.well-known/assetlinks.json",
        "GET /{code}",
        "GET /{code}+",
        "POST /",
    ];
    assert_eq!(routes, expected);
}
