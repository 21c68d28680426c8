//! PIEFXIS (XEP-0227), the form that other servers export: `<server-data/>` with hosts, whose users have their keys, rosters and more. It is read
//! user by user, so that a file may be of any size, and follows its includes into other files.

mod source;
#[cfg(test)]
mod tests;
mod user;

use self::source::{Source, Told};
use super::rows::Row;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The namespace of the form, now and before (§4.1).
const NAMESPACES: &[&str] = &["urn:xmpp:pie:0", "http://www.xmpp.org/extensions/xep-0227.html#ns"];
/// The namespace of inclusions.
const INCLUDE: &str = "http://www.w3.org/2001/XInclude";
/// Files that are open at the same time: the main one, a host's, a user's, and some more.
const DEPTH_MAX: usize = 8;

/// Why the rest of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadXml {
    /// The system cannot read it.
    #[error("{file}: {error}")]
    Read { file: String, error: io::Error },
    /// It is not XML, or not the form.
    #[error("{file}:{line}: {detail}")]
    Form { file: String, line: u64, detail: String },
}

/// Users that are being read.
pub(super) struct Users {
    /// The files that are open, each included by the one before it.
    sources: Vec<Source>,
    /// Bytes read of files that are closed again.
    bytes: u64,
    /// Elements that are passed over, and how often.
    passed: BTreeMap<String, u64>,
    rows: VecDeque<Row>,
}

impl Users {
    /// Those of a file.
    pub(super) fn open(path: &Path) -> Result<Users, BadXml> {
        let opened = Source::open(path, String::new());
        let sources = vec![opened.map_err(|error| BadXml::Read { file: path.display().to_string(), error })?];
        Ok(Users { sources, bytes: 0, passed: BTreeMap::new(), rows: VecDeque::new() })
    }

    /// The next record: an account, then what belongs to it.
    pub(super) fn next(&mut self) -> Result<Option<Row>, BadXml> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(row));
            }
            let Some(source) = self.sources.last_mut() else { return Ok(None) };
            match source.next()? {
                Told::User { line, host, element } => {
                    let file = (self.sources.len() > 1).then(|| self.name());
                    self.rows = user::rows(line, file.as_ref(), &host, &element, &mut self.passed);
                }
                Told::Include { line, host, href } => self.include(line, host, &href)?,
                Told::Passed(name) => *self.passed.entry(name).or_default() += 1,
                Told::End => {
                    self.bytes += source.bytes_read();
                    self.sources.pop();
                }
            }
        }
    }

    /// How much was read, of all files.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes + self.sources.iter().map(Source::bytes_read).sum::<u64>()
    }

    /// What this server has no place for, and how often it came.
    pub(super) fn passed(&self) -> &BTreeMap<String, u64> {
        &self.passed
    }

    fn name(&self) -> Arc<str> {
        self.sources.last().map_or_else(Arc::default, |source| source.name().into())
    }

    /// Goes on with another file, which is in the folder of this one or below it.
    fn include(&mut self, line: u64, host: String, href: &str) -> Result<(), BadXml> {
        let file = self.name().to_string();
        let bad = |detail: String| BadXml::Form { file, line, detail };
        let relative = PathBuf::from(href);
        let is_below =
            relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if href.is_empty() || href.contains(':') || !is_below {
            return Err(bad(format!("`{href}` is not a file in the folder of this one or below it")));
        }
        if self.sources.len() == DEPTH_MAX {
            return Err(bad(format!("more than {DEPTH_MAX} files include one another")));
        }
        let Some(source) = self.sources.last() else { return Ok(()) };
        let path = source.path().parent().unwrap_or(Path::new("")).join(relative);
        self.sources.push(Source::open(&path, host).map_err(|error| bad(format!("`{href}`: {error}")))?);
        Ok(())
    }
}
