//! Steps of a server of a language model that no name marks, by what they copy back: the tokens.
//!
//! Each step ends with a copy of 4 or 8 bytes a sequence, behind a kernel that chooses tokens. Kernels of attention run in it, and
//! next to nothing is uploaded. The commonest number of kernels between two such copies is a decode step's. What lies before as many
//! works on prompts. Of a program that replays CUDA graphs, graphs are decode steps, and the rest works on prompts.

use rustc_hash::FxHashMap;

use super::operations::count;
use super::{Batch, Found, Origin, Phase};
use activity::{Direction, NameId, Ns, Span, What, stats};
use trace::Trace;

/// So many bytes of tokens are copied back at most: 4 or 8 of each sequence.
const BYTES_MAX: i64 = 8192;
/// What is uploaded for a decode step at most: more is data.
const UPLOADS_MAX: i64 = 16384;
/// Threads of a usual kernel for each sequence at most: more work on many words of it.
const THREADS_MAX: i64 = 4096;
/// The kernel that chooses tokens is one of so many before they are copied.
const CHOSEN_BEFORE: usize = 12;
/// Copies with fewer kernels between them bring back results of one step.
const KERNELS_MIN: usize = 8;

/// Of more operations nobody looks at all.
const OPS_MAX: usize = 1 << 22;

/// Words in the names of kernels: of those that attend, that choose tokens, whose results have 8 bytes, that work on images, and that
/// train.
const WORDS: [&[&str]; 5] = [
    &["attention", "attn", "sdpa", "flash", "fmha", "softmax"],
    &["argmax", "topk", "sample", "sampling", "multinomial"],
    &[" long"],
    &["upsample", "grid_sample", "winograd", "im2col"],
    &["backward", "multi_tensor_apply"],
];

/// How many tokens the first copy has that may bring some back, of those that start there: the fewest and the most.
pub(super) fn copied(trace: &Trace, process: usize, stretch: Span) -> Option<(u64, u64)> {
    let ops = list_ops(trace, process, Some(stretch));
    let bytes = ops.iter().find_map(|it| it.copied)? as u64;
    let is_long = ops.iter().any(|op| op.words[1] && op.words[2]);
    Some((bytes / 8, bytes / if is_long { 8 } else { 4 }))
}

/// An operation, by what tells steps of a server.
#[derive(Clone, Copy, Default)]
pub struct Op {
    pub span: Span,
    /// The CUDA graph that it is a node of; 0 where nobody knows which.
    pub graph: Option<u32>,
    call: u32,
    /// Threads of a kernel.
    threads: Option<i64>,
    uploaded: i64,
    /// Bytes of a copy that may bring tokens back.
    copied: Option<i64>,
    /// Which of [`WORDS`] its name has.
    words: [bool; WORDS.len()],
}

/// The operations of a process that start in a stretch, in order.
pub fn list_ops(trace: &Trace, process: usize, window: Option<Span>) -> Vec<Op> {
    let mut names = FxHashMap::<NameId, [bool; WORDS.len()]>::default();
    let of_name = |name| {
        let text = trace.names().full(name).to_lowercase();
        WORDS.map(|words| words.iter().any(|word| text.contains(word)))
    };
    let mut all = Vec::new();
    for (id, lane) in trace.streams_in(process) {
        for (_, it) in trace.activities(id, lane.rows_in(window)) {
            let (span, call) = (it.span, it.correlation);
            let graph = Some(it.what.graph()).filter(|graph| *graph != 0);
            #[rustfmt::skip]
            let mut op = Op { span, call, graph, ..Op::default() };
            if let What::Kernel(kernel) = it.what {
                let shape = trace.shape(kernel.shape);
                let sizes = shape.grid.into_iter().chain(shape.block);
                op.threads = Some(sizes.map(i64::from).fold(1, i64::saturating_mul));
                let words = names.entry(shape.name);
                op.words = *words.or_insert_with(|| of_name(shape.name));
            } else if let What::Copy(copy) = it.what {
                let bytes = copy.bytes as i64;
                let is_some = (4..=BYTES_MAX).contains(&bytes) && bytes % 4 == 0;
                op.copied = Some(bytes).filter(|_| copy.direction == Direction::D2H && is_some);
                op.uploaded = bytes * i64::from(copy.direction == Direction::H2D);
            }
            all.push(op);
        }
    }
    all.sort_by_key(|it| it.span.start);
    // What one call launches together is a graph.
    for at in 1..all.len() {
        if all[at].call != 0 && all[at].call == all[at - 1].call {
            all[at].graph = all[at].graph.or(Some(0));
            all[at - 1].graph = all[at].graph;
        }
    }
    all
}

fn kernels(ops: &[Op]) -> usize {
    ops.iter().filter(|it| it.threads.is_some()).count()
}

/// Threads of a kernel at the median.
fn usual_threads(ops: &[Op]) -> Ns {
    let threads: Vec<Ns> = ops.iter().filter_map(|it| it.threads).collect();
    stats::median_time(&threads).unwrap_or_default()
}

/// Whether it makes the next token of each sequence. What works on images is no text, though it attends and picks. Nor does training
/// make any, whose accuracy is a pick.
fn is_decode(ops: &[Op]) -> bool {
    let copied = ops.iter().filter_map(|it| it.copied).max();
    let last = ops.iter().rev().filter(|it| it.threads.is_some());
    ops.iter().filter(|it| it.words[0]).count() > 1
        && !ops.iter().any(|it| it.words[3] || it.words[4])
        && last.take(CHOSEN_BEFORE).any(|it| it.words[1])
        && ops.iter().map(|it| it.uploaded).sum::<i64>() <= UPLOADS_MAX
        && usual_threads(ops) <= THREADS_MAX * copied.unwrap_or(0) / 4
}

/// The operations up to each copy of tokens.
fn pieces(ops: &[Op]) -> Vec<&[Op]> {
    let mut kernels = 0;
    let ends = |op: &Op| {
        kernels += usize::from(op.threads.is_some());
        let is_end = op.copied.is_some() && kernels >= KERNELS_MIN;
        kernels *= usize::from(!is_end);
        is_end
    };
    let pieces = ops.split_inclusive(ends);
    // The last one may not be seen to its end.
    let is_whole = |it: &&[Op]| it[it.len() - 1].copied.is_some();
    pieces.filter(is_whole).collect()
}

/// Which operation of a piece is the first of a graph.
fn first_node(piece: &[Op]) -> Option<usize> {
    piece.iter().position(|it| it.graph.is_some())
}

/// How many operations of a piece work on prompts, before a decode step or without one. Usual decode steps have so many kernels, of so
/// many threads at the median, and perhaps a graph behind so many operations.
fn prompts(piece: &[Op], (count, threads, lead): (usize, Ns, Option<usize>)) -> usize {
    let all = kernels(piece);
    if let Some(lead) = lead {
        let at = first_node(piece).map_or(piece.len(), |at| at.saturating_sub(lead));
        return at * usize::from(4 * kernels(&piece[..at]) >= count);
    }
    if all <= count + count / 4 {
        let is_other = 8 * all < 7 * count || usual_threads(piece) >= 2 * threads;
        return piece.len() * usize::from(is_other);
    }
    let mut left = count;
    let is_first = |op: &Op| {
        left -= usize::from(op.threads.is_some());
        left == 0
    };
    piece.iter().rposition(is_first).unwrap_or(0)
}

/// Steps by the tokens that are copied back; `None` where these are no steps of a server.
pub(super) fn find(trace: &Trace, process: usize, window: Option<Span>) -> Option<Found> {
    if count(trace, process, window) > OPS_MAX {
        return None;
    }
    let mut all = trace
        .streams_in(process)
        .flat_map(|(id, lane)| trace.activities(id, lane.rows_in(window)));
    let is_back = |what: What| matches!(what, What::Copy(copy) if copy.direction == Direction::D2H);
    if !all.any(|it| is_back(it.1.what)) {
        return None;
    }
    let ops = list_ops(trace, process, window);
    let pieces = pieces(&ops);
    let mut counts = FxHashMap::<usize, Vec<&[Op]>>::default();
    for &piece in pieces.iter().filter(|it| is_decode(it)) {
        counts.entry(kernels(piece)).or_default().push(piece);
    }
    let (number, usual) = counts.into_iter().max_by_key(|it| (it.1.len(), it.0))?;
    let held: usize = pieces.iter().map(|it| it.len()).sum();
    if !cases::STEPS_MIN.is_reached_by(usual.len()) || 2 * held < ops.len() {
        return None;
    }
    let have = |is: fn(&Op) -> bool| usual.iter().all(|it| it.iter().any(is));
    let lead = usual.iter().filter_map(|it| first_node(it)).min();
    let lead = lead.filter(|_| have(|op| op.graph.is_some()));
    let size = if have(|op| op.words[1] && op.words[2]) {
        8
    } else {
        4
    };
    let threads = usual.iter().map(|it| usual_threads(it)).max()?;
    let mut batches = Vec::new();
    // What lies before the first copy is start-up, too.
    for piece in &pieces[1..] {
        let (prompts, decoded) = piece.split_at(prompts(piece, (number, threads, lead)));
        let bytes = piece[piece.len() - 1].copied? as u64;
        let made = (bytes / 8, bytes / size);
        let first = if decoded.is_empty() { made } else { (0, 0) };
        let parts = [
            (Phase::Prefill, prompts, first),
            (Phase::Decode, decoded, made),
        ];
        for (phase, ops, tokens) in parts {
            let batch = |first: &Op| Batch::new(first.span.start, phase, Some(tokens));
            batches.extend(ops.first().map(batch));
        }
    }
    let end = ops.last()?.span.start + 1;
    let starts = batches.iter().map(|it| it.start);
    let spans = starts.clone().zip(starts.skip(1).chain([end]));
    let spans = spans.map(|(start, end)| Span::new(start, end)).collect();
    Some(Found::of_server(
        (trace, process),
        Origin::Tokens,
        spans,
        batches,
    ))
}
