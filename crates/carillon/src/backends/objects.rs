//! Where the contents of uploaded files are.

use crate::config::Settings;
use carillon_http::{ObjectStore, S3Settings};
use std::sync::Arc;

/// Where the contents of uploaded files are, if that is a bucket.
pub(crate) fn open(settings: &Settings) -> Result<Option<Arc<dyn ObjectStore>>, String> {
    let s3 = &settings.http.upload.s3;
    if s3.bucket.is_empty() || settings.core.upload.url.is_empty() {
        return Ok(None);
    }
    open_bucket(s3).map(Some).map_err(|error| format!("upload.s3_{error}"))
}

#[cfg(feature = "aws")]
fn open_bucket(s3: &S3Settings) -> Result<Arc<dyn ObjectStore>, String> {
    Ok(Arc::new(crate::aws::s3::Bucket::open(s3)?))
}

#[cfg(not(feature = "aws"))]
fn open_bucket(_: &S3Settings) -> Result<Arc<dyn ObjectStore>, String> {
    Err("bucket: this binary was built without AWS: build it with `--features aws`".to_owned())
}
