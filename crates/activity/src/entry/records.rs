//! The fields of each record, and where they stand.

use super::{Field, UNIT, Unreadable};
use crate::{
    Activity, Copy, EventRecord, Graph, HostCall, Kernel, MemoryOp, Memset, Overhead, Range, Span,
    Sync, What,
};

/// Tag, kind and `field @ offset`.
macro_rules! records {
    ($($tag:literal $kind:ident($type:ident) { $($field:ident @ $at:literal),* })*) => {
        #[inline]
        fn put(what: &What, unit: &mut [u8; UNIT]) {
            match *what {
                $(What::$kind(it) => {
                    unit[0] = $tag;
                    $(it.$field.put(unit, $at);)*
                })*
            }
        }

        #[inline]
        fn get(unit: &[u8; UNIT]) -> Option<What> {
            Some(match unit[0] {
                $($tag => What::$kind($type { $($field: Field::get(unit, $at)?),* }),)*
                _ => return None,
            })
        }
    };
}

records! {
    1 Kernel(Kernel) { place @ 24, shape @ 36, graph @ 40, node @ 48 }
    2 Copy(Copy) { place @ 24, peer @ 36, graph @ 40, node @ 44, bytes @ 48, direction @ 56, from @ 57, to @ 58, is_async @ 59 }
    3 Memset(Memset) { place @ 24, graph @ 40, node @ 44, bytes @ 48 }
    4 Call(HostCall) { thread @ 24, name @ 28, code @ 32 }
    5 Sync(Sync) { kind @ 24, context @ 28, stream @ 32, event @ 36 }
    6 Overhead(Overhead) { thread @ 24, name @ 28 }
    7 Memory(MemoryOp) { place @ 24, address @ 40, bytes @ 48, action @ 56, kind @ 57, is_async @ 59 }
    8 Event(EventRecord) { place @ 24, event @ 36 }
    9 Range(Range) { thread @ 24, name @ 28, index @ 32, kind @ 36 }
    10 Graph(Graph) { place @ 24, graph @ 40 }
}

/// Appends a record's 64 bytes.
#[inline]
pub fn encode_record(record: &Activity, bytes: &mut Vec<u8>) {
    let mut unit = [0; UNIT];
    unit[2] = 1;
    record.correlation.put(&mut unit, 4);
    record.span.start.put(&mut unit, 8);
    record.span.end.put(&mut unit, 16);
    put(&record.what, &mut unit);
    bytes.extend_from_slice(&unit);
}

#[inline]
pub(super) fn decode(unit: &[u8; UNIT]) -> Result<Activity, Unreadable> {
    let what = get(unit).ok_or(Unreadable::UnknownRecord)?;
    let [start, end] = [8, 16].map(|at| i64::get(unit, at).unwrap_or(-1));
    if start > end || start < 0 {
        return Err(Unreadable::Damaged);
    }
    let correlation = u32::get(unit, 4).unwrap_or(0);
    Ok(Activity::new(Span { start, end }, correlation, what))
}
