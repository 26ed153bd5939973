//! Nodes of CUDA graphs get the lines of the Python programs that captured them. Each program says itself what its stack is.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use activity::feed::{Feed, Message, Outcome};
use figures::nodes;
use live::attach;
use trace::{SourceInfo, Trace};

use crate::harness::{fakes, request};

/// A package that is passed through. It begins to use CUDA, and its `capture` makes a node and says on which stack.
const BEGIN: &str = r#"
import asyncio, ctypes, os, sys, threading, time
ctypes.CDLL("libcuda.so.1").cuInit(0)
cupti = ctypes.CDLL(os.environ["CUPTOP_CUPTI"])
node = ctypes.PYFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32)(("fake_node", cupti))
replay = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(("fake_replay", cupti))
call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)(("fake_call", cupti))
fake_launch = ctypes.PYFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(("fake_launch", cupti))
bare_launch = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)(("fake_launch", cupti))
GRAPH, RUNS, count = 1 << 32, 7 << 32, 0
lock = threading.Lock()

def stack(frame):
    found = []
    while frame and len(found) < 128:
        code = frame.f_code
        found.append(f"{code.co_filename}:{frame.f_lineno}:{getattr(code, 'co_qualname', code.co_name)}")
        frame = frame.f_back
    return found

def capture(kind=0):
    global count
    with lock:
        count += 1
        number = count
        node(13, GRAPH + number, 0, kind); found = stack(sys._getframe())
        print("\t".join([str(number), *found]), flush=True)

def launch():
    global count
    with lock:
        count += 1
        number = count
        fake_launch(number, 100); found = stack(sys._getframe())
        print("\t".join([str(number), *found]), flush=True)

def run(runs=RUNS):
    node(17, 0, 0, 0)
    for number in range(1, count + 1):
        node(13, runs + number, 0, 0)
        node(20, runs + number, GRAPH + number, 0)
        replay(number, runs + number)
    node(18, 0, 0, 0)
"#;

/// The interpreters that are there, by their names.
fn interpreters() -> Vec<String> {
    let names = (10..=15).map(|minor| format!("python3.{minor}"));
    let works = |name: &String| {
        let said = Command::new(name).arg("--version").output();
        said.is_ok_and(|it| it.status.success())
    };
    let found: Vec<String> = names.chain(["python3".to_owned()]).filter(works).collect();
    if found.is_empty() {
        eprintln!("left out: there is no python3");
    }
    found
}

struct Ran {
    trace: Trace,
    notices: Vec<String>,
    /// The stack of each node that the program made, by number.
    said: BTreeMap<u64, Vec<String>>,
    errors: Vec<String>,
    outcome: Outcome,
}

fn run(python: &str, program: &str, variables: &[&str]) -> Ran {
    run_keeping(python, program, variables, None).0
}

/// As [`run`], and what its recording tells afterwards, of which only the last may be kept.
fn run_keeping(
    python: &str,
    program: &str,
    variables: &[&str],
    keep: Option<Duration>,
) -> (Ran, Ran) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trän.py");
    std::fs::write(&file, program).expect("written");
    let package = directory.path().join("site-packages/torch");
    std::fs::create_dir_all(&package).expect("made");
    std::fs::write(package.join("__init__.py"), BEGIN).expect("written");
    let made = fakes();
    let mut command: Vec<OsString> = vec!["env".into()];
    command.push(format!("LD_LIBRARY_PATH={}", made.display()).into());
    command.push(format!("CUPTOP_CUPTI={}", made.join("libcupti.so.13").display()).into());
    command.push(
        format!(
            "PYTHONPATH={}",
            directory.path().join("site-packages").display()
        )
        .into(),
    );
    command.push("PYTHONIOENCODING=utf-8".into());
    command.extend(variables.iter().map(Into::into));
    command.extend([python.into(), file.into()]);
    let mut request = request(command, directory.path());
    request.python = None;
    request.collect.keep = keep;
    let (feed, _) = attach::run(request).expect("started");
    let ran = gather(&feed);
    let opened = recording::open(&[directory.path().join("run")]).expect("a recording");
    (ran, gather(&opened))
}

fn gather(feed: &Feed) -> Ran {
    let mut ran = Ran {
        trace: Trace::new(SourceInfo::default()),
        notices: Vec::new(),
        said: BTreeMap::new(),
        errors: Vec::new(),
        outcome: Outcome::Stopped,
    };
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => ran.trace.apply(batch),
            Message::Notice { text, .. } => ran.notices.push(text),
            Message::Output {
                is_error: false,
                line,
            } => {
                let mut parts = line.split('\t').map(str::to_owned);
                if let Some(Ok(number)) = parts.next().map(|it| it.parse()) {
                    ran.said.insert(number, parts.collect());
                }
            }
            Message::Output { line, .. } => ran.errors.push(line),
            Message::Finished(outcome) => ran.outcome = outcome,
            Message::Progress(_) | Message::Status(_) => {}
        }
    }
    ran
}

impl Ran {
    /// The stack of a node or a launch, as the recording has it.
    fn stack(&self, number: u64) -> Vec<String> {
        let launch = self.trace.launch_stack(0, number as u32);
        let stack = self.trace.node_stack(0, (7 << 32) + number).or(launch);
        let frames = self.trace.stacks().frames(stack.unwrap_or(0));
        frames
            .map(|it| format!("{}:{}:{}", it.file, it.line, it.function))
            .collect()
    }

    #[track_caller]
    fn is_as_said(&self, python: &str, nodes: usize) {
        assert!(
            matches!(self.outcome, Outcome::Complete),
            "{python}: {:?} {:?}",
            self.outcome,
            self.errors
        );
        assert_eq!(
            self.said.len(),
            nodes,
            "{python}: {:?} {:?}",
            self.errors,
            self.notices
        );
        for (number, said) in &self.said {
            assert_eq!(
                &self.stack(*number),
                said,
                "{python}: node {number} {:?}",
                self.notices
            );
        }
    }

    fn names(&self, graph: u32) -> Vec<Option<String>> {
        let names = nodes::of_process(&self.trace, 0).into_iter();
        let names = names.filter(|it| it.0 >> 32 == u64::from(graph));
        names.map(|it| it.1.text()).collect()
    }
}

/// Everything that makes frames of another kind or lines of another form.
const STACKS: &str = r#"from torch import *
class Model:
    def forward(self, depth):
        if depth:
            return self.forward(
                depth - 1)
        capture()

    @staticmethod
    def made():
        yield capture()
        yield [capture() for _ in range(2)]

async def served():
    await asyncio.sleep(0)
    capture()

Model().forward(3)
Model().forward(200)
list(Model.made())
(lambda: capture())()
asyncio.run(served())
thread = threading.Thread(target=Model().forward, args=(1,))
thread.start()
thread.join()
text = "\n" * 3000 + "def far(back):\n    x = (\n" + "\n" * 400 + "        back(),\n" + "\n" * 90 + "        back)\n    back(); return x\n"
names = {}
exec(compile(text, "gemacht \u4e2d\U0001f600.py", "exec"), names)
names["far"](capture)
sys.settrace(lambda *_: None)
capture()
sys.settrace(None)
run()
"#;

#[test]
fn the_frames_that_are_read_are_those_of_the_interpreter() {
    for python in &interpreters() {
        run(python, STACKS, &["PYTHONMALLOC=debug"]).is_as_said(python, 11);
    }
}

/// The engine of autograd works on threads of its own, which have no frames, while the thread that captures or launches waits.
#[test]
fn what_autograd_does_has_the_frames_of_the_thread_that_waits_for_it() {
    let program = r#"from torch import *
elsewhere = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p)(("fake_elsewhere", cupti))

def waits(number, it, is_launch):
    elsewhere(it, is_launch, b"pt_autograd_0"); found = stack(sys._getframe())
    print("\t".join([str(number), *found]), flush=True)

text = """
def _engine_run_backward(number, it, is_launch, name=b"pt_autograd_0"):
    elsewhere(it, is_launch, name); found = stack(sys._getframe())
    print("\\t".join([str(number), *found]), flush=True)
"""
engine = {"elsewhere": elsewhere, "stack": stack, "sys": sys}
exec(compile(text, "/site-packages/torch/autograd/graph.py", "exec"), engine)
backward = engine["_engine_run_backward"]
BEGINS
backward(1, GRAPH + 1, 0)
waits(2, GRAPH + 2, 0)
run.__globals__["count"] = 2
run()
backward(11, 11, 1)
waits(12, 12, 1)
backward(13, 13, 1, b"loader")
"#;
    let begins = "node(9, 0, 0, 0)\nfake_launch(10, 100)";
    for python in &interpreters() {
        let on = ["CUPTOP_LINES=on"];
        let ran = run(python, &program.replace("BEGINS", begins), &on);
        assert_eq!(ran.said.len(), 5, "{python}: {:?}", ran.errors);
        for number in [1, 11] {
            let said = &ran.said[&number];
            assert_eq!(&ran.stack(number), said, "{python}: {:?}", ran.notices);
        }
        // Nobody says that it waits for these, or it waits for others.
        for number in [2, 12, 13] {
            assert_eq!(ran.stack(number), Vec::<String>::new(), "{number}");
        }
        // Nobody knows whose these are.
        let ran = run(python, &program.replace("BEGINS", ""), &on);
        for number in [1, 11] {
            assert_eq!(ran.stack(number), Vec::<String>::new(), "{number}");
        }
    }
}

#[test]
fn each_launch_has_the_frames_of_its_own_thread() {
    let program = STACKS
        .replace("capture", "launch")
        .replace("\nrun()\n", "\n");
    // Three times from the same places, and once more where the interpreter uses addresses again.
    let more = r#"
for _ in range(3):
    launch()
for number in range(300):
    names = {"launch": launch}
    exec(compile("def made():\n" + "\n" * (number % 7) + "    launch()\nmade()", f"made{number % 5}.py", "exec"), names)
    del names
"#;
    let program = program + more;
    for python in &interpreters() {
        let on = ["PYTHONMALLOC=debug", "CUPTOP_LINES=on"];
        run(python, &program, &on).is_as_said(python, 314);
    }
    for python in interpreters().iter().take(1) {
        let off = run(python, &program, &[]);
        assert_eq!(off.said.len(), 314, "{:?}", off.errors);
        assert_eq!(off.stack(1), Vec::<String>::new());
    }
}

#[test]
fn nodes_are_told_by_line_and_round_and_what_changed_is_unknown() {
    let program = r#"from torch import *

def layer():
    capture()
    for _ in range(2):
        capture()

def model():
    capture()
    for _ in range(4):
        layer()

model()
run()
run(8 << 32)
for one, line in (3, 6), (1, 2):
    node(22, GRAPH + line, (8 << 32) + one, 0)
    node(23, (8 << 32) + one, GRAPH + one, 0)
node(23, (8 << 32) + 9, GRAPH + 9, 0)
"#;
    for python in interpreters().iter().take(1) {
        let ran = run(python, program, &[]);
        assert_eq!(ran.notices, Vec::<String>::new());
        let mut expected = vec![Some("trän.py:9 model".to_owned())];
        for round in 1..=4 {
            let round = format!("round {round} of 4");
            expected.push(Some(format!("trän.py:4 layer · {round}")));
            let loops =
                (1..=2).map(|it| Some(format!("trän.py:6 layer · kernel {it} of 2 · {round}")));
            expected.extend(loops);
        }
        assert_eq!(ran.names(7), expected);
        // An update to the same line changes no name; one to another line, or to what nobody knows, takes it, and then rounds cannot
        // be counted.
        let lines =
            |it: Option<String>| it.map(|it| it.split(' ').take(2).collect::<Vec<_>>().join(" "));
        let mut expected: Vec<_> = expected.into_iter().map(lines).collect();
        (expected[0], expected[8]) = (None, None);
        let changed: Vec<_> = ran.names(8).into_iter().map(lines).collect();
        assert_eq!(changed, expected);
        assert!(
            ran.names(8)
                .iter()
                .flatten()
                .all(|it| !it.contains("round")),
            "{:?}",
            ran.names(8)
        );
    }
}

#[test]
fn a_program_that_forbids_names_gets_none_and_one_that_ends_among_threads_ends_well() {
    let program = r#"from torch import *
def works(number):
    while True:
        node(13, GRAPH + number, 0, 0)
        node(20, RUNS + number, GRAPH + number, 0)
        bare_launch(1000 + number, 1)
        time.sleep(0.0001)

for number in range(8):
    threading.Thread(target=works, args=(number,), daemon=True).start()
capture()
for _ in range(20):
    child = os.fork()
    if child == 0:
        node(13, GRAPH, 0, 0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
run()
"#;
    for python in interpreters().iter().rev().take(1) {
        let ran = run(python, program, &["CUPTOP_OFF=stalls,graphs"]);
        assert!(matches!(ran.outcome, Outcome::Complete), "{:?}", ran.errors);
        assert_eq!(ran.stack(1), Vec::<String>::new());
        for _ in 0..repeats().div_ceil(20) {
            let ran = run(python, program, &["CUPTOP_LINES=on"]);
            let is_whole = matches!(ran.outcome, Outcome::Complete);
            assert!(is_whole, "{python}: {:?} {:?}", ran.outcome, ran.errors);
        }
    }
}

/// How often each is tried that could go wrong once in many times: `CUPTOP_TEST_REPEATS`, else 20.
fn repeats() -> usize {
    let said = std::env::var("CUPTOP_TEST_REPEATS").ok();
    said.and_then(|it| it.parse().ok()).unwrap_or(20)
}

/// Greenlets have frames of their own, and take turns on one thread; a child is another process, or another program.
const OFTEN: &str = r#"from torch import *
try:
    import gevent
except ImportError:
    gevent = None
    print("left out: there is no gevent", file=sys.stderr)

async def served():
    await asyncio.sleep(0)
    capture()
    launch()

def green(depth):
    if depth:
        return green(depth - 1)
    gevent.sleep(0)
    capture()
    gevent.sleep(0)
    launch()

def child(does):
    pid = os.fork()
    if pid == 0:
        does()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

for number in range(REPEATS):
    child(lambda: node(13, GRAPH, 0, 0))
    child(lambda: os.execv("/bin/true", ["true"]))
    asyncio.run(served())
    sys.settrace(lambda *_: None)
    capture()
    launch()
    sys.settrace(None)
    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    if gevent:
        gevent.joinall([gevent.spawn(green, number % 4 + it) for it in range(2)])
run()
"#;

#[test]
fn what_a_program_does_often_leaves_each_stack_right() {
    for python in interpreters().iter().rev().take(1) {
        let each = repeats();
        let program = OFTEN.replace("REPEATS", &each.to_string());
        let ran = run(python, &program, &["PYTHONMALLOC=debug", "CUPTOP_LINES=on"]);
        let is_without = ran.errors.iter().any(|it| it.contains("no gevent"));
        ran.is_as_said(python, each * if is_without { 5 } else { 9 });
    }
}

#[test]
fn names_stay_where_only_the_last_of_a_recording_is_kept() {
    let program = r#"from torch import *
capture()
run()
for _ in range(45):
    time.sleep(0.1)
    replay(1, RUNS + 1)
"#;
    for python in interpreters().iter().take(1) {
        let keep = Some(Duration::from_secs(1));
        let (_, opened) = run_keeping(python, program, &[], keep);
        let earlier = opened
            .notices
            .iter()
            .any(|it| it.contains("kept only the last"));
        assert!(earlier, "{:?}", opened.notices);
        assert_eq!(opened.names(7), [Some("trän.py:2 <module>".to_owned())]);
    }
}

#[test]
fn names_go_at_an_update_that_cupti_does_not_tell_of() {
    let program = r#"from torch import *
capture()
run()
if os.environ.get("UPDATES"):
    call(335, 99)
time.sleep(0.2)
"#;
    for python in interpreters().iter().take(1) {
        let named = |variables: &[&str]| run(python, program, variables).names(7);
        let name = [Some("trän.py:2 <module>".to_owned())];
        assert_eq!(named(&["FAKE_VERSION=26"]), name);
        assert_eq!(named(&["FAKE_VERSION=26", "UPDATES=1"]), [None]);
        assert_eq!(named(&["UPDATES=1"]), name);
    }
}
