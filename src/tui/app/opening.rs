//! What a screen shows first, where it was asked for something else than the usual.

use std::str::FromStr;

use super::App;
use crate::tui::action::Action;
use crate::tui::state::{Item, RowKind};
use crate::tui::view::{Place, VIEWS, view_named};
use activity::What;
use scenario::view::View as Part;
use trace::{Trace, describe};

/// What a screen shows first: a view, a part of the time, something selected. Empty for the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Opening {
    /// The view, by the beginning of its name: timeline, operations, findings, compare, sweep …
    #[arg(long, value_name = "NAME", value_parser = view_named)]
    pub view: Option<usize>,
    /// A part of the pass or the run, counted from its first operation: "first 100 us", "last 1 ms", "200 us .. 300 us".
    #[arg(long, value_name = "PART")]
    pub zoom: Option<Part>,
    /// What is selected: the longest operation, call or range whose name has this in it, a row, or longest-gap.
    #[arg(long, value_name = "NAME")]
    pub select: Option<Select>,
    /// Pictures without the bar of views, hints and other words for who sits before it.
    #[arg(long = "bare")]
    pub is_bare: bool,
}

/// What is selected first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// The longest gap of all devices.
    LongestGap,
    /// The longest operation, call or range whose name has this in it, or else a row; one of exactly this name goes
    /// before others.
    Named(String),
}

impl FromStr for Select {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Select, Self::Err> {
        match text.trim() {
            "" => Err("expected a name, or longest-gap"),
            "longest-gap" => Ok(Select::LongestGap),
            name => Ok(Select::Named(name.to_owned())),
        }
    }
}

impl App {
    /// Shows what was asked for.
    ///
    /// # Errors
    /// What there is not, in a sentence. The rest is shown.
    pub fn open_at(&mut self, opening: &Opening) -> Result<(), String> {
        self.state.is_bare = opening.is_bare;
        self.prepare();
        let mut said = Ok(());
        let before = self.views.current;
        if opening.select.is_some() || opening.zoom.is_some() {
            self.views.show_home(&self.state);
        }
        match &opening.select {
            None => {}
            Some(Select::LongestGap) => {
                self.views.act(Action::LongestGap, &mut self.state);
                if !matches!(self.state.focus.selection.item, Item::Gap(_)) {
                    said = Err("there is no gap to select".to_owned());
                }
            }
            Some(Select::Named(name)) => said = self.select(name),
        }
        if let Some(part) = opening.zoom {
            let whole = self.state.operations().or(self.state.scope_span());
            if let Some(whole) = whole {
                let camera = &mut self.state.focus.camera;
                camera.is_following = false;
                camera.viewport.show(part.within_span(whole));
            }
        }
        let view = opening.view.unwrap_or(before);
        if view != self.views.current {
            self.views.show(view, &self.state);
        }
        self.prepare();
        if opening.view.is_some() && !self.views.has_content(view, &self.state) {
            let title = VIEWS[view].title;
            said = said.and(Err(format!("there is nothing to show under {title}")));
        }
        self.state.messages.flash = None;
        said
    }

    /// Selects by name, and brings what it finds on screen.
    fn select(&mut self, name: &str) -> Result<(), String> {
        let state = &mut self.state;
        let scope = state.scope_span().unwrap_or_default();
        let trace = &state.model.run.trace;
        let wanted = name.to_lowercase();
        let lanes = state.rows.list.iter().filter_map(|row| {
            let is_first = !matches!(row.kind, RowKind::Range(_, depth) if depth > 0);
            Some((row.kind, row.kind.lane().filter(|_| is_first)?))
        });
        let mut best: Option<(bool, i64, Place)> = None;
        for (kind, id) in lanes {
            let lane = &trace.lanes()[id];
            for row in lane.rows(scope) {
                let span = lane.span(row);
                let Some(is_whole) = named(trace, &trace.activity(id, row).what, &wanted) else {
                    continue;
                };
                let rank = (is_whole, span.len());
                if best.as_ref().is_none_or(|b| rank > (b.0, b.1)) {
                    let place = Place {
                        row: Some(kind),
                        record: Some(row),
                        span,
                    };
                    best = Some((is_whole, span.len(), place));
                }
            }
        }
        if let Some((_, _, place)) = best {
            self.go_to(&place);
            return Ok(());
        }
        let is_it = |label: &str| label.to_lowercase() == wanted;
        match state.rows.list.iter().find(|row| is_it(&row.label)) {
            Some(row) if row.kind != RowKind::Title => {
                state.focus.selection.row = Some(row.kind);
                state.focus.selection.item = Item::None;
                Ok(())
            }
            _ => Err(format!("nothing on the timeline is called {name}")),
        }
    }
}

/// Whether a record's name is `wanted` (`Some(true)`), or has it in it.
fn named(trace: &Trace, what: &What, wanted: &str) -> Option<bool> {
    let name = describe::activity(trace, what).to_lowercase();
    match name.contains(wanted) {
        true => Some(name == wanted),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture::{self, EPOCH};
    use crate::tui::tests::gpus;
    use crate::tui::view::SWEEP;
    use activity::Span;

    /// `streamed`: batch `i` of four starts 400 µs after the one before, its upload takes 300 µs, its kernel 400 µs.
    const STREAMED: i64 = EPOCH + 10_100_000;

    fn opened(opening: Opening) -> (App, Result<(), String>) {
        let mut app = App::of_trace(fixture::trace(), None, gpus());
        let said = app.open_at(&opening);
        (app, said)
    }

    #[test]
    fn a_part_of_the_pass_counts_from_its_first_operation() {
        let zoom = "400 us .. 1 ms".parse().ok();
        let (app, said) = opened(Opening {
            zoom,
            ..Opening::default()
        });
        let window = Span::new(STREAMED + 400_000, STREAMED + 1_000_000);
        assert_eq!(
            (said, app.state.focus.camera.viewport.window),
            (Ok(()), window)
        );
    }

    #[test]
    fn what_is_named_is_selected_and_seen() {
        let select = |name: &str| {
            opened(Opening {
                select: Some(Select::Named(name.to_owned())),
                ..Opening::default()
            })
        };
        // The longest call of all, by a part of its name.
        let (app, _) = select("synchronize");
        let (start, length) = (EPOCH + 10_120_000, 2_190_000);
        let span = Span::new(start, start + length);
        assert_eq!(app.state.focus.selection.item.span(), Some(span));
        assert!(app.state.focus.camera.viewport.window.overlaps(span));
        // The kernel, in whatever letters.
        let (app, _) = select("MATMUL");
        let kernel = app.state.focus.selection.item.span().map(Span::len);
        assert_eq!(kernel, Some(400_000));
        // A row, when nothing on it is called so.
        let (app, said) = select("s2");
        assert!(said.is_ok() && app.state.focus.selection.row.is_some());
        assert!(app.state.focus.selection.item == Item::None);
        let (_, said) = select("nccl");
        assert_eq!(
            said,
            Err("nothing on the timeline is called nccl".to_owned())
        );
    }

    #[test]
    fn a_view_without_content_is_said() {
        let (app, said) = opened(Opening {
            view: Some(SWEEP),
            ..Opening::default()
        });
        assert_eq!(app.views.current, SWEEP);
        assert!(said.is_err_and(|text| text.contains("sweep")));
        let (app, said) = opened(Opening {
            view: Some(3),
            select: Some(Select::Named("H2D".to_owned())),
            ..Opening::default()
        });
        assert_eq!((app.views.current, said), (3, Ok(())));
    }
}
