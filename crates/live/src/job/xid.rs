//! Errors of GPUs (Xids) as NVML tells them from now on. What was before only root can read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crossbeam_channel::Receiver;
use nvml_wrapper::enums::event::XidError;

use super::is_on;
use crate::nvml::{self, Nvml, XidEvents};
use activity::feed::Joined;

/// How often is asked whether there are any.
const PAUSE: Duration = Duration::from_millis(200);
/// Errors that are kept: one that comes again and again tells no more.
const MOST: usize = 32;
/// NVML's word for an error without a number.
const UNKNOWN: u64 = 999;

/// An error of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid {
    /// By `nvidia-smi`'s number.
    pub gpu: u32,
    pub code: u64,
    pub at: SystemTime,
}

impl Xid {
    /// NVIDIA's words for its code, of those that end programs most; empty for others.
    pub fn words(&self) -> &'static str {
        match self.code {
            13 => "graphics engine exception",
            31 => "GPU memory page fault",
            43 => "GPU stopped processing",
            45 => "preemptive cleanup, due to previous errors",
            48 => "double bit ECC error",
            63 => "ECC page retirement or row remapping recorded",
            64 => "ECC page retirement or row remapping failed",
            74 => "NVLink error",
            79 => "GPU has fallen off the bus",
            94 => "contained ECC error",
            95 => "uncontained ECC error",
            119 => "GSP RPC timeout",
            _ => "",
        }
    }
}

/// What was seen, or why nothing can be; nothing before that is known.
type SeenXids = Option<Result<Vec<Xid>, String>>;

/// Who watches this machine's GPUs until this is dropped.
#[derive(Debug)]
pub(crate) struct Xids {
    seen: Arc<Mutex<SeenXids>>,
    _thread: Joined,
}

impl Xids {
    /// Begins to watch. NVML is loaded beside the first looks, which wait for nothing.
    pub(crate) fn watch(
        load: impl FnOnce() -> Result<Nvml, String> + Send + 'static,
    ) -> io::Result<Xids> {
        let seen = Arc::default();
        let into = Arc::clone(&seen);
        let watch = move |stopped: &Receiver<()>| {
            let events = load().and_then(|it| it.xid_events().map_err(|it| nvml::describe(&it)));
            *whole(&into) = Some(events.as_ref().map(|_| Vec::new()).map_err(Clone::clone));
            let events = events.unwrap_or_default();
            while !events.is_empty() && is_on(stopped, PAUSE) {
                if let Some(Ok(seen)) = &mut *whole(&into) {
                    take(&events, seen);
                }
            }
        };
        let _thread = Joined::until_dropped("cuptop-xid", watch)?;
        Ok(Xids { seen, _thread })
    }

    pub(crate) fn seen(&self) -> SeenXids {
        whole(&self.seen).clone()
    }
}

/// A thread that panicked left it whole.
fn whole(seen: &Mutex<SeenXids>) -> MutexGuard<'_, SeenXids> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what has come.
fn take(events: &[(u32, XidEvents)], seen: &mut Vec<Xid>) {
    for &(gpu, ref events) in events {
        while seen.len() < MOST
            && let Ok(event) = events.wait(1)
        {
            let code = match event.event_data {
                Some(XidError::Value(code)) => code,
                _ => UNKNOWN,
            };
            let at = SystemTime::now();
            seen.push(Xid { gpu, code, at });
        }
    }
}
