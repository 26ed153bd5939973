//! What ranks did that others waited for, since those had waited before.

use super::JobAnalysis;
use activity::{Ns, Span};
use causes::{Causes, IdleCause};

impl JobAnalysis {
    /// Why the GPUs of ranks were idle that others waited for, in all or in a stretch of the timeline. Beside it stands how long the
    /// waiting was that this does not explain: the GPUs were at work.
    pub fn roots(&self, causes: &Causes<'_>, window: Option<Span>) -> (Vec<IdleCause>, Ns) {
        // By rank: since when it may have fallen behind, and when others waited for it, in its own time.
        let mut asked: Vec<[Vec<Span>; 2]> = vec![Default::default(); self.ranks.len()];
        for (rank, waits) in self.ranks.iter().zip(&self.split.waits) {
            let mut before = rank.span.start;
            for wait in waits {
                let since = Span::new(before.min(wait.span.start), wait.span.end);
                before = wait.span.end;
                if wait.exposed > 0 && window.is_none_or(|it| it.overlaps(wait.span)) {
                    let to = self.ranks[wait.for_rank].process;
                    let carried = |it| self.on_own(to, self.on_all(rank.process, it));
                    asked[wait.for_rank][0].push(carried(since));
                    asked[wait.for_rank][1].push(carried(wait.span));
                }
            }
        }
        let (mut all, mut worked) = (Vec::new(), 0);
        for (at, asked) in asked.into_iter().enumerate() {
            let [since, waited] = asked.map(Span::merged);
            let idle = causes.idle_within(&[self.ranks[at].device], &since);
            // What it waited itself is another's.
            let own = self.split.waits[at].iter().filter(|wait| {
                let next = since.partition_point(|it| it.end <= wait.span.start);
                since.get(next).is_some_and(|it| it.overlaps(wait.span))
            });
            let known: Ns = own.map(|it| it.exposed).sum();
            let known = known + idle.iter().map(|it| it.total_ns).sum::<Ns>();
            let waited: Ns = waited.iter().map(|it| it.len()).sum();
            worked += (waited - known).max(0);
            all.extend(idle);
        }
        (all, worked)
    }
}
