//! That every dependency comes from crates.io under a licence of `deny.toml`: the part of `cargo deny` that the gate cannot
//! do without, for where that program is not installed.

use crate::tree;
use serde_json::Value;
use std::process::Command;

/// What is wrong with the dependencies.
///
/// # Errors
/// `cargo metadata` or `deny.toml` cannot be read.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let allowed =
        allowed(&std::fs::read_to_string(tree::root().join("deny.toml")).map_err(|e| e.to_string())?)?;
    let packages = packages()?;
    let foreign = packages.iter().filter(|package| !package["source"].is_null());
    Ok(foreign.filter_map(|package| finding(package, &allowed)).collect())
}

/// Every package of the graph, ours included.
fn packages() -> Result<Vec<Value>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--all-features"]).current_dir(tree::root());
    let output = cargo.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => Err("cargo metadata names no packages".to_owned()),
    }
}

/// The licences that `deny.toml` allows.
fn allowed(deny: &str) -> Result<Vec<String>, String> {
    let deny: toml::Table = deny.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let list =
        deny.get("licenses").and_then(|licenses| licenses.get("allow")).and_then(toml::Value::as_array);
    let list = list.ok_or("deny.toml: no licenses.allow")?;
    Ok(list.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
}

fn finding(package: &Value, allowed: &[String]) -> Option<String> {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let (name, version, source) = (text("name"), text("version"), text("source"));
    if source != CRATES_IO {
        return Some(format!("{name} {version}: from {source}, not crates.io"));
    }
    match Expression::new(text("license"), allowed).met() {
        Some(true) => None,
        Some(false) => Some(format!("{name} {version}: `{}` is not allowed by deny.toml", text("license"))),
        None => Some(format!("{name} {version}: `{}` is no SPDX expression", text("license"))),
    }
}

/// An SPDX licence expression while it is read: `AND` binds closer than `OR`, `WITH` closest; `/` is an old way to say `OR`.
struct Expression<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

impl<'a> Expression<'a> {
    fn new(text: &'a str, allowed: &'a [String]) -> Expression<'a> {
        let mut tokens = Vec::new();
        for word in text.split_whitespace() {
            let mut rest = word;
            while let Some(at) = rest.find(['(', ')', '/']) {
                tokens.extend([&rest[..at], &rest[at..=at]].into_iter().filter(|token| !token.is_empty()));
                rest = &rest[at + 1..];
            }
            tokens.extend((!rest.is_empty()).then_some(rest));
        }
        Expression { tokens, at: 0, allowed }
    }

    /// Whether what is allowed meets it; none if it cannot be read.
    fn met(mut self) -> Option<bool> {
        let met = self.any()?;
        (self.at == self.tokens.len()).then_some(met)
    }

    fn any(&mut self) -> Option<bool> {
        let mut met = self.all()?;
        while self.takes("OR") || self.takes("/") {
            met |= self.all()?;
        }
        Some(met)
    }

    fn all(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.takes("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let met = self.any()?;
            return self.takes(")").then_some(met);
        }
        let licence = *self.tokens.get(self.at)?;
        self.at += 1;
        // An exception only ever adds rights.
        if self.takes("WITH") {
            self.at += 1;
        }
        let is_word = !matches!(licence, "AND" | "OR" | "WITH" | ")" | "/");
        is_word.then(|| self.allowed.iter().any(|allowed| allowed == licence))
    }

    fn takes(&mut self, token: &str) -> bool {
        let found = self.tokens.get(self.at) == Some(&token);
        self.at += usize::from(found);
        found
    }
}

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[cfg(test)]
mod tests {
    use super::*;

    fn met(text: &str) -> Option<bool> {
        Expression::new(text, &["MIT".to_owned(), "ISC".to_owned()]).met()
    }

    #[test]
    fn expressions_are_read_as_spdx_has_them() {
        for text in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "MIT AND ISC",
            "GPL-2.0 AND BSL-1.0 OR MIT",
            "MIT WITH x",
        ] {
            assert_eq!(met(text), Some(true), "{text}");
        }
        for text in ["GPL-3.0", "MIT AND GPL-3.0", "ISC AND (GPL-2.0 OR BSL-1.0)", "MITX"] {
            assert_eq!(met(text), Some(false), "{text}");
        }
        for text in ["", "MIT OR", "(MIT", "MIT ISC", "AND MIT"] {
            assert_eq!(met(text), None, "{text}");
        }
    }

    #[test]
    fn a_package_from_elsewhere_is_found() {
        let package = |source: &str, licence: &str| serde_json::json!({ "name": "x", "version": "1.0.0", "source": source, "license": licence });
        let allowed = ["MIT".to_owned()];
        assert_eq!(finding(&package(CRATES_IO, "MIT"), &allowed), None);
        assert!(finding(&package("git+https://example.org/x", "MIT"), &allowed).is_some());
        assert!(finding(&package(CRATES_IO, "GPL-3.0"), &allowed).is_some());
    }
}
