//! Files that clients upload (XEP-0363), on a host of their own: what the XMPP side allowed is in the tokens that requests carry
//! ([`UploadKey`]), and what is there is in the store.
//!
//! - `put` takes a file into its slot, `get` gives it, `delete` removes it for whoever has a key.
//! - `files` is where the contents are: a folder, or a store of objects (`crate::objects`). The store says which of them count (`ports::store::uploads`).
//! - `sweep` removes what has expired, was deleted, or was not uploaded to its end.
//! - `range` and `headers` are what HTTP has to say about it, `routes` puts it together.

mod delete;
mod files;
mod get;
mod headers;
mod put;
mod range;
mod routes;
pub(crate) mod sweep;

pub(crate) use routes::routes;

use crate::app::App;
use crate::links::{are_links_at, origin_of};
use crate::options::{LinkSettings, Options};
use crate::problem::{Code, Problem};
use carillon_core::model::{DomainId, UploadId, UploadKey, UploadedFile};
use carillon_core::ports::store::uploads;
use carillon_core::settings;
use files::Contents;
use std::sync::atomic::AtomicU64;

/// What the uploads of this node work with.
pub(crate) struct Uploads {
    /// The host of the URLs of files; none where nothing is uploaded.
    host: Option<Box<str>>,
    key: UploadKey,
    contents: Contents,
    figures: Figures,
}

impl App {
    /// Files that clients upload.
    pub(crate) fn uploads(&self) -> &Uploads {
        self.part()
    }
}

/// Counts for `/metrics`.
#[derive(Default)]
pub(crate) struct Figures {
    /// Files that were uploaded.
    pub(crate) uploaded: AtomicU64,
    /// Bytes of these.
    pub(crate) uploaded_bytes: AtomicU64,
    /// Requests to upload a file that were refused, or did not come to their end.
    pub(crate) failed: AtomicU64,
    /// Requests for a file that was there.
    pub(crate) served: AtomicU64,
    /// Requests for a file that was not.
    pub(crate) unknown: AtomicU64,
    /// Files whose contents were removed.
    pub(crate) removed: AtomicU64,
}

/// Checks settings that have to fit together; else the key of one that does not, and why.
///
/// # Errors
/// The key of the setting that is wrong, and what it has to be.
pub fn check(settings: &settings::Upload, links: &LinkSettings) -> Result<(), (&'static str, String)> {
    if settings.url.is_empty() {
        return Ok(());
    }
    let text = settings.url.trim_end_matches('/');
    if !text.contains("://") {
        return Err(("upload.url", "it is `https://`, a host, and a port if that is needed".to_owned()));
    }
    let (host, _) = origin_of(text).map_err(|why| ("upload.url", why))?;
    if are_links_at(links, &host) {
        return Err((
            "upload.url",
            format!("`{host}` is a host of links.hosts, and it has to be one for files alone"),
        ));
    }
    if settings.file_bytes > settings.account_bytes {
        return Err(("upload.account_bytes", "it has to be as large as upload.file_bytes".to_owned()));
    }
    if settings.account_bytes > settings.domain_bytes {
        return Err(("upload.domain_bytes", "it has to be as large as upload.account_bytes".to_owned()));
    }
    let is_type =
        |text: &String| text.split_once('/').is_some_and(|(kind, of)| !kind.is_empty() && !of.is_empty());
    if let Some(wrong) = settings.types.iter().find(|text| !is_type(text)) {
        return Err((
            "upload.types",
            format!("`{wrong}` has to be a media type, such as `image/png` or `image/*`"),
        ));
    }
    Ok(())
}

impl Uploads {
    /// The uploads of a node with these options, which were checked.
    pub(crate) fn new(options: &Options) -> Uploads {
        let url = options.core.upload.url.trim_end_matches('/');
        let host = match origin_of(url) {
            _ if url.is_empty() => None,
            Ok((name, _)) => Some(name.into()),
            Err(error) => {
                tracing::error!(error, "upload.url cannot be read: nothing is uploaded");
                None
            }
        };
        Uploads {
            host,
            key: UploadKey::of(&options.core.secret),
            contents: Contents::new(options.settings.upload.folder.clone(), options.objects.clone()),
            figures: Figures::default(),
        }
    }

    /// Whether files are uploaded here.
    pub(crate) fn are_on(&self) -> bool {
        self.host.is_some()
    }

    /// Whether a request for this host is one for files.
    pub(crate) fn is_for(&self, host: Option<&str>) -> bool {
        match (&self.host, host) {
            (Some(own), Some(host)) => own.eq_ignore_ascii_case(host),
            _ => false,
        }
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }
}

/// The file of a URL, which is there and has not expired.
async fn find(app: &App, token: &str, name: &str) -> Result<(DomainId, UploadId, UploadedFile), Problem> {
    // What was not signed here is not asked for.
    let (domain, id) = app.uploads().key.read_file(token).ok_or_else(unknown)?;
    let file = app.ask(uploads::Upload { domain, id }).await?.ok_or_else(unknown)?;
    let is_there = file.attempt.is_some() && file.expires > crate::values::time::now() && *file.name == *name;
    if is_there { Ok((domain, id, *file)) } else { Err(unknown()) }
}

fn unknown() -> Problem {
    Problem::new(Code::UnknownUpload, "there is no such file, or it has expired")
}

/// The disk did not do what it was asked.
fn disk_failed(error: &std::io::Error) -> Problem {
    tracing::error!(%error, "a file that is uploaded could not be written or read");
    Problem::new(Code::Internal, "the file could not be written or read")
}
