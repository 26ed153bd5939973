//! `launch_graph`: launches a captured graph.

use super::super::diagnostics::{did_you_mean, quoted};
use super::super::expr::parse::Template;
use super::super::file::keys::key;
use super::super::plan::OpKind;
use super::common::{STREAM, stream};
use super::{Form, Loc, Names, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "launch_graph" Name, "Launches a captured graph."),
    keys: &[STREAM],
    read: |reader, fields, head| {
        Some(Box::new(LaunchGraph {
            graph: reader.template(head)?,
            stream: stream(reader, fields),
        }))
    },
};

struct LaunchGraph {
    graph: Template,
    stream: Option<Template>,
}

impl StepKind for LaunchGraph {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.graph);
        names.stream(self.stream.as_ref());
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("the launch of another graph", loc)?;
        let name = unroll.name(&self.graph)?;
        let Some(graph) = unroll.objects.graphs.get(&name).copied() else {
            let known = unroll.objects.graphs.keys().map(String::as_str);
            let help = did_you_mean(&name, known).unwrap_or_else(|| {
                format!("a step {{ capture = \"{name}\", do = [ … ] }} must come before")
            });
            let message = format!(
                "the graph {} has not been captured before this",
                quoted(&name)
            );
            unroll.error_help(self.graph.loc, message, help);
            return None;
        };
        let stream = unroll.stream(self.stream.as_ref(), None)?;
        unroll.feed(stream);
        let nodes = unroll.plan.graphs[graph].ops.len() as u64;
        unroll.emit_many(OpKind::GraphLaunch { graph, stream }, loc, nodes.max(1))
    }
}
