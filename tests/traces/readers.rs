//! Trace files of other profilers: read whole, to the nanosecond.

use crate::common::{data, drain, exported, figures, load, real_traces};
use activity::feed::Outcome;
use activity::{
    Activity, Batch, Collective, Def, MemoryKind, Memset, Place, ProcessInfo, RangeKind, Span,
    SyncKind, What,
};
use readers::file::{self, Format};
use recording::Saver;
use trace::{LaneKind, Trace};

#[test]
fn real_traces_are_read_whole_and_in_order() {
    for (path, _) in real_traces() {
        let loaded = load(std::slice::from_ref(&path));
        assert_eq!(loaded.outcome, Outcome::Complete, "{}", path.display());
        assert_eq!(loaded.trace.health().losses(), 0, "{}", path.display());
        assert_eq!(loaded.trace.late(), 0, "{}", path.display());
    }
}

fn all(trace: &Trace) -> Vec<Activity> {
    let mut all: Vec<_> = trace
        .lanes()
        .iter()
        .enumerate()
        .flat_map(|(id, lane)| (0..lane.len()).map(move |row| (id, row)))
        .map(|(id, row)| trace.activity(id, row))
        .collect();
    all.sort_by_key(|a| a.span);
    all
}

/// tests/data/small.json was written by hand; so were the numbers here.
#[test]
fn a_small_kineto_trace_is_what_its_text_says() {
    let loaded = load(&[data("small.json")]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let base = 1_700_000_000_000_000_000;
    let expected = serde_json::json!([{
        "device": 0, "ops": 4, "kernels": 2, "memsets": 1,
        // Copy 1000.000 to 1010.500, kernels 1005.250 to 1007.250 and 1020 to 1030.001, memset 1040 to 1041.
        "span_ns": 41_000, "busy_ns": 10_500 + 10_001 + 1_000, "idle_ns": 41_000 - 21_501,
        "compute_ns": 2_000 + 10_001, "copy_ns": 10_500, "overlap_ns": 2_000,
        "h2d": {"count": 1, "bytes": 21_000, "busy_ns": 10_500, "gbps": 2.0},
        "d2h": {"count": 0, "bytes": 0, "busy_ns": 0, "gbps": null},
        "d2d": {"count": 0, "bytes": 0, "busy_ns": 0, "gbps": null},
        "p2p": {"count": 0, "bytes": 0, "busy_ns": 0, "gbps": null},
        "streams": {"7": 3, "20": 1},
        "gaps": {"over_10us": 0, "over_100us": 0, "over_1ms": 0, "longest_ns": 9_999},
        // The memset's call is not in the file.
        "no_api": 1,
    }]);
    assert_eq!(figures(&loaded.trace), expected);

    let trace = &loaded.trace;
    let device = &trace.devices()[0].info;
    assert_eq!(
        (device.name.as_str(), device.capability),
        ("NVIDIA H200", (9, 0))
    );
    assert_eq!(trace.processes()[0].info.command, "python3");
    assert_eq!(trace.processes()[0].info.pid, 574);
    assert_eq!(trace.processes()[0].threads[&575], "thread 575 (worker)");

    let activities = all(trace);
    let copy = activities
        .iter()
        .find_map(|a| match a.what {
            What::Copy(c) => Some((a.span, c)),
            _ => None,
        })
        .expect("the copy");
    assert_eq!(copy.0.start, base + 1_000_000);
    assert_eq!(
        (copy.1.from, copy.1.to),
        (MemoryKind::Pageable, MemoryKind::Device)
    );
    assert!(!copy.1.is_async, "cudaMemcpy issued it");
    let syncs: Vec<_> = activities
        .iter()
        .filter_map(|a| match a.what {
            What::Sync(s) => Some((s.kind, s.stream, s.event)),
            _ => None,
        })
        .collect();
    assert_eq!(
        syncs,
        [
            (SyncKind::StreamWaitEvent, Some(20), Some(9)),
            (SyncKind::Context, None, None)
        ]
    );
    let ranges: Vec<_> = activities
        .iter()
        .filter_map(|a| match a.what {
            What::Range(r) => Some((trace.names().full(r.name), r.kind, a.span.len())),
            _ => None,
        })
        .collect();
    assert_eq!(
        ranges,
        [
            ("step", RangeKind::Nvtx, 60_000),
            ("a.py(1): f", RangeKind::Function, 60_000),
            ("a.py(2): g", RangeKind::Function, 50_000),
            ("aten::mm", RangeKind::CpuOp, 5_000)
        ]
    );
    let shape = activities
        .iter()
        .find_map(|a| match a.what {
            What::Kernel(k) if k.graph == 5 => Some((trace.shape(k.shape), k.node)),
            _ => None,
        })
        .expect("the kernel of a graph");
    assert_eq!(shape.0.grid, [8, 16, 5]);
    assert_eq!(shape.0.block, [128, 1, 1]);
    assert_eq!(
        (shape.0.registers, shape.0.static_shared, shape.1),
        (122, 12_544, 77)
    );
    assert_eq!(trace.names().full(shape.0.name), "sgemm \"quoted\" \u{e9}");

    // One kernel ends before it starts; one event has no time.
    let health = trace.health();
    assert_eq!(
        (health.end_before_start, health.no_timestamp, health.lost),
        (1, 1, 1)
    );
    let is_left_out = |n: &String| n.contains("not shown");
    assert!(
        !loaded.notices.iter().any(is_left_out),
        "{:?}",
        loaded.notices
    );
}

#[test]
fn old_categories_and_a_list_without_an_end_are_read() {
    let loaded = load(&[data("old.json")]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let figures = &figures(&loaded.trace)[0];
    assert_eq!(figures["device"], 1);
    assert_eq!(figures["ops"], 3);
    assert_eq!(figures["d2h"]["bytes"], 400);
    assert_eq!(figures["span_ns"], 30_000);
    assert_eq!(figures["no_api"], 1);
    assert_eq!(figures["streams"], serde_json::json!({"7": 3}));
}

/// tests/data/small.sql was written by hand after the schema of Nsight Systems; so were the numbers.
#[test]
fn a_small_export_is_what_its_tables_say() {
    let sql = std::fs::read_to_string(data("small.sql")).expect("a file");
    // A name that a URI would misread.
    let (_folder, path) = exported("a?b%20c#.sqlite", &sql);
    let loaded = load(&[path]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let trace = &loaded.trace;
    assert_eq!(trace.processes().len(), 2);
    let got = figures(trace);
    assert_eq!(got[0]["ops"], 3);
    assert_eq!(got[0]["span_ns"], 900);
    assert_eq!(got[0]["busy_ns"], 500);
    assert_eq!(got[0]["overlap_ns"], 100);
    assert_eq!(got[0]["h2d"]["count"], 1);
    assert_eq!(got[0]["h2d"]["gbps"], 4.0);
    assert_eq!(got[0]["no_api"], 1);
    // Both processes call their device 0; TARGET_INFO_CUDA_DEVICE says which is which.
    assert_eq!(got[1]["ops"], 1);
    assert_eq!(trace.devices().len(), 2);
    assert_eq!(trace.devices()[0].info.name, "GPU A");
    assert_eq!(trace.devices()[1].info.name, "GPU B");
    assert_eq!(trace.devices()[0].info.clock_khz, 1_980_000);

    let activities = all(trace);
    assert_eq!(
        activities[0].span.start, 1_600_000_000_000_000_100,
        "counted from utcEpochNs"
    );
    let kinds: Vec<_> = activities
        .iter()
        .filter_map(|a| match a.what {
            What::Copy(c) => Some((c.from, c.to, c.is_async)),
            _ => None,
        })
        .collect();
    // This file's own table numbers pinned as 11; CUPTI's numbering would make of it something else.
    assert_eq!(kinds, [(MemoryKind::Pinned, MemoryKind::Device, true)]);
    let calls: Vec<_> = activities
        .iter()
        .filter_map(|a| match a.what {
            What::Call(c) => Some((trace.names().full(c.name), c.thread, c.code)),
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("cudaMemcpyAsync", 101, 0),
            ("cudaLaunchKernel", 101, 0),
            ("cudaLaunchKernel", 201, 700)
        ]
    );
    let ranges: Vec<_> = activities
        .iter()
        .filter_map(|a| match a.what {
            What::Range(r) => Some((trace.names().full(r.name), a.span.len())),
            _ => None,
        })
        .collect();
    let of_system = [("getc", 1_000_000), ("MPI_Allreduce", 50_000)];
    assert_eq!(ranges[..2], [("forward", 800), ("mark", 0)]);
    assert_eq!(ranges[2..], of_system);
    let syncs = activities.iter().filter_map(|a| match a.what {
        What::Sync(sync) => Some(sync.kind),
        _ => None,
    });
    let kinds = [
        SyncKind::Context,
        SyncKind::Event,
        SyncKind::Stream,
        SyncKind::StreamWaitEvent,
    ];
    assert_eq!(syncs.collect::<Vec<_>>(), kinds);
    assert!(
        trace
            .lanes()
            .iter()
            .any(|l| matches!(l.key().kind, LaneKind::Memory { device: 0 }) && l.len() == 2)
    );
    let stream = trace.processes()[0].streams.values().next().expect("one");
    assert_eq!(
        (stream.stream, stream.name.as_str(), stream.priority),
        (7, "upload", -1)
    );
    assert!(
        loaded
            .notices
            .iter()
            .any(|n| n.contains("not shown: 1 NVTX")),
        "{:?}",
        loaded.notices
    );
}

#[test]
fn an_export_that_lacks_tables_and_columns_gives_what_it_has() {
    let (_folder, path) = exported(
        "old.sqlite",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 0, 7), (40, 45, 0, 7), (50, NULL, 0, 7), (60, 50, 0, 7);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
             bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (12, 14, 0, 7, 8, 2, 2, 0);
         CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET AS
             WITH RECURSIVE t(start, end, bytes) AS (SELECT 1, 2, 3 UNION ALL SELECT start + 1, end + 1, 3 FROM t) SELECT * FROM t;",
    );
    let loaded = load(&[path]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let figures = &figures(&loaded.trace)[0];
    assert_eq!(
        (&figures["ops"], &figures["no_api"]),
        (&3.into(), &3.into())
    );
    assert_eq!(figures["d2h"]["bytes"], 8);
    let health = loaded.trace.health();
    assert_eq!((health.no_timestamp, health.end_before_start), (1, 1));
    let kinds = all(&loaded.trace).iter().find_map(|a| match a.what {
        What::Copy(c) => Some((c.from, c.to)),
        _ => None,
    });
    // Without a table of the numbers: Nsight's own, in which 0 is pageable.
    assert_eq!(kinds, Some((MemoryKind::Device, MemoryKind::Pageable)));
}

#[test]
fn a_kernel_without_a_demangled_name_has_its_short_or_its_mangled_one() {
    let (_folder, path) = exported(
        "names.sqlite",
        "CREATE TABLE StringIds (id INTEGER, value TEXT);
         INSERT INTO StringIds VALUES (0, '[Unknown]'), (5, 'scan'), (6, '_Z4fillv');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
             demangledName INTEGER, shortName INTEGER, mangledName INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 0, 7, 0, 5, 6), (40, 45, 0, 7, 0, 0, 6), (50, 55, 0, 7, 0, 0, NULL);",
    );
    let loaded = load(&[path]);
    let names = loaded.trace.names();
    let name = |it: &Activity| match it.what {
        What::Kernel(kernel) => names.full(loaded.trace.shape(kernel.shape).name).to_owned(),
        _ => String::new(),
    };
    let all: Vec<String> = all(&loaded.trace).iter().map(name).collect();
    // The mangled one is read as what it stands for: `_Z`, four letters, no parameters.
    assert_eq!(all, ["scan", "fill()", "[Unknown]"]);
}

#[test]
fn several_files_are_one_timeline() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut paths = Vec::new();
    for rank in 0..2 {
        let path = folder.path().join(format!("rank{rank}.json"));
        let text = format!(
            r#"{{"distributedInfo": {{"rank": {rank}}}, "baseTimeNanoseconds": {base}, "traceEvents": [
                {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, "args": {{"device": 0, "stream": 7}}}}]}}"#,
            base = 1_000_000 * rank
        );
        std::fs::write(&path, text).expect("a file");
        paths.push(path);
    }
    let loaded = load(&paths);
    assert_eq!(loaded.outcome, Outcome::Complete);
    assert_eq!(loaded.trace.processes().len(), 2);
    assert_eq!(loaded.trace.processes()[1].info.rank, Some(1));
    let starts: Vec<_> = all(&loaded.trace).iter().map(|a| a.span.start).collect();
    assert_eq!(starts, [1_500, 1_001_500]);
    // Two ranks that both call their GPU 0 have two GPUs.
    assert_eq!(loaded.trace.devices().len(), 2);
}

/// A recording with one memset, marked as simulated.
fn recording() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().join("rec");
    let mut saver = Saver::create(&directory).expect("a recording");
    saver
        .save(&Batch {
            process: 0,
            defs: vec![Def::Process(ProcessInfo {
                pid: 77,
                command: "simulated".to_owned(),
                ended_well: Some(true),
                ..ProcessInfo::default()
            })],
            items: vec![Activity {
                span: Span::new(5, 9),
                correlation: 0,
                what: What::Memset(Memset {
                    place: Place::default(),
                    bytes: 64,
                    graph: 0,
                    node: 0,
                }),
            }],
            ..Batch::default()
        })
        .expect("it can be written");
    saver.finish();
    folder
}

#[test]
fn recordings_are_opened_by_themselves_and_beside_other_traces() {
    let folder = recording();
    let path = folder.path().join("rec");
    let opened = file::open(std::slice::from_ref(&path), &mut |_| {}).expect("a recording");
    assert_eq!((opened.format, opened.simulated), (Format::Recording, true));
    let alone = drain(opened);
    assert_eq!(alone.outcome, Outcome::Complete);
    assert_eq!(figures(&alone.trace)[0]["memsets"], 1);

    let opened = file::open(&[data("small.json"), path], &mut |_| {}).expect("two traces");
    assert_eq!((opened.format, opened.simulated), (Format::Kineto, true));
    let both = drain(opened);
    assert_eq!(both.outcome, Outcome::Complete);
    let pids: Vec<u32> = both.trace.processes().iter().map(|p| p.info.pid).collect();
    assert_eq!(pids, [574, 77]);
}

/// A Kineto trace of a rank of two, with so many kernels `k<rank>` on one stream of GPU 0.
fn of_rank(rank: usize, kernels: usize) -> String {
    let events: Vec<String> = (0..kernels)
        .map(|at| {
            let (ts, correlation) = (100 * at + rank, at + 1);
            format!(
                r#"{{"ph":"X","cat":"kernel","name":"k{rank}","pid":0,"tid":7,"ts":{ts},"dur":5,
                    "args":{{"device":0,"context":1,"stream":7,"correlation":{correlation}}}}}"#
            )
        })
        .collect();
    let events = events.join(",");
    let head = format!(r#""distributedInfo":{{"rank":{rank},"world_size":2}}"#);
    format!(r#"{{{head},"traceEvents":[{events}]}}"#)
}

#[test]
fn what_was_read_of_each_of_several_files_is_kept_when_reading_is_stopped() {
    use activity::feed::Message;
    let folder = tempfile::tempdir().expect("a folder");
    let paths = [0, 1].map(|rank| {
        let path = folder.path().join(format!("{rank}.json"));
        std::fs::write(&path, of_rank(rank, 60_000)).expect("it can be written");
        path
    });
    let opened = file::open(&paths, &mut |_| {}).expect("traces");
    let (mut told, mut sent, mut outcome) = ([0, 0], Trace::default(), None);
    for message in opened.feed.receiver() {
        match message {
            Message::Progress(progress) => {
                told[usize::from(progress.what.contains("1.json"))] += 1;
                // It is told before each block: of the second time on something was read.
                if told.iter().all(|times| *times > 1) {
                    opened.feed.stop.stop();
                }
            }
            Message::Batch(batch) => sent.apply(batch),
            Message::Finished(last) => outcome = Some(last),
            _ => {}
        }
    }
    // A machine that reads the rest before the request comes has read all of it.
    assert!(matches!(
        outcome,
        Some(Outcome::Stopped | Outcome::Complete)
    ));
    let ranks: Vec<_> = sent.processes().iter().map(|it| it.info.rank).collect();
    assert_eq!(ranks, [Some(0), Some(1)]);
    assert!(sent.lanes().len() == 2 && sent.lanes().iter().all(|lane| !lane.is_empty()));
}

/// Two ranks whose GPUs have one number, and a file without a record before them.
#[test]
fn ranks_in_files_of_their_own_have_gpus_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path
    };
    let loaded = load(&[
        write("none.json", r#"{"traceEvents":[]}"#.to_owned()),
        write("0.json", of_rank(0, 3)),
        write("1.json", of_rank(1, 4)),
    ]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let trace = &loaded.trace;
    assert_eq!(trace.devices().len(), 2);
    let rank = |process: usize| trace.processes()[process].info.rank;
    let lanes = trace.lanes().iter();
    let mut by_rank: Vec<_> = lanes.map(|it| (rank(it.key().process), it.len())).collect();
    by_rank.sort_unstable();
    assert_eq!(by_rank, [(Some(0), 3), (Some(1), 4)]);
}

/// An export with all that is no plain kernel or copy: whole graphs, migrations of managed memory, copies of
/// arrays, and a stream whose id has 64 bits. The figures are counted by hand.
#[test]
fn whole_graphs_migrations_and_arrays_count_as_what_they_are() {
    let (_folder, path) = exported(
        "odd.sqlite",
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER);
         INSERT INTO TARGET_INFO_GPU VALUES (0, 'Tesla V100', 80);
         CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
           streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (100, 200, 0, 1, 7, 1, 100 << 24, 9), (300, 400, 0, 1, 7, 2, 100 << 24, 9);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
           streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
           (150, 250, 0, 1, 0, 3, 100 << 24, 400, 11),
           (400, 410, 0, 1, 0, 4, 100 << 24, 20, 12),
           (410, 430, 0, 1, 7, 5, 100 << 24, 60, 3),
           (430, 440, 0, 1, 7, 6, 100 << 24, 50, 4),
           (440, 450, 0, 1, 4294967303, 7, 100 << 24, 30, 7);",
    );
    let loaded = load(&[path]);
    assert_eq!(loaded.outcome, Outcome::Complete);
    let folded = "2147483654";
    let mut streams = serde_json::json!({"7": 4});
    // 7 and a bit above the lowest 32: not the program's stream 7.
    streams[folded] = 1.into();
    let expected = serde_json::json!([{
        "device": 0, "ops": 7, "kernels": 0, "memsets": 0, "graphs": 2,
        "span_ns": 350, "busy_ns": 300, "idle_ns": 50,
        "compute_ns": 200, "copy_ns": 150, "overlap_ns": 50,
        "h2d": {"count": 2, "bytes": 460, "busy_ns": 120, "gbps": 3.8333},
        "d2h": {"count": 2, "bytes": 70, "busy_ns": 20, "gbps": 3.5},
        "d2d": {"count": 1, "bytes": 30, "busy_ns": 10, "gbps": 3.0},
        "p2p": {"count": 0, "bytes": 0, "busy_ns": 0, "gbps": null},
        "streams": streams,
        "gaps": {"over_10us": 0, "over_100us": 0, "over_1ms": 0, "longest_ns": 50},
        "no_api": 7,
    }]);
    assert_eq!(figures(&loaded.trace), expected);
    assert_eq!(loaded.trace.devices()[0].info.name, "Tesla V100");
    let graphs = all(&loaded.trace)
        .iter()
        .filter(|a| matches!(a.what, What::Graph(graph) if graph.graph == 9))
        .count();
    assert_eq!(graphs, 2);
    assert!(
        loaded
            .notices
            .iter()
            .any(|text| text.contains("2 launches of CUDA graphs")),
        "{:?}",
        loaded.notices
    );
}

/// The arguments as PyTorch writes them; numbers and lists come as text in some versions.
#[test]
fn a_collective_of_kineto_keeps_its_group_and_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rank3.json");
    let kernel = |ts: u32, args: &str| {
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "pid": 0, "tid": 20, "ts": {ts}, "dur": 5, "args": {{"device": 0, "stream": 20, {args}}}}}"#
        )
    };
    let named = r#""Dst Rank": 7, "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 2048, "Group size": 2,
        "dtype": "Float", "Process Group Name": "1", "Process Group Description": "dp", "Process Group Ranks": "[3, 7]""#;
    let text = format!(
        r#"{{"distributedInfo": {{"backend": "nccl", "rank": 3, "world_size": 8}}, "traceEvents": [{}, {}, {}]}}"#,
        kernel(10, named),
        kernel(20, &named.replace("1024", "4096")),
        kernel(30, r#""grid": [1, 1, 1]"#),
    );
    std::fs::write(&path, text).expect("a file");
    let trace = load(&[path]).trace;
    let info = &trace.processes()[0].info;
    assert_eq!((info.rank, info.world), (Some(3), Some(8)));
    let found: Vec<_> = all(&trace)
        .iter()
        .map(|a| {
            let What::Kernel(kernel) = a.what else {
                panic!("a kernel")
            };
            trace.collective(&trace.shape(kernel.shape)).cloned()
        })
        .collect();
    let expected = Collective {
        operation: "allreduce".to_owned(),
        group: "1 [3, 7]".to_owned(),
        size: 2,
        elements: [1024, 2048],
        element: "Float".to_owned(),
        peer: Some(7),
    };
    let larger = Collective {
        elements: [4096, 2048],
        ..expected.clone()
    };
    assert_eq!(found, [Some(expected), Some(larger), None]);
}
