//! What the server and the kernel spend between two moments.

use std::time::Duration;

use super::RunError;
use crate::measure::{KernelMemory, Processes, Usage};
use crate::report::Report;

/// The state of things before a run.
pub(super) struct Meter {
    server: Processes,
    before: Option<Usage>,
    kernel: KernelMemory,
    own: Usage,
}

/// CPU time of the server, if it is in sight, and of the load tester itself: who of the two is at his limit?
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    server: Option<Duration>,
    own: Duration,
}

impl Spent {
    /// What was used since an earlier moment.
    pub(super) fn since(self, before: Self) -> Self {
        let server = self.server.zip(before.server).map(|(now, before)| now.saturating_sub(before));
        Self { server, own: self.own.saturating_sub(before.own) }
    }

    /// Adds what a million of something cost.
    pub(super) fn report(self, count: usize, what: &str, report: &mut Report) {
        let unit = format!("s a million {what}");
        self.each(count, 1e6, |name, key, value| {
            report.figure(name, &format!("{key}_cpu_s_per_million"), value, &unit);
        });
    }

    /// Adds what a login cost.
    pub(super) fn report_logins(self, count: usize, report: &mut Report) {
        self.each(count, 1e3, |name, key, value| {
            report.figure(name, &format!("{key}_cpu_ms_per_login"), value, "ms a login");
        });
    }

    /// Adds what idling cost.
    pub(super) fn report_idle(self, duration: Duration, report: &mut Report) {
        self.each(1, 100.0 / duration.as_secs_f64().max(f64::MIN_POSITIVE), |name, key, value| {
            report.figure(name, &format!("{key}_idle_cpu_percent_of_core"), value, "% of a core, idle");
        });
    }

    fn each(self, count: usize, scale: f64, mut tell: impl FnMut(&str, &str, f64)) {
        let cost = |spent: Duration| spent.as_secs_f64() * scale / count.max(1) as f64;
        if let Some(server) = self.server {
            tell("server CPU", "server", cost(server));
        }
        tell("client CPU", "client", cost(self.own));
    }
}

impl Meter {
    pub(super) fn start(server: &Processes) -> Result<Self, RunError> {
        Ok(Self {
            server: server.clone(),
            before: server.usage()?,
            kernel: KernelMemory::now()?,
            own: Usage::of_self()?,
        })
    }

    /// CPU time used up to now.
    pub(super) fn spent(&self) -> Result<Spent, RunError> {
        Ok(Spent { server: self.server.cpu()?, own: Usage::of_self()?.cpu })
    }

    /// Memory that was taken since the start, a session.
    pub(super) fn report_memory(&self, sessions: usize, report: &mut Report) -> Result<(), RunError> {
        let each = |now: u64, before: u64| (now as f64 - before as f64) / sessions.max(1) as f64;
        if let (Some(before), Some(now)) = (self.before, self.server.usage()?) {
            report.figure(
                "server memory before",
                "server_pss_before_mib",
                mebibytes(before.pss_bytes),
                "MiB",
            );
            report.figure("server memory", "server_pss_mib", mebibytes(now.pss_bytes), "MiB");
            let bytes = each(now.pss_bytes, before.pss_bytes);
            report.line("server, a session", format_args!("{:.2} KiB", bytes / 1024.0));
            report.value("server_bytes_per_session", bytes.round());
        }
        let own = each(Usage::of_self()?.pss_bytes, self.own.pss_bytes);
        report.line("client, a session", format_args!("{:.2} KiB", own / 1024.0));
        report.value("client_bytes_per_session", own.round());
        let kernel = KernelMemory::now()?;
        let slab = each(kernel.slab_bytes, self.kernel.slab_bytes);
        report.line("kernel, both ends", format_args!("{:.2} KiB a session", slab / 1024.0));
        report.value("kernel_bytes_per_session_both_ends", slab.round());
        let queued = each(kernel.tcp_queued_bytes, self.kernel.tcp_queued_bytes);
        report.line("queued in sockets", format_args!("{:.2} KiB a session", queued / 1024.0));
        report.value("kernel_queued_bytes_per_session", queued.round());
        Ok(())
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
