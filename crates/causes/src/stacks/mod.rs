//! What a thread was seen doing in some stretches of time, and the line that it was seen at most.

mod asked;
mod tree;
mod work;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use activity::anonymous::{INTERPRETER, is_own};
use activity::text::{counted, printable};
use activity::units::count;
use activity::{Frame, Ns, Span, StackId};
pub use asked::{LaunchLine, asked_line};
use trace::samples::short_file;
use trace::{SourceKind, Trace};
pub use tree::{Node, add_functions, below_line, is_wrapper};

/// From so many samples on it is known that no function holds most of them, or that a compiler does.
const SAMPLES_MIN: u64 = 16;

/// Fewer samples of a line tell nothing of what many stretches have in common.
const LEAST: u64 = 3;
/// A line speaks for all of them when it has this part of the samples.
const MOST: f64 = 0.4;
/// Who calls what many lines do holds this part of the samples.
const HALF: f64 = 0.5;
/// And who waits, this one.
const NEARLY_ALL: f64 = 0.8;
/// A thread whose samples stand for so much less than the time was off its processor. Slow clocks make them half as many.
const OFF_CPU: Ns = 3;
/// Of shorter stretches too few samples are expected to tell that by themselves.
const OFF_MIN: Ns = 100_000_000;
/// A line of so much of the time says what all of it goes to.
pub const NEARLY: f64 = 0.9;

/// Samples by stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    stacks: FxHashMap<StackId, u64>,
    pub all: u64,
    /// How long was looked at, and what of it samples stand for, where they meet threads only on their processors.
    looked: Ns,
    ran: Ns,
    /// Samples of long stretches in which a thread was mostly off its processor, and how long those are. What it was seen at
    /// elsewhere tells nothing of them.
    off: FxHashMap<StackId, u64>,
    off_ns: Ns,
}

/// The line at which most samples were, of so many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineShare {
    /// In short: "train.py:19".
    pub place: String,
    /// The same file as the interpreter names it, and the line.
    #[serde(skip)]
    pub file: String,
    #[serde(skip)]
    pub line: u32,
    /// The function that it is in.
    pub function: String,
    /// What it called: "torch/utils/data/dataloader.py __next__".
    pub call: Option<String>,
    /// The deepest function below it that still holds half of all samples: "torch/nn/modules/module.py _call_impl".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deepest: Option<String>,
    /// Samples of the latter.
    #[serde(skip)]
    pub deep: u64,
    /// Samples of it.
    pub samples: u64,
    /// Samples in all.
    pub of: u64,
    /// Whether its thread was off its processor for most of the time, so that the samples tell where and not how long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_blocked: bool,
}

/// What is counted as one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub file: String,
    pub line: u32,
    pub function: String,
    pub call: String,
}

impl Key {
    pub fn of(trace: &Trace, stack: StackId) -> Key {
        let called = |it: &Frame| format!("{} {}", short_file(&it.file), it.function);
        match trace.stacks().own_line(stack) {
            Some((own, call)) => Key {
                file: own.file.clone(),
                line: own.line,
                function: own.function.clone(),
                call: call.map_or_else(String::new, called),
            },
            None => {
                let innermost = trace.stacks().frames(stack).next();
                Key {
                    call: innermost.map_or_else(String::new, called),
                    ..Key::default()
                }
            }
        }
    }
}

/// Samples of a frame, how far out it lies, the frame, and one that it called.
type Caller<'t> = (u64, usize, &'t Frame, &'t Frame);

impl StackCounts {
    /// Adds the samples of a thread within `span`; those of its process's main thread where it was never seen in Python.
    pub fn add_samples(&mut self, trace: &Trace, process: usize, thread: u32, span: Span) {
        let it = &trace.processes()[process];
        if it.sampled.is_empty() {
            return;
        }
        let main = main_of(trace, process, thread);
        let thread = working(trace, process, main, span).unwrap_or(main);
        let before = self.all;
        for sample in it.sampled.within(thread, span) {
            *self.stacks.entry(sample.stack).or_default() += 1;
            self.all += 1;
        }
        if trace.source.kind == SourceKind::Nsys {
            let period = 1_000_000_000 / Ns::from(it.sampled.totals().hz.max(1));
            self.looked += span.len();
            self.ran += (self.all - before) as Ns * period;
        }
    }

    /// Samples that saw more than that Python was at work.
    fn known(&self, trace: &Trace) -> u64 {
        let is_python = |it: &Frame| it.file == INTERPRETER;
        self.all - self.filtered(trace, is_python).all
    }

    /// Whether enough of them say what the CPU was in.
    pub fn tell(&self, trace: &Trace) -> bool {
        let known = self.known(trace);
        known >= SAMPLES_MIN && 2 * known >= self.all
    }

    /// Whether a compiler was at work in half of them. Without samples nothing says otherwise.
    pub fn are_of_building(&self, trace: &Trace) -> bool {
        2 * self.of_building(trace).all >= self.known(trace)
    }

    /// Adds what was seen in other stretches.
    pub fn add(&mut self, other: &StackCounts) {
        for (&stack, &samples) in &other.stacks {
            *self.stacks.entry(stack).or_default() += samples;
        }
        self.all += other.all;
        self.looked += other.looked;
        self.ran += other.ran;
        self.off_ns += other.off_ns;
        for (&stack, &samples) in &other.off {
            *self.off.entry(stack).or_default() += samples;
        }
    }

    /// Adds what was seen in one gap.
    pub fn add_gap(&mut self, gap: &StackCounts) {
        if gap.looked >= OFF_MIN && OFF_CPU * gap.ran < gap.looked {
            self.off_ns += gap.looked;
            for (&stack, &samples) in &gap.stacks {
                *self.off.entry(stack).or_default() += samples;
            }
        }
        self.add(gap);
    }

    /// The part of the time that samples tell of.
    pub fn seen_part(&self) -> f64 {
        1.0 - self.off_ns as f64 / self.looked.max(1) as f64
    }

    /// Samples of stretches in which the thread was at work.
    fn at_times(&self) -> StackCounts {
        let left = |it: (&StackId, &u64)| (*it.0, it.1 - self.off.get(it.0).unwrap_or(&0));
        let stacks: FxHashMap<_, _> = self.stacks.iter().map(left).filter(|it| it.1 > 0).collect();
        StackCounts {
            all: stacks.values().sum(),
            stacks,
            ..StackCounts::default()
        }
    }

    /// Those with such a frame.
    pub fn filtered(&self, trace: &Trace, is_such: impl Fn(&Frame) -> bool) -> StackCounts {
        self.kept(|stack| trace.stacks().frames(stack).any(&is_such))
    }

    /// The line with most samples; `None` without any, or where that is in no file of the program's own.
    pub fn most(&self, trace: &Trace) -> Option<LineShare> {
        // What a line calls is told where it is most of what the line does.
        let mut by: BTreeMap<(String, u32, String), BTreeMap<String, u64>> = BTreeMap::new();
        for (&stack, &samples) in &self.stacks {
            let Key {
                file,
                line,
                function,
                call,
            } = Key::of(trace, stack);
            let calls = by.entry((file, line, function)).or_default();
            *calls.entry(call).or_default() += samples;
        }
        let of_line = |calls: &BTreeMap<String, u64>| calls.values().sum::<u64>();
        let ((file, line, function), calls) = by.into_iter().max_by_key(|it| of_line(&it.1))?;
        let samples = of_line(&calls);
        let call = calls.into_iter().max_by_key(|it| it.1);
        let is_inner = |it: &str| it.rsplit(' ').next().is_none_or(is_wrapper);
        let is_told = |it: &str| !it.is_empty() && !is_inner(it);
        let call = call.filter(|it| is_told(&it.0) && 2 * it.1 > samples);
        // Of native functions the program's own innermost one is told, and not the library's that it calls.
        let below = || tree::deepest(trace, &self.stacks, (&file, line));
        let deepest = (line > 0).then(below).flatten();
        (!file.is_empty()).then(|| LineShare {
            deep: deepest.as_ref().map_or(samples, |it| it.1),
            deepest: deepest.map(|it| it.0),
            place: place(&file, line),
            file,
            line,
            function: printable(&function),
            call: call.map(|it| printable(&it.0)),
            samples,
            of: self.all,
            is_blocked: false,
        })
    }

    /// The same, where it speaks for many stretches: [`LEAST`] samples of it at least, [`MOST`] of all.
    pub fn telling(&self, trace: &Trace) -> Option<LineShare> {
        let Some(most) = self.most(trace).filter(LineShare::is_telling) else {
            return self.around(trace, HALF);
        };
        let half = LEAST.max(self.all.div_ceil(2));
        let within = self.within(trace, (&most.file, most.line), half);
        Some(within.unwrap_or(most))
    }

    /// The same of the CPU's own work. Of a thread that waited for most of it the function is told that holds nearly all samples.
    /// Without one it is a library's that holds half of them.
    pub fn at_work(&self, trace: &Trace) -> Option<LineShare> {
        let ran = self.off_ns == 0 && OFF_CPU * self.ran >= self.looked;
        let of_library = || self.of_library(trace).filter(|_| ran);
        self.in_program(trace).or_else(of_library)
    }

    fn in_program(&self, trace: &Trace) -> Option<LineShare> {
        let is_blocked = OFF_CPU * self.ran < self.looked;
        let around = is_blocked.then(|| self.around(trace, NEARLY_ALL));
        let around = around.flatten().map(|it| LineShare { is_blocked, ..it });
        around.or_else(|| match self.seen_part() {
            _ if is_blocked => None,
            1.0 => self.telling(trace),
            part if part >= MOST => self.at_times().telling(trace),
            _ => None,
        })
    }

    /// Another line of the same function that has a third as many samples: they are too coarse to tell calls of microseconds apart.
    pub fn beside(&self, trace: &Trace, first: &LineShare) -> Option<String> {
        let mut by: BTreeMap<u32, u64> = BTreeMap::new();
        for (&stack, &samples) in &self.stacks {
            let Key { file, line, .. } = Key::of(trace, stack);
            if file == first.file && line != first.line {
                *by.entry(line).or_default() += samples;
            }
        }
        let (line, samples) = by.into_iter().max_by_key(|it| it.1)?;
        let place = || place(&first.file, line);
        (3 * samples >= first.samples).then(place)
    }

    /// Where a line calls a function of the program whose lines hold so many samples together: the one of them that holds most.
    /// A library may lie between.
    fn within(&self, trace: &Trace, caller: (&str, u32), least: u64) -> Option<LineShare> {
        if !caller.0.ends_with(".py") {
            return None;
        }
        let mut by: BTreeMap<(&str, &str), BTreeMap<u32, u64>> = BTreeMap::new();
        for (&stack, &samples) in &self.stacks {
            let frames: Vec<&Frame> = trace.stacks().frames(stack).collect();
            let is_caller = |it: &&Frame| (it.file.as_str(), it.line) == caller;
            let at = frames.iter().position(is_caller).unwrap_or(0);
            let mut inner = frames[..at].iter().rev();
            if let Some(it) = inner.find(|it| is_own(&it.file) && it.line > 0) {
                let lines = by.entry((&it.file, &it.function)).or_default();
                *lines.entry(it.line).or_default() += samples;
            }
        }
        let sum = |lines: &BTreeMap<u32, u64>| lines.values().sum::<u64>();
        let ((file, function), lines) = by.into_iter().max_by_key(|it| sum(&it.1))?;
        let deep = sum(&lines);
        let (line, samples) = lines.into_iter().max_by_key(|it| (it.1, Reverse(it.0)))?;
        (deep >= least).then(|| LineShare {
            place: place(file, line),
            file: file.to_owned(),
            line,
            function: printable(function),
            call: None,
            deepest: None,
            deep,
            samples,
            of: self.all,
            is_blocked: false,
        })
    }

    /// The innermost line of the program that calls what most samples are in, where that is spread over many lines.
    fn around(&self, trace: &Trace, part: f64) -> Option<LineShare> {
        let mut by: BTreeMap<(&str, u32, &str), Caller<'_>> = BTreeMap::new();
        // What a line does beside its calls.
        let mut own: BTreeMap<(&str, u32, &str), u64> = BTreeMap::new();
        for (&stack, &samples) in &self.stacks {
            let frames: Vec<&Frame> = trace.stacks().frames(stack).collect();
            if let Some(it) = frames.first().filter(|it| it.line > 0) {
                *own.entry((&it.file, it.line, "")).or_default() += samples;
            }
            let mut met: FxHashSet<(&str, u32, &str)> = FxHashSet::default();
            let callers = frames.windows(2).enumerate();
            for (depth, two) in callers.filter(|it| is_own(&it.1[1].file)) {
                let function = if two[1].line == 0 {
                    &two[1].function
                } else {
                    ""
                };
                let key = (two[1].file.as_str(), two[1].line, function);
                if met.insert(key) {
                    let of = by.entry(key).or_insert((0, depth, two[1], two[0]));
                    (of.0, of.1) = (of.0 + samples, of.1.min(depth));
                }
            }
        }
        // What holds fewer samples lies further in.
        let least = LEAST.max((part * self.all as f64).ceil() as u64);
        let all = by.into_iter().map(|(key, it)| {
            let alone = own.get(&key).copied().unwrap_or(0);
            (it.0 + alone, it.1, it.2, it.3)
        });
        let most = all.filter(|it| it.0 >= least);
        let (samples, _, own, call) = most.min_by_key(|it| (it.0, it.1))?;
        if let Some(within) = self.within(trace, (&own.file, own.line), least) {
            return Some(within);
        }
        let called = format!("{} {}", short_file(&call.file), call.function);
        Some(LineShare {
            place: place(&own.file, own.line),
            file: own.file.clone(),
            line: own.line,
            function: printable(&own.function),
            call: Some(printable(&called)),
            deepest: None,
            deep: samples,
            samples,
            of: self.all,
            is_blocked: false,
        })
    }
}

impl LineShare {
    /// Whether it speaks for all the stretches in which it was seen.
    pub fn is_telling(&self) -> bool {
        self.samples >= LEAST && self.samples as f64 >= MOST * self.of as f64
    }

    /// Whether it is a function of a program without Python, of which no line is known.
    pub fn is_native(&self) -> bool {
        self.line == 0 && !self.file.ends_with(".py") && !self.file.starts_with('<')
    }

    /// Who is to blame: "DataLoader at train.py:19", "load at train.py:19", "train.py:19". Of what is called below the line the
    /// deepest that is no wrapper is told, else the function that the line is in.
    pub fn culprit(&self) -> String {
        let is_loader = |it: &String| it.starts_with("torch/utils/data/dataloader.py");
        let deepest = self.deepest.as_ref().and_then(|it| it.rsplit(' ').next());
        let of = match self.call.as_ref().is_some_and(is_loader) {
            true => "DataLoader",
            false => deepest.unwrap_or(&self.function),
        };
        match tree::is_inner(of) {
            _ if of.starts_with(tree::IMPORT) => {
                let module = &of[tree::IMPORT.len()..];
                format!("the import of {module} at {}", self.place)
            }
            _ if self.is_native() => format!("{of} in {}", self.place),
            true => self.place.clone(),
            false => format!("{of} at {}", self.place),
        }
    }

    /// What the line itself calls, where its name tells something: "savez at train.py:19".
    pub fn called(&self) -> Option<String> {
        let called = self.call.as_ref()?.rsplit(' ').next()?;
        (!tree::is_inner(called)).then(|| format!("{called} at {}", self.place))
    }

    /// Whether it starts or ends the processes of a DataLoader: an iterator of such makes them anew.
    pub fn starts_workers(&self) -> bool {
        let is_its = |it: &String| {
            let name = it.rsplit(['.', ' ']).next().unwrap_or_default();
            let is_loader = it.contains("dataloader.py");
            is_loader && ["__iter__", "__init__", "_shutdown_workers"].contains(&name)
        };
        self.call.iter().chain(&self.deepest).any(is_its)
    }

    /// "train.py:19 > torch/utils/data/dataloader.py __next__".
    pub fn at(&self) -> String {
        match &self.call {
            Some(call) => format!("{} > {call}", self.place),
            None => self.place.clone(),
        }
    }

    /// "238 of 282 stack samples saw the CPU in load at train.py:19": whom it names holds so many. `of` says which samples.
    pub fn seen(&self, of: &str) -> String {
        let culprit = self.culprit();
        let (at, samples) = match culprit == self.place {
            true => ("at", self.samples),
            false => ("in", self.deep),
        };
        let all = counted(self.of, "stack sample", "stack samples");
        if self.is_blocked {
            return format!("{all}, few for that time, saw the CPU in {culprit}: mostly it waited");
        }
        format!("{} of {all}{of} saw the CPU {at} {culprit}", count(samples))
    }
}

/// "train.py:19"; of a native function the program that it is in.
fn place(file: &str, line: u32) -> String {
    printable(&match line {
        0 => short_file(file).to_owned(),
        line => format!("{}:{line}", short_file(file)),
    })
}

/// The thread whose lines tell what this one does: itself where it was seen in Python, else the main one. (PyTorch's
/// backward pass launches from a thread without Python while the main one waits for it in a line of the program.)
pub fn main_of(trace: &Trace, process: usize, thread: u32) -> u32 {
    let it = &trace.processes()[process];
    if it.sampled.has(thread) {
        thread
    } else {
        it.info.pid
    }
}

/// Files of Python through which a program waits for its own workers.
const WORKERS: [&str; 3] = ["multiprocessing/", "concurrent/futures/", "torch/"];

/// Whether a function waits for what others put there.
fn is_wait(frame: &Frame) -> bool {
    ["selectors.py", "socket.py", "queue.py"].contains(&short_file(&frame.file))
}

/// Whether a stack is at a line of the program itself, as one is that sleeps, or where it waits for somebody from outside.
fn may_sleep(trace: &Trace, stack: StackId) -> bool {
    let stacks = trace.stacks();
    let called = || stacks.frames(stack).take_while(|it| !is_own(&it.file));
    let files = || called().map(|it| short_file(&it.file));
    let is_its = |it: &str| WORKERS.iter().any(|of| it.starts_with(of));
    let own = stacks.own_line(stack);
    let is_at = own.is_some_and(|(_, call)| call.is_none_or(is_wait));
    let innermost = stacks.frames(stack).next();
    !files().any(is_its) && (is_at || own.is_some() && innermost.is_some_and(is_wait))
}

/// Adds the samples of a thread within a stretch in which it slept or waited for somebody from outside. No other thread of
/// the program worked for it then. Returns how many there are in all.
pub fn add_quiet(
    trace: &Trace,
    (process, thread, span): (usize, u32, Span),
    quiet: &mut StackCounts,
) -> u64 {
    let it = &trace.processes()[process];
    if it.sampled.is_empty() {
        return 0;
    }
    let main = main_of(trace, process, thread);
    let works = working(trace, process, main, span).is_some();
    let mut all = 0;
    for sample in it.sampled.within(main, span) {
        all += 1;
        if !sample.is_running && !works && may_sleep(trace, sample.stack) {
            *quiet.stacks.entry(sample.stack).or_default() += 1;
            quiet.all += 1;
        }
    }
    all
}

/// So many threads are looked through for one that works, at each gap.
const THREADS_MAX: usize = 64;

/// Whether another thread of a process worked in a stretch in which this one, or the main one for it, waited.
pub fn works_beside(trace: &Trace, (process, thread): (usize, u32), span: Span) -> bool {
    working(trace, process, main_of(trace, process, thread), span).is_some()
}

/// Whether another thread of a process runs in such a function at a third of the looks in a stretch.
pub fn runs_beside(
    trace: &Trace,
    (process, thread): (usize, u32),
    span: Span,
    is_such: impl Fn(&Frame) -> bool,
) -> bool {
    let (sampled, waits) = (
        &trace.processes()[process].sampled,
        main_of(trace, process, thread),
    );
    let all = sampled.within(waits, span).count();
    let runs = |it| {
        let looks = sampled.within(it, span).filter(|it| it.is_running);
        let looks = looks.filter(|it| trace.stacks().frames(it.stack).any(&is_such));
        3 * looks.count() >= all.max(1)
    };
    let threads = sampled.busiest(THREADS_MAX).into_iter();
    threads.filter(|it| *it != waits).any(runs)
}

/// Whether a stack ends in a wait of Python's own for another thread, or for somebody from outside.
fn waits_for_another(trace: &Trace, stack: StackId) -> bool {
    let innermost = trace.stacks().frames(stack).next();
    innermost.is_some_and(|it| is_wait(it) || short_file(&it.file) == "threading.py")
}

/// Another thread that is in the program's own code for most of a stretch in which this one waits, such as a callback's.
/// What threads are in at all times is no such work.
fn working(trace: &Trace, process: usize, waits: u32, span: Span) -> Option<u32> {
    let sampled = &trace.processes()[process].sampled;
    if !sampled.has_look(span) || sampled.within(waits, span).any(|it| it.is_running) {
        return None;
    }
    let all = sampled.within(waits, span).count();
    let is_own =
        |stack| trace.stacks().own_line(stack).is_some() && !waits_for_another(trace, stack);
    let runs = |it| sampled.within(it, span).any(|it| it.is_running);
    let threads = sampled.busiest(THREADS_MAX).into_iter();
    let others = threads.filter(|&it| it != waits);
    others
        .filter(|&it| {
            2 * sampled
                .within(it, span)
                .filter(|it| is_own(it.stack))
                .count()
                > all
        })
        .find(|&it| sampled.is_there_at_times(it) || runs(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(samples: u64, of: u64) -> LineShare {
        LineShare {
            place: "train.py:19".to_owned(),
            file: String::new(),
            line: 19,
            function: "main".to_owned(),
            call: Some("queue.py get".to_owned()),
            deepest: None,
            deep: samples,
            samples,
            of,
            is_blocked: false,
        }
    }

    #[test]
    fn few_samples_and_small_shares_speak_for_nothing() {
        for (samples, of, expected) in [
            (1, 1, false),
            (2, 2, false),
            (3, 3, true),
            (4, 10, true),
            (39, 100, false),
        ] {
            assert_eq!(told(samples, of).is_telling(), expected, "{samples}/{of}");
        }
        assert_eq!(
            told(50, 100).seen(""),
            "50 of 100 stack samples saw the CPU in main at train.py:19"
        );
    }
}
