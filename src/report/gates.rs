//! What a report must not say: "idle > 30 %". For scripts that fail by the figures of a program.

use super::Report;
use activity::Span;
use activity::units::{Unit, share};
use figures::VariantFigures;

use figures::variants::measure::Run;
use scenario::condition;
use scenario::expect::{Compare, Figure};
use scenario::figures::{FIGURES, Operand};

/// A condition under which a command fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was given.
    pub text: String,
    of: Gated,
    compare: Compare,
    value: f64,
}

/// What a condition is about.
#[derive(Clone, Debug, PartialEq)]
enum Gated {
    /// One of [`OF_STEPS`].
    Steps(&'static str, Unit),
    /// A figure of the whole, as `[expect]` knows it.
    Figure(Figure),
}

/// `idle` is of all steady steps, on the GPU where it is most; `run.idle` of the whole. `odd.time` is the part of the steady steps that
/// odd ones take more.
const OF_STEPS: [(&str, Unit); 5] = [
    ("idle", Unit::Share),
    ("step.idle", Unit::Share),
    ("step", Unit::Time),
    ("odd.time", Unit::Share),
    ("run.idle", Unit::Share),
];

/// What came of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Whether it holds, and so the command fails; `None` where that cannot be measured.
    pub fails: Option<bool>,
    /// In a sentence.
    pub text: String,
}

impl Gate {
    /// From "idle > 30 %".
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Gate, String> {
        let at = text.find(['<', '>']).ok_or("write it as \"idle > 30 %\"")?;
        let (name, bound) = (text[..at].trim(), text[at..].trim());
        let of_steps = OF_STEPS.iter().find(|it| it.0 == name);
        let figures = FIGURES.iter().filter(|it| it.operand == Operand::None);
        let (of, unit) = match (of_steps, figures.clone().find(|it| it.name == name)) {
            (Some(&(name, unit)), _) => (Gated::Steps(name, unit), unit),
            (None, Some(of)) => (Gated::Figure(Figure::new(of.kind, "")), of.unit),
            (None, None) => {
                let mut all = OF_STEPS.map(|it| it.0).to_vec();
                for it in figures {
                    all.extend(Some(it.name).filter(|it| !all.contains(it)));
                }
                return Err(format!("there is no figure `{name}`: {}", all.join(", ")));
            }
        };
        let (compare, value) = condition(bound, unit)?;
        Ok(Gate {
            text: text.trim().to_owned(),
            of,
            compare,
            value,
        })
    }

    fn unit(&self) -> Unit {
        match &self.of {
            Gated::Steps(_, unit) => *unit,
            Gated::Figure(of) => of.spec().unit,
        }
    }
}

/// A figure in words, with as many digits as tell it from its bound.
fn shown(unit: Unit, value: f64, bound: f64) -> String {
    let shown = unit.show(value);
    if unit != Unit::Share || value == bound || shown != unit.show(bound) {
        return shown;
    }
    let text = |digits, value: f64| format!("{:.digits$} %", 100.0 * value);
    let mut texts = (1..9).map(|it| (text(it, value), text(it, bound)));
    texts.find(|it| it.0 != it.1).map_or(shown, |it| it.0)
}

impl Report {
    /// Whether a condition holds.
    pub fn judge(&self, gate: &Gate) -> Judged {
        let measured = match &gate.of {
            Gated::Steps(name, _) => self.of_steps(name),
            Gated::Figure(figure) => self.of_whole(figure).map(|value| (value, "")),
        };
        let text = &gate.text;
        let (fails, text) = match measured {
            Err(why) => (None, format!("`{text}` cannot be judged: {why}")),
            Ok((value, of)) => {
                let fails = gate.compare.holds(value, gate.value);
                let verb = if fails { "fails" } else { "is fine" };
                let shown = shown(gate.unit(), value, gate.value);
                (Some(fails), format!("`{text}` {verb}: {shown}{of}"))
            }
        };
        Judged { fails, text }
    }

    /// A figure of steps, and what it is of where there are none.
    fn of_steps(&self, name: &str) -> Result<(f64, &'static str), String> {
        let main = self.main_steps();
        let shares = self.devices.iter().map(|it| it.idle_share());
        let whole = shares
            .reduce(f64::max)
            .ok_or("no GPU operation was recorded");
        let steady = self.steady.iter().map(|it| share(it.idle_ns, it.time_ns));
        let of_run = " (of the whole: no steps were found)";
        let none = || "no steps were found".to_owned();
        match (name, main) {
            ("run.idle", _) => Ok((whole?, "")),
            ("idle" | "step.idle", None) => Ok((whole?, of_run)),
            ("idle", Some(_)) => Ok((steady.reduce(f64::max).ok_or_else(none)?, "")),
            ("step.idle", Some(of)) => {
                let idle = of.typical.time_ns - of.typical.busy_ns;
                Ok((share(idle, of.typical.time_ns), ""))
            }
            ("step", Some(of)) => Ok((of.median_ns as f64, "")),
            (_, Some(_)) => {
                let odd = self.steps.iter().filter_map(|it| it.odd_cost.as_ref());
                Ok((odd.map(|it| it.share).sum(), ""))
            }
            (_, None) => Err(none()),
        }
    }

    /// A figure of the whole timeline.
    fn of_whole(&self, figure: &Figure) -> Result<f64, String> {
        let span = self.devices.iter().map(|it| it.span).reduce(Span::hull);
        let of = VariantFigures {
            repeats: 1,
            makespan_ns: span.unwrap_or_default().len(),
            devices: self.devices.clone(),
            peak_memory: self.peak_memory,
            ..VariantFigures::default()
        };
        let run = Run {
            plan: None,
            variants: &[],
            peaks: self.peaks,
        };
        run.measure(&of, figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::KnownGpus;
    use activity::{Ns, RangeKind};
    use trace::testing::Scene;

    /// Twelve steps of 3.01 ms, in which a GPU works for 3 ms. Before one the CPU saves for so long.
    fn report(saves: Ns) -> Report {
        let mut scene = Scene::new();
        let mut now = 0;
        for step in 0..12 {
            let from = now;
            if step == 5 {
                scene.range(RangeKind::Nvtx, "save", 0, now, now + saves);
                now += saves;
            }
            for kernel in 0..3 {
                let at = now + 10_000 + kernel * 1_000_000;
                scene.call(
                    "cudaLaunchKernel",
                    now + kernel * 2_000,
                    now + kernel * 2_000 + 1_000,
                );
                scene.kernel("gemm", 1, at, at + 1_000_000);
            }
            now += 3_010_000;
            scene.range(RangeKind::Nvtx, &format!("step {step}"), 0, from, now);
        }
        Report::new(&scene.trace(), None, KnownGpus::default())
    }

    fn fails(report: &Report, gate: &str) -> Option<bool> {
        report.judge(&Gate::parse(gate).expect(gate)).fails
    }

    #[test]
    fn a_share_that_rounds_to_its_bound_has_more_digits() {
        assert_eq!(shown(Unit::Share, 0.3004, 0.3), "30.04 %");
        assert_eq!(shown(Unit::Share, 0.31, 0.3), Unit::Share.show(0.31));
        assert_eq!(shown(Unit::Share, 0.3, 0.3), Unit::Share.show(0.3));
    }

    #[test]
    fn conditions_are_of_what_they_name() {
        // The eleven steps that are seen to their end take 33.11 ms, and 53.11 with 20 ms of saving.
        let (even, odd) = (report(0), report(20_000_000));
        for (gate, of_even, of_odd) in [
            ("idle > 30 %", false, true),
            ("idle > 38 %", false, false),
            ("idle >= 0.37", false, true),
            ("step.idle > 1 %", false, false),
            ("step > 3 ms", true, true),
            ("step > 3.02 ms", false, false),
            ("odd.time > 37 %", false, true),
            ("run.idle > 30 %", false, true),
            ("kernels < 36", false, false),
            ("makespan > 40 ms", false, true),
        ] {
            let found = [&even, &odd].map(|it| fails(it, gate));
            assert_eq!(found, [Some(of_even), Some(of_odd)], "{gate}");
        }
        let said = odd.judge(&Gate::parse("idle > 30 %").expect("a gate")).text;
        assert_eq!(said, "`idle > 30 %` fails: 38 %");
        // Nothing was copied.
        assert_eq!(fails(&even, "overlap < 50 %"), None);
    }

    #[test]
    fn without_steps_it_is_of_the_whole_and_said_so() {
        let trace = Scene::new()
            .kernel("k", 1, 0, 1_000)
            .kernel("l", 1, 9_000, 10_000)
            .trace();
        let report = Report::new(&trace, None, KnownGpus::default());
        let judged = report.judge(&Gate::parse("idle > 30 %").expect("a gate"));
        assert_eq!(judged.fails, Some(true));
        assert!(
            judged
                .text
                .ends_with("80 % (of the whole: no steps were found)"),
            "{}",
            judged.text
        );
        assert_eq!(fails(&report, "step > 1 ms"), None);
    }

    #[test]
    fn what_is_no_condition_says_why() {
        for (wrong, why) in [
            ("idle", "write it as"),
            ("idel > 30 %", "there is no figure `idel`: idle, step.idle"),
            ("idle > 30 ms", "the figure is"),
            ("step > 5", "with its unit"),
            ("idel > 30 %", "run.idle, makespan, wall, "),
        ] {
            let error = Gate::parse(wrong).expect_err(wrong);
            assert!(error.contains(why), "{error}");
        }
    }
}
