//! The entry points of the shared library that is loaded into traced programs.
//!
//! The CUDA driver loads it in `cuInit` (`CUDA_INJECTION64_PATH`) and calls `InitializeInjection`. NVTX loads it at its
//! first call (`NVTX_INJECTION64_PATH`) and calls `InitializeInjectionNvtx2`. That is passed on to the libcupti that the
//! collector uses, so that both always use the same one. Both may run inside `cuInit`: no CUDA function is called.
//! Whatever goes wrong, the program runs on, untraced.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, OnceLock};

use cupti_sys::{Caller, Cupti, LoadError};

use crate::collector::Collector;
use crate::fork;
use crate::options::{Ending, Options};

static START: Once = Once::new();
pub(crate) static COLLECTOR: Mutex<Option<Collector>> = Mutex::new(None);
static CUPTI: OnceLock<Result<Cupti, LoadError>> = OnceLock::new();

fn the_cupti() -> Result<Cupti, LoadError> {
    CUPTI
        .get_or_init(|| Cupti::load(Caller::InsideInjection))
        .clone()
}

/// Called by the CUDA driver when the program initialises CUDA. Always says 1: the program is to go on.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    let _ = catch_unwind(|| START.call_once(begin));
    1
}

fn begin() {
    let Some(options) = Options::from_environment(|name| std::env::var_os(name)) else {
        return;
    };
    // Why it could not start is in the recording; there is nobody here to tell.
    let started = without_limit_signal(|| Collector::start_with(options, |_| the_cupti()));
    if let Ok(collector) = started {
        if let Ok(mut place) = COLLECTOR.lock() {
            *place = Some(collector);
        }
        // SAFETY: the handler lives as long as the library, which is never unloaded (linked with `nodelete`).
        unsafe { libc::atexit(at_exit) };
    }
}

/// Runs what writes on a thread of the program. There, too, a file size limit is an error of the write: its signal is held
/// back, and taken if it came.
fn without_limit_signal<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: plain old data, filled by the calls that follow.
    let (mut held, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>() };
    // SAFETY: both sets are valid places.
    unsafe {
        libc::sigemptyset(&raw mut held);
        libc::sigaddset(&raw mut held, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, &raw mut before);
    }
    let result = body();
    // SAFETY: a time of zero, for which nobody waits.
    let now = unsafe { std::mem::zeroed::<libc::timespec>() };
    // SAFETY: the sets of above. A signal that the program itself holds back stays.
    unsafe {
        if libc::sigismember(&raw const before, libc::SIGXFSZ) == 0 {
            libc::sigtimedwait(&raw const held, std::ptr::null_mut(), &raw const now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    result
}

pub(crate) extern "C" fn at_exit() {
    if fork::is_child() {
        return;
    }
    let _ = catch_unwind(|| {
        let collector = COLLECTOR.lock().ok().and_then(|mut place| place.take());
        if let Some(collector) = collector {
            collector.finish(Ending::Exit);
        }
    });
}

/// Called by NVTX at the program's first NVTX call. Says 1 when its calls will be recorded.
///
/// # Safety
/// `table` must be NVTX's export table getter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(table: *mut c_void) -> c_int {
    let pass_on = AssertUnwindSafe(|| {
        let cupti = the_cupti().ok()?;
        // SAFETY: libcupti's own function of the same meaning.
        Some(unsafe { cupti.api.nvtx_injection?(table) })
    });
    match catch_unwind(pass_on) {
        Ok(Some(1)) => 1,
        _ => 0,
    }
}
