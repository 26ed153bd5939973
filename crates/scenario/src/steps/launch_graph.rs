//! `launch_graph`: launches a captured graph.

use super::super::diagnostics::{did_you_mean, quoted};
use super::super::plan::OpKind;
use super::super::syntax::keys::key;
use super::common::{NamedStep, STREAM};
use super::{Form, Loc, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "launch_graph" Name, "Launches a captured graph."),
    keys: &[STREAM],
    read: |reader, fields, head| NamedStep::read(reader, fields, head, lower),
};

fn lower(step: &NamedStep, unroll: &mut Unroll<'_, '_>, loc: Loc) -> Option<()> {
    unroll.not_captured("the launch of another graph", loc)?;
    let name = unroll.name(&step.name)?;
    let Some(graph) = unroll.objects.graphs.get(&name).copied() else {
        let known = unroll.objects.graphs.keys().map(String::as_str);
        let help = did_you_mean(&name, known).unwrap_or_else(|| {
            format!("a step {{ capture = \"{name}\", do = [ … ] }} must come before")
        });
        let message = format!(
            "the graph {} has not been captured before this",
            quoted(&name)
        );
        return unroll.error_help(step.name.loc, message, help);
    };
    let stream = unroll.stream(step.stream.as_ref(), None)?;
    unroll.feed(stream);
    let nodes = unroll.plan.graphs[graph].ops.len() as u64;
    unroll.emit_many(OpKind::GraphLaunch { graph, stream }, loc, nodes.max(1))
}
