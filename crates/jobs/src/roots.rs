//! What ranks did that others waited for: each wait followed to the rank that held all up.

use super::JobAnalysis;
use activity::{Ns, Span};
use causes::{Causes, IdleCause};

/// So often a wait is followed from a rank that waits itself to the one that it waits for.
const FOLLOWED: usize = 4;

impl JobAnalysis {
    /// Why the GPUs of ranks were idle while others waited for these and had nothing else to do, and for how long they were at work then,
    /// in all or in a stretch of the timeline.
    pub fn roots(&self, causes: &Causes<'_>, window: Option<Span>) -> (Vec<IdleCause>, Ns) {
        let carried = |span: Span, from: usize, to: usize| {
            let span = self.on_all(self.ranks[from].process, span);
            self.on_own(self.ranks[to].process, span)
        };
        let mut open = Vec::new();
        for (rank, waits) in self.split.waits.iter().enumerate() {
            for wait in waits.iter().filter(|it| it.exposed > 0) {
                if window.is_none_or(|it| it.overlaps(wait.span)) {
                    let span = carried(wait.span, rank, wait.for_rank);
                    open.push((wait.for_rank, span, FOLLOWED));
                }
            }
        }
        let mut held = vec![Vec::new(); self.ranks.len()];
        while let Some((rank, span, left)) = open.pop() {
            let waits = &self.split.waits[rank];
            let from = waits.partition_point(|it| it.span.end <= span.start);
            let waits = waits[from..].iter();
            let mut at = span.start;
            for wait in waits.take_while(|it| it.span.start < span.end) {
                let waited = wait.span.intersect(Span::new(at, span.end));
                if left > 0 && !waited.is_empty() {
                    held[rank].push(Span::new(at, waited.start));
                    let carried = carried(waited, rank, wait.for_rank);
                    open.push((wait.for_rank, carried, left - 1));
                    at = waited.end;
                }
            }
            held[rank].push(Span::new(at, span.end));
        }
        let (mut idle, mut worked) = (Vec::new(), 0);
        for (rank, spans) in self.ranks.iter().zip(held) {
            let spans = Span::merged(spans);
            let found = causes.idle_within(&[rank.device], &spans);
            worked += spans.iter().map(|it| it.len()).sum::<Ns>();
            worked -= found.iter().map(|it| it.total_ns).sum::<Ns>();
            idle.extend(found);
        }
        (idle, worked.max(0))
    }
}
