//! URLs that may not be shortened: each is refused with the member and a reason.

use crate::links::world_of_links;
use serde_json::json;

const HOSTILE: &[(&str, &str)] = &[
    ("", "empty"),
    ("   ", "empty"),
    ("example.com", "scheme"),
    ("//example.com/", "scheme"),
    ("javascript:alert(1)", "scheme"),
    ("JaVaScRiPt:alert(1)", "scheme"),
    ("java\nscript:alert(1)", "U+000A"),
    ("data:text/html,<script>alert(1)</script>", "scheme"),
    ("vbscript:msgbox(1)", "scheme"),
    ("file:///etc/passwd", "scheme"),
    ("blob:https://example.com/1", "scheme"),
    ("about:blank", "scheme"),
    ("ftp://example.com/", "scheme"),
    ("intent://scan/#Intent;scheme=zxing;end", "scheme"),
    ("otherapp://open", "scheme"),
    ("https:example.com", "//"),
    ("https:/example.com", "//"),
    ("https://", "host"),
    ("https:///path", "host"),
    ("https://user@example.com/", "user name"),
    ("https://user:secret@example.com/", "user name"),
    ("https://example.com@evil.example/", "user name"),
    ("https://example.com\\@evil.example/", "backslash"),
    ("https:\\\\example.com", "backslash"),
    ("https://example.com/a b", "space"),
    ("https://example.com/\u{0}", "U+0000"),
    ("https://example.com/\u{7f}", "U+007F"),
    ("https://example.com/%0d%0aSet-Cookie:a=b", "U+000D"),
    ("https://example.com/%00", "U+0000"),
    ("https://example.com/%zz", "%"),
    ("https://example.com/%4", "%"),
    ("https://exam\u{202e}ple.com/", "U+202E"),
    ("https://exa\u{200b}mple.com/", "U+200B"),
    ("https://ex\u{430}mple.com/", "xn--"),
    ("https://exam%70le.com/", "not the name"),
    ("https://-example.com/", "not the name"),
    ("https://example..com/", "not the name"),
    ("https://example.com:0/", "port"),
    ("https://example.com:99999/", "port"),
    ("https://example.com:8o/", "port"),
    ("https://localhost/", "not a public host"),
    ("https://admin.localhost/", "not a public host"),
    ("https://intranet/", "not a public host"),
    ("https://printer.local/", "not a public host"),
    ("http://metadata.google.internal/", "not a public host"),
    ("http://127.0.0.1/", "not a public address"),
    ("http://10.0.0.1/", "not a public address"),
    ("http://169.254.169.254/latest/meta-data/", "not a public address"),
    ("http://2130706433/", "another form"),
    ("http://0x7f.1/", "another form"),
    ("http://0177.0.0.1/", "another form"),
    ("http://127.1/", "another form"),
    ("http://[::1]/", "not a public address"),
    ("http://[::ffff:127.0.0.1]/", "not a public address"),
    ("http://[fe80::1%25eth0]/", "IPv6"),
    ("https://go.example.com/abc", "short links itself"),
    ("https://GO.example.com./abc", "short links itself"),
    ("http://l.example.org:8080/abc", "short links itself"),
    ("https://bit.ly/abc", "shortens URLs itself"),
    ("https://www.tinyurl.com/abc", "shortens URLs itself"),
    ("https://t.co/abc", "shortens URLs itself"),
];

#[tokio::test]
async fn hostile_urls_are_refused_with_a_reason() {
    let world = world_of_links();
    assert!(HOSTILE.len() >= 40);
    for (url, reason) in HOSTILE {
        let reply = world.post("/v1/links", json!({ "url": url })).await;
        assert_eq!(reply.problem(422, "invalid-value").as_deref(), Some("/url"), "{url}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("`url`: ") && detail.contains(reason), "{url}: {detail}");
    }
    let long = format!("https://example.com/{}", "a".repeat(2048));
    world.post("/v1/links", json!({ "url": long })).await.problem(422, "invalid-value");
    assert_eq!(world.get("/v1/links").await.json()["links"], json!([]));
}
