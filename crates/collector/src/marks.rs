//! NVTX ranges, put together from their two ends.

use std::collections::HashMap;

use activity::{Activity, Range, RangeKind, Span, What};
use cupti_sys::{kinds, records};

use crate::ranges::RangeWatch;
use recording::file::Writer;

/// Ranges that may be open at a time.
const MOST_OPEN: usize = 1 << 16;

#[derive(Debug)]
struct Open {
    start: i64,
    name: Box<[u8]>,
    thread: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Marks {
    open: HashMap<u32, Open>,
    /// The ranges inside which alone is recorded.
    pub(crate) watch: Option<RangeWatch>,
}

impl Marks {
    pub(crate) fn watching(watch: Option<RangeWatch>) -> Marks {
        Marks {
            watch,
            ..Marks::default()
        }
    }

    /// One end of a range, or a mark. Returns how many records are lost by it.
    pub(crate) fn marker(
        &mut self,
        it: &records::Marker,
        name: &[u8],
        time: i64,
        writer: &mut Writer,
    ) -> u64 {
        let thread = match it.object_kind {
            kinds::object::THREAD => it.object[1],
            _ => 0,
        };
        let here = || Open {
            start: time,
            name: name.into(),
            thread,
        };
        if it.flags & kinds::marker::START != 0 {
            if let Some(watch) = &mut self.watch {
                watch.begin(it.id, name);
            }
            if self.open.len() >= MOST_OPEN {
                return 1;
            }
            // An id that comes again while its range is open: the first one's end was lost.
            return u64::from(self.open.insert(it.id, here()).is_some());
        }
        let open = if it.flags & kinds::marker::END != 0 {
            if let Some(watch) = &mut self.watch {
                watch.end(it.id);
            }
            self.open.remove(&it.id)
        } else {
            Some(here())
        };
        if let Some(open) = &open {
            write(open, time, 0, writer);
        }
        u64::from(open.is_none())
    }

    /// Of ranges that are open at the end of the program only the beginning is known. A library may have left one by a call that
    /// CUPTI does not record (NCCL 2.28 does, of `ncclCommInitRankConfig`). So nothing says how far it reached.
    pub(crate) fn end(&mut self, writer: &mut Writer) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by_key(|open| open.start);
        for open in open {
            write(&open, open.start, Range::OPEN, writer);
        }
    }
}

fn write(open: &Open, end: i64, index: u32, writer: &mut Writer) {
    let name = writer.name(&open.name);
    let range = Range {
        kind: RangeKind::Nvtx,
        name,
        thread: open.thread,
        index,
    };
    let span = Span::new(open.start, end);
    writer.record(&Activity::new(span, 0, What::Range(range)));
}
