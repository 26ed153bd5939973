//! The functions below a line, as a tree by samples.

use super::{Count, Line, wilson};
use activity::Ns;
use causes::stacks::{Key, Node, add_functions, below_line};
use trace::Trace;
use trace::samples::short_file;

/// A line is opened from this part of all samples on, and a function in it is told from [`PART`] on.
const OPENED: f64 = 0.5;
const PART: f64 = 0.05;
/// No more are told of one line.
const MOST: usize = 20;

/// The functions below what a line calls, where it has much of all samples and of the idle time.
pub(super) fn below(trace: &Trace, of: (&Key, &Count), (all, idle): (u64, Ns)) -> Vec<Line> {
    let (key, count) = of;
    if (count.samples as f64) < OPENED * all as f64 {
        return Vec::new();
    }
    let stacks = count.stacks.iter().map(|(&id, &of)| (id, of));
    let stacks = below_line(trace, stacks, (&key.file, key.line));
    // The line tells what it calls.
    let paths = stacks.iter().filter_map(|(frames, (samples, longest))| {
        let (_, below) = frames.split_last()?;
        Some((below, *samples, *longest))
    });
    let mut nodes = Vec::new();
    add_functions(&paths.collect::<Vec<_>>(), 1, PART * all as f64, &mut nodes);
    let line = |it: Node<'_>| {
        let share = it.samples as f64 / all as f64;
        let (low, high) = wilson(it.samples, all);
        let of = Count {
            samples: it.samples,
            longest: it.longest,
            ..Count::default()
        };
        let key = Key {
            file: it.frame.file.clone(),
            function: it.frame.function.clone(),
            ..Key::default()
        };
        let time = (share * idle as f64).round() as Ns;
        let place = format!("{}{}", "  ".repeat(it.depth), short_file(&it.frame.file));
        let line = Line::new(key, [share, low, high], time, &of);
        Line { place, ..line }
    };
    nodes.into_iter().take(MOST).map(line).collect()
}
