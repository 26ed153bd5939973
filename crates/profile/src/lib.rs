//! What the simulator knows about one GPU and its host: a small TOML file.
//!
//! The bundled one is an H200's ([`Profile::bundled`]); each of its numbers says in a comment whether
//! it was measured, printed in a datasheet, or estimated. `cuptop calibrate` writes such a file for the
//! GPU at hand. The peaks in it are also what "% of peak" on the screen refers to.
//!
//! Units: `*_ns` are nanoseconds, `*_gbps` are 10^9 bytes per second, and `*_tflops` are 10^12 floating point
//! operations per second. Sizes are bytes, shares lie in 0..=1.

mod check;

pub use check::each_figure;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use activity::{DeviceInfo, door};

/// The text of the bundled profile.
const H200: &str = include_str!("h200.toml");
/// That of an A100, whose figures are assumed.
const A100: &str = include_str!("a100.toml");

/// One GPU and the host it sits in. Every device of a simulation has the same profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The device itself and its limits.
    pub device: Device,
    /// Copies between host and device, and between devices.
    pub copy: Copies,
    /// How fast kernels and device-side copies run.
    pub kernel: Kernels,
    /// Host time inside API calls.
    pub api: Api,
    /// Time that passes between cause and effect.
    pub latency: Latency,
    /// Allocation.
    pub memory: Memory,
    /// What the first use costs.
    pub cold: Cold,
    /// How fast the host computes.
    pub host: Host,
    /// Per-kernel efficiency, by the name of the entry point.
    #[serde(default)]
    pub entry: BTreeMap<String, Entry>,
}

/// The device and its limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: [u32; 2],
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory in bytes.
    pub memory: u64,
    /// Peak device memory bandwidth.
    pub memory_gbps: f64,
    /// Size of the L2 cache in bytes.
    pub l2: u64,
    /// Peak fp32 rate without tensor cores.
    pub fp32_tflops: f64,
    /// Peak SM clock in kHz.
    pub clock_khz: u32,
    pub copy_engines: u32,
    /// Resident threads of an SM.
    pub threads_per_sm: u32,
    /// Resident blocks of an SM.
    pub blocks_per_sm: u32,
    /// Shared memory of an SM in bytes.
    pub shared_per_sm: u32,
    pub registers_per_sm: u32,
    /// How it is attached to the host.
    pub link: String,
}

/// Copies over the link to the host and to other devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copies {
    /// Pinned memory, host to device, large copies.
    pub h2d_gbps: f64,
    /// Pinned memory, device to host, large copies.
    pub d2h_gbps: f64,
    /// The same while a copy of the other direction runs.
    pub h2d_shared_gbps: f64,
    /// The same while a copy of the other direction runs.
    pub d2h_shared_gbps: f64,
    /// Time that a host-to-device copy takes beside its bytes.
    pub h2d_fixed_ns: i64,
    /// Time that a host-to-device copy of 64 KiB or more takes on top of that. It passes until reads of the host's
    /// memory are up to speed. Smaller copies take as much less.
    pub h2d_ramp_ns: i64,
    /// Time that a device-to-host copy takes beside its bytes.
    pub d2h_fixed_ns: i64,
    /// Pageable copies up to this size are put into the command itself and do not block the host.
    pub inline_bytes: u64,
    /// How fast the host puts them there.
    pub inline_gbps: f64,
    /// Larger pageable copies are staged in pieces of this size: the engine copies one piece while the
    /// host stages another.
    pub stage_bytes: u64,
    /// How fast the host stages, by size of the copy, ascending. In between, it follows the logarithm of the size
    /// linearly.
    pub pageable: Vec<Pageable>,
    /// Within one device, bytes counted once.
    pub d2d_gbps: f64,
    /// Time that it takes beside its bytes.
    pub d2d_fixed_ns: i64,
    /// Between two devices, one direction.
    pub p2p_gbps: f64,
    /// Time that it takes beside its bytes.
    pub p2p_fixed_ns: i64,
}

/// Bytes from which a copy from the host pays [`Copies::h2d_ramp_ns`] in full.
pub const RAMP_BYTES: u64 = 64 << 10;

/// How fast the host stages a pageable copy of one size: between the program's memory and the driver's pinned buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pageable {
    /// Size of the copy.
    pub bytes: u64,
    /// Host to device, where the host has not read these bytes for long, or a download has written them.
    pub h2d_gbps: f64,
    /// Host to device, where the host has read this many bytes since it last read these, these included. Without it,
    /// `h2d_gbps` holds.
    #[serde(default)]
    pub h2d_again_gbps: Option<f64>,
    /// Device to host.
    pub d2h_gbps: f64,
}

/// Kernels in general. [`Entry`] refines it for one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// How long an empty kernel runs; part of every kernel. [`Entry::fixed_ns`] refines it.
    pub fixed_ns: i64,
    /// Share of [`Device::fp32_tflops`] that a kernel reaches when nothing better is known.
    pub compute_share: f64,
    /// Share of [`Device::memory_gbps`] that a kernel reaches when nothing better is known.
    pub memory_share: f64,
    /// Resident threads an SM needs to reach its arithmetic rate.
    pub threads_for_compute: u32,
    /// Resident threads an SM needs to draw [`Kernels::sm_gbps`].
    pub threads_for_memory: u32,
    /// What one SM can draw from the memory.
    pub sm_gbps: f64,
    /// How many times as fast a kernel moves bytes that all fit into the L2 cache.
    pub l2_gain: f64,
    pub memset_gbps: f64,
    /// Kernels that may run at one time.
    pub concurrent: u32,
}

/// What is known about one kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    /// How long it runs with next to nothing to do: its latency. [`Kernels::fixed_ns`] when absent.
    pub fixed_ns: Option<i64>,
    /// Share of the peak fp32 rate it reaches; [`Kernels::compute_share`] when absent.
    pub compute_share: Option<f64>,
    /// Share of the peak memory bandwidth it reaches; [`Kernels::memory_share`] when absent.
    pub memory_share: Option<f64>,
    /// Registers of a thread: with block size and shared memory they decide how many blocks fit.
    pub registers: Option<u32>,
    /// Static shared memory of a block, in bytes.
    pub static_shared: Option<u32>,
    /// What its warps wait for, in samples by NVIDIA's reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<(String, u64)>,
}

/// Host time inside API calls that return at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// Launching a kernel.
    pub launch_ns: i64,
    /// Queueing an asynchronous copy.
    pub copy_ns: i64,
    /// Queueing a memset.
    pub memset_ns: i64,
    /// Recording an event.
    pub event_record_ns: i64,
    /// Making a stream wait for an event.
    pub event_wait_ns: i64,
    /// A synchronization that finds nothing to wait for.
    pub sync_ns: i64,
    /// Creating a stream.
    pub stream_create_ns: i64,
    /// Creating an event.
    pub event_create_ns: i64,
    /// Launching a graph, beside its nodes.
    pub graph_launch_ns: i64,
    /// Host time of a graph launch for each of its nodes.
    pub graph_launch_node_ns: i64,
    /// More of it at a graph's first launch, which hands its nodes to the device, for each of them.
    pub graph_upload_node_ns: i64,
    /// Nodes that a launch prepares before it hands them to the device, which starts on them.
    pub graph_portion: u32,
    /// Capturing one operation.
    pub graph_capture_node_ns: i64,
    /// Instantiating a graph, beside its nodes.
    pub graph_instantiate_ns: i64,
    /// Instantiating a graph, for each node.
    pub graph_instantiate_node_ns: i64,
    /// Time between two calls that the program itself takes.
    pub between_ns: i64,
    /// Operations that a stream takes before a call has to wait.
    pub queue_depth: u32,
}

/// Time that passes between cause and effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// From the end of a launch call to the kernel's start on an idle stream.
    pub launch_ns: i64,
    /// From the end of a copy call to the copy's start on an idle stream.
    pub copy_ns: i64,
    /// Kernel to kernel on one stream.
    pub kernel_to_kernel_ns: i64,
    /// Kernel to copy on one stream.
    pub kernel_to_copy_ns: i64,
    /// Copy to kernel on one stream, or to a copy of the other direction.
    pub copy_to_kernel_ns: i64,
    /// Copy to copy on one engine.
    pub copy_to_copy_ns: i64,
    /// How long an engine pauses between looks for the end of another engine's operation on the same stream. 0 for one
    /// that is notified.
    pub poll_ns: i64,
    /// From an event on one stream to what waits for it on another.
    pub event_ns: i64,
    /// Node to node inside a graph.
    pub graph_node_ns: i64,
    /// From the end of the last operation to the host's return from a synchronization.
    pub wake_ns: i64,
}

/// Allocation. Costs are `fixed + bytes / gbps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// An allocation below [`Memory::granule`] that finds room in a block already mapped, on the device or
    /// pinned, and freeing one.
    pub alloc_small_ns: i64,
    /// Device allocations that need memory mapped.
    pub alloc_ns: i64,
    /// How fast it is mapped.
    pub alloc_gbps: f64,
    /// Freeing device memory, after the wait for the device and the host's return from it.
    pub free_ns: i64,
    /// How fast it is unmapped.
    pub free_gbps: f64,
    /// Allocation granularity in bytes.
    pub granule: u64,
    /// Stream-ordered allocation from a pool that has the memory.
    pub pool_alloc_ns: i64,
    /// Stream-ordered free.
    pub pool_free_ns: i64,
    /// What a stream-ordered allocation with its free costs the stream between two operations.
    pub pool_stream_ns: i64,
    /// Page-locked host memory.
    pub pinned_alloc_ns: i64,
    /// How fast pages are locked.
    pub pinned_alloc_gbps: f64,
    /// Freeing it.
    pub pinned_free_ns: i64,
    /// How fast pages are released.
    pub pinned_free_gbps: f64,
}

/// What the first use costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cold {
    /// Creating a context.
    pub context_ns: i64,
    /// Destroying a context.
    pub context_destroy_ns: i64,
    /// Loading a module, and making its kernels known.
    pub module_load_ns: i64,
    /// Added to the first stream that a context creates.
    pub first_stream_ns: i64,
    /// Added to the first launch of a kernel.
    pub first_launch_ns: i64,
    /// Added to the first copy of each direction.
    pub first_copy_ns: i64,
    /// Added to the call of the first memset.
    pub first_memset_ns: i64,
}

/// How fast one host thread computes what a scenario can ask of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Adding up f32 values, bytes read.
    pub sum_gbps: f64,
    /// Sine of f32 values, bytes of values.
    pub sin_gbps: f64,
    /// Multiplying f32 matrices, 10^9 operations per second.
    pub matmul_gflops: f64,
    /// Clearing memory that it has never touched, bytes of it.
    pub zero_gbps: f64,
    /// Making random f32 values in such memory, bytes of them.
    pub random_gbps: f64,
}

/// Why a profile could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file could not be read.
    #[error("cannot read the profile {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// It is not a profile.
    #[error("{path} is not a profile: {error}")]
    Parse {
        /// The file.
        path: String,
        /// What is wrong with it, with line and column.
        error: Box<toml::de::Error>,
    },
    /// A number in it makes no sense.
    #[error("{path} is not a usable profile: {what}")]
    Value {
        /// The file.
        path: String,
        /// Which number, and what it must be.
        what: String,
    },
}

impl Profile {
    /// The H200's.
    pub fn bundled() -> Profile {
        // A test parses the same text, so this cannot fail in a build that passed its tests.
        Profile::parse(H200, "the bundled profile").expect("the bundled profile is valid")
    }

    /// An A100's, made from its data sheet and the H200's shares: nobody measured it.
    pub fn assumed_a100() -> Profile {
        Profile::parse(A100, "the profile of an A100").expect("it is valid")
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// When the file cannot be read, or is not TOML with exactly these fields. Also when a number is zero, negative or
    /// not finite where that makes no sense.
    pub fn load(path: &Path) -> Result<Profile, ProfileError> {
        let name = path.display().to_string();
        let text = door::read_text(path, door::TEXT).map_err(|error| ProfileError::Read {
            path: name.clone(),
            error,
        })?;
        Profile::parse(&text, &name)
    }

    /// Reads a profile from text; `path` is for messages.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn parse(text: &str, path: &str) -> Result<Profile, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|error| ProfileError::Parse {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        match profile.first_fault() {
            None => Ok(profile),
            Some(what) => Err(ProfileError::Value {
                path: path.to_owned(),
                what,
            }),
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// Never for a profile that [`Profile::load`] would accept.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }

    /// The profile's device as the trace store describes device `id`.
    pub fn device_info(&self, id: u32) -> DeviceInfo {
        let d = &self.device;
        DeviceInfo {
            id,
            name: d.name.clone(),
            capability: (d.capability[0], d.capability[1]),
            multiprocessors: d.multiprocessors,
            memory: d.memory,
            memory_bandwidth: (d.memory_gbps * 1e9) as u64,
            clock_khz: d.clock_khz,
            copy_engines: d.copy_engines,
            max_warps_per_sm: d.threads_per_sm / WARP,
            max_blocks_per_sm: d.blocks_per_sm,
            shared_per_sm: d.shared_per_sm,
            registers_per_sm: d.registers_per_sm,
            warp_size: WARP,
            link: d.link.clone(),
            uuid: None,
            alike: 0,
        }
    }
}

/// Threads of a warp on every CUDA device so far.
const WARP: u32 = 32;
