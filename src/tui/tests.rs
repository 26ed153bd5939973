//! Whole screens.

use ratatui::buffer::Buffer;
use ratatui::layout::Size;

use super::app::App;
use super::*;
use crate::analysis::figures;

const PEAKS: Peaks = Peaks {
    copies: figures::Peaks {
        h2d: Some(57.0),
        d2h: Some(57.0),
        d2d: None,
        p2p: None,
    },
    memory: None,
    flops: None,
};

fn text(buf: &Buffer) -> String {
    let width = usize::from(buf.area().width);
    buf.content()
        .chunks(width.max(1))
        .map(|line| {
            let line: String = line.iter().map(|c| c.symbol()).collect();
            line.trim_end().to_owned() + "\n"
        })
        .collect()
}

#[test]
fn look() {
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        let size = Size::new(width, height);
        let buf = screenshot(fixture::trace(), None, PEAKS, &Theme::default(), size);
        eprintln!("{}", text(&buf));
    }
    let mut app = App::of_trace(fixture::trace(), None, PEAKS);
    app.size = Size::new(100, 30);
    for action in [
        action::Action::PreviousVariant,
        action::Action::Down,
        action::Action::NextGap,
    ] {
        app.act(action);
        app.prepare();
        eprintln!("{}", text(&render(&app, &Theme::default())));
    }
    app.act(action::Action::Help);
    eprintln!("{}", text(&render(&app, &Theme::default())));
}
