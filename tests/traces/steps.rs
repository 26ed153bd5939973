//! Steps of real traces: what the operations show against what the profiler marked.
//!
//! Most of the traces lie beside the checkout where they are at hand; a test says which it skipped.

use std::path::PathBuf;

use crate::common::{load, real_traces, trace_folders};
use activity::feed::Message;
use activity::{Ns, What};
use advice::Facts;
use cuptop::report::Report;
use cuptop::report::compare::{CompareReport, ComparedRun};
use figures::steps::{self, Origin};
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
        let apart = (shown.main().median_ns - marked.main().median_ns).abs();
        assert!(
            100 * apart <= marked.main().median_ns,
            "{name}: {} ns",
            apart
        );
    }
}

/// Five steps of 30 kernels as Kineto writes them; the first takes half as long again, and a range marks a third of each.
fn written() -> Trace {
    let mut events = Vec::new();
    let (mut now, mut id) = (1_000, 0);
    for step in 0..5 {
        for kernel in 0..30 {
            let length = if step == 0 { 30 } else { 20 + step };
            id += 1;
            events.push(format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":4,"args":{{"correlation":{id}}}}},
                {{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{now},"dur":{length},"args":{{"device":0,"stream":7,"correlation":{id}}}}}"#,
                now - 6,
                kernel,
            ));
            now += length + 10;
        }
        events.push(format!(
            r#"{{"ph":"X","cat":"user_annotation","name":"optimizer","pid":1,"tid":1,"ts":{},"dur":290}}"#,
            now - 300
        ));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("steps.json");
    let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    std::fs::write(&path, text).expect("a file");
    load(&[path]).trace
}

/// Every command says the same step, and none says one where there is none.
#[test]
fn report_comparison_and_prediction_say_one_step() {
    let real = real_traces();
    let real = real.iter().map(|(path, _)| {
        let loaded = load(std::slice::from_ref(path));
        (path.display().to_string(), loaded.trace)
    });
    let (mut told, mut none) = (0, 0);
    for (name, trace) in std::iter::once(("written".to_owned(), written())).chain(real) {
        let facts = Facts::new(&trace);
        let report = Report::from(&facts);
        let mut of_report = report.steps.iter();
        let Some(main) = steps::main(facts.steps()) else {
            assert_eq!(of_report.next(), None, "{name}");
            none += 1;
            continue;
        };
        let of_report = of_report.find(|it| it.process_index == main.process);
        assert_eq!(
            of_report.map(|it| it.median_ns),
            Some(main.main().median_ns),
            "{name}"
        );
        let run = [ComparedRun::of(&trace)];
        let compared = CompareReport::new(&run, &run, None).expect("rows");
        let of_compared = compared.rows[0].a.median_ns as Ns;
        // Medians of an even number are rounded up or down.
        assert!(of_compared.abs_diff(main.main().median_ns) <= 1, "{name}");
        match facts.whatif(None) {
            Ok(whatif) => assert!(
                whatif.measured().abs_diff(main.main().median_ns) <= 1,
                "{name}"
            ),
            Err(refused) => eprintln!("{name}: {refused}"),
        }
        if name == "written" {
            // Steps of 30 * (21 + 10), 30 * (22 + 10) and 30 * (23 + 10) us, and a first one of 1,200: the fifth is not whole.
            assert_eq!(main.main().median_ns, 975_000);
        }
        told += 1;
    }
    eprintln!("{told} traces say one step, {none} none");
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
