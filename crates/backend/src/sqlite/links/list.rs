//! Lists of links, newest first.

use super::super::column::{int, uint};
use super::super::snapshot::Snapshot;
use super::{link, select};
use carillon_core::model::LinkId;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::links::{Links, LinksAnswer};
use rusqlite::{Error, Result, params};

/// Rows that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: usize = 10_000;

impl Answers<Links, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Links) -> Result<LinksAnswer> {
        let mut query =
            self.db.prepare_cached(select!("WHERE l.domain = ?1 AND l.id < ?2 ORDER BY l.id DESC"))?;
        let mut rows = query.query(params![asked.domain.0, int(asked.before.0)])?;
        let (mut links, mut seen, mut looked_at) = (Vec::new(), asked.before, 0);
        while let Some(row) = rows.next()? {
            if links.len() == usize::from(asked.limit) || looked_at == ROWS_MAX {
                return Ok(LinksAnswer { links, next: Some(seen) });
            }
            (seen, looked_at) = (LinkId(uint(row, 0)?), looked_at + 1);
            let has = |column| Ok::<bool, Error>(row.get_ref(column)?.as_str()?.contains(&*asked.search));
            if has(2)? || has(3)? {
                links.push(link(row)?);
            }
        }
        Ok(LinksAnswer { links, next: None })
    }
}
