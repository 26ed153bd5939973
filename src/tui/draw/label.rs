//! What an activity is called and coloured, in as many words as there is room for.

use crate::activity::{Activity, Direction, What, units};
use crate::trace::{LaneId, Trace};
use crate::tui::draw::pen;
use crate::tui::theme::{KERNEL_COLORS, Role};

/// The colour of a record.
#[must_use]
pub fn role(trace: &Trace, what: &What) -> Role {
    match what {
        What::Kernel(k) => kernel_role(trace.names().short(trace.shape(k.shape).name)),
        What::Copy(c) => direction_role(c.direction),
        What::Memset(_) => Role::Memset,
        What::Call(c) if trace.names().full(c.name).contains("Synchronize") => Role::Wait,
        What::Sync(_) => Role::Wait,
        What::Range(_) => Role::Range,
        What::Call(_) | What::Overhead(_) | What::Memory(_) | What::Event(_) => Role::Host,
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

/// A kernel keeps its colour from run to run: it is made from the name (FNV-1a).
#[must_use]
pub fn kernel_role(name: &str) -> Role {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Role::Kernel(((hash >> 32) % u64::from(KERNEL_COLORS)) as u8)
}

/// Its name alone.
#[must_use]
pub fn name(trace: &Trace, what: &What) -> String {
    match what {
        What::Kernel(k) => trace.names().short(trace.shape(k.shape).name).to_owned(),
        What::Copy(c) => c.direction.label().to_owned(),
        What::Memset(_) => "memset".to_owned(),
        What::Call(c) => trace.names().full(c.name).to_owned(),
        What::Overhead(o) => trace.names().full(o.name).to_owned(),
        What::Range(r) => trace.names().full(r.name).to_owned(),
        What::Sync(_) => "sync".to_owned(),
        What::Memory(_) => "memory".to_owned(),
        What::Event(_) => "event".to_owned(),
    }
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
    let name = name(trace, &activity.what);
    let long = long(&activity, &name);
    for text in long {
        if pen::width(&text) <= columns {
            return text;
        }
    }
    if pen::width(&name) <= columns {
        name
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
        What::Range(_) | What::Kernel(_) | What::Call(_) | What::Overhead(_) => {
            vec![format!("{name} {}", units::duration(length))]
        }
        What::Sync(_) | What::Memory(_) | What::Event(_) => Vec::new(),
    }
}
