//! Who asked for each node of a CUDA graph, and for each launch: the Python frames of the thread that captured it, or launches.
//!
//! CUPTI tells of each node that is made, and of each that is cloned into an executable graph, on the program's own thread. Only
//! what is new is written down there: the decode thread joins clones with their originals, and writes names into the recording.
//! Records of a replay have the clones' ids. Of launches it tells likewise, and their records have its correlation id.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use activity::Frame;
use cupti_sys::Api;
use cupti_sys::api::SUCCESS;
use cupti_sys::kinds::resource;

mod log;

pub(crate) use log::NodeLog;

use crate::compiled::Comments;
use crate::fork;
use crate::python::{Level, Python, Refused};

/// What waits for the decode thread at most, some 5 MiB.
const MOST_WAITING: usize = 1 << 17;
/// Different frames, some 300 bytes each, and levels of all different chains, whose stacks take some 24 where they are written.
const MOST_FRAMES: usize = 1 << 15;
const MOST_LEVELS: usize = 1 << 19;
/// Graphs whose capturing thread is remembered.
const MOST_CAPTURES: usize = 1024;
/// Naming takes at most this part of the time, beside what it takes at the start. Lines of launches, for which somebody has to ask,
/// take at most three times that of a thread's. What CUPTI's callback takes is not seen here, and as much again: on an H200, 200 nodes
/// with their clones took 0.35 ms longer.
const SHARE: u32 = 100;
const AT_THE_START: Duration = Duration::from_millis(300);
const WITH_CUPTI: u32 = 2;
/// One of so many launches is timed, and no longer than it may last where the thread was not set aside meanwhile.
const TIMED: u32 = 64;
const LONGEST: Duration = Duration::from_micros(20);

/// `CUpti_ResourceData`, the same from 11.8 to 13.5.
#[repr(C)]
pub(crate) struct Resource<T> {
    context: *const c_void,
    handle: *const c_void,
    pub(crate) descriptor: *const T,
}

/// The beginning of `CUpti_GraphData`, likewise.
#[repr(C)]
struct GraphData {
    graph: *const c_void,
    original_graph: *const c_void,
    node: *mut c_void,
    original_node: *mut c_void,
}

/// What became of a node, of [`resource`]; the node, and the other one that it was told with; 0 for none.
type Event = (u32, [u64; 2]);

/// What is found out on the program's threads, in order.
#[derive(Debug)]
enum Found {
    /// Frames, innermost first. Chains count from 1.
    Chain(Vec<Frame>),
    /// Of a new node also the chain that asked for it; 0 where unknown.
    Node(Event, u32),
    /// What the user is to know.
    Lack(String),
}

static NODES: Mutex<Option<Nodes>> = Mutex::new(None);
/// Whether the program has changed executable graphs.
static CHANGED: AtomicBool = AtomicBool::new(false);
/// The number of the turn in which launches get lines; 0 where they get none.
static LAUNCHES: AtomicU32 = AtomicU32::new(0);
static TURNS: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);
static IS_PAUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread instantiates a graph: what is made then are clones.
    static CLONES: Cell<bool> = const { Cell::new(false) };
    /// In which turn this thread's launches get lines, since when, and what that took.
    static SPENT: Cell<Option<(u32, Instant, Duration)>> = const { Cell::new(None) };
    /// Whether this is one of autograd's threads, once somebody asked.
    static IS_AUTOGRADS: Cell<Option<bool>> = const { Cell::new(None) };
    /// The turn in which it took too much.
    static SLOW_IN: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug)]
struct Nodes {
    id: unsafe extern "C" fn(*mut c_void, *mut u64) -> u32,
    /// Nothing before the first node.
    python: Option<Result<&'static Python, Refused>>,
    /// The thread's state of the interpreter that began each capture, by its graph's address.
    captures: HashMap<usize, u64>,
    /// The same of the thread that launched last, of those with frames.
    launching: Option<u64>,
    frames: HashMap<Level, Frame>,
    comments: Comments,
    /// By what a walk came to.
    chains: HashMap<u64, u32>,
    /// By what [`Python::chain`] says.
    known: HashMap<u64, u32>,
    levels: usize,
    found: Vec<Found>,
    /// Launches by correlation id, each with its chain.
    launches: Vec<(u64, u32)>,
    /// Whether the user knows of a thread that it took too much.
    is_slow: bool,
    begun: Instant,
    spent: Duration,
    is_over: bool,
}

/// Begins to name nodes. Returns whether CUPTI can tell of them.
pub(crate) fn begin(api: &Api) -> bool {
    let (Some(id), Ok(mut nodes)) = (api.graph_node_id, NODES.lock()) else {
        return false;
    };
    LAUNCHES.store(0, Ordering::Relaxed);
    IS_OVER.store(false, Ordering::Relaxed);
    *nodes = Some(Nodes {
        id,
        python: None,
        captures: HashMap::new(),
        launching: None,
        frames: HashMap::new(),
        comments: Comments::default(),
        chains: HashMap::new(),
        known: HashMap::new(),
        levels: 0,
        found: Vec::new(),
        launches: Vec::new(),
        is_slow: false,
        begun: Instant::now(),
        spent: Duration::ZERO,
        is_over: false,
    });
    true
}

/// Names nothing more, and gives its memory back. Calls that CUPTI had begun may still come: it says only that it begins none
/// after its subscriber has gone.
pub(crate) fn end() {
    LAUNCHES.store(0, Ordering::Relaxed);
    if let Ok(mut nodes) = NODES.lock() {
        *nodes = None;
    }
}

/// The turn in which launches get lines now; 0 where they get none.
pub(crate) fn turn() -> u32 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// A call was recorded. CUPTI before 13.0 does not tell which nodes such a one changes.
pub(crate) fn note_call(name: &str) {
    let is_change = name.contains("Update") || name.contains("SetParams");
    if name.contains("GraphExec") && is_change {
        CHANGED.store(true, Ordering::Relaxed);
    }
}

/// CUPTI's callback for what becomes of graphs.
pub(crate) fn called(id: u32, details: *const c_void) {
    // In a forked child nobody would unlock what another thread of the parent had locked.
    if details.is_null() || fork::is_child() {
        return;
    }
    let _ = catch_unwind(|| {
        // SAFETY: for this domain CUPTI passes this structure, and for these ids such a descriptor; both live until this returns.
        let data = unsafe { (*details.cast::<Resource<GraphData>>()).descriptor.as_ref() };
        if let Ok(mut nodes) = NODES.lock()
            && let (Some(nodes), Some(data)) = (&mut *nodes, data)
            && !nodes.is_over
        {
            let begun = Instant::now();
            nodes.take(id, data);
            nodes.spent += WITH_CUPTI * begun.elapsed();
            nodes.keep_within_limits();
        }
    });
}

/// Whether naming has ended since this was asked last: CUPTI need not tell of nodes any more.
pub(crate) fn has_just_ended() -> bool {
    IS_OVER.swap(false, Ordering::Relaxed)
}

/// Begins to give lines to launches, too. Returns whether there are any to give.
///
/// # Errors
/// When the interpreter's frames cannot be read.
pub(crate) fn begin_launches() -> Result<bool, Refused> {
    match Python::of_process() {
        Ok(_) => {
            let turn = TURNS.fetch_add(1, Ordering::Relaxed) + 1;
            LAUNCHES.store(turn, Ordering::Relaxed);
            Ok(true)
        }
        Err(why) if why.is_empty() => Ok(false),
        Err(why) => Err(why),
    }
}

/// Whether nothing is recorded for a while.
pub(crate) fn pause(is_paused: bool) {
    IS_PAUSED.store(is_paused, Ordering::Relaxed);
}

/// A call begins that gives the GPU work.
pub(crate) fn launched(correlation: u32) {
    let turn = turn();
    let is_off = turn == 0 || turn == SLOW_IN.get() || IS_PAUSED.load(Ordering::Relaxed);
    if is_off || fork::is_child() {
        return;
    }
    let _ = catch_unwind(|| {
        let timed = correlation.is_multiple_of(TIMED).then(Instant::now);
        let Ok(python) = Python::of_process() else {
            return;
        };
        let known_as = python.chain();
        // Nobody waits for the lock while this thread walks.
        let walked = known_as.is_none().then(|| python.walk());
        if let Ok(mut nodes) = NODES.lock()
            && let Some(nodes) = nodes.as_mut().filter(|it| !it.is_over)
        {
            nodes.take_launch(correlation, python, known_as, walked);
            if let Some(timed) = timed {
                nodes.count(turn, timed.elapsed().min(LONGEST) * TIMED);
                nodes.keep_within_limits();
            }
        }
    });
}

impl Nodes {
    fn take_launch(
        &mut self,
        correlation: u32,
        python: &'static Python,
        known_as: Option<u64>,
        walked: Option<Result<Vec<Level>, Refused>>,
    ) {
        if matches!(&walked, Some(Ok(levels)) if levels.is_empty()) {
            let chain = self.chain_of_waiting(self.launching);
            self.launches
                .extend((chain != 0).then_some((correlation.into(), chain)));
            return;
        }
        let chain = self.known_chain(known_as).unwrap_or_else(|| {
            let (begun, before) = (Instant::now(), self.chains.len());
            self.python.get_or_insert(Ok(python));
            let walked = walked.unwrap_or_else(|| python.walk());
            let chain = self.new_chain(known_as, walked);
            if self.chains.len() > before {
                self.spent += begun.elapsed();
                self.keep_within_limits();
            }
            chain
        });
        if chain != 0 {
            self.launching = python.thread();
            self.launches.push((correlation.into(), chain));
        }
    }

    /// Counts what launches took of this thread's time.
    fn count(&mut self, turn: u32, took: Duration) {
        let spent = SPENT.get().filter(|it| it.0 == turn);
        let (_, begun, spent) = spent.unwrap_or((turn, Instant::now(), Duration::ZERO));
        SPENT.set(Some((turn, begun, spent + took)));
        if spent + took > AT_THE_START + 3 * begun.elapsed() / SHARE {
            SLOW_IN.set(turn);
            let text = "launches of a thread get no lines from here on: that takes more than 3 % of its time";
            let is_new = !std::mem::replace(&mut self.is_slow, true);
            self.found
                .extend(is_new.then(|| Found::Lack(text.to_owned())));
        }
    }

    fn take(&mut self, what: u32, data: &GraphData) {
        let chain = match what {
            resource::EXEC_STARTS | resource::EXEC_CREATED => {
                return CLONES.set(what == resource::EXEC_STARTS);
            }
            resource::GRAPH_CREATED => return self.note_capture(data.graph as usize),
            resource::NODE_CREATED if CLONES.get() => return,
            resource::NODE_CREATED => match self.chain() {
                0 => {
                    let thread = self.captures.get(&(data.graph as usize)).copied();
                    self.chain_of_waiting(thread)
                }
                chain => chain,
            },
            _ => 0,
        };
        let nodes = [data.node, data.original_node].map(|node| self.id_of(node));
        self.found.push(Found::Node((what, nodes), chain));
    }

    /// The id that records have; 0 for none.
    fn id_of(&self, node: *mut c_void) -> u64 {
        let mut id = 0;
        // SAFETY: a node that CUPTI passed just now; writes one number, and is allowed in its callbacks.
        let is_known = !node.is_null() && unsafe { (self.id)(node, &raw mut id) } == SUCCESS;
        if is_known { id } else { 0 }
    }

    /// The number of the present chain of frames; 0 for none.
    fn chain(&mut self) -> u32 {
        match self.python.get_or_insert_with(Python::of_process) {
            Ok(python) => {
                let (python, known_as) = (*python, python.chain());
                self.known_chain(known_as)
                    .unwrap_or_else(|| self.new_chain(known_as, python.walk()))
            }
            Err(why) => {
                let why = why.clone();
                self.number(Err(why))
            }
        }
    }

    /// The number of a chain that was walked before.
    fn known_chain(&self, known_as: Option<u64>) -> Option<u32> {
        known_as.and_then(|it| self.known.get(&it)).copied()
    }

    fn new_chain(&mut self, known_as: Option<u64>, walked: Result<Vec<Level>, Refused>) -> u32 {
        let chain = self.number(walked);
        if let Some(known_as) = known_as {
            self.levels += 1;
            self.known.insert(known_as, chain);
        }
        chain
    }

    /// This thread makes a graph: what it captures may be asked for by other threads, which it waits for.
    fn note_capture(&mut self, graph: usize) {
        if let Ok(python) = self.python.get_or_insert_with(Python::of_process)
            && let Some(thread) = python.thread()
        {
            if self.captures.len() >= MOST_CAPTURES {
                self.captures.clear();
            }
            self.captures.insert(graph, thread);
        }
    }

    /// On a thread of autograd's, which has no frames: the number of the chain of the thread that waits for it.
    fn chain_of_waiting(&mut self, thread: Option<u64>) -> u32 {
        let (Some(Ok(python)), Some(thread), true) = (&self.python, thread, is_autograds()) else {
            return 0;
        };
        let levels = python.walk_of(thread).unwrap_or_default();
        let waits = levels.first().is_some_and(|level| {
            let name = || python.frame(level).unwrap_or_default();
            let innermost = self.frames.entry(*level).or_insert_with(name);
            innermost.function.ends_with("backward") && innermost.file.contains("torch/autograd/")
        });
        if waits { self.number(Ok(levels)) } else { 0 }
    }

    fn number(&mut self, walked: Result<Vec<Level>, Refused>) -> u32 {
        let (Some(Ok(python)), Ok(levels)) = (&self.python, &walked) else {
            // A program without Python has nodes without names.
            if let Some(why) = walked.err().filter(|why| !why.is_empty()) {
                self.end(why);
            }
            return 0;
        };
        if levels.is_empty() {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        levels.hash(&mut hasher);
        let new = self.chains.len() as u32 + 1;
        let number = *self.chains.entry(hasher.finish()).or_insert(new);
        if number == new {
            self.levels += levels.len();
            let named = levels.iter().map(|level| {
                let name = || {
                    let mut frame = python.frame(level).unwrap_or_default();
                    // Of code that was made, what it stands for is told in place of its name.
                    if let Some(told) = self.comments.above(&frame.file, frame.line) {
                        frame.function = told;
                    }
                    frame
                };
                self.frames.entry(*level).or_insert_with(name).clone()
            });
            self.found.push(Found::Chain(named.collect()));
        }
        number
    }

    fn keep_within_limits(&mut self) {
        let most = AT_THE_START + self.begun.elapsed() / SHARE;
        let are_many = self.frames.len() >= MOST_FRAMES || self.levels >= MOST_LEVELS;
        let why = match self.found.len().max(self.launches.len()) {
            MOST_WAITING.. => "they come faster than they are written",
            _ if are_many => "they come from too many places",
            _ if self.spent > most => "that takes more than 1 % of the time",
            _ => return,
        };
        self.end(why.to_owned());
    }

    fn end(&mut self, why: Refused) {
        self.is_over = true;
        IS_OVER.store(true, Ordering::Relaxed);
        let what = match LAUNCHES.load(Ordering::Relaxed) {
            0 => "nodes of CUDA graphs",
            _ => "launches and nodes of CUDA graphs",
        };
        let text = format!("{what} get no names from here on: {why}");
        self.found.push(Found::Lack(text));
    }
}

/// Whether PyTorch calls this thread one of autograd's, as it does from 2.4 on.
fn is_autograds() -> bool {
    IS_AUTOGRADS.get().unwrap_or_else(|| {
        let mut name = [0_u8; 16];
        // SAFETY: writes at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        let is_one = name.starts_with(b"pt_autograd");
        IS_AUTOGRADS.set(Some(is_one));
        is_one
    })
}
