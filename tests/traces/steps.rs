//! Steps of real traces: what the operations show against what the profiler marked.
//!
//! Most of the traces lie beside the checkout where they are at hand; a test says which it skipped.

use std::path::PathBuf;

use crate::common::{load, trace_folders};
use activity::What;
use activity::feed::Message;
use analysis::steps::{self, Origin};
use readers::file;
use trace::Trace;

fn find(name: &str) -> Option<PathBuf> {
    let mut paths = trace_folders().into_iter().map(|folder| folder.join(name));
    paths.find(|path| path.is_file())
}

fn trace(name: &str) -> Option<Trace> {
    Some(load(&[find(name)?]).trace)
}

/// The same without what the program or its profiler marked.
fn unmarked(name: &str) -> Option<Trace> {
    let opened = file::open(&[find(name)?], &mut |_| {}).expect("a trace");
    let mut trace = Trace::default();
    for message in opened.feed.receiver() {
        if let Message::Batch(mut batch) = message {
            batch
                .items
                .retain(|item| !matches!(item.what, What::Range(_)));
            trace.apply(batch);
        }
    }
    Some(trace)
}

/// Steps that PyTorch's profiler marked, against those that the operations show by themselves. The
/// last step of a period is not seen to its end, so it is one less.
#[test]
fn the_operations_show_the_steps_that_the_profiler_marked() {
    for (name, count) in [
        ("v100_gpu_bound.json.gz", 5),
        ("a100_launch_bound.json.gz", 3),
    ] {
        let (Some(trace), Some(unmarked)) = (trace(name), unmarked(name)) else {
            eprintln!("skipped: {name} is not beside this checkout");
            continue;
        };
        let found = steps::find(&trace, None);
        let [marked] = found.as_slice() else {
            panic!("{name}: {found:?}");
        };
        assert_eq!(
            (&marked.from, marked.spans.len()),
            (&Origin::ProfilerStep, count)
        );
        let found = steps::find(&unmarked, None);
        let [shown] = found.as_slice() else {
            panic!("{name}: {found:?}");
        };
        assert_eq!(shown.spans.len(), count, "{name}");
        let apart = (shown.median_ns - marked.median_ns).abs();
        assert!(100 * apart <= marked.median_ns, "{name}: {} ns", apart);
    }
}

/// What is known of the others: how often the loop in them goes round, if it does.
#[test]
fn programs_without_marks_have_the_steps_that_they_have() {
    let cases: [(&str, &[usize]); 8] = [
        // A loop over batches on one stream; each batch on a stream of its own is no sequence.
        ("h200_sequential.json.gz", &[8]),
        ("h200_streamed.json.gz", &[]),
        // A sum of 4096 elements, one by one.
        ("h200_first_sum.json.gz", &[4096]),
        ("h200_nested_sin.json.gz", &[]),
        // One step each, which the profiler marked: their layers are none.
        ("h100_bert_small.json.gz", &[]),
        ("h100_falconsai.json.gz", &[]),
        ("h100_timesformer.json.gz", &[]),
        ("event_sync_multi_stream.json.gz", &[]),
    ];
    for (name, expected) in cases {
        let Some(trace) = trace(name) else {
            eprintln!("skipped: {name} is not beside this checkout");
            continue;
        };
        let found = steps::find(&trace, None);
        let counts: Vec<usize> = found.iter().map(|s| s.spans.len()).collect();
        assert_eq!(counts, expected, "{name}");
    }
}
