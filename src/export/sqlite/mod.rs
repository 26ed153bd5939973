//! A timeline and its report as an SQLite database, for `sqlite3`, pandas and whoever thinks in SQL.
//!
//! `schema.sql` is the documented schema: tables, views, and which question each view answers.

use std::fs::File;
use std::io::{self, Write};

use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::{self, Caveats};
use activity::{RangeKind, Span, StackId, What};
use advice::Facts;
use causes::stacks::LaunchLine;
use figures::{hardware, nodes};
use trace::{LaneId, LaneKind, Trace};

use crate::report::{self, KnownGpus, Report};

/// Tables and views, with what they hold.
const SCHEMA: &str = include_str!("schema.sql");
/// Which meaning its columns have: up by one when that of an old one changes.
const VERSION: u32 = 2;

/// Writes the database. It is made in a temporary file first: SQLite writes where it likes, and `out` may be a pipe. The
/// file loses its name at once, so that nothing stays of it however the process ends.
pub(super) fn write(trace: &Trace, gpus: &KnownGpus, out: &mut dyn Write) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("trace.sqlite");
    let place = |error| io::Error::other(format!("{}: {error}", std::env::temp_dir().display()));
    let db = Connection::open(&path).map_err(place)?;
    let mut file = File::open(&path)?;
    drop(folder);
    fill(trace, gpus, &db).map_err(place)?;
    drop(db);
    io::copy(&mut file, out)?;
    Ok(())
}

fn fill(trace: &Trace, gpus: &KnownGpus, db: &Connection) -> rusqlite::Result<()> {
    // Nobody reads it before it is whole, so that nothing needs to survive a crash.
    db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    db.execute_batch(SCHEMA)?;
    let facts = report::facts(trace, None, gpus.clone());
    let writer = TableWriter {
        trace,
        db,
        calls: FxHashMap::default(),
        operations: FxHashMap::default(),
        names: FxHashMap::default(),
    };
    writer.fill(&facts)?;
    db.execute_batch("COMMIT")
}

struct TableWriter<'a> {
    trace: &'a Trace,
    db: &'a Connection,
    /// Rows of `call` by where the call stands on the timeline.
    calls: FxHashMap<(LaneId, usize), i64>,
    /// Rows of `operation`, likewise.
    operations: FxHashMap<(LaneId, usize), i64>,
    /// Rows of `name`.
    names: FxHashMap<String, i64>,
}

impl TableWriter<'_> {
    fn fill(mut self, facts: &Facts<'_>) -> rusqlite::Result<()> {
        let report = Report::from(facts);
        self.about(&report)?;
        self.host_lanes()?;
        self.operations(facts)?;
        self.gaps(facts)?;
        self.steps(facts)?;
        self.samples()?;
        self.graph_nodes()?;
        self.launches()?;
        self.hardware()?;
        self.stalls()?;
        let Report {
            devices,
            verdicts,
            findings,
            ranks,
            ..
        } = &report;
        let rows = serde_json::to_value((devices, verdicts, findings, ranks))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        for (at, table) in ["devices", "verdicts", "findings", "ranks"]
            .iter()
            .enumerate()
        {
            self.report_rows(table, &rows[at])?;
        }
        Ok(())
    }

    fn insert(&self, into: &str, columns: usize) -> rusqlite::Result<CachedStatement<'_>> {
        let marks = vec!["?"; columns].join(",");
        self.db
            .prepare_cached(&format!("INSERT INTO {into} VALUES ({marks})"))
    }

    fn about(&self, report: &Report) -> rusqlite::Result<()> {
        let marks = Caveats::of(self.trace);
        let mut insert = self.insert("about", 2)?;
        insert.execute(params!["cuptop", report.cuptop])?;
        insert.execute(params!["schema", VERSION])?;
        insert.execute(params!["title", report.source.title])?;
        insert.execute(params!["source", report.source.kind])?;
        insert.execute(params!["simulated", marks.simulated])?;
        insert.execute(params!["lost_records", whole(marks.lost)])?;
        insert.execute(params!["origin_ns", report.origin_ns])?;
        Ok(())
    }

    fn name(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(&id) = self.names.get(name) {
            return Ok(id);
        }
        let id = self.names.len() as i64 + 1;
        self.insert("name", 2)?.execute(params![id, name])?;
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    fn pid(&self, process: usize) -> u32 {
        self.trace.processes()[process].info.pid
    }

    /// Calls and ranges.
    fn host_lanes(&mut self) -> rusqlite::Result<()> {
        let (trace, db) = (self.trace, self.db);
        for (id, lane) in trace.lanes().iter().enumerate() {
            let (process, kind) = (lane.key().process, lane.key().kind);
            let (LaneKind::Thread { thread } | LaneKind::Range { thread, .. }) = kind else {
                continue;
            };
            for row in lane.kept() {
                let activity = trace.activity(id, row);
                let (span, pid) = (activity.span, self.pid(process));
                match activity.what {
                    What::Call(call) => {
                        let name = self.name(trace.names().full(call.name))?;
                        self.insert("call", 9)?.execute(params![
                            None::<i64>,
                            process,
                            pid,
                            thread,
                            name,
                            span.start,
                            span.end,
                            call.code,
                            activity.correlation
                        ])?;
                        self.calls.insert((id, row), db.last_insert_rowid());
                    }
                    What::Range(range) => {
                        let name = self.name(trace.names().full(range.name))?;
                        self.insert("range", 8)?.execute(params![
                            None::<i64>,
                            process,
                            pid,
                            thread,
                            range_kind(range.kind),
                            name,
                            span.start,
                            span.end
                        ])?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn operations(&mut self, facts: &Facts<'_>) -> rusqlite::Result<()> {
        for it in rows::operations(self.trace) {
            let name = it.name.map(|name| self.name(&name)).transpose()?;
            let call = facts.calls().find(it.process, it.activity.correlation);
            let call = call.and_then(|at| self.calls.get(&at).copied());
            self.insert("operation", 21)?.execute(params![
                None::<i64>,
                it.process,
                it.pid,
                it.device.id,
                it.context,
                it.stream,
                it.kind,
                name,
                it.activity.span.start,
                it.activity.span.end,
                it.bytes.map(whole),
                it.copy.map(|copy| copy.from.label()),
                it.copy.map(|copy| copy.to.label()),
                it.shape.map(|shape| rows::size(shape.grid)),
                it.shape.map(|shape| rows::size(shape.block)),
                it.shape.map(|shape| shape.registers),
                it.shape.map(|shape| whole(rows::shared(&shape))),
                it.activity.what.graph(),
                it.activity.correlation,
                call,
                Some(it.activity.what.node())
                    .filter(|it| *it != 0)
                    .map(whole),
            ])?;
            self.operations
                .insert(it.place, self.db.last_insert_rowid());
        }
        Ok(())
    }

    fn gaps(&mut self, facts: &Facts<'_>) -> rusqlite::Result<()> {
        let (causes, mut number) = (facts.causes(), 0);
        for device in facts.devices() {
            for (gap, pieces) in causes.gaps_with_pieces(device.index, None) {
                number += 1;
                let next = causes.graph().ops.place(gap.next);
                let next = self.operations.get(&next).copied();
                for piece in &*pieces {
                    let culprit = match causes.culprit(piece) {
                        Some(name) => Some(self.name(&name)?),
                        None => None,
                    };
                    self.insert("gap_piece", 9)?.execute(params![
                        number,
                        device.device,
                        piece.span.start,
                        piece.span.end,
                        piece.cause.id(),
                        causes.group(gap, piece).label(),
                        culprit,
                        piece.certainty.label(),
                        next,
                    ])?;
                }
            }
        }
        Ok(())
    }

    fn steps(&self, facts: &Facts<'_>) -> rusqlite::Result<()> {
        let mut insert = self.insert("step", 7)?;
        for steps in facts.steps() {
            for (number, span) in steps.spans.iter().enumerate() {
                insert.execute(params![
                    steps.process,
                    self.pid(steps.process),
                    number + 1,
                    span.start,
                    span.end,
                    steps.steady.contains(&number),
                    steps.from.text(),
                ])?;
            }
        }
        Ok(())
    }

    fn graph_nodes(&self) -> rusqlite::Result<()> {
        let mut insert = self.insert("graph_node", 11)?;
        for ((process, node), it) in nodes::all(self.trace) {
            let stack = self.trace.node_stack(process, node);
            insert.execute(params![
                process,
                whole(node),
                it.text(),
                it.line.map(|it| &it.file),
                it.line.map(|it| it.line),
                it.line.map(|it| &it.function),
                it.nth.0,
                it.nth.1,
                it.round.map(|it| it.0),
                it.round.map(|it| it.1),
                stack,
            ])?;
            if let Some(stack) = stack {
                self.frames(stack)?;
            }
        }
        Ok(())
    }

    fn launches(&self) -> rusqlite::Result<()> {
        let mut insert = self.insert("launch", 7)?;
        let mut known = FxHashSet::default();
        for (process, correlation, stack) in self.trace.launches() {
            let line = LaunchLine::own(self.trace, stack);
            let frame = line.map(|it| it.line);
            insert.execute(params![
                process,
                correlation,
                line.map(|it| it.text()),
                frame.map(|it| &it.file),
                frame.map(|it| it.line),
                frame.map(|it| &it.function),
                stack,
            ])?;
            if known.insert(stack) {
                self.frames(stack)?;
            }
        }
        Ok(())
    }

    fn frames(&self, stack: StackId) -> rusqlite::Result<()> {
        let into = "INSERT OR IGNORE INTO frame VALUES (?,?,?,?,?)";
        let mut frame = self.db.prepare_cached(into)?;
        for (depth, it) in self.trace.stacks().frames(stack).enumerate() {
            frame.execute(params![stack, depth, it.function, it.file, it.line])?;
        }
        Ok(())
    }

    fn samples(&self) -> rusqlite::Result<()> {
        let mut insert = self.insert("sample", 6)?;
        let mut known = FxHashSet::default();
        for (process, of) in self.trace.processes().iter().enumerate() {
            let Some(extent) = of.sampled.extent() else {
                continue;
            };
            let whole = Span::new(extent.start, extent.end + 1);
            for thread in of.sampled.threads() {
                for sample in of.sampled.within(thread, whole) {
                    insert.execute(params![
                        process,
                        of.info.pid,
                        thread,
                        sample.time,
                        sample.stack,
                        sample.is_running
                    ])?;
                    if known.insert(sample.stack) {
                        self.frames(sample.stack)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn hardware(&self) -> rusqlite::Result<()> {
        let mut insert = self.insert("hardware", 7)?;
        for (device, window, metric, value) in rows::readings(self.trace) {
            insert.execute(params![
                device.id,
                window.span.start,
                window.span.end,
                metric.key(),
                metric.unit().label(),
                value,
                hardware::reason(window.reasons),
            ])?;
        }
        Ok(())
    }

    fn stalls(&self) -> rusqlite::Result<()> {
        let mut insert = self.insert("stalls", 3)?;
        for (kernel, reasons) in &self.trace.hardware().stalls {
            let kernel = self.trace.names().full(*kernel);
            for (reason, samples) in reasons {
                insert.execute(params![kernel, reason, whole(*samples)])?;
            }
        }
        Ok(())
    }

    /// Rows of the report: a column takes the field of its name, `a_b` that of `b` in `a`.
    fn report_rows(&self, table: &str, rows: &serde_json::Value) -> rusqlite::Result<()> {
        let of_table = self.db.prepare(&format!("SELECT * FROM {table}"))?;
        let columns: Vec<String> = of_table.column_names().map(str::to_owned).collect();
        let mut insert = self.insert(table, columns.len())?;
        for row in rows.as_array().into_iter().flatten() {
            let values = columns.iter().map(|column| {
                let inner = |it: (&str, &str)| row.get(it.0).and_then(|object| object.get(it.1));
                let found = row
                    .get(column)
                    .or_else(|| column.split_once('_').and_then(inner));
                found.map_or(Value::Null, sql)
            });
            insert.execute(rusqlite::params_from_iter(values))?;
        }
        Ok(())
    }
}

/// A count as SQLite has it: one that its integers cannot hold (only a broken record says such) as a real.
fn whole(count: u64) -> Value {
    i64::try_from(count).map_or(Value::Real(count as f64), Value::Integer)
}

fn sql(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Bool(it) => Value::from(*it),
        serde_json::Value::Number(it) => match it.as_i64() {
            Some(whole) => Value::from(whole),
            None => it.as_f64().map_or(Value::Null, Value::from),
        },
        serde_json::Value::String(it) => Value::from(it.clone()),
        _ => Value::Null,
    }
}

fn range_kind(kind: RangeKind) -> &'static str {
    match kind {
        RangeKind::Variant => "variant",
        RangeKind::Warmup => "warm-up",
        RangeKind::Repeat => "repeat",
        RangeKind::Phase => "phase",
        RangeKind::Nvtx => "nvtx",
        RangeKind::CpuOp => "framework",
        RangeKind::Function => "function",
        RangeKind::Python => "python",
    }
}
