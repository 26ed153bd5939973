//! A gate before the driver's calls that give the GPU work.
//!
//! libcupti 12.9 to 13.1 crash a while after kernels are switched off where kernels are under way at that moment. They read time
//! stamps from memory that is gone by then. 4 of 5 programs crashed within 350 times of attaching. So the program's calls wait
//! for a moment at their entry before recording goes off. Those that were begun return, and what they launched is recorded.

mod inside;

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cupti_sys::Cupti;
use cupti_sys::kinds::{domain, resource};

use crate::setup::{Callbacks, Subscription};
use inside::Inside;

mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
}

/// How long calls are counted before they are held: one that began before is through by then.
const COUNTED: Duration = Duration::from_millis(20);
/// How long a call is held at most, whatever happens to whoever holds it.
const LONGEST: Duration = Duration::from_millis(300);
/// How often is looked.
const LOOK: Duration = Duration::from_micros(50);

/// Each call of the runtime API makes one of these.
const CALLS: Callbacks = Callbacks::Launches(domain::DRIVER_API);

/// Whether calls wait.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Whether calls are counted, and whether they are noticed at all times for another reason.
static IS_USED: AtomicBool = AtomicBool::new(false);
static IS_KEPT: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The turn in which this thread is in a call of the runtime API. The driver's within it have correlation ids that no record has.
    /// Of a call that lasts longer than its turn no end is told.
    static IN_RUNTIME: Cell<u32> = const { Cell::new(0) };
}
static INSIDE: Inside = Inside(AtomicU64::new(0));

/// `CUpti_CallbackData`, the same from 11.8 to 13.5.
#[repr(C)]
struct Call {
    /// 0 at the entry, 1 at the exit.
    site: u32,
    function_name: *const c_char,
    params: *const c_void,
    result: *const c_void,
    symbol_name: *const c_char,
    context: *const c_void,
    context_id: u32,
    /// A number that the entry leaves for the exit.
    kept: *mut u64,
    correlation: u32,
}

/// CUPTI's callback, for all that is asked for: entry and exit of the calls that are noticed, modules, nodes of graphs.
pub(crate) unsafe extern "C" fn called(
    _data: *mut c_void,
    of: u32,
    id: u32,
    details: *const c_void,
) {
    if of == domain::RESOURCE {
        return match id {
            resource::MODULE_LOADED => crate::cubin::loaded(details),
            _ => crate::nodes::called(id, details),
        };
    }
    if ![domain::DRIVER_API, domain::RUNTIME_API].contains(&of) || details.is_null() {
        return;
    }
    // SAFETY: for these domains CUPTI passes this structure, which lives until the call returns.
    let call = unsafe { &*details.cast::<Call>() };
    let is_entry = call.site == 0;
    let is_of_runtime = of == domain::RUNTIME_API;
    if is_entry && begins_work(is_of_runtime, crate::nodes::turn()) {
        crate::nodes::launched(call.correlation);
    }
    if is_of_runtime {
        if !is_entry {
            IN_RUNTIME.set(0);
        }
        return;
    }
    // SAFETY: null, or a place of this call's own.
    let Some(kept) = (unsafe { call.kept.as_mut() }) else {
        return;
    };
    if is_entry {
        let is_used = IS_USED.load(Ordering::SeqCst);
        *kept = is_used.then(enter).unwrap_or_default();
    } else if *kept != 0 {
        INSIDE.leave(*kept);
    }
}

/// Whether the entry of a call is that of the outermost one.
fn begins_work(is_of_runtime: bool, turn: u32) -> bool {
    let within = IN_RUNTIME.get();
    if is_of_runtime {
        IN_RUNTIME.set(turn);
    }
    is_of_runtime || within == 0 || within != turn
}

/// Goes in once the gate is open, or after the longest time. What comes back is for its end.
fn enter() -> u64 {
    let begin = Instant::now();
    loop {
        let entered = INSIDE.enter();
        if !CLOSED.load(Ordering::SeqCst) || begin.elapsed() > LONGEST {
            return entered;
        }
        INSIDE.leave(entered);
        std::thread::sleep(LOOK);
    }
}

/// Has calls noticed also while nobody holds them, or not.
pub(crate) fn keep_noticed(cupti: &Cupti, subscription: &Subscription, on: bool) {
    IS_KEPT.store(on, Ordering::SeqCst);
    for api in [domain::RUNTIME_API, domain::DRIVER_API]
        .iter()
        .filter(|_| on)
    {
        Callbacks::Launches(*api).set(cupti, subscription, true);
    }
}

/// Holds the program's calls until it is dropped.
pub(crate) struct Held<'a> {
    cupti: &'a Cupti,
    subscription: &'a Subscription,
}

/// Waits until no call is inside, and holds all that come.
pub(crate) fn hold<'a>(cupti: &'a Cupti, subscription: &'a Subscription) -> Held<'a> {
    INSIDE.begin_turn();
    IS_USED.store(true, Ordering::SeqCst);
    CALLS.set(cupti, subscription, true);
    std::thread::sleep(COUNTED);
    CLOSED.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    while !INSIDE.is_empty() && begin.elapsed() < LONGEST / 2 {
        std::thread::sleep(LOOK);
    }
    Held {
        cupti,
        subscription,
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        CLOSED.store(false, Ordering::SeqCst);
        IS_USED.store(false, Ordering::SeqCst);
        if !IS_KEPT.load(Ordering::SeqCst) {
            CALLS.set(self.cupti, self.subscription, false);
        }
    }
}

#[cfg(test)]
mod tests {
    mod model;

    use super::*;
    use crossbeam_channel::{RecvTimeoutError, bounded};

    fn at(site: u32, kept: &mut u64) {
        let call = Call {
            site,
            function_name: std::ptr::null(),
            params: std::ptr::null(),
            result: std::ptr::null(),
            symbol_name: std::ptr::null(),
            context: std::ptr::null(),
            context_id: 0,
            kept,
            correlation: 0,
        };
        // SAFETY: the structure is CUPTI's, and lives until the call returns.
        unsafe {
            called(
                std::ptr::null_mut(),
                domain::DRIVER_API,
                0,
                (&raw const call).cast(),
            )
        };
    }

    /// A call of the runtime API lasts while its collector leaves, and nobody tells of its end.
    #[test]
    fn calls_of_the_driver_count_again_in_another_turn() {
        assert!(begins_work(true, 7) && !begins_work(false, 7));
        assert!(begins_work(false, 8) && begins_work(false, 0));
    }

    #[test]
    fn a_call_waits_before_a_closed_gate_and_counts_while_it_is_inside() {
        IS_USED.store(true, Ordering::SeqCst);
        INSIDE.begin_turn();
        let mut early = 0;
        at(0, &mut early);
        assert!(!INSIDE.is_empty());
        at(1, &mut early);
        assert!(INSIDE.is_empty());
        // One that goes on from an earlier turn does not count in the next, and one whose entry was not noticed never did.
        at(0, &mut early);
        INSIDE.begin_turn();
        at(1, &mut early);
        at(1, &mut 0);
        assert!(INSIDE.is_empty());
        CLOSED.store(true, Ordering::SeqCst);
        let (sent, went_in) = bounded(1);
        let late = std::thread::spawn(move || {
            let mut kept = 0;
            at(0, &mut kept);
            sent.send(()).expect("somebody waits");
            at(1, &mut kept);
        });
        let a_while = LONGEST / 10;
        assert_eq!(
            went_in.recv_timeout(a_while),
            Err(RecvTimeoutError::Timeout)
        );
        CLOSED.store(false, Ordering::SeqCst);
        assert_eq!(went_in.recv_timeout(100 * LONGEST), Ok(()));
        late.join().expect("no panic");
        assert!(INSIDE.is_empty());
        // Nobody is held for ever.
        CLOSED.store(true, Ordering::SeqCst);
        let begin = Instant::now();
        at(0, &mut early);
        assert!(begin.elapsed() >= LONGEST);
        CLOSED.store(false, Ordering::SeqCst);
    }
}
