//! The nodes of a cell: read and buried over a connection of their own, so that they wait for nothing else that the store is asked.

use super::connection::Connection;
use super::error::{Error, Result};
use super::node::Node;
use crate::answering::Answering;
use carillon_core::model::Epoch;
use carillon_core::ports::{Member, Members, Membership, Reply, Unavailable};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Questions that may wait. A further one is answered at once that there is no answer.
const WAITING_MAX: usize = 64;

/// What is asked about nodes.
enum Asked {
    List(Answering<Membership>),
    Bury(Epoch, Answering<bool>),
}

/// The nodes of a cell, as one of them asks.
#[derive(Debug)]
pub(super) struct Nodes {
    epoch: Epoch,
    asked: Mutex<Option<SyncSender<Asked>>>,
}

/// What answers: a thread runs it.
pub(super) struct Registry {
    db: Connection,
    node: Node,
    asked: Receiver<Asked>,
    /// Questions that failed since the last one that was answered.
    failures: u64,
}

/// Those who ask and what answers them, over this connection.
pub(super) fn open(db: Connection, node: Node) -> (Nodes, Registry) {
    let (sender, asked) = sync_channel(WAITING_MAX);
    let nodes = Nodes { epoch: Epoch(node.epoch.unsigned_abs()), asked: Mutex::new(Some(sender)) };
    (nodes, Registry { db, node, asked, failures: 0 })
}

impl Nodes {
    fn ask(&self, asked: Asked) {
        let sender = self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // What does not fit is dropped, and so answered.
        if let Some(sender) = sender {
            drop(sender.try_send(asked));
        }
    }

    /// What is asked from now on is not answered.
    pub(super) fn close(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Members for Nodes {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn list(&self, reply: Reply<std::result::Result<Membership, Unavailable>>) {
        self.ask(Asked::List(Answering::new(reply)));
    }

    fn bury(&self, epoch: Epoch, reply: Reply<std::result::Result<bool, Unavailable>>) {
        self.ask(Asked::Bury(epoch, Answering::new(reply)));
    }
}

impl Registry {
    /// Answers until nobody asks any more. Those who ask who the nodes are, while others are answered, are given one answer.
    pub(super) fn run(mut self) {
        while let Ok(first) = self.asked.recv() {
            let mut lists = Vec::new();
            let waiting: Vec<Asked> = std::iter::once(first).chain(self.asked.try_iter()).collect();
            for asked in waiting {
                match asked {
                    Asked::List(answering) => lists.push(answering),
                    Asked::Bury(epoch, answering) => {
                        if let Some(done) = self.done(|db, node| bury(db, node, epoch)) {
                            answering.give(done);
                        }
                    }
                }
            }
            if !lists.is_empty()
                && let Some(found) = self.done(|db, _| list(db))
            {
                lists.into_iter().for_each(|answering| answering.give(found.clone()));
            }
        }
    }

    /// Asks. A connection that was lost since the last question is made again once.
    fn done<T>(&mut self, ask: impl Fn(&Connection, &Node) -> Result<T>) -> Option<T> {
        let mut done = self.attempt(&ask);
        if done.as_ref().is_err_and(Error::is_lost) {
            done = self.attempt(&ask);
        }
        match done {
            Ok(answer) => {
                self.failures = 0;
                Some(answer)
            }
            Err(e) => {
                self.failures += 1;
                if self.failures.is_power_of_two() {
                    let failures = self.failures;
                    tracing::warn!(error = %e, failures, "the nodes of the cell cannot be read or buried");
                }
                None
            }
        }
    }

    fn attempt<T>(&mut self, ask: impl Fn(&Connection, &Node) -> Result<T>) -> Result<T> {
        self.db.connect(Some(Instant::now()))?;
        let done = ask(&self.db, &self.node);
        if done.as_ref().is_err_and(Error::is_lost) {
            self.db.abandon();
        }
        done
    }
}

fn list(db: &Connection) -> Result<Membership> {
    let rows = db.query(
        "SELECT node.epoch, name, address, roles, dead, newest, EXISTS (
             SELECT FROM pg_stat_activity AS session
             WHERE starts_with(session.application_name, 'carillon ' || name || ' ' || node.epoch || ' ')
                 AND session.datname = current_database()
         ), form_newest FROM node, node_epoch ORDER BY node.epoch",
        &[],
    )?;
    let mut found = Membership::default();
    for row in rows {
        let (epoch, newest): (i64, i64) = (row.try_get(0)?, row.try_get(5)?);
        let (name, address, roles): (String, String, String) =
            (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        found.newest = Epoch(newest.unsigned_abs());
        found.members.push(Member {
            epoch: Epoch(epoch.unsigned_abs()),
            name: name.into(),
            address: address.into(),
            roles: roles.into(),
            is_connected: row.try_get(6)?,
            form_newest: u16::try_from(row.try_get::<_, i32>(7)?).unwrap_or_default(),
            is_dead: row.try_get(4)?,
        });
    }
    Ok(found)
}

fn bury(db: &Connection, me: &Node, epoch: Epoch) -> Result<bool> {
    db.batch("BEGIN; SET LOCAL lock_timeout = '2s'")?;
    let done = buried(db, me, epoch);
    let is_done = matches!(done, Ok(true));
    match db.batch(if is_done { "COMMIT" } else { "ROLLBACK" }) {
        Err(e) if done.is_ok() => Err(e),
        _ => done,
    }
}

/// Marks a node as dead, ends its connections and takes the locks of its lanes: once these are held, what it had under way is committed or
/// rolled back.
fn buried(db: &Connection, me: &Node, epoch: Epoch) -> Result<bool> {
    let epoch = epoch.0 as i64;
    // In one order for all, so that of two that bury each other one is first.
    let rows = db.query(
        "SELECT name, epoch, dead FROM node WHERE epoch = $1 OR name = $2 ORDER BY name FOR UPDATE",
        &[&epoch, &me.name],
    )?;
    let (mut lives, mut other) = (false, None);
    for row in rows {
        let (name, number, dead): (String, i64, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        lives |= *name == *me.name && number == me.epoch && !dead;
        if number == epoch && !dead {
            other = Some(name);
        }
    }
    let Some(name) = other.filter(|_| lives) else { return Ok(false) };
    db.run("UPDATE node SET dead = true, since = now() WHERE name = $1", &[&name])?;
    db.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE starts_with(application_name, $1) AND datname = current_database() AND usename = current_user
             AND pid <> pg_backend_pid()",
        &[&format!("carillon {name} {epoch} ")],
    )?;
    db.run("UPDATE lane SET buried = true WHERE node = $1 AND NOT buried", &[&name])?;
    Ok(true)
}
