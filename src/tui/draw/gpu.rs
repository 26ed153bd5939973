//! The row of a GPU: what ran as heights, and behind it idle time in the colour of its cause, with the cause's name.

use std::ops::Range;

use super::ink::{self, FULL, Ink, Paint};
use crate::tui::draw::prelude::*;
use crate::tui::time_scale::TimeScale;
use activity::{Ns, Span};
use causes::{Group, Shares};
use trace::{Measure, Usage};

/// Columns below which a gap has no letter of its cause: among kernels they would be noise.
const LETTER: usize = 3;

/// What part of a column a device was busy for.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// With kernels, whatever ran beside them.
    pub kernels: f64,
    /// With anything.
    pub all: f64,
}

/// How busy a device is in each column, and why it is idle.
#[derive(Clone, Debug, Default)]
pub struct GpuPlot {
    shares: Vec<Busy>,
    /// What most of the idle time in the column was due to, as far as it is known.
    pub causes: Vec<Option<u8>>,
    /// The columns of the selected gap, and what stands in it: the longest form that fits.
    gap: (Range<u16>, Vec<String>),
}

impl GpuPlot {
    /// That of a device, with the cause of idle time in cells that touch `used`: before that and after it nothing
    /// is to be explained.
    pub fn new(
        usage: &Usage,
        scale: TimeScale,
        used: Span,
        idle: impl Fn(Span) -> Shares,
    ) -> GpuPlot {
        let edges = scale.edges();
        let busy = usage.times(Measure::Busy, &edges);
        let kernels = usage.times(Measure::Compute, &edges);
        let mut plot = GpuPlot::default();
        for ((cell, busy), kernels) in cells(&edges).zip(busy).zip(kernels) {
            let share = |ns| ns as f64 / cell.len().max(1) as f64;
            plot.shares.push(Busy {
                kernels: share(kernels),
                all: share(busy),
            });
            let between = cell.intersect(used);
            let groups = (busy < between.len()).then(|| (0..).zip(idle(between)));
            let most = groups.and_then(|groups| groups.max_by_key(|(_, ns)| *ns));
            let most = most.filter(|(_, ns)| *ns > 0).map(|(group, _)| group);
            plot.causes.push(most);
        }
        plot
    }

    /// The same with a gap that is selected.
    pub fn select(self, gap: Span, scale: TimeScale, forms: Vec<String>) -> GpuPlot {
        GpuPlot {
            gap: (scale.columns_of(gap), forms),
            ..self
        }
    }

    pub(super) fn draw(&self, theme: &Theme, plot: Rect, buf: &mut Buffer) {
        let columns = self.shares.len().min(usize::from(plot.width));
        for x in 0..columns {
            self.draw_column(theme, plot, x, buf);
        }
        // The selected gap has its words once, whatever it is made of.
        let key = |x: usize| {
            let cause = self.free(plot.height, x);
            cause.map(|cause| (!self.is_in_gap(x)).then_some(cause))
        };
        let mut from = 0;
        while from < columns {
            let key_of = key(from);
            let to = (from + 1..columns).find(|&x| key(x) != key_of);
            let to = to.unwrap_or(columns);
            if let Some(cause) = key_of.and(self.causes[from]) {
                self.label(theme, plot, from..to, cause, buf);
            }
            from = to;
        }
    }

    /// The height is the busy share: kernels below, in another colour what ran without one. Where idle time begins or ends within a
    /// column, what ran ends there. Behind it is the cause of idle time. Where there is no ground for that it is a letter.
    fn draw_column(&self, theme: &Theme, plot: Rect, x: usize, buf: &mut Buffer) {
        let (share, at) = (self.shares[x], x as u16);
        let cause = self.causes[x].filter(|_| share.all < FULL);
        let ground = cause.and_then(|cause| theme.idle(cause, self.is_in_gap(x)));
        if let Some((glyph, style)) = ground {
            pen::lines(plot).for_each(|line| pen::cell(buf, line, at, glyph, style));
        }
        let ground = ground.and_then(|(_, style)| style.bg);
        if let Some(ink) = self.edge(x) {
            ink.draw(theme, plot, at, ground, buf);
            return;
        }
        let over = |role| ground.map_or(theme.fg(role), |color| theme.fg(role).bg(color));
        // Without colours the two parts would look alike.
        let has_two = theme.has_grounds();
        let kernels = if has_two { share.kernels } else { share.all };
        let styles = [Role::Good, Role::H2D].map(over);
        ink::levels(theme, [kernels, share.all], styles, plot, at, buf);
        if let Some(cause) = cause.filter(|_| !has_two && share.all < 0.5) {
            let style = theme.fg(Role::Cause(cause));
            pen::cell(buf, plot, at, theme.cause(cause), style);
        }
    }

    fn is_in_gap(&self, x: usize) -> bool {
        self.gap.0.contains(&(x as u16))
    }

    /// What ran in a column between a full one and an empty one: it fills the column from that side.
    fn edge(&self, x: usize) -> Option<Ink> {
        let share = |x: usize| self.shares.get(x).map_or(0.0, |it| it.all);
        let (here, beside) = (self.shares[x], [x.wrapping_sub(1), x + 1].map(share));
        let role = match here.kernels {
            0.0 => Role::H2D,
            kernels if kernels == here.all => Role::Good,
            _ => return None,
        };
        Ink::at_edge(here.all, beside, Paint::of(role))
    }

    /// The cause of a column whose first line has room for words.
    fn free(&self, lines: u16, x: usize) -> Option<u8> {
        let full = lines * 8;
        let inked = u16::from(Theme::levels(self.shares[x].all, full.min(255) as u8));
        let is_free = inked + 8 <= full && self.edge(x).is_none();
        self.causes[x].filter(|_| is_free)
    }

    /// Puts into some columns what they are idle for: the cause's name, or its letter. The selected gap says how long and whose
    /// fault it is.
    fn label(&self, theme: &Theme, plot: Rect, columns: Range<usize>, cause: u8, buf: &mut Buffer) {
        let is_selected = self.is_in_gap(columns.start);
        let style = match theme.idle(cause, is_selected) {
            Some((_, style)) if style.bg.is_some() && is_selected => theme.bg(Role::Cause(cause)),
            Some((_, style)) if style.bg.is_some() => style.patch(theme.fg(Role::Dim)),
            _ => theme.fg(Role::Cause(cause)),
        };
        let group = Group::ALL.get(usize::from(cause)).map(|it| it.label());
        let group = [group.unwrap_or_default().to_owned()];
        let forms: &[String] = if is_selected { &self.gap.1 } else { &group };
        let fits = |form: &&String| pen::width(form) + 2 <= columns.len();
        let text = match forms.iter().find(fits) {
            Some(text) => format!(" {text} "),
            None if columns.len() >= LETTER => theme.cause(cause).to_string(),
            None => return,
        };
        let x = columns.start + (columns.len() - pen::width(&text)) / 2;
        pen::text(buf, plot, x as u16, &text, style);
    }
}

pub fn cells(edges: &[Ns]) -> impl Iterator<Item = Span> + '_ {
    edges.windows(2).map(|two| Span::new(two[0], two[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::ColorLevel;
    use ratatui::style::Color;

    fn of(columns: &[(f64, f64, Option<u8>)]) -> GpuPlot {
        let (shares, causes) = columns
            .iter()
            .map(|&(kernels, all, cause)| (Busy { kernels, all }, cause))
            .unzip();
        GpuPlot {
            shares,
            causes,
            ..GpuPlot::default()
        }
    }

    /// The characters of one column, from above, with their colour and the one behind.
    fn column(kernels: f64, all: f64, lines: u16) -> Vec<(char, bool, bool)> {
        let theme = Theme::default();
        let plot = Rect::new(0, 0, 1, lines);
        let mut buf = Buffer::empty(plot);
        of(&[(kernels, all, None)]).draw(&theme, plot, &mut buf);
        let (good, copies) = (theme.fg(Role::Good).fg, theme.fg(Role::H2D).fg);
        let seen = |y| {
            let cell = &buf[(0, y)];
            let symbol = cell.symbol().chars().next().unwrap_or(' ');
            (symbol, Some(cell.fg) == good, Some(cell.bg) == copies)
        };
        (0..lines).map(seen).collect()
    }

    #[test]
    fn a_selected_gap_of_two_causes_has_its_words_once() {
        let half = |cause| [(0.0, 0.0, Some(cause)); 15];
        let selected = GpuPlot {
            gap: (0..30, vec!["247 µs".to_owned()]),
            ..of(&[half(1), half(3)].concat())
        };
        let plot = Rect::new(0, 0, 30, 1);
        let mut buf = Buffer::empty(plot);
        selected.draw(&Theme::default(), plot, &mut buf);
        let text: String = (0..30).map(|x| buf[(x, 0)].symbol()).collect();
        assert_eq!(text.trim(), "247 µs");
    }

    #[test]
    fn what_waits_has_a_dim_ground_and_never_looks_as_full_as_what_works() {
        let plot = Rect::new(0, 0, 1, 2);
        let blind = Theme {
            level: ColorLevel::None,
            ..Theme::default()
        };
        for (theme, all, above, below) in [
            (Theme::default(), 0.0, " ", " "),
            (Theme::default(), 0.25, " ", "▄"),
            (Theme::default(), 0.75, "▄", "█"),
            (blind, 0.0, "l", " "),
            (blind, 1.0, "█", "█"),
        ] {
            let mut buf = Buffer::empty(plot);
            of(&[(all, all, Some(1))]).draw(&theme, plot, &mut buf);
            assert_eq!((buf[(0, 0)].symbol(), buf[(0, 1)].symbol()), (above, below));
            let ground = theme.idle(1, false).and_then(|it| it.1.bg);
            assert_eq!(buf[(0, 0)].bg, ground.unwrap_or(Color::Reset), "{all}");
        }
    }

    #[test]
    fn a_gap_says_what_it_is_for_and_ends_where_it_ends() {
        // A kernel up to a quarter of the second column, 20 columns of sync, of which the selected gap has all.
        let mut columns = vec![(1.0, 1.0, None), (0.25, 0.25, Some(2))];
        columns.extend([(0.0, 0.0, Some(2)); 20]);
        let drawn = |plot: &GpuPlot| {
            let area = Rect::new(0, 0, 22, 1);
            let mut buf = Buffer::empty(area);
            plot.draw(&Theme::default(), area, &mut buf);
            buf.content()
                .iter()
                .map(|it| it.symbol())
                .collect::<String>()
        };
        assert_eq!(drawn(&of(&columns)), "█▎        sync        ");
        let selected = GpuPlot {
            gap: (
                2..22,
                vec![
                    "20.0 µs: cudaDeviceSynchronize".to_owned(),
                    "20.0 µs".to_owned(),
                ],
            ),
            ..of(&columns)
        };
        assert_eq!(drawn(&selected), "█▎      20.0 µs       ");
        columns.truncate(5);
        assert_eq!(drawn(&of(&columns)).trim_end(), "█▎ s");
    }

    #[test]
    fn kernels_and_copies_alone_have_two_tones() {
        let (kernels, copies, behind) = (true, false, true);
        assert_eq!(column(1.0, 1.0, 1), [('█', kernels, behind)]);
        assert_eq!(column(0.0, 1.0, 1), [('█', copies, false)]);
        assert_eq!(column(0.25, 1.0, 1), [('▂', kernels, behind)]);
        // Idle for a half: as high as it was busy, in the colour of the larger part.
        assert_eq!(column(0.375, 0.5, 1), [('▄', kernels, false)]);
        assert_eq!(column(0.125, 0.5, 1), [('▄', copies, false)]);
        assert_eq!(
            column(0.5, 1.0, 2),
            [('█', copies, false), ('█', kernels, behind)]
        );
    }
}
