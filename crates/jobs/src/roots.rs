//! What ranks did that others waited for: each wait followed to the rank that held all up.

use super::{JobAnalysis, Wait};
use activity::{Ns, Span};
use causes::{Causes, IdleCause};

/// So often a wait is followed from a rank that waits itself to the one that it waits for.
const FOLLOWED: usize = 4;

/// What a rank did while others waited for it and had nothing else to do.
#[derive(Clone, Debug, Default)]
pub struct Root {
    /// Index into the ranks.
    pub rank: usize,
    /// Why its own GPU was idle.
    pub idle: Vec<IdleCause>,
    /// For how long its own GPU was at work, ns.
    pub worked: Ns,
}

impl JobAnalysis {
    /// What the ranks did that others waited for, in all or in a stretch of the timeline; those that nobody waited for are left out.
    pub fn roots(&self, causes: &Causes<'_>, window: Option<Span>) -> Vec<Root> {
        let none = || vec![Vec::new(); self.ranks.len()];
        let (mut asked, mut held): (Vec<Vec<Span>>, Vec<Vec<Span>>) = (none(), none());
        for (rank, waits) in self.split.waits.iter().enumerate() {
            let is_asked =
                |it: &&Wait| it.exposed > 0 && window.is_none_or(|w| w.overlaps(it.span));
            for wait in waits.iter().filter(is_asked) {
                asked[wait.for_rank].push(self.carried(wait.span, rank, wait.for_rank));
            }
        }
        for _ in 0..FOLLOWED {
            let mut next = none();
            for (rank, spans) in asked.into_iter().enumerate() {
                for span in Span::merged(spans) {
                    self.hand_on((rank, span), &mut held[rank], &mut next);
                }
            }
            asked = next;
        }
        let root = |(rank, spans): (usize, Vec<Span>)| {
            let spans = Span::merged(spans);
            let idle = causes.idle_within(&[self.ranks[rank].device], &spans);
            let idled: Ns = idle.iter().map(|it| it.total_ns).sum();
            let all: Ns = spans.iter().map(|it| it.len()).sum();
            (all > 0).then_some(Root {
                rank,
                idle,
                worked: (all - idled).max(0),
            })
        };
        held.into_iter().enumerate().filter_map(root).collect()
    }

    /// What of a stretch a rank waited itself, to those that it waited for; the rest it held the others up.
    fn hand_on(&self, (rank, span): (usize, Span), held: &mut Vec<Span>, next: &mut [Vec<Span>]) {
        let waits = &self.split.waits[rank];
        let from = waits.partition_point(|it| it.span.end <= span.start);
        let mut at = span.start;
        for wait in waits[from..]
            .iter()
            .take_while(|it| it.span.start < span.end)
        {
            let waited = wait.span.intersect(Span::new(at, span.end));
            if !waited.is_empty() {
                held.push(Span::new(at, waited.start));
                next[wait.for_rank].push(self.carried(waited, rank, wait.for_rank));
                at = waited.end;
            }
        }
        held.push(Span::new(at, span.end));
    }

    /// A stretch of a rank's own time in another's.
    fn carried(&self, span: Span, from: usize, to: usize) -> Span {
        let process = |rank: usize| self.ranks[rank].process;
        self.on_own(process(to), self.on_all(process(from), span))
    }
}
