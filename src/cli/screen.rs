//! Common code of every command with a screen: colours, saved pictures, the end of a session.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use ratatui::buffer::Buffer;
use ratatui::layout::Size;

use super::args::{Color, First, PaletteName, PictureArgs, ReplayOptions, screen_args};
use super::exit::{self, Ending};
use crate::board;
use crate::bundled::LIBRARY;
use crate::export::page::TracePage;
use crate::export::screen::{self, PictureFormat, Shown};
use crate::export::{self, Readers};
use crate::report::{self, Report};
use crate::tui::{
    self, Choice, ColorLevel, Exit, FileFn, NextRun, Session, StartFn, StillTimeline, Theme,
};
use activity::feed::Outcome;
use activity::text;
use live::machine::MachineWatch;
use scenario::bundled::Bundled;
use scenario::plan::Plan;
use scenario::{Overrides, compile};
use trace::{SourceInfo, Trace};

/// The theme for a terminal.
pub(super) fn theme() -> Theme {
    use PaletteName::{ColorBlind, ColorBlindLight, Light};
    let args = screen_args();
    Theme {
        level: match args.color {
            Color::Auto => ColorLevel::detect(|name| std::env::var(name).ok()),
            Color::Truecolor => ColorLevel::True,
            Color::Indexed => ColorLevel::Indexed,
            Color::Basic => ColorLevel::Ansi,
            Color::Never => ColorLevel::None,
        },
        is_ascii: args.ascii || tui::theme::is_ascii_locale(|name| std::env::var(name).ok()),
        choice: tui::theme::ThemeChoice {
            is_light: [Light, ColorBlindLight].contains(&args.theme),
            is_color_blind: [ColorBlind, ColorBlindLight].contains(&args.theme),
        },
    }
}

/// The theme for a picture: all colours unless the user wants fewer, since no terminal limits it. Its background is
/// light for light themes.
pub(super) fn picture_theme() -> Theme {
    let mut theme = theme();
    theme.is_ascii = screen_args().ascii;
    if screen_args().color == Color::Auto {
        theme.level = ColorLevel::True;
    }
    theme
}

/// Opens the screen and stays until the user leaves.
pub(super) fn open(start: StartFn<'_>, file: FileFn<'_>, show: &First) -> Result<u8, Ending> {
    let first = Some(NextRun::Same);
    code_of(stay(start, first, Beside::default(), file, show)?)
}

/// What stands in the picker beside scenarios: what runs on this machine, and the traces of this folder.
pub(super) type Beside = (Option<MachineWatch>, Option<board::Watch>);

/// The same, with what stands in the picker; how it ended comes back.
pub(super) fn stay(
    mut start: StartFn<'_>,
    first: Option<NextRun>,
    (machine, board): Beside,
    file: FileFn<'_>,
    show: &First,
) -> Result<Exit, Ending> {
    if !io::stdout().is_terminal() || !tui::has_keyboard() {
        return Err(Ending::input("the screen needs a terminal")
            .help("use --headless or `cuptop report` for text, --screenshot FILE for a picture"));
    }
    // Colours that the user asked for appear even under NO_COLOR.
    crossterm::style::force_color_output(screen_args().color != Color::Auto || super::may_color());
    // Only the picker shows them, and to compile sixteen scenarios takes a part of the first frame's time.
    let is_picker = matches!(first, None | Some(NextRun::Look(_)));
    let choices = is_picker.then(choices).unwrap_or_default();
    let is_light = theme().choice.is_light;
    tui::run(Session {
        start: Box::new(|wanted| {
            let mut running = start(wanted)?;
            entitle(&mut running.source, show);
            Ok(running)
        }),
        first,
        choices,
        machine,
        board,
        file,
        picture: free_name,
        save: Box::new(|buffer, name| save_beside(buffer, name, is_light)),
        theme: theme(),
        opening: show.opening.clone(),
    })
    .map_err(|error| Ending::machine(format!("the screen failed: the terminal: {error}")))
}

/// Gives a timeline the title that the user chose.
pub(super) fn entitle(source: &mut SourceInfo, show: &First) {
    if let Some(title) = &show.title {
        source.title.clone_from(title);
    }
}

/// What a session without a scenario has for an editor.
pub(super) fn no_scenario() -> FileFn<'static> {
    Box::new(|| Err("no source line is known of this, and no scenario runs here".to_owned()))
}

/// The exit code of a session.
pub(super) fn code_of(exit: Exit) -> Result<u8, Ending> {
    if let Some(signal) = exit.signal {
        let code = live::attach::ended_when_asked().unwrap_or(128 + signal);
        return Ok(u8::try_from(code).unwrap_or(u8::MAX));
    }
    if let Some(error) = exit.error {
        return Err(error);
    }
    match exit.outcome {
        Some(Outcome::Failed(failure)) => Err(failure.into()),
        _ => Ok(exit::FINE),
    }
}

/// The bundled scenarios, a line each.
fn choices() -> Vec<Choice> {
    let choice = |scenario: &Bundled| {
        let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
        let choice = compiled.map(|it| choice(it.plan)).unwrap_or_default();
        Choice {
            name: scenario.name.to_owned(),
            ..choice
        }
    };
    LIBRARY.scenarios.iter().map(choice).collect()
}

fn choice(plan: Plan) -> Choice {
    let mut names: Vec<&str> = plan.variants.iter().map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // In the order of the file.
    names.sort_by_key(|name| plan.variants.iter().position(|v| v.name == *name));
    let mut variants = names.join(", ");
    if let Some(sweep) = &plan.sweep {
        let (values, param) = (sweep.values.len(), &sweep.param);
        variants += &format!(", at {values} values of {param}");
    }
    Choice {
        name: String::new(),
        variants,
        title: plan.name,
        about: plan.about,
        look_for: plan.look_for,
    }
}

/// The pictures of a name.
fn pictures(stem: &str) -> [(String, PictureFormat); 2] {
    use PictureFormat::{Svg, Txt};
    [("svg", Svg), ("txt", Txt)].map(|(end, it)| (format!("{stem}.{end}"), it))
}

/// The next name that no picture in the working directory has.
fn free_name() -> String {
    let is_free = |stem: &String| pictures(stem).iter().all(|(it, _)| !Path::new(it).exists());
    let mut names = (1..10_000).map(|n| format!("cuptop-{n}"));
    names.find(is_free).unwrap_or_default()
}

/// Saves the screen as SVG and text, which takes the place of nothing.
fn save_beside(buffer: &Buffer, name: &str, is_light: bool) -> Result<String, String> {
    let stem = [".svg", ".txt"].iter().find_map(|it| name.strip_suffix(it));
    let stem = stem.unwrap_or(name);
    let shown = Shown {
        buffer: buffer.clone(),
        title: "cuptop".to_owned(),
        is_light,
    };
    let taken = |it: &(String, _)| Path::new(&it.0).exists();
    if let Some((path, _)) = pictures(stem).into_iter().find(taken) {
        return Err(format!("nothing is saved: {path} is here already"));
    }
    for (path, format) in pictures(stem) {
        export::to_file(Path::new(&path), Readers::AsUmask, |out| {
            screen::write(format, &shown, out)
        })
        .map_err(|error| error.to_string())?;
    }
    Ok(format!("wrote {stem}.svg and {stem}.txt"))
}

/// What a command makes instead of opening the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shot {
    Picture(PictureFormat),
    Cast,
}

/// The kind of picture by the file's name; it fails before any work is done.
pub(super) fn shot(picture: &PictureArgs, replayed: ReplayOptions) -> Result<Option<Shot>, Ending> {
    let Some(path) = &picture.screenshot else {
        return Ok(None);
    };
    match export::FormatEntry::of_path(path).map(|entry| entry.format) {
        Some(export::Format::Screen(_)) if replayed.replay.is_some() => Err(Ending::input(
            "--replay is for the screen and for .cast, and this picture stands still",
        )),
        Some(export::Format::Screen(format)) => Ok(Some(Shot::Picture(format))),
        Some(export::Format::Cast) => Ok(Some(Shot::Cast)),
        _ => Err(Ending::input(format!(
            "{}: the name of a picture ends in .svg, .png, .txt or .cast",
            path.display()
        ))),
    }
}

/// Draws a complete timeline and writes it to the file that the user named.
pub(super) fn take_picture(
    shown: StillTimeline,
    picture: &PictureArgs,
    show: &First,
) -> Result<(), Ending> {
    let kind = shot(picture, ReplayOptions::default())?;
    let (Some(path), Some(Shot::Picture(format))) = (&picture.screenshot, kind) else {
        return Ok(());
    };
    let drawn = draw(shown, picture.size, show)?;
    export::to_file(path, Readers::AsUmask, |out| {
        screen::write(format, &drawn, out)
    })
    .map_err(Ending::input)
}

/// Hands on a page of a complete timeline.
pub(super) fn page(
    mut trace: Trace,
    (width, height): (u16, u16),
    show: &First,
    write: impl FnOnce(&TracePage<'_>) -> Result<(), Ending>,
) -> Result<(), Ending> {
    entitle(&mut trace.source, show);
    let gpus = super::profile::kept();
    let figures = Report::new(&trace, None, gpus.clone());
    let options = report::text::Options {
        markdown: true,
        ..report::text::Options::default()
    };
    let report = report::text::render(&figures, &options);
    let shown = StillTimeline {
        gpus,
        ..StillTimeline::of(trace)
    };
    let (theme, size) = (picture_theme(), Size { width, height });
    let (buffer, timeline) =
        tui::page(shown, &theme, size, &show.opening).map_err(Ending::input)?;
    let drawn = picture_of(buffer, &theme, show);
    let mut picture = Vec::new();
    screen::write(PictureFormat::Svg, &drawn, &mut picture).map_err(Ending::input)?;
    let picture = String::from_utf8_lossy(&picture);
    write(&TracePage {
        title: &drawn.title,
        report: &report,
        picture: &picture,
        timeline: &timeline,
    })
}

fn picture_of(buffer: Buffer, theme: &Theme, show: &First) -> Shown {
    Shown {
        buffer,
        title: match &show.title {
            Some(title) => format!("{}, a cuptop timeline", text::printable(title)),
            None => "A cuptop timeline".to_owned(),
        },
        is_light: theme.choice.is_light,
    }
}

/// Draws a complete timeline's screen.
pub(super) fn draw(
    mut shown: StillTimeline,
    (width, height): (u16, u16),
    show: &First,
) -> Result<Shown, Ending> {
    entitle(&mut shown.trace.source, show);
    let theme = picture_theme();
    let size = Size { width, height };
    let buffer = tui::screenshot(shown, &theme, size, &show.opening);
    let buffer = buffer.map_err(Ending::input)?;
    Ok(picture_of(buffer, &theme, show))
}
