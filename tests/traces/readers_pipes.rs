//! Traces that come through pipes, and several at once: what cannot be read twice, or must not be.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::common::{data, exported, figures, load};
use activity::What;
use activity::feed::Outcome;
use cuptop::report::KnownGpus;
use cuptop::report::Report;
use readers::file;

/// A pipe in the file system that gives out `content`, a little at a time.
fn pipe(folder: &Path, content: Vec<u8>) -> (PathBuf, JoinHandle<()>) {
    let path = folder.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).expect("a pipe");
    let theirs = path.clone();
    let writer = std::thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(theirs).expect("a pipe");
        for part in content.chunks(777) {
            // A reader that refused it has gone.
            if pipe.write_all(part).is_err() {
                return;
            }
        }
    });
    (path, writer)
}

#[test]
fn what_a_pipe_gives_is_what_the_file_is() {
    let json = data("small.json");
    let text = std::fs::read(&json).expect("a file");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&text).expect("gzip");
    let packed = packer.finish().expect("gzip");
    let sql = std::fs::read_to_string(data("small.sql")).expect("a file");
    let (_folder, export) = exported("small.sqlite", &sql);
    let database = std::fs::read(&export).expect("a file");
    for (content, file) in [(text, &json), (packed, &json), (database, &export)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, writer) = pipe(folder.path(), content);
        let piped = load(&[path]);
        writer.join().expect("no panic");
        let read = load(std::slice::from_ref(file));
        assert_eq!(piped.outcome, Outcome::Complete);
        assert_eq!(figures(&piped.trace), figures(&read.trace));
        assert_eq!(piped.trace.health(), read.trace.health());
    }
}

#[test]
fn what_a_pipe_gives_has_to_be_a_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, writer) = pipe(folder.path(), b"Dear reader".to_vec());
    let error = file::open(&[path], &mut |_| {})
        .expect_err("prose")
        .to_string();
    assert!(error.contains("neither JSON"), "{error}");
    writer.join().expect("no panic");
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let path = data("small.json");
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let both = load(&[path.clone(), link]);
    assert_eq!(both.outcome, Outcome::Complete);
    assert_eq!(figures(&both.trace), figures(&load(&[path]).trace));
    assert!(
        both.notices.iter().any(|n| n.contains("named twice")),
        "{:?}",
        both.notices
    );
}

/// As one export for each rank leaves it, with what else a job writes.
#[test]
fn a_folder_of_traces_is_all_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = file::open(&[folder.path().to_owned()], &mut |_| {}).expect_err("nothing in it");
    assert!(error.to_string().contains("no trace in it"), "{error}");
    let path = data("small.json");
    std::fs::copy(&path, folder.path().join("rank0.json")).expect("a copy");
    std::fs::write(folder.path().join("truth0.json"), r#"{"step_ms": 1.5}"#).expect("a file");
    std::fs::write(folder.path().join("readme.txt"), "Dear reader").expect("a file");
    let read = load(&[folder.path().to_owned()]);
    assert_eq!(read.outcome, Outcome::Complete);
    assert_eq!(figures(&read.trace), figures(&load(&[path]).trace));
    let left = |notice: &String| notice.ends_with("no traces, and left out: truth0.json");
    assert!(read.notices.iter().any(left), "{:?}", read.notices);
}

/// Standard input can be read once only.
#[test]
fn standard_input_that_is_named_twice_is_read_once() {
    let from = std::fs::File::open(data("small.json")).expect("a file");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cuptop"))
        .args(["report", "-", "-"])
        .stdin(from)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("standard input was named twice, and is read once"),
        "{said}"
    );
}

/// A trace of one kernel on GPU 0 of this name.
fn of_gpu(folder: &Path, file: &str, name: &str) -> PathBuf {
    let path = folder.join(file);
    let text = format!(
        r#"{{"deviceProperties": [{{"id": 0, "name": "{name}"}}], "traceEvents": [
            {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {{"device": 0, "stream": 7}}}}]}}"#
    );
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn traces_that_do_not_say_where_they_are_from_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = of_gpu(folder.path(), "a.json", "NVIDIA A100");
    let b = of_gpu(folder.path(), "b.json", "NVIDIA H100");
    let c = of_gpu(folder.path(), "c.json", "NVIDIA A100");
    let says = |paths: &[PathBuf]| {
        let loaded = load(paths);
        let is_told = loaded.notices.iter().any(|n| n.contains("which machine"));
        (loaded.trace.devices().len(), is_told)
    };
    // Two models are two GPUs; of one model nobody can say.
    assert_eq!(says(&[a.clone(), b]), (2, true));
    assert_eq!(says(&[a.clone(), c]), (1, true));
    assert_eq!(says(&[a]), (1, false));
}

#[test]
fn json_that_is_no_trace_is_refused_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("{\"rocprofiler-sdk-tool\": []}", "without \"traceEvents\""),
        ("[{\"name\": \"x\"}, {\"name\": \"y\"}]", "not of events"),
        ("[null]", "not of events"),
    ];
    for (text, what) in cases {
        let path = folder.path().join("other.json");
        std::fs::write(&path, text).expect("a file");
        let error = file::open(&[path], &mut |_| {})
            .expect_err(what)
            .to_string();
        assert!(error.contains(what), "{error}");
    }
    // The list comes later than was looked for.
    let path = folder.path().join("none.json");
    std::fs::write(&path, format!("{{\"x\": \"{}\"}}", "y".repeat(2 << 20))).expect("a file");
    let Outcome::Failed(failure) = load(&[path]).outcome else {
        panic!("it is none");
    };
    assert!(
        failure.message.contains("no list \"traceEvents\""),
        "{}",
        failure.message
    );
}

/// What names a stream is not always a number of 32 bits; none may become another's.
#[test]
fn streams_are_as_many_as_their_names() {
    let ids = [
        "0",
        "7",
        "\"7\"",
        "\"side\"",
        "\"main\"",
        "1.5",
        "-1",
        "1099511627779",
        "9223372036854775811",
    ];
    let kernels = ids.iter().enumerate().map(|(i, id)| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":"any","ts":{},"dur":5,"args":{{"device":0,"stream":{id}}}}}"#,
            i * 10
        )
    });
    let kernels: Vec<String> = kernels.collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("streams.json");
    let text = format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        kernels.join(",")
    );
    std::fs::write(&path, text).expect("written");
    let trace = load(&[path]).trace;
    // 7 and "7" are one.
    assert_eq!(trace.streams_of(0).count(), ids.len() - 1);
}

/// Old PyTorch calls operators "Operator"; HIP's copy on a stream waits for it.
#[test]
fn old_operators_and_hip_copies_are_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.json");
    let text = r#"[
        {"ph": "X", "cat": "Operator", "name": "aten::to", "pid": 1, "tid": 1, "ts": 1, "dur": 90, "args": {"Device": 24}},
        {"ph": "X", "cat": "Runtime", "name": "hipMemcpyWithStream", "pid": 1, "tid": 1, "ts": 2, "dur": 50, "args": {"correlation": 5}},
        {"ph": "X", "cat": "Runtime", "name": "hipMemcpyAsync", "pid": 1, "tid": 1, "ts": 60, "dur": 5, "args": {"correlation": 6}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 10, "dur": 40, "args": {"correlation": 5, "bytes": 8}},
        {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 70, "dur": 9, "args": {"correlation": 6, "bytes": 8}}]"#;
    std::fs::write(&path, text).expect("a file");
    let trace = load(&[path]).trace;
    let mut copies = Vec::new();
    let mut ranges = Vec::new();
    for (id, lane) in trace.lanes().iter().enumerate() {
        for row in 0..lane.len() {
            let activity = trace.activity(id, row);
            match activity.what {
                What::Copy(copy) => copies.push((activity.correlation, copy.is_async)),
                What::Range(range) => ranges.push(trace.names().full(range.name).to_owned()),
                _ => {}
            }
        }
    }
    assert_eq!(copies, [(5, false), (6, true)]);
    assert_eq!(ranges, ["aten::to"]);
}

/// What Nsight Systems itself takes to start, here 600 ms before a kernel of 1, is no cold start of the program.
#[test]
fn the_start_of_the_profiler_is_none_of_the_program() {
    let export = |kind: &str| {
        exported(
            "own.sqlite",
            &format!(
                "CREATE TABLE StringIds (id INTEGER, value TEXT);
                 INSERT INTO StringIds VALUES (1, 'CUDA profiling initialization'), (2, 'cudaLaunchKernel_v7000');
                 CREATE TABLE ENUM_CUPTI_OVERHEAD_TYPE (id INTEGER, name TEXT, label TEXT);
                 INSERT INTO ENUM_CUPTI_OVERHEAD_TYPE VALUES (7, 'OVERHEAD_LAZY_FUNCTION_LOADING', 'Lazy function loading');
                 CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, overheadType INTEGER);
                 INSERT INTO PROFILER_OVERHEAD VALUES (0, 600000000, 16777217, 1, {kind});
                 CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
                 INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (601000000, 601005000, 16777217, 1, 2);
                 CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
                     correlationId INTEGER, globalPid INTEGER);
                 INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (601009000, 602009000, 0, 1, 7, 1, 16777216);"
            ),
        )
    };
    let told = |kind: &str| -> (Vec<&str>, Vec<String>) {
        let (_folder, path) = export(kind);
        let trace = load(&[path]).trace;
        let report = Report::new(&trace, None, KnownGpus::default());
        let rules = report.findings.iter().map(|finding| finding.rule.name());
        let rows = trace.lanes().iter().enumerate().flat_map(|(id, lane)| {
            let rows = lane.kept();
            rows.map(move |row| (id, row))
        });
        let names = rows.filter_map(|(id, row)| match trace.activity(id, row).what {
            What::Overhead(of) => Some(trace.names().full(of.name).to_owned()),
            _ => None,
        });
        (rules.collect(), names.collect())
    };
    let named = |rules: &[&'static str], name: &str| (rules.to_vec(), vec![name.to_owned()]);
    assert_eq!(told("NULL"), named(&[], "CUDA profiling initialization"));
    // The same where the driver says that it loaded code.
    assert_eq!(told("7"), named(&["cold-start"], "lazy function loading"));
}
