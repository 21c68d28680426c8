//! What the store is asked about links: little, however often they are followed.

use crate::links::{HOST, at, follow, payload_of, world_of_links};
use crate::support::World;
use crate::support::faulty::Counted;
use axum::http::{Method, StatusCode};
use serde_json::json;
use std::time::Instant;

const URL: &str = "https://example.com/offers?id=7";

async fn made(world: &World, code: &str) {
    world.post("/v1/links", json!({"url": URL, "code": code})).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn clicks_are_written_together_and_never_one_by_one() {
    let world = world_of_links();
    world.enrol("alice").await;
    world.post("/v1/notifications", json!({"to": "alice", "link": URL})).await.expect(StatusCode::ACCEPTED);
    let url = payload_of(&world, "alice")["link"].as_str().unwrap().to_owned();
    let path = url.strip_prefix(&format!("https://{HOST}")).unwrap().to_owned();
    let code = path[1..].split_once('.').unwrap().0.to_owned();
    let began = Instant::now();
    for _ in 0..1000 {
        assert_eq!(follow(&world, &path).await.status, StatusCode::PERMANENT_REDIRECT);
    }
    world.until(&format!("/v1/links/{code}"), |link| link["clicks"] == 1000).await;
    let seconds = began.elapsed().as_secs_f64();
    // Notifications every 250 ms, links every two seconds, and one more of each that was under way.
    let (counts, opens) =
        (world.store.asked(Counted::CountClicks), world.store.asked(Counted::OpenNotifications));
    assert!(f64::from(counts) <= seconds / 2.0 + 2.0, "{counts} questions in {seconds} s");
    assert!(f64::from(opens) <= seconds * 4.0 + 2.0, "{opens} questions in {seconds} s");
    assert!(counts >= 1 && (1..100).contains(&opens), "{counts} and {opens}");
}

#[tokio::test]
async fn what_is_known_is_not_asked_again_that_there_is_no_link_too() {
    let world = world_of_links();
    let asked = || world.store.asked(Counted::Link);
    for _ in 0..3 {
        assert_eq!(follow(&world, "/none").await.status, StatusCode::NOT_FOUND);
        assert_eq!(follow(&world, "/none+").await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(asked(), 1);
    // A code that was asked for in vain leads at once when it is made.
    made(&world, "none").await;
    assert_eq!(follow(&world, "/none").await.status, StatusCode::PERMANENT_REDIRECT);
    let known = asked();
    for path in ["/none", "/none+", "/none"] {
        assert!(follow(&world, path).await.status.as_u16() < 400, "{path}");
    }
    assert_eq!(asked(), known);
    // What cannot be a code is not asked for.
    for path in ["/a.b", "/a%20b", "/%C3%A4+"] {
        assert_eq!(follow(&world, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(asked(), known);
}

#[tokio::test]
async fn a_preview_is_told_of_a_change_at_once() {
    let world = world_of_links();
    made(&world, "abc").await;
    for _ in 0..2 {
        let page = follow(&world, "/abc+").await;
        assert!(page.text.contains("https://example.com/offers?id=7"), "{}", page.text);
        assert!(page.text.contains(&format!("https://{HOST}/abc, since 20")), "{}", page.text);
    }
    world.delete("/v1/links/abc").await.expect(StatusCode::NO_CONTENT);
    assert_eq!(follow(&world, "/abc+").await.status, StatusCode::GONE);
    assert_eq!(world.call(at(Method::HEAD, HOST, "/abc")).await.status, StatusCode::GONE);
}
