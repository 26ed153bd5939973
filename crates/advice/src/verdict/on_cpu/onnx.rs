//! ONNX Runtime's own profiles: which nodes CUDA did not take. A node's time is that of the CPU, also of one on CUDA.

use activity::Ns;
use activity::text::counted;
use activity::units::{duration, share};

use super::{Named, Work, quoted};
use trace::Trace;

/// How its reader calls a node that CUDA, or another provider of a GPU, took.
const ON_GPU: [&str; 3] = [" on CUDA", " on Tensorrt", " on NvTensorRTRTX"];
const ON_CPU: &str = " on CPU";

/// What is said of such a profile without an operation of a GPU.
pub(in crate::verdict) fn instead(trace: &Trace) -> Option<&'static str> {
    let mut processes = trace.processes().iter();
    if !processes.any(|it| it.info.command == "ONNX Runtime") {
        return None;
    }
    let names = trace.names();
    let mut nodes = (0..names.len() as u32).map(|id| names.full(id));
    Some(match nodes.any(is_on_gpu) {
        true => {
            "ONNX Runtime's profile tells what its CPU threads did: for the GPU, record with nsys or `cuptop trace`"
        }
        false => "the GPU had no work: ONNX Runtime ran all nodes on the CPU",
    })
}

/// Whether a GPU took a node.
fn is_on_gpu(name: &str) -> bool {
    ON_GPU.iter().any(|it| name.ends_with(it))
}

/// What fell back to the CPU beside nodes on a GPU, and what is copied for it, where that takes a part of the time.
pub(super) fn fallback(operators: &Work) -> Option<String> {
    let nodes = |of: fn(&str) -> bool| operators.by.iter().filter(move |it| of(it.0));
    let sum = |nodes: &mut dyn Iterator<Item = (&String, &Named)>| {
        nodes.fold((0, 0), |sum: (u64, Ns), it| {
            (sum.0 + it.1.count, sum.1 + it.1.own)
        })
    };
    let is_copy = |name: &str| name.starts_with("Memcpy");
    let (copies, copying) = sum(&mut nodes(is_copy));
    let (fallen, time) = sum(&mut nodes(|it| it.ends_with(ON_CPU)));
    let has_gpu = nodes(is_on_gpu).next().is_some();
    let is_much = cases::LARGE_SHARE.is_reached_by(share(time + copying, operators.time()));
    let (most, _) = nodes(|it| it.ends_with(ON_CPU)).max_by_key(|it| (it.1.own, it.0))?;
    (has_gpu && is_much).then(|| {
        let (fallen, copies) = (counted(fallen, "node", "nodes"), counted(copies, "copy", "copies"));
        let (most, time, copying) = (quoted(most.trim_end_matches(ON_CPU)), duration(time), duration(copying));
        format!("CUDA did not take {fallen} ({time}, most of it {most}), with {copies} between ({copying}): use operators and types that it has")
    })
}
