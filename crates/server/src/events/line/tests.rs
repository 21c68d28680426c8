//! Both forms say the same.

use super::*;
use carillon_core::event::{Entry, Journal, Leave, records};
use carillon_core::model::{Audience, NotificationId, Priority, Transport};
use carillon_wire::Framing;

const AT: UnixMs = UnixMs(1_795_167_000_125);

fn print(format: Format, entry: &Entry<'_>) -> String {
    let mut journal = Journal::default();
    journal.push(AT, &Entry::Start);
    journal.push(AT, entry);
    let record = records(journal.bytes()).nth(1).unwrap();
    let mut out = Vec::new();
    Printer::new(format).print(&mut out, 3, &record);
    let line = String::from_utf8(out).unwrap();
    line.strip_suffix('\n').unwrap().to_owned()
}

#[test]
fn a_line_of_each_form() {
    let id = NotificationId::new(AT, 0xbeef, 42);
    let entry = Entry::Accept { id, to: "a@b", audience: Audience::Always, priority: Priority::High };
    let json = print(Format::Json, &entry);
    assert_eq!(
        json,
        "{\"at\":\"2026-11-20T09:30:00.125Z\",\"shard\":3,\"seq\":1,\"kind\":\"accept\",\"id\":\
         \"01M7W4N5HXQVQG00000000001A\",\"to\":\"a@b\",\"audience\":\"always\",\"priority\":\"high\"}"
    );
    let compact = print(Format::Compact, &entry);
    assert_eq!(compact, "accept\t1795167000125\t3\t1\t01M7W4N5HXQVQG00000000001A\ta@b\talways\thigh");
    let expected = Head { at: AT, shard: 3, seq: 1, kind: Kind::Accept };
    assert_eq!((head(json.as_bytes()), head(compact.as_bytes())), (Some(expected), Some(expected)));
    assert_eq!(to_json(compact.as_bytes()).unwrap(), json.as_bytes());
}

#[test]
fn a_text_may_hold_anything() {
    let item = "\"\\\t\n\r\u{1}\u{fc}\\t";
    let entry = Entry::Publish { domain: "b", topic: "t", item };
    let json = print(Format::Json, &entry);
    assert!(json.ends_with("\"item\":\"\\\"\\\\\\t\\n\\u000d\\u0001\u{fc}\\\\t\"}"), "{json}");
    let compact = print(Format::Compact, &entry);
    assert!(!compact.contains('\n'));
    assert_eq!(to_json(compact.as_bytes()).unwrap(), json.as_bytes());
}

#[test]
fn nothing_is_left_out() {
    let entry = Entry::Disconnect {
        jid: None,
        address: "192.0.2.1".parse().unwrap(),
        reason: Leave::Unbound,
        after_ms: 0,
    };
    let json = print(Format::Json, &entry);
    assert!(
        json.ends_with("\"disconnect\",\"address\":\"192.0.2.1\",\"reason\":\"unbound\",\"after_ms\":0}")
    );
    assert_eq!(to_json(print(Format::Compact, &entry).as_bytes()).unwrap(), json.as_bytes());
}

#[test]
fn a_flag_is_yes_no_or_left_out() {
    let address = "192.0.2.1".parse().unwrap();
    for (tls, json, compact) in [
        (Some(true), ",\"tls\":true}", "\ttrue"),
        (Some(false), ",\"tls\":false}", "\tfalse"),
        (None, "\"tcp\"}", "\t"),
    ] {
        let transport = Transport { framing: Framing::Tcp, tls };
        let entry = Entry::Connect { address, transport };
        let printed = print(Format::Json, &entry);
        assert!(printed.ends_with(json), "{printed}");
        let line = print(Format::Compact, &entry);
        assert!(line.ends_with(&format!("\ttcp{compact}")), "{line}");
        assert_eq!(to_json(line.as_bytes()).unwrap(), printed.as_bytes());
    }
    // A line of a release that did not know the flag.
    let older = b"connect\t1795167000125\t3\t1\t192.0.2.1\ttcp";
    assert!(to_json(older).unwrap().ends_with(b"\"transport\":\"tcp\"}"));
    assert_eq!(to_json(b"connect\t1795167000125\t3\t1\t192.0.2.1"), None);
}

#[test]
fn times_are_read_as_they_were_printed() {
    for at in [0, 951_782_400_000, 951_868_799_999, 1_795_167_000_125, 4_102_444_800_000] {
        assert_eq!(time::parse(UnixMs(at).to_xmpp().as_bytes()), Some(UnixMs(at)), "{at}");
    }
    for text in ["", "2026", "2026-11-20T09:30:00Z", "2026-13-20T09:30:00.125Z", "2026-11-20T09:30:00.12Z"] {
        assert_eq!(time::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn what_is_no_line() {
    for text in ["", "{", "{}", "x\t1\t2\t3", "start\t1\t2", "start\t1\t99999\t3", "start\tx\t2\t3"] {
        assert_eq!(head(text.as_bytes()), None, "{text}");
    }
    assert_eq!(to_json(b"start\t1\t2\t3\t4"), None);
}
