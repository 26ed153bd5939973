//! The configuration file: colours and other matters of taste. Everything in it is optional, and the command line goes
//! before it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use etcetera::BaseStrategy as _;
use toml::de::{DeTable, DeValue};

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) theme: Option<PaletteName>,
    pub(super) color: Option<Color>,
    pub(super) ascii: bool,
    /// Whether `--verbose` was given.
    pub(super) is_verbose: bool,
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

struct Reading {
    found: Settings,
    wrong: Diagnostics,
}

type Value<'a> = toml::Spanned<DeValue<'a>>;

impl Reading {
    fn table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "theme" => self.found.theme = self.choice(value),
                "color" => self.found.color = self.choice(value),
                "ascii" => match value.get_ref() {
                    DeValue::Boolean(is_ascii) => self.found.ascii = *is_ascii,
                    _ => self.wrong(value, "expected true or false"),
                },
                "rows" => {
                    let rows = match value.get_ref() {
                        DeValue::Integer(rows) => rows.as_str().parse().ok(),
                        _ => None,
                    };
                    match rows.filter(|rows| (1..=1_000_000).contains(rows)) {
                        Some(rows) => self.found.rows = Some(rows),
                        None => self.wrong(value, "expected a number of rows, from 1"),
                    }
                }
                "lanes" => match value.get_ref() {
                    DeValue::Table(lanes) => self.lanes(lanes),
                    _ => self.wrong(value, "expected a table: [lanes]"),
                },
                other => {
                    let message = format!("there is no setting `{other}`");
                    // A table is wrong for a key with one value.
                    let is_table = matches!(value.get_ref(), DeValue::Table(_));
                    let meant = if is_table { "" } else { other };
                    self.none_of(key.span(), message, meant, "the keys are", &KEYS);
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
                "counters" => self.found.lanes.counters = self.choice(value).unwrap_or_default(),
                other => {
                    let message = format!("there is no setting `{other}` of lanes");
                    self.none_of(key.span(), message, other, "the keys are", &LANES);
                }
            }
        }
    }

    /// A list of names of rows.
    fn names(&mut self, value: &Value<'_>) -> Vec<String> {
        let expected = "expected a list of names: [\"overlap\"]";
        let DeValue::Array(values) = value.get_ref() else {
            self.wrong(value, expected);
            return Vec::new();
        };
        let mut names = Vec::new();
        for value in values.iter() {
            match value.get_ref() {
                DeValue::String(name) if !name.is_empty() => names.push(name.to_string()),
                _ => self.wrong(value, expected),
            }
        }
        names
    }

    /// One of the values that the command line's option of this name takes.
    fn choice<T: clap::ValueEnum>(&mut self, value: &Value<'_>) -> Option<T> {
        let names = T::value_variants().iter().filter_map(T::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        let DeValue::String(text) = value.get_ref() else {
            let expected = format!("expected one of {}, in quotes", names.join(", "));
            self.wrong(value, &expected);
            return None;
        };
        let found = T::from_str(text, false).ok();
        if found.is_none() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let message = format!("`{text}` is none of its values");
            self.none_of(value.span(), message, text, "it can be", &names);
        }
        found
    }

    /// What is written is none of `all`: says which one was probably meant.
    fn none_of(&mut self, at: Range<usize>, message: String, is: &str, lead: &str, all: &[&str]) {
        let help = did_you_mean(is, all.iter().copied());
        let help = help.unwrap_or_else(|| format!("{lead} {}", all.join(", ")));
        self.wrong.push(Diagnostic::error(at, message).help(help));
    }

    fn wrong(&mut self, value: &Value<'_>, message: &str) {
        self.wrong.push(Diagnostic::error(value.span(), message));
    }
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
