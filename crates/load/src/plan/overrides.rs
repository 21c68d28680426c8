//! Changes to a scenario from the command line: `players.count=5`, `publish.items=20`.

use serde_json::{Map, Value};

use super::scenario::{Scenario, ScenarioError};

/// Keys of a phase that identify it and cannot be changed.
const FIXED: [&str; 2] = ["do", "name"];

impl Scenario {
    /// Changes one value. The key is `players.KEY`, or `PHASE.KEY` with a phase's name: then the value changes in all
    /// phases of that name that have the key. A key within a table is `PHASE.TABLE.KEY`. The value is TOML; text needs no quotes.
    pub fn set(&mut self, change: &str) -> Result<(), ScenarioError> {
        let (key, text) = change.split_once('=').unwrap_or((change, ""));
        let (key, text) = (key.trim(), text.trim());
        let wrong = |why: String| ScenarioError::Value { at: key.to_owned(), why };
        if text.is_empty() {
            return Err(wrong("expected KEY=VALUE".to_owned()));
        }
        let value = read(text).map_err(&wrong)?;
        let mut whole = serde_json::to_value(&*self).map_err(|error| wrong(error.to_string()))?;
        let mut changed = false;
        for (name, table) in tables(&mut whole) {
            let Some(member) = key.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.')) else {
                continue;
            };
            if let Some(place) = place(table, member).filter(|_| !FIXED.contains(&member)) {
                *place = value.clone();
                changed = true;
            }
        }
        if !changed {
            return Err(ScenarioError::Unknown { key: key.to_owned(), known: known(&mut whole) });
        }
        let new: Self = serde_json::from_value(whole).map_err(|error| wrong(error.to_string()))?;
        new.check()?;
        *self = new;
        Ok(())
    }
}

/// The value of a key, or of a key within a table.
fn place<'a>(table: &'a mut Map<String, Value>, member: &str) -> Option<&'a mut Value> {
    let (first, rest) = member.split_once('.').map_or((member, None), |(first, rest)| (first, Some(rest)));
    let value = table.get_mut(first)?;
    match rest {
        None => Some(value),
        Some(rest) => place(value.as_object_mut()?, rest),
    }
}

/// Reads a value as TOML, or else as text.
fn read(text: &str) -> Result<Value, String> {
    let table = toml::from_str::<Map<String, Value>>(&format!("value = {text}"));
    match table {
        Ok(mut table) => Ok(table.remove("value").unwrap_or_default()),
        // A table or quoted text is meant as TOML: report what is wrong with it.
        Err(error) if text.starts_with(['{', '[', '"', '\'']) => Err(error.message().to_owned()),
        Err(_) => Ok(Value::from(text)),
    }
}

/// The tables of a scenario that have values to change, by their names in overrides.
fn tables(whole: &mut Value) -> Vec<(String, &mut Map<String, Value>)> {
    let mut tables = Vec::new();
    let Some(whole) = whole.as_object_mut() else { return tables };
    for (key, value) in whole {
        match value {
            Value::Object(table) => tables.push((key.clone(), table)),
            Value::Array(phases) => {
                for phase in phases.iter_mut().filter_map(Value::as_object_mut) {
                    let name = phase.get("name").filter(|name| name.is_string()).or(phase.get("do"));
                    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
                    tables.push((name, phase));
                }
            }
            _ => {}
        }
    }
    tables
}

fn known(whole: &mut Value) -> String {
    let mut keys: Vec<String> = Vec::new();
    for (name, table) in tables(whole) {
        let members = table.keys().filter(|key| !FIXED.contains(&key.as_str()));
        keys.extend(members.map(|member| format!("{name}.{member}")));
    }
    keys.sort_unstable();
    keys.dedup();
    keys.join(", ")
}
