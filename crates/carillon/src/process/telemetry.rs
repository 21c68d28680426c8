//! The log: what `log.level` and `log.format` say, on standard error.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// What an operator decides about the log. Types and defaults are declared here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// The lowest level that is logged.
    pub level: LogLevel,
    /// The format of a line.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Log {
        Log { level: LogLevel::Info, format: LogFormat::Text }
    }
}

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Faults that need an operator.
    Error,
    /// And what may come to need somebody.
    Warn,
    /// And what happened to the node.
    Info,
    /// And what happened to each session.
    Debug,
    /// And why.
    Trace,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Changes the log's level while the node runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Telemetry {
    filter: reload::Handle<LevelFilter, Registry>,
}

/// The log was set up before, in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log of this process is set up already")]
pub struct AlreadySetUp;

impl Telemetry {
    /// Starts the log of this process.
    pub fn start(log: &Log) -> Result<Telemetry, AlreadySetUp> {
        let (telemetry, subscriber) = Telemetry::build(log, std::io::stderr);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| AlreadySetUp)?;
        Ok(telemetry)
    }

    /// Logs at `level` from now on.
    pub fn set_level(&self, level: LogLevel) {
        // Fails only when the subscriber is gone, and then nobody logs.
        let _ = self.filter.reload(filter(level));
    }

    fn build<W>(log: &Log, writer: W) -> (Telemetry, impl tracing::Subscriber + Send + Sync)
    where
        W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
    {
        let (level, handle) = reload::Layer::new(filter(log.level));
        let subscriber = tracing_subscriber::registry().with(level).with(lines(log.format, writer));
        (Telemetry { filter: handle }, subscriber)
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// How a line is written. Colours only where somebody looks.
fn lines<S, W>(format: LogFormat, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    use std::io::IsTerminal;
    match format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            fmt::layer().with_ansi(colours).with_writer(writer).boxed()
        }
        LogFormat::Json => fmt::layer().json().flatten_event(true).with_writer(writer).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no writer panics").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_level_changes_while_it_runs() {
        let page = Page::default();
        let writer = page.clone();
        let log = Log { level: LogLevel::Info, format: LogFormat::Json };
        let (telemetry, subscriber) = Telemetry::build(&log, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("before");
            tracing::info!(port = 5222, "listening");
            telemetry.set_level(LogLevel::Debug);
            tracing::debug!("after");
        });
        let text = String::from_utf8(page.0.lock().expect("no writer panics").clone()).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!((&lines[0]["message"], &lines[0]["port"]), (&"listening".into(), &5222.into()));
        assert_eq!(lines[1]["message"], "after");
    }
}
