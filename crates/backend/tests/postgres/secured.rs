//! Connections with TLS, and who proves what: against a server that wants TLS of all who come over TCP.

use crate::proxy::Proxy;
use crate::server::{Database, Server};
use carillon_backend::postgres::{OpenError, Options, PostgresStore};
use carillon_core::model::Policy;
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::{Question, Store};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// A server with a certificate for `localhost`, and what its clients need.
struct Secured {
    server: Server,
    port: u16,
    folder: tempfile::TempDir,
}

/// An authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    /// A certificate for a host or a user, and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        (params.signed_by(&key, &self.issuer).expect("a certificate").pem(), key.serialize_pem())
    }
}

const HBA: &str = "local all all trust\nhostssl all certified all cert\nhostssl all all all scram-sha-256\n";

fn secured() -> &'static Secured {
    static SERVER: OnceLock<Secured> = OnceLock::new();
    SERVER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let (authority, other) = (Authority::new("one"), Authority::new("other"));
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        put("ca.pem", &authority.certificate);
        put("other-ca.pem", &other.certificate);
        let (certificate, key) = authority.issue("certified");
        put("certified.pem", &certificate);
        put("certified.key", &key);
        let (certificate, key) = authority.issue("localhost");
        // PostgreSQL takes no port of the system's choice.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port").port();
        let wanted = ["-h", "127.0.0.1", "-c", "ssl=on", "-c", "ssl_ca_file=ca.pem", "-p", &port.to_string()];
        let server = Server::start(&wanted, |_| {
            vec![
                ("server.crt", certificate),
                ("server.key", key),
                ("ca.pem", authority.certificate.clone()),
                ("pg_hba.conf", HBA.to_owned()),
            ]
        });
        for sql in [
            "CREATE ROLE carillon LOGIN PASSWORD 'c0rrect'",
            "CREATE ROLE rotating LOGIN PASSWORD 'f1rst'",
            "CREATE ROLE certified LOGIN",
        ] {
            server.admin_at(port, sql);
        }
        Secured { server, port, folder }
    })
}

impl Secured {
    /// A database of its own for a role.
    fn database(&self, role: &str, name: &str) {
        self.server.admin_at(
            self.port,
            &format!("CREATE DATABASE {name} OWNER {role} ENCODING 'UTF8' TEMPLATE template0"),
        );
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How a role asks for a database; `{}` in the parameters is the folder of the files.
    fn options(&self, role: &str, database: &str, host: &str, parameters: &str) -> Options {
        let parameters = parameters.replace("{}", &self.folder.path().display().to_string());
        let url = format!("postgresql://{role}@{host}:{}/{database}?{parameters}", self.port);
        Options { patience: Duration::from_millis(100), ..Options::new(&url).expect("an address") }
    }

    /// The same with a password.
    fn with_password(&self, password: &str, options: Options) -> Options {
        let file = self.file(&format!("password-{}", password.len()));
        fs::write(&file, format!("{password}\n")).expect("written");
        Options { password_file: Some(file), ..options }
    }
}

fn writes(store: &PostgresStore, name: &str) -> bool {
    let (sender, receiver) = std::sync::mpsc::channel();
    let put = PutDomain { name: name.into(), policy: Policy::default() };
    store.ask(
        put.into(),
        PutDomain::reply(move |answer| {
            let _ = sender.send(answer.is_ok());
        }),
    );
    receiver.recv_timeout(Duration::from_secs(60)).expect("a question is answered")
}

fn refused(options: Options) -> String {
    match PostgresStore::open(options) {
        Ok(_) => panic!("it was opened"),
        Err(OpenError::Server(why)) => why,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_server_is_verified_as_far_as_the_mode_says() {
    let server = secured();
    server.database("carillon", "verified");
    let of = |host: &str, parameters: &str| {
        server.with_password("c0rrect", server.options("carillon", "verified", host, parameters))
    };
    for (host, parameters) in [
        ("localhost", "sslmode=verify-full&sslrootcert={}/ca.pem"),
        // The certificate is not for this name.
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={}/ca.pem"),
        ("127.0.0.1", "sslmode=require&sslrootcert={}/ca.pem"),
        ("127.0.0.1", "sslmode=require"),
        // Its name is not what is connected to.
        ("localhost", "hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={}/ca.pem"),
    ] {
        let store = PostgresStore::open(of(host, parameters)).unwrap_or_else(|e| panic!("{parameters}: {e}"));
        assert!(writes(&store, &format!("{}.example.org", parameters.len())));
    }
    for (host, parameters, word) in [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert={}/ca.pem", "not valid for name"),
        ("localhost", "sslmode=verify-full&sslrootcert={}/other-ca.pem", "UnknownIssuer"),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert={}/other-ca.pem", "UnknownIssuer"),
        ("127.0.0.1", "sslmode=require&sslrootcert={}/other-ca.pem", "UnknownIssuer"),
        // No authority of this system has issued it.
        ("localhost", "sslmode=verify-full", ""),
        ("localhost", "sslmode=verify-full&sslrootcert={}/missing.pem", "missing.pem"),
        ("localhost", "sslmode=verify-full&sslrootcert={}/certified.key", "certified.key"),
        ("localhost", "sslmode=disable", "no encryption"),
    ] {
        let why = refused(of(host, parameters));
        assert!(why.contains(word) && !why.contains("c0rrect"), "{parameters}: {why}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let (database, proxy) = (Database::new(), Proxy::new());
    let plain = proxy.options(&database.name);
    assert!(PostgresStore::open(plain).is_ok());
    for mode in ["require", "verify-ca", "verify-full"] {
        let wanted = proxy.options_with(&database.name, &format!("sslmode={mode}"));
        let why = refused(Options { patience: Duration::from_millis(100), ..wanted });
        // With the authorities of a system that has none it is that which is said.
        assert!(why.contains("does not support TLS") || why.contains("no authority"), "{mode}: {why}");
    }
}

#[test]
fn a_password_is_read_for_each_connection_and_never_said() {
    let server = secured();
    server.database("rotating", "rotated");
    let options =
        server.options("rotating", "rotated", "localhost", "sslmode=verify-full&sslrootcert={}/ca.pem");
    let why = refused(server.with_password("wr0ng", options.clone()));
    assert!(why.contains("password authentication failed") && !why.contains("wr0ng"), "{why}");
    let missing = Options { password_file: Some(server.file("no-password")), ..options.clone() };
    assert!(refused(missing).contains("no-password"));
    let options = Options { patience: Duration::from_secs(10), ..server.with_password("f1rst", options) };
    let file = options.password_file.clone().expect("it has one");
    assert!(!format!("{options:?}").contains("f1rst"));
    let store = PostgresStore::open(options).expect("it is opened");
    assert!(writes(&store, "before.example.org"));
    fs::write(&file, "s3cond").expect("written");
    server.server.admin_at(server.port, "ALTER ROLE rotating PASSWORD 's3cond'");
    server.server.admin_at(
        server.port,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotating'",
    );
    assert!(writes(&store, "after.example.org"));
}

#[test]
fn a_client_certificate_is_shown() {
    let server = secured();
    server.database("certified", "certified");
    let trusting = "sslmode=verify-full&sslrootcert={}/ca.pem";
    let why = refused(server.options("certified", "certified", "localhost", trusting));
    assert!(why.contains("certificate"), "{why}");
    let shown = format!("{trusting}&sslcert={{}}/certified.pem&sslkey={{}}/certified.key");
    let store = PostgresStore::open(server.options("certified", "certified", "localhost", &shown));
    assert!(writes(&store.expect("it is opened"), "example.org"));
}
