//! What a GPU's own counters and sensors said, as windows of time.

use super::{Ns, Span, codes};

/// A physical GPU, as CUDA and NVML both name it.
pub type Uuid = [u8; 16];

/// "8f0c2a4e-…": the sixteen bytes as NVML and CUDA write them.
pub fn uuid_text(uuid: &Uuid) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*uuid));
    [0..8, 8..12, 12..16, 16..20, 20..32]
        .map(|part| &digits[part])
        .join("-")
}

/// The sixteen bytes of such a text, with "GPU-" or "MIG-" before it or not.
pub fn uuid_of(text: &str) -> Option<Uuid> {
    let digits = text.trim_start_matches("GPU-").trim_start_matches("MIG-");
    let digits = digits.replace('-', "");
    let is_whole = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok();
    number.filter(|_| is_whole).map(u128::to_be_bytes)
}

/// Of what kind a metric's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// From 0 to 1.
    Share,
    /// Bytes per second.
    BytesPerSecond,
    /// Watts.
    Watts,
    /// Megahertz.
    Megahertz,
    /// Degrees Celsius.
    Celsius,
    /// Bytes.
    Bytes,
}

/// Metric, its number, its name in JSON and CSV, the one for people, its words, and its unit; in the order of their rows.
macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident = $code:literal $key:literal $label:literal $words:literal $unit:ident,)*) => {
        codes! {
            /// What is read of a GPU.
            pub enum Metric { $($(#[$doc])* $name = $code,)* }
        }

        impl Metric {
            /// Every one, in the order of its rows.
            pub const ALL: [Metric; 16] = [$(Metric::$name),*];

            fn row(self) -> (&'static str, &'static str, &'static str, MetricUnit) {
                match self {
                    $(Metric::$name => ($key, $label, $words, MetricUnit::$unit),)*
                }
            }
        }
    };
}

metrics! {
    /// Share of the multiprocessors that were busy.
    Sm = 0 "sm" "SM" "multiprocessors busy" Share,
    /// Warps that were resident, of those that there is room for.
    Occupancy = 1 "occupancy" "occup." "warps resident" Share,
    /// Share of cycles in which a multiprocessor issued an instruction.
    Issue = 12 "issue" "issue" "instructions issued" Share,
    /// Share of time in which tensor cores were busy.
    Tensor = 2 "tensor" "tensor" "tensor cores busy" Share,
    /// Share of the bandwidth of device memory that was used.
    Dram = 3 "dram" "DRAM" "memory bandwidth used" Share,
    /// Bytes per second read from device memory.
    DramRead = 13 "dram_read" "DRAM rd" "read from memory" BytesPerSecond,
    /// Bytes per second written to device memory.
    DramWrite = 14 "dram_write" "DRAM wr" "written to memory" BytesPerSecond,
    /// Bytes per second through the L2 cache.
    L2 = 15 "l2" "L2" "through the L2 cache" BytesPerSecond,
    /// PCIe traffic to the GPU, in bytes per second.
    PcieIn = 4 "pcie_in" "PCIe in" "PCIe to the GPU" BytesPerSecond,
    /// PCIe traffic from the GPU, in bytes per second.
    PcieOut = 5 "pcie_out" "PCIe out" "PCIe from the GPU" BytesPerSecond,
    /// NVLink traffic to the GPU over all links, in bytes per second.
    NvlinkIn = 6 "nvlink_in" "NVL in" "NVLink to the GPU" BytesPerSecond,
    /// NVLink traffic from the GPU over all links, in bytes per second.
    NvlinkOut = 7 "nvlink_out" "NVL out" "NVLink from the GPU" BytesPerSecond,
    /// Power drawn, in watts: a mean over about the second before.
    Power = 8 "power" "power" "power" Watts,
    /// Clock of the multiprocessors at the end of the window, in MHz.
    Clock = 9 "clock" "clock" "SM clock" Megahertz,
    /// Temperature at the end of the window, in degrees Celsius.
    Temperature = 10 "temperature" "temp." "temperature" Celsius,
    /// Device memory in use by anybody at the end of the window, in bytes.
    Memory = 11 "memory" "used mem" "memory in use" Bytes,
}

impl Metric {
    /// Its name in JSON and CSV.
    pub fn key(self) -> &'static str {
        self.row().0
    }

    /// Its name for people, short enough for a gutter.
    pub fn label(self) -> &'static str {
        self.row().1
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        self.row().2
    }

    /// Whether counters alone tell it (`--counters`), and NVML does not.
    pub fn is_counted(self) -> bool {
        matches!(
            self,
            Metric::Issue | Metric::DramRead | Metric::DramWrite | Metric::L2
        )
    }

    /// Of what kind its numbers are.
    pub fn unit(self) -> MetricUnit {
        self.row().3
    }

    /// Whether it may have this value: a counter may run on a little behind the clock that it is divided by.
    pub fn can_be(self, value: f64) -> bool {
        let most = match self.unit() {
            MetricUnit::Share => 1.1,
            _ => 1e15,
        };
        (0.0..=most).contains(&value)
    }
}

impl MetricUnit {
    /// Its word in JSON, CSV and counters of other programs.
    pub fn label(self) -> &'static str {
        ["share", "bytes_per_s", "W", "MHz", "C", "bytes"][self as usize]
    }
}

/// Reasons why clocks are lower than they could be, as NVML's bits (`nvmlClocksEventReason…`), each with its words,
/// gravest first. Idle clocks (0x1) and clocks that somebody set (0x2, 0x100) are none.
pub const SLOWDOWNS: [(u64, &str); 6] = [
    (0x40, "hardware thermal slowdown"),
    (0x80, "power brake"),
    (0x20, "thermal limit"),
    (0x08, "hardware slowdown"),
    (0x04, "power cap"),
    (0x10, "sync boost"),
];

/// All bits of [`SLOWDOWNS`].
pub const SLOWED: u64 = 0x40 | 0x80 | 0x20 | 0x08 | 0x04 | 0x10;

/// What is known of a GPU besides its windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuLimits {
    /// Which GPU.
    pub uuid: Uuid,
    /// The most that a metric can reach, if known: power limit, highest clock, one way of the PCIe link, memory.
    pub most: Vec<(Metric, f64)>,
    /// The metrics that this GPU, driver or user does not have, with the reason in words.
    pub lacks: Vec<(Metric, String)>,
    /// Whether slowdowns can be told.
    pub tells_slowdowns: bool,
}

/// Which GPU it is, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuIdentity {
    /// Which GPU.
    pub uuid: Uuid,
    /// Its number in NVML's order, which need not be CUDA's.
    pub index: u32,
    /// "NVIDIA H200"; empty where unknown.
    pub name: String,
}

/// One look at a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Which GPU.
    pub uuid: Uuid,
    /// From the look before to this one, in nanoseconds of `CLOCK_REALTIME`.
    pub span: Span,
    /// What was there to be read.
    pub values: Vec<(Metric, f64)>,
    /// Why clocks were lower than they could be at its end: NVML's bits.
    pub reasons: u64,
}

codes! {
    /// Whose a process on a GPU is.
    pub enum Owner {
        /// Of the traced program.
        Program = 0,
        /// Not of the traced program.
        Other = 1,
        /// Nobody knows: its id is of another process namespace than ours.
        Unknown = 2,
    }
}

/// A process on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// Its id, as NVML gives it.
    pub pid: u32,
    /// Its name; empty where unknown.
    pub name: String,
    /// Bytes of the GPU's memory, where NVML tells.
    pub memory: Option<u64>,
    /// Whose it is.
    pub owner: Owner,
}

/// What watching took so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchCost {
    /// Rounds of readings.
    pub rounds: u64,
    /// CPU time of the thread that reads, in ns.
    pub cpu_ns: u64,
    /// Time since it began, in ns.
    pub wall_ns: u64,
    /// Windows that could not be written.
    pub lost: u64,
}

/// What the warps of a kernel were seen waiting for since the samples before these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StallSamples {
    /// The kernel's name, as records of it have it; empty where none was sampled.
    pub kernel: String,
    /// Samples of this GPU that were lost meanwhile, at least.
    pub lost: u64,
    /// By reason, under NVIDIA's names (`long_scoreboard`), those that were seen.
    pub reasons: Vec<(String, u64)>,
    /// The source file and line at which they were, where its module tells; else empty and 0.
    pub file: String,
    /// See `file`.
    pub line: u32,
}

/// Something about the hardware, in a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Hardware {
    /// A GPU that no record tells of, because none are made: a program that runs already is looked at.
    Gpu(GpuIdentity),
    /// What is known of a GPU; may come again.
    Limits(GpuLimits),
    /// A look at a GPU.
    Reading(Reading),
    /// What its counters counted in some µs or ms, of many one after the other.
    Sample(Reading),
    /// The processes on a GPU, when they changed.
    Occupants {
        /// Which GPU.
        uuid: Uuid,
        /// When they were listed.
        time: Ns,
        /// All of them.
        all: Vec<Occupant>,
    },
    /// Why something is not there, in a sentence.
    Note(String),
    /// What watching took so far.
    Cost(WatchCost),
    /// What a kernel's warps waited for.
    Stalls(StallSamples),
}

/// What one thread did between two looks at it, as the kernel's scheduler counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadWindow {
    /// The operating system's id.
    pub thread: u32,
    /// From the look before to this one, in nanoseconds of `CLOCK_REALTIME`.
    pub span: Span,
    /// Time on a core, in ns.
    pub running: Ns,
    /// Time in which it could have run and no core was free, in ns.
    pub waiting: Ns,
}

/// What the limit on processor time of a process's control group did between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupWindow {
    /// From the look before to this one, in nanoseconds of `CLOCK_REALTIME`.
    pub span: Span,
    /// Periods of the limit that passed.
    pub periods: u64,
    /// Those in which the group was stopped for having used up its share.
    pub throttled_periods: u64,
    /// How long its threads were stopped, in ns; of several processors, added up.
    pub throttled: Ns,
    /// Processors' worth of time that the group may use; 0 where unknown.
    pub cores: f64,
}

/// Something about a process's threads on their processors, in a batch of that process.
#[derive(Clone, Debug, PartialEq)]
pub enum OffCpu {
    /// A look at a thread.
    Thread(ThreadWindow),
    /// A look at the control group.
    Group(GroupWindow),
    /// Why something is not there, in a sentence.
    Note(String),
}
