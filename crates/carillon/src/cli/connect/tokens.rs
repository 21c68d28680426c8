//! The tokens of earlier logins (XEP-0484), kept in a file that only its owner can read.

use carillon_load::client::sasl::SavedToken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most tokens that are kept; past it the one that was not used for longest goes.
const TOKENS_MAX: usize = 256;

/// The token of one account at one server, in the file of all.
#[derive(Debug)]
pub(super) struct TokenFile {
    folder: PathBuf,
    key: String,
}

/// An entry of the file.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    token: SavedToken,
    used_at: u64,
}

type Entries = BTreeMap<String, Kept>;

impl TokenFile {
    /// The token of `account` at `server`, in `folder`.
    pub(super) fn new(folder: PathBuf, account: &str, server: &str) -> TokenFile {
        TokenFile { folder, key: format!("{account} at {server}") }
    }

    /// Whether a token is stored.
    pub(super) fn peek(&self) -> io::Result<bool> {
        Ok(read(&self.path())?.contains_key(&self.key))
    }

    /// The token for a login that begins now. Each login has a higher count, whichever program of the user makes it: the
    /// server takes a count once.
    pub(super) fn take_turn(&self) -> io::Result<Option<SavedToken>> {
        if !self.path().exists() {
            return Ok(None);
        }
        self.change(|entries, key| {
            let kept = entries.get_mut(key)?;
            let turn = kept.token.clone();
            kept.token.count += 1;
            kept.used_at = now();
            Some(turn)
        })
    }

    /// Keeps what a login left: a new token, or none when the server refused it.
    pub(super) fn keep(&self, token: Option<SavedToken>) -> io::Result<()> {
        if token.is_none() && !self.path().exists() {
            return Ok(());
        }
        self.change(|entries, key| match token {
            // Its count here is higher, should another program have used it meanwhile.
            Some(token) if entries.get(key).is_some_and(|kept| kept.token.token == token.token) => {}
            Some(token) => {
                entries.insert(key.to_owned(), Kept { token, used_at: now() });
                while entries.len() > TOKENS_MAX {
                    let oldest = entries.iter().min_by_key(|(_, kept)| kept.used_at);
                    let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
                    entries.remove(&oldest);
                }
            }
            None => drop(entries.remove(key)),
        })
    }

    /// Reads, changes and writes the file; nobody else does meanwhile.
    fn change<T>(&self, change: impl FnOnce(&mut Entries, &str) -> T) -> io::Result<T> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let lock =
            OpenOptions::new().create(true).append(true).mode(0o600).open(self.folder.join("tokens.lock"))?;
        File::lock(&lock)?;
        let mut entries = read(&self.path())?;
        let changed = change(&mut entries, &self.key);
        let text = serde_json::to_vec_pretty(&entries)?;
        crate::files::write_whole(&self.path(), &text, 0o600)?;
        Ok(changed)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }
}

/// The folder for such files, as the XDG base directory specification has it.
pub(super) fn state_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("carillon"))
}

fn read(path: &Path) -> io::Result<Entries> {
    match fs::read(path) {
        Ok(text) => {
            serde_json::from_slice(&text).map_err(|e| io::Error::other(format!("{}: {e}", path.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::new()),
        Err(error) => Err(error),
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn token(text: &str) -> SavedToken {
        SavedToken { token: text.to_owned(), mechanism: "HT-SHA-256-EXPR".to_owned(), count: 0 }
    }

    #[test]
    fn a_token_is_counted_replaced_and_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        let alice = TokenFile::new(state.clone(), "alice@localhost", "127.0.0.1:5222");
        let bob = TokenFile::new(state.clone(), "bob@localhost", "127.0.0.1:5222");
        assert_eq!(alice.take_turn().expect("nothing is there"), None);
        alice.keep(None).expect("nothing to forget");
        assert!(!state.exists(), "who has no token leaves no file");

        alice.keep(Some(token("a"))).expect("written");
        let counts: Vec<u32> =
            (0..3).map(|_| alice.take_turn().expect("read").expect("kept").count).collect();
        assert_eq!(counts, [0, 1, 2]);
        alice.keep(Some(token("a"))).expect("written");
        assert_eq!(alice.take_turn().expect("read").map(|t| t.count), Some(3), "the same token goes on");
        alice.keep(Some(token("b"))).expect("written");
        assert_eq!(alice.take_turn().expect("read"), Some(token("b")));
        assert_eq!(bob.take_turn().expect("read"), None);
        alice.keep(None).expect("forgotten");
        assert_eq!(alice.take_turn().expect("read"), None);

        let mode = |path: PathBuf| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(state.join("tokens.json")), mode(state)), (0o600, 0o700));
    }
}
