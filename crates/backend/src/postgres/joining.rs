//! Whether a node fits to those that live: that they read what it writes, that it reads what they write, and that the settings are alike that
//! have to be.

use super::connection::Connection;
use super::error::{Error, Result};
use super::options::{Joins, Options};
use carillon_core::form;

impl Joins {
    fn lines(&self) -> String {
        self.shared.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
    }

    /// Looks at the node `name` of another release, which reads these versions of the form, and writes no older one than the first.
    fn check(&self, name: &str, release: &str, (oldest, newest): (i32, i32), shared: &str) -> Result<()> {
        let (own_oldest, own_newest) = spoken();
        if newest < own_oldest || own_newest < oldest {
            let own = &self.release;
            return Err(Error::DoesNotFit(format!(
                "the node {name} of release {release} speaks the versions {oldest} to {newest} of what nodes say to each other, and release {own} the versions {own_oldest} to {own_newest}"
            )));
        }
        for (setting, value) in &self.shared {
            let of = |line: &str| line.strip_prefix(&**setting)?.strip_prefix(" = ").map(str::to_owned);
            if shared.lines().find_map(of).is_some_and(|other| other != **value) {
                return Err(Error::DoesNotFit(format!(
                    "{setting} is not as the node {name} has it: all nodes of a cell have it alike"
                )));
            }
        }
        Ok(())
    }
}

/// Looks whether a node fits to the others that live.
pub(super) fn check(db: &Connection, options: &Options) -> Result<()> {
    let Some(joins) = &options.joins else { return Ok(()) };
    // A row says that a node lives until somebody has found out that it does not.
    let rows = db.query(
        "SELECT name, release, form_oldest, form_newest, shared FROM node
         WHERE NOT dead AND name <> $1 AND shared <> '' AND EXISTS (
             SELECT FROM pg_stat_activity AS session
             WHERE starts_with(session.application_name, 'carillon ' || node.name || ' ' || node.epoch || ' ')
                 AND session.datname = current_database()
         ) ORDER BY name",
        &[&&*options.node],
    )?;
    for row in rows {
        let (name, release): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let (versions, shared): (_, String) = ((row.try_get(2)?, row.try_get(3)?), row.try_get(4)?);
        joins.check(&name, &release, versions, &shared)?;
    }
    Ok(())
}

/// Says what the node is like, to those that join later.
pub(super) fn say(db: &Connection, options: &Options) -> Result<()> {
    let Some(joins) = &options.joins else { return Ok(()) };
    let (oldest, newest) = spoken();
    db.run(
        "UPDATE node SET release = $2, form_oldest = $3, form_newest = $4, shared = $5 WHERE name = $1",
        &[&&*options.node, &&*joins.release, &oldest, &newest, &joins.lines()],
    )?;
    Ok(())
}

/// The oldest version of the form that this process writes, and the newest that others are to write for it.
fn spoken() -> (i32, i32) {
    (form::WRITTEN_OLDEST.into(), form::announced().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_what_the_other_does_not_say_is_not_compared() {
        let joins = |secret: &[u8], prefix: &str| Joins {
            release: "2.0.0".into(),
            shared: vec![
                ("cell.secret_file".into(), Joins::digest(secret)),
                ("cell.prefix".into(), prefix.into()),
            ],
        };
        let (one, (oldest, newest)) = (joins(b"one", "a"), spoken());
        let said =
            |shared: &str, versions| one.check("n1", "1.0.0", versions, shared).err().map(|e| e.to_string());
        let same = (oldest, newest);
        assert_eq!(said(&one.lines(), same), None);
        assert_eq!(said("cell.other = x\n", same), None);
        let secret = "this node does not join: cell.secret_file is not as the node n1 has it: all nodes of a cell have it alike";
        assert_eq!(said(&joins(b"other", "a").lines(), same).as_deref(), Some(secret));
        let prefix = "this node does not join: cell.prefix is not as the node n1 has it: all nodes of a cell have it alike";
        assert_eq!(said(&joins(b"one", "b").lines(), same).as_deref(), Some(prefix));
        assert_eq!(said(&one.lines(), (newest, newest + 1)), None, "the next release");
        for versions in [(newest + 1, newest + 2), (oldest - 2, oldest - 1)] {
            let why = said(&one.lines(), versions).expect("it is refused");
            assert!(why.contains("the node n1 of release 1.0.0 speaks the versions"), "{why}");
        }
    }
}
