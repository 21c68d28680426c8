//! Whether the folders can be written.

use super::Finding;
use crate::assemble;
use crate::config::Settings;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// What is wrong with the data folder, and with that of the event log.
pub(super) fn inspect(settings: &Settings) -> Vec<Finding> {
    let data = (&*settings.node.data_dir, "data_dir");
    let events = assemble::event_folder(settings);
    let events = settings.server.event_log.enabled.then_some((&*events, "event_log.path"));
    std::iter::once(data).chain(events).filter_map(|(folder, setting)| look(folder, setting)).collect()
}

fn look(folder: &Path, setting: &'static str) -> Option<Finding> {
    let shown = folder.display();
    if folder.exists() && !folder.is_dir() {
        return Some(Finding::error(setting, format!("{shown} is not a folder"), "name a folder"));
    }
    // A folder that is missing is created at the start: in the nearest one that is there.
    let nearest = folder.ancestors().find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let nearest = nearest.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let error = write(nearest).err()?;
    Some(Finding::error(
        setting,
        format!("{shown} cannot be written: {error}"),
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("let the user that runs the node write to {}", nearest.display())
            }
            io::ErrorKind::StorageFull => "free some space".to_owned(),
            _ => format!("set {setting} to a folder that can be written"),
        },
    ))
}

/// Writes a file into a folder, and removes it.
fn write(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".carillon-check.{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).open(&probe).map(drop);
    // It is there only when that went well.
    let _ = fs::remove_file(&probe);
    written
}
