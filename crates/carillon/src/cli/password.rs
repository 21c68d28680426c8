//! Passwords: given, typed unseen, or read from a file.

use super::failure::Failure;
use console::Term;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

/// The password given, or typed unseen on a terminal, or the first line of standard input.
pub(super) fn given_or_asked(given: Option<String>) -> Result<String, Failure> {
    if let Some(password) = given {
        return Ok(password);
    }
    let unreadable = |e: std::io::Error| Failure::Usage(format!("no password can be read: {e}"));
    let password = if can_ask() {
        eprint!("Password: ");
        Term::stderr().read_secure_line().map_err(unreadable)?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(unreadable)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    not_empty(password, "the password is empty; give --password, or write it to standard input")
}

/// The first line of a file.
pub(super) fn from_file(file: &Path) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(file).map_err(|e| Failure::Usage(format!("{}: {e}", file.display())))?;
    not_empty(
        text.lines().next().unwrap_or_default().to_owned(),
        &format!("{}: its first line is empty", file.display()),
    )
}

/// Whether a person can be asked.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

fn not_empty(password: String, otherwise: &str) -> Result<String, Failure> {
    if password.is_empty() { Err(Failure::Usage(otherwise.to_owned())) } else { Ok(password) }
}
