//! What an activity is called and coloured, in as many words as there is room for.

use crate::tui::draw::pen;
use crate::tui::theme::{KERNEL_COLORS, Role};
use activity::{Activity, Direction, Ns, RangeKind, Span, What, units};
use trace::{LaneId, Trace, describe};

pub fn role(trace: &Trace, what: &What) -> Role {
    match what {
        What::Kernel(k) => color(trace.names().short_print(trace.shape(k.shape).name)),
        What::Copy(c) => direction_role(c.direction),
        What::Memset(_) => Role::Memset,
        // A stream's wait for an event is no wait of the host, but a wait all the same.
        What::Sync(_) => Role::Wait,
        what if describe::is_host_wait(trace, what) => Role::Wait,
        What::Range(r) => match r.kind {
            RangeKind::Nvtx => kernel_role(trace.names().full(r.name)),
            RangeKind::CpuOp => Role::Op,
            RangeKind::Python | RangeKind::Function => Role::Python,
            _ => Role::Range,
        },
        what => describe::operation_kind(what).map_or(Role::Host, kernel_role),
    }
}

pub fn direction_role(direction: Direction) -> Role {
    match direction {
        Direction::H2D => Role::H2D,
        Direction::D2H => Role::D2H,
        Direction::P2P => Role::P2P,
        Direction::D2D | Direction::Other => Role::D2D,
    }
}

/// A kernel keeps its colour from run to run: it is made from the name.
pub fn kernel_role(name: &str) -> Role {
    color(activity::text::fingerprint(name.as_bytes()))
}

fn color(print: u64) -> Role {
    Role::Kernel(((print >> 32) % u64::from(KERNEL_COLORS)) as u8)
}

/// The longest of its labels that fits in `columns`; empty when not even a cut name would say anything.
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
    let name = bare(&name).to_owned();
    if pen::width(&name) <= columns {
        return name;
    }
    if let What::Range(range) = activity.what
        && let Some(text) = shorter_range(range.kind, &name, columns)
    {
        return text;
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

/// A name without what all of its kind begin with: "StreamSynchronize", "AllReduce_Sum_f32", "copy_", "sgemm_128x64".
pub fn bare(name: &str) -> &str {
    for library in ["aten::", "cutlass_"] {
        if let Some(rest) = name.strip_prefix(library) {
            return rest;
        }
    }
    let heads = ["ncclDevKernel_", "ncclKernel_", "cuda", "cu"].into_iter();
    let mut rests = heads.filter_map(|head| name.strip_prefix(head));
    let is_name = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    rests.find(is_name).unwrap_or(name)
}

/// The longest form of a range's name alone that fits in `columns`; empty when none does.
pub fn short(trace: &Trace, lane: LaneId, row: usize, columns: usize) -> String {
    let what = trace.what(lane, row);
    let name = describe::activity(trace, &what);
    match what {
        _ if pen::width(&name) <= columns => name,
        What::Range(range) => shorter_range(range.kind, &name, columns).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The longest short form of a Python function that fits: "train.py:19 main", "train.py:19"; of "module.py(7): forward",
/// "<built-in function len>" and "nn/module.py forward" the function.
fn shorter_range(kind: RangeKind, name: &str, columns: usize) -> Option<String> {
    let fits = |text: &&str| !text.is_empty() && pen::width(text) <= columns;
    let forms: Vec<&str> = match kind {
        RangeKind::Python => match name.rsplit_once(' ') {
            // A line's number without its file says nothing.
            Some((place, _)) if place.contains(':') => vec![place],
            Some((_, function)) => vec![function],
            None => Vec::new(),
        },
        RangeKind::Function => {
            let built_in = name.strip_prefix("<built-in ").and_then(|rest| {
                let rest = rest.split_once(' ')?.1;
                rest.split([' ', '>']).next()
            });
            vec![built_in.or(name.rsplit_once(": ").map(|it| it.1))?]
        }
        _ => return numbered(name, columns),
    };
    forms.into_iter().find(|form| fits(form)).map(str::to_owned)
}

/// "Prof…#12" of "ProfilerStep#12", or "#12": of names that only their number tells apart, as steps' are, the number stays.
fn numbered(name: &str, columns: usize) -> Option<String> {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let sign = head.chars().next_back().filter(|c| "#_ ".contains(*c))?;
    if head.len() == name.len() || head.len() == sign.len_utf8() {
        return None;
    }
    let (head, number) = name.split_at(head.len() - sign.len_utf8());
    let left = columns.checked_sub(pen::width(number))?;
    match left {
        // A letter and the mark of what is left out say nothing.
        0..3 => Some(number.trim_start().to_owned()),
        left => Some(format!("{}{number}", pen::cut(head, left))),
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
                let rate = units::rate(rate);
                texts.push(format!("{name} {bytes} {rate} GB/s"));
                texts.push(format!("{name} {rate} GB/s"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_python_frames_keep_what_tells_them_apart() {
        use RangeKind::{Function, Nvtx, Python};
        for (kind, name, columns, expected) in [
            (Python, "train.py:19 main", 12, Some("train.py:19")),
            (Python, "train.py:19 main", 5, None),
            (Python, "train.py:19 main", 2, None),
            (Python, "torch/nn/module.py forward", 10, Some("forward")),
            (
                Function,
                "torch/nn/module.py(99): forward",
                10,
                Some("forward"),
            ),
            (
                Function,
                "<built-in method reshape of Tensor object>",
                8,
                Some("reshape"),
            ),
            (Function, "<built-in function len>", 3, Some("len")),
            (Nvtx, "a: b", 2, None),
            (Nvtx, "ProfilerStep#12", 8, Some("Prof…#12")),
            (Nvtx, "ProfilerStep#12", 5, Some("#12")),
            (Nvtx, "step 12", 4, Some("12")),
            (Nvtx, "ProfilerStep#12", 2, None),
            (Nvtx, "conv2", 4, None),
        ] {
            let found = shorter_range(kind, name, columns);
            assert_eq!(found.as_deref(), expected, "{name} {columns}");
        }
    }
}
