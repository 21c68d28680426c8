//! The lines of the file: CSV with passwords or with ready SCRAM keys, each turned into a record for the node.
//!
//! A line is a record: nothing that belongs into one has a line break, and so a quote that is not closed harms its own
//! line only, and line numbers are those of the file.

use serde::Serialize;
use std::io::{self, BufRead};
use std::sync::Arc;

/// The columns of a file with passwords.
const PASSWORD_COLUMNS: &[&str] = &["jid", "password"];
/// The columns of a file with keys.
const KEY_COLUMNS: &[&str] = &["jid", "iterations", "salt", "stored_key_sha256", "server_key_sha256"];
/// What a file with keys may have beside.
const SHA1_COLUMNS: &[&str] = &["stored_key_sha1", "server_key_sha1"];

/// What some programs put before UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A file that is being read.
pub(super) struct Rows<R> {
    lines: Lines<R>,
    columns: Columns,
    /// The first line, when it is a record already.
    first: Option<Row>,
}

/// A line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number, counted from 1.
    pub(super) line: u64,
    /// The file, where that is not the one that is imported but is included by it.
    pub(super) file: Option<Arc<str>>,
    /// What of the line it is about, for who reads what is wrong with it; empty where that is the whole line.
    pub(super) what: String,
    /// What the node is told, or what is wrong with the line.
    pub(super) record: Result<String, String>,
}

/// Why nothing of a file can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadFile {
    /// The first line does not say what the columns are.
    #[error(
        "line 1 is neither an account nor a list of columns: {} or {}",
        PASSWORD_COLUMNS.join(","),
        KEY_COLUMNS.join(",")
    )]
    Header,
    /// The first line names the same column twice, or one there is not.
    #[error("line 1 names the column {0}, which is unknown or there twice")]
    Column(String),
    /// The system cannot read it.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// Where each column is.
struct Columns {
    names: Vec<String>,
}

/// The fields of a line by their columns' names. A field that is empty is not there.
#[derive(Default)]
struct Fields<'a> {
    jid: Option<&'a str>,
    password: Option<&'a str>,
    iterations: Option<u32>,
    salt: Option<&'a str>,
    sha256: KeyPair<'a>,
    sha1: KeyPair<'a>,
}

/// Stored key and server key.
type KeyPair<'a> = (Option<&'a str>, Option<&'a str>);

/// A line as the node reads it.
#[derive(Serialize)]
struct Record<'a> {
    jid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scram_sha256: Option<Keys<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scram_sha1: Option<Keys<'a>>,
}

/// The keys of one hash.
#[derive(Serialize)]
struct Keys<'a> {
    salt: &'a str,
    iterations: u32,
    stored_key: &'a str,
    server_key: &'a str,
}

/// The lines of a file, one at a time.
struct Lines<R> {
    file: R,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
}

impl Row {
    fn of_line(line: u64, record: Result<String, String>) -> Row {
        Row { line, file: None, what: String::new(), record }
    }
}

impl<R: BufRead> Rows<R> {
    /// Reads the first line of `file`, which may name the columns.
    pub(super) fn new(file: R) -> Result<Rows<R>, BadFile> {
        let mut lines = Lines { file, line: Vec::new(), number: 0, bytes: 0 };
        let first = lines.next()?.ok_or(BadFile::Header)?;
        let first =
            fields(first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first)).map_err(|_| BadFile::Header)?;
        if let Some(columns) = Columns::unnamed(&first) {
            let row = Row::of_line(lines.number, columns.record(&first));
            return Ok(Rows { columns, lines, first: Some(row) });
        }
        let names = first.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
        Ok(Rows { columns: Columns::new(names)?, lines, first: None })
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> io::Result<Option<Row>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while let Some(line) = self.lines.next()? {
            if !line.is_empty() {
                let record = fields(line).and_then(|fields| self.columns.record(&fields));
                return Ok(Some(Row::of_line(self.lines.number, record)));
            }
        }
        Ok(None)
    }

    /// How much of the file was read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.lines.bytes
    }
}

impl<R: BufRead> Lines<R> {
    /// The next line, without its end.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let read = self.file.read_until(b'\n', &mut self.line)?;
        self.bytes += read as u64;
        self.number += 1;
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        Ok((read > 0).then(|| line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// The fields of one line of CSV (RFC 4180).
fn fields(line: &[u8]) -> Result<csv::ByteRecord, String> {
    if line.iter().filter(|&&b| b == b'"').count() % 2 == 1 {
        return Err("a quote is not closed".to_owned());
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).buffer_capacity(256).from_reader(line);
    let mut record = csv::ByteRecord::new();
    reader.read_byte_record(&mut record).map_err(|e| e.to_string())?;
    Ok(record)
}

impl Columns {
    /// The columns of a file that does not name them, by the first of its records: a JID and as many fields as one of the
    /// forms has.
    fn unnamed(record: &csv::ByteRecord) -> Option<Columns> {
        if !record.get(0)?.contains(&b'@') {
            return None;
        }
        let all = [PASSWORD_COLUMNS.to_vec(), KEY_COLUMNS.to_vec(), [KEY_COLUMNS, SHA1_COLUMNS].concat()];
        let columns = all.into_iter().find(|columns| columns.len() == record.len())?;
        Some(Columns { names: columns.into_iter().map(str::to_owned).collect() })
    }

    fn new(names: Vec<String>) -> Result<Columns, BadFile> {
        let has = |columns: &[&str]| columns.iter().all(|column| names.iter().any(|name| name == column));
        let known: &[&[&str]] = match (has(PASSWORD_COLUMNS), has(KEY_COLUMNS)) {
            (true, _) => &[PASSWORD_COLUMNS],
            (_, true) => &[KEY_COLUMNS, SHA1_COLUMNS],
            _ => return Err(BadFile::Header),
        };
        let unknown = |name: &String| !known.concat().contains(&name.as_str());
        let twice = |i: usize, name: &String| names[..i].contains(name);
        match names.iter().enumerate().find(|(i, name)| unknown(name) || twice(*i, name)) {
            Some((_, name)) => Err(BadFile::Column(name.clone())),
            None => Ok(Columns { names }),
        }
    }

    /// The record of one line, or what is wrong with it.
    fn record(&self, fields: &csv::ByteRecord) -> Result<String, String> {
        if fields.len() != self.names.len() {
            return Err(format!("{} fields, but the file has {}", fields.len(), self.names.len()));
        }
        let mut line = Fields::default();
        for (name, bytes) in self.names.iter().zip(fields) {
            let text = std::str::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8"))?;
            line.put(name, text)?;
        }
        let record = line.record(self.names.iter().any(|name| name == "password"))?;
        Ok(serde_json::to_string(&record).expect("a record is texts and numbers"))
    }
}

impl<'a> Fields<'a> {
    fn put(&mut self, name: &str, text: &'a str) -> Result<(), String> {
        let field = Some(text).filter(|text| !text.is_empty());
        match name {
            "jid" => self.jid = field,
            "password" => self.password = field,
            "iterations" => {
                let number =
                    |text: &str| text.parse().map_err(|_| format!("iterations is not a number: {text}"));
                self.iterations = field.map(number).transpose()?;
            }
            "salt" => self.salt = field,
            "stored_key_sha256" => self.sha256.0 = field,
            "server_key_sha256" => self.sha256.1 = field,
            "stored_key_sha1" => self.sha1.0 = field,
            "server_key_sha1" => self.sha1.1 = field,
            _ => return Err(format!("there is no column {name}")),
        }
        Ok(())
    }

    fn record(self, by_password: bool) -> Result<Record<'a>, String> {
        let empty = |column: &str| format!("{column} is empty");
        let jid = self.jid.ok_or_else(|| empty("jid"))?;
        if by_password {
            let password = Some(self.password.ok_or_else(|| empty("password"))?);
            return Ok(Record { jid, password, scram_sha256: None, scram_sha1: None });
        }
        let (scram_sha256, scram_sha1) = (self.keys(self.sha256)?, self.keys(self.sha1)?);
        if scram_sha256.is_none() && scram_sha1.is_none() {
            return Err("it has no keys".to_owned());
        }
        Ok(Record { jid, password: None, scram_sha256, scram_sha1 })
    }

    /// The keys of a hash, where there are any.
    fn keys(&self, pair: KeyPair<'a>) -> Result<Option<Keys<'a>>, String> {
        match (self.salt, self.iterations, pair) {
            (_, _, (None, None)) => Ok(None),
            (Some(salt), Some(iterations), (Some(stored_key), Some(server_key))) => {
                Ok(Some(Keys { salt, iterations, stored_key, server_key }))
            }
            _ => Err("keys need salt, iterations, stored key and server key".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(file: &[u8]) -> Vec<Row> {
        let mut rows = Rows::new(file).expect("a header");
        std::iter::from_fn(|| rows.next().expect("readable")).collect()
    }

    fn good(line: u64, record: &str) -> Row {
        Row::of_line(line, Ok(record.to_owned()))
    }

    fn bad(line: u64, detail: &str) -> Row {
        Row::of_line(line, Err(detail.to_owned()))
    }

    #[test]
    fn passwords_are_taken_as_they_stand() {
        let file = b"\xef\xbb\xbfjid, password\r\na@x,secret\n\nb@x,\" with, comma and \"\"quotes\"\" \"\n";
        assert_eq!(
            rows(file),
            [
                good(2, r#"{"jid":"a@x","password":"secret"}"#),
                good(4, r#"{"jid":"b@x","password":" with, comma and \"quotes\" "}"#),
            ]
        );
    }

    #[test]
    fn bad_lines_are_told_and_passed_over() {
        let file = b"password,jid\nsecret,a@x\nonly one\n,b@x\ns,\nx,y,z\n\xff,c@x\ns,d@x\n\"s,e@x\ns,f@x";
        assert_eq!(
            rows(file),
            [
                good(2, r#"{"jid":"a@x","password":"secret"}"#),
                bad(3, "1 fields, but the file has 2"),
                bad(4, "password is empty"),
                bad(5, "jid is empty"),
                bad(6, "3 fields, but the file has 2"),
                bad(7, "password is not UTF-8"),
                good(8, r#"{"jid":"d@x","password":"s"}"#),
                bad(9, "a quote is not closed"),
                good(10, r#"{"jid":"f@x","password":"s"}"#),
            ]
        );
    }

    #[test]
    fn keys_are_passed_on_and_those_of_one_hash_may_be_missing() {
        let file =
            b"jid,iterations,salt,stored_key_sha256,server_key_sha256,stored_key_sha1,server_key_sha1\n\
                     a@x,4096,c2E=,AA==,BB==,CC==,DD==\nb@x,10000,c2E=,AA==,BB==,,\nc@x,many,s,A,B,,\n\
                     d@x,4096,s,A,B,C,\ne@x,4096,,A,B,,\nf@x,4096,s,,,,\n";
        assert_eq!(
            rows(file),
            [
                good(
                    2,
                    r#"{"jid":"a@x","scram_sha256":{"salt":"c2E=","iterations":4096,"stored_key":"AA==","server_key":"BB=="},"scram_sha1":{"salt":"c2E=","iterations":4096,"stored_key":"CC==","server_key":"DD=="}}"#
                ),
                good(
                    3,
                    r#"{"jid":"b@x","scram_sha256":{"salt":"c2E=","iterations":10000,"stored_key":"AA==","server_key":"BB=="}}"#
                ),
                bad(4, "iterations is not a number: many"),
                bad(5, "keys need salt, iterations, stored key and server key"),
                bad(6, "keys need salt, iterations, stored key and server key"),
                bad(7, "it has no keys"),
            ]
        );
    }

    #[test]
    fn a_file_need_not_name_its_columns() {
        assert_eq!(
            rows(b"\xef\xbb\xbfa@x,s\nb@x,\nc@x,t\n"),
            [
                good(1, r#"{"jid":"a@x","password":"s"}"#),
                bad(2, "password is empty"),
                good(3, r#"{"jid":"c@x","password":"t"}"#),
            ]
        );
        let keys = rows(b"a@x,4096,c2E=,AA==,BB==\n");
        assert_eq!(
            keys,
            [good(
                1,
                r#"{"jid":"a@x","scram_sha256":{"salt":"c2E=","iterations":4096,"stored_key":"AA==","server_key":"BB=="}}"#
            )]
        );
    }

    #[test]
    fn a_first_line_that_is_neither_record_nor_header_is_told() {
        for (file, says) in [
            (
                &b""[..],
                "line 1 is neither an account nor a list of columns: jid,password or jid,iterations,salt,stored_key_sha256,server_key_sha256",
            ),
            (
                b"user,secret\n",
                "line 1 is neither an account nor a list of columns: jid,password or jid,iterations,salt,stored_key_sha256,server_key_sha256",
            ),
            (b"jid,password,e-mail\n", "line 1 names the column e-mail, which is unknown or there twice"),
            (b"jid,password,jid\n", "line 1 names the column jid, which is unknown or there twice"),
        ] {
            assert_eq!(Rows::new(file).err().expect("refused").to_string(), says);
        }
    }
}
