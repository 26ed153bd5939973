//! The names of a file, and the checks that need no evaluation: a name stands for something, and for one thing only.

use std::collections::HashSet;

use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, instead, list, quoted};
use super::expr::parse::{Part, Template};
use super::expr::{Expr, ExprError, Loc};
use super::syntax::decl::{BufferRef, Declarations, Named};

/// What is wrong with a name that is none of `names`.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    loc: Loc,
    names: impl Iterator<Item = &'a str> + Clone,
) -> ExprError {
    let message = format!("there is no {what} {}", quoted(name));
    let help = instead(name, &format!("the {what}s are"), names);
    loc.error(message).with_help(help)
}

/// What names stand for, where a step or a table is.
pub(crate) struct Names<'f> {
    pub(crate) declared: &'f Declarations,
    pub(crate) diagnostics: &'f mut Diagnostics,
    pub(crate) params: HashSet<&'f str>,
    pub(crate) buffers: HashSet<&'f str>,
    /// Loop variables in scope.
    pub(crate) loops: Vec<&'f str>,
    pub(crate) used_buffers: HashSet<&'f str>,
    pub(crate) used_kernels: HashSet<&'f str>,
}

impl<'f> Names<'f> {
    pub(crate) fn new(declared: &'f Declarations, diagnostics: &'f mut Diagnostics) -> Self {
        let text = |name: &'f Named| name.text.as_str();
        Self {
            declared,
            diagnostics,
            params: (declared.params.iter().map(|param| text(&param.name))).collect(),
            buffers: (declared.buffers.iter().map(|buffer| text(&buffer.name))).collect(),
            loops: Vec::new(),
            used_buffers: HashSet::new(),
            used_kernels: HashSet::new(),
        }
    }

    pub(crate) fn error(&mut self, loc: Loc, message: String, help: Option<String>) {
        self.diagnostics
            .push(Diagnostic::error(loc.range(), message).maybe_help(help));
    }

    pub(crate) fn expr(&mut self, expr: &Expr) {
        for (name, loc) in expr.names() {
            if self.params.contains(name) || self.loops.contains(&name) {
                continue;
            }
            let known = self.params.iter().chain(&self.loops).copied();
            let help = if self.buffers.contains(name) {
                Some("that is a buffer; expressions are made of numbers".to_owned())
            } else {
                did_you_mean(name, known.clone()).or_else(|| {
                    let mut known: Vec<&str> = known.collect();
                    known.sort_unstable();
                    Some(format!("known here: {}", list(known)))
                })
            };
            self.error(loc, format!("nothing here is named {}", quoted(name)), help);
        }
    }

    pub(crate) fn optional(&mut self, expr: Option<&Expr>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    pub(crate) fn template(&mut self, template: &Template) {
        for part in &template.parts {
            if let Part::Expr(expr) = part {
                self.expr(expr);
            }
        }
    }

    pub(crate) fn buffer(&mut self, buffer: &'f BufferRef) {
        self.optional(buffer.index.as_ref());
        if self.buffers.contains(buffer.name.as_str()) {
            self.used_buffers.insert(&buffer.name);
            return;
        }
        let known = self.declared.buffers.iter();
        let known = known.map(|buffer| buffer.name.text.as_str());
        let error = unknown("buffer", &buffer.name, buffer.name_loc, known);
        self.diagnostics.fail::<()>(error);
    }

    /// Reports a loop variable whose name stands for something else already.
    pub(crate) fn variable(&mut self, name: &str, loc: Loc) {
        let taken = if self.params.contains(name) {
            "a parameter"
        } else if self.buffers.contains(name) {
            "a buffer"
        } else if self.loops.contains(&name) {
            "the variable of a loop around it"
        } else {
            return;
        };
        self.error(
            loc,
            format!("{} is {taken} already", quoted(name)),
            Some("give the variable another name".to_owned()),
        );
    }
}
