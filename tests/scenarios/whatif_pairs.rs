//! Every pair of a mistake and its cure that the bundled scenarios declare, on the simulator: the cure as predicted
//! from the mistake's records against the cure as it ran.
//!
//! `cargo test --test scenarios whatif_pairs -- --nocapture` prints the table that docs/WHATIF.md sums up.

#![expect(clippy::print_stdout, reason = "a table, for the docs")]

use cuptop::bundled::LIBRARY;
use std::sync::Arc;

use activity::Ns;
use activity::feed::{Message, Outcome};
use advice::Facts;
use cuptop::report::KnownGpus;
use cuptop::report::whatif::WhatIfReport;
use replay::whatif::{Passes, WhatIf};
use scenario::plan::{Pair, Plan};
use scenario::{Overrides, compile};
use sim::{Pace, Profile, run};
use trace::{SourceInfo, Trace};

/// Predictions of cures: half of them are no further off than this …
const MEDIAN_MAX: f64 = 0.05;
/// … and none further than this, but where the prediction says that it does not know, and the cure lies in its interval.
const WORST_MAX: f64 = 0.15;

struct Row {
    scenario: String,
    pair: Pair,
    at: String,
    mistake: Ns,
    predicted: Ns,
    interval: (Ns, Ns),
    is_unknown: bool,
    cure: Ns,
    replay_error: f64,
}

impl Row {
    fn error(&self) -> f64 {
        self.predicted as f64 / self.cure as f64 - 1.0
    }
}

fn simulate(plan: &Arc<Plan>) -> Trace {
    let feed = run(
        plan.clone(),
        &Profile::bundled(),
        Pace::AsFastAsPossible,
        None,
    )
    .expect("a thread");
    let mut trace = Trace::new(SourceInfo::default());
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => trace.apply(batch),
            Message::Finished(outcome) => assert_eq!(outcome, Outcome::Complete),
            other => panic!("unexpected {other:?}"),
        }
    }
    trace
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for scenario in LIBRARY.scenarios {
        let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
        let plan = Arc::new(
            compiled
                .unwrap_or_else(|e| panic!("{}", e.render(false)))
                .plan,
        );
        if plan.pairs.is_empty() {
            continue;
        }
        let trace = simulate(&plan);
        let mut facts = Facts::new(&trace);
        facts.known = KnownGpus::default().rates(&trace);
        let passes = Passes::of_trace(&trace, Some(&plan));
        for pair in &plan.pairs {
            let of = |name: &str| {
                let variant = plan
                    .variants
                    .iter()
                    .position(|v| v.name == name && (pair.at.is_none() || v.point == pair.at));
                let variant = variant.expect("a variant");
                WhatIf::of_repeats(facts.basis(), &passes, variant).expect("a measured variant")
            };
            let (mistake, cure) = (of(&pair.mistake), of(&pair.cure));
            let prediction = mistake.predict(&pair.edit);
            let outcome = prediction.outcome.unwrap_or_else(|refused| {
                panic!("{}: {} refused: {refused}", scenario.name, pair.edit)
            });
            assert!(outcome.low <= outcome.predicted && outcome.predicted <= outcome.high);
            assert_eq!(outcome.saving, mistake.measured() - outcome.predicted);
            rows.push(Row {
                scenario: scenario.name.to_owned(),
                pair: pair.clone(),
                at: pair
                    .at
                    .map_or(String::new(), |at| format!(" @ {} MiB", at >> 20)),
                mistake: mistake.measured(),
                predicted: outcome.predicted,
                interval: (outcome.low, outcome.high),
                is_unknown: !outcome.unknowns.is_empty(),
                cure: cure.measured(),
                replay_error: mistake.replay_error(),
            });
        }
    }
    rows
}

#[test]
fn cures_are_predicted_from_their_mistakes() {
    let rows = rows();
    assert!(rows.len() >= 12, "a dozen pairs");
    println!(
        "| scenario | mistake → cure | edit | mistake | most likely | between | cure | off | replay error |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|");
    let ms = |ns: Ns| ns as f64 / 1e6;
    for row in &rows {
        println!(
            "| {} | {} → {}{} | `{}` | {:.3} ms | {:.3} ms | {:.3} to {:.3} | {:.3} ms | {:+.1} % | {:.1} % |",
            row.scenario,
            row.pair.mistake,
            row.pair.cure,
            row.at,
            row.pair.edit,
            ms(row.mistake),
            ms(row.predicted),
            ms(row.interval.0),
            ms(row.interval.1),
            ms(row.cure),
            100.0 * row.error(),
            100.0 * row.replay_error,
        );
    }
    let mut errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    println!(
        "\nmedian {:.1} %, worst {:.1} %",
        100.0 * median,
        100.0 * errors[errors.len() - 1]
    );
    for row in &rows {
        let name = format!(
            "{}: {} → {}{}",
            row.scenario, row.pair.mistake, row.pair.cure, row.at
        );
        let (is_saved, is_promised) = (row.cure < row.mistake, row.predicted < row.mistake);
        let is_alike = (row.cure as f64 / row.mistake as f64 - 1.0).abs() < MEDIAN_MAX;
        assert!(is_alike || is_saved == is_promised, "{name}: the wrong way");
        let is_inside = (row.interval.0..=row.interval.1).contains(&row.cure);
        assert!(
            (row.is_unknown && is_inside) || row.error().abs() <= WORST_MAX,
            "{name}: {:+.1} %",
            100.0 * row.error()
        );
        assert!(
            row.replay_error <= 0.05,
            "{name}: the replay is {:.1} % off",
            100.0 * row.replay_error
        );
    }
    assert!(
        median <= MEDIAN_MAX,
        "the median is {:.1} % off",
        100.0 * median
    );
}

/// The names of the JSON's fields, and that a refusal says why and predicts nothing.
#[test]
fn the_json_is_what_was_agreed_on() {
    let scenario = LIBRARY
        .scenarios
        .iter()
        .find(|s| s.name == "pipeline")
        .expect("bundled");
    let compiled = compile(&LIBRARY.source(scenario), &Overrides::default());
    let plan = Arc::new(
        compiled
            .unwrap_or_else(|e| panic!("{}", e.render(false)))
            .plan,
    );
    let trace = simulate(&plan);
    let mut facts = Facts::new(&trace);
    facts.known = KnownGpus::default().rates(&trace);
    let several = facts.whatif(None);
    assert!(several.is_err_and(|reason| reason.contains("choose with --variant: sequential")));
    let whatif = facts.whatif(Some("sequential")).expect("a variant");
    let edits = ["no-sync+own-stream", "pin"].map(|text| text.parse().expect("an edit"));
    let answer = WhatIfReport::new(
        &whatif,
        edits.iter().map(|set| whatif.predict(set)).collect(),
    );
    let json: serde_json::Value =
        serde_json::from_str(&answer.json().expect("numbers")).expect("JSON");
    assert_eq!(json["scope"]["per"], "run");
    assert_eq!(json["scope"]["steps"], whatif.samples.len());
    assert_eq!(json["measured_ns"], whatif.measured());
    assert!(json["replayed_ns"].is_i64() && json["replay_error"].is_f64());
    let [made, refused] = [&json["predictions"][0], &json["predictions"][1]];
    assert_eq!(made["edit"], "no-sync+own-stream");
    assert!(made["refused"].is_null());
    for field in ["predicted_ns", "low_ns", "high_ns", "saving_ns"] {
        assert!(made[field].is_i64(), "{field}");
        assert!(refused[field].is_null(), "{field}");
    }
    assert_eq!(
        refused["refused"],
        "nothing to pin: no pageable copy would get faster"
    );
}
