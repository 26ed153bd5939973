//! `launch_graph`: launches a captured graph.

use super::common::STREAM;
use super::*;

const KEY: Key = key!(required "launch_graph" Name, "Launches a captured graph.");
pub(super) const FORM: Form = Form::new(KEY, &[STREAM], lower);

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    unroll.not_captured("the launch of another graph", step.loc)?;
    let template = step.name("launch_graph")?;
    let name = unroll.name(template)?;
    let Some(graph) = unroll.objects.graphs.get(&name).copied() else {
        let known = unroll.objects.graphs.keys().map(String::as_str);
        let help = did_you_mean(&name, known).unwrap_or_else(|| {
            format!("a step {{ capture = \"{name}\", do = [ … ] }} must come before")
        });
        let name = quoted(&name);
        let message = format!("the graph {name} has not been captured before this");
        return unroll.error_help(template.loc, message, help);
    };
    let stream = unroll.stream(step.stream(), None)?;
    unroll.feed(stream);
    let nodes = unroll.plan.graphs[graph].ops.len() as u64;
    let launch = OpKind::GraphLaunch { graph, stream };
    unroll.emit_many(launch, step.loc, nodes.max(1))
}
