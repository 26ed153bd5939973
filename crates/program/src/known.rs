//! What is known of functions that a program's lines call: what they do, and what helps. The table is data: see `known.txt`.

use std::cmp::Reverse;
use std::sync::OnceLock;

use super::source::Sources;
use activity::{Frame, Ns};
use causes::stacks::{LineShare, StackCounts};
use trace::Trace;
use trace::samples::short_file;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What the CPU is at where it counts.
    at: &'static str,
    /// What it does, behind "which".
    pub does: &'static str,
    pub advice: &'static str,
    /// What its cure is called.
    pub cure: &'static str,
    /// What to change, in the words of `changes.txt` or by a name there.
    pub change: &'static str,
    keys: &'static str,
    /// How many samples saw it, of how many.
    samples: [u64; 2],
}

/// What the CPU is at: other work, launching, or waiting for the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Work,
    Launch,
    Sync,
}

/// Fewer lines may each be one long call.
const LINES_MIN: usize = 3;

/// The key of lines that call nothing but Python's own.
const PLAIN: &str = "plain";

/// The key of lines that take a lock.
const LOCK: &str = "lock";

/// What Python's own code calls behind a dot.
const METHODS: &str = "append add get items keys values pop popleft strip lower upper split join encode decode extend insert \
    startswith endswith replace index count setdefault update format remove discard union sqrt exp log floor bit_length crc32";

/// What it calls without one.
const BUILTINS: &str = "range len int float str bool list dict set tuple min max sum abs zip enumerate round ord chr divmod isinstance \
    bytes bytearray any all pow reversed map filter if elif in and or not while return for lambda";

fn rows() -> &'static [Known] {
    static ROWS: OnceLock<Vec<Known>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let lines = include_str!("known.txt").lines();
        let row = |line: &'static str| {
            let mut of = line.split(" | ");
            let mut next = || of.next();
            Some(Known {
                at: next()?,
                does: next()?,
                advice: next()?,
                cure: next()?,
                change: next()?,
                keys: next()?,
                samples: [1; 2],
            })
        };
        lines
            .filter(|it| !it.starts_with('#'))
            .filter_map(row)
            .collect()
    })
}

impl Known {
    /// What is known of an operator of PyTorch.
    pub fn of_op(name: &str) -> Option<Known> {
        let is_it = |key: &str| match key.strip_suffix('*') {
            Some(begins) => name.starts_with(begins),
            None => name == key,
        };
        let mut rows = rows().iter().filter(|it| it.at == "op");
        rows.find(|it| it.keys.split(' ').any(is_it)).copied()
    }

    /// What to do, the change of the source, and how that is called: what is known, else what others say.
    pub fn or<T: FnOnce() -> (&'static str, &'static str, &'static str)>(
        known: Option<Known>,
        others: T,
    ) -> (&'static str, &'static str, &'static str) {
        known.map_or_else(others, |it| (it.advice, it.change, it.cure))
    }

    /// What to do, how that is called, and the change of the source.
    pub fn cured(&self) -> (&'static str, &'static str, &'static str) {
        (self.advice, self.cure, self.change)
    }

    /// Its part of some time.
    pub fn part_of(&self, time: Ns) -> Ns {
        let [samples, all] = self.samples;
        (time as i128 * i128::from(samples) / i128::from(all.max(1))) as Ns
    }

    /// "waiting for train.py:19, which decodes images (PIL)".
    pub fn at(&self, line: &LineShare) -> String {
        format!("waiting for {}, which {}", line.place, self.does)
    }

    /// How well a frame is known by it: by its file or function, or by its folder alone.
    fn knows(&self, frame: &Frame) -> Option<bool> {
        let file = short_file(&frame.file);
        let is_its = |key: &&str| {
            if key.starts_with('<') {
                return frame.file.starts_with(*key);
            }
            let (of, function) = key.split_once(':').unwrap_or((key, ""));
            let is_file = match of.split_once('*') {
                Some((begins, has)) => file.strip_prefix(begins).is_some_and(|it| it.contains(has)),
                None if of.ends_with('/') => file.starts_with(of),
                None => file == of,
            };
            is_file && (function.is_empty() || is_part(&frame.function, function))
        };
        let mut found = self.keys.split(' ').filter(is_its).peekable();
        found.peek()?;
        Some(found.any(|it| !it.ends_with('/')))
    }

    /// The part of a line by which it is known: by a call of its own, or by what is told where nothing else is.
    fn calls(&self, line: &str) -> Option<(bool, usize)> {
        let keys = self.keys.split(' ');
        let keys = keys.filter_map(|it| match it.strip_prefix('=') {
            Some(it) => Some((false, it)),
            None => it.ends_with('(').then_some((true, it)),
        });
        let keys = keys.filter(|it| has_call(line, it.1));
        keys.map(|it| (it.0, it.1.len())).max()
    }
}

/// Whether a function is called so, or lies in what is.
fn is_part(function: &str, name: &str) -> bool {
    let ends = function.strip_suffix(name);
    let begins = function.strip_prefix(name);
    ends.is_some_and(|it| it.is_empty() || it.ends_with('.'))
        || begins.is_some_and(|it| it.starts_with('.'))
}

/// Whether a call stands in a line, and not as the end of a longer name.
fn has_call(line: &str, call: &str) -> bool {
    let is_longer = |it: &str| {
        let it = it.strip_suffix("self.").unwrap_or(it);
        it.ends_with(|c: char| c == '_' || c == '.' || c.is_alphanumeric())
    };
    let mut at = line.match_indices(call);
    at.any(|(at, _)| call.starts_with('.') || !is_longer(&line[..at]))
}

/// Whether a line calls nothing but Python's own.
fn is_plain(line: &str) -> bool {
    let is_name = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
    let is_known = |name: &str| match name.rsplit_once('.') {
        Some((of, method)) => {
            !["np", "numpy", "torch", "cp", "cupy", "jnp"].contains(&of)
                && METHODS.split(' ').any(|it| it == method)
        }
        None => name.is_empty() || BUILTINS.split(' ').any(|it| it == name),
    };
    let mut calls = line.match_indices('(').map(|(at, _)| {
        let before = &line[..at];
        &before[before.trim_end_matches(is_name).len()..]
    });
    !line.contains(['@']) && calls.all(is_known)
}

/// The row of what most of these frames, innermost first, are in: of the outermost library that one knows.
fn of_frames(rows: &[Known], frames: &[&Frame]) -> Option<usize> {
    let find = |frame: &Frame, is_exact: bool| {
        let is_it = |it: &Known| it.knows(frame).is_some_and(|it| it || !is_exact);
        rows.iter().position(is_it)
    };
    let package = |it: &Frame| short_file(&it.file).split('/').next().map(str::to_owned);
    let outward = || frames.iter().rev();
    let first = outward().find(|it| find(it, false).is_some())?;
    let mut same = outward().filter(|it| package(it) == package(first));
    let exact = same.find_map(|it| find(it, true));
    exact.or_else(|| find(first, false))
}

/// The row of what a line calls: the only one that knows a call of it, else the one of the longest word.
fn of_line(rows: &[Known], line: &str) -> Option<usize> {
    let line = line.split(" #").next().unwrap_or(line);
    let found = rows.iter().enumerate();
    let found = found.filter_map(|(at, it)| Some((it.calls(line)?, at)));
    let mut found: Vec<((bool, usize), usize)> = found.collect();
    found.sort_by_key(|it| Reverse(it.0));
    // What stands there while it is held has lines of its own.
    let takes = |it: &str| it.starts_with("with ") && it.to_lowercase().contains("lock");
    if takes(line.trim_start()) {
        return rows.iter().position(|it| it.keys == LOCK);
    }
    match found.as_slice() {
        [((true, _), _), ((true, _), _), ..] => None,
        [(_, at), ..] => Some(*at),
        [] => rows
            .iter()
            .position(|it| it.keys == PLAIN)
            .filter(|_| is_plain(line)),
    }
}

impl Sources<'_> {
    /// What the line that was seen spends at least half of these samples in, as far as that is known.
    pub fn known(&self, trace: &Trace, seen: &StackCounts, at: At) -> Option<Known> {
        let line = self.seen?;
        let name = format!("{at:?}").to_lowercase();
        let rows = rows().iter().filter(|it| it.at == name);
        let rows: Vec<Known> = rows.copied().collect();
        let row = |own: &Frame, below: &[&Frame]| match below {
            [] => of_line(&rows, self.text((&own.file, own.line))?),
            _ => of_frames(&rows, below),
        };
        let by = seen.known_at(trace, line, row);
        let (at, lines, samples) = by?;
        let row = Known {
            samples: [samples, seen.all],
            ..rows[at]
        };
        (row.keys != PLAIN || lines >= LINES_MIN).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::{SampleDef, SampledThread, Samples, Sampling, StackSample};
    use causes::stacks::StackCounts;
    use trace::testing::Scene;

    /// A stack, innermost first: file, function, line.
    type Stack = &'static [(&'static str, &'static str, u32)];

    const TEXT: &str = "import x\nfor line in lines:\n    row = cv2.resize(line, (3, 4))\n    row = np.linalg.norm(print(row))\n    row = np.sort(np.bincount(row))\n    row.append(int(line.strip()[3]) + len(row))\n    if len(row) > 3: row = [0] * 9\n    row = sorted_by(line)\nwith self.lock:\nwith open(line):\nclock = 3\n";

    /// What is known of some stacks, of which each was seen so often.
    fn known(at: At, stacks: &[(u32, Stack)]) -> Option<&'static str> {
        let mut scene = Scene::new();
        let (mut defs, mut looks) = (Vec::new(), Vec::new());
        let mut id = 0;
        for &(times, stack) in stacks {
            let mut caller = 0;
            for &(file, function, line) in stack.iter().rev() {
                id += 1;
                let (file, function) = (file.to_owned(), function.to_owned());
                let frame = Frame {
                    file,
                    function,
                    line,
                };
                defs.push(SampleDef::Frame { id, frame });
                defs.push(SampleDef::Stack {
                    id,
                    caller,
                    frame: id,
                });
                caller = id;
            }
            for _ in 0..times {
                let time = looks.len() as i64 * 1_000_000;
                let (thread, stack, is_running) = (1, caller, true);
                let changed = vec![SampledThread {
                    thread,
                    stack,
                    is_running,
                }];
                looks.push(StackSample { time, changed });
            }
        }
        let end = looks.len() as i64 * 1_000_000;
        let mut batch = scene.take();
        let (series, sampling) = (
            0,
            Sampling {
                hz: 1_000,
                ..Sampling::default()
            },
        );
        batch.samples = Some(Samples {
            series,
            defs,
            looks,
            sampling,
        });
        let trace = scene.put(batch).trace();
        let mut seen = StackCounts::default();
        seen.add_samples(&trace, 0, 1, activity::Span::new(0, end));
        let line = seen.telling(&trace)?;
        let files = vec![("/x/train.py".to_owned(), TEXT.into())];
        let sources = Sources {
            files,
            seen: Some(&line),
        };
        sources.known(&trace, &seen, at).map(|it| it.does)
    }

    const OWN: (&str, &str, u32) = ("/x/train.py", "main", 2);
    const OTHER: Stack = &[("/x/train.py", "main", 8)];

    #[test]
    fn each_row_has_its_words_and_keys() {
        let lines = include_str!("known.txt").lines();
        let lines = lines.filter(|it| !it.starts_with('#')).count();
        assert_eq!(rows().len(), lines);
        for it in rows() {
            assert!(["work", "launch", "sync", "op"].contains(&it.at), "{it:?}");
            assert!(!it.keys.is_empty() && !it.keys.contains('|'), "{it:?}");
            assert!(it.does.starts_with(char::is_lowercase), "{it:?}");
            assert!(
                it.advice.starts_with(char::is_uppercase) && it.advice.ends_with('.'),
                "{it:?}"
            );
            assert!(
                it.change.contains(": ") || !it.change.contains(' '),
                "{it:?}"
            );
            let words = |it: &str| it.split(' ').count();
            assert!(it.advice.split(". ").all(|it| words(it) <= 20), "{it:?}");
        }
    }

    #[test]
    fn a_line_spends_its_time_in_a_library_that_is_known() {
        const RESIZE: Stack = &[
            (
                "/usr/lib/python3.12/site-packages/PIL/Image.py",
                "Image.resize",
                2000,
            ),
            OWN,
        ];
        // It decodes on the way: the file beside it says more than the folder.
        const CONVERT: Stack = &[
            (
                "/usr/lib/python3.12/site-packages/PIL/ImageFile.py",
                "ImageFile.load",
                300,
            ),
            (
                "/usr/lib/python3.12/site-packages/PIL/Image.py",
                "Image.convert",
                900,
            ),
            OWN,
        ];
        // What the line calls is told, and not what that calls.
        const LOG: Stack = &[
            (
                "/usr/lib/python3.12/json/encoder.py",
                "JSONEncoder.encode",
                200,
            ),
            (
                "/usr/lib/python3.12/site-packages/wandb/sdk/wandb_run.py",
                "Run.log",
                900,
            ),
            OWN,
        ];
        const FUTURE: Stack = &[
            ("/usr/lib/python3.12/threading.py", "Condition.wait", 355),
            (
                "/usr/lib/python3.12/concurrent/futures/_base.py",
                "Future.result",
                451,
            ),
            OWN,
        ];
        const ELSEWHERE: Stack = &[
            ("/usr/lib/python3.12/site-packages/mine/a.py", "resize", 1),
            OWN,
        ];
        for (stack, does) in [
            (RESIZE, Some("resizes images (PIL)")),
            (CONVERT, Some("decodes images (PIL)")),
            (LOG, Some("logs to Weights & Biases")),
            (FUTURE, Some("waits for a worker's result (Future)")),
            (ELSEWHERE, None),
        ] {
            assert_eq!(known(At::Work, &[(20, stack)]), does);
            assert_eq!(known(At::Launch, &[(20, stack)]), None);
            // Where less than half is spent there, nothing is said.
            assert_eq!(known(At::Work, &[(9, stack), (11, OTHER)]), None);
            assert_eq!(known(At::Work, &[(11, stack), (9, OTHER)]), does);
        }
    }

    #[test]
    fn cells_and_checks_of_arguments_are_known_where_launches_or_syncs_take_the_time() {
        const CELL: Stack = &[
            (
                "/usr/lib/python3.12/site-packages/torch/nn/modules/rnn.py",
                "LSTMCell.forward",
                1500,
            ),
            (
                "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py",
                "Module._call_impl",
                1700,
            ),
            OWN,
        ];
        const LAYER: Stack = &[
            (
                "/usr/lib/python3.12/site-packages/torch/nn/modules/rnn.py",
                "LSTM.forward",
                900,
            ),
            OWN,
        ];
        const CHECKS: Stack = &[
            (
                "/usr/lib/python3.12/site-packages/torch/distributions/distribution.py",
                "Distribution.__init__",
                60,
            ),
            OWN,
        ];
        let cell = "steps a recurrent cell in Python";
        let checks = "checks the arguments of distributions";
        for (at, stack, does) in [
            (At::Launch, CELL, Some(cell)),
            (At::Launch, LAYER, None),
            (At::Work, CELL, None),
            (At::Sync, CHECKS, Some(checks)),
            (At::Launch, CHECKS, Some(checks)),
            (At::Work, CHECKS, None),
        ] {
            assert_eq!(known(at, &[(20, stack)]), does, "{at:?}");
        }
    }

    #[test]
    fn a_function_without_frames_is_known_by_the_line_that_calls_it() {
        const LINES: [Stack; 8] = [
            &[("/x/train.py", "main", 1)],
            &[("/x/train.py", "main", 2)],
            &[("/x/train.py", "main", 3)],
            &[("/x/train.py", "main", 4)],
            &[("/x/train.py", "main", 5)],
            &[("/x/train.py", "main", 6)],
            &[("/x/train.py", "main", 7)],
            &[("/x/train.py", "main", 8)],
        ];
        let of = |line: usize| known(At::Work, &[(20, LINES[line - 1])]);
        assert_eq!(of(3), Some("works on images (OpenCV)"));
        assert_eq!(of(4), Some("does linear algebra with NumPy on the CPU"));
        let lock = |line| known(At::Work, &[(20, line)]);
        let waits = Some("waits for a lock that another thread holds");
        assert_eq!(lock(&[("/x/train.py", "main", 9)]), waits);
        assert_eq!(lock(&[("/x/train.py", "main", 10)]), None);
        // Two that may take it, what nobody knows, and one line of Python, which may be one long call.
        assert_eq!([of(5), of(8), of(6)], [None; 3]);
        // Python's own, line by line; and less than half of it.
        let plain = [(10, LINES[5]), (7, LINES[6]), (5, LINES[1])];
        assert_eq!(
            known(At::Work, &plain),
            Some("runs Python code line by line")
        );
        assert_eq!(known(At::Work, &plain[..2]), None);
        let less = [(8, LINES[5]), (2, LINES[6]), (1, LINES[1]), (12, LINES[7])];
        assert_eq!(known(At::Work, &less), None);
    }

    #[test]
    fn words_of_a_line_are_whole() {
        for (line, call, expected) in [
            ("x = np.sort(y)", "np.sort(", true),
            ("x = inp.sort(y)", "np.sort(", false),
            ("x = np.random.choice(y)", "random.choice(", false),
            ("x = self.env.step(a)", "env.step(", true),
            ("x = sorted(y)", "sort(", false),
            ("x.result()", ".result(", true),
        ] {
            assert_eq!(has_call(line, call), expected, "{line}");
        }
        assert!(is_plain("x = [int(it.strip()) for it in lines]"));
        assert!(
            !is_plain("x = np.add(y, 3)") && !is_plain("x = model(y)") && !is_plain("x = a @ b")
        );
        let op = |it| Known::of_op(it).map(|it| it.cure);
        assert_eq!(op("aten::randn"), Some("drawing numbers on the GPU"));
        assert_eq!([op("aten::add"), op("aten::normal_functional")], [None; 2]);
    }
}
