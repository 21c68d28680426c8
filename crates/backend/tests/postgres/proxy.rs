//! A proxy in front of the server that cuts connections where it is told to: it reads what clients ask, as far as finding COMMIT takes.

use crate::server::server;
use carillon_backend::postgres::Options;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What happens to a COMMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nothing.
    Not,
    /// The connection ends before the server has it.
    Before,
    /// The server commits, and the connection ends before its answer comes.
    After,
    /// The server commits, and no answer ever comes.
    Stalled,
}

/// The proxy. New connections are refused once it is dropped.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// What happens to the next COMMITs.
    cuts: Mutex<VecDeque<Cut>>,
    refuses: AtomicBool,
}

impl Proxy {
    pub(crate) fn new() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::<Shared>::default();
        let for_thread = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if !for_thread.refuses.load(Ordering::SeqCst) {
                    connect(client, &for_thread);
                }
            }
        });
        Proxy { port, shared }
    }

    /// Where a database is, through the proxy.
    pub(crate) fn options(&self, database: &str) -> Options {
        self.options_with(database, "sslmode=disable")
    }

    /// The same with other parameters of the address.
    pub(crate) fn options_with(&self, database: &str, parameters: &str) -> Options {
        let url = format!("postgresql://postgres@127.0.0.1:{}/{database}?{parameters}", self.port);
        Options::new(&url).expect("an address")
    }

    /// What happens to the next COMMITs; afterwards nothing does.
    pub(crate) fn cut(&self, cuts: &[Cut]) {
        self.shared.cuts.lock().expect("nobody panics with it").extend(cuts);
    }

    /// Whether all that was to be cut has been.
    pub(crate) fn is_done(&self) -> bool {
        self.shared.cuts.lock().expect("nobody panics with it").is_empty()
    }

    /// From now on new connections are refused, or they are not.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::SeqCst);
    }
}

/// Carries bytes both ways.
fn connect(client: TcpStream, shared: &Arc<Shared>) {
    let server = UnixStream::connect(server().socket()).expect("the server is there");
    let (to_client, from_server) =
        (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
    let cut = Arc::new(Mutex::new(Cut::Not));
    let (shared, noted) = (shared.clone(), cut.clone());
    thread::spawn(move || {
        requests(&client, &server, &shared, &noted);
        drop((client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both)));
    });
    thread::spawn(move || {
        answers(&from_server, &to_client, &cut);
        drop((to_client.shutdown(Shutdown::Both), from_server.shutdown(Shutdown::Both)));
    });
}

/// Carries requests, message by message, until the connection ends or is to be cut.
fn requests(mut client: &TcpStream, mut server: &UnixStream, shared: &Shared, cut: &Mutex<Cut>) {
    let mut is_first = true;
    loop {
        // The first message has no type.
        let mut head = vec![0; if is_first { 4 } else { 5 }];
        if client.read_exact(&mut head).is_err() {
            return;
        }
        let length = head.last_chunk().map_or(4, |length| u32::from_be_bytes(*length));
        let mut body = vec![0; length.saturating_sub(4) as usize];
        if client.read_exact(&mut body).is_err() {
            return;
        }
        if !is_first && head[0] == b'Q' && body == b"COMMIT\0" {
            let next = shared.cuts.lock().expect("nobody panics with it").pop_front();
            let next = next.unwrap_or(Cut::Not);
            if next == Cut::Before {
                return;
            }
            *cut.lock().expect("nobody panics with it") = next;
        }
        is_first = false;
        head.extend(body);
        if server.write_all(&head).is_err() {
            return;
        }
    }
}

/// Carries answers, until the connection ends or the answer to a COMMIT that is to be cut comes.
fn answers(mut server: &UnixStream, mut client: &TcpStream, cut: &Mutex<Cut>) {
    let mut bytes = [0; 8192];
    loop {
        let Ok(count @ 1..) = server.read(&mut bytes) else { return };
        let is_answer = bytes[..count].windows(7).any(|tag| tag == b"COMMIT\0");
        match *cut.lock().expect("nobody panics with it") {
            Cut::After if is_answer => return,
            Cut::Stalled if is_answer => {
                // Until the client gives up.
                drop(client.read(&mut [0]));
                return;
            }
            _ => {}
        }
        if client.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}
