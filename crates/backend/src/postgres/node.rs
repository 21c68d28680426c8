//! Which process of a node writes: the newest, by its epoch.

use super::connection::Connection;
use super::error::Result;

/// A process of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The node's name.
    pub(super) name: Box<str>,
    /// The number of the process among those of the node.
    pub(super) epoch: i64,
}

impl Node {
    /// Registers a process with so many lanes. What earlier processes of the node have committed is there; they commit nothing from now on:
    /// whoever has begun a group holds the row of its lane until that is committed.
    pub(super) fn register(db: &Connection, name: &str, lanes: usize) -> Result<Node> {
        db.batch("BEGIN")?;
        let row = db.one(
            "INSERT INTO node (name, epoch) VALUES ($1, 1)
             ON CONFLICT (name) DO UPDATE SET epoch = node.epoch + 1 RETURNING epoch",
            &[&name],
        )?;
        let epoch: i64 = row.try_get(0)?;
        db.run("UPDATE lane SET buried = true WHERE node = $1 AND NOT buried", &[&name])?;
        // What became of a group is asked for within seconds: two processes back nobody is there to ask.
        db.run("DELETE FROM lane WHERE node = $1 AND epoch < $2::bigint - 2", &[&name, &epoch])?;
        db.run(
            "INSERT INTO lane (node, epoch, lane) SELECT $1::text, $2::bigint, l FROM generate_series(0, $3::integer - 1) l",
            &[&name, &epoch, &(lanes as i32)],
        )?;
        // Whoever held them is gone.
        db.run("UPDATE webhook SET owner = NULL, claimed = NULL, node = NULL WHERE node = $1", &[&name])?;
        db.batch("COMMIT")?;
        Ok(Node { name: name.into(), epoch })
    }
}
