//! Debian's servers for the tests of this process, each in a temporary folder. They end with the process, however that ends.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Runs a program until standard input is closed. The folder goes with it.
const RUN: &str = r#"folder=$1; shift; "$@" >>"$folder/log" 2>&1 &
pid=$!; read -r _; kill -KILL $pid; wait $pid 2>/dev/null; rm -rf "$folder""#;

/// A server that runs.
pub(crate) struct Server {
    folder: PathBuf,
    shell: Child,
}

impl Server {
    fn start(program: &str, package: &str, arguments: impl FnOnce(&Path) -> Vec<String>) -> Server {
        let program =
            ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(|folder| Path::new(folder).join(program));
        let program = program.iter().find(|path| path.exists());
        let program = program.unwrap_or_else(|| {
            panic!("the Debian package {package} is installed (tests/interop/setup does it)")
        });
        let folder = tempfile::Builder::new().prefix("carillon-cell").tempdir().expect("a folder").keep();
        let shell = Command::new("/bin/sh")
            .args(["-c", RUN, "sh"])
            .arg(&folder)
            .arg(program)
            .args(arguments(&folder))
            .stdin(Stdio::piped())
            .spawn()
            .expect("the server is started");
        Server { folder, shell }
    }

    /// Waits until there is something, unless the server ends before.
    fn wait<T>(&self, mut there: impl FnMut(&Path) -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = there(&self.folder) {
                return found;
            }
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(30), "{}", log());
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        drop(self.shell.wait());
    }
}

/// A port for a server that cannot be told to find one: below those that the system gives away, so that nobody is given it meanwhile.
#[cfg(feature = "redis")]
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (number % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A NATS server.
pub(crate) struct Nats {
    _server: Server,
    pub(crate) address: SocketAddr,
}

impl Nats {
    /// With these lines of configuration, in which `FOLDER` stands for its folder.
    pub(crate) fn start(config: &str) -> Nats {
        let server = Server::start("nats-server", "nats-server", |folder| {
            let path = folder.join("config");
            let folder = folder.to_string_lossy().into_owned();
            fs::write(path, config.replace("FOLDER", &folder)).expect("it is written");
            let config = format!("{folder}/config");
            ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", &folder, "-c", &config]
                .map(str::to_owned)
                .to_vec()
        });
        let address = server.wait(|folder| {
            let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
            let text = files
                .filter(|path| path.extension().is_some_and(|extension| extension == "ports"))
                .find_map(|path| fs::read_to_string(path).ok())?;
            let address =
                text.split_once("\"nats\":[\"nats://").or_else(|| text.split_once("\"nats\":[\"tls://"))?.1;
            address.split('"').next()?.parse().ok()
        });
        Nats { _server: server, address }
    }
}

/// A Redis server, on a Unix socket.
pub(crate) struct Redis {
    _server: Server,
    pub(crate) socket: PathBuf,
}

impl Redis {
    /// With these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Redis {
        let server = Server::start("redis-server", "redis-server", |folder| {
            let folder = folder.to_string_lossy().into_owned();
            let socket = format!("{folder}/socket");
            let own = [
                "--port",
                "0",
                "--unixsocket",
                &socket,
                "--dir",
                &folder,
                "--save",
                "",
                "--appendonly",
                "no",
            ];
            own.iter().chain(arguments).map(|argument| (*argument).to_owned()).collect()
        });
        let socket = server.wait(|folder| {
            let socket = folder.join("socket");
            UnixStream::connect(&socket).is_ok().then_some(socket)
        });
        Redis { _server: server, socket }
    }

    /// Sends commands, one per line, and reads until the answer contains something.
    pub(crate) fn say(&self, commands: &str, until: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).expect("the server is there");
        stream.write_all(commands.as_bytes()).expect("it listens");
        let (mut answer, mut bytes) = (String::new(), [0; 4096]);
        while !answer.contains(until) {
            let count = stream.read(&mut bytes).expect("it answers");
            assert!(count > 0, "{commands}: {answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        answer
    }
}
