//! The timeline of a page that is sent to others: the rows of the screen with all that they hold.

use activity::{What, units};
use advice::Facts;
use ratatui::style::Color;
use rustc_hash::FxHashMap;
use trace::{LaneId, Trace, describe};

use super::app::App;
use super::draw::label;
use super::state::row::RowKind;
use super::state::rows::{self, counters::Counters};
use super::state::{State, nest};
use super::theme::{Role, ThemeChoice};
use super::{ColorLevel, Theme};
use crate::export::page::{Look, PageMark, PageRow, PageRowKind, PageStep, Timeline};

/// Bars that a page holds at least, if there are so many. Beyond that, short calls and ranges are left out; operations and idle
/// time are all there.
const MOST: usize = 200_000;
/// Calls and ranges that are kept however many operations there are.
const MOST_OF_HOST: usize = 50_000;
/// Of more bars than [`MOST`] times are rounded to this, ns: they would be half of the file, and no width shows them.
const ROUGH: i64 = 256;

struct Outline<'a> {
    trace: &'a Trace,
    timeline: Timeline,
    known: FxHashMap<Look, u32>,
}

/// The timeline of the app's run as it was opened.
pub(super) fn collect(app: &App) -> Timeline {
    let state = &app.state;
    let trace = &state.model.run.trace;
    let mut outline = Outline {
        trace,
        timeline: Timeline {
            extent: trace.extent().unwrap_or_default(),
            opened: state.focus.camera.viewport.window,
            steps: steps(state),
            ..Timeline::default()
        },
        known: FxHashMap::default(),
    };
    let extent = outline.timeline.extent;
    let facts = Facts::new(trace);
    for row in rows::all(trace, extent, true, Counters::default()) {
        outline.add(&facts, row.kind, row.label);
    }
    outline.leave_short_out(MOST, MOST_OF_HOST);
    let bars: usize = outline.timeline.rows.iter().map(|it| it.marks.len()).sum();
    outline.timeline.unit = if bars > MOST { ROUGH } else { 1 };
    outline.timeline
}

fn steps(state: &State) -> Vec<PageStep> {
    let all = state.steps().map(|steps| steps.all.iter());
    let step = all.into_iter().flatten().map(|it| PageStep {
        span: it.span,
        is_odd: it.is_odd,
    });
    step.collect()
}

impl Outline<'_> {
    fn add(&mut self, facts: &Facts<'_>, kind: RowKind, label: String) {
        let (kind, levels, used) = match kind {
            RowKind::Title => (PageRowKind::Title, vec![Vec::new()], None),
            RowKind::Gpu(device) => {
                let used = self.trace.devices()[device].usage.span();
                (PageRowKind::Gpu, vec![self.idle(facts, device)], used)
            }
            RowKind::Stream(lane) => (PageRowKind::Stream, self.marks(lane, 1), None),
            RowKind::Thread(lane) | RowKind::Overhead(lane) => {
                (PageRowKind::Host, self.marks(lane, 1), None)
            }
            RowKind::Range(lane, 0) => (PageRowKind::Host, self.marks(lane, nest::USUAL), None),
            // Of depths the first brings all. Levels and counters are the screen's alone.
            _ => return,
        };
        let mut label = Some(label);
        for marks in levels {
            let label = label.take().unwrap_or_default();
            self.timeline.rows.push(PageRow {
                kind,
                label,
                used,
                marks,
            });
        }
    }

    /// Everything in a lane; ranges by depth, of which the deepest stand in what holds them.
    fn marks(&mut self, lane: LaneId, depths: usize) -> Vec<Vec<PageMark>> {
        let all = &self.trace.lanes()[lane];
        let levels = match depths {
            1 => vec![all.spans(all.kept()).collect()],
            _ => nest::all_levels(self.trace, lane, all.kept(), depths),
        };
        let mut marks = Vec::new();
        for level in levels {
            let mark = |(row, span)| PageMark {
                span,
                look: self.find_look(lane, row),
            };
            marks.push(level.into_iter().map(mark).collect());
        }
        marks
    }

    /// The gaps of a device, each in the colour of what most of it was due to.
    fn idle(&mut self, facts: &Facts<'_>, device: usize) -> Vec<PageMark> {
        let causes = facts.causes();
        let mut marks = Vec::new();
        for (gap, pieces) in causes.gaps_with_pieces(device, None) {
            let Some(piece) = pieces.iter().max_by_key(|piece| piece.span.len()) else {
                continue;
            };
            let cause = piece.cause.label();
            let (short, whole) = match causes.culprit(piece) {
                Some(culprit) => (culprit.clone(), format!("idle: {cause}: {culprit}")),
                None => (cause.to_owned(), format!("idle: {cause}")),
            };
            let group = causes.group(gap, piece);
            let look = self.add_look(short, whole, Role::Cause(group as u8));
            marks.push(PageMark {
                span: gap.span,
                look,
            });
        }
        marks
    }

    fn find_look(&mut self, lane: LaneId, row: usize) -> u32 {
        let what = self.trace.activity(lane, row).what;
        let short = describe::activity(self.trace, &what);
        let whole = match what {
            What::Copy(copy) => format!("{short} {}", units::bytes(copy.bytes)),
            _ => describe::whole(self.trace, &what),
        };
        self.add_look(short, whole, label::role(self.trace, &what))
    }

    fn add_look(&mut self, short: String, whole: String, role: Role) -> u32 {
        let whole = if whole == short { String::new() } else { whole };
        let look = Look {
            short,
            whole,
            colors: [false, true].map(|is_light| color(role, is_light)),
        };
        let looks = &mut self.timeline.looks;
        *self.known.entry(look).or_insert_with_key(|look| {
            looks.push(look.clone());
            looks.len() as u32 - 1
        })
    }

    /// Leaves out the shortest calls and ranges where there are too many.
    fn leave_short_out(&mut self, most: usize, most_of_host: usize) {
        let rows = &mut self.timeline.rows;
        let is_host = |row: &&mut PageRow| row.kind == PageRowKind::Host;
        let all: usize = rows.iter().map(|row| row.marks.len()).sum();
        let mut lengths: Vec<i64> = rows
            .iter_mut()
            .filter(is_host)
            .flat_map(|row| row.marks.iter().map(|mark| mark.span.len()))
            .collect();
        let room = most.saturating_sub(all - lengths.len()).max(most_of_host);
        if lengths.len() <= room {
            return;
        }
        let (longer, &mut least, _) =
            lengths.select_nth_unstable_by_key(room, |length| std::cmp::Reverse(*length));
        // Of those of one length as many as there is room for.
        let longer = longer.iter().filter(|length| **length > least).count();
        let mut equal = room - longer;
        for row in rows.iter_mut().filter(is_host) {
            row.marks.retain(|mark| {
                let is_kept = mark.span.len() > least || mark.span.len() == least && equal > 0;
                equal -= usize::from(is_kept && mark.span.len() == least);
                is_kept
            });
        }
        self.timeline.left_out = all - rows.iter().map(|row| row.marks.len()).sum::<usize>();
    }
}

/// The colour of a role on light or dark ground, as 0xRRGGBB.
fn color(role: Role, is_light: bool) -> u32 {
    let choice = ThemeChoice {
        is_light,
        ..ThemeChoice::default()
    };
    let theme = Theme {
        level: ColorLevel::True,
        is_ascii: false,
        choice,
    };
    match theme.fg(role).fg {
        Some(Color::Rgb(r, g, b)) => u32::from_be_bytes([0, r, g, b]),
        _ => 0x80_80_80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::KnownGpus;
    use activity::{Ns, RangeKind};
    use figures::DeviceFigures;
    use trace::testing::Scene;

    fn outline(scene: &mut Scene) -> (Timeline, App) {
        let app = App::of_trace(scene.trace(), None, KnownGpus::default());
        (collect(&app), app)
    }

    fn sum(rows: &[PageRow], kind: PageRowKind) -> Ns {
        let rows = rows.iter().filter(|row| row.kind == kind);
        rows.flat_map(|row| row.marks.iter().map(|mark| mark.span.len()))
            .sum()
    }

    #[test]
    fn idle_time_and_operations_add_up_to_what_a_report_says() {
        let mut scene = Scene::new();
        for i in 0..50 {
            let at = i * 1_000;
            scene.call("cudaLaunchKernel", at, at + 100);
            scene.kernel("axpy", 7, at + 200, at + 200 + 10 * i);
        }
        let (timeline, app) = outline(&mut scene);
        let trace = &app.state.model.run.trace;
        let figures: Vec<DeviceFigures> = Facts::new(trace).devices().to_vec();
        assert_eq!(sum(&timeline.rows, PageRowKind::Gpu), figures[0].idle_ns);
        assert_eq!(sum(&timeline.rows, PageRowKind::Stream), figures[0].busy_ns);
        // Made: 0 + 10 + … + 490 ns of kernels.
        assert_eq!(figures[0].busy_ns, 10 * 49 * 50 / 2);
        assert_eq!(timeline.left_out, 0);
    }

    #[test]
    fn short_ranges_are_left_out_and_counted_where_there_are_too_many() {
        let mut scene = Scene::new();
        scene.kernel("axpy", 7, 0, 10);
        for i in 0..1_000 {
            scene.range(RangeKind::Nvtx, "part", 1, 100 * i, 100 * i + 1 + i % 97);
        }
        let (timeline, app) = outline(&mut scene);
        let mut outline = Outline {
            trace: &app.state.model.run.trace,
            timeline,
            known: FxHashMap::default(),
        };
        outline.leave_short_out(501, 100);
        let timeline = outline.timeline;
        let host = timeline
            .rows
            .iter()
            .filter(|row| row.kind == PageRowKind::Host);
        let kept: usize = host.map(|row| row.marks.len()).sum();
        assert_eq!(kept, 500, "1 of 501 is the operation");
        assert_eq!(kept + timeline.left_out, 1_000);
    }
}
