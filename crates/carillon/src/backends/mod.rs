//! The stores, buses, logs and queues that a node uses, opened as its settings say. No other module names a driver (`xtask tidy`):
//! the others have `dyn Store`, `dyn Bus`, `dyn SessionLog`, `dyn Queue` and `dyn ObjectStore`.
//!
//! | module | opens |
//! |---|---|
//! | this one | the store: the embedded one, or the one that `store.url` names |
//! | [`postgres`] | what is on a PostgreSQL server: the store, and what the nodes that share it know of each other |
//! | `nats` | the bus of a cell |
//! | `redis` | the log of a cell's sessions |
//! | [`queues`] | the queues that messages are taken from |
//! | [`objects`] | the bucket of uploaded files |
//!
//! A binary that was built without a driver refuses the settings that ask for it.

#[cfg(all(feature = "nats", feature = "postgres"))]
pub(crate) mod nats;
#[cfg(not(feature = "postgres"))]
pub(crate) mod no_postgres;
#[cfg(all(feature = "nats", feature = "postgres", not(feature = "redis")))]
pub(crate) mod no_redis;
pub(crate) mod objects;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod queues;
#[cfg(all(feature = "nats", feature = "postgres", feature = "redis"))]
pub(crate) mod redis;

#[cfg(not(feature = "postgres"))]
pub(crate) use no_postgres as postgres;
#[cfg(all(feature = "nats", feature = "postgres", not(feature = "redis")))]
pub(crate) use no_redis as redis;

use crate::config::Settings;
use crate::options;
use carillon_backend::StoreOptions;
use carillon_backend::check::Checked;
use carillon_core::model::Epoch;
use carillon_core::ports::{Members, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store, and who shares it if others can.
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: Arc<dyn Store>,
    /// The nodes that share it.
    pub(crate) members: Option<Arc<dyn Members>>,
}

/// Opens the store: the embedded one, searched for damage if that is wanted, or the one on the PostgreSQL that the settings name; there this process
/// goes on with the node that another was until now, if it is told its epoch.
pub(crate) fn open_store(
    settings: &Settings,
    is_searched: bool,
    goes_on: Option<Epoch>,
) -> Result<Opened, String> {
    if !settings.node.store_url.is_empty() {
        return postgres::open(settings, goes_on).map_err(|e| format!("store.url: {e}"));
    }
    let store = carillon_backend::open(StoreOptions { is_searched, ..embedded(settings) });
    Ok(Opened { store: store.map_err(|e| e.to_string())?, members: None })
}

/// The engines of a cell that do not let the node in: the setting that names each, and why not.
#[cfg(all(feature = "nats", feature = "postgres"))]
pub(crate) fn closed_engines(settings: &options::Cell) -> Vec<(&'static str, String)> {
    if settings.nats.is_empty() {
        return Vec::new();
    }
    let asked = [("cell.nats", nats::inspect(settings)), ("cell.redis", redis::inspect(settings))];
    asked.into_iter().filter_map(|(setting, asked)| Some((setting, asked.err()?))).collect()
}

/// None: settings that name a cell are refused.
#[cfg(not(all(feature = "nats", feature = "postgres")))]
pub(crate) fn closed_engines(_: &options::Cell) -> Vec<(&'static str, String)> {
    Vec::new()
}

/// The database of the embedded store.
pub(crate) fn database(settings: &Settings) -> PathBuf {
    settings.node.data_dir.join("carillon.db")
}

fn embedded(settings: &Settings) -> StoreOptions {
    StoreOptions { path: database(settings), ..settings.store.clone() }
}

/// Looks for what is wrong with an embedded store.
pub(crate) fn check_embedded(database: &Path) -> Result<Checked, String> {
    carillon_backend::sqlite::check_store(database).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Source};

    #[test]
    fn the_embedded_store_is_in_the_data_folder() {
        let config = Config::load(&Source::default()).expect("valid");
        assert_eq!(embedded(&config.settings), StoreOptions::new("./data/carillon.db"));
        let source = Source { overrides: vec!["data_dir=/d".to_owned()], file: None, data_dir: None };
        let settings = Config::load(&source).expect("valid").settings;
        assert_eq!(embedded(&settings).path, Path::new("/d/carillon.db"));
    }
}
