//! What cannot be taken back is asked for once more.

use super::failure::Failure;
use super::password::can_ask;

/// Goes on when `--yes` was given or a person agrees; `deed` says what would happen, after "this". Without a terminal nobody
/// can be asked, and nothing happens.
pub(super) fn confirm(yes: bool, deed: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !can_ask() {
        return Err(Failure::Usage(format!("this {deed}: say --yes")));
    }
    eprint!("This {deed}. Go on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Usage("nothing was changed".to_owned())),
    }
}
