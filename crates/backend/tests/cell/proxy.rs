//! A proxy in front of an engine, which does to connections what networks and failing engines do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

pub(crate) use carillon_backend::conformance::bus::Fault;

/// Where an engine is.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The proxy. It refuses connections once it is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<ProxyState>,
    wakes: Condvar,
}

struct ProxyState {
    fault: Fault,
    upstream: Upstream,
    /// Whether the next answer is lost, and its connection with it.
    loses_answer: bool,
    open: Vec<Arc<Socket>>,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Proxy {
    pub(crate) fn new(upstream: Upstream) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let state = ProxyState { fault: Fault::None, upstream, loses_answer: false, open: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), wakes: Condvar::new() });
        let for_thread = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connect(client, &for_thread);
            }
        });
        Proxy { port, shared }
    }

    /// From now on this happens to connections.
    pub(crate) fn fault(&self, fault: Fault) {
        let mut state = self.shared.state();
        state.fault = fault;
        if fault == Fault::Cut {
            state.cut();
        }
        drop(state);
        self.shared.wakes.notify_all();
    }

    /// From now on the engine is elsewhere, and connections to the one before end.
    pub(crate) fn moves(&self, upstream: Upstream) {
        let mut state = self.shared.state();
        state.upstream = upstream;
        state.cut();
    }

    /// The next answer is lost, and its connection with it.
    pub(crate) fn lose_answer(&self) {
        self.shared.state().loses_answer = true;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.fault(Fault::Cut);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProxyState {
    fn cut(&mut self) {
        self.open.drain(..).for_each(|socket| socket.end());
    }
}

/// Carries bytes both ways.
fn connect(client: TcpStream, shared: &Arc<Shared>) {
    let mut state = shared.state();
    if state.fault == Fault::Cut {
        return;
    }
    let server = match &state.upstream {
        Upstream::Tcp(address) => TcpStream::connect(address).map(Socket::Tcp),
        Upstream::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
    };
    let Ok(server) = server else { return };
    drop(client.set_nodelay(true));
    let (client, server) = (Arc::new(Socket::Tcp(client)), Arc::new(server));
    state.open.extend([client.clone(), server.clone()]);
    for (from, to, is_answer) in [(client.clone(), server.clone(), false), (server, client, true)] {
        let shared = shared.clone();
        thread::spawn(move || {
            carry(&from, &to, is_answer, &shared);
            from.end();
            to.end();
            shared.state().open.retain(|socket| !Arc::ptr_eq(socket, &from) && !Arc::ptr_eq(socket, &to));
        });
    }
}

fn carry(mut from: &Socket, mut to: &Socket, is_answer: bool, shared: &Shared) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes) else { return };
        let mut state = shared.state();
        while state.fault == Fault::Stalled {
            state = shared.wakes.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.fault == Fault::Cut || is_answer && std::mem::take(&mut state.loses_answer) {
            return;
        }
        drop(state);
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

impl Socket {
    fn end(&self) {
        drop(match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        });
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).read(bytes),
            Socket::Unix(stream) => (&*stream).read(bytes),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => (&*stream).write(bytes),
            Socket::Unix(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
