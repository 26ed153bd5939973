//! What a thread works on in a long stretch of its own, in words.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{LEAST, LineShare, OFF_CPU, SAMPLES_MIN, StackCounts, place, tree};
use activity::anonymous::is_own;
use activity::text::printable;
use activity::units::percent;
use activity::{Frame, StackId};
use trace::Trace;
use trace::samples::short_file;

/// Where no function holds most of it, two are told that hold this part each.
const QUARTER: f64 = 0.25;

/// So many functions in, what one is at is told by.
const INNER: usize = 6;

/// Libraries that write files, by what names of their functions begin with.
const WRITERS: [(&str, &str); 9] = [
    ("ncmpi", "PnetCDF"),
    ("put_var", "PnetCDF"),
    ("PMPI_File_", "MPI-IO"),
    ("MPI_File_", "MPI-IO"),
    ("nc_put_", "NetCDF"),
    ("NC_put_", "NetCDF"),
    ("H5Dwrite", "HDF5"),
    ("H5Fflush", "HDF5"),
    ("adios2", "ADIOS"),
];

/// Runtimes that stage copies of their own, by their files.
const RUNTIMES: [&str; 5] = ["libnvc", "libnvomp", "libacc", "libomptarget", "libgomp"];

fn has(it: &Frame, parts: &[&str]) -> bool {
    let names = format!("{} {}", it.file, it.function).to_lowercase();
    parts.iter().any(|part| names.contains(part))
}

/// Whether a frame is a compiler's, by the names of function and file. vLLM calls what it compiled from a folder of that name.
fn builds(it: &Frame) -> bool {
    const COMPILERS: [&str; 7] = [
        "compil",
        "nvrtc",
        "ptxas",
        "codegen",
        "llvm",
        "nvjitlink",
        "nvvm",
    ];
    has(it, &COMPILERS) && !it.file.contains("vllm/compilation")
}

impl StackCounts {
    /// Whether most of them saw a runtime of OpenMP or OpenACC move bytes, and they are enough to tell.
    pub(crate) fn are_of_staging(&self, trace: &Trace) -> bool {
        let moves = |it: &Frame| has(it, &["memcpy", "memmove", "mcopy"]);
        let is_runtimes = |it: &Frame| RUNTIMES.iter().any(|of| it.file.contains(of));
        let staged = self.kept(|stack| {
            let mut frames = trace.stacks().frames(stack);
            let is_runtime = trace.stacks().frames(stack).any(is_runtimes);
            frames.next().is_some_and(moves) && is_runtime
        });
        self.all >= SAMPLES_MIN && 2 * staged.all > self.all
    }

    /// The function of a library that half of them are in, where none of the program's own holds as many.
    pub(super) fn of_library(&self, trace: &Trace) -> Option<LineShare> {
        let mut by: FxHashMap<&Frame, u64> = FxHashMap::default();
        for (&stack, &samples) in &self.stacks {
            let inner = trace.stacks().frames(stack).next();
            if let Some(inner) = inner.filter(|it| it.line == 0 && it.file.starts_with("<lib")) {
                *by.entry(inner).or_default() += samples;
            }
        }
        let (inner, samples) = by.into_iter().max_by_key(|it| (it.1, &it.0.function))?;
        let file = inner.file.trim_matches(['<', '>']).to_owned();
        let is_told = self.all >= SAMPLES_MIN && 2 * samples >= self.all;
        is_told.then(|| LineShare {
            place: place(&file, 0),
            file,
            line: 0,
            function: printable(&inner.function),
            call: None,
            deepest: None,
            deep: samples,
            samples,
            of: self.all,
            is_blocked: false,
        })
    }

    /// Those in which a compiler was at work. Looking for what was built, and importing the compiler, is no such work.
    pub(super) fn of_building(&self, trace: &Trace) -> StackCounts {
        let looks = |it: &Frame| has(it, &["importlib", "triton_key", "cache_key"]);
        let is_one = |stack: StackId| {
            let mut frames = trace.stacks().frames(stack);
            let inner = trace.stacks().frames(stack).take(INNER);
            frames.any(builds) && !inner.into_iter().any(looks)
        };
        self.kept(is_one)
    }

    /// The library that writes files in most samples, by the outermost frame that names one: stacks may be cut before the program's own.
    pub fn output(&self, trace: &Trace) -> Option<&'static str> {
        let writer = |it: &Frame| WRITERS.iter().find(|of| it.function.starts_with(of.0));
        let mut by: FxHashMap<&str, u64> = FxHashMap::default();
        for (&stack, &samples) in &self.stacks {
            let named = trace.stacks().frames(stack).filter_map(writer);
            if let Some((_, library)) = named.last() {
                *by.entry(library).or_default() += samples;
            }
        }
        let written: u64 = by.values().sum();
        let most = by.into_iter().max_by_key(|it| (it.1, it.0))?;
        (written >= LEAST && 2 * written > self.all).then_some(most.0)
    }

    /// Whether most are in a DataLoader that loads in the process that launches.
    pub fn load_alone(&self, trace: &Trace) -> bool {
        let is_its = |it: &Frame| {
            it.file.ends_with("dataloader.py")
                && it.function.starts_with("_SingleProcessDataLoaderIter")
        };
        2 * self.filtered(trace, is_its).all > self.all
    }

    /// What half of them are known by: the program's innermost frame, in the line's function, and what that calls, innermost first. Half of
    /// those at the line have to be. Beside it, in how many lines they are, and how many.
    pub fn known_at<K: Copy + Eq + Hash>(
        &self,
        trace: &Trace,
        line: &LineShare,
        known: impl Fn(&Frame, &[&Frame]) -> Option<K>,
    ) -> Option<(K, usize, u64)> {
        let mut by: FxHashMap<K, (u64, u64, FxHashSet<u32>)> = FxHashMap::default();
        for (&stack, &samples) in &self.stacks {
            let frames: Vec<&Frame> = trace.stacks().frames(stack).collect();
            let is_native = line.line == 0;
            let is_own = |it: &&Frame| it.line > 0 && is_own(&it.file);
            let is_its = |it: &&Frame| it.function == line.function;
            let own = frames
                .iter()
                .position(|it| if is_native { is_its(it) } else { is_own(it) });
            let Some(at) = own else { continue };
            let is_at = |it: &&Frame| it.line == line.line && it.file == line.file;
            let is_there = is_native || frames[at..].iter().any(is_at);
            let inner = &frames[..at + usize::from(is_native)];
            if let Some(known) =
                known(frames[at], inner).filter(|_| is_there || is_its(&frames[at]))
            {
                let of = by.entry(known).or_default();
                of.0 += samples;
                of.1 += u64::from(is_there) * samples;
                of.2.insert(frames[at].line);
            }
        }
        let most = by.into_iter().max_by_key(|it| it.1.0)?;
        let (known, (all, there, lines)) = most;
        let is_most =
            all >= LEAST && 2 * all >= self.all && 2 * there >= line.samples.min(self.all);
        is_most.then_some((known, lines.len(), all))
    }

    /// "98 % of it in libnvrtc: compiling", "82 % of it in rand, called by main in add_gpu": what holds most of the stretches. Or two that
    /// hold a quarter each.
    pub fn work(&self, trace: &Trace) -> Option<String> {
        if self.all < SAMPLES_MIN {
            return None;
        }
        let built = self.of_building(trace);
        if 2 * built.all >= self.all {
            let name = built.compiler(trace)?;
            return Some(format!(
                "{} of it in {name}: compiling",
                self.part(built.all)
            ));
        }
        if let Some(line) = self.in_program(trace) {
            return Some(match line.is_blocked {
                true => format!("most of it blocked in {}", line.culprit()),
                false => format!("{} of it in {}", self.part(line.samples), line.with_call()),
            });
        }
        let first = self
            .around(trace, QUARTER)
            .filter(|_| OFF_CPU * self.ran >= self.looked)?;
        let rest = self.kept(|stack| !first.is_in(trace, stack));
        let least = QUARTER * self.all as f64 / rest.all.max(1) as f64;
        let told = |it: &LineShare| format!("{} of it in {}", self.part(it.samples), it.culprit());
        let second = (least <= 1.0).then(|| rest.around(trace, least)).flatten();
        let second = second.map_or_else(String::new, |it| format!(", {}", told(&it)));
        Some(told(&first) + &second)
    }

    /// The part of the stretches that so many samples stand for: time off the processor is none of theirs.
    fn part(&self, samples: u64) -> String {
        let seen = match self.looked {
            0 => 1.0,
            looked => (self.ran as f64 / looked as f64).min(1.0),
        };
        percent(seen * samples as f64 / self.all.max(1) as f64)
    }

    /// The library or file whose compiler most of them saw.
    fn compiler(&self, trace: &Trace) -> Option<String> {
        let mut by: FxHashMap<&str, u64> = FxHashMap::default();
        for (&stack, &samples) in &self.stacks {
            if let Some(it) = trace.stacks().frames(stack).find(|it| builds(it)) {
                *by.entry(&it.file).or_default() += samples;
            }
        }
        let (file, _) = by.into_iter().max_by_key(|it| (it.1, it.0))?;
        let name = short_file(file.trim_matches(['<', '>']));
        Some(name.split(".so").next().unwrap_or(name).to_owned())
    }

    /// Those of such stacks, of the same stretches.
    pub(super) fn kept(&self, is_such: impl Fn(StackId) -> bool) -> StackCounts {
        let stacks = self.stacks.iter().filter(|it| is_such(*it.0));
        let stacks: FxHashMap<StackId, u64> = stacks.map(|(&id, &n)| (id, n)).collect();
        StackCounts {
            all: stacks.values().sum(),
            stacks,
            ..StackCounts::default()
        }
    }
}

impl LineShare {
    /// Whether a stack leads through it.
    fn is_in(&self, trace: &Trace, stack: StackId) -> bool {
        let mut frames = trace.stacks().frames(stack);
        frames.any(|it| {
            it.file == self.file
                && it.line == self.line
                && (self.line > 0 || it.function == self.function)
        })
    }

    /// The culprit, of a native function with what it calls: "rand, called by main in add_gpu".
    fn with_call(&self) -> String {
        let called = self.call.as_ref().and_then(|it| it.rsplit(' ').next());
        match called.filter(|it| self.is_native() && !tree::is_inner(it)) {
            Some(called) => format!("{called}, called by {}", self.culprit()),
            None => self.culprit(),
        }
    }
}
