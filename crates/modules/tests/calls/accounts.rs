//! What modules are told of accounts: messages that have come, logins, sessions and pushes.

use crate::guests::*;
use carillon_core::model::{
    AcknowledgedBy, ArchiveId, Audience, DomainId, Event, NotificationId, NotificationState, Priority,
    RoomAction, RoomAffiliation, RoomFact, RoomMemberFact, RoomMessageFact, Trace, Transport, UnixMs,
};
use carillon_core::ports::modules::*;
use carillon_core::sasl;
use carillon_wire::Framing;
use carillon_wire::jid::{BareJid, Jid};

/// The hooks that are about more than what an account sends.
const HOOKS: [ModuleHook; 6] = [
    ModuleHook::Arrived,
    ModuleHook::Authorise,
    ModuleHook::PushRender,
    ModuleHook::Opened,
    ModuleHook::Closed,
    ModuleHook::Event,
];

/// A module with this function for a hook.
fn of(hook: ModuleHook, body: &str) -> Box<dyn Instance> {
    let text =
        guest(body).replace("submit_message", hook.name()).replace("policy-violation", "account-disabled");
    let module = compiled(&text);
    assert_eq!(module.hooks(), HookSet::default().with(hook));
    module.instance(&"".into()).expect("an instance")
}

fn client() -> ClientSubject {
    ClientSubject {
        jid: "bob@localhost".into(),
        address: Some("192.0.2.7".parse().expect("an address")),
        transport: Some(Transport { framing: Framing::WebSocket, tls: Some(true) }),
        mechanism: Some("PLAIN".into()),
        agent: Some(Box::new(Agent { id: Some("a1".into()), software: Some("Chat".into()), device: None })),
        reason: Some("lost"),
    }
}

fn push() -> PushText {
    PushText {
        kind: "message".into(),
        account: "bob@localhost".into(),
        channel: "apns".into(),
        from: Some("alice@localhost".into()),
        title: Some("From alice".into()),
        body: Some("hello".into()),
        data: None,
    }
}

fn ended() -> Event {
    Event::Notification(Trace {
        id: NotificationId(7),
        to: BareJid::new("bob@localhost").expect("an address"),
        audience: Audience::Always,
        priority: Priority::High,
        state: NotificationState::Acknowledged,
        accepted: UnixMs(1),
        expires: None,
        collapse_key: Some("k".into()),
        key: None,
        send_at: None,
        stored: Some(UnixMs(1)),
        sent: Some(UnixMs(2)),
        ended: Some(UnixMs(3)),
        acknowledged_by: Some(AcknowledgedBy::Receipt),
        reason: None,
        opened: None,
    })
}

fn fact(action: RoomAction) -> Event {
    let jid = |text| BareJid::new(text).expect("an address");
    let (room, by) = (jid("tea@rooms.localhost"), Some(jid("alice@localhost")));
    Event::Room(Box::new(RoomFact { domain: DomainId(1), room, at: UnixMs(3), by, action }), None)
}

fn subject(hook: ModuleHook) -> Subject {
    match hook {
        ModuleHook::Arrived => Subject::Message(message("hello")),
        ModuleHook::PushRender => Subject::Push(Box::new(push())),
        ModuleHook::Event => Subject::Event(Box::new(ended())),
        _ => Subject::Client(Box::new(client())),
    }
}

fn ask(instance: &mut dyn Instance, hook: ModuleHook) -> Done {
    instance.call(Call { hook, subject: subject(hook), now: UnixMs(7), seed: 1, fuel: CALL_FUEL })
}

fn said(hook: ModuleHook, body: &str) -> Result<Verdict, Failure> {
    ask(&mut *of(hook, body), hook).result.map_err(|failed| failed.failure)
}

/// The fields from this number on, as a module logs them, and `-` for one that is not there.
fn read(hook: ModuleHook, numbers: impl IntoIterator<Item = i32>) -> Vec<String> {
    read_of(hook, &subject(hook), numbers)
}

/// The same of what this is about.
fn read_of(hook: ModuleHook, about: &Subject, numbers: impl IntoIterator<Item = i32>) -> Vec<String> {
    let one = |number: i32| {
        let body = format!(
            "(local $n i32) (local.set $n (call $field (i32.const {number}) (i32.const 1024) (i32.const 200)))
             (if (i32.ge_s (local.get $n) (i32.const 0)) (then (call $log (i32.const 1024) (local.get $n))))
             (i32.const 0)"
        );
        let call = Call { hook, subject: about.clone(), now: UnixMs(7), seed: 1, fuel: CALL_FUEL };
        let done = of(hook, &body).call(call);
        assert_eq!(done.subject, *about);
        done.notes.lines.first().map_or("-".to_owned(), ToString::to_string)
    };
    numbers.into_iter().map(one).collect()
}

#[test]
fn a_module_reads_who_logs_in_and_from_where() {
    let fields = read(ModuleHook::Authorise, [0, 1, 2].into_iter().chain(13..=22));
    assert_eq!(
        fields,
        [
            "-",
            "bob@localhost",
            "-",
            "192.0.2.7",
            "websocket",
            "yes",
            "PLAIN",
            "Chat",
            "-",
            "a1",
            "lost",
            "-",
            "-"
        ]
    );
    let unknown = ClientSubject {
        address: None,
        transport: Some(Transport { framing: Framing::Tcp, tls: None }),
        mechanism: None,
        agent: None,
        reason: None,
        ..client()
    };
    let body = "(i32.add (call $field (i32.const 13) (i32.const 0) (i32.const 0))
        (i32.add (call $field (i32.const 15) (i32.const 0) (i32.const 0))
        (call $field (i32.const 17) (i32.const 0) (i32.const 0)))) (i32.const 3) (i32.add)";
    let subject = Subject::Client(Box::new(unknown));
    let call = Call { hook: ModuleHook::Closed, subject, now: UnixMs(7), seed: 1, fuel: CALL_FUEL };
    assert_eq!(of(ModuleHook::Closed, body).call(call).result, Ok(Verdict::Noted), "none of them is there");
}

#[test]
fn a_module_allows_a_login_or_says_why_not() {
    let said = |body: &str| said(ModuleHook::Authorise, body);
    assert_eq!(said(PASS), Ok(Verdict::Pass));
    let refusal = |failure, ends_stream, text: Option<&str>| {
        Ok(Verdict::Refuse(LoginRefusal { failure, ends_stream, text: text.map(Into::into) }))
    };
    assert_eq!(said("(i32.const 2)"), refusal(sasl::Failure::NotAuthorized, false, None));
    let disabled = "(call $output (i32.const 1) (i32.const 0) (i32.const 16))
        (call $output (i32.const 0) (i32.const 32) (i32.const 13)) (i32.const 2)";
    assert_eq!(said(disabled), refusal(sasl::Failure::AccountDisabled, false, Some("no links here")));
    for number in [1, 3, 77, -1] {
        assert_eq!(said(&format!("(i32.const {number})")), Err(Failure::Verdict), "{number}");
    }
    // A condition of stanzas is none of logins, and bytes are no text.
    let word = "(call $output (i32.const 1) (i32.const 32) (i32.const 8)) (i32.const 2)";
    assert_eq!(said(word), Err(Failure::Verdict));
    let bytes = "(call $output (i32.const 0) (i32.const 96) (i32.const 2)) (i32.const 2)";
    assert_eq!(said(bytes), Err(Failure::Verdict));
    let all = ["not-authorized", "account-disabled", "credentials-expired", "temporary-auth-failure"];
    for word in all {
        let named = LoginRefusal::named(word, None).expect("a condition of logins");
        assert_eq!((named.failure.as_str(), named.ends_stream), (word, false));
    }
    assert_eq!(LoginRefusal::named("policy-violation", None).map(|named| named.ends_stream), Some(true));
    assert_eq!(LoginRefusal::named("aborted", None), None);
}

#[test]
fn what_observes_decides_nothing() {
    for hook in [ModuleHook::Opened, ModuleHook::Closed, ModuleHook::Event] {
        let counts = "(call $count (i32.const 3) (i32.const 5)) (i32.const 0)";
        let done = ask(&mut *of(hook, counts), hook);
        assert_eq!((done.result, done.notes.counts[3]), (Ok(Verdict::Noted), 5));
        for number in [1, 2, 3] {
            assert_eq!(said(hook, &format!("(i32.const {number})")), Err(Failure::Verdict));
        }
    }
}

#[test]
fn a_module_reads_and_replaces_what_a_push_shows() {
    let fields = read(ModuleHook::PushRender, [0, 1, 2, 3, 4, 5, 21, 22]);
    let hello = ["message", "alice@localhost", "bob@localhost", "-", "-", "hello", "From alice", "apns"];
    assert_eq!(fields, hello);
    let output = |kind: i32, at: i32, size: i32| {
        format!("(call $output (i32.const {kind}) (i32.const {at}) (i32.const {size}))")
    };
    let all = format!("{} {} {} (i32.const 3)", output(8, 32, 8), output(2, 64, 9), output(3, 0, 7));
    let text = |text: &str| Some(Box::<str>::from(text));
    let replaced = |title, body, data| Ok(Verdict::Replace(Replacement::Push { title, body, data }));
    assert_eq!(
        said(ModuleHook::PushRender, &all),
        replaced(text("no links"), text("a < b & c"), text("account"))
    );
    let title = format!("{} (i32.const 3)", output(8, 32, 8));
    assert_eq!(said(ModuleHook::PushRender, &title), replaced(text("no links"), None, None));
    assert_eq!(said(ModuleHook::PushRender, "(i32.const 1)"), Ok(Verdict::Drop));
    assert_eq!(said(ModuleHook::PushRender, "(i32.const 3)"), Err(Failure::Verdict), "it wrote nothing");
    let bytes = format!("{} (i32.const 3)", output(8, 96, 2));
    assert_eq!(said(ModuleHook::PushRender, &bytes), Err(Failure::Verdict));
    // A message has no title.
    assert_eq!(said(ModuleHook::Arrived, &title), Err(Failure::Verdict));
}

#[test]
fn a_module_reads_what_an_event_tells() {
    let id = NotificationId(7).to_string();
    let numbers = [0, 1, 2, 3, 4, 6, 7, 8, 20, 23, 24];
    let told = [
        "notification",
        "-",
        "bob@localhost",
        &id,
        "-",
        "always",
        "high",
        "k",
        "-",
        "acknowledged",
        "receipt",
    ];
    assert_eq!(read(ModuleHook::Event, numbers), told);
    let of_room =
        |action| read_of(ModuleHook::Event, &Subject::Event(Box::new(fact(action))), [0, 1, 2, 3, 5, 25, 26]);
    let room = ["alice@localhost", "tea@rooms.localhost"];
    let account = BareJid::new("bob@localhost").expect("an address");
    let change = RoomMemberFact { account, was: RoomAffiliation::None, is: RoomAffiliation::Member };
    let members = ["room_members", room[0], room[1], "-", "-", "bob@localhost none member", "-"];
    assert_eq!(of_room(RoomAction::Members(vec![change])), members);
    let from = Some(Jid::new("tea@rooms.localhost/Ali").expect("an address"));
    let said = RoomMessageFact { id: ArchiveId(9), from, stanza_id: Some("m1".into()) };
    let message = ["room_message", room[0], room[1], "9", "-", "-", "tea@rooms.localhost/Ali"];
    assert_eq!(of_room(RoomAction::Message(said)), message);
    // What people wrote is not told.
    let subject = ["room_subject", room[0], room[1], "-", "-", "-", "-"];
    assert_eq!(of_room(RoomAction::Subject(Some("a secret".into()))), subject);
}

#[test]
fn a_message_that_has_come_is_decided_as_one_that_is_sent() {
    assert_eq!(said(ModuleHook::Arrived, "(i32.const 1)"), Ok(Verdict::Drop));
    let replaces = "(call $output (i32.const 2) (i32.const 64) (i32.const 9)) (i32.const 3)";
    let body = Replacement::Body("a < b & c".into());
    assert_eq!(said(ModuleHook::Arrived, replaces), Ok(Verdict::Replace(body)));
    assert_eq!(read(ModuleHook::Arrived, [1, 2, 5]), ["alice@localhost/phone", "bob@localhost", "hello"]);
}

#[test]
fn one_that_does_harm_ends_within_its_fuel_at_every_hook() {
    let harms = [
        ("(loop $l (br $l)) (unreachable)", Failure::Fuel),
        (
            "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)",
            Failure::Memory,
        ),
        ("(i32.add (call $submit) (i32.const 1))", Failure::Stack),
        ("(unreachable)", Failure::Trap),
        ("(loop $l (call $log (i32.const 0) (i32.const 60000)) (br $l)) (unreachable)", Failure::Fuel),
        (
            "(loop $l (drop (call $field (i32.const 1) (i32.const 0) (i32.const 60000))) (br $l)) (unreachable)",
            Failure::Fuel,
        ),
        (
            "(call $output (i32.const 8) (i32.const 0) (i32.const 40000))
             (call $output (i32.const 2) (i32.const 0) (i32.const 40000)) (i32.const 3)",
            Failure::Output,
        ),
        ("(i32.const 77)", Failure::Verdict),
    ];
    for hook in HOOKS {
        for (body, failure) in harms {
            let mut instance = of(hook, body);
            let done = ask(&mut *instance, hook);
            assert_eq!(done.result.expect_err("it fails").failure, failure, "{}: {body}", hook.name());
            assert!(done.fuel <= CALL_FUEL, "{}: {} of {CALL_FUEL}", hook.name(), done.fuel);
            assert_eq!(done.subject, subject(hook), "it comes back unchanged");
            assert!(instance.renew(START_FUEL).expect("it starts again") <= START_FUEL);
        }
    }
}
