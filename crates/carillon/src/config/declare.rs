//! What a declared setting is, and the macro that makes a struct, defaults and descriptions of one declaration.

use super::Settings;
use super::kind::Kind;
use super::value::Value;

pub use super::settings::SETTINGS;

/// One setting, as declared in [`SETTINGS`].
#[derive(Debug)]
pub struct Setting {
    /// Its key in the file and in `--set`, such as `c2s.port`.
    pub key: &'static str,
    /// What the settings of its group are about.
    pub(super) group: &'static str,
    pub(super) about: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether a running node can take a new value.
    pub reload: Reload,
    /// Its default under `limits.profile = "benchmark"`, where that differs.
    pub benchmark: Option<u64>,
    pub(super) get: fn(&Settings) -> Value,
    pub(super) set: fn(&mut Settings, Value),
}

/// Whether SIGHUP can change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// SIGHUP applies a new value.
    Live,
    /// Only a restart does.
    Restart,
}

impl Setting {
    /// The setting of this key.
    pub fn named(key: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|s| s.key == key)
    }

    /// What it does, in a sentence or two.
    pub fn about(&self) -> &'static str {
        self.about.trim()
    }

    /// Its value in `settings`.
    pub fn value(&self, settings: &Settings) -> Value {
        (self.get)(settings)
    }

    /// Its default, outside the benchmark profile.
    pub fn default(&self) -> Value {
        self.value(&Settings::default())
    }

    /// Puts a value into `settings`; it must be one that [`Kind::read`] gave.
    pub(super) fn put(&self, settings: &mut Settings, value: Value) {
        (self.set)(settings, value);
    }
}

/// Declares groups of settings:
///
/// ```text
/// /// What the group is about.
/// group: Group {
///     /// What the setting does.
///     "its.key" field: Type = default, kind(bounds), Live|Restart [, benchmark value];
/// }
/// ```
///
/// and makes `Settings` with a field a group, each group's struct with its defaults, and `SETTINGS`, which describes
/// every one and can get and set it.
macro_rules! settings {
    ($(
        $(#[doc = $group_about:literal])+
        $group:ident: $Group:ident {
            $(
                $(#[doc = $about:literal])+
                $key:literal $field:ident: $type:ty = $default:expr, $kind:expr, $reload:ident
                $(, benchmark $lifted:expr)?;
            )+
        }
    )+) => {
        /// Everything a node can be told. [`Config::load`](super::Config::load) fills it; whoever assembles the node
        /// reads it. Every value is within its bounds.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings {
            $( $(#[doc = $group_about])+ pub $group: $Group, )+
        }

        $(
            $(#[doc = $group_about])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Group {
                $( $(#[doc = $about])+ pub $field: $type, )+
            }

            impl $Group {
                const ABOUT: &'static str = concat!($($group_about),+);
            }

            impl Default for $Group {
                fn default() -> $Group {
                    $Group { $( $field: $default, )+ }
                }
            }
        )+

        /// Every setting there is, in the order people read them.
        pub static SETTINGS: &[Setting] = &[$($(
            Setting {
                key: $key,
                group: $Group::ABOUT,
                about: concat!($($about),+),
                kind: $kind,
                reload: Reload::$reload,
                benchmark: settings!(@lifted $($lifted)?),
                get: |settings| Field::to_value(&settings.$group.$field),
                set: |settings, value| {
                    settings.$group.$field =
                        Field::from_value(value).expect("the kind of a setting fits its type: a test tries all");
                },
            },
        )+)+];
    };
    (@lifted) => { None };
    (@lifted $lifted:expr) => { Some($lifted) };
}

pub(super) use settings;
