//! Signals as values: SIGHUP asks to read the configuration again, SIGUSR2 to go on in a new process, SIGTERM and SIGINT to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Read the configuration again (SIGHUP).
    Reload,
    /// Take no new sessions, let the present ones go, end (the first SIGTERM or SIGINT).
    Drain,
    /// End at once (the second).
    Quit,
    /// Go on in a process of the present binary (SIGUSR2).
    Upgrade,
}

/// The signals sent to this process from now on.
#[derive(Debug)]
pub struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    upgrade: Signal,
    order: Order,
}

impl Signals {
    /// Takes over the handling of the four signals. To be called in a Tokio runtime, and before anyone is told that the
    /// process is there: until then a signal ends it.
    pub fn listen() -> io::Result<Signals> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            upgrade: signal(SignalKind::user_defined2())?,
            order: Order::default(),
        })
    }

    /// The next wish. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            Some(()) = self.hangup.recv() => Wish::Reload,
            Some(()) = self.terminate.recv() => self.order.end(),
            Some(()) = self.interrupt.recv() => self.order.end(),
            Some(()) = self.upgrade.recv() => Wish::Upgrade,
            else => std::future::pending().await,
        }
    }
}

/// Whether an end was asked for before.
#[derive(Clone, Copy, Debug, Default)]
enum Order {
    #[default]
    Running,
    Draining,
}

impl Order {
    /// What one more request to end means.
    fn end(&mut self) -> Wish {
        match std::mem::replace(self, Order::Draining) {
            Order::Running => Wish::Drain,
            Order::Draining => Wish::Quit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_to_end_is_for_now() {
        let mut order = Order::default();
        assert_eq!([order.end(), order.end(), order.end()], [Wish::Drain, Wish::Quit, Wish::Quit]);
    }

    #[tokio::test]
    async fn signals_become_wishes_in_their_order() {
        let mut signals = Signals::listen().expect("handlers");
        let own = std::process::id().to_string();
        for (signal, wish) in
            [("-HUP", Wish::Reload), ("-TERM", Wish::Drain), ("-HUP", Wish::Reload), ("-INT", Wish::Quit)]
        {
            let sent = std::process::Command::new("kill").args([signal, &own]).status().expect("kill");
            assert!(sent.success());
            assert_eq!(signals.next().await, wish);
        }
    }
}
