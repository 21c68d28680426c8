//! `/metrics` of Carillon's nodes: what their clients ask for, also where it was refused.

use super::super::driver::Edge;
use super::super::exposition::sum;
use super::{Reading, Since, Source, carries};
use crate::web::{Web, secret};
use carillon_scale::Observation;
use carillon_scale::rate::Counter;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What one unit, an edge, carries of each; at least one of them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct PerUnit {
    /// Logins per second.
    logins: Option<f64>,
    /// Connections at a time.
    connections: Option<f64>,
    /// Bytes per second, both ways.
    bytes: Option<f64>,
    /// Cores.
    cpu: Option<f64>,
    /// Bytes of memory.
    memory: Option<f64>,
}

/// Nodes that are read together.
pub(super) struct Nodes {
    web: Web,
    key: Option<String>,
    /// Their URLs; those of the driver's edges without.
    urls: Option<Vec<String>>,
    per_unit: PerUnit,
    since: Since,
    known: BTreeMap<String, Counters>,
}

/// The counters of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    logins: Counter,
    refused: Counter,
    bytes: Counter,
    cpu: Counter,
}

/// What the clients of a node, or of all nodes, ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// Per second: let in or turned down for what they said.
    logins: f64,
    /// Per second: turned away for want of room, before they said anything.
    refused: f64,
    connections: f64,
    bytes: f64,
    cpu: f64,
    memory: f64,
}

impl Nodes {
    pub(super) fn new(
        urls: Option<Vec<String>>,
        key_file: Option<&Path>,
        per_unit: PerUnit,
    ) -> Result<Self, String> {
        let all = [per_unit.logins, per_unit.connections, per_unit.bytes, per_unit.cpu, per_unit.memory];
        if all.iter().all(Option::is_none) {
            return Err("source.per_unit: expected logins, connections, bytes, cpu or memory".to_owned());
        }
        all.into_iter().flatten().try_for_each(|carried| carries(carried).map(|_| ()))?;
        if urls.as_ref().is_some_and(Vec::is_empty) {
            return Err("source.nodes: there are none".to_owned());
        }
        let key = key_file.map(secret).transpose()?;
        Ok(Self {
            web: Web::new(None)?,
            key,
            urls,
            per_unit,
            since: Since::default(),
            known: BTreeMap::new(),
        })
    }

    /// What one node was asked for since `last`.
    fn node(&mut self, url: &str, last: Duration, now: Duration) -> Result<Asked, String> {
        let page = self.web.get(&format!("{}/metrics", url.trim_end_matches('/')), self.key.as_deref())?;
        let value = |name: &str| sum(&page, name).ok_or_else(|| format!("{url}/metrics has no {name}"));
        let is_new = !self.known.contains_key(url);
        let began =
            now.saturating_sub(Duration::from_secs_f64(value("carillon_uptime_seconds")?.clamp(0.0, 1e9)));
        let counters = self.known.entry(url.to_owned()).or_default();
        if is_new && began > last {
            // It was started since, so its counters began at nothing.
            counters.begin(last);
        }
        // Before a client says anything it may have been turned away; what it says may be wrong.
        let failures = sum(&page, "carillon_login_failures_total").unwrap_or_default();
        let rates = [
            counters.logins.read(now, value("carillon_logins_total")? + failures),
            counters.refused.read(now, value("carillon_connections_refused_total")?),
            counters
                .bytes
                .read(now, value("carillon_received_bytes_total")? + value("carillon_sent_bytes_total")?),
            counters.cpu.read(now, value("process_cpu_seconds_total")?),
        ];
        let [logins, refused, bytes, cpu] = rates.map(|rate| rate.map_err(|why| format!("{url}: {why}")));
        Ok(Asked {
            logins: logins?,
            refused: refused?,
            bytes: bytes?,
            cpu: cpu?,
            connections: value("carillon_connections")?,
            memory: value("process_resident_memory_bytes")?,
        })
    }
}

impl Counters {
    /// All of them were nothing then.
    fn begin(&mut self, then: Duration) {
        for counter in [&mut self.logins, &mut self.refused, &mut self.bytes, &mut self.cpu] {
            let _ = counter.read(then, 0.0);
        }
    }
}

impl Asked {
    fn add(&mut self, other: Asked) {
        self.logins += other.logins;
        self.refused += other.refused;
        self.connections += other.connections;
        self.bytes += other.bytes;
        self.cpu += other.cpu;
        self.memory += other.memory;
    }

    /// Units for what was asked for, and for what was done: those of whatever needs most.
    fn units(&self, per_unit: &PerUnit, seconds: f64) -> (f64, f64) {
        let logins = (self.logins + self.refused, self.logins);
        // Whoever was turned away wanted a connection.
        let connections = (self.connections + self.refused * seconds, self.connections);
        let same = |value: f64| (value, value);
        let all = [
            (per_unit.logins, logins),
            (per_unit.connections, connections),
            (per_unit.bytes, same(self.bytes)),
            (per_unit.cpu, same(self.cpu)),
            (per_unit.memory, same(self.memory)),
        ];
        let needed =
            all.into_iter().filter_map(|(carried, (asked, done))| Some((asked / carried?, done / carried?)));
        needed.fold((0.0, 0.0), |most, one| (f64::max(most.0, one.0), f64::max(most.1, one.1)))
    }
}

impl Source for Nodes {
    fn read(&mut self, now: Duration, edges: &[Edge]) -> Result<Reading, String> {
        let urls = match &self.urls {
            Some(urls) => urls.clone(),
            None => edges.iter().filter_map(|edge| edge.url.clone()).collect(),
        };
        if urls.is_empty() {
            return Err("the driver lists no edge with a URL, and source.nodes names none".to_owned());
        }
        let since = self.since.read(now);
        let last = since.as_ref().copied().unwrap_or(now);
        // All are read, also after one that does not answer: the others' counters go on from here.
        let asked: Vec<Result<Asked, String>> = urls.iter().map(|url| self.node(url, last, now)).collect();
        self.known.retain(|known, _| urls.contains(known));
        let last = since?;
        let mut all = Asked::default();
        for asked in asked {
            all.add(asked?);
        }
        let (demand, consumed) = all.units(&self.per_unit, (now - last).as_secs_f64());
        let measures = [
            ("logins", all.logins),
            ("refused", all.refused),
            ("connections", all.connections),
            ("bytes", all.bytes),
            ("cpu", all.cpu),
            ("memory", all.memory),
        ];
        let measures = measures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let observation = Observation { from: last, until: now, demand, consumed };
        Ok(Reading { observation, earlier: Vec::new(), measures })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: PerUnit = PerUnit { logins: None, connections: None, bytes: None, cpu: None, memory: None };
    const ASKED: Asked =
        Asked { logins: 30.0, refused: 10.0, connections: 600.0, bytes: 5000.0, cpu: 1.5, memory: 4e9 };

    #[test]
    fn each_kind_is_divided_by_what_a_unit_carries() {
        for (per_unit, asked, done) in [
            (PerUnit { logins: Some(10.0), ..NONE }, 4.0, 3.0),
            // Ten per second were turned away in a minute: each wanted a connection.
            (PerUnit { connections: Some(300.0), ..NONE }, 4.0, 2.0),
            (PerUnit { bytes: Some(2000.0), ..NONE }, 2.5, 2.5),
            (PerUnit { cpu: Some(0.5), ..NONE }, 3.0, 3.0),
            (PerUnit { memory: Some(1e9), ..NONE }, 4.0, 4.0),
        ] {
            assert_eq!(ASKED.units(&per_unit, 60.0), (asked, done), "{per_unit:?}");
        }
    }

    #[test]
    fn the_kind_that_needs_most_units_decides() {
        let per_unit = PerUnit { logins: Some(20.0), bytes: Some(4000.0), memory: Some(1.6e9), ..NONE };
        assert_eq!(ASKED.units(&per_unit, 60.0), (2.5, 2.5));
        // Of what is asked for and of what is done, not always the same.
        let per_unit = PerUnit { logins: Some(10.0), bytes: Some(1500.0), ..NONE };
        assert_eq!(ASKED.units(&per_unit, 60.0), (4.0, 5000.0 / 1500.0));
    }
}
