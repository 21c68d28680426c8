//! The bus of a cell, over NATS.

use crate::options;
use carillon_backend::nats::{self, Auth, Options};
use carillon_core::model::Epoch;
use carillon_core::ports::Bus;
use carillon_core::ports::bus::Hears;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A bus that is yet to be opened.
#[derive(Clone)]
pub(crate) struct BusOptions(Options);

/// Whether a server lets the node in; why not is an error.
pub(crate) fn inspect(settings: &options::Cell) -> Result<(), String> {
    nats::inspect(&bus(settings, None).0)
}

/// The bus of the settings, from where the process before `left` it.
pub(crate) fn bus(settings: &options::Cell, left: Option<Vec<u8>>) -> BusOptions {
    let mut options = Options::new(&settings.nats);
    options.servers = settings.nats.split(',').map(|server| server.trim().into()).collect();
    options.prefix = settings.prefix.as_str().into();
    if let Some(file) = &settings.nats_credentials {
        options.auth = Auth::Credentials(carillon_backend::Secret::File(file.clone()));
    }
    options.tls.authorities.clone_from(&settings.nats_ca_file);
    options.tls.certificate = settings.nats_certificate.clone().zip(settings.nats_key.clone());
    options.bus.left = left.map(Into::into);
    BusOptions(options)
}

impl BusOptions {
    /// Opens it for the node of this epoch.
    pub(crate) fn open(&self, own: Epoch, hears: Hears, runtime: &Handle) -> Result<Arc<dyn Bus>, String> {
        nats::open(&self.0, own, hears, runtime).map_err(|e| format!("cell.nats: {e}"))
    }
}
