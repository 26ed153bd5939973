//! `capture`: captures steps as a graph.

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::parse::Template;
use super::super::plan::{GraphSpec, OpKind};
use super::super::syntax::keys::key;
use super::common::{DO, STREAM, body, stream};
use super::{Form, Loc, Names, Step, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "capture" Name, "Captures the steps inside as a graph of this name."),
    keys: &[STREAM, DO],
    read: |reader, fields, head| {
        Some(Box::new(Capture {
            graph: reader.template(head)?,
            stream: stream(reader, fields),
            body: body(reader, fields, "do"),
        }))
    },
};

struct Capture {
    graph: Template,
    stream: Option<Template>,
    body: Vec<Step>,
}

impl StepKind for Capture {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.template(&self.graph);
        names.stream(self.stream.as_ref());
        super::resolve(&self.body, names);
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("another capture", loc)?;
        let name = unroll.name(&self.graph)?;
        let origin = unroll.stream(self.stream.as_ref(), None)?;
        if unroll.plan.streams[origin].is_default() {
            unroll.error_help(
                loc,
                "the default stream cannot be captured",
                "name a stream: stream = \"main\"",
            )?;
        }
        unroll.begin_capture(origin);
        super::lower(&self.body, unroll);
        let ops = unroll.end_capture(origin, loc)?;
        if ops.is_empty() {
            unroll.report(Diagnostic::warning(
                loc.range(),
                format!("the graph {} is empty", quoted(&name)),
            ));
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
        let stream = origin;
        unroll.emit(OpKind::Capture { graph, stream }, loc)
    }
}
