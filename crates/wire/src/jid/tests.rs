use std::collections::HashMap;

use super::*;

fn jid(text: &str) -> Jid {
    Jid::new(text).unwrap()
}

#[test]
fn parts_of_a_full_jid() {
    let jid = jid("Alice@Example.COM./Phone/1@x");
    assert_eq!(jid.as_str(), "alice@example.com/Phone/1@x");
    assert_eq!(jid.local(), Some("alice"));
    assert_eq!(jid.domain(), "example.com");
    assert_eq!(jid.resource(), Some("Phone/1@x"));
    assert_eq!(jid.bare_str(), "alice@example.com");
    assert_eq!(jid.bare(), BareJid::new("alice@example.com").unwrap());
    assert!(!jid.is_bare());
}

#[test]
fn parts_of_a_domain() {
    let jid = jid("push.example.com");
    assert_eq!((jid.local(), jid.domain(), jid.resource()), (None, "push.example.com", None));
    assert!(jid.is_bare());
    assert_eq!(jid.bare().to_jid(), jid);
    let full = jid.with_resource("a").unwrap();
    assert_eq!((full.local(), full.domain(), full.resource()), (None, "push.example.com", Some("a")));
    assert_eq!(full.with_resource("b").unwrap().as_str(), "push.example.com/b");
}

#[test]
fn an_account_has_a_local_part() {
    let account = AccountJid::from_parts("Alice", "Example.com").unwrap();
    assert_eq!((account.local(), account.domain()), ("alice", "example.com"));
    assert_eq!(AccountJid::of(account.to_bare()), Some(account));
    assert_eq!(AccountJid::of(BareJid::new("example.com").unwrap()), None);
    assert!(AccountJid::from_parts("", "example.com").is_err());
}

#[test]
fn says_which_part_is_wrong() {
    for (text, error) in [
        ("", JidError::Empty(Part::Domain)),
        ("@example.com", JidError::Empty(Part::Local)),
        ("a@", JidError::Empty(Part::Domain)),
        ("a@b/", JidError::Empty(Part::Resource)),
        ("/x", JidError::Empty(Part::Domain)),
        (".", JidError::Empty(Part::Domain)),
        ("a b@c", JidError::Forbidden(Part::Local, ' ')),
        ("a\"b@c", JidError::Forbidden(Part::Local, '"')),
        ("a<b@c", JidError::Forbidden(Part::Local, '<')),
        ("a@b@c", JidError::Forbidden(Part::Domain, '@')),
        ("a@b c", JidError::Forbidden(Part::Domain, ' ')),
        ("a@b\0", JidError::Forbidden(Part::Domain, '\0')),
        ("a@b/\u{7f}", JidError::Forbidden(Part::Resource, '\u{7f}')),
        ("a@b..c", JidError::EmptyLabel),
        ("a@.b", JidError::EmptyLabel),
        ("a@[::1", JidError::IpLiteral),
        ("a@[::g]", JidError::IpLiteral),
        ("\u{FF20}@example.com", JidError::Unprepared(Part::Local)),
        ("a@b\u{FF0F}c", JidError::Forbidden(Part::Domain, '/')),
        ("a@b/\u{FDD0}", JidError::Unprepared(Part::Resource)),
    ] {
        assert_eq!(Jid::new(text), Err(error), "{text:?}");
    }
    assert_eq!(BareJid::new("a@b/c"), Err(JidError::HasResource));
}

#[test]
fn every_character_the_rfc_forbids_in_a_localpart() {
    for c in "\"&'/:<>@ ".chars() {
        assert!(prepare_local(&format!("a{c}b")).is_err(), "{c:?}");
    }
    assert_eq!(prepare_local("A.b-c_d+e!#$%()*,;=?[\\]^`{|}~").unwrap(), "a.b-c_d+e!#$%()*,;=?[\\]^`{|}~");
}

#[test]
fn each_part_may_have_1023_bytes() {
    let long = "a".repeat(1023);
    let jid = jid(&format!("{long}@{long}/{long}"));
    assert_eq!((jid.local(), jid.domain(), jid.resource()), (Some(&*long), &*long, Some(&*long)));
    let longer = "a".repeat(1024);
    assert_eq!(Jid::new(&format!("{longer}@b/c")), Err(JidError::TooLong(Part::Local)));
    assert_eq!(Jid::new(&format!("a@{longer}/c")), Err(JidError::TooLong(Part::Domain)));
    assert_eq!(Jid::new(&format!("a@b/{longer}")), Err(JidError::TooLong(Part::Resource)));
    assert_eq!(Jid::new(&format!("a@b/{}", "é".repeat(4000))), Err(JidError::TooLong(Part::Resource)));
}

#[test]
fn prepares_beyond_ascii() {
    assert_eq!(jid("JÜRGEN@Straße.example").as_str(), "jürgen@strasse.example");
    assert_eq!(jid("a@例え。テスト").domain(), "例え.テスト");
    assert_eq!(jid("a@b/Ünïcode Ressource").resource(), Some("Ünïcode Ressource"));
    // Full-width letters are compatible with plain ones.
    assert_eq!(jid("ｂｏｂ@example.com").as_str(), "bob@example.com");
}

#[test]
fn ip_literals() {
    assert_eq!(jid("a@192.0.2.1").domain(), "192.0.2.1");
    assert_eq!(jid("a@[2001:DB8::1]/r").domain(), "[2001:db8::1]");
}

#[test]
fn a_map_of_bare_jids_is_asked_with_text() {
    let map = HashMap::from([(BareJid::new("Alice@example.com").unwrap(), 1)]);
    assert_eq!(map.get("alice@example.com"), Some(&1));
}

#[test]
fn stays_small() {
    assert_eq!((size_of::<Jid>(), size_of::<BareJid>()), (24, 24));
}
