//! How fast a Kineto trace is opened: from the file, through the reader, into the store.
//!
//! The trace is made up (51 MB of text, 160,000 events in the proportions of a PyTorch training step) and lies
//! in a temporary folder, so it is read from the page cache. `gz` is the same trace, compressed. Files that the variable
//! `CUPTOP_BENCH_FILES` names (colons between them) are opened too; `benches/table.py` makes large ones.

mod quick;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use activity::feed::{Message, Outcome};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use readers::file;
use trace::{SourceInfo, Trace};

/// Groups of an operator, a call, an operation and the arrows between them.
const GROUPS: usize = 32_000;

/// The text of a trace.
fn kineto() -> String {
    use std::fmt::Write as _;
    let mut text = String::from("{\"schemaVersion\": 1, \"traceEvents\": [\n");
    for i in 0..quick::sizes([GROUPS]).sum() {
        let ts = 4_368_170_406_511u64 + i as u64 * 17;
        let kernel = i % 40;
        let mut line = |event: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "  {{\n    {event}\n  }},");
        };
        line(format_args!(
            "\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::op_{kernel}\", \"pid\": 574, \"tid\": 574,\n    \"ts\": {ts}.092, \"dur\": 11.656,\n    \
             \"args\": {{\n      \"External id\": {i},\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"0\", \"0\", \"9223372036854775807\", \"1\"], \
             \"Input type\": [\"long int\", \"Scalar\", \"Scalar\"], \"Input Strides\": [[512, 1], [], []], \"Input Dims\": [[1, 512], [], []], \"Ev Idx\": {i}\n    }}"
        ));
        line(format_args!(
            "\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 574, \"tid\": 574,\n    \"ts\": {ts}.912, \"dur\": 3.430,\n    \
             \"args\": {{\n      \"External id\": {i}, \"cbid\": 211, \"correlation\": {i}\n    }}"
        ));
        line(format_args!(
            "\"ph\": \"s\", \"id\": {i}, \"pid\": 574, \"tid\": 574, \"ts\": {ts}.912, \"cat\": \"ac2g\", \"name\": \"ac2g\""
        ));
        line(format_args!(
            "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void at::native::vectorized_elementwise_kernel<4, at::native::Functor{kernel}<float>, std::array<char*, 3ul> >\
             (int, at::native::Functor{kernel}<float>, std::array<char*, 3ul>)\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {ts}.993, \"dur\": 9.711,\n    \
             \"args\": {{\n      \"External id\": {i}, \"queued\": 0, \"device\": 0, \"context\": 1,\n      \"stream\": 7, \"correlation\": {i},\n      \
             \"registers per thread\": 32, \"shared memory\": 0,\n      \"blocks per SM\": 0.969697,\n      \"warps per SM\": 7.757576,\n      \
             \"grid\": [128, 1, 1],\n      \"block\": [256, 1, 1],\n      \"est. achieved occupancy %\": 12\n    }}"
        ));
        line(format_args!(
            "\"ph\": \"f\", \"id\": {i}, \"pid\": 0, \"tid\": 7, \"ts\": {ts}.993, \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\""
        ));
    }
    text.push_str("  null\n]}\n");
    text
}

fn load(path: &Path) -> Trace {
    let opened = file::open(&[PathBuf::from(path)], &mut |_| {}).expect("a trace");
    let mut trace = Trace::new(SourceInfo::default());
    for message in opened.feed.receiver() {
        match message {
            Message::Batch(batch) => trace.apply(batch),
            Message::Finished(outcome) => {
                assert_eq!(outcome, Outcome::Complete);
                break;
            }
            _ => {}
        }
    }
    trace
}

fn open(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let text = kineto();
    let plain = folder.path().join("trace.json");
    std::fs::write(&plain, &text).expect("a file");
    let packed = folder.path().join("trace.json.gz");
    let file = std::fs::File::create(&packed).expect("a file");
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("gzip");
    encoder.finish().expect("gzip");

    let mut group = criterion.benchmark_group("open");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10);
    for (name, path) in [("json", &plain), ("gz", &packed)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let trace = load(path);
                assert!(trace.operations_extent().is_some());
                trace
            });
        });
    }
    for path in std::env::var_os("CUPTOP_BENCH_FILES")
        .iter()
        .flat_map(std::env::split_paths)
    {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let size = std::fs::metadata(&path).map_or(0, |file| file.len());
        group.throughput(Throughput::Bytes(size));
        group.bench_function(name.unwrap_or_default(), |bencher| {
            bencher.iter(|| load(&path));
        });
    }
    group.finish();
}

criterion_group!(benches, open);
criterion_main!(benches);
