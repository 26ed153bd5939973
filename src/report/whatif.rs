//! Predictions for people and for programs.

use serde::{Serialize, Serializer};

use super::page::{Options, Page, Tone};
use super::table::Table;
use activity::Ns;
use activity::text::plural;
use activity::units::{duration, factor, percent};
use replay::whatif::{Faster, Ideal, Prediction, Scope, WhatIf};
use unicode_width::UnicodeWidthStr as _;

/// What is said about predictions. As JSON the field names are a contract: add, don't rename.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfReport {
    /// Which meaning the fields have: that of a report's JSON.
    pub schema: u32,
    /// What the times are of.
    pub scope: ScopeReport,
    /// Median time, in ns.
    pub measured_ns: Ns,
    /// Median time of the unchanged replay with typical delays.
    pub replayed_ns: Ns,
    /// How far that is off, as a share.
    pub replay_error: f64,
    /// In the order asked for.
    pub predictions: Vec<PredictionRow>,
    /// What half of the time of one kind of operation would gain, where that is anything; `None` where nothing is predicted.
    #[serde(serialize_with = "list_of")]
    pub faster: Option<Vec<Faster>>,
    /// What a step takes at the least.
    pub ideal: Ideal,
}

/// What the times are of.
#[derive(Clone, Debug, Serialize)]
pub struct ScopeReport {
    /// How many were measured.
    pub steps: usize,
    /// "step" or "run".
    pub per: &'static str,
    /// The variant, or what showed the steps.
    pub of: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PredictionRow {
    /// The edit as it was given.
    pub edit: String,
    /// Median time with it; null when refused.
    pub predicted_ns: Option<Ns>,
    /// The same.
    pub likely_ns: Option<Ns>,
    /// The interval around that, in which eight of ten such cures lie.
    pub low_ns: Option<Ns>,
    pub high_ns: Option<Ns>,
    /// What is saved; null when refused.
    pub saving_ns: Option<Ns>,
    /// What is saved at the least, by the interval; negative when it may take longer.
    pub saving_low_ns: Option<Ns>,
    /// And at the most.
    pub saving_high_ns: Option<Ns>,
    /// Why nothing is predicted.
    pub refused: Option<String>,
    /// What it takes for granted.
    pub notes: Vec<String>,
    /// What no record tells, and the interval covers.
    pub unknowns: Vec<String>,
}

/// A list, empty where there is none.
fn list_of<S: Serializer>(rows: &Option<Vec<Faster>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().flatten())
}

/// Operations shown in "if twice as fast".
const TOP: usize = 5;

/// What the figures beside an edit take of a line, and the least that is left for its name.
const FIGURES: usize = 62;
const ROOM_MIN: usize = 12;

impl WhatIfReport {
    /// Everything that is said.
    pub fn new(whatif: &WhatIf<'_>, predictions: Vec<Prediction>) -> WhatIfReport {
        let steps = whatif.samples.len();
        let (per, of) = match &whatif.scope {
            Scope::Repeats(label) => ("run", Some(label.clone())),
            Scope::Steps(text) => ("step", Some(text.clone())),
            Scope::Run => ("run", None),
        };
        let scope = ScopeReport { steps, per, of };
        let is_told = whatif.refusal().is_none();
        let faster = is_told.then(|| whatif.faster(TOP));
        // What a cure makes of it is possible.
        let mut ideal = whatif.ideal();
        let predicted = predictions.iter().filter_map(|it| it.outcome.as_ref().ok());
        let least = predicted.map(|it| it.predicted).min();
        ideal.gpu = least.map_or(ideal.gpu, |least| least.min(ideal.gpu));
        WhatIfReport {
            schema: super::SCHEMA,
            scope,
            measured_ns: whatif.measured(),
            replayed_ns: whatif.replayed,
            replay_error: whatif.replay_error(),
            predictions: predictions
                .into_iter()
                .map(|of| PredictionRow::new(of, whatif.measured()))
                .collect(),
            faster,
            ideal,
        }
    }

    /// As JSON.
    ///
    /// # Errors
    /// When a number is none that JSON knows.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(activity::text::plain_json)
    }

    /// For people.
    pub fn text(&self, options: &Options) -> String {
        let mut page = Page::new(options);
        page.lead(Tone::Title, &self.headline());
        self.predicted(&mut page);
        for row in &self.predictions {
            if let Some(refused) = &row.refused {
                page.wrapped(&format!("{}: no prediction: {refused}", row.edit));
            }
        }
        let rows = &self.predictions;
        let unknowns = rows.iter().flat_map(|row| &row.unknowns);
        list(&mut page, "Why the interval is wide", unknowns);
        list(&mut page, "Notes", rows.iter().flat_map(|row| &row.notes));
        self.faster_kernels(&mut page);
        let busiest = self.ideal.engines.first();
        let engines = busiest.map_or(String::new(), |engine| {
            format!(" ({} {})", engine.engine, duration(engine.time))
        });
        page.closing(&format!(
            "Lower bound with perfect overlap: {}{engines}; the longest chain of dependent operations takes {}, the CPU \
             alone {}.",
            duration(self.ideal.gpu),
            duration(self.ideal.chain),
            duration(self.ideal.host)
        ));
        page.finish()
    }

    fn predicted(&self, page: &mut Page) {
        // A name is never cut: one that is too long for the table has a line of its own.
        let mut table = Table::new(["edit", "predicted", "80 % interval", "to", "saves", ""]);
        let room = page.width.saturating_sub(FIGURES).max(ROOM_MIN);
        for row in &self.predictions {
            let (Some(time), Some(low), Some(high)) = (row.predicted_ns, row.low_ns, row.high_ns)
            else {
                continue;
            };
            let mut name = row.edit.clone();
            if name.width() > room {
                table.heading(std::mem::take(&mut name));
            }
            table.row([
                name,
                duration(time),
                duration(low),
                duration(high),
                duration(self.measured_ns - time),
                self.times(time),
            ]);
        }
        let names = self.predictions.iter().map(|row| row.edit.width() + 2);
        let width = page.width;
        page.width = names.fold(width, usize::max);
        page.title("Predicted");
        page.table(&table);
        page.width = width;
    }

    fn faster_kernels(&self, page: &mut Page) {
        let Some(rows) = &self.faster else {
            return;
        };
        if rows.is_empty() {
            page.wrapped("No kernel alone matters: with the operations of any one name twice as fast, nothing is saved.");
            return;
        }
        page.title("What would gain most");
        let rows = rows.iter().map(|row| {
            let share = percent(row.gain as f64 / self.measured_ns as f64);
            [
                row.name.clone(),
                duration(row.time),
                duration(row.gain),
                share,
            ]
        });
        page.cells(
            ["if twice as fast", "its time", "saves", "of total time"],
            rows,
        );
    }

    fn headline(&self) -> String {
        let steps = self.scope.steps as u64;
        let of = self.scope.of.as_deref();
        let what = match (self.scope.per, of) {
            ("step", Some(of)) => format!(
                "A step takes {} (median of {}, {of})",
                duration(self.measured_ns),
                steps
            ),
            (_, Some(of)) => format!(
                "`{of}` takes {} (median of {})",
                duration(self.measured_ns),
                plural(steps, "repeat")
            ),
            _ => format!("The run takes {}", duration(self.measured_ns)),
        };
        format!(
            "{what}; the replay gives {} for it, a replay error of {}.",
            duration(self.replayed_ns),
            percent(self.replay_error)
        )
    }

    /// "1.80x faster".
    fn times(&self, predicted: Ns) -> String {
        if predicted <= 0 {
            return String::new();
        }
        let ratio = self.measured_ns as f64 / predicted as f64;
        if ratio >= 1.0 {
            format!("{} faster", factor(ratio))
        } else {
            format!("{} slower", factor(1.0 / ratio))
        }
    }
}

/// Sentences, each once, under a title; nothing where there are none.
fn list<'a>(page: &mut Page, title: &str, sentences: impl Iterator<Item = &'a String>) {
    let mut told: Vec<&String> = Vec::new();
    for sentence in sentences {
        if told.contains(&sentence) {
            continue;
        }
        if told.is_empty() {
            page.title(title);
        }
        told.push(sentence);
        page.item((Tone::Plain, "-"), &[sentence]);
    }
}

impl PredictionRow {
    fn new(prediction: Prediction, measured: Ns) -> PredictionRow {
        let edit = prediction.edit;
        match prediction.outcome {
            Ok(outcome) => PredictionRow {
                edit,
                predicted_ns: Some(outcome.predicted),
                likely_ns: Some(outcome.predicted),
                low_ns: Some(outcome.low),
                high_ns: Some(outcome.high),
                saving_ns: Some(outcome.saving),
                saving_low_ns: Some(measured - outcome.high),
                saving_high_ns: Some(measured - outcome.low),
                refused: None,
                notes: outcome.notes,
                unknowns: outcome.unknowns,
            },
            Err(refused) => PredictionRow {
                edit,
                refused: Some(refused),
                ..PredictionRow::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_however_wide_its_interval_and_no_name_is_cut() {
        let name =
            "pin+async+no-sync+fuse@Optimizer.step#AdamW.step+graph+own-stream+merge-copies@upload";
        let row = |edit: &str| {
            let outcome = replay::whatif::Outcome {
                predicted: 4_000_000,
                low: 2_000_000,
                high: 8_000_000,
                saving: 6_000_000,
                whole_saving: 6_000_000,
                count: 1,
                notes: Vec::new(),
                unknowns: Vec::new(),
            };
            let edit = edit.to_owned();
            let outcome = Ok(outcome);
            PredictionRow::new(Prediction { edit, outcome }, 10_000_000)
        };
        let answer = WhatIfReport {
            schema: 7,
            scope: ScopeReport {
                steps: 3,
                per: "run",
                of: None,
            },
            measured_ns: 10_000_000,
            replayed_ns: 10_000_000,
            replay_error: 0.0,
            predictions: vec![row("graph"), row(name)],
            faster: None,
            ideal: Ideal::default(),
        };
        let text = answer.text(&Options {
            width: 80,
            ..Options::default()
        });
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let figures = "4.00 ms 2.00 ms 8.00 ms 6.00 ms 2.50× faster";
        let lines: Vec<String> = text.lines().map(words).collect();
        assert!(lines.contains(&format!("graph {figures}")), "{text}");
        let at = lines.iter().position(|line| line == name);
        assert_eq!(lines[at.expect("the whole name") + 1], figures, "{text}");
        let json = serde_json::to_value(row(name)).expect("json");
        assert_eq!(json["predicted_ns"], 4_000_000);
        assert_eq!(json["saving_low_ns"], 2_000_000);
        assert_eq!(json["saving_high_ns"], 8_000_000);
    }
    #[test]
    fn where_no_operation_alone_matters_a_line_says_so() {
        let text = |faster: Option<Vec<Faster>>| {
            let answer = WhatIfReport {
                schema: 7,
                scope: ScopeReport {
                    steps: 3,
                    per: "run",
                    of: None,
                },
                measured_ns: 10_000_000,
                replayed_ns: 10_000_000,
                replay_error: 0.0,
                predictions: Vec::new(),
                faster,
                ideal: Ideal::default(),
            };
            answer.text(&Options::default())
        };
        let matters = |text: String| !text.contains("No kernel alone matters");
        assert!(matters(text(None)));
        assert!(!matters(text(Some(Vec::new()))));
        let row = Faster {
            name: "gemm".to_owned(),
            time: 4_000_000,
            gain: 2_000_000,
        };
        assert!(matters(text(Some(vec![row]))));
    }
}
