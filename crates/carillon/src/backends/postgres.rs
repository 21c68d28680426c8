//! The store on a PostgreSQL server, and what the nodes that share it know of each other.

use super::Opened;
use crate::assemble;
use crate::config::Settings;
use carillon_backend::check::Checked;
use carillon_backend::postgres::{self, Joins, Options, PostgresStore};
use carillon_core::model::Epoch;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// While it exists, the others see that a node is not gone.
pub(crate) type Presence = postgres::Presence;
/// What is not as a store needs it.
pub(crate) type Finding = postgres::Finding;

/// Opens the store.
pub(super) fn open(settings: &Settings, goes_on: Option<Epoch>) -> Result<Opened, String> {
    let store = PostgresStore::open(of_node(settings, goes_on)?).map_err(|e| e.to_string())?;
    let members = Some(store.members());
    Ok(Opened { store: Arc::new(store), members })
}

/// Shows the others that the node of this epoch is not gone, while no process of it has the store.
pub(crate) fn show_node(settings: &Settings, epoch: Epoch) -> Result<Presence, String> {
    postgres::show(of_node(settings, Some(epoch))?).map_err(|e| format!("store.url: {e}"))
}

/// Looks at the server; what is wrong with the settings themselves is an error.
pub(crate) fn inspect(settings: &Settings) -> Result<Vec<Finding>, String> {
    postgres::inspect(options(settings)?).map_err(|e| e.to_string())
}

/// Looks for what is wrong with the store at these options.
pub(crate) fn check(options: Options) -> Result<Checked, String> {
    postgres::check(options).map_err(|e| e.to_string())
}

/// How the server is connected to.
pub(crate) fn options(settings: &Settings) -> Result<Options, String> {
    let mut options = Options::new(&settings.node.store_url).map_err(|e| e.to_string())?;
    options.readers = settings.store.readers;
    options.password_file.clone_from(&settings.node.store_password_file);
    if let Some(password) = std::env::var_os("PGPASSWORD").filter(|_| options.password_file.is_none()) {
        options.config.password(password.as_bytes());
    }
    Ok(options)
}

fn of_node(settings: &Settings, goes_on: Option<Epoch>) -> Result<Options, String> {
    let mut options = options(settings)?;
    let name = node_name(settings, &settings.node.data_dir).map_err(|e| format!("node.name: {e}"))?;
    (options.node, options.goes_on) = (name.into(), goes_on);
    options.joins = joins(settings)?;
    Ok(options)
}

/// What the node says of itself to the others of its cell, if it is in one.
fn joins(settings: &Settings) -> Result<Option<Joins>, String> {
    let cell = &settings.cell;
    if cell.nats.is_empty() || cell.secret_file.is_none() {
        return Ok(None);
    }
    let secret = Joins::digest(&assemble::secret(settings)?);
    let redis = if cell.redis.is_empty() { "empty" } else { "set" };
    Ok(Some(Joins {
        release: env!("CARGO_PKG_VERSION").into(),
        shared: vec![
            ("cell.secret_file".into(), secret),
            ("cell.prefix".into(), cell.prefix.as_str().into()),
            ("cell.redis".into(), redis.into()),
        ],
    }))
}

/// The node's name among those that share a database: the one that is set, or one that is made once and kept in its data folder. So a process
/// that is started again has the name of the one before it, and no other node has.
pub(crate) fn node_name(settings: &Settings, data_dir: &Path) -> std::io::Result<String> {
    if !settings.node.name.is_empty() {
        return Ok(settings.node.name.clone());
    }
    let path = data_dir.join("node.name");
    match std::fs::read_to_string(&path) {
        Ok(name) if (1..=255).contains(&name.trim().len()) => Ok(name.trim().to_owned()),
        Ok(_) => Err(std::io::Error::other(format!(
            "{} holds no name; remove it to have a new one",
            path.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            let name = format!("node-{:016x}", u64::from_be_bytes(bytes));
            crate::files::write_whole(&path, format!("{name}\n").as_bytes(), 0o644)?;
            Ok(name)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes that share a database and name nothing must not end each other's writes; a node that is started again must those of the
    /// process before it.
    #[test]
    fn a_node_keeps_its_name_and_no_other_has_it() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let name = |folder: &tempfile::TempDir, name: &str| {
            let mut settings = Settings::default();
            settings.node.data_dir = folder.path().into();
            settings.node.name = name.to_owned();
            node_name(&settings, &settings.node.data_dir).expect("a name")
        };
        let [one, other] = &folders;
        assert_eq!(name(one, "edge-1"), "edge-1");
        assert_eq!(name(one, ""), name(one, ""), "after a restart");
        assert_ne!(name(one, ""), name(other, ""));
        std::fs::write(one.path().join("node.name"), "\n").expect("written");
        let mut settings = Settings::default();
        settings.node.data_dir = one.path().into();
        assert!(
            node_name(&settings, &settings.node.data_dir).is_err(),
            "an empty file is no name that others could have, too"
        );
    }
}
