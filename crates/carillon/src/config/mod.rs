//! Configuration: every setting, listed in `settings`, and read from a TOML file, from the environment and from `--set`.
//!
//! [`Config::load`] gives the [`Settings`] the node is built from, and remembers where each came from. They are the structs of
//! those who use them, with their defaults. The sample file, the manual page and `carillon config explain` are printed from
//! the list ([`mod@print`]).

mod check;
mod declare;
mod environment;
mod kind;
mod load;
pub mod print;
mod problem;
mod push_apps;
mod push_templates;
mod queues;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod unit;
mod value;

pub use declare::{Reload, Setting};
pub use kind::Kind;
pub use load::nearest;
pub use problem::{Place, Problem, Problems};
pub use push_apps::PUSH_APP;
pub use push_templates::PUSH_TEMPLATE;
pub use queues::QUEUE;
pub use settings::*;
pub(crate) use unit::bytes;
pub use unit::milliseconds;
pub use value::{Profile, Value};

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the settings are written: what `carillon serve` and `carillon config` take on their command lines.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Source {
    /// Settings file (TOML); without one, every setting has its default
    #[arg(long = "config", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// One setting, which overrides the file and the environment; may be given again
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Data folder: the same as --set data_dir=DIR
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Who decided the value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: it is the default.
    Default,
    /// `limits.profile`, which changes the defaults of some limits.
    Profile,
    /// The settings file, the environment or the command line.
    Set(Place),
}

/// The settings of a node, and where each came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The settings.
    pub settings: Settings,
    /// What looks like a mistake and stops nothing: variables that begin with `CARILLON_` and name no setting.
    pub warnings: Vec<String>,
    source: Source,
    /// One for each of [`SETTINGS`], in their order.
    origins: Vec<Origin>,
    /// Where the first setting of each queue was written.
    queue_places: BTreeMap<String, Place>,
    /// Where the first setting of each app of pushes was written.
    app_places: BTreeMap<String, Place>,
    /// Where the first setting of each template of pushes was written.
    template_places: BTreeMap<String, Place>,
}

/// What reading the settings again came to.
#[derive(Clone, Debug)]
pub struct Reloaded {
    /// The settings to run with from now on: the live ones are new, all others are as they were.
    pub config: Config,
    /// Live settings that have another value now.
    pub changed: Vec<&'static str>,
    /// Settings that were changed and that only a restart applies.
    pub needs_restart: Vec<&'static str>,
}

impl Config {
    /// Reads the settings of `source`. Every problem is reported, not only the first.
    pub fn load(source: &Source) -> Result<Config, Problems> {
        let text = match &source.file {
            None => None,
            Some(file) => Some(std::fs::read_to_string(file).map_err(|e| {
                Problems(vec![Problem::Unreadable { file: file.clone(), reason: e.to_string() }])
            })?),
        };
        load::load(source, text.as_deref(), &environment::variables())
    }

    /// Reads the same source again, as SIGHUP asks for. Files that settings name, such as certificates, may have new
    /// contents under the same name: read them again whatever `changed` says.
    pub fn reload(&self) -> Result<Reloaded, Problems> {
        Config::load(&self.source).map(|new| self.adopt(new))
    }

    /// Where the value of `setting` comes from.
    pub fn origin(&self, setting: &Setting) -> &Origin {
        let index = SETTINGS.iter().position(|s| s.key == setting.key);
        &self.origins[index.expect("a Setting is always one of SETTINGS")]
    }

    /// `new`, but with the settings that cannot change in a running node as they are here.
    fn adopt(&self, mut new: Config) -> Reloaded {
        let (mut changed, mut needs_restart) = (Vec::new(), Vec::new());
        for (i, setting) in SETTINGS.iter().enumerate() {
            let old = setting.value(&self.settings);
            if setting.value(&new.settings) == old {
                continue;
            }
            match setting.reload {
                Reload::Live => changed.push(setting.key),
                Reload::Restart => {
                    needs_restart.push(setting.key);
                    setting.put(&mut new.settings, old);
                    new.origins[i] = self.origins[i].clone();
                }
            }
        }
        if new.settings.queues != self.settings.queues {
            needs_restart.push(queues::TABLE);
            new.settings.queues.clone_from(&self.settings.queues);
            new.queue_places.clone_from(&self.queue_places);
        }
        if new.settings.push_apps != self.settings.push_apps {
            changed.push(push_apps::TABLE);
        }
        if new.settings.push_templates != self.settings.push_templates {
            changed.push(push_templates::TABLE);
        }
        Reloaded { config: new, changed, needs_restart }
    }
}
