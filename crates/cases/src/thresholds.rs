//! Thresholds that are no rows of the table, each beside what justifies it.
//!
//! Times are in nanoseconds. "Measured" means on an H200 over PCIe 5.0 x16 with driver 580 and CUPTI 13.0, if nothing else is said.

/// A finding that could save less than this, whatever its part, is not worth a line: it is lost in what two runs differ by.
pub const WORTH_NS: i64 = 10_000;

/// Beside one long gap what could save less is not worth a line: starts of programs differ by more.
pub const BESIDE_GAP_NS: i64 = 1_000_000;

/// A predicted saving below this part of the time, or below the replay's error, is lost in what the replay cannot
/// explain. Two runs of one program on one machine were seen to differ by more.
pub const SAVING_SHARE: f64 = 0.01;

/// So is one below this: the delays that the replay takes for typical are each uncertain by a few microseconds.
pub const SAVING_NS: i64 = 5_000;

/// Of several edits that would cure a finding, the one that assumes least counts if it saves this part of the best
/// one's.
pub const CURE_SHARE: f64 = 0.8;

/// Tiny copies of one direction that are worth joining: each saves a few microseconds, so it takes many.
pub const TINY_MIN: u64 = 64;

/// A kernel near no peak is worth a line where it is most of the time: what its roof would save is seldom reached.
pub const LATENCY_SHARE: f64 = 0.50;

/// The last wave of a grid costs this part of its time at most: below it, blocks that differ in length cost as much.
pub const TAIL_SHARE: f64 = 0.20;

/// The CPU is ahead of a GPU that works for this part of the time in which its launches find no room.
pub const AHEAD_SHARE: f64 = 0.90;

/// So much of the time is nearly all of it.
pub const NEARLY_ALL: f64 = 0.90;

/// A block that ends sooner, in ns, has read memory once at most. Under way with many others it takes a little longer. Measured: four
/// million blocks of a warp's work took 1,277 each, far below the memory's speed.
pub const AT_ONCE: [f64; 2] = [1_000.0, 1_500.0];

/// Small blocks keep the memory from its speed where they use no more of it.
pub const LITTLE_DRAM: f64 = 0.25;

/// So many threads for each number that was copied to or from the GPU are far more than there is data.
pub const THREADS_EACH: f64 = 8.0;

/// Blocks near no peak are worth a word where each SM has so many, one after the other.
pub const MANY_WAVES: f64 = 100.0;

/// Fewer warps on an SM hide little of memory's latency: eight are two for each of its four schedulers.
pub const FEW_WARPS: u32 = 8;

/// A recording without kernels for this long, while launches and waits go on and NVML has the multiprocessors busy for this part, is blind.
pub const BLIND_NS: i64 = 1_000_000_000;
pub const BLIND_BUSY: f64 = 0.50;

/// … and those that wait for memory for less than this part of their samples are enough.
pub const FEW_WARPS_WAIT: f64 = 0.30;

/// Elementwise kernels move memory all the time from this part of its peak on. Measured: CuPy's, of 128 MB on an H100, 0.50 to 0.76.
pub const CHAIN_DRAM: f64 = 0.45;

/// CuPy's one after another do from this part on: a thread of theirs does one element. Measured on an H200: 0.35, in each of ten of 268 MB.
pub const CUPY_DRAM: f64 = 0.30;

/// Tensor cores do nothing where they are busy for less than this. Measured: 0 in a GEMM in fp32, 0.93 in bf16.
pub const NO_TENSOR: f64 = 0.01;

/// A node of a graph that takes less does hardly anything: an empty kernel takes 1.5 to 2 us.
pub const EMPTY_NODE: i64 = 2_000;

/// Smallest copy that reaches the peak rate. Measured: 1 MiB reaches 73 % of what 1 GiB does, which is a
/// fixed cost of 7 us; at 4 MiB that leaves 91 %.
pub const LARGE_BYTES: u64 = 4 << 20;

/// Large copies are slow below this part of the calibrated peak. Measured: both directions at once
/// reach 91 % each.
pub const PEAK_SHARE: f64 = 0.80;

/// Copies with nothing beside them bind the GPU when they take this part of the time, most of it.
pub const COPY_SHARE: f64 = 0.50;

/// Communication with nothing beside it is worth a line when it takes this part of the time. Some of it, the last
/// bucket of a step, has nothing to be hidden behind.
pub const EXPOSED_SHARE: f64 = 0.10;

/// … and communication of which little is, when it takes this part of a rank that is looked at by itself.
pub const COLLECTIVE_SHARE: f64 = 0.20;

/// A GPU computes for most of the time when it does for this part: another one beside it could take half.
pub const COMPUTE_SHARE: f64 = 0.50;

/// Copies of one direction queue for one engine when this part of them waited for another stream's.
pub const QUEUED_SHARE: f64 = 0.25;

/// A kernel is far below the roof when it moves its declared bytes at less than this part of the memory's rate.
/// Measured: kernels that only read and write reach 86 %, a transposition with scattered writes 11 %, through
/// shared memory with bank conflicts 36 %.
pub const ROOF_SHARE: f64 = 0.50;

/// Kernels run at the speed of memory above this part of its rate: fusing them saves what they move.
pub const MEMORY_SHARE: f64 = 0.70;

/// Copies down from one GPU and up to another that are a way between the two: one could be chance.
pub const THROUGH_HOST_MIN: usize = 2;

/// Clocks are held down when they were so in this part of the readings. A single one may have met a change of clocks,
/// which NVML also reports so.
pub const THROTTLED_SHARE: f64 = 0.05;

/// … and that matters when the mean clock is below this part of the highest. A GPU at its power limit that keeps its
/// clocks works as it is meant to.
pub const THROTTLED_CLOCK: f64 = 0.95;

/// Waits for a core are worth a line from this part on of the time in which the GPU waited for the CPU. A thread among
/// fewer threads than cores waits for less than one percent.
pub const CORE_WAIT_SHARE: f64 = 0.10;

/// The limit of a container is worth a line when this part of its periods (100 ms each, as a rule) used it up.
pub const CPU_LIMIT_SHARE: f64 = 0.05;

/// Python functions that PyTorch's profiler records for each launch: from so many on they take longer than launching does.
/// Estimated: a function takes the profiler about a microsecond, a launch five.
pub const STACK_ROWS: u64 = 5;

/// NVTX ranges for each operation: programs mark steps and layers, and only a mark of each operator makes so many.
pub const NVTX_ROWS: u64 = 4;

/// A range costs about as much, as a Python function does.
pub const RANGE_NS: i64 = 1_000;

/// Recording graphs' nodes is worth a line when, at the least cost that was measured, it took this part of the time.
pub const WATCHED_SHARE: f64 = 0.02;
