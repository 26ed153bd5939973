//! The roofline chart of kernels in scope, where their counters were sampled.

use super::{List, View};
use crate::tui::draw::chart::roofline::{self, Mark};
use crate::tui::draw::prelude::*;
use crate::tui::draw::{label, pen};
use crate::tui::state::analyst::Question;
use crate::tui::state::{Scope, State};
use activity::units::share;
use activity::{Ns, Span};
use figures::shapes::Use;
use figures::tables::{self, NameRow};
use trace::Trace;

#[derive(Debug, Default)]
pub(super) struct Roofline {
    question: Question<Scope, Vec<Mark>>,
    marks: Vec<Mark>,
}

/// The kernels of which samples tell both shares, most time first.
fn marks(trace: &Trace, scope: Span) -> Vec<Mark> {
    let rows = tables::kernels(trace, Some(scope));
    let all: Ns = rows.iter().map(|it| it.total_ns).sum();
    let names: Vec<u32> = rows.iter().map(|it| it.id).collect();
    let rows = rows.iter().zip(trace.names().short_unique(&names));
    let mark = |(row, name): (&NameRow, String)| {
        let counted = Use::of(&row.shapes)?;
        let compute = [counted.tensor, counted.issue].into_iter().flatten();
        Some(Mark {
            class: counted.class.label(),
            role: label::kernel_role(&row.name),
            time: share(row.total_ns, all),
            dram: counted.dram?,
            compute: compute.reduce(f64::max)?,
            name,
        })
    };
    rows.filter_map(mark).collect()
}

impl View for Roofline {
    fn has_list(&self) -> bool {
        false
    }

    fn has_content(&self, state: &State) -> bool {
        state.model.run.trace.is_sampled()
    }

    fn prepare(&mut self, _list: &mut List, state: &State, _area: Rect) {
        let (run, about) = (&state.model.run, state.scope());
        let scope = state.scope_span().unwrap_or_default();
        let find = move |trace: &Trace, _: &_| marks(trace, scope);
        self.question.ask(&state.model.analyst, run, about, find);
        let found = self.question.answer_to(run, about);
        self.marks = found.cloned().unwrap_or_default();
    }

    fn draw(&self, _list: &List, theme: &Theme, area: Rect, buf: &mut Buffer) {
        if !self.marks.is_empty() {
            return roofline::draw(&self.marks, theme, area, buf);
        }
        let text = match self.question.is_open() {
            true => "looking at the samples",
            false => "no kernel in scope has enough samples of its counters (--counters)",
        };
        pen::text(buf, area, 2, text, theme.fg(Role::Dim));
    }
}
