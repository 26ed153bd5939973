//! At which places of a step a rank loses time that the other ranks do not, and what that costs.
//!
//! Ranks that are held up by their own launching run apart by more than a late one loses. A processor is slower for a while, then another
//! one, over the whole step. A late rank loses its time at one place, step after step. A place is the way from launching one collective to
//! launching the next. What each rank takes there says a replay in which none waits for another.

#[cfg(test)]
mod tests;

use super::price::{Behind, Price, Replayed, apart};
use super::scatter::{CLEAR, ORDINARY, is_clear, late_steps};
use activity::stats;
use activity::{Ns, Span};
use replay::program::{Joint, NONE, Times};

/// So many places of a step tell what is usual at one of them.
const PLACES_MIN: usize = 8;
/// What takes long on fewer steps than these need not come again.
const TURNS_MIN: usize = 3;

/// A collective that a rank launches.
struct Launch {
    op: u32,
    /// When it did, as recorded.
    at: Ns,
    /// When it would alone.
    alone: Ns,
    /// The other ranks, and when they would.
    others: Vec<(u32, Ns)>,
}

/// The way to a collective.
#[derive(Clone, Copy)]
struct Way {
    /// The collectives that it leads from and to.
    ops: [u32; 2],
    /// By how much longer the rank takes for it than the others, ns.
    longer: f64,
}

impl Replayed<'_> {
    /// What is saved where a rank takes no longer than the others at those places where it clearly does. `None` where there are none.
    pub(super) fn at_places(
        &self,
        rank: usize,
        steps: &[Span],
        step: f64,
        noise: f64,
    ) -> Option<Price> {
        let mut late: Vec<(Way, f64)> = Vec::new();
        for ways in self.places(rank, steps) {
            let by: Vec<f64> = ways.iter().map(|it| it.longer).collect();
            let usual = stats::median(&by)?;
            let turns = late_steps(&by, noise, step);
            // A single step tells no more than some usual ones.
            let limited: Vec<f64> = by.iter().map(|it| it.min(CLEAR * usual)).collect();
            let found: Vec<(Way, f64)> = match turns.len() {
                0 if is_clear(&limited) => ways.iter().map(|it| (*it, usual)).collect(),
                TURNS_MIN.. => turns
                    .iter()
                    .map(|it| (ways[*it], by[*it] - usual))
                    .collect(),
                _ => continue,
            };
            if found.iter().map(|it| it.1).sum::<f64>() > ORDINARY * step * by.len() as f64 {
                late.extend(found);
            }
        }
        (!late.is_empty()).then(|| self.without(rank, &late))
    }

    /// By place, the ways of those steps that have as many as most. Empty where these are few.
    fn places(&self, rank: usize, steps: &[Span]) -> Vec<Vec<Way>> {
        let starts = self.launches_of(rank, steps);
        let launched = self.launched(rank);
        let mut by_step: Vec<Vec<Way>> = vec![Vec::new(); steps.len()];
        for two in launched.windows(2) {
            let [from, to] = two else { continue };
            let others = from.others.iter().zip(&to.others);
            let others: Vec<f64> = others
                .filter(|(from, to)| from.0 == to.0)
                .map(|(from, to)| (to.1 - from.1) as f64)
                .collect();
            let step = starts.partition_point(|it| *it <= from.at).checked_sub(1);
            if let (Some(step), Some(usual)) = (step, stats::median(&others)) {
                by_step[step].push(Way {
                    ops: [from.op, to.op],
                    longer: (to.alone - from.alone) as f64 - usual,
                });
            }
        }
        let counts: Vec<f64> = by_step.iter().map(|it| it.len() as f64).collect();
        let count = stats::median(&counts).unwrap_or(0.0) as usize;
        by_step.retain(|it| it.len() == count);
        let places = if count < PLACES_MIN { 0 } else { count };
        let of = |place| by_step.iter().map(|it: &Vec<Way>| it[place]).collect();
        (0..places).map(of).collect()
    }

    /// The collectives of a rank of which the launches are known, in order.
    fn launched(&self, rank: usize) -> Vec<Launch> {
        let alone = &self.alone;
        let of_member = |&(op, _): &(u32, Ns)| {
            let at = alone
                .call_start
                .get(self.program.ops[op as usize].call as usize)?;
            Some((self.rank_of[op as usize], *at, op))
        };
        let launch = |joint: &Joint| {
            let all = joint.members.iter().filter_map(of_member);
            let (mine, others): (Vec<_>, Vec<_>) = all.partition(|it| it.0 == rank as u32);
            let &(_, alone, op) = mine.first()?;
            Some(Launch {
                op,
                at: self.program.issued(op),
                alone,
                others: others.iter().map(|it| (it.0, it.1)).collect(),
            })
        };
        let mut all: Vec<Launch> = self.joints.iter().filter_map(launch).collect();
        all.sort_by_key(|it| it.at);
        all
    }

    /// When a step's first operation was launched, by step.
    fn launches_of(&self, rank: usize, steps: &[Span]) -> Vec<Ns> {
        let all = 0..self.rank_of.len() as u32;
        let mut own = all
            .filter(|it| self.rank_of[*it as usize] == rank as u32)
            .peekable();
        let first = |step: &Span| {
            while own
                .next_if(|it| self.program.op_span(*it).start < step.start)
                .is_some()
            {}
            own.peek().map_or(step.start, |it| self.program.issued(*it))
        };
        steps.iter().map(first).collect()
    }

    /// What a rank saves that takes so much less for some ways, were it alone.
    fn without(&self, rank: usize, late: &[(Way, f64)]) -> Price {
        let mut program = self.program.clone();
        let mut price = Price::default();
        for (way, by) in late {
            let [from, to] = way.ops;
            let [start, end] = way.ops.map(|it| program.op_span(it).start);
            price.behind.push(Behind {
                span: Span::new(start, end.max(start)),
                by: *by as Ns,
            });
            // On the way it thinks longest where it loses the time. A thread that another one hands over to waits for that.
            let call = |it: u32| (it != NONE).then_some(it);
            let before = |it: &u32| call(program.handed(*it)).or(call(program.previous(*it)));
            let begin = self.program.issued(from);
            let calls = std::iter::successors(call(program.ops[to as usize].call), before)
                .take_while(|it| program.call_span(*it).start > begin)
                .filter(|it| program.handed(*it) == NONE);
            if let Some(longest) = calls.max_by_key(|it| program.calls[*it as usize].think) {
                let think = &mut program.calls[longest as usize].think;
                *think -= (*by as Ns).min(*think);
            }
        }
        let without = program.replay_jointly(&apart(&self.joints), |_| false);
        let alone = &self.alone;
        for (op, _) in self.joints.iter().flat_map(|it| &it.members) {
            if self.rank_of[*op as usize] == rank as u32 {
                let end = |times: &Times| times.op_end[*op as usize];
                price
                    .saved
                    .push((program.op_span(*op).start, end(alone) - end(&without)));
            }
        }
        price.behind.sort_unstable_by_key(|it| it.span);
        price.saved.sort_unstable();
        price
    }
}
