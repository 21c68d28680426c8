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

impl Meter {
    pub(super) fn start(server: &Processes) -> Result<Self, RunError> {
        Ok(Self {
            server: server.clone(),
            before: server.usage()?,
            kernel: KernelMemory::now()?,
            own: Usage::of_self()?,
        })
    }

    /// CPU time the server has used up to now; zero when it is out of sight.
    pub(super) fn server_cpu(&self) -> Result<Duration, RunError> {
        Ok(self.server.cpu()?.unwrap_or_default())
    }

    /// Whether the server can be seen.
    pub(super) fn sees_server(&self) -> bool {
        self.before.is_some()
    }

    /// CPU time since the start, a login.
    pub(super) fn report_login_cpu(&self, sessions: usize, report: &mut Report) -> Result<(), RunError> {
        let Some(before) = self.before else { return Ok(()) };
        let spent = self.server_cpu()?.saturating_sub(before.cpu);
        let each = spent.as_secs_f64() * 1000.0 / sessions.max(1) as f64;
        report.figure("server CPU a login", "server_cpu_ms_per_login", each, "ms");
        Ok(())
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
