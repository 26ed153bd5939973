//! Why a gap is there: the screen and the report say the same of every gap.

use std::collections::BTreeMap;

use crate::common::{load, real_traces};
use activity::{Ns, Span};
use advice::Facts;
use causes::explain;
use cuptop::report::Report;
use trace::Trace;

/// Walks all gaps of a timeline as the cursor of the screen may stand on them. Returns how many there are.
fn walk(name: &str, trace: &Trace) -> usize {
    let facts = Facts::new(trace);
    let json = serde_json::to_value(Report::from(&facts)).expect("JSON");
    let causes = facts.causes();
    let mut count = 0;
    for (at, of) in facts.devices().iter().enumerate() {
        let mut shown: BTreeMap<&str, Ns> = BTreeMap::new();
        let all = Span::new(of.span.start, of.span.end);
        let lanes: Vec<_> = trace.streams_of(of.index).map(|(id, _)| id).collect();
        for gap in trace.devices()[of.index].usage.gaps_within(all) {
            let told = explain(trace, Some(&causes), &lanes, gap);
            let mut here: BTreeMap<&str, Ns> = BTreeMap::new();
            for piece in &told.pieces {
                *shown.entry(piece.cause.id()).or_default() += piece.span.len();
                *here.entry(piece.cause.id()).or_default() += piece.span.len();
            }
            assert_eq!(here.values().sum::<Ns>(), gap.len(), "{name}: {told:?}");
            assert!(here.contains_key(told.cause.id()), "{name}: {told:?}");
            count += 1;
        }
        let mut reported: BTreeMap<&str, Ns> = BTreeMap::new();
        for row in json["devices"][at]["idle"].as_array().expect("a list") {
            let cause = row["cause"].as_str().expect("a cause");
            *reported.entry(cause).or_default() += row["total_ns"].as_i64().expect("a time");
        }
        assert_eq!(shown, reported, "{name}, GPU {}", of.device);
    }
    count
}

#[test]
fn the_cause_of_every_gap_on_the_screen_is_the_one_in_json() {
    let mut count = 0;
    for (path, _) in real_traces() {
        let name = path.display().to_string();
        count += walk(&name, &load(&[path]).trace);
    }
    assert!(count > 100, "{count} gaps");
}
