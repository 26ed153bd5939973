//! SQLite exports of Nsight Systems (`nsys export --type sqlite`).
//!
//! The schema is documented with the product ("Exporter → SQLite Schema Reference") and differs between releases. So
//! the reader searches for tables and columns, and goes on without missing ones. Times count from the start of the
//! capture, whose own time (`utcEpochNs`) is added. `globalPid` tells processes apart. Operations without a recorded
//! host call are kept.

mod kinds;
mod opening;
mod rows;
mod samples;
mod schema;
mod tables;
mod targets;

use std::path::Path;

use crate::gather::{Meter, Stop, believable, kept, notice};
use activity::feed::{Failure, FailureKind, Gone, Message, Outcome, Outlet};
use activity::text::printable;
use activity::{Batch, Ns, units};
use rows::RowReader;
use tables::{Tables, int};

/// The first bytes of an SQLite file.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Whether an SQLite file is an export of Nsight Systems. Such a file has at least one of the tables of what the GPU or
/// the host did.
///
/// # Errors
/// When it can not be read as a database.
pub(super) fn is_export(path: &Path) -> rusqlite::Result<bool> {
    let tables = Tables::open(path)?;
    if is_of_nvprof(&tables) {
        return Ok(false);
    }
    Ok(schema::TABLES.iter().any(|table| tables.has(table.name))
        || EVERY.iter().any(|it| tables.has(it)))
}

/// Tables that exports have whatever was recorded: the latter is in newer ones alone.
const EVERY: [&str; 2] = ["META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME"];

/// Whether nvprof wrote it, which Nsight Systems replaced: some of its tables are called alike, and hold numbers for names.
fn is_of_nvprof(tables: &Tables) -> bool {
    tables.has("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL") && tables.has("StringTable")
}

/// What an SQLite file is that is no export.
///
/// # Errors
/// When it can not be read as a database.
pub(super) fn what_else(path: &Path) -> rusqlite::Result<&'static str> {
    Ok(match is_of_nvprof(&Tables::open(path)?) {
        true => "a database of nvprof: record the program with Nsight Systems, its successor",
        false => "an SQLite database without the tables of Nsight Systems",
    })
}

/// Reads the file at `path`, sends it as the processes from `*next` on, and moves `*next` behind them.
pub(super) fn read(path: &Path, next: &mut u32, outlet: &Outlet) -> Outcome {
    pass_on(path, next, outlet).unwrap_or_else(|error| failure(path, 0, &error))
}

fn pass_on(path: &Path, next: &mut u32, outlet: &Outlet) -> rusqlite::Result<Outcome> {
    let tables = Tables::open(path)?;
    let mut reader = RowReader::new(&tables)?;
    let shift = believable(read_start(&tables)?);
    let mut end = run(path, &tables, &mut reader, outlet);
    if !matches!(end, Err(Stop::Gone)) {
        let described = targets::describe(&tables, &mut reader);
        if let (Ok(()), Err(error)) = (&end, described) {
            end = Err(Stop::Broken(error));
        }
    }
    // Without them the records are as good.
    opening::read(&tables, &mut reader).unwrap_or_default();
    let sampled = samples::read(&tables, &reader).unwrap_or_default();
    let (records, first) = (reader.gather.total, *next);
    *next += reader.gather.processes();
    if matches!(end, Err(Stop::Gone))
        || tell(outlet, path, &reader, &tables).is_err()
        || reader.gather.send(outlet, first, shift).is_err()
    {
        return Ok(Outcome::Stopped);
    }
    for (process, mut samples) in sampled {
        let looks = samples.looks.iter_mut();
        looks.for_each(|it| it.time = it.time.saturating_add(shift));
        let batch = Batch {
            process: first + process,
            samples: Some(samples),
            ..Batch::default()
        };
        if outlet.send(Message::Batch(batch)).is_err() {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(match end {
        Ok(()) if !outlet.stop.is_stopped() => Outcome::Complete,
        Err(Stop::Broken(error)) => failure(path, records, &error),
        _ => Outcome::Stopped,
    })
}

fn run(
    path: &Path,
    tables: &Tables,
    reader: &mut RowReader<'_>,
    outlet: &Outlet,
) -> Result<(), Stop<rusqlite::Error>> {
    let total = schema::TABLES.iter().map(|t| tables.rows(t.name)).sum();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut meter = Meter::new(format!("reading {name}"), total);
    let mut done = 0u64;
    for table in schema::TABLES {
        let Some(mut query) = tables.select(table.name, table.columns, "")? else {
            continue;
        };
        let mut list = query.query([])?;
        while let Some(row) = list.next()? {
            (table.take)(reader, row)?;
            done += 1;
            if done.is_multiple_of(1024) {
                if outlet.stop.is_stopped() {
                    return Err(Stop::Asked);
                }
                meter.report(outlet, done).map_err(|_| Stop::Gone)?;
            }
        }
    }
    Ok(())
}

/// When the capture began, in nanoseconds since 1970; 0 when the export does not tell.
fn read_start(tables: &Tables) -> rusqlite::Result<Ns> {
    let mut began = 0;
    tables.each("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |row| {
        began = int(row, 0).unwrap_or(0);
    })?;
    Ok(began)
}

/// Reports which records of the file are not on the timeline.
fn tell(outlet: &Outlet, path: &Path, reader: &RowReader<'_>, tables: &Tables) -> Result<(), Gone> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if reader.graphs > 0 {
        let text = format!(
            "{name}: {} launches of CUDA graphs were recorded as a whole, without what is in them; \
             nsys profile --cuda-graph-trace=node records their kernels",
            units::count(reader.graphs)
        );
        notice(outlet, false, text)?;
    }
    if reader.operations == 0 {
        let why = targets::why_none(tables, !reader.functions.is_empty());
        let text = format!("{name} holds no operation of a GPU{why}");
        notice(outlet, true, text)?;
    }
    if reader.left_out > 0 {
        let text = format!(
            "{name}: not shown: {} NVTX events without an end, and records without a time",
            units::count(reader.left_out)
        );
        notice(outlet, false, text)?;
    }
    Ok(())
}

fn failure(path: &Path, records: usize, error: &rusqlite::Error) -> Outcome {
    let (name, kept) = (path.display(), kept(records));
    let why = format!("{name} can not be read as an SQLite database: {error}.{kept}");
    let help = "Export the report again: nsys export --type sqlite REPORT.nsys-rep";
    Outcome::Failed(Failure::new(FailureKind::Input, printable(&why), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_nvprof_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nvprof.sqlite");
        let made = rusqlite::Connection::open(&path).expect("a database");
        // nvprof numbers what a copy does as nsys does, and has kernels in a table of another name.
        made.execute_batch(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER);
             CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start INTEGER, end INTEGER);
             CREATE TABLE StringTable (_id_ INTEGER, value TEXT);",
        )
        .expect("tables");
        assert_eq!(is_export(&path), Ok(false));
        assert!(what_else(&path).is_ok_and(|it| it.starts_with("a database of nvprof")));
        made.execute_batch("DROP TABLE StringTable")
            .expect("dropped");
        assert_eq!(is_export(&path), Ok(true));
        // A report in which nothing was recorded.
        let path = folder.path().join("nothing.sqlite");
        let made = rusqlite::Connection::open(&path).expect("a database");
        made.execute_batch("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);")
            .expect("a table");
        assert_eq!(is_export(&path), Ok(true));
    }
}
