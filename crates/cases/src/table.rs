//! The table itself.

use crate::{Count, Exception, Ns, Row, Times};

macro_rules! table {
    ($($rule:literal {
        $($(#[doc = $line:literal])+
        $name:ident: $kind:ident $(= $number:literal or $without:expr)? => [$($input:literal),*];)+
    })+) => {
        #[allow(non_camel_case_types, reason = "they are the names of the rows")]
        enum Place { $($($name,)+)+ }

        $($($(#[doc = $line])+
        pub const $name: $kind = $kind::new(Place::$name as usize, $($number, $without)?);)+)+

        /// All rows, by rule.
        pub const ROWS: &[Row] = &[$($(Row {
            rule: $rule,
            name: stringify!($name),
            number: stringify!($($number)?),
            unit: stringify!($kind),
            recognises: &[$($line),+],
            inputs: &[$($input),*],
        },)+)+];
    };
}

// A number stands beside what takes its place where the row is out: one that every value reaches, or none.
table! {
    "first use" {
        /// A call that takes less is no cold start. Measured: what the profiler itself loads on its first use takes 0.2 to
        /// 0.3 ms.
        COLD_MIN: Ns = 100_000 or 0 => [];
        /// Something that happens once held up a call that took so many times the median of its function's calls. First
        /// launches of cold processes took 6.5 ms to 4 s beside 5 to 15 us, allocations 560 ms beside 3.
        OUTLIER: Times = 10 or 1 => [];
        /// So many calls of a function at least tell what one takes.
        CALLS_MIN: Count = 4 or 1 => [];
        /// Of fewer calls those before the quickest are slow first ones from this on, and so are operators. Contexts take
        /// 50 ms and more. The caches that a first call of Python code fills take a few hundred microseconds.
        FEW_MIN: Ns = 10_000_000 or 0 => [];
        /// A launch that failed does not load less when it is tried again, so that it tells nothing of a launch's time.
        FAILED_LAUNCH: Exception => [];
        /// Where most launches load code, only the others tell what a launch takes.
        FIRST_LAUNCHES: Exception => [];
        /// With nothing to hold a first launch against, it is slow from 0.1 ms on: loading code takes longer than any launch.
        LAUNCH_ALONE: Exception => [];
        /// What locks pages takes as long as they are many, so that its first call is no cold one.
        LOCKS_PAGES: Exception => [];
        /// The only call of a function is a slow one where it is its process's first that is no quick question: it makes
        /// the context.
        OPENING_CALL: Exception => [];
        /// Up to three slow calls of a function are cold ones, too, before the last slow first one has ended.
        COLD_MEANWHILE: Exception => [];
        /// So are those before the first launch: what precedes all kernels has not begun to work.
        BEFORE_LAUNCHES: Exception => [];
        /// A profiler of PyTorch begins later than the process, so that a slow first copy does not make the context.
        BEGINS_LATE: Exception => [];
        /// PyTorch's profiler starts in the first launch that it sees. Where that is the only slow one, nothing was loaded.
        PROFILER_STARTS: Exception => [];
        /// Libraries build a kernel between a launch or wait and its first launch, where a tenth of that time loads code.
        BUILDS: Exception => [];
        /// A kernel is compiled at run time by its name, as torch.compile, nvFuser, CuPy, Julia, Numba and TorchScript
        /// give them.
        COMPILED_NAME: Exception => [];
        /// A kernel is compiled before its first launch where ranges named like compiling hold half of the time.
        COMPILING: Exception => [];
        /// What is called compiled runs: such a range compiles nothing.
        COMPILED_RUNS: Exception => [];
        /// A wait for another process before code is loaded is one for a compiler.
        WAITS_FOR_COMPILER: Exception => [];
        /// A kernel that waits as long when it is launched again was not built before its first launch.
        WAITS_AGAIN: Exception => [];
        /// Where no kernel is launched again, nothing shows that what loads before them builds them.
        NEVER_AGAIN: Exception => [];
        /// In operators of cuDNN and MIOpen an event is waited for only while they try what is fastest, once for a shape.
        SEARCH: Exception => [];
        /// Nsight Systems has calls of the operating system among ranges: how long they block says nothing of a first one.
        SYSTEM_CALLS: Exception => [];
        /// A profiler that begins with a later step than the first shows no first calls.
        LATER_STEP: Exception => [];
    }
}
