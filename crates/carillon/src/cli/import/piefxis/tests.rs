//! Files of the form, read to their records.

use super::*;
use serde_json::{Value, json};

/// The records with their lines, and how it ended: with what was passed over.
type Read = (Vec<(u64, Result<Value, String>)>, Result<Vec<(String, u64)>, String>);

/// Writes files and reads the first: what each record has, or what is wrong with it, with its line; and how it ended.
fn read(files: &[(&str, &str)]) -> Read {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let mut found = Vec::new();
    let plain = |error: BadXml| error.to_string().replace(&folder.path().display().to_string(), "FOLDER");
    let mut users = match Users::open(&folder.path().join(files[0].0)) {
        Ok(users) => users,
        Err(error) => return (found, Err(plain(error))),
    };
    loop {
        match users.next() {
            Ok(Some(row)) => {
                let record = row.record.map(|record| serde_json::from_str(&record).expect("JSON"));
                found.push((row.line, record));
            }
            Ok(None) => return (found, Ok(users.passed().clone().into_iter().collect())),
            Err(error) => return (found, Err(plain(error))),
        }
    }
}

const HEAD: &str =
    "<?xml version='1.0' encoding='UTF-8'?>\n<server-data xmlns='urn:xmpp:pie:0'>\n<host jid='x.example'>\n";
const TAIL: &str = "</host>\n</server-data>\n";

fn read_one(users: &str) -> Read {
    read(&[("main.xml", &format!("{HEAD}{users}{TAIL}"))])
}

#[test]
fn a_user_is_an_account_and_what_belongs_to_it() {
    let (found, ended) = read_one(
        "<user name='alice' password='s&amp;p'><!-- hers -->
  <query xmlns='jabber:iq:roster'><item jid='bob@x.example' name='Bob' subscription='both'><group>Friends</group></item>
    <item jid='eve@x.example' subscription='none' ask='subscribe' approved='true'/><item jid='gone@x.example' subscription='remove'/></query>
  <query xmlns='jabber:iq:private'><exodus xmlns='exodus:prefs'><nick>A &lt; B</nick></exodus></query>
  <vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>
  <offline-messages><message xmlns='jabber:client' from='bob@x.example/r' to='alice@x.example' type='chat'><body>hi</body><delay xmlns='urn:xmpp:delay' stamp='2026-01-02T03:04:05Z'/></message>
    <message xmlns='jabber:client' from='bob@x.example/r'><body>old</body><x xmlns='jabber:x:delay' stamp='20020910T23:08:25'/></message></offline-messages>
  <pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='urn:xmpp:bookmarks:1'><item id='r@rooms.x.example'><conference xmlns='urn:xmpp:bookmarks:1' name='R'/></item></items></pubsub>
  <pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='urn:xmpp:bookmarks:1'><x xmlns='jabber:x:data'><field var='pubsub#access_model'><value>whitelist</value></field></x></configure></pubsub>
  <query xmlns='jabber:iq:privacy'/>
</user>\n",
    );
    let part = |part: Value| (4, Ok(json!({ "jid": "alice@x.example", "part": part })));
    let contact = |jid: &str, name: &str, groups: Value, both: bool| json!({ "kind": "contact", "jid": jid, "name": name, "groups": groups, "to": both, "from": both, "asked": !both, "approved": !both });
    let message = |body: &str, rest: &str, from: &str| {
        format!(
            "<message xmlns='jabber:client' from='bob@x.example/r'{from}><body>{body}</body>{rest}</message>"
        )
    };
    assert_eq!(
        found,
        [
            (4, Ok(json!({ "jid": "alice@x.example", "password": "s&p" }))),
            part(json!({ "kind": "node", "name": "urn:xmpp:bookmarks:1", "access_model": "whitelist" })),
            part(contact("bob@x.example", "Bob", json!(["Friends"]), true)),
            part(contact("eve@x.example", "", json!([]), false)),
            part(
                json!({ "kind": "private", "xml": "<exodus xmlns='exodus:prefs'><nick>A &lt; B</nick></exodus>" })
            ),
            part(json!({ "kind": "vcard", "xml": "<vCard xmlns='vcard-temp'><FN>Alice</FN></vCard>" })),
            part(json!({
                "kind": "offline_message",
                "received_at": "2026-01-02T03:04:05Z",
                "xml": message("hi", "<delay xmlns='urn:xmpp:delay' stamp='2026-01-02T03:04:05Z'/>", " to='alice@x.example' type='chat'"),
            })),
            part(json!({
                "kind": "offline_message",
                "received_at": "2002-09-10T23:08:25Z",
                "xml": message("old", "<x xmlns='jabber:x:delay' stamp='20020910T23:08:25'/>", ""),
            })),
            part(json!({
                "kind": "item",
                "node": "urn:xmpp:bookmarks:1",
                "id": "r@rooms.x.example",
                "xml": "<conference xmlns='urn:xmpp:bookmarks:1' name='R'/>",
            })),
        ]
    );
    assert_eq!(ended, Ok(vec![("<query xmlns='jabber:iq:privacy'/>".to_owned(), 1)]));
}

#[test]
fn keys_are_read_in_the_forms_of_both_servers() {
    let credentials = |mechanism: &str| {
        format!(
            "<scram-credentials xmlns='urn:xmpp:pie:0#scram' mechanism='{mechanism}'><iter-count>4096</iter-count><salt>c2E=</salt>\
             <server-key>BB==</server-key><stored-key>AA==</stored-key></scram-credentials>"
        )
    };
    let (sha1, sha256, sha512) =
        (credentials("SCRAM-SHA-1"), credentials("SCRAM-SHA-256"), credentials("SCRAM-SHA-512"));
    // Base 64 of `AAECAw==`, `BAUGBw==` and `c2E=`.
    let twice = "QUFFQ0F3PT0=,QkFVR0J3PT0=,YzJFPQ==,4096";
    let (found, ended) = read_one(&format!(
        "<user name='a'>{sha1}{sha256}{sha512}</user>\n<user name='b' password='scram:AAECAw==,BAUGBw==,c2E=,4096'/>\n\
         <user name='c' password='scram:sha256,{twice}'/>\n<user name='d'>{sha512}</user>\n<user name='e'/>\n\
         <user name='f' password='scram:nothing'/>\n<user password='p'/>\n",
    ));
    let keys = |stored: &str, server: &str| json!({ "salt": "c2E=", "iterations": 4096, "stored_key": stored, "server_key": server });
    let none = || Err("it has neither a password nor keys for SCRAM-SHA-1 or SCRAM-SHA-256".to_owned());
    assert_eq!(
        found,
        [
            (
                4,
                Ok(
                    json!({ "jid": "a@x.example", "scram_sha1": keys("AA==", "BB=="), "scram_sha256": keys("AA==", "BB==") })
                )
            ),
            (5, Ok(json!({ "jid": "b@x.example", "scram_sha1": keys("AAECAw==", "BAUGBw==") }))),
            (6, Ok(json!({ "jid": "c@x.example", "scram_sha256": keys("AAECAw==", "BAUGBw==") }))),
            (7, none()),
            (8, none()),
            (9, Err("its password begins with `scram:` but has no keys".to_owned())),
            (10, Err("`user` has no attribute `name`".to_owned())),
        ]
    );
    assert_eq!(ended, Ok(Vec::new()));
}

#[test]
fn files_include_others_in_their_folder_or_below() {
    let include =
        |href: &str| format!("<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='{href}'/>");
    let main = format!(
        "<server-data xmlns='http://www.xmpp.org/extensions/xep-0227.html#ns'>\n{}</server-data>",
        include("hosts/x.xml")
    );
    let host = format!(
        "<host xmlns='urn:xmpp:pie:0' jid='x.example'>\n\n{}\n<user name='b' password='p'/></host>",
        include("a.xml")
    );
    let user = "<user xmlns='urn:xmpp:pie:0'\n name='a' password='p'/>";
    let account = |name: &str| Ok(json!({ "jid": format!("{name}@x.example"), "password": "p" }));
    let (found, ended) = read(&[("main.xml", &main), ("hosts/x.xml", &host), ("hosts/a.xml", user)]);
    assert_eq!((found, ended), (vec![(1, account("a")), (4, account("b"))], Ok(Vec::new())));
    for (href, says) in [
        ("../x.xml", "FOLDER/main.xml:2: `../x.xml` is not a file in the folder of this one or below it"),
        (
            "/etc/passwd",
            "FOLDER/main.xml:2: `/etc/passwd` is not a file in the folder of this one or below it",
        ),
        ("file:x.xml", "FOLDER/main.xml:2: `file:x.xml` is not a file in the folder of this one or below it"),
        ("none.xml", "FOLDER/main.xml:2: `none.xml`: No such file or directory (os error 2)"),
        ("main.xml", "FOLDER/main.xml:2: more than 8 files include one another"),
    ] {
        let main = format!("<server-data xmlns='urn:xmpp:pie:0'>\n{}</server-data>", include(href));
        assert_eq!(read(&[("main.xml", &main)]), (Vec::new(), Err(says.to_owned())));
    }
}

#[test]
fn what_is_wrong_is_told_by_its_line_and_what_came_before_is_read() {
    let first = "<user name='a' password='p'/>\n";
    let account = (4, Ok(json!({ "jid": "a@x.example", "password": "p" })));
    for (text, says) in [
        (format!("{HEAD}{first}<user name='b'>\n<query xmlns='urn:q'>\n</user>"), "FOLDER/main.xml:7: "),
        (
            format!("{HEAD}{first}<user name='b'>\n"),
            "FOLDER/main.xml:5: the file ends in the middle of this user: it is not whole",
        ),
        (format!("{HEAD}{first}"), "FOLDER/main.xml:5: the file ends in the middle: it is not whole"),
        (
            format!("{HEAD}{first}\n<user name='b'>&nbsp;</user>"),
            "FOLDER/main.xml:6: this user cannot be read: ",
        ),
    ] {
        let (found, ended) = read(&[("main.xml", &text)]);
        assert_eq!(found, std::slice::from_ref(&account), "{text}");
        let told = ended.expect_err("it is told");
        assert!(told.starts_with(says), "{told}");
    }
    for (text, says) in [
        ("<html/>", "FOLDER/main.xml:1: `html` in the namespace `` is not what XEP-0227 begins with"),
        (
            "<!DOCTYPE x>\n<server-data xmlns='urn:xmpp:pie:0'/>",
            "FOLDER/main.xml:1: a document type is not read",
        ),
        (
            "<server-data xmlns='urn:xmpp:pie:0'><host/></server-data>",
            "FOLDER/main.xml:1: `host` has no attribute `jid`",
        ),
        ("<!-- nothing -->", "FOLDER/main.xml:1: the file is empty"),
    ] {
        assert_eq!(read(&[("main.xml", text)]), (Vec::new(), Err(says.to_owned())));
    }
}

#[test]
fn what_is_passed_over_is_counted() {
    let (found, ended) = read(&[(
        "main.xml",
        "<server-data xmlns='urn:xmpp:pie:0'><x xmlns='urn:x'><y/></x><host jid='x.example'><x xmlns='urn:x'/><user name='a' password='p'/></host></server-data>",
    )]);
    assert_eq!(found.len(), 1);
    assert_eq!(ended, Ok(vec![("<x xmlns='urn:x'/>".to_owned(), 2)]));
}

#[test]
fn a_user_is_of_a_bounded_size() {
    let long = "x".repeat(33 << 20);
    let (found, ended) = read_one(&format!(
        "<user name='a' password='p'/>\n<user name='b'><x xmlns='urn:x'>{long}</x></user>\n"
    ));
    assert_eq!(found.len(), 1);
    let told = ended.expect_err("it is told");
    assert!(told.contains("a user, or what is between two, has more than 33554432 bytes"), "{told}");
}
