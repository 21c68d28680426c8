//! What is written of sessions while the shard runs, so that another node goes on with them if this one dies (ADR 54). The whole session is
//! written, as it is handed to another process; a session that did not change is not written.
//!
//! | what happened | when it is written |
//! |---|---|
//! | the client is sent something, and something counts that it has not been told before | before the bytes leave |
//! | it ends | at once, and nobody waits for it |
//! | all else: an acknowledgement of the client's, a stanza of which it was told nothing; anything of a parked session | within a second |
//!
//! A message that is acknowledged stays in what is written of its recipient for a moment, with the name of who waits for it: its sender's session
//! may be written later than the recipient's, and its client repeats what that does not count.

use super::ShardMachine;
use super::group::Part;
use crate::form::{Clock, Form, Writer, decode, encode};
use crate::model::{ConnId, Map, Mono, Now, SessionId, Set, Settlement};
use crate::ports::{LogEntry, LogHead};
use crate::session::{BoundSession, Moved, Progress};
use std::hash::BuildHasher;

/// What is to be written, and whom it holds up.
#[derive(Debug, Default)]
pub struct LogTurn {
    /// The sessions.
    pub entries: Vec<LogEntry>,
    /// Connections to which nothing may be sent before that is written.
    pub conns: Vec<ConnId>,
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Log {
    written: Map<SessionId, Written>,
    /// Sessions that are written later.
    later: Set<SessionId>,
    due: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    progress: Progress,
    hash: u64,
}

/// How late something is written that nobody waits for.
const LATER_MS: u64 = 1_000;

impl Log {
    pub(super) fn due(&self) -> Option<Mono> {
        self.due
    }

    fn write_later(&mut self, id: SessionId, now: Mono) {
        self.later.insert(id);
        self.due.get_or_insert(now.plus(LATER_MS));
    }
}

impl ShardMachine {
    /// From now on sessions are written down, each that is there to begin with; or no longer, as there is nobody to keep them.
    pub fn keep_log(&mut self, keeps: bool) {
        self.shard.adoption.is_on = true;
        self.shard.counters.session_log_away = u64::from(!keeps);
        self.sessions.note_changes(keeps);
        self.log = keeps.then(Box::default);
        if let Some(log) = &mut self.log {
            log.later = self.sessions.all_bound().map(|session| session.id).collect();
            log.due = Some(Mono(0));
        }
    }

    /// What is to be written now. `sent_to`: the connections that were sent something since this was asked last, sorted.
    pub fn log(&mut self, now: Now, sent_to: &[ConnId], turn: &mut LogTurn) {
        let Some(mut log) = self.log.take() else { return };
        let changed = self.sessions.take_changed();
        for id in &changed {
            if self.must_be_written(&log, *id, sent_to) {
                log.later.remove(id);
                let conn = self.write_to_log(&mut log, *id, now, turn);
                turn.conns.extend(conn);
            } else if self.sessions.peek_session(*id).is_some() {
                log.write_later(*id, now.mono);
            } else {
                // What it had goes other ways from now on, and is not to come back with it.
                log.later.remove(id);
                self.write_to_log(&mut log, *id, now, turn);
            }
        }
        self.sessions.reuse_changed(changed);
        if log.due.is_some_and(|due| due <= now.mono) {
            log.due = None;
            for id in std::mem::take(&mut log.later) {
                self.write_to_log(&mut log, id, now, turn);
            }
        }
        self.log = Some(log);
    }

    /// Whether the client is told something by what it is sent now that the log does not know.
    fn must_be_written(&self, log: &Log, id: SessionId, sent_to: &[ConnId]) -> bool {
        let Some(session) = self.sessions.peek_session(id) else { return false };
        let is_sent = session
            .conn()
            .is_some_and(|conn| sent_to.binary_search_by_key(&key(conn), |conn| key(*conn)).is_ok());
        is_sent
            && self.progress(session).is_some_and(|progress| {
                log.written.get(&id).is_none_or(|written| written.progress != progress)
            })
    }

    /// How far a session has come that can be resumed.
    fn progress(&self, session: &BoundSession) -> Option<Progress> {
        let handler = self.pipeline.resumption.filter(|_| session.resumption.is_some())?;
        if session.is_leaving() { None } else { (handler.progress)(session) }
    }

    /// Writes a session, or that it is gone, unless the log has it so. Returns its connection.
    fn write_to_log(&mut self, log: &mut Log, id: SessionId, now: Now, turn: &mut LogTurn) -> Option<ConnId> {
        let progress = self.sessions.peek_session(id).and_then(|session| self.progress(session));
        let Some(progress) = progress else {
            if log.written.remove(&id).is_some() {
                turn.entries.push(LogEntry { session: id, bytes: None });
            }
            return None;
        };
        let (bytes, form, conn) = self.log_bytes(id, now)?;
        let written = Written { progress, hash: log.written.hasher().hash_one(bytes.get(form..)) };
        if log.written.insert(id, written) != Some(written) {
            turn.entries.push(LogEntry { session: id, bytes: Some(bytes) });
        }
        conn
    }

    /// A session as it is written, where its form begins, and its connection. Instants are those of this node's clock, so that a session that stays as it is has the same
    /// bytes.
    fn log_bytes(&mut self, id: SessionId, now: Now) -> Option<(Vec<u8>, usize, Option<ConnId>)> {
        let mut session = self.sessions.take_to_look(id)?;
        let (conn, heard) = (session.conn(), std::mem::take(&mut session.heard));
        let recent = self.pipeline.resumption.map(|handler| (handler.recent)(&mut session, now.mono));
        let recent = recent.unwrap_or_default();
        let known = self.homes.known(session.bare.as_str(), id);
        let moved = Moved { session, timers: Vec::new(), last_items: Vec::new(), known };
        let (part, mut out) = (Part::Session(moved), Writer::new(0));
        part.write(&mut out);
        let mut bytes = Vec::new();
        LogHead { mono_ms: now.mono.0, unix: now.unix }.write(&mut bytes);
        write_recent(&recent, &mut bytes);
        let form = bytes.len();
        bytes.extend_from_slice(&out.finish());
        if let Part::Session(Moved { mut session, .. }) = part {
            session.heard = heard;
            self.sessions.put_back(session);
        }
        Some((bytes, form, conn))
    }
}

/// Who waited for messages that the client acknowledged a moment ago stands between the head and the form.
fn write_recent(recent: &[Settlement], bytes: &mut Vec<u8>) {
    let recent = if recent.is_empty() { Vec::new() } else { encode(&recent.to_vec(), 0) };
    bytes.extend_from_slice(&(recent.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&recent);
}

/// These, and the form behind them.
pub(super) fn split_recent(bytes: &[u8]) -> Option<(Vec<Settlement>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (recent, form) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let recent = if recent.is_empty() { Vec::new() } else { decode(recent, Clock::default()).ok()? };
    Some((recent, form))
}

/// By which connections are sorted.
pub(super) fn key(conn: ConnId) -> (u32, u32) {
    (conn.slot, conn.generation)
}
