//! Checks that need no evaluation: every name stands for something, and kernels get the arguments that their source
//! asks for. It also finds what is never used.

use std::collections::HashSet;

use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, quoted};
use super::expr::Expr;
use super::file::File;
use super::names::Names;
use super::steps;
use super::syntax::decl::{Named, ParamDecl, SweepValues};

/// Checks the names of a file.
pub(super) fn resolve(file: &File, diagnostics: &mut Diagnostics) {
    let mut names = Names::new(&file.declared, diagnostics);
    names.declarations();
    for variant in &file.variants {
        names.overrides(&variant.params);
        for count in [&variant.warmup, &variant.repeat] {
            names.optional(count.as_ref());
        }
        steps::resolve(&variant.steps, &mut names);
    }
    // With errors about, what looks unused may be what was misspelt.
    if !names.diagnostics.has_errors() {
        names.unused();
    }
}

impl<'f> Names<'f> {
    fn declarations(&mut self) {
        let mut above: HashSet<&str> = HashSet::new();
        for param in &self.declared.params {
            self.param_value(&param.value, &above);
            above.insert(&param.name.text);
        }
        if let Some(sweep) = &self.declared.sweep {
            self.param(&sweep.param);
            use SweepValues as V;
            match &sweep.values {
                V::List(values) => values.iter().for_each(|value| self.expr(value)),
                V::Grown(values, _) => values.iter().for_each(|value| self.expr(value)),
            }
        }
        for buffer in &self.declared.buffers {
            self.optional(buffer.count.as_ref());
            self.loops.push("index");
            self.expr(&buffer.bytes);
            self.optional(buffer.device.as_ref());
            self.loops.pop();
        }
        for stream in &self.declared.streams {
            self.optional(stream.device.as_ref());
            self.optional(stream.priority.as_ref());
        }
    }

    /// Reports a name that is no parameter's.
    fn param(&mut self, name: &Named) {
        if !self.params.contains(name.text.as_str()) {
            let help = did_you_mean(&name.text, self.params.iter().copied())
                .unwrap_or_else(|| "give it a value in [params] first".to_owned());
            let message = format!("there is no parameter {}", quoted(&name.text));
            self.error(name.loc, message, Some(help));
        }
    }

    /// A parameter's value may use the parameters above it.
    fn param_value(&mut self, value: &Expr, above: &HashSet<&str>) {
        let wrong = value.names().into_iter();
        for (name, loc) in wrong.filter(|(name, _)| !above.contains(name)) {
            let help = if self.params.contains(name) {
                Some("a parameter may use the ones above it".to_owned())
            } else {
                did_you_mean(name, above.iter().copied())
            };
            let message = format!("nothing above is named {}", quoted(name));
            self.error(loc, message, help);
        }
    }

    fn overrides(&mut self, params: &'f [ParamDecl]) {
        for param in params {
            self.expr(&param.value);
            self.param(&param.name);
            let name = &param.name.text;
            let sweep = self.declared.sweep.as_ref();
            if sweep.is_some_and(|sweep| sweep.param.text == *name) {
                let message = format!("{} is swept, so a variant cannot set it", quoted(name));
                self.error(param.name.loc, message, None);
            }
        }
    }

    fn unused(&mut self) {
        let buffers = self.declared.buffers.iter();
        let buffers = buffers.map(|it| (&it.name, &self.used_buffers, "uses the buffer"));
        let kernels = self.declared.kernels.iter();
        let kernels = kernels.map(|it| (&it.name, &self.used_kernels, "launches the kernel"));
        for (name, used, does) in buffers.chain(kernels) {
            if !used.contains(name.text.as_str()) {
                let message = format!("no step {does} {}", quoted(&name.text));
                let warning = Diagnostic::warning(name.loc.range(), message);
                self.diagnostics.push(warning);
            }
        }
    }
}
