//! The configuration file: colours and other matters of taste. Everything in it is optional, and the command line goes
//! before it.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use etcetera::BaseStrategy as _;
use serde::Deserialize;

use super::args::{Color, Palette as PaletteName, ScreenArgs};
use super::exit::{self, Ending};
use super::print;
use crate::tui::Wishes;
use activity::door;
use activity::text::printable;
use scenario::diagnostics::{Diagnostic, Diagnostics, did_you_mean};

/// All settings of the file, as `cuptop config` prints them: every line is a comment.
const DEFAULT: &str = include_str!("config.toml");

/// The settings of the configuration, and of the command line, which goes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    pub(super) theme: Option<PaletteName>,
    pub(super) color: Option<Color>,
    pub(super) ascii: bool,
    /// Whether `--verbose` was given.
    #[serde(skip)]
    pub(super) is_verbose: bool,
    /// Rows of each table of a report.
    pub(super) rows: Option<NonZeroUsize>,
    /// Rows of the timeline that are hidden, folded and pinned.
    pub(super) lanes: Wishes,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings that [`load`] read; before that, the defaults.
pub(super) fn settings() -> &'static Settings {
    static NONE: OnceLock<Settings> = OnceLock::new();
    let none = || NONE.get_or_init(Settings::default);
    SETTINGS.get().unwrap_or_else(none)
}

/// Reads the file, which need not exist unless the command line names it. It fills in what `screen` left open.
pub(super) fn load(screen: &ScreenArgs) -> Result<(), Ending> {
    let settings = match (&screen.config, path()) {
        (Some(named), _) => Some(read(named)?),
        (None, Some(usual)) if usual.exists() => Some(read(&usual)?),
        _ => None,
    };
    let settings = settings.unwrap_or_default();
    SETTINGS.get_or_init(|| Settings {
        color: screen.color.or(settings.color),
        theme: screen.theme.or(settings.theme),
        ascii: screen.ascii || settings.ascii,
        is_verbose: screen.verbose,
        ..settings
    });
    Ok(())
}

/// Prints the file's place and all its settings.
pub(super) fn config(screen: &ScreenArgs) -> Result<u8, Ending> {
    let path = screen.config.clone().or_else(path);
    let place = match &path {
        None => "there is no home directory: name a file with --config".to_owned(),
        Some(path) => {
            let state = if path.exists() {
                ""
            } else {
                " (not there yet)"
            };
            format!("{}{state}", path.display())
        }
    };
    print(&format!("# {}\n{DEFAULT}", printable(&place)))?;
    match path.filter(|path| path.exists()) {
        Some(path) => read(&path).map(|_| exit::FINE),
        None => Ok(exit::FINE),
    }
}

/// `$XDG_CONFIG_HOME/cuptop/config.toml`, also where that is not set.
fn path() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("cuptop").join("config.toml"))
}

fn read(path: &Path) -> Result<Settings, Ending> {
    let text = door::read_text(path, door::TEXT).map_err(|error| {
        Ending::input(format!(
            "cannot read the configuration {}: {error}",
            path.display()
        ))
    })?;
    parse(&path.display().to_string(), &text)
        .map_err(|wrong| Ending::diagnostics(wrong.render(super::stderr_has_color())))
}

/// Checks a configuration. Errors are laid out for people. The fuzzer calls it.
pub fn check(text: &str) -> Result<(), String> {
    let found = parse("config.toml", text);
    found.map(drop).map_err(|wrong| wrong.render(false))
}

fn parse(name: &str, text: &str) -> Result<Settings, Diagnostics> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let span = error.span().unwrap_or(0..text.len().min(1));
        let diagnostic = Diagnostic::error(span, error.message());
        // "unknown field `theem`, expected one of `theme`, `color`": what was meant is among them.
        let mut quoted = error.message().split('`').skip(1).step_by(2);
        let meant = quoted.next().and_then(|is| did_you_mean(is, quoted));
        let mut wrong = Diagnostics::new(name, Arc::from(text));
        wrong.push(match meant {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
        wrong
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::Counters;

    #[test]
    fn everything_that_the_default_mentions_can_be_said() {
        assert_eq!(parse("c", DEFAULT).ok(), Some(Settings::default()));
        // Without its comment signs, every line that looks like a setting is one.
        let uncommented: String = DEFAULT
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .filter(|line| line.starts_with('[') || line.contains(" = "))
            .map(|line| format!("{line}\n"))
            .collect();
        let settings = parse("c", &uncommented).map_err(|wrong| wrong.render(false));
        let settings = settings.expect("it is right");
        assert_eq!(settings.rows, NonZeroUsize::new(10));
        let lanes = &settings.lanes;
        assert_eq!(
            (lanes.hide.len(), lanes.fold.len(), lanes.pin.len()),
            (2, 1, 1)
        );
        assert_eq!(lanes.counters, Counters::None);
        assert_eq!(settings.theme, Some(PaletteName::Dark));
    }

    #[test]
    fn a_mistake_is_shown_where_it_is() {
        for (text, parts) in [
            (
                "theem = \"dark\"",
                [
                    "config.toml:1:1",
                    "unknown field `theem`",
                    "did you mean `theme`?",
                ],
            ),
            (
                "color = \"triucolor\"",
                [
                    "config.toml:1:9",
                    "unknown variant",
                    "did you mean `truecolor`?",
                ],
            ),
            ("rows = 0", ["config.toml:1:8", "invalid value", "nonzero"]),
            (
                "\n[colors]\nh2d = \"blue\"",
                [
                    "config.toml:2:2",
                    "unknown field `colors`",
                    "`theme`, `color`, `ascii`, `rows`, `lanes`",
                ],
            ),
            (
                "[lanes]\nhied = []",
                [
                    "config.toml:2:1",
                    "unknown field `hied`",
                    "did you mean `hide`?",
                ],
            ),
            (
                "[lanes]\nfold = \"host\"",
                ["config.toml:2:8", "invalid type", "expected a sequence"],
            ),
        ] {
            let wrong = parse("config.toml", text).expect_err("it is wrong");
            let shown = wrong.render(false);
            for part in parts {
                assert!(shown.contains(part), "{part} is missing in\n{shown}");
            }
        }
        assert!(parse("c", "theme = ").is_err());
    }
}
