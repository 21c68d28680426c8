//! The log of a cell's sessions, in Redis or Valkey.

use crate::options;
use carillon_backend::redis::{self, Options};
use carillon_core::model::Epoch;
use carillon_core::ports::{LogHears, SessionLog};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Bytes of sessions that wait for Redis.
const PENDING_BYTES_MAX: usize = 64 << 20;

/// A log that is yet to be opened.
#[derive(Clone)]
pub(crate) struct LogOptions(Options);

/// The log of the settings, if they name one.
pub(crate) fn log(settings: &options::Cell) -> Result<Option<LogOptions>, String> {
    if settings.redis.is_empty() {
        return Ok(None);
    }
    let mut options = Options::new(&settings.redis);
    options.prefix = settings.prefix.as_str().into();
    options.password = settings.redis_password_file.clone().map(carillon_backend::Secret::File);
    options.authorities.clone_from(&settings.redis_ca_file);
    options.certificate = settings.redis_certificate.clone().zip(settings.redis_key.clone());
    options.queue_bytes_max = PENDING_BYTES_MAX;
    Ok(Some(LogOptions(options)))
}

/// Whether the server lets the node in, if the settings name one; why not is an error.
pub(crate) fn inspect(settings: &options::Cell) -> Result<(), String> {
    match log(settings)? {
        Some(LogOptions(options)) => redis::inspect(&options),
        None => Ok(()),
    }
}

impl LogOptions {
    /// Opens it for the node of this epoch.
    pub(crate) fn open(
        &self,
        own: Epoch,
        hears: LogHears,
        runtime: &Handle,
    ) -> Result<Arc<dyn SessionLog>, String> {
        redis::open_log(&self.0, own, hears, runtime).map_err(|e| format!("cell.redis: {e}"))
    }
}
