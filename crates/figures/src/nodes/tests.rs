use super::*;
use activity::{
    Activity, Batch, Def, Kernel, LaunchShape, Place, SampleDef, Samples, Span, What as Did,
};
use trace::SourceInfo;

const GRAPH: u32 = 5;

/// A graph of kernels of these names, run twice, with the stacks (of one frame) of those whose line is given.
fn graph(kernels: &[(&str, u32)]) -> Trace {
    let mut batch = Batch::default();
    let mut nodes = Vec::new();
    let mut defs = Vec::new();
    for (at, (name, line)) in (1..).zip(kernels) {
        let text = (*name).to_owned();
        batch.defs.push(Def::Name { id: at, text });
        let shape = LaunchShape {
            name: at,
            ..LaunchShape::default()
        };
        batch.defs.push(Def::Shape { id: at, shape });
        let node = u64::from(GRAPH) << 32 | u64::from(at);
        for run in 0..2 {
            let start = run * 1_000_000 + i64::from(at) * 100;
            batch.items.push(Activity {
                span: Span::new(start, start + 10),
                correlation: 0,
                what: Did::Kernel(Kernel {
                    place: Place::default(),
                    shape: at,
                    graph: GRAPH,
                    node,
                }),
            });
        }
        let frame = Frame {
            file: "/home/me/model.py".to_owned(),
            function: "forward".to_owned(),
            line: *line,
        };
        defs.push(SampleDef::Frame { id: at, frame });
        defs.push(SampleDef::Stack {
            id: at,
            caller: 0,
            frame: at,
        });
        if *line > 0 {
            nodes.push((node, at));
        }
    }
    defs.push(SampleDef::Nodes(nodes));
    batch.samples = Some(Samples {
        defs,
        ..Samples::default()
    });
    let mut trace = Trace::new(SourceInfo::default());
    trace.apply(batch);
    trace
}

fn texts(trace: &Trace) -> Vec<Option<String>> {
    let names = of_process(trace, 0).into_iter();
    names.map(|it| it.1.text()).collect()
}

#[test]
fn the_order_of_nodes_alone_tells_rounds_which_is_likely() {
    let layers = ["norm", "matmul", "matmul", "add"].repeat(32);
    let all = ["embed"].into_iter().chain(layers).chain(["head"]);
    let kernels: Vec<(&str, u32)> = all.map(|name| (name, 0)).collect();
    let names = texts(&graph(&kernels));
    assert_eq!(names.len(), 130);
    assert_eq!((&names[0], &names[129]), (&None, &None));
    let told = |at: usize| names[at].as_deref();
    assert_eq!(told(1), Some("kernel 1 of 4 · round 1 of 32 (likely)"));
    assert_eq!(told(128), Some("kernel 4 of 4 · round 32 of 32 (likely)"));
    // Two rounds may be chance, and so may be three that are little of the graph.
    for few in [
        vec!["a", "b", "a", "b"],
        vec!["a", "a", "a", "b", "c", "d", "e"],
    ] {
        let kernels: Vec<(&str, u32)> = few.into_iter().map(|name| (name, 0)).collect();
        assert!(texts(&graph(&kernels)).iter().all(Option::is_none));
    }
}

#[test]
fn lines_are_added_up_over_all_runs() {
    let trace = graph(&[("a", 3), ("b", 3), ("c", 4), ("d", 0)]);
    let names = texts(&trace);
    let told = |at: usize| names[at].as_deref();
    assert_eq!(told(1), Some("model.py:3 forward · kernel 2 of 2"));
    assert_eq!((told(2), told(3)), (Some("model.py:4 forward"), None));
    let rows = by_line(&trace);
    let rows: Vec<_> = rows
        .iter()
        .map(|it| (&*it.name, it.count, it.total_ns))
        .collect();
    let expected = [
        ("model.py:3 forward", 4, 40),
        ("model.py:4 forward", 2, 20),
        ("no line known", 2, 20),
    ];
    assert_eq!(rows, expected);
    assert_eq!(by_line(&graph(&[("a", 0)])), []);
}

#[test]
fn a_node_of_compiled_code_is_told_by_its_operations_at_the_programs_line() {
    let mut trace = graph(&[("k", 0)]);
    let node = u64::from(GRAPH) << 32 | 1;
    let frames = [
        ("/home/me/model.py", "<module>", 9),
        (
            "/v/lib/python3.12/site-packages/transformers/generic.py",
            "can.<locals>.wrapper",
            3,
        ),
        (
            "/tmp/torchinductor_me/ab/cab.py",
            "aten.addmm [linear_1]",
            5,
        ),
    ];
    let mut defs = Vec::new();
    for (id, (file, function, line)) in (1..).zip(frames) {
        let frame = Frame {
            file: file.to_owned(),
            function: function.to_owned(),
            line,
        };
        defs.push(SampleDef::Frame { id, frame });
        defs.push(SampleDef::Stack {
            id,
            caller: id - 1,
            frame: id,
        });
    }
    defs.push(SampleDef::Nodes(vec![(node, 3)]));
    let samples = Some(Samples {
        defs,
        ..Samples::default()
    });
    let batch = Batch {
        samples,
        ..Batch::default()
    };
    trace.apply(batch);
    let name = of_process(&trace, 0)[0].1;
    // A package's function that only hands on tells less than the program's own of such a name.
    assert_eq!(name.place().as_deref(), Some("aten.addmm · model.py:9"));
    let text = "aten.addmm [linear_1] · model.py:9";
    assert_eq!(name.text().as_deref(), Some(text));
}

#[test]
fn launches_are_added_up_by_line_and_those_of_autograd_by_the_line_that_waits() {
    use activity::{ProcessInfo, SampledThread, Sampling, StackSample};
    use trace::testing::Scene;
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel", 1_000, 2_000);
    scene.kernel("forward", 1, 3_000, 3_500);
    let mut batch = scene.take();
    // The main thread, seen at line 15 while another one launches.
    let launch = batch.items[0].correlation;
    let (main, other) = (1, 77);
    for (thread, kernel) in [(other, 7_000), (other, 9_000)] {
        for it in 0..2 {
            let mut it = batch.items[it];
            it.correlation = launch + kernel as u32;
            if let Did::Call(call) = &mut it.what {
                call.thread = thread;
            }
            it.span = Span::new(it.span.start + kernel, it.span.end + kernel);
            batch.items.push(it);
        }
    }
    let frame = |line, function: &str| Frame {
        file: "/home/me/train.py".to_owned(),
        function: function.to_owned(),
        line,
    };
    let mut defs = Vec::new();
    for (id, frame) in (1..).zip([frame(12, "step"), frame(15, "main")]) {
        defs.push(SampleDef::Frame { id, frame });
        let caller = 0;
        let frame = id;
        defs.push(SampleDef::Stack { id, caller, frame });
    }
    defs.push(SampleDef::Nodes(vec![(launch.into(), 1)]));
    let looks = vec![StackSample {
        time: 7_500,
        changed: vec![SampledThread {
            thread: main,
            stack: 2,
            is_running: false,
        }],
    }];
    let sampling = Sampling {
        hz: 100,
        ..Sampling::default()
    };
    batch.samples = Some(Samples {
        defs,
        looks,
        sampling,
        ..Samples::default()
    });
    let pid = main;
    batch.defs.push(Def::Process(ProcessInfo {
        pid,
        ..ProcessInfo::default()
    }));
    let mut trace = Trace::new(SourceInfo::default());
    trace.apply(batch);
    let rows = by_launch(&trace, &CallIndex::new(&trace));
    let rows: Vec<_> = rows.iter().map(|it| (&*it.name, it.total_ns)).collect();
    let expected = [
        ("train.py:15 main (waits for another thread)", 1_000),
        ("train.py:12 step", 500),
    ];
    assert_eq!(rows, expected);
}
