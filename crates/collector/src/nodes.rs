//! Who asked for each node of a CUDA graph: the Python frames of the thread that captured it.
//!
//! CUPTI tells of each node that is made, and of each that is cloned into an executable graph, on the program's own thread. Only
//! what is new is written down there: the decode thread joins clones with their originals, and writes names into the recording.
//! Records of a replay have the clones' ids.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use activity::{Frame, SampleDef, StackId};
use cupti_sys::Api;
use cupti_sys::api::SUCCESS;
use cupti_sys::kinds::resource;

use crate::compiled::Comments;
use crate::fork;
use crate::python::{Level, Python, Refused};
use recording::file::{Entry, StackLog, Writer};

/// What waits for the decode thread at most, some 5 MiB.
const MOST_WAITING: usize = 1 << 17;
/// Different frames, some 300 bytes each, and levels of all different chains, whose stacks take some 24 where they are written.
const MOST_FRAMES: usize = 1 << 15;
const MOST_LEVELS: usize = 1 << 19;
/// Nodes that are remembered in each of two generations, some 26 bytes each: those of a program's newest graphs.
const GENERATION: usize = 1 << 18;
/// Names that one entry has room for.
const ENTRY: usize = 4096;
/// Naming takes at most this part of the time, beside what it takes at the start.
const SHARE: u32 = 100;
const AT_THE_START: Duration = Duration::from_secs(2);

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
    /// No more are named, and why.
    Over(Refused),
}

static NODES: Mutex<Option<Nodes>> = Mutex::new(None);
/// Whether the program has changed executable graphs.
static CHANGED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread instantiates a graph: what is made then are clones.
    static CLONES: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug)]
struct Nodes {
    id: unsafe extern "C" fn(*mut c_void, *mut u64) -> u32,
    /// Nothing before the first node.
    python: Option<Result<Python, Refused>>,
    frames: HashMap<Level, Frame>,
    comments: Comments,
    /// By what a walk came to.
    chains: HashMap<u64, u32>,
    levels: usize,
    found: Vec<Found>,
    begun: Instant,
    spent: Duration,
    is_over: bool,
}

/// Begins to name nodes. Returns whether CUPTI can tell of them.
pub(crate) fn begin(api: &Api) -> bool {
    let (Some(id), Ok(mut nodes)) = (api.graph_node_id, NODES.lock()) else {
        return false;
    };
    *nodes = Some(Nodes {
        id,
        python: None,
        frames: HashMap::new(),
        comments: Comments::default(),
        chains: HashMap::new(),
        levels: 0,
        found: Vec::new(),
        begun: Instant::now(),
        spent: Duration::ZERO,
        is_over: false,
    });
    true
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
            nodes.spent += begun.elapsed();
            nodes.keep_within_limits();
        }
    });
}

impl Nodes {
    fn take(&mut self, what: u32, data: &GraphData) {
        let chain = match what {
            resource::EXEC_STARTS | resource::EXEC_CREATED => {
                return CLONES.set(what == resource::EXEC_STARTS);
            }
            resource::NODE_CREATED if CLONES.get() => return,
            resource::NODE_CREATED => self.chain(),
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
        let python = self.python.get_or_insert_with(Python::find);
        let walked = match python {
            Ok(python) => python.walk().map(<[Level]>::to_vec),
            Err(why) => Err(why.clone()),
        };
        let (Ok(python), Ok(levels)) = (python, &walked) else {
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
        let why = match self.found.len() {
            MOST_WAITING.. => "they come faster than they are written",
            _ if are_many => "they come from too many places",
            _ if self.spent > most => "that takes more than 1 % of the time",
            _ => return,
        };
        self.end(why.to_owned());
    }

    fn end(&mut self, why: Refused) {
        self.is_over = true;
        self.found.push(Found::Over(why));
    }
}

/// Writes the names of nodes into a recording.
#[derive(Debug, Default)]
pub(crate) struct NodeLog {
    /// Whether CUPTI tells which nodes change.
    pub(crate) tells_changes: bool,
    /// Those of the chains.
    stacks: Vec<StackId>,
    /// Who asked for each node; 0 where unknown.
    known: HashMap<u64, StackId>,
    older: HashMap<u64, StackId>,
    log: StackLog,
    /// The executable node that was just updated.
    updated: u64,
}

impl NodeLog {
    /// Writes what has been found since the last time.
    pub(crate) fn write(&mut self, writer: &mut Writer) {
        let found = match NODES.lock() {
            Ok(mut nodes) => nodes.as_mut().map(|it| std::mem::take(&mut it.found)),
            Err(_) => None,
        };
        let mut named = Vec::new();
        for it in found.into_iter().flatten() {
            named.extend(self.take(it, writer));
        }
        if !self.tells_changes && CHANGED.load(Ordering::Relaxed) {
            let all = self.older.drain().chain(self.known.drain());
            named.extend(all.map(|(node, _)| (node, 0)));
        }
        for nodes in named.chunks(ENTRY) {
            writer.add(&Entry::SampleDef(SampleDef::Nodes(nodes.to_vec())));
        }
    }

    /// Takes it in. Returns a node of an executable graph that is to be named.
    fn take(&mut self, found: Found, writer: &mut Writer) -> Option<(u64, StackId)> {
        let ((what, [node, other]), chain) = match found {
            Found::Node(event, chain) => (event, chain),
            Found::Chain(frames) => {
                let deeper = |stack, frame| self.log.deeper(writer, stack, frame);
                self.stacks.push(frames.iter().rev().fold(0, deeper));
                return None;
            }
            Found::Over(why) => {
                let text = format!("nodes of CUDA graphs get no names from here on: {why}");
                writer.notice(true, &text);
                return None;
            }
        };
        match what {
            resource::NODE_CREATED => {
                let stack = self.stacks.get((chain as usize).wrapping_sub(1));
                self.remember(node, stack.copied().unwrap_or(0));
                None
            }
            resource::NODE_CLONED => {
                let stack = self.known(other);
                self.remember(node, stack);
                (stack != 0).then_some((node, stack))
            }
            // The other one is that of the executable graph, which does from now on what the first one says.
            resource::NODE_UPDATED => {
                self.updated = other;
                self.change(other, self.known(node))
            }
            // Each update sets parameters, too.
            _ if std::mem::take(&mut self.updated) == node => None,
            _ => self.change(node, 0),
        }
    }

    /// A node does what was asked for there from now on. Where that is somewhere else, nobody knows which of its records came before.
    fn change(&mut self, node: u64, to: StackId) -> Option<(u64, StackId)> {
        let known = self.known(node);
        (known != 0 && known != to).then(|| {
            self.remember(node, 0);
            (node, 0)
        })
    }

    fn known(&self, node: u64) -> StackId {
        let known = self.known.get(&node).or_else(|| self.older.get(&node));
        known.copied().unwrap_or(0)
    }

    fn remember(&mut self, node: u64, stack: StackId) {
        if self.known.len() >= GENERATION {
            self.older = std::mem::take(&mut self.known);
        }
        self.known.insert(node, stack);
    }
}
