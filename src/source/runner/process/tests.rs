//! The whole way from a plan to driver calls, on a driver without a GPU (tests/fake/driver.c).

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::super::driver::Driver;
use super::super::fault::{Fault, FaultKind};
use super::super::library::Library;
use super::super::protocol::{Event, Issued};
use super::kernels::Images;
use super::session::{Marks, Session};
use crate::activity::{Direction, Ns, RangeKind};
use crate::scenario::plan::{
    Arg, BufferSpec, Fill, GraphSpec, HostMemory, KernelSpec, LaunchSpec, MemRef, Op, OpKind, Plan,
    Site, StreamSpec, SyncTarget, VariantPlan,
};

/// The fake's kernels, as its module images list them.
const IMAGE: &[u8] = b"KERNEL add_one 8 4\nKERNEL out_of_bounds 8\nKERNEL empty\n\0";
/// What the scenario has as their source.
const SOURCE: &str = "extern \"C\" __global__ void add_one(float* x, int n) {}";

/// A loaded copy of the fake driver: each test has its own state.
struct Fake {
    library: Library,
    driver: Driver,
    images: Images,
}

impl Fake {
    fn new() -> Fake {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let built = BUILT.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a directory").keep();
            let library = folder.join("driver.so");
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake/driver.c");
            let status = std::process::Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&library)
                .arg(source)
                .status()
                .expect("a C compiler: cc");
            assert!(status.success());
            library
        });
        // Another file is another library to the loader.
        let copy = tempfile::Builder::new()
            .suffix(".so")
            .tempfile()
            .expect("a file")
            .into_temp_path();
        std::fs::copy(built, &copy).expect("copied");
        let driver = Driver::start(Some(&copy)).expect("the fake driver starts");
        let library = Library::open(&copy, false).expect("it is open already");
        let mut images = Images::default();
        images.insert(SOURCE.into(), 90, IMAGE.to_vec());
        Fake {
            library,
            driver,
            images,
        }
    }

    #[expect(unsafe_code, reason = "calls the fake driver")]
    fn number(&self, symbol: &CStr, value: usize) {
        // SAFETY: all three setters take one integer.
        unsafe {
            let set: unsafe extern "C" fn(usize) = self.library.function(symbol).expect("there");
            set(value);
        }
    }

    #[expect(unsafe_code, reason = "calls the fake driver")]
    fn live(&self) -> i32 {
        // SAFETY: takes nothing, returns an int.
        unsafe {
            let live: unsafe extern "C" fn() -> i32 =
                self.library.function(c"fake_live").expect("there");
            live()
        }
    }

    #[expect(unsafe_code, reason = "calls the fake driver")]
    fn log(&self) -> Vec<String> {
        // SAFETY: takes nothing, returns a NUL-terminated string that is copied at once.
        let text = unsafe {
            let log: unsafe extern "C" fn() -> *const c_char =
                self.library.function(c"fake_log").expect("there");
            CStr::from_ptr(log()).to_string_lossy().into_owned()
        };
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, plan: &Plan) -> (Result<Issued, Fault>, Noted, Vec<Event>) {
        self.run_until(plan, &AtomicBool::new(false))
    }

    fn run_until(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> (Result<Issued, Fault>, Noted, Vec<Event>) {
        let marks = Noted::default();
        let events = RefCell::new(Vec::new());
        let result = Session {
            driver: &self.driver,
            plan,
            images: &self.images,
            marks: &marks,
            say: &|event| events.borrow_mut().push(event.clone()),
            stop,
        }
        .run();
        (result, marks, events.into_inner())
    }
}

#[derive(Default)]
struct Noted {
    ranges: RefCell<Vec<(RangeKind, String, u32, Ns, Ns)>>,
    streams: RefCell<Vec<String>>,
}

impl Marks for Noted {
    fn range(&self, kind: RangeKind, name: &str, index: u32, start: Ns, end: Ns) {
        self.ranges
            .borrow_mut()
            .push((kind, name.to_owned(), index, start, end));
    }

    #[expect(unsafe_code, reason = "the trait's signature")]
    unsafe fn name_stream(&self, _: *mut c_void, _: *mut c_void, name: &str) {
        self.streams.borrow_mut().push(name.to_owned());
    }
}

fn at(buffer: usize) -> MemRef {
    MemRef { buffer, offset: 0 }
}

fn copy(direction: Direction, buffer: usize, bytes: u64, chunk: u64, stream: usize) -> OpKind {
    OpKind::Copy {
        direction,
        from: at(buffer),
        to: at(buffer),
        bytes,
        chunk,
        stream,
        is_async: true,
    }
}

fn launch(launch: usize, stream: usize) -> OpKind {
    OpKind::Launch { launch, stream }
}

/// Each operation stands on a line of its own, counted from 1.
fn ops(kinds: &[OpKind]) -> Vec<Op> {
    kinds
        .iter()
        .enumerate()
        .map(|(i, &kind)| Op {
            kind,
            site: i as u32,
        })
        .collect()
}

fn buffer(name: &str, bytes: u64, host: HostMemory) -> BufferSpec {
    BufferSpec {
        name: name.to_owned(),
        bytes,
        host,
        device: Some(0),
        fill: Fill::Zero,
        preallocated: true,
    }
}

fn kernel(entry: &str) -> KernelSpec {
    KernelSpec {
        name: entry.to_owned(),
        file: "k.cu".to_owned(),
        source: SOURCE.into(),
        entry: entry.to_owned(),
        site: 0,
    }
}

fn launching(kernel: usize, args: Vec<Arg>) -> LaunchSpec {
    LaunchSpec {
        kernel,
        grid: [4, 1, 1],
        block: [64, 1, 1],
        shared: 0,
        args,
        flops: None,
        bytes: None,
        time: None,
    }
}

/// Streams `main` and `side`; a pinned buffer of 256 ones; kernels `add_one`, `out_of_bounds`, `empty`.
fn variant(kinds: &[OpKind]) -> VariantPlan {
    let stream = |name: &str| StreamSpec {
        name: name.to_owned(),
        device: 0,
        priority: 0,
    };
    VariantPlan {
        name: "v".to_owned(),
        repeat: 1,
        devices: 1,
        streams: vec![stream("main"), stream("side")],
        events: vec!["e".to_owned(), "f".to_owned()],
        buffers: vec![BufferSpec {
            fill: Fill::One,
            ..buffer("x", 1024, HostMemory::Pinned)
        }],
        kernels: vec![kernel("add_one"), kernel("out_of_bounds"), kernel("empty")],
        launches: vec![
            launching(0, vec![Arg::Device(at(0)), Arg::I32(256)]),
            launching(1, vec![Arg::Device(at(0))]),
            launching(2, vec![]),
        ],
        ops: ops(kinds),
        ..VariantPlan::default()
    }
}

fn plan(variants: Vec<VariantPlan>) -> Plan {
    let sites = (0..100)
        .map(|i| Site {
            span: 0..0,
            line: i + 1,
            column: 1,
        })
        .collect();
    Plan {
        name: "test".to_owned(),
        about: String::new(),
        look_for: String::new(),
        sweep: None,
        variants,
        sites,
        expectations: vec![],
    }
}

/// The log without what prepares and cleans up: from the first line that begins with `first`.
fn from<'a>(log: &'a [String], first: &str) -> Vec<&'a str> {
    let start = log
        .iter()
        .position(|line| line.starts_with(first))
        .expect("such a line");
    log[start..].iter().map(String::as_str).collect()
}

#[test]
fn a_pass_copies_computes_and_brings_back() {
    let fake = Fake::new();
    let mut v = variant(&[
        copy(Direction::H2D, 0, 1024, 400, 0),
        launch(0, 0),
        launch(0, 0),
        copy(Direction::D2H, 0, 1024, 0, 0),
        OpKind::Sync(SyncTarget::Stream(0)),
    ]);
    v.warmup = 1;
    v.repeat = 2;
    let (result, marks, events) = fake.run(&plan(vec![v]));
    let issued = result.expect("it runs");
    // Three passes of three pieces, two kernels and one copy back; one copy to fill the buffer.
    assert_eq!((issued.kernels, issued.h2d, issued.d2h), (6, 10, 3));
    let log = fake.log();
    let pass = [
        "h2d 400 async stream 1 first 1",
        "h2d 400 async stream 1 first 1",
        "h2d 224 async stream 1 first 1",
        "launch add_one 4x1x1 64x1x1 shared 0 stream 1",
        "launch add_one 4x1x1 64x1x1 shared 0 stream 1",
        "d2h 1024 async stream 1 first 3",
        "sync stream 1",
        "sync",
    ];
    assert_eq!(from(&log, "h2d 400")[..8], pass);
    // The second pass uploads what the first brought back: ones had become threes.
    assert!(log.contains(&"d2h 1024 async stream 1 first 5".to_owned()));
    let ranges = marks.ranges.borrow();
    let kinds: Vec<(RangeKind, u32)> = ranges.iter().map(|r| (r.0, r.2)).collect();
    assert_eq!(
        kinds,
        [
            (RangeKind::Warmup, 0),
            (RangeKind::Repeat, 0),
            (RangeKind::Repeat, 1),
            (RangeKind::Variant, 0),
        ]
    );
    let (_, _, _, start, end) = ranges[3];
    assert!(
        ranges
            .iter()
            .all(|r| start <= r.3 && r.3 <= r.4 && r.4 <= end)
    );
    assert_eq!(*marks.streams.borrow(), ["main", "side"]);
    let passes = events.iter().filter(|e| matches!(e, Event::Pass(_)));
    assert_eq!(passes.count(), 3);
    assert_eq!(fake.live(), 0, "everything is given back");
}

#[test]
fn a_graph_is_captured_across_streams_and_launched() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::Capture {
            graph: 0,
            stream: 0,
        },
        OpKind::GraphLaunch {
            graph: 0,
            stream: 0,
        },
    ]);
    v.repeat = 2;
    v.graphs = vec![GraphSpec {
        name: "g".to_owned(),
        ops: ops(&[
            launch(0, 0),
            OpKind::Record {
                event: 0,
                stream: 0,
            },
            OpKind::Wait {
                event: 0,
                stream: 1,
            },
            launch(2, 1),
            OpKind::Record {
                event: 1,
                stream: 1,
            },
            OpKind::Wait {
                event: 1,
                stream: 0,
            },
        ]),
    }];
    let (result, _, _) = fake.run(&plan(vec![v]));
    assert_eq!(result.expect("it runs").kernels, 4);
    let log = fake.log();
    assert_eq!(
        from(&log, "capture begins")[..10],
        [
            "capture begins on stream 1",
            "captured launch add_one 4x1x1 64x1x1 shared 0 stream 1",
            "event 3 on stream 1",
            "stream 2 waits for event 3",
            "captured launch empty 4x1x1 64x1x1 shared 0 stream 2",
            "event 4 on stream 2",
            "stream 1 waits for event 4",
            "capture ends on stream 1",
            "graph on stream 1",
            "sync",
        ]
    );
    assert_eq!(fake.live(), 0, "the replaced graph is given back too");
}

#[test]
fn memory_that_does_not_fit_says_how_much_was_asked_and_is_free() {
    let fake = Fake::new();
    fake.number(c"fake_set_memory", 1 << 20);
    let mut v = variant(&[]);
    v.buffers.push(buffer("huge", 64 << 20, HostMemory::None));
    let (result, _, _) = fake.run(&plan(vec![v]));
    let fault = result.expect_err("too large");
    assert_eq!(
        fault.message,
        "allocating 64 MiB of device memory for buffer `huge`: out of memory (CUDA_ERROR_OUT_OF_MEMORY); \
         1022 KiB of the GPU's 1 MiB are free"
    );
    assert_eq!(fake.live(), 0);
}

#[test]
fn an_allocation_inside_a_pass_names_its_step() {
    let fake = Fake::new();
    fake.number(c"fake_set_memory", 1 << 20);
    let mut v = variant(&[
        launch(2, 0),
        OpKind::Alloc {
            buffer: 1,
            stream: Some(0),
        },
    ]);
    v.buffers.push(BufferSpec {
        preallocated: false,
        ..buffer("huge", 64 << 20, HostMemory::None)
    });
    let (result, _, _) = fake.run(&plan(vec![v]));
    let fault = result.expect_err("too large");
    assert_eq!(fault.site, Some(1));
    assert!(fault.message.contains("64 MiB"), "{}", fault.message);
    assert_eq!(fake.live(), 0);
}

#[test]
fn an_illegal_access_is_laid_at_the_kernel_that_did_it() {
    let fake = Fake::new();
    let v = variant(&[
        copy(Direction::H2D, 0, 1024, 0, 0),
        launch(1, 0),
        OpKind::Sync(SyncTarget::Stream(0)),
    ]);
    let p = plan(vec![v]);
    let (result, _, _) = fake.run(&p);
    let fault = result
        .expect_err("it must fail")
        .located("t.toml", &p.sites);
    assert_eq!(fault.kind, FaultKind::Program);
    assert_eq!(
        fault.message,
        "t.toml:2:1: variant `v`: waiting for stream `main`: an illegal memory access was encountered \
         (CUDA_ERROR_ILLEGAL_ADDRESS), caused by kernel `out_of_bounds` (line 2)"
    );
    // Two kernels could have done it: both are named, and the place is where it was noticed.
    let fake = Fake::new();
    let p = plan(vec![variant(&[launch(2, 0), launch(1, 1)])]);
    let fault = fake.run(&p).0.expect_err("it must fail");
    assert!(
        fault
            .message
            .ends_with("caused by one of the kernels `empty` (line 1), `out_of_bounds` (line 2)"),
        "{}",
        fault.message
    );
    assert_eq!(fault.site, None);
}

#[test]
fn a_wrong_launch_is_refused_before_anything_runs() {
    let cases: [(fn(&mut VariantPlan), &str, &str); 4] = [
        (
            |v| v.kernels[0].entry = "add_on".to_owned(),
            "k.cu has no entry point `add_on`",
            "did you mean `add_one`?",
        ),
        (
            |v| {
                v.launches[0].args.pop();
            },
            "kernel `add_one` takes 2 arguments and is given 1",
            "look at the parameters of `add_one` in k.cu",
        ),
        (
            |v| v.launches[0].args[1] = Arg::U64(1),
            "argument 2 of kernel `add_one` has 4 bytes and is given 8",
            "look at the parameters of `add_one` in k.cu",
        ),
        (
            |v| v.launches[0].block = [64, 32, 1],
            "a block of 64 x 32 x 1 = 2048 threads is too large: kernel `add_one` can have 1024",
            "make `block` smaller and `grid` larger",
        ),
    ];
    for (break_it, message, help) in cases {
        let fake = Fake::new();
        let mut v = variant(&[launch(0, 0)]);
        break_it(&mut v);
        let fault = fake.run(&plan(vec![v])).0.expect_err("it is refused");
        assert_eq!(
            (fault.message.as_str(), fault.help.as_str()),
            (message, help)
        );
        assert_eq!(fault.kind, FaultKind::Input);
        assert!(!fake.log().iter().any(|line| line.starts_with("launch")));
        assert_eq!(fake.live(), 0);
    }
}

#[test]
fn large_shared_memory_is_asked_for() {
    let fake = Fake::new();
    let mut v = variant(&[launch(2, 0)]);
    v.launches[2].shared = 100_000;
    fake.run(&plan(vec![v])).0.expect("it runs");
    assert!(
        fake.log()
            .contains(&"attribute 8 of empty is 100000".to_owned())
    );
}

#[test]
fn a_cold_variant_makes_everything_in_each_pass() {
    let fake = Fake::new();
    let mut v = variant(&[launch(0, 0)]);
    v.cold = true;
    v.repeat = 2;
    let (result, marks, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let log = fake.log();
    let count = |what: &str| log.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("context on 0"), 2);
    assert_eq!(count("context gone"), 2);
    assert_eq!(count("module"), 2);
    assert_eq!(count("retain"), 0, "no primary context warms it up");
    let ranges = marks.ranges.borrow();
    let repeat = ranges
        .iter()
        .find(|r| r.0 == RangeKind::Repeat)
        .expect("a repeat");
    let made = ranges
        .iter()
        .find(|r| r.1 == "make the context")
        .expect("a phase");
    assert!(repeat.3 <= made.3 && made.4 <= repeat.4);
    assert_eq!(fake.live(), 0);
}

#[test]
fn memory_from_a_pool_reaches_the_kernel_that_names_it() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::Alloc {
            buffer: 1,
            stream: Some(0),
        },
        OpKind::Memset {
            to: at(1),
            bytes: 1024,
            value: 0,
            stream: 0,
        },
        launch(3, 0),
        copy(Direction::D2H, 1, 1024, 0, 0),
        OpKind::Free {
            buffer: 1,
            stream: Some(0),
        },
        // Left behind: the next pass must not find it taken.
        OpKind::Alloc {
            buffer: 2,
            stream: None,
        },
    ]);
    v.repeat = 2;
    let late = |name| BufferSpec {
        preallocated: false,
        ..buffer(name, 1024, HostMemory::Pageable)
    };
    v.buffers.push(late("pool"));
    v.buffers.push(late("plain"));
    v.launches
        .push(launching(0, vec![Arg::Device(at(1)), Arg::I32(256)]));
    let (result, _, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let log = fake.log();
    assert!(log.contains(&"pool keeps all".to_owned()));
    let back = log
        .iter()
        .filter(|l| l.ends_with("d2h 1024 async stream 1 first 1"));
    assert_eq!(back.count(), 2);
    assert_eq!(fake.live(), 0);
}

#[test]
fn managed_memory_migrates_and_is_not_counted_as_a_copy() {
    let fake = Fake::new();
    let mut v = variant(&[
        copy(Direction::H2D, 1, 1024, 0, 0),
        copy(Direction::D2H, 1, 1024, 0, 0),
    ]);
    v.buffers.push(buffer("m", 1024, HostMemory::Managed));
    let issued = fake.run(&plan(vec![v])).0.expect("it runs");
    // The one copy fills the other buffer.
    assert_eq!((issued.h2d, issued.d2h), (1, 0));
    let log = fake.log();
    assert_eq!(
        from(&log, "migrate")[..2],
        [
            "migrate 1024 to 0 on stream 1",
            "migrate 1024 to -1 on stream 1",
        ]
    );
    assert_eq!(fake.live(), 0);
}

fn two_devices() -> VariantPlan {
    let mut v = variant(&[
        launch(0, 0),
        launch(3, 1),
        OpKind::Copy {
            direction: Direction::P2P,
            from: at(0),
            to: at(1),
            bytes: 1024,
            chunk: 0,
            stream: 1,
            is_async: true,
        },
        OpKind::Record {
            event: 0,
            stream: 1,
        },
    ]);
    v.devices = 2;
    v.streams[1].device = 1;
    v.buffers.push(BufferSpec {
        device: Some(1),
        ..buffer("y", 1024, HostMemory::None)
    });
    v.launches
        .push(launching(0, vec![Arg::Device(at(1)), Arg::I32(256)]));
    v
}

#[test]
fn each_device_is_used_in_its_own_context() {
    let fake = Fake::new();
    fake.number(c"fake_set_devices", 2);
    let (result, _, events) = fake.run(&plan(vec![two_devices()]));
    assert_eq!(result.expect("it runs").p2p, 1);
    let log = fake.log();
    assert!(log.contains(&"peer 0".to_owned()) && log.contains(&"peer 1".to_owned()));
    assert!(log.contains(&"from 0 to 1".to_owned()));
    let warned = |e: &Event| matches!(e, Event::Notice { .. });
    assert!(!events.iter().any(warned));
    assert_eq!(fake.live(), 0);

    let apart = Fake::new();
    apart.number(c"fake_set_devices", 2);
    apart.number(c"fake_set_apart", 0);
    let (result, _, events) = apart.run(&plan(vec![two_devices()]));
    result.expect("it still runs");
    assert!(events.iter().any(warned));
}

#[test]
fn too_few_gpus_is_the_machines_fault() {
    let fake = Fake::new();
    let fault = fake
        .run(&plan(vec![two_devices()]))
        .0
        .expect_err("one is not enough");
    assert_eq!(fault.kind, FaultKind::Machine);
    assert_eq!(
        fault.message,
        "the scenario needs 2 GPUs and this process sees 1 GPU"
    );
}

#[test]
fn phases_are_marked_inside_their_pass() {
    let fake = Fake::new();
    let mut v = variant(&[
        OpKind::RangeBegin(0),
        OpKind::RangeBegin(1),
        launch(2, 0),
        OpKind::RangeEnd,
        OpKind::RangeEnd,
        OpKind::RangeBegin(1),
        OpKind::RangeEnd,
    ]);
    v.phases = vec!["outer".to_owned(), "inner".to_owned()];
    let (result, marks, _) = fake.run(&plan(vec![v]));
    result.expect("it runs");
    let ranges = marks.ranges.borrow();
    let phases: Vec<(&str, u32)> = ranges
        .iter()
        .filter(|r| r.0 == RangeKind::Phase)
        .map(|r| (r.1.as_str(), r.2))
        .collect();
    assert_eq!(phases, [("inner", 0), ("outer", 0), ("inner", 1)]);
}

#[test]
fn nothing_starts_after_a_stop() {
    let fake = Fake::new();
    let stop = AtomicBool::new(true);
    let (result, marks, _) = fake.run_until(&plan(vec![variant(&[launch(0, 0)])]), &stop);
    assert_eq!(result.expect("stopping is no failure"), Issued::default());
    assert!(marks.ranges.borrow().is_empty());
}

#[test]
fn the_default_stream_is_cudas_own() {
    let fake = Fake::new();
    let mut v = variant(&[launch(2, 0)]);
    v.streams[0].name = "default".to_owned();
    v.streams[1].priority = -3;
    fake.run(&plan(vec![v])).0.expect("it runs");
    let log = fake.log();
    assert!(log.contains(&"launch empty 4x1x1 64x1x1 shared 0 stream 0".to_owned()));
    // CU_STREAM_NON_BLOCKING is 1.
    assert!(log.contains(&"stream 1 flags 1 priority -3".to_owned()));
}

#[test]
fn sources_are_shared_by_text() {
    let one: Arc<str> = SOURCE.into();
    let other: Arc<str> = SOURCE.into();
    let mut images = Images::default();
    images.insert(one, 90, vec![1]);
    images.insert(other, 90, vec![2]);
    let fake = Fake {
        images,
        ..Fake::new()
    };
    // The second image, which is no module, replaced the first: there is one for each text.
    assert!(fake.run(&plan(vec![variant(&[launch(2, 0)])])).0.is_err());
}
