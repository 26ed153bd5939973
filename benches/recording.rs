//! How fast a recording is written (in the traced process, on the decode thread) and followed (by cuptop).

mod quick;

use std::hint::black_box;
use std::path::Path;

use activity::{Activity, Health, HostCall, Kernel, LaunchShape, Place, Span, What};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use recording::Follower;
use recording::file::{Clocks, Identity, State, Writer};

const RECORDS: usize = 100_000;

fn records() -> u64 {
    quick::sizes([RECORDS]).sum::<usize>() as u64
}

/// Launches of 50 kernels, a call and a kernel each, published every 2000 records as a flush would.
fn write(directory: &Path) {
    let identity = Identity {
        pid: 1,
        start: Clocks::now(),
        ..Identity::default()
    };
    let mut writer = Writer::create(directory, identity, 0).expect("a recording");
    let names: Vec<String> = (0..50)
        .map(|at| format!("_ZN2at6native29vectorized_elementwise_kernelILi{at}EEEviT0_T1_"))
        .collect();
    for at in 0..records() / 2 {
        let start = i64::try_from(at).expect("small") * 1000;
        let correlation = u32::try_from(at).expect("small") + 1;
        let name = writer.name(b"cudaLaunchKernel");
        writer.record(&Activity {
            span: Span::new(start, start + 500),
            correlation,
            what: What::Call(HostCall {
                thread: 1,
                name,
                code: 0,
            }),
        });
        let name = writer.name(names[at as usize % names.len()].as_bytes());
        let shape = writer.shape(&LaunchShape {
            name,
            grid: [1024, 1, 1],
            block: [128, 1, 1],
            ..LaunchShape::default()
        });
        writer.record(&Activity {
            span: Span::new(start + 700, start + 900),
            correlation,
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape,
                graph: 0,
                node: 0,
            }),
        });
        if at % 1000 == 0 {
            writer.publish(&Health::default());
        }
    }
    writer.close(&Health::default(), State::Closed);
}

fn recording(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recording");
    group.throughput(Throughput::Elements(records()));
    group.sample_size(20);
    group.bench_function("write", |bencher| {
        bencher.iter_batched(
            || tempfile::tempdir().expect("a directory"),
            |directory| {
                write(directory.path());
                directory
            },
            BatchSize::PerIteration,
        );
    });
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path());
    group.bench_function("follow", |bencher| {
        bencher.iter(|| {
            let mut follower = Follower::open(directory.path()).expect("a directory");
            black_box(follower.poll().len())
        });
    });
    group.finish();
}

criterion_group!(benches, recording);
criterion_main!(benches);
