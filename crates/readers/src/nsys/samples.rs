//! What threads were at when Nsight Systems sampled their processors: stacks of native functions.

use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::RowReader;
use super::tables::{Tables, int, small};
use activity::anonymous::INTERPRETER;
use activity::{Frame, Ns, SampleDef, SampledThread, Samples, StackId, StackSample};
use recording::file::shortened;

/// Frames that are read: more say nothing else of where a program spends its time.
const FRAMES_MAX: usize = 4 << 20;

/// A thread that no sample met for so many periods is off its processor.
const GONE: Ns = 4;

/// A program's threads are sampled this often at least.
const PERIOD_MAX: Ns = 100_000_000;

/// A library's function that a thread in Python was met in so often in a row is at work for long.
const LONG: u32 = 64;

/// A frame: how deep it lies, its symbol and its module.
type Level = (u32, i64, i64);

/// Libraries that compile: their functions have no names, and the library says what they do.
const COMPILERS: &str = "libnvrtc libnvJitLink libnvvm libnvidia-ptxjitcompiler libLLVM";

/// Stands for the symbol of a function of such a library.
const UNNAMED: i64 = i64::MIN;
/// What a program's innermost function is called that has an address for a name. Its symbol is kept with all bits turned over.
const UNRESOLVED: &str = "unresolved code";
/// What nsys calls a program whose file it read before the program was in it.
const LAUNCHER: &str = "nsys-launcher";

/// A compiler's library by its file: "libnvrtc" of "/cuda/lib64/libnvrtc.so.13.3.33".
fn compiler(module: &str) -> Option<&'static str> {
    let file = module.rsplit('/').next().unwrap_or(module);
    let mut all = COMPILERS.split(' ');
    all.find(|it| file.starts_with(it))
}

/// Stands for a function without a name of a program: neither of a library, nor of Python, whose own tell nothing.
fn program(module: &str) -> Option<String> {
    let file = module.rsplit('/').next().unwrap_or(module);
    let is_else = |it: &str| file.contains(it);
    let is_program = module.starts_with('/') && ![".so", "python", "("].into_iter().any(is_else);
    is_program.then(|| UNRESOLVED.to_owned())
}

/// The modules that are such libraries, each asked for once.
#[derive(Default)]
struct Compilers(FxHashMap<i64, bool>);

impl Compilers {
    fn has(&mut self, tables: &Tables, module: i64) -> bool {
        *self.0.entry(module).or_insert_with(|| {
            let name = tables.string(module).ok().flatten();
            name.is_some_and(|it| compiler(&it).is_some())
        })
    }
}

/// The samples of the threads that call CUDA, by process. Python's own functions say nothing of a program in Python, whose
/// samples are left out, but where a library's function is at work for long.
pub(super) fn read(tables: &Tables, rows: &RowReader<'_>) -> rusqlite::Result<Vec<(u32, Samples)>> {
    let threads: FxHashMap<i64, u32> = rows.threads.iter().map(|it| (it.1, it.0)).collect();
    let mut events: FxHashMap<i64, (Ns, i64, Vec<Level>)> = FxHashMap::default();
    let mut lost = 0;
    tables.each("COMPOSITE_EVENTS", &["id", "start", "globalTid"], |row| {
        if let (Some(id), Some(at), Some(thread)) = (int(row, 0), int(row, 1), int(row, 2))
            && threads.contains_key(&thread)
        {
            match events.len() < FRAMES_MAX {
                true => drop(events.insert(id, (at, thread, Vec::new()))),
                false => lost += 1,
            }
        }
    })?;
    let columns = [
        "id",
        "stackDepth",
        "symbol",
        "module",
        "kernelMode",
        "unresolved",
    ];
    let (mut count, mut compilers) = (0, Compilers::default());
    tables.each("SAMPLING_CALLCHAINS", &columns, |row| {
        let module = int(row, 3).unwrap_or(0);
        let symbol = match (small(row, 5), small(row, 1)) {
            (0, _) => int(row, 2),
            _ if compilers.has(tables, module) => Some(UNNAMED),
            (_, 0) => int(row, 2).map(|it| !it),
            _ => None,
        };
        let id = int(row, 0).filter(|_| small(row, 4) == 0);
        let (Some(id), Some(symbol)) = (id, symbol) else {
            return;
        };
        // A stack that is cut off names another function.
        if count == FRAMES_MAX {
            lost += u64::from(events.remove(&id).is_some());
        } else if let Some(of) = events.get_mut(&id) {
            // One stands for all of them in a row.
            let has_it =
                symbol == UNNAMED && of.2.iter().any(|it| (it.1, it.2) == (UNNAMED, module));
            if !has_it {
                of.2.push((small(row, 1), symbol, module));
                count += 1;
            }
        }
    })?;
    let mut events: Vec<_> = events.into_values().collect();
    events.sort_unstable_by_key(|it| (it.0, it.1));
    let mut known = Known::default();
    let mut by_process: FxHashMap<u32, Looks> = FxHashMap::default();
    for (_, thread, levels) in &mut events {
        levels.sort_unstable_by_key(|it| std::cmp::Reverse(it.0));
        let looks = by_process.entry(threads[thread]).or_default();
        if !looks.is_python {
            let frames = known.frames(tables, levels)?;
            looks.is_python = frames.iter().any(|it| known.all[*it].1);
        }
    }
    for (at, thread, levels) in events {
        let frames = known.frames(tables, &levels)?;
        let looks = by_process.entry(threads[&thread]).or_default();
        let frames = match looks.is_python {
            true => vec![known.at_work(&frames)],
            false => frames,
        };
        looks.add(at, (thread & 0xff_ffff) as u32, &frames, &known);
    }
    let all = by_process.into_iter();
    let is_told = |it: &Looks| !it.is_python || it.longest >= LONG;
    let all = all.filter(|it| is_told(&it.1) && !it.1.samples.defs.is_empty());
    let mut all: Vec<_> = all.map(|it| (it.0, it.1.finish())).collect();
    if let Some((_, first)) = all.first_mut() {
        first.sampling.lost = lost;
    }
    Ok(all)
}

/// Of deeper stacks so many levels are read, the innermost ones.
const LEVELS_MAX: usize = 1_024;

/// All frames, each once, by their numbers: names are long, and stacks have many levels.
#[derive(Default)]
struct Known {
    /// And whether it is of Python.
    all: Vec<(Frame, bool)>,
    numbers: FxHashMap<Frame, usize>,
    /// By symbol and module; `None` for what names no function.
    named: FxHashMap<(i64, i64), Option<usize>>,
}

impl Known {
    fn frames(&mut self, tables: &Tables, levels: &[Level]) -> rusqlite::Result<Vec<usize>> {
        let mut frames = Vec::new();
        for &(_, symbol, module) in &levels[levels.len().saturating_sub(LEVELS_MAX)..] {
            let mut known = self.named.get(&(symbol, module)).copied();
            if known.is_none() {
                let file = tables.string(module)?;
                let library = || file.as_deref().and_then(compiler).map(str::to_owned);
                let function = match symbol {
                    UNNAMED => library(),
                    _ if symbol < 0 => {
                        let address = tables.string(!symbol)?.filter(|it| it.starts_with("0x"));
                        address.zip(file.as_deref()).and_then(|it| program(it.1))
                    }
                    _ => tables.string(symbol)?,
                };
                let cut = |it: Option<String>| {
                    let whole = it.unwrap_or_default();
                    String::from_utf8_lossy(&shortened(whole.as_bytes())).into_owned()
                };
                let [function, file] = [function, file].map(cut);
                let new = frame(&function, &file).map(|it| self.number(it.cut()));
                known = Some(new);
                self.named.insert((symbol, module), new);
            }
            // A caller with a name says more.
            let is_told = symbol >= 0
                || symbol == UNNAMED
                || !frames.iter().any(|it: &usize| self.all[*it].0.is_own());
            frames.extend(known.flatten().filter(|_| is_told));
        }
        Ok(frames)
    }

    fn number(&mut self, frame: Frame) -> usize {
        let next = self.all.len();
        let number = *self.numbers.entry(frame.clone()).or_insert(next);
        if number == next {
            let is_python = frame.file.contains("python");
            self.all.push((frame, is_python));
        }
        number
    }

    /// What a program in Python is at: a library's innermost function, as if it were its own.
    fn at_work(&mut self, frames: &[usize]) -> usize {
        let is_of = |it: &Frame, of: &str| of.split(' ').any(|of| it.file.starts_with(of));
        let mut inner = frames.iter().rev().map(|it| &self.all[*it].0);
        let inner = inner.find(|it| !is_of(it, OF_SYSTEM));
        let compiles = |it: &Frame| compiler(it.file.trim_matches('<')).is_some();
        let is_others = |it: &Frame| is_of(it, OF_OTHERS) && !compiles(it);
        let (file, function) = match inner.filter(|it| !is_others(it)) {
            Some(it) => (it.file.trim_matches(['<', '>']), &*it.function),
            None => (INTERPRETER, "interpreter"),
        };
        let frame = Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            line: 0,
        };
        self.number(frame)
    }
}

/// A function by its name alone. A library's file stands between angles, as it is not the program's; so does that of functions that
/// C++ or a linked runtime brings.
fn frame(symbol: &str, module: &str) -> Option<Frame> {
    let name = symbol.split(['(', '<']).next().unwrap_or_default();
    let name = name.rsplit(' ').next();
    let name = name.filter(|it| !it.is_empty() && symbol != UNRESOLVED);
    let function = name.unwrap_or(symbol).to_owned();
    let file = module.rsplit('/').next().unwrap_or(module);
    let file = if file == LAUNCHER {
        "the program"
    } else {
        file
    };
    let runtimes = function.strip_prefix("cuda");
    let is_runtimes = runtimes.is_some_and(|it| it.starts_with(|it: char| it.is_ascii_uppercase()));
    let theirs = ["std::", "__", "libcudart_static_"];
    let is_theirs = is_runtimes || theirs.iter().any(|it| function.starts_with(it));
    let is_own = !file.contains(".so") && !is_theirs;
    let file = if is_own {
        file.to_owned()
    } else {
        format!("<{file}>")
    };
    let is_one = !symbol.starts_with(['[', '0']) && !function.is_empty();
    is_one.then_some(Frame {
        file,
        function,
        line: 0,
    })
}

/// Libraries that do a part of their caller's work.
const OF_SYSTEM: &str = "<libc. <libc- <libm. <ld- <libstdc++";
/// Those of CUDA and of the profiler, whose calls are known by records, and Python itself.
const OF_OTHERS: &str = "python <python <libpython <libcu <libnv <libTools <libNv";

/// The looks at a process.
#[derive(Default)]
struct Looks {
    samples: Samples,
    frames: FxHashMap<usize, u32>,
    stacks: FxHashMap<(StackId, u32), StackId>,
    /// When each thread was met last.
    met: FxHashMap<u32, Ns>,
    distances: Vec<Ns>,
    is_python: bool,
    /// How often in a row each thread was met in one function of a library, and the most of these.
    runs: FxHashMap<u32, (StackId, u32)>,
    longest: u32,
}

impl Looks {
    /// Takes in what a thread was at, the outermost function first.
    fn add(&mut self, time: Ns, thread: u32, frames: &[usize], known: &Known) {
        let mut stack = 0;
        let is_library = frames.iter().all(|it| known.all[*it].0.file != INTERPRETER);
        for number in frames {
            let next = self.frames.len() as u32 + 1;
            let id = *self.frames.entry(*number).or_insert(next);
            if id == next {
                let frame = known.all[*number].0.clone();
                self.samples.defs.push(SampleDef::Frame { id, frame });
            }
            let (caller, frame, next) = (stack, id, self.stacks.len() as u32 + 1);
            stack = *self.stacks.entry((caller, frame)).or_insert(next);
            if stack == next {
                let id = next;
                self.samples
                    .defs
                    .push(SampleDef::Stack { id, caller, frame });
            }
        }
        let run = self.runs.entry(thread).or_default();
        *run = match run.0 == stack && is_library {
            true => (stack, run.1 + 1),
            false => (stack, 0),
        };
        self.longest = self.longest.max(run.1);
        let before = self.met.insert(thread, time);
        let distance = before.map(|before| time.saturating_sub(before));
        self.distances
            .extend(distance.filter(|it| (1..PERIOD_MAX).contains(it)));
        let seen = SampledThread {
            thread,
            stack,
            is_running: true,
        };
        match self.samples.looks.last_mut() {
            Some(last) if last.time == time => last.changed.push(seen),
            _ => self.samples.looks.push(StackSample {
                time,
                changed: vec![seen],
            }),
        }
    }

    /// With the period that samples have at the median, and threads that are gone where none met them for long.
    fn finish(mut self) -> Samples {
        self.distances.sort_unstable();
        let period = self.distances.get(self.distances.len() / 2).copied();
        let period = period.unwrap_or(PERIOD_MAX);
        self.met.clear();
        for look in &mut self.samples.looks {
            let seen: FxHashSet<u32> = look.changed.iter().map(|it| it.thread).collect();
            let gone = |it: &(&u32, &Ns)| {
                !seen.contains(it.0) && look.time.saturating_sub(*it.1) > GONE * period
            };
            let gone: Vec<u32> = self.met.iter().filter(gone).map(|it| *it.0).collect();
            for thread in gone {
                self.met.remove(&thread);
                look.changed.push(SampledThread {
                    thread,
                    stack: 0,
                    is_running: false,
                });
            }
            self.met.extend(seen.into_iter().map(|it| (it, look.time)));
        }
        self.samples.sampling.hz = (1_000_000_000 / period) as u32;
        self.samples.sampling.looks = self.samples.looks.len() as u64;
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.2 MB held a name of 1 MB on each of 5,000 levels: 4.8 GB.
    #[test]
    fn of_long_names_and_deep_stacks_a_part_is_read() {
        let sql = "CREATE TABLE StringIds (id INTEGER, value TEXT);
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
            INSERT INTO StringIds SELECT i, replace(hex(zeroblob(50000)), '0', 'x') || i FROM n WHERE i < 2;";
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sqlite");
        let made = rusqlite::Connection::open(&path).and_then(|it| it.execute_batch(sql));
        made.expect("a file");
        let tables = Tables::open(&path).expect("an export");
        let levels: Vec<Level> = (0..5_000)
            .rev()
            .map(|depth| (depth, i64::from(depth % 2), 0))
            .collect();
        let mut known = Known::default();
        let frames = known.frames(&tables, &levels).expect("frames");
        assert_eq!((frames.len(), known.all.len()), (LEVELS_MAX, 2));
        let frames: Vec<&Frame> = known.all.iter().map(|it| &it.0).collect();
        assert!(frames[0].file.len() <= 1_027, "{}", frames[0].file.len());
        assert!(
            frames[0].function.len() <= 16 * 1024,
            "{}",
            frames[0].function.len()
        );
        assert_ne!(frames[0].function, frames[1].function);
    }

    #[test]
    fn stacks_of_native_functions_are_read_and_pythons_are_not() {
        let read_of = |program: &str, hashes: usize| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("a.sqlite");
            let sql = format!(
                "CREATE TABLE StringIds (id INTEGER, value TEXT);
                 INSERT INTO StringIds VALUES (9, 'sha256_block'), (10, '/lib/libcrypto.so.3'), (11, 'memcpy'), (12, '/lib/libc.so.6'), (1, 'cudaLaunchKernel'), (2, 'main'), (3, 'void fill<int>(int*)'), (4, 'log'),
                     (5, '{program}'), (6, '/usr/lib/libm.so.6'), (7, '0x7f00'), (8, '[Max depth]');
                 CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
                     nameId INTEGER);
                 INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (9000000, 9001000, 16777223, 1, 1);
                 CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, globalTid INTEGER);
                 INSERT INTO COMPOSITE_EVENTS VALUES (1, 1000000, 16777223), (2, 2000000, 16777223), (3, 2500000, 16777299);
                 CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER, stackDepth INTEGER);
                 INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 4, 6, NULL, 0), (1, 3, 5, NULL, 1), (1, 7, 5, 1, 2), (1, 2, 5, NULL, 3),
                     (2, 3, 5, NULL, 0), (2, 2, 5, NULL, 1), (2, 8, 8, NULL, 2), (3, 2, 5, NULL, 0);
                 WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 3 + {hashes})
                     INSERT INTO COMPOSITE_EVENTS SELECT i, i * 1000000, 16777223 FROM n;
                 INSERT INTO SAMPLING_CALLCHAINS SELECT id, 11, 12, NULL, 0 FROM COMPOSITE_EVENTS WHERE id > 3;
                 INSERT INTO SAMPLING_CALLCHAINS SELECT id, 9, 10, NULL, 1 FROM COMPOSITE_EVENTS WHERE id > 3;
                 INSERT INTO SAMPLING_CALLCHAINS SELECT id, 3, 5, NULL, 2 FROM COMPOSITE_EVENTS WHERE id > 3;
                 DELETE FROM COMPOSITE_EVENTS WHERE id > 3 + {hashes};"
            );
            rusqlite::Connection::open(&path)
                .and_then(|it| it.execute_batch(&sql))
                .expect("a file");
            let tables = Tables::open(&path).expect("an export");
            let mut rows = RowReader::new(&tables).expect("rows");
            rows.threads.insert((0, 16_777_223));
            read(&tables, &rows).expect("samples")
        };
        let frames = |samples: &Samples| -> Vec<_> {
            let told = samples.defs.iter().filter_map(|it| match it {
                SampleDef::Frame { frame, .. } => {
                    Some(format!("{} {}", frame.file, frame.function))
                }
                _ => None,
            });
            told.collect()
        };
        let all = read_of("/home/a/solver", 0);
        let [(0, samples)] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            frames(samples),
            ["solver main", "solver fill", "<libm.so.6> log"]
        );
        let stacks = samples
            .looks
            .iter()
            .map(|it| (it.time, it.changed[0].stack));
        assert_eq!(stacks.collect::<Vec<_>>(), [(1_000_000, 3), (2_000_000, 2)]);
        assert_eq!((samples.sampling.hz, samples.sampling.looks), (1_000, 2));
        let python = "/usr/bin/python3.10";
        assert_eq!(read_of(python, 64), []);
        // A library is at work for long.
        let all = read_of(python, 65);
        let hashes = ["<python> interpreter", "libcrypto.so.3 sha256_block"];
        assert_eq!(
            all.iter().map(|it| frames(&it.1)).collect::<Vec<_>>(),
            [hashes]
        );
    }

    /// What the stacks of one thread's samples name. 1 and 2 are addresses, 3 is getc of libc (6), and 4 is main of the solver (7).
    fn told(library: &str, chains: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sqlite");
        let sql = format!(
            "CREATE TABLE StringIds (id INTEGER, value TEXT);
             INSERT INTO StringIds VALUES (1, '0x401ae4'), (2, '0x401ae0'), (3, 'getc'), (4, 'main'), (5, '{library}'),
                 (6, '/usr/lib/libc.so.6'), (7, '/home/a/solver');
             CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, globalTid INTEGER);
             INSERT INTO COMPOSITE_EVENTS VALUES (1, 1000000, 16777223);
             CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER, stackDepth INTEGER);
             INSERT INTO SAMPLING_CALLCHAINS VALUES {chains};"
        );
        let made = rusqlite::Connection::open(&path).and_then(|it| it.execute_batch(&sql));
        made.expect("a file");
        let tables = Tables::open(&path).expect("an export");
        let mut rows = RowReader::new(&tables).expect("rows");
        rows.threads.insert((0, 16_777_223));
        let all = read(&tables, &rows).expect("samples").into_iter();
        let defs = all.flat_map(|it| it.1.defs);
        let told = defs.filter_map(|it| match it {
            SampleDef::Frame { frame, .. } => Some(format!("{} {}", frame.file, frame.function)),
            _ => None,
        });
        told.collect()
    }

    /// Functions of a compiler have no names; those of another library stay unknown.
    #[test]
    fn a_compiler_without_names_of_its_functions_is_told_by_its_library() {
        let frames = |library: &str| {
            let chains = "(1, 3, 6, NULL, 0), (1, 1, 5, 1, 1), (1, 2, 5, 1, 2), (1, 4, 7, NULL, 3)";
            told(&format!("/usr/lib/{library}"), chains)
        };
        let compiles = [
            "solver main",
            "<libnvrtc.so.13> libnvrtc",
            "<libc.so.6> getc",
        ];
        assert_eq!(frames("libnvrtc.so.13"), compiles);
        assert_eq!(frames("libmesh.so.1"), ["solver main", "<libc.so.6> getc"]);
    }

    /// A loop of a program without symbols was left out, and the rest of the samples were all that the CPU did.
    #[test]
    fn code_of_a_program_without_symbols_is_the_programs() {
        let alone = "(1, 1, 5, 1, 0), (1, 2, 5, 1, 1)";
        let launched = "/opt/nsight-systems/target-linux-sbsa-armv8/nsys-launcher";
        assert_eq!(told(launched, alone), ["the program unresolved code"]);
        assert_eq!(told("/home/a/jacobi", alone), ["jacobi unresolved code"]);
        for other in [
            "/usr/lib/libmesh.so.1",
            "[Unknown]",
            "/memfd:jit (deleted)",
            "/usr/bin/python3.10",
        ] {
            assert_eq!(told(other, alone), [""; 0], "{other}");
        }
        // Where a function of it has a name, or a library's is the innermost, that is told alone.
        let called = "(1, 1, 5, 1, 0), (1, 4, 7, NULL, 1)";
        assert_eq!(told("/home/a/solver", called), ["solver main"]);
        assert_eq!(told("/home/a/solver", "(1, 3, 5, 1, 0)"), [""; 0]);
        let calls = "(1, 3, 6, NULL, 0), (1, 1, 5, 1, 1)";
        assert_eq!(told("/home/a/solver", calls), ["<libc.so.6> getc"]);
    }
}
