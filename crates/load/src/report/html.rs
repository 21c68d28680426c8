//! A report as a page that stands alone: no network, no script.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chart::{Chart, NARROW, Series, WIDE, compact};
use super::histogram;
use super::histogram::Bucket;
use super::model::WorkerState;
use super::model::{PhaseReport, Report};
use super::svg::Escaped;
use super::text::in_order;
use super::timeline::Row;
use super::words;

/// The style sheet of a page.
const STYLE: &str = include_str!("style.css");
/// The style sheet of plots.
const PLOT_STYLE: &str = include_str!("plot.css");
/// The most lines per plot.
const SERIES_MAX: usize = 8;
/// Fewer connections than this say nothing of the memory of one: what the server allocates once is more.
const CONNECTIONS_MIN: u32 = 1000;
const MIB: f64 = 1024.0 * 1024.0;

impl Report {
    /// A page with headline figures, plots, phases, errors and how it was run.
    pub fn html(&self) -> String {
        let mut body = String::new();
        let transport = self.target.transport_name();
        let title = format!("Load test: {}", self.scenario.name);
        let _ = write!(
            body,
            "<h1>{}</h1><p class=sub>{} {} players, {transport}, at {} · {} · {:.1} s</p>",
            Escaped(&title),
            Escaped(&self.scenario.summary),
            self.players,
            Escaped(&self.target.address),
            Escaped(&self.started_at),
            self.seconds
        );
        body += &self.verdict_box();
        body += &self.tiles();
        body += &self.notes();
        body += &self.assertion_table();
        body += &self.upgrade_box();
        body += &self.comparison();
        body += &self.plots();
        body += &self.histograms();
        body += &self.phase_table();
        body += &self.metric_table();
        body += &self.error_table();
        body += &self.worker_table();
        body += &self.how();
        page(&title, &body)
    }

    fn tiles(&self) -> String {
        let mut tiles = Tiles::default();
        let class = if self.failed > 0 { "bad" } else { "" };
        let players = "Players that logged in and were never lost, of all";
        tiles.add(class, &format!("{} / {}", self.successful, self.players), "players successful", players);
        for (name, metric) in &self.metrics {
            tiles.add(
                "",
                &format!("{} ms", compact(metric.percentile99)),
                &format!("{name}, 99th percentile"),
                words::metric(name),
            );
        }
        // The others, such as what was dropped on purpose, are in the plots.
        let main = ["logins", "sent", "deliveries", "receipts", "streams_resumed"];
        for (name, rate) in self.rates.iter().filter(|(name, _)| main.contains(&name.as_str())) {
            tiles.add("", &format!("{}/s", compact(*rate)), name, words::rate(name));
        }
        let server = |find: fn(&super::Cost) -> Option<f64>| {
            self.phases.iter().rev().find_map(|phase| phase.server.as_ref().and_then(find))
        };
        if let Some(ms) = server(|cost| cost.cpu_ms_per_login) {
            tiles.add("", &format!("{} ms", compact(ms)), "server CPU per login", words::CPU);
        }
        if let Some(ms) = server(|cost| cost.cpu_ms_per_resumption) {
            tiles.add("", &format!("{} ms", compact(ms)), "server CPU per resumption", words::CPU);
        }
        if let Some(seconds) = server(|cost| cost.cpu_seconds_per_million_deliveries) {
            tiles.add(
                "",
                &format!("{} s", compact(seconds)),
                "server CPU per million deliveries",
                words::CPU,
            );
        }
        let hold =
            self.phases.iter().rev().find(|phase| phase.action == "hold" && phase.online >= CONNECTIONS_MIN);
        let memory = hold.and_then(|phase| phase.server.as_ref()?.memory_bytes_per_connection);
        if let Some(bytes) = memory {
            tiles.add(
                "",
                &format!("{} KiB", compact(bytes / 1024.0)),
                "server memory per connection",
                words::MEMORY,
            );
        }
        format!("<div class=tiles>{}</div>", tiles.0)
    }

    fn verdict_box(&self) -> String {
        let (verdict, class, reasons) = self.verdict();
        let reasons = list(&reasons);
        format!("<div class=\"box verdict {class}\"><b>{verdict}</b>{reasons}</div>")
    }

    fn notes(&self) -> String {
        if self.notes.is_empty() {
            return String::new();
        }
        format!("<h2>Notes</h2><div class=box>{}</div>", list(&self.notes))
    }

    fn assertion_table(&self) -> String {
        let mut table = Table::new(&["assertion", "result"]);
        for checked in &self.assertions {
            let result = if checked.holds { "holds" } else { &checked.problem };
            table.row(&[checked.assertion.clone(), result.to_owned()]);
        }
        table.finish("Assertions")
    }

    fn comparison(&self) -> String {
        self.comparison.as_ref().map(|comparison| comparison.table_html("Comparison")).unwrap_or_default()
    }

    fn upgrade_box(&self) -> String {
        let Some(upgrade) = &self.upgrade else { return String::new() };
        let lines = upgrade.lines().into_iter().map(|(name, words)| format!("{}: {words}", name.trim()));
        format!("<h2>Command</h2><div class=box>{}</div>", list(&lines.collect::<Vec<_>>()))
    }

    fn histograms(&self) -> String {
        let one = |(name, buckets): (&String, &Vec<Bucket>)| {
            let count: u64 = buckets.iter().map(|bucket| bucket.count).sum();
            let caption = format!("{name}, {count} values");
            figure(&caption, |width| histogram::svg(name, buckets, width))
        };
        let figures: String =
            self.histograms.iter().filter(|(_, buckets)| !buckets.is_empty()).map(one).collect();
        if figures.is_empty() {
            return String::new();
        }
        format!("<h2>Distribution of latencies</h2><div class=plots>{figures}</div>")
    }

    fn plots(&self) -> String {
        let each = |find: &dyn Fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
            self.timeline.iter().filter_map(|row| Some((row.at, find(row)?))).collect()
        };
        let one = |name: &str, points| Series { name: name.to_owned(), points, ..Series::default() };
        let metrics: BTreeSet<&String> = self.timeline.iter().flat_map(|row| row.metrics.keys()).collect();
        let latencies = metrics.into_iter().flat_map(|name| {
            let median = each(&|row| Some(row.metrics.get(name)?.percentile50));
            let high = each(&|row| Some(row.metrics.get(name)?.percentile99));
            [one(&format!("{name} p50"), median), one(&format!("{name} p99"), high)]
        });
        let names: BTreeSet<&String> = self.timeline.iter().flat_map(|row| row.rates.keys()).collect();
        let rates = names.into_iter().map(|name| one(name, each(&|row| row.rates.get(name).copied())));
        let online = vec![one("players in session", each(&|row| Some(f64::from(row.online))))];
        let cores = vec![
            one("server", each(&|row| row.server_cores)),
            one("load tester", each(&|row| Some(row.tester_cores))),
        ];
        let memory = vec![one("server", each(&|row| row.server_bytes.map(|bytes| bytes as f64 / MIB)))];
        let around = self.upgrade.iter().map(|upgrade| one("deliveries", upgrade.points())).collect();
        let charts = [
            self.chart("Latency over time", "ms", true, latencies.take(SERIES_MAX).collect()),
            self.chart("Events per second", "/s", false, rates.take(SERIES_MAX).collect()),
            self.chart("Deliveries around the command, by 100 ms", "/s", false, around),
            self.chart("Connections", "", false, online),
            self.chart("CPU: cores kept busy", "cores", false, cores),
            self.chart("Server memory", "MiB", false, memory),
        ];
        let one = |chart: &Chart| figure(&chart.title, |width| chart.svg(width));
        let figures: String = charts.iter().filter(|chart| !chart.is_empty()).map(one).collect();
        if figures.is_empty() {
            return String::new();
        }
        format!("<h2>Over time</h2><div class=plots>{figures}</div>")
    }

    fn chart(&self, title: &str, unit: &str, logarithmic: bool, mut series: Vec<Series>) -> Chart {
        series.retain(|series| !series.points.is_empty());
        let span = |phase: &PhaseReport| {
            (phase.start_seconds, phase.start_seconds + phase.seconds, phase.name.clone())
        };
        Chart {
            title: title.to_owned(),
            unit: unit.to_owned(),
            logarithmic,
            seconds: self.timeline.last().map_or(self.seconds, |row| row.at.max(self.seconds)),
            step: 1.0,
            series,
            phases: self.reached().map(span).collect(),
        }
    }

    fn phase_table(&self) -> String {
        let head = [
            "phase",
            "state",
            "seconds",
            "online",
            "events per second",
            "p50 ms",
            "p99 ms",
            "server CPU",
            "server CPU per event",
        ];
        let mut table = Table::new(&head);
        for phase in self.reached() {
            let busiest = phase.rates.iter().max_by(|a, b| a.1.total_cmp(b.1));
            let metric = phase.metrics.get("RTT").or_else(|| phase.metrics.values().next());
            let cost = phase.server.as_ref();
            table.row(&[
                phase.name.clone(),
                phase.state.words().to_owned(),
                format!("{:.2}", phase.seconds),
                phase.online.to_string(),
                busiest.map(|(name, rate)| format!("{} {name}", compact(*rate))).unwrap_or_default(),
                metric.map(|metric| compact(metric.percentile50)).unwrap_or_default(),
                metric.map(|metric| compact(metric.percentile99)).unwrap_or_default(),
                cost.map(|cost| format!("{:.2} s", cost.cpu_seconds)).unwrap_or_default(),
                cost.and_then(price).unwrap_or_default(),
            ]);
        }
        table.finish("Phases")
    }

    fn metric_table(&self) -> String {
        let head = ["metric, ms", "count", "min", "50 %", "80 %", "90 %", "99 %", "99.9 %", "99.99 %", "max"];
        let mut table = Table::new(&head);
        for (name, all) in &self.metrics {
            let values = [
                all.min,
                all.percentile50,
                all.percentile80,
                all.percentile90,
                all.percentile99,
                all.percentile99_9,
                all.percentile99_99,
                all.max,
            ];
            let cells = values.into_iter().map(compact);
            table.row(&[name.clone(), all.count.to_string()].into_iter().chain(cells).collect::<Vec<_>>());
        }
        let known = self.metrics.keys().filter(|name| !words::metric(name).is_empty());
        let terms = known.map(|name| format!("<b>{}</b>: {}.", Escaped(name), Escaped(words::metric(name))));
        table.finish_with("Latencies of the whole test", &terms.collect::<Vec<_>>().join(" "))
    }

    fn error_table(&self) -> String {
        let mut table = Table::new(&["error", "times"]);
        for (kind, count) in in_order(&self.errors) {
            table.row(&[kind.clone(), count.to_string()]);
        }
        table.finish("Errors")
    }

    fn worker_table(&self) -> String {
        let mut table = Table::new(&["worker", "players", "state", "CPU", "memory", "clock error, at most"]);
        for worker in &self.workers {
            let state = match worker.state {
                WorkerState::Lost => "lost",
                WorkerState::Running => "running",
                WorkerState::Finished => "finished",
            };
            let clock = if worker.clock_bound_ms > 0.0 {
                format!("{:.2} ms", worker.clock_bound_ms)
            } else {
                "same clock".to_owned()
            };
            table.row(&[
                worker.name.clone(),
                worker.players.to_string(),
                state.to_owned(),
                format!("{:.2} s", worker.cpu_seconds),
                format!("{:.0} MiB", worker.pss_bytes as f64 / MIB),
                clock,
            ]);
        }
        table.finish_with("Workers", words::CLOCK)
    }

    fn how(&self) -> String {
        let scenario = toml::to_string(&self.scenario)
            .or_else(|_| serde_json::to_string_pretty(&self.scenario))
            .unwrap_or_default();
        let target = serde_json::to_string_pretty(&self.target).unwrap_or_default();
        format!(
            "<h2>How it was run</h2><div class=box><pre>{}</pre></div><h2>Target</h2><div class=box><pre>{}</pre></div>\
             <footer>carillon-load {}, test {}</footer>",
            Escaped(&scenario),
            Escaped(&target),
            Escaped(&self.version),
            Escaped(&self.load_test_id)
        )
    }
}

/// What the server spent per login, resumption, delivery or second of idling.
fn price(cost: &super::Cost) -> Option<String> {
    let login = cost.cpu_ms_per_login.map(|ms| format!("{} ms per login", compact(ms)));
    let resumption = cost.cpu_ms_per_resumption.map(|ms| format!("{} ms per resumption", compact(ms)));
    let delivery = cost.cpu_seconds_per_million_deliveries.map(|s| format!("{} s per million", compact(s)));
    let idle = cost.idle_percent_of_core.map(|percent| format!("{} % of a core", compact(percent)));
    login.or(resumption).or(delivery).or(idle)
}

/// A page around its body, which is HTML; the title is text.
pub fn page(title: &str, body: &str) -> String {
    let title = Escaped(title);
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>\n{STYLE}{PLOT_STYLE}</style></head>\
         <body><main>{body}</main></body></html>\n"
    )
}

/// A picture for wide screens and one for narrow ones: only one of them is shown.
pub fn figure(caption: &str, picture: impl Fn(f64) -> String) -> String {
    format!(
        "<figure><figcaption>{}</figcaption><div class=wide>{}</div><div class=narrow>{}</div></figure>",
        Escaped(caption),
        picture(WIDE),
        picture(NARROW)
    )
}

fn list(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items: String = sentences.iter().map(|sentence| format!("<li>{}</li>", Escaped(sentence))).collect();
    format!("<ul>{items}</ul>")
}

#[derive(Default)]
struct Tiles(String);

impl Tiles {
    /// A figure with its name, and what it means for whoever points at it.
    fn add(&mut self, class: &str, value: &str, name: &str, words: &str) {
        let (value, name, words) = (Escaped(value), Escaped(name), Escaped(words));
        let _ = write!(
            self.0,
            "<div class=tile title=\"{words}\"><b class=\"{class}\">{value}</b><span>{name}</span></div>"
        );
    }
}

/// A table under construction.
pub struct Table {
    head: String,
    rows: String,
}

impl Table {
    /// A table with these heads.
    pub fn new(head: &[&str]) -> Self {
        let cells = head.iter().map(|name| format!("<th>{}</th>", Escaped(name)));
        Self { head: cells.collect(), rows: String::new() }
    }

    /// One more row.
    pub fn row(&mut self, cells: &[String]) {
        let cells = cells.iter().map(|cell| format!("<td>{}</td>", Escaped(cell)));
        let _ = write!(self.rows, "<tr>{}</tr>", cells.collect::<String>());
    }

    /// Nothing, if there are no rows.
    pub fn finish(self, title: &str) -> String {
        self.finish_with(title, "")
    }

    /// The same with a paragraph of HTML below.
    fn finish_with(self, title: &str, below: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let (title, head, rows) = (Escaped(title), self.head, self.rows);
        let below = if below.is_empty() { String::new() } else { format!("<p class=terms>{below}</p>") };
        format!("<h2>{title}</h2><div class=box><table><tr>{head}</tr>{rows}</table></div>{below}")
    }
}
