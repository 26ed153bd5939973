//! A context that is made where no call was recorded: between two calls, while the driver asks the system hundreds of times. Where
//! calls of the system were not recorded, only a pause behind what the runtime asks as its first call begins shows it.

use rustc_hash::FxHashMap;

use super::rows::RowReader;
use super::tables::{Tables, int};
use activity::{Ns, Overhead, Span, What};

/// Of all calls so many are looked at, from the first one on.
const CALLS_MAX: usize = 512;

/// A context takes at least so long, and asks so often; it pauses no longer. No call that makes one returns as quickly.
const CONTEXT_MIN: Ns = 50_000_000;
const ASKING_MIN: Ns = 20_000_000;
const ASKED_MIN: usize = 200;
const ASKED_MAX: usize = 1 << 16;
const PAUSE_MAX: Ns = 50_000_000;
const QUICK: Ns = 20_000_000;

/// Behind the runtime's own question nothing but a context is made, unless that takes longer.
const ALONE_MAX: Ns = 300_000_000;
const RUNTIME_ASKS: &str = "cuModuleGetLoadingMode";

/// Calls that need no context, and begin what does.
const QUESTIONS: [&str; 3] = [RUNTIME_ASKS, "cudaGetDeviceProperties", "cuInit"];

/// The time between two calls of a process, and the thread of the latter.
struct Pause {
    span: Span,
    thread: i64,
    asked: Vec<Span>,
    /// Whether it lies behind the process's first call, which is the runtime's own.
    is_runtimes: bool,
}

/// Where a process most likely made its context: its part of the ids, the thread, how often it asked.
struct Opening {
    process: i64,
    thread: i64,
    span: Span,
    asked: usize,
}

/// Puts down where processes most likely made their contexts without a call. A window of OpenGL asks the driver as often.
pub(super) fn read(tables: &Tables, reader: &mut RowReader<'_>) -> rusqlite::Result<()> {
    let draws = reader.functions.values().any(|it| it.contains("Graphics"));
    if draws {
        return Ok(());
    }
    for it in openings(tables)? {
        let Some(&process) = reader.processes.get(&it.process) else {
            continue;
        };
        let name = match it.asked {
            0 => Overhead::CONTEXT.to_owned(),
            asked => format!("{}: {asked} calls of ioctl", Overhead::CONTEXT),
        };
        let what = What::Overhead(Overhead {
            name: reader.gather.name(process, &name),
            thread: (it.thread & 0xff_ffff) as u32,
        });
        let times = (it.span.start, it.span.end);
        reader.gather.push(process, times, 0, what);
    }
    Ok(())
}

fn openings(tables: &Tables) -> rusqlite::Result<Vec<Opening>> {
    let mut pauses = pauses(tables)?;
    if pauses.is_empty() {
        // Calls of the system may be by the million.
        return Ok(Vec::new());
    }
    if !tables.has("OSRT_API") {
        let alone = pauses
            .into_iter()
            .filter(|(_, it)| it.is_runtimes && it.span.len() <= ALONE_MAX);
        let alone = alone.map(|(process, Pause { span, thread, .. })| Opening {
            process,
            thread,
            span,
            asked: 0,
        });
        return Ok(alone.collect());
    }
    let mut known: FxHashMap<i64, bool> = FxHashMap::default();
    let columns = ["start", "end", "globalTid", "nameId"];
    tables.each("OSRT_API", &columns, |row| {
        let (Some(span), Some(thread), Some(name)) = (span(row), int(row, 2), int(row, 3)) else {
            return;
        };
        let Some(pause) = pauses.get_mut(&(thread >> 24)) else {
            return;
        };
        let is_ioctl = || tables.string(name).ok().flatten().as_deref() == Some("ioctl");
        let is_in = pause.span.start <= span.start && span.start < pause.span.end;
        let has_room = pause.asked.len() < ASKED_MAX;
        if is_in
            && has_room
            && thread == pause.thread
            && *known.entry(name).or_insert_with(is_ioctl)
        {
            pause.asked.push(span.intersect(pause.span));
        }
    })?;
    let found = pauses.into_iter().filter_map(|(process, pause)| {
        let (span, asked) = longest_run(pause.asked)?;
        let thread = pause.thread;
        Some(Opening {
            process,
            thread,
            span,
            asked,
        })
    });
    Ok(found.collect())
}

/// By process the longest time between a question and the next call, where none before the first work took long.
fn pauses(tables: &Tables) -> rusqlite::Result<FxHashMap<i64, Pause>> {
    let mut calls: FxHashMap<i64, Vec<(Span, i64, i64)>> = FxHashMap::default();
    let columns = ["start", "end", "globalTid", "nameId"];
    let first = format!(" ORDER BY 1 LIMIT {CALLS_MAX}");
    tables.each_in("CUPTI_ACTIVITY_KIND_RUNTIME", &columns, &first, |row| {
        if let (Some(span), Some(thread), Some(name)) = (span(row), int(row, 2), int(row, 3)) {
            let of = calls.entry(thread >> 24).or_default();
            of.push((span, thread, name));
        }
    })?;
    let mut found: FxHashMap<i64, Pause> = FxHashMap::default();
    for (process, calls) in calls {
        let mut names = Vec::new();
        for it in &calls {
            names.push(tables.string(it.2)?.unwrap_or_default());
        }
        let works = |it: &String| {
            ["Launch", "Memcpy", "Memset"]
                .iter()
                .any(|w| it.contains(w))
        };
        let first = names
            .iter()
            .position(works)
            .map_or(calls.len(), |it| it + 1);
        if calls[..first].iter().any(|it| it.0.len() >= QUICK) {
            continue;
        }
        for at in 1..first {
            let ((before, _, _), (next, thread, _)) = (calls[at - 1], calls[at]);
            let span = Span::new(before.end.min(next.start), next.start);
            let asks = QUESTIONS.iter().any(|it| names[at - 1].starts_with(it));
            let longest = found.get(&process).map_or(CONTEXT_MIN, |it| it.span.len());
            if asks && span.len() >= longest {
                let pause = Pause {
                    span,
                    thread,
                    asked: Vec::new(),
                    is_runtimes: at == 1 && names[0].starts_with(RUNTIME_ASKS),
                };
                found.insert(process, pause);
            }
        }
    }
    Ok(found)
}

/// Of calls the longest stretch that has enough of them without a long pause, and how many.
fn longest_run(mut asked: Vec<Span>) -> Option<(Span, usize)> {
    asked.sort_unstable();
    let runs = asked.chunk_by(|a, b| b.start - a.end <= PAUSE_MAX);
    let runs = runs.filter(|it| it.len() >= ASKED_MIN);
    let spans =
        runs.filter_map(|it| Some((Span::new(it.first()?.start, it.last()?.end), it.len())));
    let long = spans.filter(|it| it.0.len() >= ASKING_MIN);
    long.max_by_key(|it| it.0.len())
}

fn span(row: &rusqlite::Row<'_>) -> Option<Span> {
    let (start, end) = (int(row, 0)?, int(row, 1)?);
    Some(Span::new(start, end.max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program asks what the GPU can do from 1 to 2 ms, and calls something else from 200 ms on, for so long. Between them its
    /// thread asks the system so often, 0.4 ms apart, from 20 ms on.
    fn found(calls: [&str; 2], takes: Ns, asked: i64, thread: i64) -> Vec<(Ns, Ns, usize)> {
        found_in("OSRT_API", calls, takes, asked, thread)
    }

    /// The same, with the system's calls in a table of this name.
    fn found_in(
        table: &str,
        calls: [&str; 2],
        takes: Ns,
        asked: i64,
        thread: i64,
    ) -> Vec<(Ns, Ns, usize)> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sqlite");
        let sql = format!(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO StringIds VALUES (1, '{}'), (2, '{}'), (3, 'ioctl'), (4, 'open'), (5, 'cudaLaunchKernel');
             CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
             INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (600000000, 600010000, 16777217, 5),
                 (200000000, 200000000 + {takes}, 16777217, 2), (1000000, 2000000, 16777217, 1);
             CREATE TABLE {table} (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {asked} - 1)
             INSERT INTO {table} SELECT 20000000 + i * 400000, 20100000 + i * 400000, {thread}, 3 FROM n;
             INSERT INTO {table} VALUES (5000000, 6000000, 16777217, 4), (190000000, 190100000, 16777217, 3);",
            calls[0], calls[1]
        );
        let made = rusqlite::Connection::open(&path).and_then(|it| it.execute_batch(&sql));
        made.expect("a file");
        let tables = Tables::open(&path).expect("an export");
        let found = openings(&tables).expect("readable").into_iter();
        found
            .map(|it| (it.span.start, it.span.end, it.asked))
            .collect()
    }

    #[test]
    fn behind_the_runtimes_own_question_a_pause_makes_a_context_though_nobody_asks() {
        const MS: Ns = 1_000_000;
        let of = |first, takes| found_in("NONE", [first, "cudaMalloc_v3020"], takes, 9, 16_777_217);
        assert_eq!(
            of("cuModuleGetLoadingMode", 100_000),
            [(2 * MS, 200 * MS, 0)]
        );
        // A call that takes long enough to have made it; what a program asks, behind which it may do anything.
        assert_eq!(of("cuModuleGetLoadingMode", 90 * MS), []);
        assert_eq!(of("cudaGetDeviceProperties_v2_v12000", 100_000), []);
        assert_eq!(of("cuInit", 100_000), []);
    }

    #[test]
    fn hundreds_of_questions_to_the_driver_before_a_quick_call_make_a_context() {
        const MS: Ns = 1_000_000;
        let (asks, allocates) = ("cudaGetDeviceProperties_v2_v12000", "cudaMalloc_v3020");
        // What the system is asked long behind the others is no part of it: 250 from 20 to 119.7 ms.
        let made = found([asks, allocates], 100_000, 250, 16_777_217);
        assert_eq!(made, [(20 * MS, 119 * MS + 700_000, 250)]);
        // Too few questions; another thread's; a call that takes long enough to have made it; no question before.
        for (calls, takes, asked, thread) in [
            ([asks, allocates], 100_000, 150, 16_777_217),
            ([asks, allocates], 100_000, 250, 16_777_218),
            ([asks, allocates], 90 * MS, 250, 16_777_217),
            ([allocates, allocates], 100_000, 250, 16_777_217),
            // Work went before.
            (
                ["cudaLaunchKernel_v7000", allocates],
                100_000,
                250,
                16_777_217,
            ),
        ] {
            assert_eq!(
                found(calls, takes, asked, thread),
                [],
                "{calls:?} {takes} {asked}"
            );
        }
    }
}
