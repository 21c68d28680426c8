//! Telling the service manager how the node is, as sd_notify(3) describes it: short texts by datagram to the socket that
//! `NOTIFY_SOCKET` names. Without one nothing is said and nothing runs.

use carillon_server::node::Node;
use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The service manager, if there is one that listens.
#[derive(Clone, Debug, Default)]
pub struct Supervisor(Option<Arc<Channel>>);

#[derive(Debug)]
struct Channel {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How long it waits for a sign of life before it restarts the node, if it does.
    patience: Option<Duration>,
}

impl Supervisor {
    /// The service manager that the environment names.
    ///
    /// # Errors
    /// When it names a socket that cannot be one.
    pub fn from_env() -> io::Result<Supervisor> {
        Supervisor::find(|name| std::env::var_os(name))
    }

    fn find(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Supervisor> {
        let Some(name) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(Supervisor::default());
        };
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        // WATCHDOG_PID says for whom the time is meant: a child inherits the variables.
        let is_meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let patience = number("WATCHDOG_USEC").filter(|us| is_meant && *us > 0).map(Duration::from_micros);
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read is no reason to wait.
        socket.set_nonblocking(true)?;
        Ok(Supervisor(Some(Arc::new(Channel { socket, address: address(&name)?, patience }))))
    }

    /// The node takes sessions. `status` is for people.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The configuration is being read again; [`Supervisor::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let us = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={us}\nSTATUS=Reading the configuration again."));
    }

    /// Another process is the node's main one from now on, which the manager has to watch; what this one tells later is ignored. A
    /// sign of life, too: the other process begins with its own.
    pub fn main_pid(&self, pid: u32) {
        self.tell(&format!("MAINPID={pid}\nWATCHDOG=1"));
    }

    /// The node drains, which takes as long as `timeout` at most, and a little for what comes after.
    pub fn stopping(&self, timeout: Duration) {
        let us = (timeout + AFTER_DRAIN).as_micros();
        self.tell(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={us}\nSTATUS=Draining."));
    }

    /// Gives signs of life as long as every shard of the node does, twice in the time that the manager waits for one. Ends
    /// with the runtime; does nothing when no signs of life are wanted.
    pub async fn keep_alive(self, node: Node) {
        let Some(patience) = self.0.as_ref().and_then(|channel| channel.patience) else { return };
        let mut ticks = tokio::time::interval(patience / 2);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (alive, answer) = oneshot::channel();
            node.pulse(Box::new(move |()| {
                // Nobody waits any more when the runtime has ended.
                let _ = alive.send(());
            }));
            // A shard that hangs holds this up. One that has died says so at once, and there is nothing to tell.
            if answer.await.is_ok() {
                self.tell("WATCHDOG=1");
            }
        }
    }

    fn tell(&self, state: &str) {
        let Some(channel) = &self.0 else { return };
        if let Err(error) = channel.socket.send_to_addr(state.as_bytes(), &channel.address) {
            tracing::warn!(%error, "cannot tell the service manager");
        }
    }
}

/// A path, or after an `@` a name in Linux' abstract namespace.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
        None => SocketAddr::from_pathname(name),
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// For the store to be closed once everyone is gone.
const AFTER_DRAIN: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn told(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).expect("something was told");
        String::from_utf8(buffer[..length].to_vec()).expect("it is text")
    }

    fn of(variables: &[(&str, &str)]) -> Supervisor {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).into());
        Supervisor::find(find).expect("the socket may be one")
    }

    #[test]
    fn it_is_told_by_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let supervisor = of(&[("NOTIFY_SOCKET", path.to_str().unwrap())]);
        supervisor.ready("two\nlines");
        assert_eq!(told(&socket), "READY=1\nSTATUS=two lines");
        supervisor.stopping(Duration::from_secs(10));
        assert_eq!(told(&socket), "STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000\nSTATUS=Draining.");
    }

    #[test]
    fn it_is_told_of_the_process_that_took_over_and_listens_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        of(&[("NOTIFY_SOCKET", path.to_str().unwrap())]).main_pid(4711);
        assert_eq!(told(&socket), "MAINPID=4711\nWATCHDOG=1");
    }

    #[test]
    fn it_is_told_by_an_abstract_name() {
        let name = format!("carillon-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        of(&[("NOTIFY_SOCKET", &format!("@{name}"))]).reloading();
        let told = told(&socket);
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().split('\n').next().unwrap();
        assert!(time.parse::<u64>().unwrap() > 0, "{told}");
    }

    #[test]
    fn signs_of_life_are_for_the_process_that_they_are_asked_of() {
        let patience = |variables: &[(&str, &str)]| of(variables).0.and_then(|channel| channel.patience);
        let own = std::process::id().to_string();
        let socket = ("NOTIFY_SOCKET", "/run/notify");
        assert_eq!(patience(&[socket]), None);
        let minute = Some(Duration::from_secs(60));
        assert_eq!(patience(&[socket, ("WATCHDOG_USEC", "60000000")]), minute);
        assert_eq!(patience(&[socket, ("WATCHDOG_USEC", "60000000"), ("WATCHDOG_PID", &own)]), minute);
        assert_eq!(patience(&[socket, ("WATCHDOG_USEC", "60000000"), ("WATCHDOG_PID", "1")]), None);
        assert!(of(&[]).0.is_none());
    }
}
