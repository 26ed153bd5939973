//! The configuration file: colours and other matters of taste. Everything in it is optional, and the command line goes
//! before it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::ValueEnum as _;
use etcetera::BaseStrategy as _;
use toml::de::{DeTable, DeValue};

use super::args::{Color, Palette as PaletteName, ScreenArgs};
use super::exit::{self, Ending};
use super::print;
use crate::tui::{Counters, Wishes};
use activity::door;
use activity::text::printable;
use scenario::diagnostics::{Diagnostic, Diagnostics, did_you_mean};

/// All settings of the file, as `cuptop config` prints them: every line is a comment.
const DEFAULT: &str = include_str!("config.toml");

/// The settings of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    theme: Option<PaletteName>,
    color: Option<Color>,
    ascii: Option<bool>,
    /// Rows of each table of a report.
    pub(super) rows: Option<usize>,
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

/// Reads the file, which need not exist unless the command line names it. It fills in what the command line left open
/// in `screen`.
pub(super) fn load(screen: &mut ScreenArgs) -> Result<(), Ending> {
    let settings = match (&screen.config, path()) {
        (Some(named), _) => Some(read(named)?),
        (None, Some(usual)) if usual.exists() => Some(read(&usual)?),
        _ => None,
    };
    let settings = SETTINGS.get_or_init(|| settings.unwrap_or_default());
    screen.color = screen.color.or(settings.color);
    screen.theme = screen.theme.or(settings.theme);
    screen.ascii |= settings.ascii.unwrap_or(false);
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
    let mut reading = Reading {
        found: Settings::default(),
        wrong: Diagnostics::new(name, Arc::from(text)),
    };
    match DeTable::parse(text) {
        Ok(table) => reading.table(table.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..text.len().min(1));
            let message = error.message().to_owned();
            reading.wrong.push(Diagnostic::error(span, message));
        }
    }
    match reading.wrong.has_errors() {
        true => Err(reading.wrong),
        false => Ok(reading.found),
    }
}

/// The keys of the file.
const KEYS: [&str; 5] = ["theme", "color", "ascii", "rows", "lanes"];

/// The keys of `[lanes]`.
const LANES: [&str; 4] = ["hide", "fold", "pin", "counters"];

/// What `counters` can be.
const COUNTERS: [(&str, Counters); 3] = [
    ("few", Counters::Few),
    ("all", Counters::All),
    ("none", Counters::None),
];

struct Reading {
    found: Settings,
    wrong: Diagnostics,
}

type Value<'a> = toml::Spanned<DeValue<'a>>;

impl Reading {
    fn table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "theme" => self.found.theme = self.choice(value, PaletteName::value_variants()),
                "color" => self.found.color = self.choice(value, Color::value_variants()),
                "ascii" => match value.get_ref() {
                    DeValue::Boolean(is_ascii) => self.found.ascii = Some(*is_ascii),
                    _ => self.wrong(value, "expected true or false", None),
                },
                "rows" => {
                    let rows = match value.get_ref() {
                        DeValue::Integer(rows) => rows.as_str().parse().ok(),
                        _ => None,
                    };
                    match rows.filter(|rows| (1..=1_000_000).contains(rows)) {
                        Some(rows) => self.found.rows = Some(rows),
                        None => self.wrong(value, "expected a number of rows, from 1", None),
                    }
                }
                "lanes" => match value.get_ref() {
                    DeValue::Table(lanes) => self.lanes(lanes),
                    _ => self.wrong(value, "expected a table: [lanes]", None),
                },
                other => {
                    // A table is wrong for a key with one value.
                    let is_table = matches!(value.get_ref(), DeValue::Table(_));
                    let help = did_you_mean(other, KEYS)
                        .filter(|_| !is_table)
                        .unwrap_or_else(|| format!("the keys are {}", KEYS.join(", ")));
                    let message = format!("there is no setting `{other}`");
                    self.wrong
                        .push(Diagnostic::error(key.span(), message).help(help));
                }
            }
        }
    }

    fn lanes(&mut self, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "hide" => self.found.lanes.hide = self.names(value),
                "fold" => self.found.lanes.fold = self.names(value),
                "pin" => self.found.lanes.pin = self.names(value),
                "counters" => {
                    let named = match value.get_ref() {
                        DeValue::String(text) => COUNTERS.iter().find(|(name, _)| name == text),
                        _ => None,
                    };
                    match named {
                        Some((_, counters)) => self.found.lanes.counters = *counters,
                        None => {
                            self.wrong(value, "expected one of few, all, none, in quotes", None);
                        }
                    }
                }
                other => {
                    let help = did_you_mean(other, LANES)
                        .unwrap_or_else(|| format!("the keys are {}", LANES.join(", ")));
                    let message = format!("there is no setting `{other}` of lanes");
                    self.wrong
                        .push(Diagnostic::error(key.span(), message).help(help));
                }
            }
        }
    }

    /// A list of names of rows.
    fn names(&mut self, value: &Value<'_>) -> Vec<String> {
        let expected = "expected a list of names: [\"overlap\"]";
        let DeValue::Array(values) = value.get_ref() else {
            self.wrong(value, expected, None);
            return Vec::new();
        };
        let mut names = Vec::new();
        for value in values.iter() {
            match value.get_ref() {
                DeValue::String(name) if !name.is_empty() => names.push(name.to_string()),
                _ => self.wrong(value, expected, None),
            }
        }
        names
    }

    /// One of the values that the command line's option of this name takes.
    fn choice<T: clap::ValueEnum>(&mut self, value: &Value<'_>, all: &[T]) -> Option<T> {
        let names = || all.iter().filter_map(clap::ValueEnum::to_possible_value);
        let names: Vec<String> = names().map(|name| name.get_name().to_owned()).collect();
        let DeValue::String(text) = value.get_ref() else {
            self.wrong(
                value,
                &format!("expected one of {}, in quotes", names.join(", ")),
                None,
            );
            return None;
        };
        let found = T::from_str(text, false).ok();
        if found.is_none() {
            let help = did_you_mean(text, names.iter().map(String::as_str))
                .unwrap_or_else(|| format!("it can be {}", names.join(", ")));
            self.wrong(
                value,
                &format!("`{text}` is none of its values"),
                Some(help),
            );
        }
        found
    }

    fn wrong(&mut self, value: &Value<'_>, message: &str, help: Option<String>) {
        self.wrong
            .push(Diagnostic::error(value.span(), message).maybe_help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(settings.rows, Some(10));
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
        let text = "theem = \"dark\"\ncolor = \"triucolor\"\nrows = 0\n[colors]\nh2d = \"blue\"\n[lanes]\nhied = []\nfold = \"host\"\n";
        let wrong = parse("config.toml", text).expect_err("it is wrong");
        let shown = wrong.render(false);
        for part in [
            "config.toml:1:1",
            "there is no setting `theem`",
            "did you mean `theme`?",
            "config.toml:2:9",
            "did you mean `truecolor`?",
            "config.toml:3:8",
            "config.toml:4:2",
            "there is no setting `colors`",
            "the keys are theme, color, ascii, rows, lanes",
            "config.toml:7:1",
            "did you mean `hide`?",
            "config.toml:8:8",
            "a list of names",
        ] {
            assert!(shown.contains(part), "{part} is missing in\n{shown}");
        }
        assert!(parse("c", "theme = ").is_err());
    }
}
