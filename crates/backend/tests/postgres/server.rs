//! A PostgreSQL server for the tests of this process: Debian's, in a temporary folder, on a Unix socket. It ends with the process, however
//! that ends, and what it keeps need not survive a loss of power.

use carillon_backend::postgres::{Options, PostgresStore};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use tokio_postgres::{Config, NoTls, Row};

/// The server, with the shell that keeps it going until its standard input is closed.
pub(crate) struct Server {
    folder: PathBuf,
    shell: Mutex<Child>,
}

/// A database of its own for a test.
pub(crate) struct Database {
    pub(crate) name: String,
}

/// Runs the server until its standard input is closed.
const RUN: &str = r#"programs=$1; folder=$2; shift 2
"$programs/postgres" -D "$folder/data" -k "$folder" -F -c max_locks_per_transaction=256 \
    -c max_connections=200 -c synchronous_commit=off -c full_page_writes=off "$@" >"$folder/log" 2>&1 &
pid=$!; read -r _; kill -INT $pid; wait $pid; rm -rf "$folder""#;

/// The database that others are copies of.
const TEMPLATE: &str = "carillon_template";

/// The server of this process.
pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start(&["-h", ""], |_| Vec::new());
        server.admin(&format!(
            "CREATE DATABASE {TEMPLATE} ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ));
        drop(PostgresStore::open(server.options(TEMPLATE)).expect("the tables are made"));
        server.run(TEMPLATE, EMPTY);
        server
    })
}

impl Server {
    /// Starts one with these arguments; `files` are put into the folder of its data first.
    pub(crate) fn start(
        arguments: &[&str],
        files: impl FnOnce(&Path) -> Vec<(&'static str, String)>,
    ) -> Server {
        let programs = programs();
        let folder = tempfile::Builder::new().prefix("carillon-pg").tempdir().expect("a folder").keep();
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).expect("the folder is given to the user of the server");
        }
        let as_user = |program: &Path| {
            let mut command = Command::new(program);
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.current_dir(&folder).env("LC_ALL", "C");
            command
        };
        let made = as_user(&programs.join("initdb"))
            .args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "-D"])
            .arg(folder.join("data"))
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (name, text) in files(&folder) {
            let path = folder.join("data").join(name);
            fs::write(&path, text).expect("a file is written");
            // The server wants keys to be read by itself alone.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is closed to others");
            if let Some((uid, gid)) = user {
                chown(&path, Some(uid), Some(gid)).expect("the file is given to the user of the server");
            }
        }
        let shell = as_user(Path::new("/bin/sh"))
            .args(["-c", RUN, "sh"])
            .arg(&programs)
            .arg(&folder)
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the server is started");
        let server = Server { folder, shell: Mutex::new(shell) };
        let port = arguments.iter().position(|one| *one == "-p").map_or("5432", |at| arguments[at + 1]);
        let is_up = || {
            let mut ready = Command::new(programs.join("pg_isready"));
            let ready = ready.arg("-h").arg(&server.folder).args(["-p", port]).output();
            ready.is_ok_and(|ready| ready.status.success())
        };
        while !is_up() {
            let ended = server.shell.lock().expect("nobody panics with it").try_wait();
            assert!(ended.expect("it can be asked").is_none(), "{}", server.log());
            std::thread::yield_now();
        }
        server
    }

    /// What the server says.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// The server's Unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Where a database is.
    pub(crate) fn options(&self, database: &str) -> Options {
        let folder = self.folder.display();
        Options::new(&format!("postgresql://postgres@/{database}?host={folder}")).expect("an address")
    }

    /// Runs a statement in the database `postgres`.
    pub(crate) fn admin(&self, sql: &str) -> Vec<Row> {
        self.run("postgres", sql)
    }

    /// The same where the socket has the name of another port.
    pub(crate) fn admin_at(&self, port: u16, sql: &str) -> Vec<Row> {
        self.run_at(port, "postgres", sql)
    }

    /// Runs statements that give nothing.
    pub(crate) fn batch(&self, database: &str, sql: &str) {
        self.with_client(5432, database, async |client| client.batch_execute(sql).await)
            .expect("they are right");
    }

    fn run(&self, database: &str, sql: &str) -> Vec<Row> {
        self.run_at(5432, database, sql)
    }

    fn run_at(&self, port: u16, database: &str, sql: &str) -> Vec<Row> {
        let rows = self.with_client(port, database, async |client| client.query(sql, &[]).await);
        rows.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    fn with_client<T>(
        &self,
        port: u16,
        database: &str,
        work: impl AsyncFnOnce(&tokio_postgres::Client) -> T,
    ) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut config = Config::new();
            config.host_path(&self.folder).port(port).user("postgres").dbname(database);
            let (client, connection) = config.connect(NoTls).await.expect("the server is there");
            tokio::spawn(connection);
            work(&client).await
        })
    }
}

/// Databases that tests are done with, and that are empty again.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Database {
    /// A database with the tables, and nothing in them.
    pub(crate) fn new() -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = server();
        if let Some(name) = FREE.lock().expect("nobody panics with it").pop() {
            return Database { name };
        }
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.admin(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"));
        Database { name }
    }

    /// A store on it.
    pub(crate) fn open(&self) -> PostgresStore {
        PostgresStore::open(server().options(&self.name)).expect("opens")
    }

    /// Takes an advisory lock, until what is returned is dropped.
    pub(crate) fn hold(&self, key: i64) -> Held {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let client = runtime.block_on(async {
            let config = server().options(&self.name).config;
            let (client, connection) = config.connect(NoTls).await.expect("the server is there");
            tokio::spawn(connection);
            client.query("SELECT pg_advisory_lock($1)", &[&key]).await.expect("it is free");
            client
        });
        Held { _client: client, _runtime: runtime }
    }

    /// Runs a statement in it.
    pub(crate) fn run(&self, sql: &str) -> Vec<Row> {
        server().run(&self.name, sql)
    }
}

/// A lock that is held.
pub(crate) struct Held {
    _client: tokio_postgres::Client,
    _runtime: tokio::runtime::Runtime,
}

/// Empties all tables, which is quicker than to make them again.
const EMPTY: &str = "DO $$ DECLARE one text; BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT IN ('schema', 'event_number', 'node_epoch', 'broadcast_revision') LOOP
        EXECUTE format('DELETE FROM %I', one);
    END LOOP;
    UPDATE event_number SET newest = 0;
    UPDATE node_epoch SET newest = 0;
    UPDATE broadcast_revision SET newest = 0;
    FOR one IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL LOOP
        PERFORM setval(one::regclass, 1, false);
    END LOOP;
END $$";

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.run(EMPTY);
            FREE.lock().expect("nobody panics with it").push(self.name.clone());
        }
    }
}

/// The folder of the newest version's programs.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = versions.map(|entry| entry.path()).collect();
    versions.sort();
    versions
        .pop()
        .expect("the Debian package postgresql is installed (tests/interop/setup does it)")
        .join("bin")
}

/// The user and the group that the server runs as, where this process is root: it refuses to be that.
fn unprivileged() -> Option<(u32, u32)> {
    let own = fs::metadata("/proc/self").ok().map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
    if own != Some(0) {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("there are users");
    let ids = |name: &str| {
        let mut fields = users.lines().find(|line| line.starts_with(&format!("{name}:")))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody"))
}
