//! Steps of a server of a language model that no name marks, by what they copy back: the tokens.
//!
//! Each step ends with a copy of 4 or 8 bytes a sequence, behind a kernel that chooses tokens. Kernels of attention run in it, and
//! next to nothing is uploaded. The commonest number of kernels between two such copies is a decode step's. What lies before as many
//! works on prompts. Of a program that replays CUDA graphs, graphs are decode steps, and the rest works on prompts.

use rustc_hash::FxHashMap;

use super::operations::{graph_launches, streams};
use super::{Batch, Found, Origin, Phase};
use activity::{Direction, NameId, Ns, Span, What};
use trace::Trace;

/// So many bytes of tokens are copied back at most: 4 or 8 of each sequence.
const BYTES_MAX: u64 = 8192;
/// What is uploaded for a decode step at most: more is data.
const UPLOADS_MAX: u64 = 16384;
/// Threads of a usual kernel for each sequence at most: more work on many words of it.
const THREADS_MAX: u64 = 4096;
/// The kernel that chooses tokens is one of so many before they are copied.
const CHOSEN_BEFORE: usize = 12;
/// Copies with fewer kernels between them bring back results of one step.
const KERNELS_MIN: usize = 8;

const ATTENTION: [&str; 6] = ["attention", "attn", "sdpa", "flash", "fmha", "softmax"];
const CHOICE: [&str; 6] = [
    "argmax",
    "topk",
    "sample",
    "sampling",
    "multinomial",
    "exponential",
];

/// How many tokens the first copy has that may bring some back, of those that start there: by 8 bytes each, and by 4.
pub(super) fn copied(trace: &Trace, process: usize, stretch: Span) -> Option<(u64, u64)> {
    let rows = |(id, lane): (_, &trace::Lane)| {
        let mut rows = lane.starting(stretch);
        rows.find_map(|row| bytes(trace.what(id, row)))
    };
    streams(trace, process)
        .find_map(rows)
        .map(|bytes| (bytes / 8, bytes / 4))
}

/// The bytes of a copy that may bring tokens back.
fn bytes(what: What) -> Option<u64> {
    let What::Copy(copy) = what else { return None };
    let is_some = (4..=BYTES_MAX).contains(&copy.bytes) && copy.bytes % 4 == 0;
    (copy.direction == Direction::D2H && is_some).then_some(copy.bytes)
}

/// What a step is told by.
#[derive(Clone, Copy, Default)]
struct Op {
    start: Ns,
    /// Threads of a kernel; 0 of what is none.
    threads: u64,
    uploaded: u64,
    copied: u64,
    is_node: bool,
    attends: bool,
    chooses: bool,
    /// Chooses tokens of 8 bytes.
    is_long: bool,
}

fn operations(trace: &Trace, process: usize, window: Option<Span>) -> Vec<Op> {
    let mut names = FxHashMap::<NameId, Op>::default();
    let known = |name| {
        let text = trace.names().full(name).to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Op {
            attends: has(&ATTENTION),
            chooses: has(&CHOICE),
            is_long: has(&["argmax"]) && has(&[" long"]),
            ..Op::default()
        }
    };
    let launched = graph_launches(trace, process);
    let mut all = Vec::new();
    for (id, lane) in streams(trace, process) {
        for (_, it) in trace.activities(id, super::operations::rows(lane, window)) {
            let of = match it.what {
                What::Kernel(kernel) => {
                    let shape = trace.shape(kernel.shape);
                    let sizes = shape.grid.into_iter().chain(shape.block);
                    Op {
                        threads: sizes.map(u64::from).product(),
                        ..*names.entry(shape.name).or_insert_with(|| known(shape.name))
                    }
                }
                What::Copy(copy) if copy.direction == Direction::H2D => Op {
                    uploaded: copy.bytes,
                    ..Op::default()
                },
                what => Op {
                    copied: bytes(what).unwrap_or(0),
                    ..Op::default()
                },
            };
            let is_node = it.what.graph() != 0 || launched.contains(&it.correlation);
            all.push(Op {
                start: it.span.start,
                is_node,
                ..of
            });
        }
    }
    all.sort_by_key(|it| it.start);
    all
}

fn kernels(ops: &[Op]) -> usize {
    ops.iter().filter(|it| it.threads > 0).count()
}

/// Threads of a kernel at the median.
fn usual_threads(ops: &[Op]) -> u64 {
    let mut threads: Vec<u64> = ops
        .iter()
        .map(|it| it.threads)
        .filter(|it| *it > 0)
        .collect();
    threads.sort_unstable();
    threads.get(threads.len() / 2).copied().unwrap_or(0)
}

/// Whether it makes the next token of each sequence.
fn is_decode(ops: &[Op]) -> bool {
    let copied: u64 = ops.iter().map(|it| it.copied).max().unwrap_or(0);
    let last = ops
        .iter()
        .rev()
        .filter(|it| it.threads > 0)
        .take(CHOSEN_BEFORE);
    ops.iter().filter(|it| it.attends).count() > 1
        && last.clone().any(|it| it.chooses)
        && ops.iter().map(|it| it.uploaded).sum::<u64>() <= UPLOADS_MAX
        && usual_threads(ops) <= THREADS_MAX * copied / 4
}

/// The operations up to each copy of tokens.
fn pieces(ops: &[Op]) -> Vec<&[Op]> {
    let mut pieces: Vec<&[Op]> = Vec::new();
    let (mut from, mut kernels) = (0, 0);
    for (at, op) in ops.iter().enumerate() {
        kernels += usize::from(op.threads > 0);
        if op.copied > 0 && kernels >= KERNELS_MIN {
            pieces.push(&ops[from..=at]);
            (from, kernels) = (at + 1, 0);
        }
    }
    pieces
}

/// How many operations of a piece work on prompts, before a decode step or without one. Usual decode steps have so many kernels, of so
/// many threads at the median, and graphs.
fn prompts(piece: &[Op], (count, threads, has_graphs): (usize, u64, bool)) -> usize {
    let all = kernels(piece);
    let (mut seen, about) = (0, count / 8);
    let starts = |op: &Op| {
        seen += usize::from(op.threads > 0);
        if has_graphs {
            op.is_node
        } else {
            seen + count > all
        }
    };
    let is_other = all + about < count || usual_threads(piece) >= 2 * threads;
    let at = match all <= count + about && !has_graphs {
        true => Some(0).filter(|_| !is_other),
        false => piece.iter().position(starts),
    };
    at.unwrap_or(piece.len())
}

/// Steps by the tokens that are copied back; `None` where these are no steps of a server.
pub(super) fn find(trace: &Trace, process: usize, window: Option<Span>) -> Option<Found> {
    let ops = operations(trace, process, window);
    let pieces = pieces(&ops);
    let mut counts = FxHashMap::<usize, Vec<&[Op]>>::default();
    for &piece in pieces.iter().filter(|it| is_decode(it)) {
        counts.entry(kernels(piece)).or_default().push(piece);
    }
    let (count, usual) = counts.into_iter().max_by_key(|it| (it.1.len(), it.0))?;
    let held: usize = pieces.iter().map(|it| it.len()).sum();
    if !cases::STEPS_MIN.is_reached_by(usual.len()) || 2 * held < ops.len() {
        return None;
    }
    let has_graphs = usual.iter().all(|it| it.iter().any(|op| op.is_node));
    let threads = usual.iter().map(|it| usual_threads(it)).max()?;
    let is_long = usual.iter().all(|it| it.iter().any(|op| op.is_long));
    let is_short = pieces.iter().any(|it| it[it.len() - 1].copied % 8 == 4);
    let mut batches = Vec::new();
    // What lies before the first copy is start-up, too.
    for piece in pieces.iter().skip(1) {
        let (prompts, decoded) = piece.split_at(prompts(piece, (count, threads, has_graphs)));
        let bytes = piece[piece.len() - 1].copied;
        let made = match (is_long, is_short) {
            (true, _) => (bytes / 8, bytes / 8),
            (_, true) => (bytes / 4, bytes / 4),
            _ => (bytes / 8, bytes / 4),
        };
        let first = if decoded.is_empty() { made } else { (0, 0) };
        let parts = [
            (Phase::Prefill, prompts, first),
            (Phase::Decode, decoded, made),
        ];
        for (phase, ops, tokens) in parts {
            batches.extend(ops.first().map(|first| Batch {
                start: first.start,
                phase,
                tokens: Some(tokens),
                fields: Vec::new(),
            }));
        }
    }
    let end = ops.last()?.start + 1;
    let starts = batches.iter().map(|it| it.start);
    let ends = starts.clone().skip(1).chain([end]);
    Some(Found {
        from: Origin::Tokens,
        spans: starts
            .zip(ends)
            .map(|(start, end)| Span::new(start, end))
            .collect(),
        is_closed: false,
        is_part: false,
        batches,
    })
}
