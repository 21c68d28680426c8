//! One account of an import, as NDJSON or CSV.

use super::parts::Part;
use crate::extract::{Format, Line, parse};
use crate::problem::{Code, Problem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::model::{Credentials, ScramKeys};

/// An account to be imported, with its password, or with ready SCRAM keys of one hash or both; or a part of an account.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Its bare JID, or its local part.
    pub(super) jid: String,
    /// Its password.
    #[serde(default)]
    password: Option<String>,
    /// Its keys for SCRAM-SHA-1.
    #[serde(default)]
    scram_sha1: Option<RecordKeys>,
    /// Its keys for SCRAM-SHA-256.
    #[serde(default)]
    scram_sha256: Option<RecordKeys>,
    /// What belongs to it, instead of a password or keys.
    #[serde(default)]
    part: Option<Part>,
}

/// SCRAM keys (RFC 5802 §3).
#[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordKeys {
    /// The salt, in base64.
    salt: String,
    /// PBKDF2 iterations: at least 4,096 (RFC 7677 §4), at most ten times those of the node's setting `auth.scram_iterations`.
    #[schema(minimum = 4096)]
    iterations: u32,
    /// `H(ClientKey)`, in base64.
    stored_key: String,
    /// `HMAC(SaltedPassword, "Server Key")`, in base64.
    server_key: String,
}

/// The columns of a CSV file, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Columns {
    /// `jid,password`
    #[default]
    JidPassword,
    /// `password,jid`
    PasswordJid,
}

/// What proves an account.
pub(super) enum Secret {
    /// A password, to be hashed.
    Password(String),
    /// Keys as they are.
    Keys(Credentials),
}

impl Record {
    /// Reads a line.
    pub(super) fn read(line: &[u8], format: Format, columns: Columns) -> Result<Record, Problem> {
        match format {
            Format::Ndjson => parse(line),
            Format::Csv => {
                let [first, second] = fields(line)?;
                let (jid, password) = match columns {
                    Columns::JidPassword => (first, second),
                    Columns::PasswordJid => (second, first),
                };
                Ok(Record { jid, password: Some(password), scram_sha1: None, scram_sha256: None, part: None })
            }
        }
    }

    /// The part that it is about; the record, if it is about the account itself.
    pub(super) fn part(self) -> Result<Result<Part, Record>, Problem> {
        match self.part {
            Some(_)
                if self.password.is_some() || self.scram_sha1.is_some() || self.scram_sha256.is_some() =>
            {
                Err(Problem::new(Code::InvalidValue, "give keys or a part, not both"))
            }
            Some(part) => Ok(Ok(part)),
            None => Ok(Err(self)),
        }
    }

    /// What proves the account, on a node that hashes passwords with so many iterations.
    pub(super) fn secret(self, own_iterations: u32) -> Result<Secret, Problem> {
        let most = iterations_max(own_iterations);
        let keys = |keys: Option<RecordKeys>, bytes| keys.map(|keys| keys.read(bytes, most)).transpose();
        match (self.password, self.scram_sha1, self.scram_sha256) {
            (Some(password), None, None) => Ok(Secret::Password(password)),
            (None, None, None) => {
                Err(Problem::new(Code::MissingField, "give `password`, `scram_sha1` or `scram_sha256`"))
            }
            (None, sha1, sha256) => {
                Ok(Secret::Keys(Credentials { sha1: keys(sha1, 20)?, sha256: keys(sha256, 32)? }))
            }
            (Some(_), ..) => Err(Problem::new(Code::InvalidValue, "give a password or keys, not both")),
        }
    }
}

impl RecordKeys {
    /// Those of an account.
    pub(crate) fn of(keys: &ScramKeys) -> RecordKeys {
        RecordKeys {
            salt: STANDARD.encode(&keys.salt),
            iterations: keys.iterations,
            stored_key: STANDARD.encode(&keys.stored_key),
            server_key: STANDARD.encode(&keys.server_key),
        }
    }

    /// Reads keys of a hash of `bytes` bytes, which a login by PLAIN costs at most `iterations_max`.
    pub(crate) fn read(&self, bytes: usize, iterations_max: u32) -> Result<ScramKeys, Problem> {
        let bad = |detail: String| Problem::new(Code::InvalidValue, detail);
        let decode = |text: &str, what: &str| {
            STANDARD.decode(text).map_err(|_| bad(format!("`{what}` is not base64")))
        };
        let key = |text: &str, what: &str| {
            let key = decode(text, what)?;
            let wrong = || bad(format!("`{what}` has {} bytes; keys of this hash have {bytes}", key.len()));
            if key.len() == bytes { Ok(key) } else { Err(wrong()) }
        };
        let salt = decode(&self.salt, "salt")?;
        if !(ITERATIONS_MIN..=iterations_max).contains(&self.iterations) {
            return Err(bad(format!(
                "`iterations` is {}; this node takes keys of {ITERATIONS_MIN} to {iterations_max}",
                self.iterations
            )));
        }
        if !(1..=256).contains(&salt.len()) {
            return Err(bad(format!("`salt` has {} bytes; a salt has 1 to 256", salt.len())));
        }
        Ok(ScramKeys {
            salt: salt.into(),
            iterations: self.iterations,
            stored_key: key(&self.stored_key, "stored_key")?.into(),
            server_key: key(&self.server_key, "server_key")?.into(),
        })
    }
}

/// The fewest iterations of keys (RFC 7677 §4).
const ITERATIONS_MIN: u32 = 4096;

/// The most iterations of keys where the node's own keys have `own`: whoever tries a password by PLAIN has the node do them all.
pub(crate) fn iterations_max(own: u32) -> u32 {
    own.saturating_mul(10).min(10_000_000)
}

/// The columns that the first line of a CSV file names; none when it is a record, which has no field `jid`.
pub(super) fn columns(line: &Line) -> Option<Result<Columns, Problem>> {
    let text = line.text.as_ref().ok()?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(text);
    let record = reader.records().next()?.ok()?;
    let names: Vec<&str> = record.iter().collect();
    names.contains(&"jid").then(|| match names[..] {
        ["jid", "password"] => Ok(Columns::JidPassword),
        ["password", "jid"] => Ok(Columns::PasswordJid),
        _ => Err(Problem::new(
            Code::InvalidValue,
            "line 1 names other columns than `jid` and `password`; send SCRAM keys as NDJSON",
        )),
    })
}

/// What some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The two fields of a CSV record (RFC 4180).
fn fields(line: &[u8]) -> Result<[String; 2], Problem> {
    let bad =
        || Problem::new(Code::InvalidValue, "a CSV line has two fields, `jid` and `password`, in UTF-8");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let record = reader.records().next().and_then(Result::ok).ok_or_else(bad)?;
    let mut fields = record.iter().map(str::to_owned);
    match (fields.next(), fields.next(), fields.next()) {
        (Some(jid), Some(password), None) => Ok([jid, password]),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(line: &str, format: Format) -> Result<(String, Secret), Code> {
        let record = Record::read(line.as_bytes(), format, Columns::default()).map_err(|p| p.code())?;
        let jid = record.jid.clone();
        record.secret(4096).map(|secret| (jid, secret)).map_err(|p| p.code())
    }

    #[test]
    fn csv_has_a_jid_and_a_password() {
        let password = |line: &str| match secret(line, Format::Csv) {
            Ok((jid, Secret::Password(password))) => Ok((jid, password)),
            Ok(_) => panic!("CSV has no keys"),
            Err(code) => Err(code),
        };
        assert_eq!(password("alice@localhost,s3cret"), Ok(("alice@localhost".into(), "s3cret".into())));
        assert_eq!(password("alice,\"a,b \"\"c\"\"\""), Ok(("alice".into(), "a,b \"c\"".into())));
        assert_eq!(password("alice"), Err(Code::InvalidValue));
        assert_eq!(password("alice,b,c"), Err(Code::InvalidValue));
    }

    #[test]
    fn keys_have_the_length_of_their_hash() {
        let line = |key: &str| {
            format!(
                r#"{{"jid":"a","scram_sha256":{{"salt":"c2FsdA==","iterations":4096,"stored_key":"{key}","server_key":"{key}"}}}}"#
            )
        };
        let good = STANDARD.encode([7; 32]);
        let Ok((_, Secret::Keys(keys))) = secret(&line(&good), Format::Ndjson) else { panic!("keys") };
        assert_eq!(keys.sha256.unwrap().stored_key.len(), 32);
        assert!(keys.sha1.is_none());
        assert_eq!(secret(&line(&STANDARD.encode([7; 20])), Format::Ndjson).err(), Some(Code::InvalidValue));
        assert_eq!(secret(&line("?"), Format::Ndjson).err(), Some(Code::InvalidValue));
        let iterated = |n: u32| line(&good).replace("4096", &n.to_string());
        assert!(secret(&iterated(40_960), Format::Ndjson).is_ok());
        for wrong in [4095, 40_961, u32::MAX] {
            let record = Record::read(iterated(wrong).as_bytes(), Format::Ndjson, Columns::default());
            let problem = record.and_then(|record| record.secret(4096)).err().unwrap();
            let detail = format!("`iterations` is {wrong}; this node takes keys of 4096 to 40960");
            assert_eq!((problem.code(), problem.detail()), (Code::InvalidValue, &*detail));
        }
        assert_eq!(secret(r#"{"jid":"a"}"#, Format::Ndjson).err(), Some(Code::MissingField));
        assert_eq!(secret(r#"{"jid":"a","pass":"b"}"#, Format::Ndjson).err(), Some(Code::UnknownField));
    }
}
