//! Graphs: what stream capture records, with the order that streams and events give it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Lowering;
use crate::program::{Graph, Item, Node, Operation, Upload};
use activity::What;
use scenario::plan::{EventId, GraphId, GraphSpec, Op, OpKind, StreamId, VariantPlan};

/// The graph while it is captured.
#[derive(Default)]
struct Capture {
    nodes: Vec<Node>,
    /// For each stream, the nodes that its next node comes after.
    front: HashMap<StreamId, Vec<u32>>,
    events: HashMap<EventId, Vec<u32>>,
}

impl Capture {
    fn add(&mut self, stream: StreamId, op: Option<Operation>) {
        let index = self.nodes.len() as u32;
        let after = self.front.insert(stream, vec![index]).unwrap_or_default();
        // Which portion it belongs to is decided when all are there.
        self.nodes.push(Node {
            op,
            after,
            portion_end: 0,
        });
    }

    fn record(&mut self, event: EventId, stream: StreamId) {
        let front = self.front.get(&stream).cloned().unwrap_or_default();
        self.events.insert(event, front);
    }

    fn wait(&mut self, event: EventId, stream: StreamId) {
        let Some(front) = self.events.get(&event) else {
            return;
        };
        let own = self.front.entry(stream).or_default();
        for node in front {
            if !own.contains(node) {
                own.push(*node);
            }
        }
    }
}

impl Lowering {
    /// Captures and instantiates a graph.
    pub(super) fn capture(&mut self, spec: &VariantPlan, graph: GraphId, _stream: StreamId) {
        let api = self.profile.api.clone();
        let captured = &spec.graphs[graph];
        self.tables.graphs += 1;
        let id = self.tables.graphs;
        self.call("cuStreamBeginCapture", api.graph_capture_node_ns);
        for op in &captured.ops {
            if let Some(call) = op.kind.driver_call() {
                self.call(call, api.graph_capture_node_ns);
            }
        }
        self.call("cuStreamEndCapture", api.graph_capture_node_ns);
        let built = self.build(spec, captured, id);
        let nodes = built.nodes.len() as i64;
        let instantiate = api.graph_instantiate_ns + nodes * api.graph_instantiate_node_ns;
        self.call("cuGraphInstantiate", instantiate);
        self.current.graphs[graph] = Some((Arc::new(built), false));
    }

    /// Launches a graph that was captured before; the plan says that it was.
    pub(super) fn launch_graph(&mut self, graph: GraphId, stream: StreamId) {
        let api = self.profile.api.clone();
        if let Some((built, was_launched)) = &mut self.current.graphs[graph] {
            let is_first = !std::mem::replace(was_launched, true);
            let upload = Upload {
                fixed_ns: api.graph_launch_ns,
                node_ns: api.graph_launch_node_ns + i64::from(is_first) * api.graph_upload_node_ns,
            };
            let cost = upload.fixed_ns + built.nodes.len() as i64 * upload.node_ns;
            let item = Item::Graph(built.clone(), upload);
            self.submit("cuGraphLaunch", cost, stream, item);
        }
    }

    fn build(&self, spec: &VariantPlan, captured: &GraphSpec, id: u32) -> Graph {
        let mut capture = Capture::default();
        for Op { kind, .. } in &captured.ops {
            match *kind {
                OpKind::Record { event, stream } => capture.record(event, stream),
                OpKind::Wait { event, stream } => capture.wait(event, stream),
                OpKind::Launch { launch, stream } => {
                    capture.add(stream, Some(self.kernel(launch, stream)));
                }
                OpKind::Memset { bytes, stream, .. } => {
                    let op = self.memset(bytes, self.stream_place(stream));
                    capture.add(stream, Some(op));
                }
                OpKind::Copy(copy) => {
                    let template = self.copy_template(spec, &copy);
                    for piece in kind.pieces() {
                        let (op, _) = self.copy_operation(template, piece.bytes, None);
                        capture.add(copy.stream, Some(op));
                    }
                }
                OpKind::Alloc {
                    stream: Some(stream),
                    ..
                }
                | OpKind::Free {
                    stream: Some(stream),
                    ..
                } => capture.add(stream, None),
                // A plan has nothing else in a graph.
                _ => {}
            }
        }
        let mut nodes = capture.nodes;
        for (node, number) in nodes.iter_mut().zip(1..) {
            match node.op.as_mut().map(|op| &mut op.what) {
                Some(What::Kernel(kernel)) => (kernel.graph, kernel.node) = (id, number),
                Some(What::Copy(copy)) => copy.graph = id,
                Some(What::Memset(memset)) => memset.graph = id,
                _ => {}
            }
        }
        portion(&mut nodes, self.profile.api.graph_portion);
        Graph { nodes }
    }
}

/// Cuts the nodes into the portions in which a launch hands them over: of `size` at most, and kernels
/// apart from the rest.
fn portion(nodes: &mut [Node], size: u32) {
    let is_kernel = |node: &Node| matches!(node.op.map(|op| op.what), Some(What::Kernel(_)));
    let mut end = 0;
    for part in nodes.chunk_by_mut(|a, b| is_kernel(a) == is_kernel(b)) {
        for portion in part.chunks_mut(size.max(1) as usize) {
            end += portion.len() as u32;
            for node in portion {
                node.portion_end = end;
            }
        }
    }
}
