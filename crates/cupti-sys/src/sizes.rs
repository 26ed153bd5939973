//! How long a record of each kind is in the libcupti at hand.
//!
//! A library always fills the newest layout that it knows, and its version number does not identify
//! layouts. The libraries of 11.8, 12.0 and 12.1 all call themselves 18, with different kernel records. So the library
//! is asked: by `cuptiActivityGetStructSize` where it has it (13.2 and later), else by letting
//! `cuptiActivityGetNextRecord` step over a made-up record. A table of known sizes cross-checks the
//! answers and stands in where a library refuses to answer.

use crate::api::{Api, SUCCESS};
use crate::kinds;

/// Record sizes by kind; 0 where the kind is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSizes {
    sizes: [u16; kinds::LIMIT as usize],
    /// Differences between what the library said and what the table says, in words. The library is believed.
    pub surprises: Vec<String>,
}

/// Records lie at multiples of 8 and none is longer than this today (the longest is 304).
const LONGEST: usize = 512;

impl RecordSizes {
    /// Asks the library. `version` is what `cuptiGetVersion` said.
    pub fn of(api: &Api, version: u32) -> RecordSizes {
        let mut answer = RecordSizes {
            sizes: [0; kinds::LIMIT as usize],
            surprises: Vec::new(),
        };
        for &(kind, _) in kinds::LAYOUTS {
            let told = match api.struct_size {
                Some(_) => by_struct_size(api, kind),
                None => by_stepping(api, kind),
            };
            let expected = known_size(kind, version);
            if let (Some(told), Some(expected)) = (told, expected)
                && told != expected
            {
                answer.surprises.push(format!(
                    "records of kind {kind} are {told} bytes long in libcupti {version}, expected {expected}"
                ));
            }
            answer.sizes[kind as usize] = told.or(expected).unwrap_or(0);
        }
        answer
    }

    /// The length of a record of `kind` in bytes; `None` when it is not known.
    pub fn get(&self, kind: u32) -> Option<usize> {
        match self.sizes.get(kind as usize) {
            Some(&size) if size > 0 => Some(usize::from(size)),
            _ => None,
        }
    }
}

fn by_struct_size(api: &Api, kind: u32) -> Option<u16> {
    let ask = api.struct_size?;
    let mut size = 0;
    // SAFETY: writes one size_t. Version 0 asks for the layout that the library writes.
    let code = unsafe { ask(kind, 0, &raw mut size) };
    (code == SUCCESS && size > 0 && size <= LONGEST)
        .then(|| u16::try_from(size).ok())
        .flatten()
}

/// Puts a record of `kind` at the start of an empty buffer, and a record of another kind (a context)
/// at each possible distance. The distance at which the library finds it is the size.
fn by_stepping(api: &Api, kind: u32) -> Option<u16> {
    const LENGTH: usize = 64 * 1024;
    let mut buffer = vec![0_u64; LENGTH / 8];
    let start = buffer.as_mut_ptr().cast::<u8>();
    let step = |record: *mut u8| {
        let mut next = record;
        // SAFETY: the buffer is LENGTH bytes of initialised memory; the library only reads it.
        let code = unsafe { (api.get_next_record)(start, LENGTH, &raw mut next) };
        (code == SUCCESS).then_some(next)
    };
    let put = |at: usize, value: u32| {
        // SAFETY: `at` is a multiple of 8 far inside the buffer.
        unsafe { start.add(at).cast::<u32>().write(value) }
    };
    put(0, kind);
    if step(std::ptr::null_mut()) != Some(start) {
        return None;
    }
    for at in (8..=LONGEST).step_by(8) {
        put(at, kinds::CONTEXT);
        let found = step(start);
        put(at, 0);
        if found == Some(start.wrapping_add(at)) {
            return u16::try_from(at).ok();
        }
    }
    None
}

/// What the table says for a version: what [`RecordSizes::of`] falls back to.
pub fn known_size(kind: u32, version: u32) -> Option<u16> {
    let (_, layouts) = kinds::LAYOUTS.iter().find(|(known, _)| *known == kind)?;
    let found = layouts.iter().rev().find(|(from, _)| *from <= version);
    found.map(|(_, size)| *size)
}
