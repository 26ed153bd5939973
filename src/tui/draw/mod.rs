//! The screen: widgets that draw `&self` from data prepared from the app, one file each.

pub mod axis;
pub mod chart;
pub mod details;
pub mod footer;
pub mod header;
pub mod label;
pub mod lane;
pub mod layout;
pub mod list;
pub mod overlay;
pub mod panel;
pub mod pen;
mod range;
pub mod strip;
pub mod tabs;
pub mod timeline;
pub mod views;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use super::action::View;
use super::app::App;
use super::sweep;
use super::theme::{Role, Theme};
use chart::Chart;
use details::Details;
use footer::Footer;
use header::Header;
use layout::{Layout, SMALLEST};
use tabs::Tabs;
use timeline::Timeline;

/// Draws the app's screen into a buffer of the app's size. [`App::prepare`] must have been called
/// since the app changed.
pub fn screen(app: &App, theme: &Theme, buf: &mut Buffer) {
    let area = *buf.area();
    if app.size.width < SMALLEST.width || app.size.height < SMALLEST.height {
        pen::text(buf, area, 0, "cuptop: too small", theme.fg(Role::Text));
        return;
    }
    let layout = Layout::new(app);
    (&Header::new(app, theme)).render(layout.header, buf);
    (&Tabs::new(app, theme)).render(layout.rule, buf);
    rule(theme, layout.details_rule, buf);
    middle(app, theme, &layout, buf);
    if !app.is_picking() {
        (&Details::new(app, theme)).render(layout.details, buf);
    }
    (&Footer::new(app, theme)).render(layout.footer, buf);
    let above = Rect::new(
        0,
        layout.header.bottom(),
        area.width,
        area.height.saturating_sub(2),
    );
    if app.error.is_some() && (app.view == View::Timeline || app.is_picking()) {
        overlay::error(app, theme, above, buf);
    }
    if app.is_help_open {
        overlay::help(app, theme, above, buf);
    }
}

fn middle(app: &App, theme: &Theme, layout: &Layout, buf: &mut Buffer) {
    let area = layout.middle();
    if app.is_picking() {
        (&views::picker(app, theme)).render(area, buf);
        return;
    }
    match app.view {
        View::Timeline => {
            let timeline = Timeline {
                app,
                theme,
                layout: *layout,
            };
            (&timeline).render(area, buf);
        }
        View::Table => (&views::operations(app, theme, area.width)).render(area, buf),
        View::Compare => (&views::compare(app, theme, area.width)).render(area, buf),
        View::Output => (&views::journal(&app.output, app.cursor, theme)).render(area, buf),
        View::Log => (&views::journal(&app.log, app.cursor, theme)).render(area, buf),
        View::Findings => (&views::findings(app, theme)).render(area, buf),
        View::Sweep => match sweep::sweep(app) {
            Some(sweep) => (&Chart { theme, sweep }).render(area, buf),
            None => (&views::no_sweep(app, theme)).render(area, buf),
        },
    }
}

fn rule(theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height > 0 {
        pen::fill(buf, area, theme.glyph('─'), theme.fg(Role::Rule));
    }
}
