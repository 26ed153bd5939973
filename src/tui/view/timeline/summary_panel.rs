//! What stands in the room that rows leave: the variants by their time, and what could be better.

use crate::report::text::steps_looked_at;
use crate::tui::draw::layout::Layout;
use crate::tui::draw::prelude::*;
use crate::tui::draw::{pen, titles};
use crate::tui::state::State;
use crate::tui::view::findings::mark;
use activity::text::printable;
use activity::{Ns, units};
use advice::verdict::is_beside;
use figures::VariantFigures;
use figures::variants::measure::speedup;
use findings::{Change, Finding};
use scenario::figures::Kind;

/// Variants that are shown; there is a view for more.
const VARIANTS: usize = 8;
/// Lines of the chart of a sweep.
const CHART: usize = 14;
/// The most columns of a name.
const NAME: u16 = 26;
/// Columns of the figures behind a bar.
const FIGURES: u16 = 26;

/// A line.
#[derive(Clone, Debug, PartialEq)]
enum SummaryLine {
    Title(String),
    Variant(Bar),
    /// A line of a finding, with its mark if it is the first one.
    Finding(String, Option<(&'static str, Role)>),
    /// How many more there are, with the key of the view that has them, or what to do about a finding.
    Quiet(String),
}

/// A variant, and its time as a share of the longest.
#[derive(Clone, Debug, PartialEq)]
struct Bar {
    name: String,
    share: f64,
    figures: String,
    is_on_screen: bool,
}

/// The lines, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SummaryPanel {
    lines: Vec<SummaryLine>,
}

impl SummaryPanel {
    /// Lines that the variants of a scenario, or its chart, take below the rows.
    pub(super) fn reserved(state: &State) -> usize {
        let mut lines = Vec::new();
        variants(state, &mut lines, usize::MAX);
        match state.model.run.is_swept() {
            true => CHART,
            false => lines.len(),
        }
    }

    pub(super) fn height(&self) -> u16 {
        self.lines.len() as u16
    }

    /// Prepares what fits in `room` lines of so many columns, of the variants and of the findings; nothing in fewer than two.
    pub(super) fn new(
        state: &State,
        (has_variants, has_findings): (bool, bool),
        width: u16,
        room: usize,
    ) -> SummaryPanel {
        let mut lines = Vec::new();
        if room < 2 {
            return SummaryPanel { lines };
        }
        if has_variants {
            variants(state, &mut lines, room);
        }
        let found = state.answer();
        let found = found.filter(|_| has_findings);
        let findings = found.map_or(&[][..], |answer| answer.findings.as_slice());
        let left = room - lines.len();
        // A title alone says nothing.
        if left >= 2 && !findings.is_empty() {
            let of = steps_looked_at(findings);
            let of = of.unwrap_or_default();
            let verdict = found.and_then(|it| it.verdicts.first());
            let other = match verdict.is_some_and(|it| is_beside(it.bound_by, findings[0].rule)) {
                true => "; the first is not the headline's cause",
                false => "",
            };
            let columns = usize::from(width).saturating_sub(4);
            let title = format!("what could be better{of}{other}");
            // How long they are together is the least of it.
            let title = match title.split_once(" (") {
                Some((short, _)) if pen::width(&title) > columns => short.to_owned(),
                _ => title,
            };
            let title = match pen::width(&title) > columns {
                true => title.replace(": times and shares are of", " in"),
                false => title,
            };
            let (told, shown) = told_in(findings, columns, left - 1);
            // Where no share is told it is of nothing.
            let has_share = |it: &SummaryLine| matches!(it, SummaryLine::Finding(text, _) if text.contains('%'));
            let title = match told.iter().any(has_share) {
                true => title,
                false => format!("what could be better{other}"),
            };
            lines.push(SummaryLine::Title(title));
            let has_room = told.len() < left - 1;
            lines.extend(told);
            if shown < findings.len() && has_room {
                lines.push(more(state, findings.len() - shown, '3'));
            }
        }
        SummaryPanel { lines }
    }

    pub(super) fn draw(&self, theme: &Theme, layout: &Layout, area: Rect, buf: &mut Buffer) {
        let names = self.lines.iter().filter_map(|line| match line {
            SummaryLine::Variant(bar) => Some(pen::width(&bar.name) as u16 + 2),
            _ => None,
        });
        let gutter = layout.gutter.max(names.max().unwrap_or(0).min(NAME));
        for (line, at) in self.lines.iter().zip(pen::lines(area)) {
            match line {
                SummaryLine::Title(title) => titles::title(theme, title, at, buf),
                SummaryLine::Variant(bar) => draw_variant(theme, bar, gutter, at, buf),
                SummaryLine::Finding(text, mark) => {
                    let (mark, role) = mark.unwrap_or((" ", Role::Text));
                    let x = pen::text(buf, at, 1, mark, theme.bold(role)) + 1;
                    let room = usize::from(at.width.saturating_sub(x + 1));
                    let text = pen::cut(text, room);
                    pen::text(buf, at, x, &text, theme.fg(Role::Text));
                }
                SummaryLine::Quiet(text) => {
                    pen::text(buf, at, 3, text, theme.fg(Role::Dim));
                }
            }
        }
    }
}

/// Lines of advice that are kept where it names no call.
const ADVICE: usize = 2;

/// The lines of findings that fit in so many, and how many of them that are. What to change goes before how it was seen: of that the
/// headline says most. Advice in full stands where there is room for it.
fn told_in(findings: &[Finding], columns: usize, mut left: usize) -> (Vec<SummaryLine>, usize) {
    let wrap = |text: &str| pen::wrap(&printable(text), columns);
    let title = |f: &Finding| wrap(&format!("{}{}", f.headline(), f.worth()));
    let change = |f: &Finding| {
        let all: Vec<String> = f.change.iter().map(Change::to_string).collect();
        match all.is_empty() {
            true => format!("→ {}", what_to_do(&f.advice)),
            false => format!("→ {}", all.join(" · ")),
        }
    };
    let quiet = |lines: Vec<String>| lines.into_iter().map(SummaryLine::Quiet);
    let bright = |lines: Vec<String>| lines.into_iter().map(|it| SummaryLine::Finding(it, None));
    // What to do next, in so many lines: the call to change, else the advice.
    let next = |f: &Finding, most: usize| -> Vec<SummaryLine> {
        let cut = |text: &str, most: usize| match most {
            0 => Vec::new(),
            most => pen::clauses(&printable(text), columns, most),
        };
        match f.change.is_empty() {
            true => quiet(cut(&f.advice, most.min(ADVICE))).collect(),
            false => bright(cut(&change(f), most)).collect(),
        }
    };
    let in_full = |f: &Finding| -> Vec<SummaryLine> {
        let change = (!f.change.is_empty()).then(|| wrap(&change(f)));
        let change = bright(change.unwrap_or_default());
        quiet(wrap(&f.advice)).chain(change).collect()
    };
    let all = findings.iter().map(|f| title(f).len() + in_full(f).len());
    let has_room = all.sum::<usize>() <= left;
    let mut lines = Vec::new();
    for (at, finding) in findings.iter().enumerate() {
        // A line is kept for the word on the others.
        let others = usize::from(at + 1 < findings.len());
        let mut after = match has_room {
            true => in_full(finding),
            false => next(finding, usize::MAX),
        };
        let titled = title(finding).len();
        if at > 0 && titled + after.len() + others > left {
            return (lines, at);
        }
        let room = left.saturating_sub(others).max(1);
        if titled + after.len() > room {
            // Of the first there is as much as fits, and of one alone what to change.
            let least = usize::from(!finding.change.is_empty());
            let most = (room / 2).max(room.saturating_sub(titled)).max(least);
            after = next(finding, most);
        }
        let words = title(finding).join(" ");
        // In one line its cure and what to do say more than how it was seen, which the headline has.
        let is_named = !finding.cure.is_empty() && pen::width(&words) > columns;
        // Another variant is a cure of its own.
        let both = match change(finding) {
            it if finding.change.is_empty() && it.contains(": ") => it,
            it => format!("{} {it}", finding.cure_alone()),
        };
        if room == 1 && finding.change.is_empty() && is_named && pen::width(&both) <= columns {
            after = bright(vec![both.clone()]).collect();
        }
        let mut own = match room - after.len() {
            0 if finding.change.is_empty() => Vec::new(),
            0 => {
                // In one line what that is called, where both have room.
                let least = both.split(", ").next().map_or(0, pen::width);
                if !finding.cure.is_empty() && least <= columns {
                    after = bright(pen::clauses(&both, columns, 1)).collect();
                }
                Vec::new()
            }
            room => bright(pen::clauses(&words, columns, room)).collect(),
        };
        own.extend(after);
        if let Some(SummaryLine::Finding(_, first)) = own.first_mut() {
            *first = Some(mark(finding));
        }
        left = left.saturating_sub(own.len());
        lines.extend(own);
    }
    (lines, findings.len())
}

/// Words with which a sentence of advice begins that says how things are, and nothing to do.
const STATES: [&str; 7] = ["A ", "An ", "The ", "They ", "It ", "That ", "Where "];

/// The first sentence of advice that says what to do.
fn what_to_do(advice: &str) -> &str {
    let states = |it: &str| STATES.iter().any(|word| it.starts_with(word));
    let mut all = advice.split(". ");
    all.find(|it| !states(it)).unwrap_or(advice)
}

/// How many more there are. A bare picture names no key.
fn more(state: &State, count: usize, key: char) -> SummaryLine {
    SummaryLine::Quiet(match state.is_bare {
        true => format!("{count} more"),
        false => format!("{count} more (press {key})"),
    })
}

/// The variants, with the time that tells which is faster: that of the host where one of them has no GPU work.
fn variants(state: &State, lines: &mut Vec<SummaryLine>, room: usize) {
    let run = &state.model.run;
    let all = &run.measured.variants;
    if all.len() < 2 || run.is_swept() {
        return;
    }
    let faster: Vec<_> = all.iter().map(|v| speedup(&run.passes, v, all)).collect();
    let is_wall = faster.iter().flatten().any(|s| s.by == Kind::Wall);
    let time = |v: &VariantFigures| if is_wall { v.wall_ns } else { v.makespan_ns };
    let longest: Ns = all.iter().map(time).max().unwrap_or(0).max(1);
    let clock = if is_wall { "host time" } else { "makespan" };
    lines.push(SummaryLine::Title(format!("variants by {clock}")));
    let is_on_screen = |v: &VariantFigures| state.variant() == Some(v.position);
    let here = all.iter().position(is_on_screen);
    let shown = shown(all.len(), here, room.saturating_sub(1).min(VARIANTS));
    let left_out = all.len() - shown.len();
    for i in shown {
        let (v, faster) = (&all[i], &faster[i]);
        let mut figures = units::duration(time(v));
        if let Some(faster) = faster {
            figures = format!("{figures}  {}", units::factor(faster.factor));
            // The first is what all are compared with, unless that is said.
            if faster.over != all[0].label() {
                figures.push_str(&format!(" of {}", printable(&faster.over)));
            }
        }
        if let Some((asked, half)) = v.until.and_then(|it| Some((it.asked, it.half_interval?))) {
            let asked = match half < asked {
                true => String::new(),
                false => format!(" ({} asked)", units::percent(asked)),
            };
            figures.push_str(&format!("  ± {}{asked}", units::percent(half)));
        }
        lines.push(SummaryLine::Variant(Bar {
            name: printable(&v.label()),
            share: time(v) as f64 / longest as f64,
            figures,
            is_on_screen: is_on_screen(v),
        }));
    }
    if left_out > 0 {
        lines.push(more(state, left_out, '4'));
    }
}

/// Which of `all` variants have one of so many lines: the first ones, and the one on screen. A line is the word on others.
fn shown(all: usize, here: Option<usize>, lines: usize) -> Vec<usize> {
    if all <= lines {
        return (0..all).collect();
    }
    let mut shown: Vec<usize> = (0..lines.saturating_sub(1)).collect();
    if let (Some(here), Some(last)) = (here, shown.last_mut()) {
        *last = here.max(*last);
    }
    shown
}

fn draw_variant(theme: &Theme, bar: &Bar, gutter: u16, at: Rect, buf: &mut Buffer) {
    let gutter = gutter.min(at.width);
    let (role, style) = if bar.is_on_screen {
        pen::cell(buf, at, 0, '▸', theme.bold(Role::Accent));
        (Role::Accent, theme.bold(Role::Text))
    } else {
        (Role::Range, theme.fg(Role::Text))
    };
    let name = pen::cut(&bar.name, usize::from(gutter.saturating_sub(2)));
    pen::text(buf, at, 1, &name, style);
    let columns = at.width.saturating_sub(gutter + FIGURES);
    let eighths = (bar.share * f64::from(columns) * 8.0).round() as u16;
    let (full, rest) = (eighths / 8, (eighths % 8) as u8);
    for x in 0..full {
        pen::cell(buf, at, gutter + x, theme.block(8), theme.fg(role));
    }
    if rest > 0 {
        let block = theme.left_block(rest);
        pen::cell(buf, at, gutter + full, block, theme.fg(role));
    }
    pen::text(buf, at, gutter + full + 2, &bar.figures, style);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three lines of a headline's finding, its advice and what to change, in fewer and fewer lines.
    #[test]
    fn what_to_change_goes_before_how_it_was_seen() {
        let of = |call: &str| Finding {
            title: "the GPU is idle for 238 ms, which is said in two lines; it saves 119 ms"
                .to_owned(),
            advice: "Launch less often.".to_owned(),
            change: vec![Change {
                call: call.to_owned(),
                ..Change::default()
            }],
            ..Finding::default()
        };
        let shown = |found: &[Finding], left| {
            let (lines, shown) = told_in(found, 44, left);
            let words = lines.into_iter().map(|it| match it {
                SummaryLine::Finding(text, mark) => format!("{}{text}", mark.map_or("", |it| it.0)),
                SummaryLine::Quiet(text) => text,
                other => panic!("{other:?}"),
            });
            (
                words.map(|it| it.trim_end().to_owned()).collect::<Vec<_>>(),
                shown,
            )
        };
        let title = [
            "·the GPU is idle for 238 ms, which is said in",
            "two lines; it saves 119 ms",
        ];
        let one = [of("torch.compile")];
        let all = [title[0], title[1], "Launch less often.", "→ torch.compile:"];
        assert_eq!(shown(&one, 4).0, all);
        assert_eq!(shown(&one, 3).0, [title[0], title[1], "→ torch.compile:"]);
        assert_eq!(
            shown(&one, 2).0,
            ["·the GPU is idle for 238 ms", "→ torch.compile:"]
        );
        assert_eq!(shown(&one, 1).0, ["·→ torch.compile:"]);
        let named = Finding {
            cure: "using a CUDA graph",
            ..of("torch.compile")
        };
        let both = "·using a CUDA graph → torch.compile:";
        assert_eq!(shown(&[named], 1).0, [both]);
        // A line is kept for the word on the other one.
        let two = [of("torch.compile"), of("pin_memory")];
        assert_eq!(
            shown(&two, 3),
            (
                vec![
                    "·the GPU is idle for 238 ms".to_owned(),
                    "→ torch.compile:".to_owned()
                ],
                1
            )
        );
        assert_eq!(shown(&two, 6).1, 2);
    }

    #[test]
    fn in_one_line_stands_what_to_do_and_not_how_things_are() {
        let syncs =
            "Launch ahead and sync once at the end. Where a result decides, its sync has to stay.";
        assert_eq!(what_to_do(syncs), "Launch ahead and sync once at the end");
        let graph = "A CUDA graph is replayed already. Capture in it, too, what is launched one by one, mostly add.";
        assert!(what_to_do(graph).starts_with("Capture in it"));
        let one = Finding {
            title: "99 CPU syncs between launches keep the GPU idle for 827 µs (38 %)".to_owned(),
            cure: "removing the syncs",
            advice: syncs.to_owned(),
            ..Finding::default()
        };
        let (lines, _) = told_in(&[one], 60, 1);
        let SummaryLine::Finding(text, _) = &lines[0] else {
            panic!("{lines:?}")
        };
        let both = "removing the syncs → Launch ahead and sync once at the end";
        assert_eq!(text, both);
    }

    #[test]
    fn too_many_variants_are_counted_and_the_one_on_screen_stays() {
        assert_eq!(shown(3, Some(1), 3), [0, 1, 2]);
        // Of eleven in four lines: two, the one on screen, and the word on eight others.
        assert_eq!(shown(11, Some(6), 4), [0, 1, 6]);
        assert_eq!(shown(11, Some(0), 4), [0, 1, 2]);
        assert!(shown(11, None, 1).is_empty());
    }
}
