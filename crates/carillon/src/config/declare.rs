//! What a setting is, and the macro that makes the list of them.

use super::Settings;
use super::kind::Kind;
use super::value::Value;

/// One setting, as listed in [`SETTINGS`](super::SETTINGS), or of an `S` of which there may be many.
#[derive(Debug)]
pub struct Setting<S: 'static = Settings> {
    /// Its key in the file and in `--set`, such as `c2s.port`.
    pub key: &'static str,
    /// What the settings of its group are about.
    pub(super) group: &'static str,
    pub(super) about: &'static str,
    /// The values that it accepts.
    pub kind: Kind,
    /// Whether a running node can take a new value.
    pub reload: Reload,
    /// Its default under `limits.profile = "benchmark"`, where that differs.
    pub benchmark: Option<u64>,
    pub(super) get: fn(&S) -> Value,
    pub(super) set: fn(&mut S, Value),
}

/// Whether SIGHUP can change a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// SIGHUP applies a new value.
    Live,
    /// Only a restart does.
    Restart,
}

impl<S: Default> Setting<S> {
    /// What it does, in a sentence or two.
    pub fn about(&self) -> &'static str {
        self.about.trim()
    }

    /// Its value in `settings`.
    pub fn value(&self, settings: &S) -> Value {
        (self.get)(settings)
    }

    /// Its default, outside the benchmark profile.
    pub fn default(&self) -> Value {
        self.value(&S::default())
    }

    /// Puts a value into `settings`; it must be one that [`Kind::read`] gave.
    pub(super) fn put(&self, settings: &mut S, value: Value) {
        (self.set)(settings, value);
    }
}

/// Makes a list such as [`SETTINGS`](super::SETTINGS), which describes every setting of a struct and can get and set it, of groups of lines:
///
/// ```text
/// /// What the list is.
/// NAME of Struct;
/// "What the group is about." {
///     /// What the setting does.
///     "its.key" = its.field.in.settings, kind(bounds), Live|Restart [, benchmark value];
/// }
/// ```
macro_rules! settings {
    ($(#[doc = $list:literal])+ $name:ident of $of:ty; $(
        $group:literal {
            $(
                $(#[doc = $about:literal])+
                $key:literal = $($field:ident).+, $kind:expr, $reload:ident $(, benchmark $lifted:expr)?;
            )+
        }
    )+) => {
        $(#[doc = $list])+
        pub static $name: &[Setting<$of>] = &[$($(
            Setting {
                key: $key,
                group: $group,
                about: concat!($($about),+),
                kind: $kind,
                reload: Reload::$reload,
                benchmark: settings!(@lifted $($lifted)?),
                get: |settings| Field::to_value(&settings.$($field).+),
                set: |settings, value| {
                    settings.$($field).+ =
                        Field::from_value(value).expect("the kind of a setting fits its type: a test tries all");
                },
            },
        )+)+];
    };
    (@lifted) => { None };
    (@lifted $lifted:expr) => { Some($lifted) };
}

pub(super) use settings;
