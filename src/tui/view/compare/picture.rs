//! The picture under the table: which two stand above each other, and what is said of them.

use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::draw::versus::{Half, Versus};
use crate::tui::state::State;
use crate::tui::state::idle::{IdleMap, operations};
use crate::tui::state::other_run::OtherRun;
use activity::text::printable;
use activity::{Span, units};
use figures::VariantFigures;
use figures::variants::measure::{SAME, Speedup, speedup};
use scenario::figures::Kind;
use trace::Trace;

/// What a picture was made of: as long as it is the same, it is.
type CacheKey = (u64, u64, u64, Option<usize>, Rect);

/// So many stretches are kept: those of a few lines that one goes back and forth between.
const KEPT: usize = 8;

/// Which of the two timelines a stretch is of, the stretch, and how many operations it has.
type StretchKey = (usize, Span, usize);

/// Why devices were idle over the stretches that were looked at last: a graph of each is too much for every frame.
#[derive(Debug, Default)]
struct IdleCache(Vec<(StretchKey, IdleMap)>);

impl IdleCache {
    fn maps(&mut self, traces: [&Trace; 2], spans: [Span; 2]) -> [&IdleMap; 2] {
        // Variants of one run are stretches of one timeline.
        let is_one = std::ptr::eq(traces[0], traces[1]);
        let side = |i: usize| if is_one { 0 } else { i };
        let wanted = [0, 1].map(|i| (side(i), spans[i], operations(traces[i], spans[i])));
        for of in wanted {
            let known = self.0.iter().position(|it| it.0 == of);
            let it = match known {
                Some(at) => self.0.remove(at),
                None => (of, IdleMap::at_once(traces[of.0], of.1)),
            };
            self.0.push(it);
        }
        self.0.drain(..self.0.len().saturating_sub(KEPT));
        let last = self.0.len() - 1;
        let first = last - usize::from(wanted[0] != wanted[1]);
        [&self.0[first].1, &self.0[last].1]
    }
}

/// The picture, ready to be drawn.
#[derive(Debug, Default)]
pub(super) struct ComparePicture {
    of: Option<CacheKey>,
    idle: IdleCache,
    versus: Versus,
}

impl ComparePicture {
    /// `line` of the table is under the cursor.
    pub(super) fn prepare(&mut self, state: &State, line: Option<usize>, area: Rect) {
        let run = &state.model.run;
        let of = (run.number, run.trace.revision(), run.figured, line, area);
        if self.of == Some(of) {
            return;
        }
        if self.of.is_some_and(|last| last.0 != run.number) {
            self.idle = IdleCache::default();
        }
        self.of = Some(of);
        let comparison = line.and_then(|line| match &run.beside {
            Some(beside) => timelines(state, beside, line),
            None => variants(state, line),
        });
        self.versus = comparison.map_or_else(Versus::default, |it| {
            let idle = self.idle.maps(it.traces, it.spans);
            let half = |i: usize| Half {
                idle: idle[i],
                trace: it.traces[i],
                span: it.spans[i],
                name: &it.names[i],
                figures: &it.figures[i],
            };
            let gutter = Layout::of(state).gutter;
            let halves = [half(0), half(1)];
            Versus::new(halves, &it.words, it.role, it.has_host, area, gutter)
        });
    }

    pub(super) fn draw(&self, theme: &Theme, buf: &mut Buffer) {
        self.versus.draw(theme, buf);
    }
}

/// What stands above each other, and what is said of it.
struct Halves<'a> {
    traces: [&'a Trace; 2],
    spans: [Span; 2],
    names: [String; 2],
    figures: [String; 2],
    /// What the second saves.
    words: Vec<String>,
    role: Role,
    /// Whether it is the host's time that is compared.
    has_host: bool,
}

/// The two timelines, each with its stretch of median time.
fn timelines<'a>(state: &'a State, beside: &'a OtherRun, line: usize) -> Option<Halves<'a>> {
    let pair = beside.pairs.get(line)?;
    let (mut words, role) = words(1.0 / pair.ratio, "", pair.spans);
    let (role, most) = match pair.told() {
        Some(_) => (role, 2),
        None => (Role::Dim, 1),
    };
    words.truncate(most);
    words[0] = pair.told().unwrap_or_else(|| super::NOT_TOLD.to_owned());
    let name = |i: usize| format!("{} {}", ["A", "B"][i], printable(&beside.names[i]));
    Some(Halves {
        traces: [beside.trace.as_ref(), &state.model.run.trace],
        spans: pair.spans,
        names: [0, 1].map(name),
        figures: [0, 1].map(|side| pair.in_words(side)),
        words,
        role,
        has_host: false,
    })
}

/// The line of the table to begin with. It is the variant on screen where it is compared with another. Else it is the
/// one that gains most over it, or the first that is compared at all.
pub(super) fn first(state: &State) -> usize {
    if state.model.run.beside.is_some() {
        return 0;
    }
    let now = &state.model.run.measured.variants;
    let on_screen = state.variant();
    let at = now.iter().position(|v| Some(v.position) == on_screen);
    let at = at.unwrap_or(0);
    let lines = [at].into_iter().chain(0..now.len());
    let mut pairs = lines.filter_map(|line| pair(state, line));
    pairs.next().map_or(at, |(_, cure, _)| cure)
}

/// The two variants that a line of the table stands for, as lines, and how much faster the second is. A baseline stands
/// above the one that gains most over it.
fn pair(state: &State, line: usize) -> Option<(usize, usize, Speedup)> {
    let run = &state.model.run;
    let all = &run.measured.variants;
    let of = |line: usize| {
        let variant = all.get(line)?;
        let base = run.passes.baseline(variant.position)?;
        let base = all.iter().position(|v| v.position == base)?;
        Some((base, line, speedup(&run.passes, variant, all)?))
    };
    of(line).or_else(|| {
        let pairs = (0..all.len()).filter_map(of);
        let gains = pairs.filter(|(base, ..)| *base == line);
        gains.max_by(|a, b| a.2.factor.total_cmp(&b.2.factor))
    })
}

fn variants(state: &State, line: usize) -> Option<Halves<'_>> {
    let (base, cure, faster) = pair(state, line)?;
    let all = &state.model.run.measured.variants;
    let is_wall = faster.by == Kind::Wall;
    let span = |v: &VariantFigures| match is_wall {
        true => Some(v.pass.span),
        false => v.pass.operations,
    };
    let both = [&all[base], &all[cure]];
    let spans = [span(both[0])?, span(both[1])?];
    let clock = if is_wall { ", by the host's time" } else { "" };
    let (words, role) = words(faster.factor, clock, spans);
    Some(Halves {
        traces: [&state.model.run.trace; 2],
        spans,
        names: both.map(|v| printable(&v.label())),
        figures: [0, 1].map(|i| figures(both[i], spans[i])),
        words,
        role,
        has_host: is_wall,
    })
}

/// "2.16× faster" and "4.47 ms saved".
pub(super) fn words(factor: f64, clock: &str, [a, b]: [Span; 2]) -> (Vec<String>, Role) {
    let apart = units::duration((a.len() - b.len()).abs());
    if (factor - 1.0).abs() < SAME {
        return (vec![format!("as fast{clock}")], Role::Dim);
    }
    if factor > 1.0 {
        let faster = format!("{} faster{clock}", units::factor(factor));
        return (vec![faster, format!("{apart} saved")], Role::Good);
    }
    let slower = format!("{} slower{clock}", units::factor(1.0 / factor));
    (vec![slower, format!("{apart} lost")], Role::Warning)
}

/// "8.32 ms · idle 2 % · overlap 0 %".
fn figures(v: &VariantFigures, span: Span) -> String {
    let mut parts = vec![units::duration(span.len())];
    for (kind, word) in [(Kind::Idle, "idle"), (Kind::Overlap, "overlap")] {
        if let Some(value) = v.value(kind) {
            parts.push(format!("{word} {}", kind.spec().unit.show(value)));
        }
    }
    parts.join(" · ")
}
