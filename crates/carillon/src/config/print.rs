//! The settings for people: a sample file, a manual page, a table, and one setting explained.

use super::declare::{Reload, Setting};
use super::push_apps::{self, PUSH_APP};
use super::push_templates::{self, PUSH_TEMPLATE};
use super::queues::{self, QUEUE};
use super::settings::SETTINGS;
use super::{Config, Kind, Origin, Value, environment, unit};
use std::fmt::Write;

/// Before the settings in the sample file.
const SAMPLE_HEAD: &str = "\
# Carillon: every setting, at its default. Keep what you change, delete the rest.
# Times are milliseconds or text like \"30s\"; sizes are bytes or text like \"64KiB\".
# SIGHUP applies what is marked so, a restart applies everything.
";

/// Before the settings in the manual.
const MANUAL_HEAD: &str = "\
# Configuration

<!-- Printed by `carillon config manual`; change crates/carillon/src/config/settings.rs instead. -->

Every setting has a default that suits a first run: `carillon serve` needs no file. There are three ways to change a
setting, and each overrides the one before it:

1. a TOML file, given as `carillon serve --config FILE`;
2. the environment: the variable of `c2s.port` is `CARILLON_C2S_PORT`, that of `limits.stanza_bytes` is
   `CARILLON_LIMITS_STANZA_BYTES`;
3. the command line: `--set KEY=VALUE`, as often as needed, and `--data-dir DIR`.

An unknown key, a value of the wrong type and a value outside its bounds stop the start, and the message says where it was
set and what the setting takes. A variable that begins with `CARILLON_` and belongs to no setting is a warning.

| to | run |
|---|---|
| get a file with every setting at its default | `carillon config sample` |
| check a file, and the machine it is for | `carillon config check --config FILE` |
| see every value and where it comes from | `carillon config explain --config FILE` |
| have one setting explained | `carillon config explain KEY` |

`carillon config check` also looks at the machine: whether the ports are free, the folders can be written, the certificate can be
read, belongs to its key, names the domain and is valid today, and whether enough files may be open for
`limits.max_connections`. Each finding says what helps. The exit status is 1 when a node could not run or its clients could not
connect, 2 when a setting is wrong, and 0 otherwise, warnings included; [`--production`](production.md) looks for more. `carillon serve` says the same findings when it starts.

Dots in a key are tables in the file: `c2s.port = 5222`, or `port = 5222` under `[c2s]`. Keys that end in `_ms` are
times: milliseconds, or text such as `\"250ms\"`, `\"30s\"`, `\"5m\"`, `\"12h\"`, `\"7d\"`. Keys that speak of bytes are
sizes: bytes, or text such as `\"64KiB\"`, `\"1MiB\"`.

On SIGHUP the node reads its file again. Settings marked *live* change at once, for connections that are open too;
other settings that were changed are named in the log and wait for a restart. Certificate files are read again
whether or not their names changed. When the file has a problem, nothing changes and the log says what it is.
";

/// A settings file with every setting at its default.
pub fn sample() -> String {
    let mut out = SAMPLE_HEAD.to_owned();
    // A table stands once in a file of TOML, although several groups may have settings in it.
    let mut tables: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        let (table, _) = in_table(setting.key);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let mut group = "";
    for table in tables {
        let mut is_open = table.is_empty();
        for setting in SETTINGS.iter().filter(|setting| in_table(setting.key).0 == table) {
            if setting.group != group {
                group = setting.group;
                let _ = write!(out, "\n{}", commented(&format!("---- {}", group.trim())));
            }
            out.push('\n');
            if !is_open {
                is_open = true;
                let _ = writeln!(out, "[{table}]");
            }
            out.push_str(&commented(setting.about()));
            let _ = writeln!(out, "# {}", hint(setting));
            let _ = writeln!(out, "{} = {}", in_table(setting.key).1, setting.default());
        }
    }
    sample_table(&mut out, queues::TABLE, QUEUE);
    sample_table(&mut out, push_apps::TABLE, PUSH_APP);
    sample_table(&mut out, push_templates::TABLE, PUSH_TEMPLATE);
    out
}

/// The table of a setting, and its name there.
fn in_table(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// The settings of a table with a name, of which none is there by default.
fn sample_table<S: Default>(out: &mut String, tables: &str, list: &[Setting<S>]) {
    for (n, setting) in list.iter().enumerate() {
        if n == 0 {
            let _ = write!(
                out,
                "\n{}\n# [{tables}.NAME]\n",
                commented(&format!("---- {}", setting.group.trim()))
            );
        }
        out.push_str(&commented(setting.about()));
        let _ = write!(out, "# {}\n# {} = {}\n", takes(&setting.kind), setting.key, setting.default());
    }
}

/// The manual page.
pub fn manual() -> String {
    let mut out = MANUAL_HEAD.to_owned();
    let mut group = "";
    for setting in SETTINGS {
        if setting.group != group {
            group = setting.group;
            out.push_str(&manual_group(group.trim()));
        }
        out.push_str(&manual_row(setting, ""));
    }
    manual_table(&mut out, queues::TABLE, QUEUE);
    manual_table(&mut out, push_apps::TABLE, PUSH_APP);
    manual_table(&mut out, push_templates::TABLE, PUSH_TEMPLATE);
    out.push_str(&manual_profile());
    out
}

/// The settings of a table with a name.
fn manual_table<S: Default>(out: &mut String, tables: &str, list: &[Setting<S>]) {
    for (n, setting) in list.iter().enumerate() {
        if n == 0 {
            out.push_str(&manual_group(setting.group.trim()));
        }
        out.push_str(&manual_row(setting, &format!("{tables}.NAME.")));
    }
}

fn manual_row<S: Default>(setting: &Setting<S>, prefix: &str) -> String {
    let live = match setting.reload {
        Reload::Live => "live",
        Reload::Restart => "restart",
    };
    let (default, takes) = (setting.default(), takes(&setting.kind));
    let default = human(&setting.kind, &default).unwrap_or_else(|| default.to_string());
    format!("| `{prefix}{}` | `{default}` | {takes} | {live} | {} |\n", setting.key, setting.about())
}

/// A group's heading, what else is said of it, and the head of its table. The first sentence is the heading.
fn manual_group(about: &str) -> String {
    let (heading, rest) = about.split_once(". ").unwrap_or((about.trim_end_matches('.'), ""));
    let rest = if rest.is_empty() { String::new() } else { format!("{rest}\n\n") };
    format!("\n## {heading}\n\n{rest}| setting | default | takes | applied | |\n|---|---|---|---|---|\n")
}

/// What `limits.profile` lifts, for the manual.
fn manual_profile() -> String {
    let mut out = String::from(
        "\n## What `limits.profile = \"benchmark\"` lifts\n\nThese limits on rates and counts get another default; one that \
         is set to something else stays so. All other\nlimits guard the memory of the node and stay.\n\n\
         | setting | default | benchmark |\n|---|---|---|\n",
    );
    for setting in SETTINGS {
        if let Some(lifted) = setting.benchmark {
            let _ = writeln!(out, "| `{}` | `{}` | `{lifted}` |", setting.key, setting.default());
        }
    }
    out
}

/// One setting with everything there is to know about it.
pub fn explain(config: &Config, setting: &Setting) -> String {
    let with_human = |value: Value| match human(&setting.kind, &value) {
        Some(text) => format!("{value} ({text})"),
        None => value.to_string(),
    };
    let mut out = format!("{}\n  {}\n\n", setting.key, setting.about());
    let _ = writeln!(out, "  value    {}", with_human(setting.value(&config.settings)));
    let _ = writeln!(out, "  from     {}", origin(config, setting));
    let _ = writeln!(out, "  default  {}", with_human(setting.default()));
    if let Some(lifted) = setting.benchmark {
        let _ = writeln!(out, "           {lifted} under limits.profile = \"benchmark\"");
    }
    let _ = writeln!(out, "  takes    {}", setting.kind);
    let _ = writeln!(out, "  applied  {}", applied(setting));
    let _ = writeln!(out, "  variable {}", environment::variable(setting.key));
    out
}

/// Who decided the value of `setting`, in words.
pub fn origin(config: &Config, setting: &Setting) -> String {
    match config.origin(setting) {
        Origin::Default => "default".to_owned(),
        Origin::Profile => "limits.profile".to_owned(),
        Origin::Set(place) => place.to_string(),
    }
}

fn applied(setting: &Setting) -> &'static str {
    match setting.reload {
        Reload::Live => "by SIGHUP",
        Reload::Restart => "by a restart",
    }
}

/// The line above a setting of the sample file.
fn hint(setting: &Setting) -> String {
    let live = if setting.reload == Reload::Live { "; by SIGHUP" } else { "" };
    format!("{}{live}", takes(&setting.kind))
}

/// What a kind takes, in a table's cell.
fn takes(kind: &Kind) -> String {
    match kind {
        Kind::Choices(_) => format!("list of {}", kind.bounds()),
        Kind::Names | Kind::Texts | Kind::Addresses | Kind::Networks => format!("list: {}", kind.bounds()),
        Kind::Text { .. } => format!("text, {}", kind.bounds()),
        _ => kind.bounds(),
    }
}

/// A number with a unit, as people say it; none where that is how it is written anyway.
fn human(kind: &Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Milliseconds { .. }, Value::Number(ms)) => Some(unit::show_ms(*ms)),
        (Kind::Bytes { .. }, Value::Number(bytes)) => Some(unit::show_bytes(*bytes)),
        _ => None,
    }
}

/// `text` as comment lines of at most 100 columns.
fn commented(text: &str) -> String {
    let mut out = String::from("#");
    let mut column = 1;
    for word in text.split_whitespace() {
        if column + 1 + word.len() > 100 {
            out.push_str("\n#");
            column = 1;
        }
        let _ = write!(out, " {word}");
        column += 1 + word.len();
    }
    out.push('\n');
    out
}
