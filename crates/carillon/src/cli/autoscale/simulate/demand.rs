//! The demands that are replayed: those of the experiment, shapes of the load tester, recordings.

use super::super::super::failure::Failure;
use super::super::time;
use carillon_load::plan::Shape;
use carillon_scale::simulate::{Experiment, SECONDS_MAX};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is replayed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Demand")]
pub(super) struct DemandArgs {
    /// bell or top-heavy of the experiment, or a shape as in a load test's scenario, such as
    /// '{ shape = "ramp", from = 10, to = 500, over = "1m" }'; may be given again
    #[arg(long, value_name = "SHAPE")]
    shape: Vec<String>,
    /// A recorded demand: lines of a time in seconds and a rate per second, which holds until the next line; may be given again
    #[arg(long, value_name = "FILE.csv")]
    csv: Vec<PathBuf>,
    /// A recorded demand: what Prometheus answers to query_range; several series are added up; may be given again
    #[arg(long, value_name = "FILE.json")]
    prometheus: Vec<PathBuf>,
    /// How long a shape that does not end is replayed
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = time)]
    span: Duration,
}

/// A demand, per second.
pub(super) struct Demand {
    /// What it is called.
    pub(super) name: String,
    /// What is asked for in each second.
    pub(super) rates: Vec<f64>,
}

impl DemandArgs {
    /// The demands, at least one.
    pub(super) fn read(&self) -> Result<Vec<Demand>, Failure> {
        let mut demands = Vec::new();
        for shape in &self.shape {
            demands.push(self.shape(shape).map_err(|why| Failure::Usage(format!("--shape {shape}: {why}")))?);
        }
        for (files, parse) in [(&self.csv, csv as Parser), (&self.prometheus, prometheus as Parser)] {
            for file in files {
                let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
                let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
                let rates = parse(&text).and_then(|points| held(&points)).map_err(wrong)?;
                demands.push(Demand { name: name(file), rates });
            }
        }
        if demands.is_empty() {
            let both = Experiment::ALL.into_iter();
            demands =
                both.map(|shape| Demand { name: shape.name().to_owned(), rates: shape.seconds() }).collect();
        }
        Ok(demands)
    }

    fn shape(&self, text: &str) -> Result<Demand, String> {
        if let Some(shape) = Experiment::ALL.into_iter().find(|shape| shape.name() == text) {
            return Ok(Demand { name: text.to_owned(), rates: shape.seconds() });
        }
        let expected = "expected bell, top-heavy, or a shape such as { shape = \"spike\", base = 10, peak = 200, at = \
                        \"5m\", lasts = \"1m\" }";
        if !text.trim_start().starts_with(|c: char| c == '{' || c.is_ascii_digit()) {
            return Err(expected.to_owned());
        }
        #[derive(Deserialize)]
        struct ShapeDocument {
            shape: Shape,
        }
        let given: ShapeDocument =
            toml::from_str(&format!("shape = {text}")).map_err(|error| error.message().to_owned())?;
        given.shape.check("rate").map_err(|error| error.to_string())?;
        if given.shape.is_per_player() {
            return Err("a demand has no players; give the rate of all".to_owned());
        }
        let seconds = given.shape.span().unwrap_or(self.span).as_secs_f64().ceil();
        if seconds > SECONDS_MAX as f64 {
            return Err("longer than 31 days".to_owned());
        }
        let second = |at: u32| Duration::from_secs(u64::from(at));
        let rates = (0..seconds as u32)
            .map(|at| given.shape.arrivals(second(at + 1)) - given.shape.arrivals(second(at)));
        Ok(Demand { name: text.to_owned(), rates: rates.map(|rate| rate.max(0.0)).collect() })
    }
}

fn name(file: &Path) -> String {
    file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Reads a recording: times in seconds, and rates.
type Parser = fn(&str) -> Result<Vec<(f64, f64)>, String>;

fn csv(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let mut points = Vec::new();
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(|error| error.to_string())?;
        let cell = |at: usize| record.get(at).and_then(|cell| cell.trim().parse::<f64>().ok());
        match (cell(0), cell(1)) {
            (Some(time), Some(rate)) => points.push((time, rate)),
            // A head.
            (None, None) if number == 0 => {}
            _ => return Err(format!("line {}: expected a time in seconds and a rate", number + 1)),
        }
    }
    Ok(points)
}

/// The answer of `query_range`, as far as it is needed.
#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    values: Vec<(f64, String)>,
}

fn prometheus(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let answer: Answer =
        serde_json::from_str(text).map_err(|error| format!("not an answer to query_range: {error}"))?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for series in answer.data.result {
        for (time, value) in series.values {
            let rate = value.parse().map_err(|_| format!("{value:?} at {time} is no number"))?;
            points.push((time, rate));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        first.1 += if is_same { next.1 } else { 0.0 };
        is_same
    });
    Ok(points)
}

/// A rate for each second: each point holds until the next, the last as long as the one before it.
fn held(points: &[(f64, f64)]) -> Result<Vec<f64>, String> {
    if let Some((time, rate)) = points.iter().find(|(_, rate)| !rate.is_finite() || *rate < 0.0) {
        return Err(format!("{rate} at {time} is no rate"));
    }
    if points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        return Err("times must ascend".to_owned());
    }
    let [first, .., before, last] = points else {
        return Err("expected at least three points".to_owned());
    };
    let end = last.0 + (last.0 - before.0);
    let seconds = (end - first.0).ceil();
    if !seconds.is_finite() || seconds > SECONDS_MAX as f64 {
        return Err("longer than 31 days".to_owned());
    }
    let mut next = 0;
    let rates = (0..seconds as u32).map(|second| {
        let now = first.0 + f64::from(second);
        while points.get(next + 1).is_some_and(|point| point.0 <= now) {
            next += 1;
        }
        points[next].1
    });
    Ok(rates.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(shape: &str) -> Result<Demand, String> {
        let args =
            DemandArgs { shape: vec![], csv: vec![], prometheus: vec![], span: Duration::from_secs(60) };
        args.shape(shape)
    }

    #[test]
    fn shapes_of_the_load_tester_are_replayed() {
        let ramp = shaped(r#"{ shape = "ramp", from = 0, to = 10, over = "10s" }"#).expect("a shape");
        assert_eq!(ramp.rates.len(), 60);
        assert!((ramp.rates[0] - 0.5).abs() < 1e-9 && (ramp.rates[59] - 10.0).abs() < 1e-9);
        let bell = shaped(r#"{ shape = "bell" }"#).expect("a shape");
        assert_eq!(bell.rates.len(), 3600, "it ends, unlike the steady end of the experiment");
        assert_eq!(shaped("5").expect("steady").rates, [5.0; 60]);
        assert_eq!(shaped("top-heavy").expect("of the experiment").rates.len(), 7200);
    }

    #[test]
    fn what_is_no_shape_is_said() {
        let why = |shape: &str| shaped(shape).err().expect("wrong");
        assert!(why("bel").starts_with("expected bell, top-heavy"));
        assert!(
            why(r#"{ shape = "bel" }"#).contains("unknown variant `bel`"),
            "{}",
            why(r#"{ shape = "bel" }"#)
        );
        assert_eq!(why("-1"), why("bel"));
        assert!(why(r#"{ shape = "per-player", rate = 1 }"#).contains("no players"));
    }

    #[test]
    fn recordings_hold_until_the_next_line() {
        let read = |text: &str| csv(text).and_then(|points| held(&points));
        assert_eq!(read("time,rate\n10,1\n12,2.5\n13,0\n"), Ok(vec![1.0, 1.0, 2.5, 0.0]));
        assert_eq!(read("1,2\n2,x\n"), Err("line 2: expected a time in seconds and a rate".to_owned()));
        assert_eq!(read("1,2\n1,2\n3,4\n"), Err("times must ascend".to_owned()));
        assert_eq!(read("1,2\n2,-2\n3,4\n"), Err("-2 at 2 is no rate".to_owned()));
        assert_eq!(read(""), Err("expected at least three points".to_owned()));
        assert_eq!(read("1,2\n2,3\n9e9,4\n"), Err("longer than 31 days".to_owned()));
    }

    #[test]
    fn series_of_prometheus_are_added_up() {
        let answer = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"instance":"a"},"values":[[100,"1"],[101,"2"],[102,"3"]]},
            {"metric":{"instance":"b"},"values":[[101,"10"],[102,"10"]]}]}}"#;
        assert_eq!(prometheus(answer).and_then(|points| held(&points)), Ok(vec![1.0, 12.0, 13.0]));
        let gap = r#"{"data":{"result":[{"values":[[1,"NaN"],[2,"1"],[3,"1"]]}]}}"#;
        assert_eq!(prometheus(gap).and_then(|points| held(&points)), Err("NaN at 1 is no rate".to_owned()));
        assert!(prometheus("{}").is_err_and(|why| why.starts_with("not an answer to query_range")));
    }
}
