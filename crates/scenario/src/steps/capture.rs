//! `capture`: captures steps as a graph.

use super::super::plan::GraphSpec;
use super::common::{DO, STREAM};
use super::*;

const KEY: Key =
    key!(required "capture" Name, "Captures the steps inside as a graph of this name.");
pub(super) const FORM: Form = Form::new(KEY, &[STREAM, DO], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let loc = step.loc;
    unroll.not_captured("another capture", loc)?;
    let name = unroll.name(step.name("capture")?)?;
    let stream = unroll.stream(step.stream(), None)?;
    if unroll.plan.streams[stream].is_default() {
        let message = "the default stream cannot be captured";
        return unroll.error_help(loc, message, "name a stream: stream = \"main\"");
    }
    unroll.begin_capture(stream);
    super::lower(step.steps("do"), unroll);
    let ops = unroll.end_capture(stream, loc)?;
    if ops.is_empty() {
        let message = format!("the graph {} is empty", quoted(&name));
        unroll.report(Diagnostic::warning(loc.range(), message));
    }
    let known = unroll.objects.graphs.get(&name).copied();
    let graph = match known {
        Some(id) if unroll.plan.graphs[id].ops == ops => id,
        _ => {
            let name = name.clone();
            unroll.plan.graphs.push(GraphSpec { name, ops });
            unroll.plan.graphs.len() - 1
        }
    };
    unroll.objects.graphs.insert(name, graph);
    unroll.emit(OpKind::Capture { graph, stream }, loc)
}
