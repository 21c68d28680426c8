//! Files that clients upload: put, got, deleted, expired.

use crate::support::{Reply, World, ask, with_key, world_with};
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Method, Request, StatusCode, header};
use carillon_core::model::{Credentials, DomainId, Scope, Slot, UnixMs, UploadBounds, UploadId, UploadKey};
use carillon_core::ports::store::accounts::{CreateAccount, DeleteAccount};
use carillon_core::ports::store::uploads::{CreateSlot, CreateSlotAnswer};
use carillon_core::settings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::sync::mpsc::{Receiver, Sender, channel};

const HOST: &str = "upload.example.com";
const SECRET: [u8; 32] = [7; 32];

/// A node to which files are uploaded, and alice's account on it.
struct Ground {
    world: World,
    folder: TempDir,
    domain: DomainId,
    key: UploadKey,
}

fn now() -> UnixMs {
    UnixMs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64)
}

fn ground_with(change: impl FnOnce(&mut settings::Upload, &mut carillon_http::UploadSettings)) -> Ground {
    let folder = tempfile::tempdir().unwrap();
    let world = world_with(|options| {
        let mut core = settings::Settings { secret: SECRET, ..settings::Settings::default() };
        core.upload.url = format!("https://{HOST}");
        options.settings.upload.folder = folder.path().to_owned();
        options.settings.upload.sweep_ms = 10;
        change(&mut core.upload, &mut options.settings.upload);
        options.core = Arc::new(core);
    });
    let domain = world.domain("localhost");
    let credentials = Credentials { sha1: None, sha256: None };
    let local = "alice".into();
    ask(&*world.store, CreateAccount { domain, local, credentials, is_in_band: false, now: now() });
    Ground { world, folder, domain, key: UploadKey::of(&SECRET) }
}

fn ground() -> Ground {
    ground_with(|_, _| {})
}

/// A slot as the XMPP side gives it: the path of its URL, and the right to use it.
struct GrantedSlot {
    path: String,
    right: String,
}

impl Ground {
    fn slot_until(&self, bytes: u64, name: &str, media_type: &str, expires: UnixMs) -> GrantedSlot {
        let id = UploadId(rand_id());
        let bounds = UploadBounds { account_bytes: 1 << 30, domain_bytes: 1 << 30 };
        let slot = Slot { domain: self.domain, id, bytes, media_type: media_type.into(), expires };
        let create = CreateSlot {
            domain: self.domain,
            local: "alice".into(),
            id,
            name: name.into(),
            media_type: media_type.into(),
            bytes,
            expires,
            bounds,
        };
        assert_eq!(ask(&*self.world.store, create), CreateSlotAnswer::Created);
        let path = format!("/{}/{name}", self.key.file(self.domain, id));
        GrantedSlot { path, right: format!("Bearer {}", self.key.slot(&slot)) }
    }

    fn slot(&self, bytes: u64, name: &str, media_type: &str) -> GrantedSlot {
        self.slot_until(bytes, name, media_type, now().plus(60_000))
    }

    async fn call(&self, method: Method, path: &str, headers: &[(HeaderName, &str)]) -> Reply {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, HOST);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.world.call(request.body(Body::empty()).unwrap()).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path, &[]).await
    }

    /// `PUT` of a body that says it has `length` bytes.
    async fn put(&self, given: &GrantedSlot, media_type: &str, length: usize, body: Body) -> Reply {
        let request = Request::put(&given.path)
            .header(header::HOST, HOST)
            .header(header::AUTHORIZATION, &given.right)
            .header(header::CONTENT_TYPE, media_type)
            .header(header::CONTENT_LENGTH, length);
        self.world.call(request.body(body).unwrap()).await
    }

    /// A file that is there.
    async fn uploaded(&self, text: &'static str, name: &str, media_type: &str) -> GrantedSlot {
        let given = self.slot(text.len() as u64, name, media_type);
        let reply = self.put(&given, media_type, text.len(), text.into()).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
        given
    }

    /// All that is in the folder of files.
    fn contents(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.folder.path()).unwrap();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Waits until nothing is in the folder of files.
    async fn until_empty(&self) {
        let wait = async {
            while !self.contents().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it stays");
    }
}

fn rand_id() -> u128 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64
}

#[tokio::test]
async fn a_file_is_put_once_and_got_by_anybody() {
    let ground = ground();
    let given = ground.slot(5, "a.png", "image/png");
    ground.get(&given.path).await.problem(404, "unknown-upload");
    assert_eq!(ground.put(&given, "image/png", 5, "hello".into()).await.status, StatusCode::CREATED);
    ground.put(&given, "image/png", 5, "other".into()).await.problem(409, "already-exists");
    let reply = ground.get(&given.path).await;
    assert_eq!((reply.status, &*reply.text), (StatusCode::OK, "hello"));
    let is = |name: &str, value: &str| assert_eq!(reply.headers[name], value, "{name}");
    is("content-type", "image/png");
    is("content-length", "5");
    is("content-disposition", "inline; filename*=UTF-8''a.png");
    is("content-security-policy", "default-src 'none'; sandbox; frame-ancestors 'none'");
    is("x-content-type-options", "nosniff");
    is("access-control-allow-origin", "*");
    is("cross-origin-resource-policy", "cross-origin");
    is("accept-ranges", "bytes");
    let head = ground.call(Method::HEAD, &given.path, &[]).await;
    assert_eq!((head.status, &*head.text), (StatusCode::OK, ""));
    assert_eq!(head.headers["content-length"], "5");
    assert_eq!(ground.contents().len(), 1, "of the second attempt nothing is left");
    // Under another name, or by another host, it is not there.
    let other = given.path.replace("a.png", "a.html");
    ground.get(&other).await.problem(404, "unknown-upload");
    let api = Request::get(&given.path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
    ground.world.call(api).await.problem(404, "unknown-route");
    ground.get("/v1/topics").await.problem(404, "unknown-upload");
    ground.get("/").await.problem(404, "unknown-upload");
}

#[tokio::test]
async fn parts_of_a_file_are_given() {
    let ground = ground();
    let given = ground.uploaded("0123456789", "a", "").await;
    let tag = ground.get(&given.path).await.headers[header::ETAG].to_str().unwrap().to_owned();
    let part = ground.call(Method::GET, &given.path, &[(header::RANGE, "bytes=3-5")]).await;
    assert_eq!((part.status, &*part.text), (StatusCode::PARTIAL_CONTENT, "345"));
    assert_eq!(part.headers[header::CONTENT_RANGE], "bytes 3-5/10");
    let outside = ground.call(Method::GET, &given.path, &[(header::RANGE, "bytes=10-")]).await;
    outside.problem(416, "range-outside");
    assert_eq!(outside.headers[header::CONTENT_RANGE], "bytes */10");
    let known = ground.call(Method::GET, &given.path, &[(header::IF_NONE_MATCH, &tag)]).await;
    assert_eq!((known.status, &*known.text), (StatusCode::NOT_MODIFIED, ""));
}

#[tokio::test]
async fn only_what_the_slot_is_for_is_taken() {
    let ground = ground();
    let (given, other) = (ground.slot(5, "a", "image/png"), ground.slot(5, "a", "image/png"));
    let put = |right: &str, path: &str, media_type: &'static str, length: usize, body: &'static str| {
        let given = GrantedSlot { path: path.to_owned(), right: right.to_owned() };
        let ground = &ground;
        async move { ground.put(&given, media_type, length, body.into()).await }
    };
    let (path, right) = (&*given.path, &*given.right);
    put(right, path, "image/png", 6, "longer").await.problem(413, "too-large");
    put(right, path, "image/png", 4, "less").await.problem(400, "invalid-header");
    put(right, path, "text/html", 5, "hello").await.problem(415, "wrong-content-type");
    put(&other.right, path, "image/png", 5, "hello").await.problem(403, "forbidden");
    put("Bearer x", path, "image/png", 5, "hello").await.problem(403, "forbidden");
    put(&format!("{right}A"), path, "image/png", 5, "hello").await.problem(403, "forbidden");
    put(right, "/x/a", "image/png", 5, "hello").await.problem(403, "forbidden");
    // Bodies that are not what their headers say.
    put(right, path, "image/png", 5, "hell").await.problem(422, "invalid-value");
    put(right, path, "image/png", 5, "hello!").await.problem(422, "invalid-value");
    let none = ground.call(Method::PUT, path, &[(header::CONTENT_LENGTH, "5")]).await;
    none.problem(403, "forbidden");
    let chunked = [(header::AUTHORIZATION, right), (header::CONTENT_TYPE, "image/png")];
    ground.call(Method::PUT, path, &chunked).await.problem(400, "invalid-header");
    let late = ground.slot_until(5, "a", "image/png", now());
    ground.put(&late, "image/png", 5, "hello".into()).await.problem(403, "forbidden");
    assert!(ground.contents().is_empty());
    assert_eq!(put(right, path, "image/png", 5, "hello").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn of_a_body_that_breaks_off_nothing_is_left() {
    let ground = ground();
    let given = ground.slot(10, "a", "");
    let broken = futures_util::stream::iter([
        Ok(Bytes::from("hello")),
        Err(std::io::Error::other("the client went away")),
    ]);
    let reply = ground.put(&given, "", 10, Body::from_stream(broken)).await;
    reply.problem(422, "invalid-value");
    assert!(ground.contents().is_empty());
    ground.get(&given.path).await.problem(404, "unknown-upload");
    let whole = ground.put(&given, "", 10, "hello".repeat(2).into()).await;
    assert_eq!(whole.status, StatusCode::CREATED, "the slot is still there");
}

/// A body whose parts come when they are sent.
fn body_of() -> (Sender<std::io::Result<Bytes>>, Body) {
    let (sender, parts) = channel(1);
    let next = |mut parts: Receiver<_>| async { parts.recv().await.map(|part| (part, parts)) };
    (sender, Body::from_stream(futures_util::stream::unfold(parts, next)))
}

#[tokio::test]
async fn of_two_attempts_at_once_one_counts() {
    let ground = ground();
    let given = ground.slot(10, "a", "");
    let (sender, body) = body_of();
    let overtakes = async {
        sender.send(Ok("hello".into())).await.unwrap();
        while ground.contents().is_empty() {
            tokio::task::yield_now().await;
        }
        let reply = ground.put(&given, "", 10, "0123456789".into()).await;
        sender.send(Ok("world".into())).await.unwrap();
        drop(sender);
        reply
    };
    let (slow, quick) = tokio::join!(ground.put(&given, "", 10, body), overtakes);
    assert_eq!(quick.status, StatusCode::CREATED);
    slow.problem(409, "already-exists");
    assert_eq!(ground.get(&given.path).await.text, "0123456789");
    assert_eq!(ground.contents().len(), 1);
}

#[tokio::test]
async fn a_body_that_does_not_end_is_given_up() {
    let ground = ground_with(|_, settings| settings.put_ms = 100);
    let given = ground.slot(10, "a", "");
    let (sender, body) = body_of();
    sender.send(Ok("hello".into())).await.unwrap();
    ground.put(&given, "", 10, body).await.problem(408, "slow-body");
    ground.until_empty().await;
    ground.get(&given.path).await.problem(404, "unknown-upload");
}

#[tokio::test]
async fn whoever_has_a_key_of_the_domain_deletes_a_file() {
    let ground = ground();
    let given = ground.uploaded("hello", "a", "").await;
    let delete = |key: &str| {
        let request = Request::delete(&given.path).header(header::HOST, HOST).body(Body::empty()).unwrap();
        ground.world.call(with_key(request, key))
    };
    ground.call(Method::DELETE, &given.path, &[]).await.problem(401, "missing-key");
    delete(&ground.world.key("localhost", &[Scope::Send])).await.problem(403, "missing-scope");
    delete(&ground.world.key("other.example", &[Scope::Admin])).await.problem(403, "other-domain");
    assert_eq!(ground.get(&given.path).await.status, StatusCode::OK);
    assert_eq!(delete(&ground.world.admin).await.status, StatusCode::NO_CONTENT);
    ground.get(&given.path).await.problem(404, "unknown-upload");
    delete(&ground.world.admin).await.problem(404, "unknown-upload");
    ground.until_empty().await;
}

#[tokio::test]
async fn files_expire() {
    let ground = ground_with(|upload, _| upload.kept_ms = 300);
    let given = ground.uploaded("hello", "a", "").await;
    ground.until_empty().await;
    ground.get(&given.path).await.problem(404, "unknown-upload");
}

#[tokio::test]
async fn a_file_whose_contents_are_lost_is_not_there() {
    let ground = ground();
    let given = ground.uploaded("hello", "a", "").await;
    ground.contents().iter().for_each(|path| std::fs::remove_file(path).unwrap());
    ground.get(&given.path).await.problem(404, "unknown-upload");
}

#[tokio::test]
async fn files_go_with_their_account() {
    let ground = ground();
    let given = ground.uploaded("hello", "a", "").await;
    let (domain, local) = (ground.domain, "alice".into());
    ask(
        &*ground.world.store,
        DeleteAccount { domain, local, now: now(), held_until: now(), rows_max: u32::MAX },
    )
    .unwrap();
    ground.get(&given.path).await.problem(404, "unknown-upload");
    ground.until_empty().await;
}

#[tokio::test]
async fn web_clients_of_any_origin_may_upload() {
    let ground = ground();
    let given = ground.slot(5, "a", "");
    let asked = [(header::ORIGIN, "https://chat.example"), (header::ACCESS_CONTROL_REQUEST_METHOD, "PUT")];
    let reply = ground.call(Method::OPTIONS, &given.path, &asked).await;
    assert_eq!(reply.status, StatusCode::NO_CONTENT);
    assert_eq!(reply.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    for (name, wanted) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "PUT"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
    ] {
        assert!(reply.headers[&name].to_str().unwrap().contains(wanted), "{name}");
    }
    // Errors can be read, too.
    let refused = ground.call(Method::PUT, &given.path, &[]).await;
    assert_eq!(refused.headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
}
