//! What an instance has beside its memory: the call that is under way.

use crate::bounds::Bounds;
use crate::event::of_event;
use bytes::Bytes;
use carillon_core::model::{Audience, Notification, Payload, Priority, UnixMs};
use carillon_core::ports::modules::{
    Agent, ClientSubject, Failed, Failure, HookSet, LoginRefusal, MatchSubject, MatchVerdict, ModuleHook,
    Notes, PushText, Rejection, Replacement, Subject, Verdict,
};
use carillon_wire::frame::game::{SEATS_MAX, SNAPSHOT_BYTES_MAX, UPDATE_BYTES_MAX};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use std::borrow::Cow;
use std::sync::Arc;
use wasmtime::{Memory, ResourceLimiter};

/// The data of a store.
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) bounds: Bounds,
    pub(crate) config: Arc<str>,
    /// Known once the instance was made.
    pub(crate) memory: Option<Memory>,
    pub(crate) subject: Option<Subject>,
    pub(crate) now: UnixMs,
    pub(crate) seed: u64,
    pub(crate) notes: Notes,
    pub(crate) output: Output,
    /// The module was refused memory.
    pub(crate) memory_refused: bool,
    /// The module wrote more than it may.
    pub(crate) output_refused: bool,
}

/// What a module wrote with its verdict.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) text: Option<Vec<u8>>,
    pub(crate) condition: Option<Vec<u8>>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) update: Option<Vec<u8>>,
    /// By seat.
    pub(crate) own: Vec<(u8, Vec<u8>)>,
    pub(crate) state: Option<Vec<u8>>,
    pub(crate) outcome: Option<Vec<u8>>,
    pub(crate) title: Option<Vec<u8>>,
}

impl Output {
    pub(crate) fn bytes(&self) -> usize {
        let Output { text, condition, body, payload, update, own, state, outcome, title } = self;
        let parts = [text, condition, body, payload, update, state, outcome, title].into_iter().flatten();
        parts.map(Vec::len).sum::<usize>() + own.iter().map(|(_, own)| 1 + own.len()).sum::<usize>()
    }

    /// Writes a part, in place of what was written of it before.
    ///
    /// # Errors
    /// A sentence that says why it cannot be one.
    pub(crate) fn put(&mut self, kind: i32, bytes: &[u8]) -> Result<(), &'static str> {
        let (part, most) = match kind {
            0 => (&mut self.text, usize::MAX),
            1 => (&mut self.condition, usize::MAX),
            2 => (&mut self.body, usize::MAX),
            3 => (&mut self.payload, usize::MAX),
            4 => (&mut self.update, UPDATE_BYTES_MAX),
            5 => return self.put_own(bytes),
            6 => (&mut self.state, SNAPSHOT_BYTES_MAX),
            7 => (&mut self.outcome, OUTCOME_BYTES_MAX),
            8 => (&mut self.title, usize::MAX),
            _ => return Err("there is no such kind of output"),
        };
        if bytes.len() > most {
            return Err("an update has 4096 bytes at most, a state 61,440, an outcome 512");
        }
        *part = Some(bytes.to_vec());
        Ok(())
    }

    fn put_own(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let (seat, update) = bytes.split_first().ok_or("an update of a seat begins with the seat")?;
        if usize::from(*seat) >= SEATS_MAX || update.len() > UPDATE_BYTES_MAX {
            return Err("there is no such seat, or its update has more than 4096 bytes");
        }
        self.own.retain(|(other, _)| other != seat);
        self.own.push((*seat, update.to_vec()));
        Ok(())
    }

    /// The verdict with this number of a hook, and what belongs to it.
    pub(crate) fn verdict(self, hook: ModuleHook, number: i32) -> Result<Verdict, Failed> {
        match hook {
            ModuleHook::MatchTick | ModuleHook::MatchSave | ModuleHook::MatchLoad => {
                self.of_match(hook, number)
            }
            ModuleHook::Authorise => self.of_login(number),
            _ if HookSet::OBSERVERS.has(hook) => match number {
                0 => Ok(Verdict::Noted),
                _ => Err(wrong("what observes returns 0: it decides nothing")),
            },
            _ => self.of_filter(hook, number),
        }
    }

    fn of_match(self, hook: ModuleHook, number: i32) -> Result<Verdict, Failed> {
        match (hook, number) {
            (ModuleHook::MatchTick, 0 | 1) | (ModuleHook::MatchLoad, 0) => {}
            (ModuleHook::MatchSave, 0) if self.state.is_some() => {}
            (ModuleHook::MatchSave, 0) => return Err(wrong("it wrote no state")),
            (ModuleHook::MatchLoad, _) => return Err(wrong("it does not take the state")),
            _ => return Err(wrong("it returned a number that means nothing")),
        }
        let Output { update, own, state, outcome, .. } = self;
        Ok(Verdict::Match(Box::new(MatchVerdict {
            is_over: number == 1,
            update: update.unwrap_or_default(),
            own,
            state: state.unwrap_or_default(),
            outcome: outcome.unwrap_or_default(),
        })))
    }

    fn of_login(self, number: i32) -> Result<Verdict, Failed> {
        match number {
            0 => Ok(Verdict::Pass),
            2 => {
                let condition = self.condition.map_or(Ok("not-authorized".into()), utf8)?;
                let refusal = LoginRefusal::named(&condition, self.text.map(utf8).transpose()?);
                let refusal = refusal.ok_or_else(|| wrong("its condition is none for a login"))?;
                Ok(Verdict::Refuse(refusal))
            }
            _ => Err(wrong("a login is allowed (0) or rejected (2)")),
        }
    }

    fn of_filter(self, hook: ModuleHook, number: i32) -> Result<Verdict, Failed> {
        match number {
            0 => Ok(Verdict::Pass),
            1 => Ok(Verdict::Drop),
            2 => {
                let condition = match self.condition {
                    None => Condition::NotAcceptable,
                    Some(name) => Condition::from_word(&utf8(name)?)
                        .ok_or_else(|| wrong("its error condition is none of RFC 6120"))?,
                };
                let text = self.text.map(utf8).transpose()?;
                Ok(Verdict::Reject(Rejection { condition, text }))
            }
            3 => self.replacement(hook).map(Verdict::Replace),
            _ => Err(wrong("it returned a number that is no verdict")),
        }
    }

    fn replacement(self, hook: ModuleHook) -> Result<Replacement, Failed> {
        match (hook, self.title, self.body, self.payload) {
            (ModuleHook::PushRender, None, None, None) => {
                Err(wrong("it replaces, and wrote neither a title nor a body nor a payload"))
            }
            (ModuleHook::PushRender, title, body, data) => Ok(Replacement::Push {
                title: title.map(utf8).transpose()?,
                body: body.map(utf8).transpose()?,
                data: data.map(utf8).transpose()?,
            }),
            (_, _, Some(body), None) => Ok(Replacement::Body(utf8(body)?)),
            (_, _, None, Some(payload)) => Ok(Replacement::Payload(Bytes::from(payload))),
            _ => Err(wrong("it replaces, and wrote neither a body nor a payload, or both")),
        }
    }
}

fn wrong(detail: &str) -> Failed {
    Failed { failure: Failure::Verdict, detail: detail.into() }
}

fn utf8(bytes: Vec<u8>) -> Result<Box<str>, Failed> {
    String::from_utf8(bytes).map(String::into_boxed_str).map_err(|_| wrong("its output is not UTF-8"))
}

/// Bytes of the longest outcome of a match.
const OUTCOME_BYTES_MAX: usize = 512;

impl HostState {
    pub(crate) fn new(bounds: Bounds, config: Arc<str>) -> HostState {
        HostState {
            bounds,
            config,
            memory: None,
            subject: None,
            now: UnixMs(0),
            seed: 0,
            notes: Notes::default(),
            output: Output::default(),
            memory_refused: false,
            output_refused: false,
        }
    }

    /// A line for the operator, as far as there may be one more.
    pub(crate) fn log(&mut self, line: &[u8]) {
        if self.notes.lines.len() < self.bounds.lines {
            let line = &line[..line.len().min(self.bounds.line_bytes)];
            self.notes.lines.push(String::from_utf8_lossy(line).trim_end().into());
        }
    }

    /// The next random number: splitmix64.
    pub(crate) fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// A field of what is decided about, by its number in the ABI; none where it has none. While an instance starts there is its configuration.
pub(crate) fn field<'a>(subject: Option<&'a Subject>, config: &'a str, number: i32) -> Option<Cow<'a, [u8]>> {
    if number == 9 {
        return text(config);
    }
    match subject? {
        Subject::Message(message) => of_message(message, number),
        Subject::Notification(notification) => of_notification(notification, number),
        Subject::Match(subject) => of_match(subject, number),
        Subject::Client(client) => of_client(client, number),
        Subject::Push(push) => of_push(push, number),
        Subject::Event(event) => of_event(event, number),
    }
}

fn text(text: &str) -> Option<Cow<'_, [u8]>> {
    Some(Cow::Borrowed(text.as_bytes()))
}

fn of_message(message: &Stanza, number: i32) -> Option<Cow<'_, [u8]>> {
    match number {
        0 => text(message.kind.type_word().unwrap_or("normal")),
        1 => text(message.from.as_ref().map(Jid::as_str)?),
        2 => text(message.to.as_ref().map(Jid::as_str)?),
        3 => text(message.id.as_deref()?),
        4 => Some(Cow::Borrowed(message.payload.bytes())),
        5 => {
            let body = message.payload.find("body", ns::CLIENT)?;
            Some(Cow::Owned(body.element().text().into_bytes()))
        }
        _ => None,
    }
}

fn of_notification(notification: &Notification, number: i32) -> Option<Cow<'_, [u8]>> {
    match number {
        0 => text(match notification.payload {
            Payload::Json(_) => "json",
            Payload::Xml(_) | Payload::Request(_) => "xml",
        }),
        2 => text(notification.to.as_str()),
        3 => Some(Cow::Owned(notification.id.to_string().into_bytes())),
        4 => Some(Cow::Borrowed(match &notification.payload {
            Payload::Json(json) => json.as_bytes(),
            Payload::Xml(xml) => xml,
            Payload::Request(request) => &request.element,
        })),
        6 => text(match notification.audience {
            Audience::Active => "active",
            Audience::Connected => "connected",
            Audience::Always => "always",
        }),
        7 => text(match notification.priority {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }),
        8 => text(notification.collapse_key.as_deref()?),
        _ => None,
    }
}

fn of_match(subject: &MatchSubject, number: i32) -> Option<Cow<'_, [u8]>> {
    match number {
        10 => Some(Cow::Borrowed(&subject.inputs)),
        11 => Some(Cow::Borrowed(&subject.state)),
        12 => {
            let mut about = subject.tick.to_le_bytes().to_vec();
            about.extend_from_slice(&[subject.seats, subject.tick_rate, 0, 0]);
            about.extend_from_slice(&subject.seed.to_le_bytes());
            Some(Cow::Owned(about))
        }
        _ => None,
    }
}

fn of_client(client: &ClientSubject, number: i32) -> Option<Cow<'_, [u8]>> {
    let ClientSubject { jid, address, transport, mechanism, agent, reason } = client;
    let says = |part: fn(&Agent) -> Option<&str>| text(agent.as_deref().and_then(part)?);
    match number {
        1 => text(jid),
        13 => Some(Cow::Owned((*address)?.to_string().into_bytes())),
        14 => text((*transport)?.word()),
        15 => text(if (*transport)?.tls? { "yes" } else { "no" }),
        16 => text(mechanism.as_deref()?),
        17 => says(|agent| agent.software.as_deref()),
        18 => says(|agent| agent.device.as_deref()),
        19 => says(|agent| agent.id.as_deref()),
        20 => text((*reason)?),
        _ => None,
    }
}

fn of_push(push: &PushText, number: i32) -> Option<Cow<'_, [u8]>> {
    let PushText { kind, account, channel, from, title, body, data } = push;
    match number {
        0 => text(kind),
        1 => text(from.as_deref()?),
        2 => text(account),
        4 => text(data.as_deref()?),
        5 => text(body.as_deref()?),
        21 => text(title.as_deref()?),
        22 => text(channel),
        _ => None,
    }
}

impl ResourceLimiter for HostState {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let may = desired <= self.bounds.memory_bytes;
        self.memory_refused |= !may;
        Ok(may)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let may = desired <= self.bounds.table_entries;
        self.memory_refused |= !may;
        Ok(may)
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        4
    }
}
