//! `carillon store migrate`.

use super::Place;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::config::{Config, Source};
use std::io::Write;

/// What `carillon store migrate` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store to copy: sqlite:PATH (a database, or a node's data folder) or postgresql://…
    #[arg(long, value_name = "STORE")]
    from: Place,
    /// Where to: the other of the two, and empty
    #[arg(long, value_name = "STORE")]
    to: Place,
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Copies a store.
#[cfg(not(feature = "postgres"))]
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let _ = (&args.from, &args.to, &args.source, Output::new(out, args.json), Config::load);
    Err(Failure::Usage(
        "this binary was built without PostgreSQL: build it with `--features postgres`".to_owned(),
    ))
}

#[cfg(feature = "postgres")]
pub(super) use with_postgres::run;

#[cfg(feature = "postgres")]
mod with_postgres {
    use super::{Args, Config, Failure, Output, Place, Write};
    use crate::backends;
    use carillon_backend::migrate::{
        Direction, MigrateError, Migration, MigrationPhase, Progress, Report, Sum, Verified, migrate,
    };
    use serde_json::{Value, json};
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// How often it is said how far the copy is.
    const TELL: Duration = Duration::from_secs(1);

    /// Copies a store.
    pub(in super::super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
        let (path, url, direction) = match (&args.from, &args.to) {
            (Place::Sqlite(path), Place::Postgres(url)) => (path, url, Direction::ToPostgres),
            (Place::Postgres(url), Place::Sqlite(path)) => (path, url, Direction::ToSqlite),
            (Place::Sqlite(_), Place::Sqlite(_)) => {
                return Err(Failure::Usage(
                    "`carillon backup` copies a store on SQLite to another file".to_owned(),
                ));
            }
            (Place::Postgres(_), Place::Postgres(_)) => {
                return Err(Failure::Usage(
                    "pg_dump copies a store on PostgreSQL to another database".to_owned(),
                ));
            }
        };
        let mut settings =
            Config::load(&args.source).map_err(|problems| Failure::Usage(problems.to_string()))?.settings;
        settings.node.store_url.clone_from(url);
        let postgres = backends::postgres::options(&settings).map_err(Failure::Usage)?;
        // Parked sessions belong to a node, whose data folder has its name.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let node = match direction {
            Direction::ToPostgres => backends::postgres::node_name(&settings, folder)
                .map_err(|e| Failure::Usage(format!("{}: {e}", folder.display())))?,
            Direction::ToSqlite => String::new(),
        };
        let began = Instant::now();
        let mut teller = Teller::new();
        let asked = Migration { sqlite: path.clone(), postgres, direction, node };
        let report =
            migrate(asked, &mut |progress| teller.tell(progress)).map_err(|error| failure(&error))?;
        print(&report, began.elapsed(), &mut Output::new(out, args.json))?;
        match differing(&report) {
            names if names.is_empty() => Ok(()),
            names => Err(Failure::Refused(format!(
                "the stores differ in {}: the copy is not used; was the one that was copied changed meanwhile?",
                names.join(", ")
            ))),
        }
    }

    fn differing(report: &Report) -> Vec<&'static str> {
        report.tables.iter().filter(|table| table.from != table.to).map(|table| table.table).collect()
    }

    /// What became of it.
    fn print(report: &Report, took: Duration, out: &mut Output<'_>) -> Result<(), Failure> {
        let tables: Vec<Value> = report.tables.iter().map(described).collect();
        let rows: u64 = report.tables.iter().map(|table| table.from.rows).sum();
        let seconds = took.as_secs_f64();
        if !out.is_json() {
            out.rows(
                &tables,
                &[("TABLE", "table"), ("ROWS", "rows"), ("COPIED", "copied"), ("CHECKSUM", "checksum")],
            )?;
        }
        let same = if report.is_same() { "both stores have the same" } else { "the stores differ" };
        let said = format!("{rows} rows of {} tables in {seconds:.1} s: {same}", tables.len());
        out.done(
            &said,
            &json!({
                "same": report.is_same(),
                "resumed": report.was_begun,
                "rows": rows,
                "seconds": seconds,
                "differing": differing(report),
                "tables": tables,
            }),
        )
    }

    fn described(table: &Verified) -> Value {
        let checksum = |sum: &Sum| format!("{:032x}", sum.checksum);
        json!({
            "table": table.table,
            "rows": table.from.rows,
            "copied": table.to.rows,
            "checksum": checksum(&table.from),
            "checksum_copied": checksum(&table.to),
        })
    }

    /// Who stops what is in the way is at the machine: only what names a place wrongly is an error of the command line.
    fn failure(error: &MigrateError) -> Failure {
        let said = error.to_string();
        match error {
            MigrateError::Missing(_) | MigrateError::NotEmpty { .. } => Failure::Usage(said),
            _ => Failure::Refused(said),
        }
    }

    /// Says on standard error how far a copy is.
    struct Teller {
        told: Instant,
        table_began: Instant,
        table: String,
    }

    impl Teller {
        fn new() -> Teller {
            let now = Instant::now();
            Teller { told: now, table_began: now, table: String::new() }
        }

        fn tell(&mut self, progress: Progress<'_>) {
            let now = Instant::now();
            if self.table != progress.table {
                self.table = progress.table.to_owned();
                self.table_began = now;
            }
            let is_due = now.duration_since(self.told) >= TELL || (progress.is_whole && progress.rows > 0);
            if !is_due {
                return;
            }
            self.told = now;
            let Progress { step, table, rows, bytes, is_whole } = progress;
            let end = if is_whole { "" } else { " so far" };
            let seconds = now.duration_since(self.table_began).as_secs_f64().max(0.001);
            match step {
                MigrationPhase::Copy => eprintln!(
                    "carillon: {table}: {rows} rows, {:.1} MB{end} ({:.0} rows/s)",
                    bytes as f64 / 1e6,
                    rows as f64 / seconds
                ),
                MigrationPhase::Verify => eprintln!("carillon: {table}: {rows} rows compared"),
            }
        }
    }
}
