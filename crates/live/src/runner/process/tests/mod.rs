//! The whole way from a plan to driver calls, on a driver without a GPU (tests/fake/driver.c).

mod failures;
mod runs;

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use cupti_sys::library::{Library, Visibility};

use super::super::driver::Driver;
use super::super::fault::Fault;
use super::super::protocol::{Event, Issued};
use super::Parent;
use super::engine::Mark;
use super::kernels::Images;
use super::session::Session;
use activity::{Direction, Ns, RangeKind};
use scenario::plan::{
    Arg, BufferSpec, CopySpec, Fill, GraphSpec, HostMemory, KernelSpec, LaunchSpec, MemRef, Op,
    OpKind, Plan, Site, StreamSpec, SyncTarget, VariantPlan,
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
        static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
        let built = BUILT.get_or_init(|| {
            let folder = tempfile::tempdir().expect("a directory");
            let library = folder.path().join("driver.so");
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fake/driver.c");
            let status = std::process::Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&library)
                .arg(source)
                .status()
                .expect("a C compiler: cc");
            assert!(status.success());
            std::fs::read(&library).expect("the library")
        });
        // Another file is another library to the loader.
        let copy = tempfile::Builder::new()
            .suffix(".so")
            .tempfile()
            .expect("a file")
            .into_temp_path();
        std::fs::write(&copy, built).expect("written");
        let driver = Driver::start(Some(&copy)).expect("the fake driver starts");
        let library = Library::open(&copy, Visibility::Local).expect("it is open already");
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
        self.run_under(plan, &Parent::default())
    }

    fn run_under(
        &self,
        plan: &Plan,
        parent: &Parent,
    ) -> (Result<Issued, Fault>, Noted, Vec<Event>) {
        let marks = Noted::default();
        let events = RefCell::new(Vec::new());
        let result = Session {
            has_whole_graphs: false,
            driver: &self.driver,
            plan,
            images: &self.images,
            mark: &|mark| marks.take(mark),
            say: &|event| events.borrow_mut().push(event.clone()),
            awaits_counters: false,
            parent,
        }
        .run();
        (result, marks, events.into_inner())
    }
}

/// Kind, name, index, start and end of a range.
type Noting = (RangeKind, String, u32, Ns, Ns);

#[derive(Default)]
struct Noted {
    ranges: RefCell<Vec<Noting>>,
    streams: RefCell<Vec<String>>,
}

impl Noted {
    fn take(&self, mark: Mark<'_>) {
        match mark {
            Mark::Range(kind, name, index, span) => {
                let noting = (kind, name.to_owned(), index, span.start, span.end);
                self.ranges.borrow_mut().push(noting);
            }
            Mark::Stream(_, _, name) => self.streams.borrow_mut().push(name.to_owned()),
        }
    }
}

fn at(buffer: usize) -> MemRef {
    MemRef { buffer, offset: 0 }
}

fn copy(direction: Direction, buffer: usize, bytes: u64, chunk: u64, stream: usize) -> OpKind {
    OpKind::Copy(CopySpec {
        direction,
        from: at(buffer),
        to: at(buffer),
        bytes,
        chunk,
        stream,
        is_async: true,
    })
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
            launching(0, vec![Arg::Device(at(0)), Arg::U32(256)]),
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
        pairs: Vec::new(),
        name: "test".to_owned(),
        about: String::new(),
        look_for: String::new(),
        sweep: None,
        variants,
        runs: 0,
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

/// A variant that uses two devices.
fn two_devices() -> VariantPlan {
    let mut v = variant(&[
        launch(0, 0),
        launch(3, 1),
        OpKind::Copy(CopySpec {
            direction: Direction::P2P,
            from: at(0),
            to: at(1),
            bytes: 1024,
            chunk: 0,
            stream: 1,
            is_async: true,
        }),
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
        .push(launching(0, vec![Arg::Device(at(1)), Arg::U32(256)]));
    v
}
