//! The table itself.

use crate::{Count, Exception, Ns, Row, Share, Times};

macro_rules! table {
    ($($rule:literal {
        $($(#[doc = $line:literal])+
        $name:ident: $kind:ident $(= $number:literal or $without:expr)? => [$($input:literal),*];)+
    })+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "rows have the names of constants")]
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
        COLD_MIN: Ns = 100_000 or 0 => ["events", "kernel_of_triton"];
        /// A call was held up where it took so many times its function's median. First
        /// launches of cold processes took 6.5 ms to 4 s beside 5 to 15 us, allocations 560 ms beside 3.
        OUTLIER: Times = 10 or 1 => ["kernels_that_are_built"];
        /// So many calls tell what one takes.
        CALLS_MIN: Count = 4 or 1 => ["recorded_pipeline", "frees_that_start_a_library"];
        /// The first of fewer calls, and a first operator, are slow from this time on. Contexts take 50 ms and more. The
        /// caches that a first call of Python code fills take a few hundred microseconds.
        FEW_MIN: Ns = 10_000_000 or 0 => ["copies", "frees_of_a_few_milliseconds"];
        /// An allocation before the last slow first call's end is cold from this time on.
        COLD_ALLOCATION: Ns = 1_000_000 or 10_000_000 => ["allocation_between_first_launches"];
        /// Up to four copies and kernels in less than 0.1 ms are too little to judge.
        FEW_OPERATIONS: Exception => ["one_kernel_and_its_copies"];
        /// A question for what fits on an SM takes microseconds: a slow one starts a library.
        SLOW_QUESTION: Exception => ["slow_question"];
        /// A library that starts asks the driver where so many functions are.
        STARTS_LIBRARY: Count = 100 or usize::MAX => ["library_that_starts"];
        /// A library that starts is not without calls for 0.1 s once it has asked: the program works on.
        WORKS_ON: Exception => ["library_that_starts_before_work"];
        /// A launch that failed does not load less when it is tried again, so that it tells nothing of a launch's time.
        FAILED_LAUNCH: Exception => ["launches_that_fail"];
        /// Where most launches load code, only the others tell what a launch takes.
        FIRST_LAUNCHES: Exception => ["mostly_first_launches"];
        /// With nothing to hold a first launch against, it is slow from 0.1 ms on: loading code takes longer than any launch.
        LAUNCH_ALONE: Exception => ["kernels_launched_once"];
        /// A call that locks pages takes as long as they are many, so that a slow first one is no cold start.
        LOCKS_PAGES: Exception => ["pages_that_are_locked"];
        /// The only call of a function is a slow one where it is its process's first that is no quick question: it makes
        /// the context.
        OPENING_CALL: Exception => ["call_that_opens"];
        /// So does an allocation behind quick questions, which need none: no memory takes 10 ms to be had.
        ONE_ALLOCATION: Exception => ["allocation_behind_a_question"];
        /// Up to three slow calls of a function are cold ones, too, before the last slow first one has ended.
        COLD_MEANWHILE: Exception => ["frees_before_the_first_kernel"];
        /// Up to three slow calls before the first launch are cold ones: the program has not begun to work.
        BEFORE_LAUNCHES: Exception => ["frees_before_the_first_kernel"];
        /// A profiler of PyTorch begins later than the process, so that a slow first copy does not make the context.
        BEGINS_LATE: Exception => ["copy_that_opens_for_kineto"];
        /// PyTorch's profiler starts in the first launch that it sees, so that one which alone is slow loaded nothing.
        PROFILER_STARTS: Exception => ["profiler_that_starts"];
        /// Libraries build a kernel between a launch or wait and its first launch, where a tenth of that time loads code.
        BUILDS: Exception => ["kernels_that_are_built"];
        /// What loads code for less may find it compiled, so that nothing says that it was built.
        QUICKLY_LOADED: Exception => ["kernels_that_are_built"];
        /// A process that launched, copied or waited has its context: no call makes it any more.
        HAS_CONTEXT: Exception => ["copy_behind_a_pools_memory"];
        /// A kernel is compiled at run time by its name, as torch.compile, nvFuser, CuPy, Julia, Numba and TorchScript
        /// give them.
        COMPILED_NAME: Exception => ["kernel_of_triton"];
        /// A kernel is compiled before its first launch where ranges named like compiling hold half of the time.
        COMPILING: Exception => ["range_that_compiles"];
        /// A range that is named after compiled code runs it, and compiles nothing.
        COMPILED_RUNS: Exception => ["range_of_what_was_compiled"];
        /// A kernel whose code is loaded before a later launch, behind a time without calls, is compiled anew.
        COMPILED_ANEW: Exception => ["kernel_that_is_compiled_in_each_step"];
        /// A wait for another process before code is loaded is one for a compiler.
        WAITS_FOR_COMPILER: Exception => ["wait_for_a_compiler"];
        /// So is one whose copy comes behind such a wait, where something was linked last of all.
        LINKED_BEFORE_COPY: Exception => ["copy_behind_a_linker"];
        /// A kernel that waits as long when it is launched again was not built before its first launch.
        WAITS_AGAIN: Exception => ["kernels_that_wait_again"];
        /// Where no kernel is launched again, nothing shows that what loads before them builds them.
        NEVER_AGAIN: Exception => ["kernels_that_are_built_and_never_launched_again"];
        /// In operators of cuDNN and MIOpen an event is waited for only while they try what is fastest, once for a shape.
        SEARCH: Exception => ["search"];
        /// Nsight Systems has calls of the operating system among ranges: how long they block says nothing of a first one.
        SYSTEM_CALLS: Exception => ["system_call_that_blocks"];
        /// A profiler that begins with a later step than the first shows no first calls.
        LATER_STEP: Exception => ["profiler_of_a_later_step"];
    }
    "causes" {
        /// The CPU's work in a short gap is launching only within a dense sequence of launches. It takes up to ten times what
        /// lies between two of them at the median there, and 0.1 ms in any case.
        SPARSE_WORK: Exception => ["work_between_small_copies"];
        /// A range around nearly all that ran names the run, and nobody in it.
        AROUND_ALL: Exception => ["range_around_the_run"];
        /// Fewer late starts than tell a turn of another process tell one where all gaps are of the driver's own length, and equal.
        EQUAL_TURNS: Exception => ["two_turns_of_another_process"];
    }
    "steps" {
        /// At least so many steps are steps. With two the second could be the end of the first.
        STEPS_MIN: Count = 3 or 2 => ["two_ranges"];
        /// Where a profiler marks them, two are steps.
        TWO_MARKED: Exception => ["two_steps_of_a_profiler"];
        /// So are two ranges that are called steps, or by another word for iterations.
        TWO_ITERATIONS: Exception => ["two_iterations"];
        /// Fewer whole steps have no later half, and only the first may be warm-up.
        FEW_STEPS: Count = 5 or 0 => ["three_steps_of_which_the_first_is_slow"];
        /// Of few steps the first is warm-up where it takes so many times the median of the others.
        WARM_UP_OF_FEW: Share = 1.5 or 0.0 => ["three_steps_of_which_the_first_is_slow"];
        /// Leading steps are warm-up where they exceed the later half's median by this part and by four deviations.
        WARM_UP_SHARE: Share = 0.1 or 0.0 => ["steps_that_warm_up_a_little"];
        /// So many even steps show a timer's rhythm.
        PACED_MIN: Count = 20 or 1 => ["fifteen_frames"];
    }
    "steps by ranges" {
        /// Ranges are steps where the calls in them caused this part of the process's operations.
        RANGES_SHARE: Share = 0.5 or 0.0 => ["ranges_beside_other_work"];
        /// Repeats of a scenario that begin again are a sweep: its points are no steps of one thing.
        SWEEP: Exception => ["sweep"];
        /// A library's own ranges, such as PyTorch's `aten::add`, are no steps of the program.
        LIBRARYS_RANGE: Exception => ["copies"];
        /// Ranges of a thread that launches less than a quarter of what another one with ranges does are no steps.
        OTHER_THREAD: Exception => ["ranges_of_a_loader"];
        /// Ranges that share time are no steps.
        OVERLAPPING_RANGES: Exception => ["ranges_that_overlap"];
        /// Ranges named like warm-up are no steps of what comes behind them, and what lies in them is none.
        WARM_UP_NAME: Exception => ["warm_up_before_steps"];
        /// Nsight Systems has calls of the operating system among ranges: a poll every 100 ms is no step.
        SYSTEM_POLLS: Exception => ["polls_of_the_system"];
        /// PyTorch's modules ("nn.Module: Block_3") are the parts of a network, and no steps.
        MODULES: Exception => ["modules"];
        /// A name with a number behind a dot ("blocks.9.norm") is a path to a module, and no step.
        MODULE_PATH: Exception => ["paths_of_modules"];
        /// A name with a word for iterations before the dot ("step.9") is a step all the same.
        STEP_IN_PATH: Exception => ["steps_in_a_path"];
        /// Layers by that word are the parts of a network, and no steps.
        LAYERS: Exception => ["layers"];
        /// A name with the word player names no layer.
        PLAYERS: Exception => ["players"];
        /// Where one pass over the parts of a network is half of the work, nothing that repeats in it is a step.
        PASS_OVER_LAYERS: Exception => ["pass_over_layers"];
        /// Where ranges of one name hold many operations and few by turns, a pair of them is the step.
        BY_TURNS: Exception => ["ranges_by_turns"];
        /// A range holds the whole step where it caused this part of the usual operations.
        WHOLE_SHARE: Share = 0.8 or 0.0 => ["ranges_around_half_a_step"];
        /// Where ranges hold a part of each step only, the operations may say where a step begins.
        PART_OF_STEP: Exception => ["ranges_around_half_a_step"];
        /// Ranges of one name but for its numbers, whose deviation exceeds their median, are different parts of a program.
        UNEVEN_RANGES: Exception => ["ranges_of_all_lengths"];
        /// Ranges of one name are different parts of a program where no kernel runs in half of them.
        VARIANTS: Exception => ["ranges_of_variants"];
        /// Ranges that only enqueue mark no steps, where half of what they caused runs later than all of them.
        WORK_IS_LATER: Exception => ["ranges_that_only_enqueue"];
        /// One steady step in less than half of the steps' time, or two of which one is odd beside the other, stand for no other.
        FEW_STEADY: Exception => ["one_steady_step_of_three"];
    }
    "steps by operations" {
        /// Pages that the driver moves by itself, one here and there, are in no program's loop.
        DRIVERS_MOVES: Exception => ["pages_of_managed_memory"];
        /// Two pieces are alike where they share this part of their operations.
        ALIKE_SHARE: Share = 0.8 or 0.0 => ["event_later"];
        /// This part of the operations lies in alike pieces, first to last.
        PURE_SHARE: Share = 0.8 or 0.0 => ["other_pieces_between"];
        /// This part of all operations lies in alike pieces, where the pieces are few.
        COVERED_SHARE: Share = 0.9 or 0.0 => ["layers_between_other_work"];
        /// Pieces are many from this number on.
        MANY_PIECES: Count = 8 or usize::MAX => ["many_steps_behind_other_work"];
        /// The same, where they are many.
        COVERED_SHARE_OF_MANY: Share = 0.5 or 0.0 => ["many_pieces_in_little_of_all"];
        /// A piece that comes again must do so over this many operations: two equal kernels are no period.
        REPEATED_MIN: Count = 12 or 1 => ["five_equal_kernels"];
        /// Pieces of which less than a quarter are exactly equal are no steps.
        NEVER_EQUAL: Exception => ["steps_of_which_two_are_equal"];
        /// A piece that brings its own data to the GPU is an iteration, and no larger one is looked for. Ten steps with one
        /// log line are ten steps.
        BRINGS_DATA: Exception => ["fed_steps_and_a_line_of_log"];
        /// A piece whose launches two threads take by turns is one, too, where the larger one holds next to nothing beside such.
        TURNS_OF_THREADS: Exception => ["steps_of_two_threads_and_a_line_of_log"];
        /// Pieces in which the same operations begin in the same order are steps, however often each comes.
        OTHER_COUNTS: Exception => ["pieces_cut_at_random"];
        /// Equal pieces of so many kinds of operations are steps however uneven.
        MANY_OPERATIONS: Count = 16 or usize::MAX => ["steps_that_wait_at_times"];
        /// Of one operation again and again what lies between two waits of the CPU is a step.
        BETWEEN_WAITS: Exception => ["one_operation_between_waits"];
        /// A few pieces with all of the common one and more are alike, too: steps in which more was done.
        MORE_IN_PIECE: Exception => ["every_tenth_step_does_more"];
        /// Where odd pieces between alike ones come regularly themselves, the larger unit with both is the step.
        REGULAR_BETWEEN: Exception => ["odd_steps_between"];
        /// A kernel takes much of the steps from this part of their kernel time on.
        MAIN_KERNEL: Share = 0.2 or 2.0 => ["loops_that_follow_each_other"];
        /// A kernel that takes much runs in this part of the steps: else one loop follows another.
        KEPT_KERNEL: Share = 0.75 or 0.0 => ["loops_that_follow_each_other"];
        /// Pieces that hold less of the time of kernels are set-up, unless they hold half of the time of all operations.
        LEAST_SHARE: Share = 0.1 or 0.0 => ["copies_behind_the_work"];
        /// Pieces of which each copies more than the one before are the sizes of a sweep.
        SWEEP_OF_SIZES: Exception => ["pieces_that_copy_more_and_more"];
        /// Pieces are rounds within a step where long ones hold most kernel time, in other kernels.
        ROUNDS_WITHIN: Exception => ["rounds_behind_a_model"];
        /// Pieces whose deviation exceeds their median are no steps.
        UNEVEN_PERIOD: Exception => ["pieces_of_all_lengths"];
    }
    "steps that speak for the program" {
        /// One operation again and again is a part of a program, unless the CPU waits or works before each, or launches a graph.
        ONE_OPERATION: Exception => ["one_operation_again_and_again"];
        /// Before a launch the CPU works where it is outside CUDA for so long: launching one kernel after the other takes 3 to 10 us.
        CPU_WORKS: Ns = 50_000 or i64::MAX => ["one_operation_behind_work"];
        /// Steps are many from this number on.
        MANY_STEPS: Count = 10 or 0 => ["nine_steps_of_half_the_work"];
        /// What repeats behind more work than it holds itself is a part of a step, however often: such as the layers of a model.
        BEHIND_WORK: Exception => ["layers_behind_a_prompt"];
        /// Few steps that hold less of the time of kernels are parts of a step, however long they take.
        PART_SHARE: Share = 0.7 or 0.0 => ["nine_steps_of_half_the_work"];
        /// Steps that take less than half of the time speak for the program where they hold this part of the time of
        /// kernels. The rest is a long start-up.
        WORK_SHARE: Share = 0.9 or 0.0 => ["five_steps_behind_some_work"];
        /// Few steps that take less in all tell nothing of a program that does more.
        STEPS_TIME: Ns = 1_000_000 or 0 => ["six_steps_behind_a_long_pause"];
        /// Pieces that repeat within one range may be the layers of a model, in one pass.
        ONE_PASS: Exception => ["layers_in_one_range"];
        /// So are those of two passes, where a range holds the second.
        SECOND_PASS: Exception => ["layers_of_two_passes"];
        /// Pieces that repeat beside an op of PyTorch that was seen but once are one pass, too.
        ONCE_BESIDE: Exception => ["layers_beside_an_op_that_is_done_once"];
        /// Pieces within one range that copy from or to the CPU are a loop that is fed, and no layers.
        IS_FED: Exception => ["fed_steps_in_one_range"];
    }
    "kinds of steps" {
        /// A few steps with much more in them are no kind of their own: training steps that also save.
        SOMETHING_MORE: Exception => ["two_steps_that_save"];
        /// Steps of the same operations are of two kinds where the GPU works for so many times as long in some of them.
        TWO_SORTS: Share = 1.5 or f64::INFINITY => ["steps_of_two_sizes"];
        /// They are of one kind where all take as long.
        EQUAL_LENGTH: Exception => ["steps_of_two_sizes_and_one_length"];
        /// A step is odd that takes so many times the median of its kind.
        ODD_TIMES: Share = 1.5 or f64::INFINITY => ["two_steps_that_save"];
        /// Of a kind with a greater odd part none is typical: it is uneven.
        ODD_PART: Share = 0.2 or 1.0 => ["steps_that_wait_by_turns"];
        /// A kind is uneven whose deviation is this part of its median.
        WIDE_SPREAD: Share = 0.25 or f64::INFINITY => ["solves_of_four_sizes"];
        /// Odd steps that do not recur take the headline from this part of the steady steps' time on.
        ODD_COST: Share = 0.1 or 2.0 => ["two_steps_that_save"];
    }
    "findings" {
        /// What takes so many times as long as a headline's time leads: a start-up, or work outside CUDA.
        ELSEWHERE_TIMES: Share = 10.0 or f64::INFINITY => ["kernel_of_a_long_start"];
        /// So does a start that takes longer than a program which waits for the CPU, where no cure of that is known.
        LONGER_START: Exception => ["start_that_takes_longer"];
        /// A finding that could save this part of the time examined is a warning, a lesser one a remark. Differences between
        /// two runs of one program should not raise warnings.
        WARNING_SHARE: Share = 0.05 or 0.0 => ["recorded_sync_points", "cold_start_of_three_percent"];
        /// A bound that is seldom reached is worth a line from this part of the time on.
        LARGE_SHARE: Share = 0.1 or 0.0 => ["recorded_pipeline", "overlap_of_eight_percent"];
        /// Of a GPU that waits for most of the time, what takes this part of its kernels' time is worth a line: it comes next.
        MOST_OF_KERNELS: Share = 0.5 or f64::INFINITY => ["products_of_a_gpu_that_waits"];
        /// A finding that could save less than this part is not worth a line.
        WORTH_SHARE: Share = 0.02 or 0.0 => ["cold_start_of_one_percent"];
        /// What happens this often is done in a loop.
        LOOP_MIN: Count = 8 or 0 => ["five_batches_that_cost_little"];
    }
    "pageable-copy" {
        /// Copies that bring a program what it works with, once, before its first kernels, are set-up. Fewer bytes come
        /// later, and kernels take longer than copies do then.
        COPIES_OF_SET_UP: Exception => ["copies_before_all_work"];
        /// What comes behind PyTorch's loader, or as one array before a training step, is a batch: no program makes it on the GPU.
        BATCH_OF_LOADER: Exception => ["batch_of_a_loader"];
    }
    "cold-start" {
        /// First calls that take longer than copies run are told before these.
        COLDER: Exception => ["first_launch_beside_small_copies"];
        /// A question whether work is done starts no library, however long it takes.
        ASKS_FOR_WORK: Exception => ["question_that_takes_long"];
        /// Code that is loaded behind the GPU's work costs a first run nothing.
        BEHIND_THE_WORK: Exception => ["loads_behind_the_work"];
        /// A call that loads code while the GPU works, and returns when that ends, waits for the GPU.
        LOAD_WAITS: Exception => ["loads_that_wait_for_kernels"];
    }
    "host-exchange" {
        /// The copies that MPI sends through the host are no values to gather: each round has its own.
        EXCHANGED_COPY: Exception => ["exchange_by_mpi"];
        /// Nor can the waits for them be left out.
        EXCHANGED_WAIT: Exception => ["exchange_by_mpi"];
        /// Where the CPU works on what comes back for most of the time, it makes what goes up.
        WORKS_ON_EXCHANGED: Exception => ["exchange_that_the_cpu_works_on"];
    }
    "sync-in-loop" {
        /// Few waits count where the device idles in and behind them for a large part of the time: a loop over a few large
        /// batches.
        FEW_WAITS: Exception => ["recorded_sync_points", "five_large_batches"];
        /// Few waits count from this number on. One is between a program's two parts, two are their ends.
        FEW_WAITS_MIN: Count = 3 or 0 => ["three_large_batches"];
        /// Where each graph has input of its own, what comes back is a result, and ends no loop.
        REQUESTS: Exception => ["graph_of_each_request"];
        /// With managed memory the CPU may read without a copy what it waited for.
        MAY_READ_MANAGED: Exception => ["managed_memory_decides"];
        /// Work of the CPU that takes over 1 ms behind a wait may need what the CPU waited for.
        LONG_WORK_BEHIND: Exception => ["recorded_pipeline", "long_work_behind_waits"];
        /// Where the CPU works behind a large copy to its memory for as long as reading that takes, it needs what came.
        READS_WHAT_CAME: Exception => ["results_that_are_read"];
        /// A copy back to pageable memory waits to be staged: `pageable-copy` tells of it.
        STAGED_BACK: Exception => ["results_that_are_staged"];
        /// Behind a sync a copy back to pageable memory waits all the same: both have to go.
        WAITS_ALL_THE_SAME: Exception => ["syncs_before_staged_copies"];
        /// Waits of a thread that launches nothing are a cause only where the GPU is idle behind most of them.
        WAITS_BY_CHANCE: Exception => ["thread_that_waits_for_results"];
        /// Values that come back may say what is launched next, so that their syncs may have to stay.
        VALUE_DECIDES: Exception => ["value_that_decides"];
        /// A value that PyTorch's `.item()` brings is mostly printed, and decides nothing.
        PRINTED_VALUE: Exception => ["value_that_is_printed"];
        /// So many reads a step are not all at its end.
        READS_WITHIN: Count = 4 or 0 => ["steps_that_read_at_their_end"];
        /// So many kernels between reads are worth a graph.
        CUT_MIN: Count = 32 or usize::MAX => ["reads_between_long_pieces"];
        /// Managed memory may say what is launched next, so that its syncs may have to stay.
        MANAGED_DECIDES: Exception => ["managed_memory_decides"];
    }
    "double-precision" {
        /// What takes as long with several times the blocks, of which an SM works on several, waits for one step after the other.
        CHAIN_OF_WORK: Exception => ["doubles_of_any_grid"];
    }
    "managed-memory" {
        /// Where pages move, but not beside the idle time, the CPU does not wait for them there.
        PAGES_ELSEWHERE: Exception => ["pages_behind_other_work"];
    }
    "layout" {
        /// Kernels that turn tensors around for less are not worth a line.
        LAYOUT_SHARE: Share = 0.05 or 0.0 => ["layouts_that_take_little"];
    }
    "exposed-communication" {
        /// Few collectives that take ten times as long as the others of their kernel, and half of the time of all, wait for another rank.
        WAITS_FOR_A_RANK: Exception => ["collectives_of_which_two_wait"];
        /// An exchange that takes so many times the next most likely waits for another rank.
        LONG_EXCHANGE: Times = 4 or i64::MAX => ["exchange_that_waits"];
        /// Without backward and optimizer each collective needs the product before it, so that neither buckets nor prefetches help.
        INFERENCE: Exception => ["collectives_of_inference"];
    }
    "page-migration" {
        /// A kernel waits this long for its first page at most: a guess by few traces.
        FIRST_FAULT: Ns = 500_000 or 0 => ["kernel_that_waits_for_two_pages"];
        /// And for each later one: a guess.
        FAULT_MAX: Ns = 50_000 or i64::MAX => ["kernel_that_works_between_pages"];
        /// Few pages count where kernels wait for them for a large part of the time.
        HOLDS_UP_KERNELS: Exception => ["kernel_that_waits_for_two_pages"];
    }
    "default-stream" {
        /// Where a stream is told to wait for an event meanwhile, the program says itself what waits for what.
        EVENT_ORDERS: Exception => ["streams_that_wait_by_events"];
        /// So many streams need wait for it but once each.
        STREAMS_WAIT: Count = 4 or usize::MAX => ["streams_that_wait_once"];
        /// A stream of which something runs beside the default stream's work does not wait for that.
        RUNS_BESIDE_DEFAULT: Exception => ["streams_beside_the_default_stream"];
    }
    "offloading" {
        /// Work that a library or the program calls offloading, or the CPU's, is there because the GPU's memory is too small for it.
        OFFLOADED_ON_PURPOSE: Exception => ["optimizer_of_the_cpu"];
    }
    "optimizer-launches" {
        /// Launches are many from this number on.
        MANY_LAUNCHES: Count = 64 or 0 => ["optimizer_of_few_parameters"];
        /// An optimizer is worth a line of its own with this part of the launches.
        OPTIMIZER_SHARE: Share = 0.25 or 0.0 => ["optimizer_of_a_deep_model"];
    }
    "optimizer-kernels" {
        /// A gradient that is filled in little of the optimizer's time is no table's: others have most parameters.
        FEW_FILLS: Exception => ["optimizer_of_a_model_with_a_table"];
        /// Fewer kernels are no passes of a formula.
        PASSES_MIN: Count = 3 or 0 => ["optimizer_of_two_kernels"];
    }
    "turns" {
        /// Threads whose launches, with the waits for them, lie beside each other for a quarter of it take no turns.
        LAUNCH_BESIDE: Share = 1.25 or f64::INFINITY => ["threads_that_launch_together", "threads_that_wait_for_their_kernels"];
        /// One of them launches for this part of the time: else none has enough to do.
        LAUNCHING_SHARE: Share = 0.5 or 0.0 => ["threads_with_little_to_do"];
        /// Threads that launch onto one stream hand over to each other.
        ONE_STREAM: Exception => ["threads_of_one_stream"];
        /// So do threads that launch other kernels than the first one.
        OTHER_KERNELS: Exception => ["threads_of_other_kernels"];
    }
    "under-filled-gpu" {
        /// One launch that takes over 0.1 ms, and ten times as long as the others of its grid, says nothing of the kernel.
        FAR_TOO_LONG: Exception => ["one_launch_far_too_long"];
        /// Kernels that take less are a matter of launching, not of filling the GPU: an empty one takes 1.5 to 2 us.
        UNDER_FILLED_MIN: Ns = 5_000 or 0 => ["graph", "very_short_kernels_of_few_blocks"];
        /// Shorter ones of one block or two are a matter of launching, too, where they take less than a fifth of kernel time.
        SHORT_OF_LITTLE: Exception => ["short_kernels_of_one_block"];
        /// A kernel under-fills the GPU with fewer blocks than this part of the SMs. So do fewer threads in a block than this
        /// part of a warp. As good as a grid gets: 128 blocks on 132 SMs.
        UNDER_FILLED_BLOCKS: Share = 0.75 or 0.0 => ["recorded_pipeline", "kernels_of_few_blocks"];
        /// Such kernels are worth a line where they take this part of all kernel time.
        UNDER_FILLED_SHARE: Share = 0.1 or 0.0 => ["few_kernels_of_few_blocks"];
        /// Of long ones with one block or two this part is enough.
        ONE_BLOCK_SHARE: Share = 0.03 or f64::INFINITY => ["long_kernel_of_one_block"];
        /// Kernels run beside each other when their durations sum to so many times the time in which any ran.
        BESIDE_EACH_OTHER: Share = 1.5 or f64::INFINITY => ["recorded_sync_points", "kernels_beside_each_other"];
        /// Collective communication takes few SMs on purpose, to leave the others to computing.
        FEW_SMS_MEANT: Exception => ["collectives_of_few_blocks"];
        /// A kernel that takes less may have nothing to do, or wait for pages.
        EMPTY_MAX: Ns = 1_000_000 or 0 => ["kernel_that_does_nothing"];
        /// A short kernel without parameters has nothing to do: it is there to start the GPU.
        DOES_NOTHING: Exception => ["kernel_that_does_nothing"];
        /// A short kernel of a program with managed memory waits for pages, or reads those that stay with the CPU.
        WAITS_FOR_PAGES: Exception => ["kernels_that_wait_for_pages"];
        /// Where launches of the same kernel with twice the blocks take as long, more blocks save nothing.
        AS_LONG_WITH_TWICE: Exception => ["kernels_of_twice_the_blocks"];
        /// Many kernels that are shorter on average may just have little to do: a remark.
        LITTLE_TO_DO: Ns = 100_000 or 0 => ["recorded_pipeline", "short_kernels_of_few_blocks"];
        /// Fewer streams in a chain are a producer and its consumer.
        CHAINED_STREAMS: Count = 3 or 0 => ["two_streams_by_turns"];
        /// Streams are chained where this part of their launches waits for the one before.
        CHAINED_SHARE: Share = 0.9 or 0.0 => ["streams_of_which_half_wait"];
    }
    "blocked-launches" {
        /// A shorter kernel may be over before its launch returns.
        BLOCKED_MIN: Ns = 5_000 or 0 => ["kernels_that_end_before_their_launch"];
        /// So many launches wait for their kernel, to each that does not.
        BLOCKED_TIMES: Times = 19 or 0 => ["launches_of_which_most_wait"];
    }
    "graphs-anew" {
        /// Graphs of which this part is launched right behind its making are made for that.
        ANEW_SHARE: Share = 0.9 or 0.0 => ["graphs_that_are_kept"];
    }
    "no-overlap" {
        /// An engine takes part in an overlap when it works for this part of the time.
        ENGINE_SHARE: Share = 0.05 or 0.0 => ["mostly_copies"];
        /// Copies and kernels were overlapped when this part of what could be hidden was. The same pipeline on an H200
        /// hides 0 on one stream, 0.88 on eight.
        HIDDEN_SHARE: Share = 0.25 or f64::INFINITY => ["overlapped_a_little"];
        /// With a single copy engine the directions take turns.
        ONE_COPY_ENGINE: Exception => ["one_copy_engine"];
        /// One batch has nothing to run beside.
        ONE_BATCH: Exception => ["pageable", "one_batch"];
        /// A CUDA graph that is launched again works in the same memory: these are no independent batches.
        ONE_GRAPH: Exception => ["one_graph_again_and_again"];
        /// Pinned copies by turns that are queued ahead on several streams: what could be done is done.
        DONE_ALREADY: Exception => ["directions_that_are_queued_ahead"];
    }
    "alloc-in-loop" {
        /// A kernel that is launched for the first time is in no loop yet, and makes no round of launching and allocating.
        NO_LOOP_YET: Exception => ["allocations_of_kernels_that_run_once"];
        /// Rounds that end before the last quarter of the time fill a cache.
        CACHE_THAT_ENDS: Exception => ["cache_that_is_full_early"];
        /// Beside cold calls a program that gives hardly any memory back fills its allocator's cache.
        CACHE_THAT_FILLS: Exception => ["cache_of_a_cold_program"];
        /// Slow ones in half of the eighths of the time are the loop's, though a kernel's first launch comes late.
        SPREAD_OUTLIERS: Exception => ["frees_that_are_slow_now_and_then"];
    }
    "host-bound" {
        /// Host work in gaps of over 1 ms binds the GPU when it takes this part of the time: XProf's mark for steps bound by
        /// their input.
        HOST_SHARE: Share = 0.2 or 0.0 => ["loading_for_less"];
        /// Without a kernel there is no work yet: data is set up.
        NO_KERNEL: Exception => ["weights_that_are_read"];
        /// Work before a kernel's first launch is no next batch: the CPU most likely made the kernel.
        NO_NEXT_BATCH: Exception => ["kernels_with_work_before_their_first_launch"];
        /// A gap that holds half of the host's work, without steps, is no batch that could be prepared.
        ONE_LONG_GAP: Exception => ["one_long_gap"];
        /// A name is told where it takes this part of the host's work. Without a name nobody knows whether it could be done
        /// ahead.
        NAMED_PART: Share = 0.5 or 0.0 => ["work_of_many_names"];
    }
    "launch-bound" {
        /// The GPU waits for launches when it is idle for this part of the time in gaps that they are to blame for. A
        /// GPU-bound step on a V100 idles for 1.6 %, a launch-bound one on an A100 for 76 %.
        LAUNCH_IDLE_SHARE: Share = 0.2 or 0.0 => ["recorded_sync_points", "first_launch"];
        /// Fewer kernels say nothing about launching.
        LAUNCH_OPS_MIN: Count = 12 or 0 => ["copies", "pages_of_managed_memory"];
        /// With fewer kernels from one wait to the next a graph has hardly anything to hold: a remark.
        GRAPH_MIN: Count = 8 or 0 => ["kernels_that_are_waited_for"];
        /// Shorter kernels are worth larger batches.
        SHORT_OF_ALL: Share = 0.05 or 0.0 => ["short_kernels_of_little"];
        /// Code that loads data, by its name, is no matter of launching less often.
        LOADER: Exception => ["short_kernels_with_a_loader"];
        /// Elementwise kernels in a row that are all of one size go through one tensor again and again.
        ONE_SIZE: Exception => ["loop_over_one_tensor"];
        /// Where first calls take more, without steps, one cold pass does not tell how the next ones launch.
        ONE_COLD_PASS: Exception => ["one_cold_pass"];
    }
    "stalls" {
        /// Waits for shared memory and special units. A GEMM of cuBLAS, whose tiles are there by design, waits so for 11 %,
        /// a softmax for 13.
        BANKS_SHARE: Share = 0.35 or 0.0 => ["shared_memory_waits_of_a_quarter"];
        /// Waits at barriers. A softmax of PyTorch waits so for 17 to 21 %.
        BARRIERS_SHARE: Share = 0.35 or 0.0 => ["barriers_of_a_quarter"];
        /// Waits for instructions. Fifteen of PyTorch and cuBLAS wait so for 0 to 9 %, its `lgamma` for 48.
        FETCH_SHARE: Share = 0.25 or 0.0 => ["barriers_of_a_quarter"];
        /// Without shared memory it is special units (exp, sin) that a kernel waits for.
        SPECIAL_UNITS: Exception => ["special_units"];
    }
    "lost-records" {
        /// Records of a thread that end within a range, while later ones of its name hold none, are lost.
        ENDS_WITHIN: Exception => ["thread_that_falls_silent"];
        /// Where this part of graph launches left no records nothing can be said of idle time. Fewer may have
        /// been launched when recording ended.
        LOST_SHARE: Share = 0.1 or 0.0 => ["graph_launches_behind_the_recording"];
    }
    "beside-graphs" {
        /// Where the CPU waits within the step, its waits are the cause.
        WAITS_BESIDE_GRAPHS: Exception => ["half_graphed_steps_that_wait"];
    }
    "no-cure" {
        /// Idle time of one group has a finding from this part of the time on.
        NO_CURE_SHARE: Share = 0.2 or 0.0 => ["pageable", "first_launch"];
        /// A gap that holds this part of it is nearly all of it, and the rest may look otherwise.
        ONE_GAP: Share = 0.9 or 2.0 => ["profiler_of_a_later_step"];
        /// A large copy to the GPU behind such a gap, and behind kernels, brings the next batch, which was not ready.
        NEXT_BATCH: Exception => ["batch_that_was_not_ready"];
    }
}
