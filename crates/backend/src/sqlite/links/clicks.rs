//! Clicks: counted of links, and noted of the notifications whose links were followed.

use super::super::column::{id_blob, int};
use super::super::ending;
use super::super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::{AcknowledgedBy, Click, NotificationId};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::links::{CountClicks, OpenNotifications};
use rusqlite::{Error, Result, params};

impl Answers<CountClicks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CountClicks) -> Result<()> {
        for clicks in &asked.clicks {
            self.run(
                "INSERT INTO link_click (link, clicks, last) SELECT id, ?2, ?3 FROM link WHERE id = ?1
                 ON CONFLICT (link) DO UPDATE SET clicks = clicks + ?2, last = max(last, ?3)",
                params![int(clicks.link.0), int(clicks.clicks), int(clicks.last.0)],
            )?;
        }
        Ok(())
    }
}

impl Answers<OpenNotifications, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &OpenNotifications) -> Result<Vec<NotificationId>> {
        let mut noted = Vec::with_capacity(asked.clicks.len());
        for click in &asked.clicks {
            if open(self, click)? {
                noted.push(click.id);
            }
        }
        Ok(noted)
    }
}

/// Whether the notification is there.
fn open(write: &mut Transaction<'_>, click: &Click) -> Result<bool> {
    let Click { id, domain, opened } = click;
    if waits(write, click)? {
        ending::acknowledged(write, *id, opened.at, AcknowledgedBy::Link)?;
    }
    let noted = write.run(
        "UPDATE trace SET opened = coalesce(opened, ?3), agent = coalesce(agent, ?4) WHERE id = ?1 AND domain = ?2",
        params![id_blob(*id), domain.0, int(opened.at.0), opened.agent.code()],
    )?;
    Ok(noted > 0)
}

fn waits(write: &Transaction<'_>, click: &Click) -> Result<bool> {
    write
        .db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM notification WHERE id = ?1 AND domain = ?2)")?
        .query_row(params![id_blob(click.id), click.domain.0], |row| row.get(0))
}
