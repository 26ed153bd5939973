//! What an activity is called and coloured, in as many words as there is room for.

use crate::activity::{Activity, Direction, Ns, RangeKind, Span, What, units};
use crate::trace::{LaneId, Trace, describe};
use crate::tui::draw::pen;
use crate::tui::theme::{KERNEL_COLORS, Role};

/// The colour of a record.
#[must_use]
pub fn role(trace: &Trace, what: &What) -> Role {
    match what {
        What::Kernel(k) => kernel_role(trace.names().short(trace.shape(k.shape).name)),
        What::Copy(c) => direction_role(c.direction),
        What::Memset(_) => Role::Memset,
        // A stream's wait for an event is no wait of the host, but a wait all the same.
        What::Sync(_) => Role::Wait,
        what if describe::is_host_wait(trace, what) => Role::Wait,
        What::Range(r) if r.kind == RangeKind::Nvtx => kernel_role(trace.names().full(r.name)),
        What::Range(_) => Role::Range,
        what => describe::operation_kind(what).map_or(Role::Host, kernel_role),
    }
}

/// The colour of a direction.
#[must_use]
pub fn direction_role(direction: Direction) -> Role {
    match direction {
        Direction::H2D => Role::H2D,
        Direction::D2H => Role::D2H,
        Direction::P2P => Role::P2P,
        Direction::D2D | Direction::Other => Role::D2D,
    }
}

/// A kernel keeps its colour from run to run: it is made from the name.
#[must_use]
pub fn kernel_role(name: &str) -> Role {
    let hash = crate::text::fingerprint(name.as_bytes());
    Role::Kernel(((hash >> 32) % u64::from(KERNEL_COLORS)) as u8)
}

/// The longest of its labels that fits in `columns`; empty when not even a cut name would say anything.
#[must_use]
pub fn fitting(trace: &Trace, lane: LaneId, row: usize, columns: usize) -> String {
    /// A name cut shorter than this is a riddle.
    const LEAST: usize = 4;
    if columns < 3 {
        return String::new();
    }
    let activity = trace.activity(lane, row);
    let name = describe::activity(trace, &activity.what);
    let long = long(&activity, &name);
    for text in long {
        if pen::width(&text) <= columns {
            return text;
        }
    }
    if pen::width(&name) <= columns {
        return name;
    }
    // "add<float>" of "elementwise add<float>".
    if let (What::Kernel(_), Some((_, telling))) = (activity.what, name.split_once(' '))
        && pen::width(telling) <= columns
    {
        telling.to_owned()
    } else if columns >= LEAST {
        pen::cut(&name, columns)
    } else {
        String::new()
    }
}

/// Labels that say more than the name, the longest first.
fn long(activity: &Activity, name: &str) -> Vec<String> {
    let length = activity.span.len();
    match activity.what {
        What::Copy(c) => {
            let bytes = units::bytes(c.bytes);
            let mut texts = Vec::new();
            if let Some(rate) = units::gb_per_s(c.bytes, length) {
                texts.push(format!("{name} {bytes} {} GB/s", units::rate(rate)));
                texts.push(format!("{name} {bytes} {}", units::rate(rate)));
            }
            texts.push(format!("{name} {bytes}"));
            texts
        }
        What::Memset(m) => vec![format!("{name} {}", units::bytes(m.bytes))],
        What::Sync(_) | What::Memory(_) | What::Event(_) => Vec::new(),
        _ => vec![format!("{name} {}", units::duration(length))],
    }
}

/// "1.402 → 1.740 ms (338 µs)", counted from `zero`.
#[must_use]
pub fn times(span: Span, zero: Ns) -> String {
    let (start, end) = (span.start - zero, span.end - zero);
    let (unit, ns, digits) = match end.abs().max(start.abs()) {
        0..10_000 => ("ns", 1.0, 0),
        10_000..1_000_000 => ("µs", 1e3, 2),
        1_000_000..10_000_000_000 => ("ms", 1e6, 3),
        _ => ("s", 1e9, 4),
    };
    let number = |t: Ns| format!("{:.digits$}", t as f64 / ns);
    let length = units::duration(span.len());
    format!("{} → {} {unit} ({length})", number(start), number(end))
}
