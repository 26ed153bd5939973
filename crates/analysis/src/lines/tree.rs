//! The functions below a line, as a tree by samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Count, Key, Line, wilson};
use activity::text::printable;
use activity::{Frame, Ns, Span, StackId};
use trace::Trace;
use trace::samples::short_file;

/// A line is opened from this part of all samples on, and a function in it is told from [`PART`] on.
const OPENED: f64 = 0.5;
const PART: f64 = 0.05;
/// What hands this part of its samples on to one other function is left out.
const HANDED_ON: f64 = 0.95;
/// No more are told of one line.
const MOST: usize = 20;

/// Frames outermost last, how many samples have them, and the longest gap of those.
type Path<'f> = (&'f [&'f Frame], u64, Span);

/// A function of the tree: how deep in it, its samples, and the longest gap in which it was seen.
struct Node<'f> {
    depth: usize,
    frame: &'f Frame,
    samples: u64,
    longest: Span,
}

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
    add(&paths.collect::<Vec<_>>(), 1, PART * all as f64, &mut nodes);
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

/// The deepest function below a line that still holds half of all samples, whatever they are of.
pub(super) fn deepest(
    trace: &Trace,
    all: &FxHashMap<StackId, u64>,
    own: (&str, u32),
) -> Option<String> {
    let none = Span::default();
    let stacks = all.iter().map(|(&id, &samples)| (id, (samples, none)));
    let stacks = below_line(trace, stacks, own);
    let paths: Vec<Path<'_>> = stacks.iter().map(|it| (&it.0[..], it.1.0, none)).collect();
    let mut nodes = Vec::new();
    let half = all.values().sum::<u64>() as f64 / 2.0;
    add(&paths, 0, half, &mut nodes);
    let frame = nodes.last()?.frame;
    Some(printable(&format!(
        "{} {}",
        short_file(&frame.file),
        frame.function
    )))
}

/// The frames of each stack below a line, with its samples and their longest gap.
fn below_line<'t>(
    trace: &'t Trace,
    stacks: impl Iterator<Item = (StackId, (u64, Span))>,
    own: (&str, u32),
) -> Vec<(Vec<&'t Frame>, (u64, Span))> {
    let below = stacks.filter_map(|(stack, of)| {
        let frames: Vec<&Frame> = trace.stacks().frames(stack).collect();
        let is_own = |it: &&Frame| (it.file.as_str(), it.line) == own;
        let at = frames.iter().position(is_own)?;
        Some((frames[..at].to_vec(), of))
    });
    below.collect()
}

/// Adds the outermost functions of the paths, each with its own behind it.
fn add<'f>(paths: &[Path<'f>], depth: usize, least: f64, into: &mut Vec<Node<'f>>) {
    let mut by: BTreeMap<(&str, &str), (&Frame, u64, Vec<Path<'f>>)> = BTreeMap::new();
    for (frames, samples, longest) in paths {
        if let [inner @ .., frame] = frames {
            let key = (frame.file.as_str(), frame.function.as_str());
            let of = by.entry(key).or_insert((frame, 0, Vec::new()));
            of.1 += samples;
            of.2.push((inner, *samples, *longest));
        }
    }
    let mut by: Vec<_> = by.into_values().filter(|it| it.1 as f64 >= least).collect();
    by.sort_by_key(|it| Reverse(it.1));
    for (frame, samples, inner) in by {
        let at = into.len();
        let longest = inner.iter().map(|it| it.2).max_by_key(|it| it.len());
        into.push(Node {
            longest: longest.unwrap_or_default(),
            depth,
            frame,
            samples,
        });
        add(&inner, depth + 1, least, into);
        let only = into.get(at + 1).map_or(0, |it| it.samples);
        if only as f64 >= HANDED_ON * samples as f64 {
            into.remove(at);
            into[at..].iter_mut().for_each(|it| it.depth -= 1);
        }
    }
}
