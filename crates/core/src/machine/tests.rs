//! A hook that waits: what comes behind its stanza waits, too, and goes on in order, whatever becomes of the answer.

use super::ShardMachine;
use crate::connection::{Frame, Io, Noted, Reader};
use crate::error::StanzaError;
use crate::model::*;
use crate::ports::Question;
use crate::ports::store::subscriptions::IsSubscribed;
use crate::ports::{Answer, Fault};
use crate::session::hook::{At, Feature, Flow, Hooks, IqAnswer, IqHandler, Taken};
use crate::session::pipeline::Pipeline;
use crate::session::{ANSWER_WAIT_MS, BoundSession, Session, Wait};
use crate::settings::Settings;
use crate::shard::{Deadline, Member, Wheel};
use crate::{Effect, Effects, Input};
use carillon_wire::Framing;
use carillon_wire::jid::{AccountJid, Jid};
use carillon_wire::stanza::{Condition, IqType, Payload};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Lets a message go on when the store says so, and an IQ request say what the store said.
const ASKS: Feature = Feature {
    name: "asks",
    hooks: Hooks {
        submit_message: Some(|_, stanza, _| match stanza.id.as_deref() {
            Some("free") => Ok(Flow::Pass),
            _ => Ok(Flow::Wait(Wait::ask(question(), |_, _, said, _| match said {
                Ok(true) => Ok(Flow::Pass),
                Ok(false) => Err(StanzaError::new(Condition::NotAllowed)),
                Err(_) => Ok(Flow::Wait(Wait::ask(question(), |_, _, _, _| Ok(Flow::Taken(Taken::Ignored))))),
            }))),
        }),
        iq: &[IqHandler {
            kind: IqType::Get,
            name: "may",
            ns: "urn:x",
            at: At::Server,
            handle: |_, _, _| {
                Ok(IqAnswer::Wait(Wait::ask(question(), |_, _, said, _| match said {
                    Ok(true) => Ok(IqAnswer::Empty),
                    _ => Err(StanzaError::new(Condition::NotAllowed)),
                })))
            },
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Marks what the hook before it let pass, and counts what was dealt with.
const MARKS: Feature = Feature {
    name: "marks",
    hooks: Hooks {
        submit_message: Some(|_, stanza, _| {
            stanza.id = stanza.id.as_deref().map(|id| format!("{id}-passed").into());
            Ok(Flow::Pass)
        }),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn question() -> IsSubscribed {
    IsSubscribed { domain: DomainId(1), local: "alice".into(), topic: TopicId(1) }
}

const CONN: ConnId = ConnId { slot: 0, generation: 0 };

/// A shard with one bound session, alice's, which takes messages.
struct Rig {
    shard: ShardMachine,
    now: Now,
    asked: Vec<Ticket>,
    reads: bool,
}

impl Rig {
    fn new() -> Rig {
        let domain = Domain::new(DomainId(1), "d", Policy::default());
        let settings = Arc::new(Settings::default());
        let mut shard = ShardMachine::new(
            Member::of_one_node(ShardId(0), 1),
            settings,
            Arc::new(Domains::new([domain])),
            [0; 32],
        );
        shard.pipeline = Pipeline::new(vec![&ASKS, &MARKS]);
        let mut rig = Rig {
            shard,
            now: Now { mono: Mono(1), unix: UnixMs(1_795_167_000_000) },
            asked: Vec::new(),
            reads: true,
        };
        let limits = &rig.shard.shard.settings.limits;
        let mut io = Io {
            conn: CONN,
            address: Ipv4Addr::LOCALHOST.into(),
            framing: Framing::Tcp,
            tls: Some(true),
            via: None,
            reader: Reader::new(limits),
            noted: Noted::Begun,
        };
        let header =
            b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='d'>";
        assert!(matches!(io.next_frame(header, limits, true), Ok((Some(Frame::Header(_)), _))));
        let jid = Jid::new("alice@d/a").expect("a JID");
        let alice = AccountJid::of(jid.bare()).expect("an account");
        let mut effects = Effects::default();
        let turn = rig.shard.turn(rig.now, &mut effects);
        let id = turn.sessions.begin();
        let mut session = BoundSession::new(id, io, alice, jid, DomainId(1), AccountId(1), &turn.cx);
        session.presence.set(Availability::Available, 0, &Payload::empty());
        (turn.cx.shard.counters.connections, turn.cx.shard.counters.sessions) = (1, 1);
        turn.cx.shard.counters.domains.of(DomainId(1)).sessions = 1;
        turn.sessions.bind(&session.bare, id.slot);
        turn.sessions.put(CONN, Session::Bound(Box::new(session)));
        rig
    }

    /// Gives an input; what the client is sent.
    fn give(&mut self, input: Input<'_>) -> Vec<String> {
        let mut effects = Effects::default();
        self.shard.handle(self.now, input, &mut effects);
        let mut sent = Vec::new();
        for effect in &effects.list {
            match effect {
                Effect::Send { range, .. } => {
                    sent.push(String::from_utf8(effects.bytes[range.clone()].to_vec()).expect("text"));
                }
                Effect::Ask { ticket, .. } => self.asked.push(*ticket),
                Effect::Pause { .. } => self.reads = false,
                Effect::Resume { .. } => self.reads = true,
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    /// The ids and types of what the client is sent when these stanzas come in one read.
    fn read(&mut self, stanzas: &str) -> Vec<String> {
        told(&self.give(Input::Bytes { conn: CONN, bytes: stanzas.as_bytes() }))
    }

    /// The same when the store answers its oldest question.
    fn answer(&mut self, said: Result<bool, Fault>) -> Vec<String> {
        let ticket = self.asked.remove(0);
        let answer = said.map_or_else(Answer::Failed, IsSubscribed::wrap);
        told(&self.give(Input::Answer { ticket, answer }))
    }

    /// The same when this time has passed.
    fn wait(&mut self, ms: u64) -> Vec<String> {
        self.now.mono = self.now.mono.plus(ms);
        told(&self.give(Input::Tick))
    }

    fn counted(&self) -> u64 {
        self.shard.counters().stanzas_in
    }
}

/// `id type` of each stanza.
fn told(sent: &[String]) -> Vec<String> {
    let attr = |text: &str, name: &str| {
        let value = text.split_once(&format!(" {name}='")).map(|(_, rest)| rest.split('\'').next());
        value.flatten().unwrap_or_default().to_owned()
    };
    sent.iter().map(|text| format!("{} {}", attr(text, "id"), attr(text, "type"))).collect()
}

fn message(id: &str) -> String {
    format!("<message xmlns='jabber:client' type='chat' to='alice@d' id='{id}'><body>x</body></message>")
}

/// Longer than an answer is waited for, whenever in a tick of the timers it began.
const TOO_LONG_MS: u64 = ANSWER_WAIT_MS + Wheel::<Deadline>::TURN_MS / 1024 + 1;

#[test]
fn what_comes_behind_waits_and_goes_on_in_order() {
    let mut rig = Rig::new();
    assert_eq!(rig.read(&message("free")), ["free-passed chat"]);
    assert_eq!(rig.read(&[message("1"), message("free"), message("2")].concat()), [""; 0]);
    assert_eq!((rig.asked.len(), rig.reads, rig.counted()), (1, false, 1), "one question, and no more input");
    // It goes on behind the hook that waited, and the next one that waits holds up what follows.
    assert_eq!(rig.answer(Ok(true)), ["1-passed chat", "free-passed chat"]);
    assert_eq!((rig.asked.len(), rig.counted()), (1, 3));
    assert_eq!(rig.answer(Ok(false)), ["2 error"]);
    assert!(rig.reads);
    assert_eq!(rig.counted(), 4, "refused is dealt with");
}

#[test]
fn an_answer_may_ask_again() {
    let mut rig = Rig::new();
    assert_eq!(rig.read(&[message("1"), message("free")].concat()), [""; 0]);
    assert_eq!(rig.answer(Err(Fault::Busy)), [""; 0]);
    assert_eq!((rig.asked.len(), rig.counted()), (1, 0));
    assert_eq!(rig.answer(Ok(true)), ["free-passed chat"], "the first was taken by the hook");
    assert_eq!(rig.counted(), 2);
}

#[test]
fn without_an_answer_in_time_the_client_is_told_and_goes_on() {
    let mut rig = Rig::new();
    rig.read(&message("1"));
    rig.wait(ANSWER_WAIT_MS / 2);
    assert_eq!(rig.answer(Ok(true)), ["1-passed chat"]);
    // The timer of the first does not end the wait of the second.
    rig.read(&[message("2"), message("free")].concat());
    assert_eq!(rig.wait(TOO_LONG_MS / 2 + 200), [""; 0]);
    assert_eq!(rig.wait(TOO_LONG_MS / 2 + 200), ["2 error", "free-passed chat"]);
    assert_eq!(rig.answer(Ok(true)), [""; 0], "too late");
    assert!(rig.reads);
    assert_eq!(rig.counted(), 3);
}

#[test]
fn an_iq_request_waits_as_well() {
    let mut rig = Rig::new();
    let may = |id| format!("<iq xmlns='jabber:client' type='get' to='d' id='{id}'><may xmlns='urn:x'/></iq>");
    assert_eq!(rig.read(&[may("1"), may("2"), message("free")].concat()), [""; 0]);
    assert_eq!(rig.answer(Ok(true)), ["1 result"]);
    assert_eq!(rig.answer(Err(Fault::Broken)), ["2 error", "free-passed chat"]);
}

#[test]
fn nothing_is_decided_for_a_session_that_is_gone() {
    let mut rig = Rig::new();
    rig.read(&message("1"));
    assert_eq!(rig.give(Input::Closed { conn: CONN, unacked: 0 }), [""; 0]);
    assert_eq!(rig.answer(Ok(true)), [""; 0]);
    assert_eq!(rig.counted(), 0, "what nobody decided on is not acknowledged");
}

#[test]
fn a_client_that_was_too_fast_is_read_when_both_are_over() {
    let mut rig = Rig::new();
    let mut settings = Settings::default();
    settings.limits.rates.stanzas_per_second = 1;
    settings.limits.rates.stanzas_burst = 1;
    rig.shard.reload(Arc::new(settings));
    rig.read(&[message("free"), message("1"), message("free")].concat());
    while rig.asked.is_empty() {
        rig.wait(1000);
    }
    rig.wait(10_000);
    assert!(!rig.reads, "it waits for its answer");
    rig.answer(Ok(true));
    assert!(rig.reads);
}
