//! Chrome JSON exports come back through cuptop's own reader with nothing changed.

use std::collections::BTreeMap;

use crate::common::made::{made, written};
use crate::common::{figures, load, real_traces};
use activity::What;
use activity::feed::Outcome;
use cuptop::export::{self, Readers, TimelineFormat};
use trace::{LaneKind, Trace};

/// Exports, opens the export, and hands the new timeline out with the text.
fn round_trip(trace: &Trace) -> (crate::common::Loaded, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("again.json");
    export::to_file(&path, Readers::Owner, |out| {
        export::write_data(
            TimelineFormat::Chrome,
            trace,
            &cuptop::report::KnownGpus::default(),
            out,
        )
    })
    .expect("a file");
    let text = std::fs::read_to_string(&path).expect("UTF-8");
    let loaded = load(&[path]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    (loaded, text)
}

/// Everything that both formats have a word for, by lane.
fn content(trace: &Trace) -> BTreeMap<String, Vec<String>> {
    let mut lanes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        let key = match lane.key().kind {
            LaneKind::Stream {
                device,
                context,
                stream,
            } => {
                format!(
                    "{} device {} {context} {stream}",
                    lane.key().process,
                    trace.devices()[device].info.id
                )
            }
            LaneKind::Memory { .. } => continue,
            kind => format!("{} {kind:?}", lane.key().process),
        };
        for row in 0..lane.len() {
            let activity = trace.activity(id, row);
            let what = match activity.what {
                What::Kernel(k) => {
                    let s = trace.shape(k.shape);
                    let shared = u64::from(s.static_shared) + u64::from(s.dynamic_shared);
                    format!(
                        "{} {:?} {:?} {:?} {} {shared} {} {}",
                        trace.names().full(s.name),
                        trace.collective(&s),
                        s.grid,
                        s.block,
                        s.registers,
                        k.graph,
                        k.node
                    )
                }
                What::Copy(c) => format!(
                    "{:?} {:?} {:?} {} {}",
                    c.direction, c.from, c.to, c.bytes, c.is_async
                ),
                What::Memset(m) => format!("set {}", m.bytes),
                What::Call(c) => format!("{} {}", trace.names().full(c.name), c.code),
                What::Range(r) => {
                    format!("{} {:?} {}", trace.names().full(r.name), r.kind, r.index)
                }
                What::Sync(s) => format!("{:?} {:?} {:?}", s.kind, s.stream, s.event),
                What::Overhead(o) => trace.names().full(o.name).to_owned(),
                other => format!("{other:?}"),
            };
            lanes.entry(key.clone()).or_default().push(format!(
                "{:?} {} {what}",
                activity.span, activity.correlation
            ));
        }
    }
    for lane in lanes.values_mut() {
        lane.sort();
    }
    lanes
}

#[test]
fn chrome_json_comes_back_the_same() {
    let trace = made();
    let (again, text) = round_trip(&trace);
    assert_eq!(content(&again.trace), content(&trace));
    assert_eq!(figures(&again.trace), figures(&trace));
    assert!(again.trace.source.simulated);
    assert_eq!(again.trace.health().losses(), 4);
    assert!(text.starts_with("{\n\"simulated\": true,\n\"lost records\": 4,"));
    // Any JSON reader can read it, and finds the marks on what viewers show.
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let shown = json["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .any(|e| {
            e["args"]["name"]
                .as_str()
                .is_some_and(|n| n.contains("SIMULATED") && n.contains("4 records lost"))
        });
    assert!(shown);
}

#[test]
fn real_traces_come_back_from_chrome_json_with_the_same_figures() {
    for (path, _) in real_traces() {
        let name = path.display();
        let first = load(std::slice::from_ref(&path));
        let (again, text) = round_trip(&first.trace);
        assert_eq!(figures(&again.trace), figures(&first.trace), "{name}");
        assert!(
            text.starts_with("{\n\"simulated\": false,\n\"lost records\": 0,"),
            "{name}"
        );
    }
}

#[test]
fn an_empty_timeline_is_a_whole_document() {
    let text = written(TimelineFormat::Chrome, &Trace::default());
    let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(json["simulated"], false);
}
