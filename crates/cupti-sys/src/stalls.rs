//! Continuous PC sampling: what the warps of each kernel wait for, in the running program, beside activity records.
//!
//! Structures are those of `cupti_pcsampling.h` of CUDA 13.0. The functions are looked up apart from [`crate::Api`]: a libcupti
//! without them records activity all the same.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;

use crate::api::{Code, SUCCESS, describe};
use crate::library::{Library, Visibility};
use crate::pm::OUT_OF_MEMORY;

/// Versions of CUPTI and branches of the driver with which every kernel was recorded beside it, by a C++ probe on an H100.
/// `tests/gpu/stalls.py` asks the same of cuptop.
const TRIED: &[(u32, u32)] = &[(130_001, 580)];

/// Why stalls are not sampled by this version of CUPTI beside this branch of the driver; nothing where that was tried.
pub fn untried(version: u32, branch: Option<u32>) -> Option<String> {
    let is_tried = |it: &(u32, u32)| (it.0, Some(it.1)) == (version, branch);
    let branch = branch.map_or_else(|| "unknown".to_owned(), |it| it.to_string());
    (!TRIED.iter().any(is_tried)).then(|| {
        format!(
            "this was not tried with CUPTI {version} and driver {branch}, but with 13.0.1 and 580"
        )
    })
}

/// Places of code that one fetch brings, at most.
const PLACES: usize = 10_000;
/// Fetches in a row, at most: places are more than the room for them.
const FETCHES: usize = 20;
/// `CUPTI_STALL_REASON_STRING_SIZE`.
const NAME: usize = 128;
/// What every reason's name begins with.
const PREFIX: &str = "smsp__pcsamp_warps_issue_stalled_";

/// `cuCtxPushCurrent` and the like, as the driver has them.
mod cuda {
    use super::{c_char, c_void};
    crate::functions! {
        /// What is asked of the driver.
        pub(super) struct Driver
        required {
            /// `cuDeviceGetCount(count)`
            device_count = c"cuDeviceGetCount" (*mut i32);
            /// `cuDeviceGetPCIBusId(text, bytes, device)`
            bus = c"cuDeviceGetPCIBusId" (*mut c_char, i32, i32);
            /// `cuDevicePrimaryCtxGetState(device, flags, is active)`
            primary_state = c"cuDevicePrimaryCtxGetState" (i32, *mut u32, *mut i32);
            /// `cuDevicePrimaryCtxRetain(context, device)`
            primary_retain = c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, i32);
            /// `cuDevicePrimaryCtxRelease_v2(device)`
            primary_release = c"cuDevicePrimaryCtxRelease_v2" (i32);
            /// `cuCtxPushCurrent_v2(context)`
            push = c"cuCtxPushCurrent_v2" (*mut c_void);
            /// `cuCtxPopCurrent_v2(context)`
            pop = c"cuCtxPopCurrent_v2" (*mut *mut c_void);
        }
        optional {}
    }
}

crate::functions! {
    /// The functions of PC sampling; each takes its [`StallParams`].
    struct Functions
    required {
        /// `cuptiPCSamplingEnable`
        enable = c"cuptiPCSamplingEnable" (*mut c_void);
        /// `cuptiPCSamplingDisable`
        disable = c"cuptiPCSamplingDisable" (*mut c_void);
        /// `cuptiPCSamplingGetNumStallReasons`
        count_reasons = c"cuptiPCSamplingGetNumStallReasons" (*mut c_void);
        /// `cuptiPCSamplingGetStallReasons`
        reasons = c"cuptiPCSamplingGetStallReasons" (*mut c_void);
        /// `cuptiPCSamplingSetConfigurationAttribute`
        configure = c"cuptiPCSamplingSetConfigurationAttribute" (*mut c_void);
        /// `cuptiPCSamplingGetData`
        fetch = c"cuptiPCSamplingGetData" (*mut c_void);
    }
    optional {}
}

/// How all parameters begin; then what is asked.
#[repr(C)]
struct StallParams<T> {
    size: usize,
    private: *mut c_void,
    context: *mut c_void,
    asked: T,
}

/// Calls a function of `context` with what is asked.
fn call<T>(
    function: unsafe extern "C" fn(*mut c_void) -> Code,
    context: *mut c_void,
    asked: T,
) -> Code {
    let mut params = StallParams {
        size: size_of::<StallParams<T>>(),
        private: std::ptr::null_mut(),
        context,
        asked,
    };
    // SAFETY: the structure is the one of the function's header and says its size; pointers in it are the caller's live ones.
    unsafe { function((&raw mut params).cast()) }
}

/// `CUpti_PCSamplingStallReason`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Reason {
    index: u32,
    samples: u32,
}

/// `CUpti_PCSamplingPCData`.
#[repr(C)]
#[derive(Default)]
struct Place {
    size: usize,
    cubin: u64,
    offset: u64,
    function: u32,
    pad: u32,
    name: *const c_char,
    count: usize,
    reasons: *mut Reason,
    correlation: u32,
}

/// `CUpti_PCSamplingData`.
#[repr(C)]
#[derive(Default)]
struct Data {
    size: usize,
    room: usize,
    total: u64,
    dropped: u64,
    count: usize,
    remaining: usize,
    range: u64,
    places: *mut Place,
    others: u64,
    is_full: u8,
}

/// `CUpti_PCSamplingConfigurationInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    kind: u32,
    status: u32,
    value: [usize; 3],
}

/// What one fetch brings. It is CUPTI's to write into, and never moves.
struct Lot {
    data: Data,
    places: Vec<Place>,
    /// The places' reasons, so many for each.
    _reasons: Vec<Reason>,
}

impl Lot {
    fn of(count: usize) -> Lot {
        let mut reasons = vec![Reason::default(); PLACES * count];
        let first = reasons.as_mut_ptr();
        let place = |at| Place {
            size: size_of::<Place>(),
            reasons: first.wrapping_add(at * count),
            ..Place::default()
        };
        let mut places: Vec<Place> = (0..PLACES).map(place).collect();
        let data = Data {
            size: size_of::<Data>(),
            room: PLACES,
            places: places.as_mut_ptr(),
            ..Data::default()
        };
        Lot {
            data,
            places,
            _reasons: reasons,
        }
    }
}

/// A source line: its file, and its number there.
pub type SourceLine = Option<(Arc<str>, u32)>;
/// Samples by function, as CUPTI names it, by its lines, and by reason, in the order of [`StallSampler::reasons`].
pub type Samples = HashMap<Vec<u8>, HashMap<SourceLine, Vec<u64>>>;

/// The sampler of one context, the primary one of a device.
pub struct StallSampler {
    functions: Functions,
    driver: cuda::Driver,
    device: i32,
    context: *mut c_void,
    /// What warps wait for, by names as "long_scoreboard".
    pub reasons: Vec<String>,
    /// For CUPTI's index of a reason its place above.
    places_of: HashMap<u32, usize>,
    lot: Box<Lot>,
    /// That no other process samples this GPU.
    _alone: UnixDatagram,
}

// SAFETY: the driver and CUPTI take a context from any thread; all else is this structure's own.
unsafe impl Send for StallSampler {}

impl StallSampler {
    /// How many devices there are; none before the program initialises CUDA.
    pub fn devices() -> i32 {
        let mut count = 0;
        // SAFETY: writes one number.
        let code = driver().map(|it| unsafe { (it.device_count)(&raw mut count) });
        if code == Ok(SUCCESS) { count } else { 0 }
    }

    /// Begins to sample a device, once the program has made its primary context; nothing before.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn start(libcupti: &Path, device: i32) -> Result<Option<StallSampler>, String> {
        let driver = driver()?;
        if !is_active(&driver, device) {
            return Ok(None);
        }
        let alone = alone(&driver, device)?;
        let library = Library::open(libcupti, Visibility::Local)?;
        // SAFETY: what lies under the name of libcupti is taken for one.
        let functions = unsafe { Functions::resolve(library) };
        let functions =
            functions.map_err(|it| format!("this libcupti has no {}", it.to_string_lossy()))?;
        let mut context = std::ptr::null_mut();
        // SAFETY: writes one handle. What is retained is released at once: the program keeps it, and it is asked for before each use.
        unsafe {
            (driver.primary_retain)(&raw mut context, device);
            (driver.primary_release)(device);
            (driver.push)(context);
        }
        let begun = StallSampler::begin(functions, driver, device, context, alone);
        // SAFETY: takes away what was pushed.
        unsafe { (driver.pop)(&raw mut context) };
        begun.map(Some)
    }

    fn begin(
        functions: Functions,
        driver: cuda::Driver,
        device: i32,
        context: *mut c_void,
        alone: UnixDatagram,
    ) -> Result<StallSampler, String> {
        insist("sample", call(functions.enable, context, ()))?;
        let listed = listed(&functions, context);
        if listed.is_err() {
            call(functions.disable, context, ());
        }
        let mut listed = listed?;
        let count = listed.len();
        let mut sampler = StallSampler {
            functions,
            driver,
            device,
            context,
            places_of: listed.iter().map(|it| it.0).zip(0..).collect(),
            reasons: listed
                .iter_mut()
                .map(|it| std::mem::take(&mut it.1))
                .collect(),
            lot: Box::new(Lot::of(count)),
            _alone: alone,
        };
        let data: *mut Data = &raw mut sampler.lot.data;
        let mut indices: Vec<u32> = listed.iter().map(|it| it.0).collect();
        let attribute = |kind, value| Attribute {
            kind,
            status: 0,
            value,
        };
        // The collection is continuous, of all reasons, into this structure.
        let mut attributes = [
            attribute(5, [1, 0, 0]),
            attribute(2, [count, indices.as_mut_ptr() as usize, 0]),
            attribute(8, [data as usize, 0, 0]),
        ];
        let asked = Configured {
            count: attributes.len(),
            attributes: attributes.as_mut_ptr(),
        };
        let code = call(functions.configure, context, asked);
        if code != SUCCESS {
            call(functions.disable, context, ());
        }
        insist("be configured", code).map(|()| sampler)
    }

    /// Adds what was sampled since the last time. `line` takes a module's number, a function of it and how far into its code.
    /// Returns how many samples were lost.
    ///
    /// # Errors
    /// CUPTI's code: from here on nothing is known, not even whether kernels are recorded.
    pub fn fetch(
        &mut self,
        into: &mut Samples,
        line: impl Fn(u64, &[u8], u64) -> SourceLine,
    ) -> Result<u64, Code> {
        let mut lost = 0;
        for _ in 0..FETCHES {
            // A program that reset its device has no context to ask for.
            if !is_active(&self.driver, self.device) {
                break;
            }
            let data: *mut Data = &raw mut self.lot.data;
            match call(self.functions.fetch, self.context, data) {
                SUCCESS => {}
                // The hardware's buffer or ours was full: what is in ours counts.
                OUT_OF_MEMORY => lost += 1,
                code => return Err(code),
            }
            lost += self.lot.data.dropped;
            let count = self.lot.data.count.min(PLACES);
            for place in &self.lot.places[..count] {
                self.add(place, into, &line);
            }
            if self.lot.data.remaining == 0 {
                break;
            }
        }
        Ok(lost)
    }

    fn add(&self, place: &Place, into: &mut Samples, line: impl Fn(u64, &[u8], u64) -> SourceLine) {
        if place.name.is_null() {
            return;
        }
        // SAFETY: CUPTI's text, which it keeps; it is copied at once.
        let name = unsafe { CStr::from_ptr(place.name) }.to_bytes();
        if !into.contains_key(name) {
            into.insert(name.to_vec(), HashMap::new());
        }
        let Some(lines) = into.get_mut(name) else {
            return;
        };
        let sums = lines.entry(line(place.cubin, name, place.offset));
        let sums = sums.or_insert_with(|| vec![0; self.reasons.len()]);
        // SAFETY: the place's own room, of so many reasons.
        let reasons = unsafe {
            std::slice::from_raw_parts(place.reasons, place.count.min(self.reasons.len()))
        };
        for it in reasons {
            if let Some(&at) = self.places_of.get(&it.index) {
                sums[at] += u64::from(it.samples);
            }
        }
    }

    /// Leaves it as it is: CUPTI may write into its memory until the program ends. A program that goes on is not spared that:
    /// after `cuptiPCSamplingDisable` its threads stood in a lock, on an H100 with CUPTI 13.0.1.
    pub fn leave(self) {
        std::mem::forget(self);
    }
}

/// What only one process has for each GPU, for as long as it lives. On an H200 CUPTI 13.0.1 allowed a program beside its parent, which
/// was sampled on the same GPU, and the program crashed.
fn alone(driver: &cuda::Driver, device: i32) -> Result<UnixDatagram, String> {
    let mut bus: [c_char; 32] = [0; 32];
    // SAFETY: writes at most so many bytes.
    let code = unsafe { (driver.bus)(bus.as_mut_ptr(), bus.len() as i32, device) };
    insist("tell where the GPU is", code)?;
    let bus = bus.map(|it| it.cast_unsigned());
    let bus = CStr::from_bytes_until_nul(&bus).unwrap_or_default();
    let name = [b"cuptop-stalls-", bus.to_bytes()].concat();
    // A name without a file goes with its process, however that ends.
    let held = SocketAddr::from_abstract_name(name).and_then(|it| UnixDatagram::bind_addr(&it));
    held.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            "another process is sampled there, and a GPU samples one".to_owned()
        }
        _ => format!("it cannot be told whether another process is sampled there: {error}"),
    })
}

/// `numStallReasons`, `stallReasonIndex`, `stallReasons`.
#[repr(C)]
struct Listed {
    count: usize,
    indices: *mut u32,
    names: *mut *mut u8,
}

/// `numAttributes`, `pPCSamplingConfigurationInfo`.
#[repr(C)]
struct Configured {
    count: usize,
    attributes: *mut Attribute,
}

fn insist(what: &str, code: Code) -> Result<(), String> {
    match code {
        SUCCESS => Ok(()),
        code => Err(format!("CUPTI refuses to {what}: {}", describe(code))),
    }
}

/// The reasons that can be told apart, with CUPTI's index of each.
fn listed(functions: &Functions, context: *mut c_void) -> Result<Vec<(u32, String)>, String> {
    let mut count = 0_usize;
    insist(
        "count reasons",
        call(functions.count_reasons, context, &raw mut count),
    )?;
    let (mut indices, mut texts) = (vec![0_u32; count], vec![[0_u8; NAME]; count]);
    let mut names: Vec<*mut u8> = texts.iter_mut().map(|it| it.as_mut_ptr()).collect();
    let asked = Listed {
        count,
        indices: indices.as_mut_ptr(),
        names: names.as_mut_ptr(),
    };
    insist("name reasons", call(functions.reasons, context, asked))?;
    Ok(indices
        .into_iter()
        .zip(texts.iter().map(|it| reason(it)))
        .collect())
}

fn driver() -> Result<cuda::Driver, String> {
    let library = crate::driver::open().map_err(|error| error.to_string())?;
    // SAFETY: the signatures are those of cuda.h.
    unsafe { cuda::Driver::resolve(library) }
        .map_err(|it| format!("libcuda.so.1 has no {}", it.to_string_lossy()))
}

/// Whether a device has its primary context.
fn is_active(driver: &cuda::Driver, device: i32) -> bool {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: writes two numbers; it makes no context.
    let code = unsafe { (driver.primary_state)(device, &raw mut flags, &raw mut active) };
    code == SUCCESS && active != 0
}

/// "long_scoreboard" of a reason's whole name.
fn reason(text: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(text)
        .unwrap_or_default()
        .to_string_lossy();
    text.strip_prefix(PREFIX).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_laid_out_as_in_nvidias_header() {
        // From cupti_pcsampling.h of CUDA 13.0, by sizeof in C++.
        assert_eq!(
            [
                size_of::<Place>(),
                size_of::<Data>(),
                size_of::<Attribute>()
            ],
            [64, 80, 32]
        );
        assert_eq!(
            [
                size_of::<StallParams<()>>(),
                size_of::<StallParams<Listed>>()
            ],
            [24, 48]
        );
        assert_eq!(
            reason(b"smsp__pcsamp_warps_issue_stalled_drain\0\0"),
            "drain"
        );
    }
}
