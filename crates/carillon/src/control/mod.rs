//! `control.sock` in the data folder, where `carillon upgrade` asks a node to go on in another process. Running a program is for the
//! owner of the machine's account, so this is no HTTP endpoint: the file is its owner's, and so is whoever connects, or root.
//!
//! All other commands ask over HTTP, also on the node's own machine: they find its address and its admin key in the data folder.
//!
//! A client sends one line of JSON, [`Request`], and gets lines of [`Answer`], of which the last says how it ended.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// To go on in another process.
    Upgrade {
        /// The absolute path of its binary; none for that of the running process.
        binary: Option<PathBuf>,
    },
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What has been reached. More answers follow.
    Step(String),
    /// The node goes on in another process.
    Done {
        /// The process.
        pid: u32,
        /// Sessions that it serves.
        sessions: u64,
        /// How long clients waited, milliseconds.
        silence_ms: u64,
    },
    /// Why it did not happen.
    Failed(String),
}

/// Asks the node on a data folder, and gives `each` its answers, in their order. The last one is no [`Answer::Step`].
///
/// # Errors
/// If no node listens there, it ends before the last answer, or `each` fails.
pub fn ask<E: From<io::Error>>(
    data_dir: &Path,
    request: &Request,
    mut each: impl FnMut(&Answer) -> Result<(), E>,
) -> Result<Answer, E> {
    let mut stream = at(data_dir, FILE, |path| UnixStream::connect(path))?;
    let line = serde_json::to_string(request).map_err(io::Error::from)?;
    match stream.write_all(format!("{line}\n").as_bytes()) {
        // It was refused before it was read, and that can be read.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    for line in BufReader::new(stream).lines() {
        let answer: Answer = serde_json::from_str(&line?).map_err(io::Error::from)?;
        each(&answer)?;
        if !matches!(answer, Answer::Step(_)) {
            return Ok(answer);
        }
    }
    Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
}

/// The requests of a node's clients.
#[derive(Debug)]
pub struct Control {
    requests: mpsc::Receiver<Asked>,
    busy: Arc<AtomicBool>,
    /// Its file is removed with it.
    _file: Option<SocketFile>,
}

impl Control {
    /// Listens in the data folder of a node that has opened its store: any other socket there is one of a process that has ended,
    /// or hands over to this one. A folder that can have no sockets is logged.
    pub fn listen(data_dir: &Path, runtime: &Handle) -> Control {
        let (sender, requests) = mpsc::channel(1);
        let busy = Arc::new(AtomicBool::new(false));
        let file = match bind(data_dir, runtime) {
            Ok((file, listener)) => {
                runtime.spawn(serve(listener, sender, busy.clone()));
                Some(file)
            }
            Err(error) => {
                let path = data_dir.join(FILE);
                tracing::warn!(%error, path = %path.display(), "cannot listen; only SIGUSR2 asks for an upgrade");
                None
            }
        };
        Control { requests, busy, _file: file }
    }

    /// The next request. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> Asked {
        match self.requests.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        }
    }

    /// A request without a client; none when there is another.
    pub fn by_signal(&self) -> Option<Asked> {
        Some(Asked { binary: None, client: None, turn: Some(OnlyRequest::take(&self.busy)?) })
    }

    /// From now on every request is refused: the node ends.
    pub fn close(&mut self) {
        self.requests.close();
        while let Ok(asked) = self.requests.try_recv() {
            asked.failed(ENDING);
        }
    }
}

/// A request that the node has to answer. Others are refused until then.
#[derive(Debug)]
pub struct Asked {
    binary: Option<PathBuf>,
    client: Option<UnixStream>,
    /// Its end lets another request in.
    turn: Option<OnlyRequest>,
}

impl Asked {
    /// The binary that is to go on; none for that of this process.
    pub fn binary(&self) -> Option<PathBuf> {
        self.binary.clone()
    }

    /// Tells log and client what has been reached.
    pub fn step(&mut self, step: &str) {
        tracing::info!("{step}");
        self.say(&Answer::Step(step.to_owned()));
    }

    /// Tells the client that another process serves the node.
    pub fn done(mut self, pid: u32, sessions: u64, silence_ms: u64) {
        self.say(&Answer::Done { pid, sessions, silence_ms });
    }

    /// Tells the client why that is not so. Whoever hears it may ask again.
    pub fn failed(mut self, why: &str) {
        self.turn = None;
        self.say(&Answer::Failed(why.to_owned()));
    }

    /// One that is gone, or does not read, is told no more. It does not block: the node has others to serve.
    fn say(&mut self, answer: &Answer) {
        if let Some(client) = &mut self.client
            && client.write_all(&line(answer)).is_err()
        {
            self.client = None;
        }
    }
}

/// The right to be the only request.
#[derive(Debug)]
struct OnlyRequest(Arc<AtomicBool>);

impl OnlyRequest {
    fn take(busy: &Arc<AtomicBool>) -> Option<OnlyRequest> {
        let free = busy.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok();
        free.then(|| OnlyRequest(busy.clone()))
    }
}

impl Drop for OnlyRequest {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The file of a listening socket, by which the node is found.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode: the process that takes over puts its own file in this one's place.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|present| present == self.identity) {
            // It cannot be connected to any more, and the next node replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

fn bind(data_dir: &Path, runtime: &Handle) -> io::Result<(SocketFile, tokio::net::UnixListener)> {
    // Renamed once it listens, so that a client always finds a node: the one before, or this one.
    let beside = format!(".{FILE}.{}", std::process::id());
    let (path, beside_path) = (data_dir.join(FILE), data_dir.join(&beside));
    match fs::remove_file(&beside_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = at(data_dir, &beside, |path| UnixListener::bind(path))?;
    let publish = || {
        fs::set_permissions(&beside_path, fs::Permissions::from_mode(0o600))?;
        let identity = identity(&beside_path)?;
        fs::rename(&beside_path, &path)?;
        Ok(SocketFile { path: path.clone(), identity })
    };
    let file = publish().inspect_err(|_: &io::Error| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside_path);
    })?;
    listener.set_nonblocking(true)?;
    let _within = runtime.enter();
    Ok((file, tokio::net::UnixListener::from_std(listener)?))
}

/// Does something with the path of a socket. An address has room for 107 bytes (unix(7)); a longer path is reached through the
/// opened folder.
fn at<T>(folder: &Path, name: &str, with: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= ADDRESS_BYTES_MAX {
        return with(&path);
    }
    let folder = File::open(folder)?;
    with(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

async fn serve(listener: tokio::net::UnixListener, requests: mpsc::Sender<Asked>, busy: Arc<AtomicBool>) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // As when there are no descriptors. It may pass.
                tracing::warn!(%error, "control.sock: a client was not accepted");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            refuse(stream, "too many clients ask at once");
            continue;
        };
        let (requests, busy) = (requests.clone(), busy.clone());
        tokio::spawn(async move {
            hear(stream, &requests, &busy).await;
            drop(place);
        });
    }
}

/// Takes one request of a client.
async fn hear(mut stream: tokio::net::UnixStream, requests: &mpsc::Sender<Asked>, busy: &Arc<AtomicBool>) {
    let own = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == own || peer.uid() == 0 => {}
        _ => return refuse(stream, "only the user of the node, or root, may ask for an upgrade"),
    }
    let request = match tokio::time::timeout(PATIENCE, read(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(why)) => return refuse(stream, &why),
        Err(_) => return refuse(stream, "the request takes too long"),
    };
    let Request::Upgrade { binary } = request;
    if let Some(binary) = binary.as_ref().filter(|binary| !binary.is_absolute()) {
        return refuse(stream, &format!("{}: not an absolute path", binary.display()));
    }
    let Some(turn) = OnlyRequest::take(busy) else { return refuse(stream, "an upgrade is under way") };
    let Ok(client) = stream.into_std() else { return };
    let asked = Asked { binary, client: Some(client), turn: Some(turn) };
    if let Err(mpsc::error::TrySendError::Closed(asked) | mpsc::error::TrySendError::Full(asked)) =
        requests.try_send(asked)
    {
        asked.failed(ENDING);
    }
}

/// Reads the line that a request is.
async fn read(stream: &mut tokio::net::UnixStream) -> Result<Request, String> {
    let mut line = Vec::new();
    loop {
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            return serde_json::from_slice(&line[..end]).map_err(|error| format!("not a request: {error}"));
        }
        if line.len() >= REQUEST_BYTES_MAX {
            return Err(format!("a request has {REQUEST_BYTES_MAX} bytes at most"));
        }
        let room = (REQUEST_BYTES_MAX - line.len()) as u64;
        match (&mut *stream).take(room).read_buf(&mut line).await {
            Ok(0) => return Err("a request is a line of JSON".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Tells a client why it gets nothing, if it reads.
fn refuse(stream: tokio::net::UnixStream, why: &str) {
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write_all(&line(&Answer::Failed(why.to_owned())));
    }
}

fn line(answer: &Answer) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).expect("numbers and text");
    line.push(b'\n');
    line
}

/// The name of the socket in the data folder.
pub const FILE: &str = "control.sock";
/// What `sun_path` holds besides the zero at its end.
const ADDRESS_BYTES_MAX: usize = 107;
/// A path has up to 4096 bytes, of which JSON writes some as six.
const REQUEST_BYTES_MAX: usize = 32 * 1024;
/// Clients that may be about to say what they want.
const CLIENTS_MAX: usize = 8;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(5);
const ENDING: &str = "the node is about to end";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use tokio::runtime::Runtime;

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    }

    fn said(folder: &Path, bytes: &[u8]) -> String {
        let mut stream = at(folder, FILE, |path| UnixStream::connect(path)).expect("it listens");
        stream.write_all(bytes).expect("written");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("text");
        said
    }

    fn asking(folder: &Path) -> std::thread::JoinHandle<Vec<Answer>> {
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            let mut answers = Vec::new();
            let request = Request::Upgrade { binary: Some("/bin/other".into()) };
            ask(&folder, &request, |answer| {
                answers.push(answer.clone());
                io::Result::Ok(())
            })
            .expect("answered");
            answers
        })
    }

    #[test]
    fn a_request_is_answered_and_another_refused_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = runtime();
        let mut control = Control::listen(folder.path(), runtime.handle());
        let file = fs::metadata(folder.path().join(FILE)).expect("the socket's file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        let client = asking(folder.path());
        let mut asked = runtime.block_on(control.next());
        assert_eq!(asked.binary(), Some("/bin/other".into()));
        asked.step("one");
        assert!(control.by_signal().is_none());
        let upgrade = b"{\"upgrade\":{\"binary\":null}}\n";
        assert_eq!(said(folder.path(), upgrade), "{\"failed\":\"an upgrade is under way\"}\n");
        asked.done(7, 8, 9);
        let done = Answer::Done { pid: 7, sessions: 8, silence_ms: 9 };
        assert_eq!(client.join().expect("it ended"), [Answer::Step("one".to_owned()), done]);
        assert!(control.by_signal().is_some(), "the next one may ask");
        control.close();
        assert_eq!(said(folder.path(), upgrade), "{\"failed\":\"the node is about to end\"}\n");
        drop(control);
        assert!(!folder.path().join(FILE).exists());
    }

    #[test]
    fn what_is_no_request_is_refused_and_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = runtime();
        let mut control = Control::listen(folder.path(), runtime.handle());
        let silent = at(folder.path(), FILE, |path| UnixStream::connect(path)).expect("it listens");
        let failed = |bytes: &[u8]| said(folder.path(), bytes);
        assert!(failed(b"{}\n").starts_with("{\"failed\":\"not a request"));
        assert!(failed(b"{\"upgrade\":{\"binary\":null,\"x\":1}}\n").contains("unknown field"));
        let relative = "{\"failed\":\"carillon: not an absolute path\"}\n";
        assert_eq!(failed(b"{\"upgrade\":{\"binary\":\"carillon\"}}\n"), relative);
        let long = "{\"failed\":\"a request has 32768 bytes at most\"}\n";
        assert_eq!(failed(&vec![b' '; REQUEST_BYTES_MAX]), long);
        let client = asking(folder.path());
        runtime.block_on(control.next()).failed("no");
        assert_eq!(client.join().expect("it ended"), [Answer::Failed("no".to_owned())]);
        drop(silent);
    }

    #[test]
    fn more_clients_than_have_a_place_are_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = runtime();
        let _control = Control::listen(folder.path(), runtime.handle());
        let connect = || at(folder.path(), FILE, |path| UnixStream::connect(path)).expect("it listens");
        let _silent: Vec<_> = (0..CLIENTS_MAX).map(|_| connect()).collect();
        let mut said = String::new();
        connect().read_to_string(&mut said).expect("text");
        assert_eq!(said, "{\"failed\":\"too many clients ask at once\"}\n");
    }

    #[test]
    fn a_client_that_does_not_read_holds_up_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = runtime();
        let mut control = Control::listen(folder.path(), runtime.handle());
        let mut client = at(folder.path(), FILE, |path| UnixStream::connect(path)).expect("it listens");
        client.write_all(b"{\"upgrade\":{\"binary\":null}}\n").expect("written");
        let mut asked = runtime.block_on(control.next());
        let step = "x".repeat(1 << 20);
        asked.step(&step);
        asked.step(&step);
        assert!(asked.client.is_none());
        asked.done(1, 1, 1);
    }

    #[test]
    fn a_long_path_will_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = folder.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&long).expect("made");
        let runtime = runtime();
        let mut control = Control::listen(&long, runtime.handle());
        let client = asking(&long);
        runtime.block_on(control.next()).failed("no");
        assert_eq!(client.join().expect("it ended"), [Answer::Failed("no".to_owned())]);
        drop(control);
        assert_eq!(fs::read_dir(&long).expect("readable").count(), 0);
    }

    #[test]
    fn the_file_of_the_one_who_takes_over_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = runtime();
        // A file that a dead process left.
        drop(UnixListener::bind(folder.path().join(FILE)).expect("bound"));
        let old = Control::listen(folder.path(), runtime.handle());
        let mut new = Control::listen(folder.path(), runtime.handle());
        drop(old);
        let client = asking(folder.path());
        runtime.block_on(new.next()).failed("the new one");
        assert_eq!(client.join().expect("it ended"), [Answer::Failed("the new one".to_owned())]);
    }
}
