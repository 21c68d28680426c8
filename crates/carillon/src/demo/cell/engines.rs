//! The engines that the nodes share: the PostgreSQL and the NATS that are installed, in a folder of their own.

use super::PATIENCE;
use super::process::{Program, User};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A PostgreSQL on a Unix socket and a NATS on loopback, with nothing in them.
pub(super) struct Engines {
    _postgres: Program,
    _nats: Program,
    /// The database.
    pub(super) store_url: String,
    /// The bus.
    pub(super) nats_url: String,
    /// What they are, for people.
    pub(super) what: String,
}

/// How often it is looked whether an engine is ready.
const LOOK: Duration = Duration::from_millis(20);

impl Engines {
    /// Starts them in this folder.
    ///
    /// # Errors
    /// What has to be installed, or what an engine said.
    pub(super) fn start(folder: &Path) -> Result<Engines, String> {
        let programs = postgres_programs()?;
        let nats = in_path("nats-server").ok_or(
            "there is no nats-server in PATH; on Debian or Ubuntu `apt install nats-server` installs it, elsewhere see https://docs.nats.io/running-a-nats-service/introduction/installation",
        )?;
        let user = postgres_user()?;
        if let Some(User { uid, gid }) = user {
            std::os::unix::fs::chown(folder, Some(uid), Some(gid)).map_err(|e| e.to_string())?;
        }
        let postgres = start_postgres(&programs, folder, user)?;
        let (nats, nats_url) = start_nats(&nats, folder)?;
        let version = output(Command::new(programs.join("postgres")).arg("--version"))?;
        let what = format!("{} on a Unix socket, NATS on {nats_url}", version.trim());
        let store_url = format!("postgresql://postgres@/carillon?host={}", folder.display());
        Ok(Engines { _postgres: postgres, _nats: nats, store_url, nats_url, what })
    }
}

/// The folder of PostgreSQL's programs: Debian's newest, or that of `initdb` in PATH.
fn postgres_programs() -> Result<PathBuf, String> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path()).max_by_key(number).map(|path| path.join("bin"));
    let has_all = |path: &PathBuf| path.join("initdb").exists() && path.join("postgres").exists();
    let beside = || in_path("initdb").and_then(|path| Some(path.parent()?.to_owned()));
    newest.filter(has_all).or_else(beside).ok_or_else(|| {
        "there is no PostgreSQL: neither initdb in PATH nor /usr/lib/postgresql/*/bin; on Debian or Ubuntu `apt install postgresql` installs it"
            .to_owned()
    })
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// PostgreSQL refuses to run as root: then it runs as the user that its package has made.
fn postgres_user() -> Result<Option<User>, String> {
    if !rustix::process::getuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd").map_err(|e| format!("/etc/passwd: {e}"))?;
    let found = users.lines().find_map(|line| {
        let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
        Some(User { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    });
    found
        .map(Some)
        .ok_or_else(|| "PostgreSQL does not run as root, and there is no user `postgres`".to_owned())
}

fn start_postgres(programs: &Path, folder: &Path, user: Option<User>) -> Result<Program, String> {
    let data = folder.join("postgres");
    let mut make = Command::new(programs.join("initdb"));
    make.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "-D"]).arg(&data);
    run_as(&mut make, user, folder)?;
    let server = programs.join("postgres");
    let words: [&OsStr; 10] = [
        server.as_ref(),
        "-D".as_ref(),
        data.as_ref(),
        "-k".as_ref(),
        folder.as_ref(),
        "-h".as_ref(),
        "".as_ref(),
        "-F".as_ref(),
        "-c".as_ref(),
        "max_connections=200".as_ref(),
    ];
    let log = folder.join("postgres.log");
    let program = Program::start(&words, "INT", folder, &log, user)?;
    let deadline = Instant::now() + PATIENCE;
    let mut ready = Command::new(programs.join("pg_isready"));
    ready.args(["-q", "-t", "1", "-h"]).arg(folder).stdout(Stdio::null());
    while !ready.status().is_ok_and(|status| status.success()) {
        if program.has_ended() || Instant::now() > deadline {
            return Err(format!("PostgreSQL does not start:\n{}", said(&log)));
        }
        std::thread::sleep(LOOK);
    }
    let mut create = Command::new(programs.join("createdb"));
    create.args(["-U", "postgres", "-T", "template0", "-h"]).arg(folder).arg("carillon");
    run_as(&mut create, user, folder)?;
    Ok(program)
}

fn start_nats(server: &Path, folder: &Path) -> Result<(Program, String), String> {
    let ports = folder.join("nats");
    std::fs::create_dir(&ports).map_err(|e| e.to_string())?;
    let words: [&OsStr; 7] = [
        server.as_ref(),
        "-a".as_ref(),
        "127.0.0.1".as_ref(),
        "-p".as_ref(),
        "-1".as_ref(),
        "--ports_file_dir".as_ref(),
        ports.as_ref(),
    ];
    let log = folder.join("nats.log");
    let program = Program::start(&words, "TERM", folder, &log, None)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(url) = nats_url(&ports) {
            return Ok((program, url));
        }
        if program.has_ended() || Instant::now() > deadline {
            return Err(format!("NATS does not start:\n{}", said(&log)));
        }
        std::thread::sleep(LOOK);
    }
}

/// Where NATS listens, as soon as it has written it.
fn nats_url(folder: &Path) -> Option<String> {
    let file = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .find(|entry| entry.file_name().to_str().is_some_and(|name| name.ends_with(".ports")))?;
    let ports: Value = serde_json::from_str(&std::fs::read_to_string(file.path()).ok()?).ok()?;
    Some(ports["nats"][0].as_str()?.to_owned())
}

fn run_as(command: &mut Command, user: Option<User>, folder: &Path) -> Result<(), String> {
    command.current_dir(folder).env("LC_ALL", "C").process_group(0);
    if let Some(User { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    output(command).map(drop)
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let done = command.output().map_err(|e| format!("{name}: {e}"))?;
    if !done.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
