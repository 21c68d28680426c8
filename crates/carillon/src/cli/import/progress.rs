//! The progress bar: how much of the file is done, how fast, and how long it will take. Hidden where nobody looks.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Instant;

/// A progress bar on standard error.
pub(super) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// For a file of `size` bytes.
    pub(super) fn new(size: u64) -> Progress {
        // Drawn on a terminal only.
        let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}  {eta} left");
        bar.set_style(style.expect("the template is well-formed"));
        Progress { bar, started: Instant::now() }
    }

    /// Shows how far it has come.
    pub(super) fn show(&self, bytes: u64, imported: u64, failed: u64) {
        let rate = imported as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let failures = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        self.bar.set_message(format!("{imported} accounts, {rate:.0}/s{failures}"));
        self.bar.set_position(bytes);
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
