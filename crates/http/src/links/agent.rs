//! What kind of program followed a link: told by its `User-Agent`, of which nothing else is kept.

use axum::http::{HeaderMap, header};
use carillon_core::model::AgentClass;

/// The class of whoever sent a request; none for a robot, and for a browser that only looks ahead: those do not open anything.
pub(super) fn class(headers: &HeaderMap) -> Option<AgentClass> {
    let is_ahead = ["sec-purpose", "purpose", "x-moz"].iter().any(|name| {
        headers.get(*name).is_some_and(|value| {
            let value = value.as_bytes();
            contains(value, b"prefetch") || contains(value, b"preview")
        })
    });
    if is_ahead {
        return None;
    }
    let Some(agent) = headers.get(header::USER_AGENT) else { return Some(AgentClass::Other) };
    of(agent.as_bytes())
}

fn of(agent: &[u8]) -> Option<AgentClass> {
    let has = |word: &str| contains(agent, word.as_bytes());
    if ROBOTS.iter().any(|word| has(word)) {
        return None;
    }
    let is_android = has("android");
    Some(if has("ipad") || has("tablet") || (is_android && !has("mobile")) {
        AgentClass::Tablet
    } else if has("iphone") || has("ipod") || is_android || has("mobile") {
        AgentClass::Mobile
    } else if has("windows") || has("macintosh") || has("x11") || has("linux") || has("cros") {
        AgentClass::Desktop
    } else {
        AgentClass::Other
    })
}

/// Those that fetch what they were shown a link to, without anybody having followed it.
const ROBOTS: [&str; 12] = [
    "bot",
    "crawl",
    "spider",
    "preview",
    "facebookexternalhit",
    "whatsapp",
    "slurp",
    "embedly",
    "skypeuripreview",
    "headless",
    "monitor",
    "scan",
];

/// Whether a word in small letters is in a text, in whatever case.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart() {
        use AgentClass::{Desktop, Mobile, Other, Tablet};
        for (agent, class) in [
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
                Some(Mobile),
            ),
            (
                "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36",
                Some(Mobile),
            ),
            (
                "Mozilla/5.0 (Linux; Android 14; SM-X910) AppleWebKit/537.36 Chrome/130.0 Safari/537.36",
                Some(Tablet),
            ),
            ("Mozilla/5.0 (iPad; CPU OS 17_0 like Mac OS X)", Some(Tablet)),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0", Some(Desktop)),
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64)", Some(Desktop)),
            ("curl/8.5.0", Some(Other)),
            ("", Some(Other)),
            ("Mozilla/5.0 (compatible; Googlebot/2.1)", None),
            ("facebookexternalhit/1.1", None),
            ("WhatsApp/2.24", None),
        ] {
            assert_eq!(of(agent.as_bytes()), class, "{agent}");
        }
    }

    #[test]
    fn who_only_looks_ahead_opens_nothing() {
        let with = |name: &'static str, value: &'static str| {
            let name = axum::http::HeaderName::from_static(name);
            class(&HeaderMap::from_iter([(name, axum::http::HeaderValue::from_static(value))]))
        };
        assert_eq!(with("sec-purpose", "prefetch;prerender"), None);
        assert_eq!(with("user-agent", "x"), Some(AgentClass::Other));
    }
}
