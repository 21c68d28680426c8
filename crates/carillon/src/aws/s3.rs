//! A bucket of Amazon S3, or of another store with its protocol, for the contents of uploaded files.
//!
//! An object is put by one request, whose signature has the hash of its contents: what arrives otherwise is not taken. Requests name the bucket in
//! their path, which every such store understands.

use crate::aws::Aws;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SigningSettings, UriPathNormalizationMode,
};
use carillon_http::{ObjectStore, S3Settings};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::time::{Duration, SystemTime};
use ureq::http::{Request, Response, StatusCode};
use ureq::{AsSendBody, Body};

/// How long an object may take on its way. A slow client of a download takes its time.
const WITHIN: Duration = Duration::from_secs(3600);
/// Bytes of an answer that says why something was not done.
const REASON_BYTES_MAX: u64 = 64 << 10;
/// How often an object is put before whoever uploads it is told that it failed.
const ATTEMPTS: u32 = 4;
/// How long is waited before the second of them, and twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// A bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    aws: Aws,
    /// What the URLs of its objects begin with.
    url: String,
}

/// Why a request was not done.
enum Refused {
    /// There is no such object.
    Missing,
    /// It may be done when it is asked again.
    Later(io::Error),
    /// It will not be.
    Never(io::Error),
}

impl Bucket {
    /// The bucket of these settings.
    ///
    /// # Errors
    /// They cannot be meant so.
    pub(crate) fn open(settings: &S3Settings) -> Result<Bucket, String> {
        let S3Settings { bucket, prefix, region, endpoint, ca_file } = settings;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if bucket.len() < 3 || !bucket.bytes().all(is_name) {
            return Err(format!("bucket: `{bucket}` is no name of one: 3 to 63 of a-z, 0-9, `.` and `-`"));
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
        if prefix.starts_with('/') || prefix.contains("..") || !prefix.bytes().all(is_plain) {
            return Err(format!("prefix: `{prefix}` has to be of letters, digits, `/`, `-`, `_` and `.`"));
        }
        if !endpoint.is_empty() && !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(format!("endpoint: `{endpoint}` is no URL"));
        }
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let ca_file = Some(ca_file.as_path()).filter(|path| !path.as_os_str().is_empty());
        let aws = Aws::at("s3", given(region), given(endpoint), ca_file)?;
        let url = format!("{}{bucket}/{prefix}", aws.endpoint());
        Ok(Bucket { aws, url })
    }

    /// Asks for something; an answer that is no success says why.
    fn ask<B: AsSendBody>(
        &self,
        method: &str,
        name: &str,
        headers: &[(&str, String)],
        (body, sha256): (B, Option<&[u8; 32]>),
    ) -> Result<Response<Body>, Refused> {
        let url = format!("{}{name}", self.url);
        let mut all: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let signable = match sha256 {
            Some(sha256) => SignableBody::Precomputed(hex(sha256)),
            None => SignableBody::Bytes(b""),
        };
        let signed = self.aws.signed(method, &url, &all, signable, settings(), now);
        all.extend(signed.map_err(|why| Refused::Later(io::Error::other(why)))?);
        let mut request = Request::builder().method(method).uri(&url);
        for (name, value) in &all {
            request = request.header(name, value);
        }
        let later = |error: ureq::Error| Refused::Later(io::Error::other(error));
        let request = request.body(body).map_err(|error| later(error.into()))?;
        let answer = self.aws.web().exchange(request, WITHIN).map_err(later)?;
        if answer.status().is_success() { Ok(answer) } else { Err(self.refused(answer)) }
    }

    fn refused(&self, mut answer: Response<Body>) -> Refused {
        let status = answer.status();
        let said = answer.body_mut().with_config().limit(REASON_BYTES_MAX).lossy_utf8(true).read_to_string();
        let said = said.unwrap_or_default();
        let code = between(&said, "Code").unwrap_or("no reason given");
        let error = io::Error::other(format!("S3 answers {}: {code}", status.as_u16()));
        if code.starts_with("ExpiredToken") {
            self.aws.forget_credentials();
            return Refused::Later(error);
        }
        match status {
            // The bucket itself is another matter.
            StatusCode::NOT_FOUND if code != "NoSuchBucket" => Refused::Missing,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Refused::Later(error),
            status if status.is_server_error() => Refused::Later(error),
            _ => Refused::Never(error),
        }
    }

    /// Asks again while that may help.
    fn repeatedly<T>(&self, mut ask: impl FnMut() -> Result<T, Refused>) -> io::Result<T> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            match ask() {
                Ok(done) => return Ok(done),
                Err(Refused::Missing) => return Err(ErrorKind::NotFound.into()),
                Err(Refused::Later(error)) if attempt < ATTEMPTS => {
                    tracing::debug!(%error, "S3 is asked again");
                    // The thread is one of those that may block, and does this alone.
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Err(Refused::Later(error) | Refused::Never(error)) => return Err(error),
            }
        }
        Err(io::Error::other("it was not asked"))
    }
}

impl ObjectStore for Bucket {
    fn put(&self, name: &str, contents: &File, bytes: u64, sha256: &[u8; 32]) -> io::Result<()> {
        let headers = [("content-length", bytes.to_string())];
        self.repeatedly(|| {
            let mut contents = contents;
            contents.seek(SeekFrom::Start(0)).map_err(Refused::Never)?;
            self.ask("PUT", name, &headers, (contents, Some(sha256))).map(drop)
        })
    }

    fn get(&self, name: &str, part: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        let headers = [("range", format!("bytes={}-{}", part.start, part.end.saturating_sub(1)))];
        let answer = self.repeatedly(|| self.ask("GET", name, &headers, ((), None)))?;
        let wanted = part.end - part.start;
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            return Err(io::Error::other("S3 gave the whole of an object instead of a part"));
        }
        let body = answer.into_body().into_with_config().limit(wanted.saturating_add(1)).reader();
        Ok(Box::new(body.take(wanted)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let done = self.repeatedly(|| self.ask("DELETE", name, &[], ((), None)).map(drop));
        done.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
    }
}

/// How S3 wants requests to be signed, unlike other services.
fn settings() -> SigningSettings {
    let mut settings = SigningSettings::default();
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |text, byte| text + &format!("{byte:02x}"))
}

/// The text of the first element of this name.
fn between<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(bucket: &str, prefix: &str) -> Result<String, String> {
        let settings = S3Settings {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            region: "eu-west-1".to_owned(),
            ..S3Settings::default()
        };
        Bucket::open(&settings).map(|bucket| bucket.url)
    }

    #[test]
    fn objects_are_at_the_bucket_s_path() {
        assert_eq!(
            bucket("files.example", "chat/").as_deref(),
            Ok("https://s3.eu-west-1.amazonaws.com/files.example/chat/")
        );
        for (name, prefix) in [("ab", ""), ("Files", ""), ("files", "/a"), ("files", "../"), ("files", "a?b")]
        {
            assert!(bucket(name, prefix).is_err(), "{name} {prefix}");
        }
    }

    #[test]
    fn what_s3_says_is_read() {
        let said = "<?xml version='1.0'?><Error><Code>NoSuchKey</Code><Message>…</Message></Error>";
        assert_eq!((between(said, "Code"), between(said, "Nothing")), (Some("NoSuchKey"), None));
        assert_eq!(hex(&[0, 0xab]), "00ab");
    }
}
