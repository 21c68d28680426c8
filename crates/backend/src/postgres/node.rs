//! Which process of a node writes: the newest, by its epoch.

use super::connection::Connection;
use super::error::{Error, Result};
use super::joining;
use super::options::Options;
use carillon_core::model::Epoch;

/// A process of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The node's name.
    pub(super) name: Box<str>,
    /// The number of the process among all of the database: each is given once, and later ones are higher.
    pub(super) epoch: i64,
}

impl Node {
    /// Registers a process with so many lanes. What earlier processes of the node have committed is there; they commit nothing from now on:
    /// whoever has begun a group holds the row of its lane until that is committed.
    pub(super) fn register(db: &Connection, options: &Options, lanes: usize) -> Result<Node> {
        let name = &*options.node;
        joining::check(db, options)?;
        db.batch("BEGIN")?;
        db.run("DELETE FROM node WHERE dead AND since < now() - interval '1 day' AND name <> $1", &[&name])?;
        db.run(
            "DELETE FROM lane WHERE buried AND NOT EXISTS (SELECT 1 FROM node WHERE node.name = lane.node)",
            &[],
        )?;
        // A server of the version before may have counted on by itself.
        let row = db.one(
            "UPDATE node_epoch SET newest = 1 + greatest(newest, (SELECT max(epoch) FROM node)) RETURNING newest",
            &[],
        )?;
        let epoch: i64 = row.try_get(0)?;
        db.run(
            "INSERT INTO node (name, epoch, address, roles) VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, address = excluded.address, roles = excluded.roles,
                 dead = false, since = now()",
            &[&name, &epoch, &&*options.address, &&*options.roles],
        )?;
        joining::say(db, options)?;
        db.run("UPDATE lane SET buried = true WHERE node = $1 AND NOT buried", &[&name])?;
        // What became of a group is asked for within seconds: nobody asks for a process before the last one.
        db.run(
            "DELETE FROM lane WHERE node = $1 AND epoch NOT IN
                 (SELECT DISTINCT epoch FROM lane WHERE node = $1 ORDER BY epoch DESC LIMIT 2)",
            &[&name],
        )?;
        db.run(
            "INSERT INTO lane (node, epoch, lane) SELECT $1::text, $2::bigint, l FROM generate_series(0, $3::integer - 1) l",
            &[&name, &epoch, &(lanes as i32)],
        )?;
        release(db, name)?;
        db.batch("COMMIT")?;
        Ok(Node { name: name.into(), epoch })
    }

    /// Goes on in the place of another process of the node, which has ended what it wrote: this one has its epoch and its lanes.
    pub(super) fn go_on(db: &Connection, options: &Options, lanes: usize, epoch: Epoch) -> Result<Node> {
        let (name, epoch) = (&*options.node, epoch.0 as i64);
        db.batch("BEGIN")?;
        let row =
            db.opt("SELECT dead FROM node WHERE name = $1 AND epoch = $2 FOR SHARE", &[&name, &epoch])?;
        let is_dead: Option<bool> = row.map(|row| row.try_get(0)).transpose()?;
        if is_dead != Some(false) {
            return Err(Error::Corrupt("the node was buried: it cannot go on in another process"));
        }
        db.run(
            "INSERT INTO lane (node, epoch, lane) SELECT $1::text, $2::bigint, l FROM generate_series(0, $3::integer - 1) l
             ON CONFLICT DO NOTHING",
            &[&name, &epoch, &(lanes as i32)],
        )?;
        joining::say(db, options)?;
        release(db, name)?;
        db.batch("COMMIT")?;
        Ok(Node { name: name.into(), epoch })
    }
}

/// What a process of the node had claimed is free again: whoever held it is gone.
fn release(db: &Connection, name: &str) -> Result<()> {
    db.run("UPDATE webhook SET owner = NULL, claimed = NULL, node = NULL WHERE node = $1", &[&name])?;
    db.run(
        "UPDATE push SET owner = NULL, claimed_by = NULL, due = 0 WHERE owner IS NOT NULL AND claimed_by = $1",
        &[&name],
    )?;
    Ok(())
}
