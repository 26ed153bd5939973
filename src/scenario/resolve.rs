//! What can be known of a file without evaluating it: that every name stands for something, that
//! kernels get the arguments their source asks for, and what is never used.

use std::collections::HashSet;

use super::diagnostics::{Diagnostic, Diagnostics, did_you_mean, list, quoted};
use super::expr::parse::{Part, Template};
use super::expr::{Expr, Loc};
use super::file::{ArgDecl, BufferRef, CopyStep, File, KernelDecl, ParamDecl, Step, StepKind};
use super::signature::ParamKind;

/// Checks the names of a file.
pub(super) fn resolve(file: &File, diagnostics: &mut Diagnostics) {
    let mut names = Names {
        file,
        diagnostics,
        params: file
            .params
            .iter()
            .map(|param| param.name.text.as_str())
            .collect(),
        buffers: file
            .buffers
            .iter()
            .map(|buffer| buffer.name.text.as_str())
            .collect(),
        loops: Vec::new(),
        used_buffers: HashSet::new(),
        used_kernels: HashSet::new(),
    };
    names.declarations();
    for variant in &file.variants {
        names.overrides(&variant.params);
        for count in [&variant.warmup, &variant.repeat] {
            names.optional(count.as_ref());
        }
        names.steps(&variant.steps);
    }
    // With errors about, what looks unused may be what was misspelt.
    if !names.diagnostics.has_errors() {
        names.unused();
    }
}

struct Names<'f> {
    file: &'f File,
    diagnostics: &'f mut Diagnostics,
    params: HashSet<&'f str>,
    buffers: HashSet<&'f str>,
    /// Loop variables in scope.
    loops: Vec<&'f str>,
    used_buffers: HashSet<&'f str>,
    used_kernels: HashSet<&'f str>,
}

impl<'f> Names<'f> {
    fn error(&mut self, loc: Loc, message: String, help: Option<String>) {
        self.diagnostics
            .push(Diagnostic::error(loc.range(), message).maybe_help(help));
    }

    fn declarations(&mut self) {
        let mut above: HashSet<&str> = HashSet::new();
        for param in &self.file.params {
            self.param_value(&param.value, &above);
            above.insert(&param.name.text);
        }
        if let Some(sweep) = &self.file.sweep {
            if !self.params.contains(sweep.param.text.as_str()) {
                let help = did_you_mean(&sweep.param.text, self.params.iter().copied())
                    .unwrap_or_else(|| "give it a value in [params] first".to_owned());
                self.error(
                    sweep.param.loc,
                    format!("there is no parameter {}", quoted(&sweep.param.text)),
                    Some(help),
                );
            }
            use super::file::SweepValues as V;
            match &sweep.values {
                V::List(values) => values.iter().for_each(|value| self.expr(value)),
                V::Factor {
                    from,
                    to,
                    factor: by,
                }
                | V::Step { from, to, step: by } => {
                    [from, to, by]
                        .into_iter()
                        .for_each(|value| self.expr(value));
                }
            }
        }
        for buffer in &self.file.buffers {
            self.optional(buffer.count.as_ref());
            self.loops.push("index");
            self.expr(&buffer.bytes);
            self.optional(buffer.device.as_ref());
            self.loops.pop();
        }
        for stream in &self.file.streams {
            self.optional(stream.device.as_ref());
            self.optional(stream.priority.as_ref());
        }
    }

    /// A parameter's value may use the parameters above it.
    fn param_value(&mut self, value: &Expr, above: &HashSet<&str>) {
        let mut wrong = Vec::new();
        value.names(&mut |name, loc| {
            if !above.contains(name) {
                wrong.push((name.to_owned(), loc));
            }
        });
        for (name, loc) in wrong {
            let help = if self.params.contains(name.as_str()) {
                Some("a parameter may use the ones above it".to_owned())
            } else {
                did_you_mean(&name, above.iter().copied())
            };
            self.error(
                loc,
                format!("nothing above is named {}", quoted(&name)),
                help,
            );
        }
    }

    fn overrides(&mut self, params: &'f [ParamDecl]) {
        for param in params {
            self.expr(&param.value);
            let name = param.name.text.as_str();
            if !self.params.contains(name) {
                let help = did_you_mean(name, self.params.iter().copied())
                    .unwrap_or_else(|| "give it a value in [params] first".to_owned());
                self.error(
                    param.name.loc,
                    format!("there is no parameter {}", quoted(name)),
                    Some(help),
                );
            }
            if self
                .file
                .sweep
                .as_ref()
                .is_some_and(|sweep| sweep.param.text == name)
            {
                self.error(
                    param.name.loc,
                    format!("{} is swept, so a variant cannot set it", quoted(name)),
                    None,
                );
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        let mut wrong = Vec::new();
        expr.names(&mut |name, loc| {
            if !self.params.contains(name) && !self.loops.contains(&name) {
                wrong.push((name.to_owned(), loc));
            }
        });
        for (name, loc) in wrong {
            let known = self.params.iter().chain(&self.loops).copied();
            let help = if self.buffers.contains(name.as_str()) {
                Some("that is a buffer; expressions are made of numbers".to_owned())
            } else {
                did_you_mean(&name, known.clone()).or_else(|| {
                    let mut known: Vec<&str> = known.collect();
                    known.sort_unstable();
                    Some(format!("known here: {}", list(known)))
                })
            };
            self.error(
                loc,
                format!("nothing here is named {}", quoted(&name)),
                help,
            );
        }
    }

    fn optional(&mut self, expr: Option<&Expr>) {
        if let Some(expr) = expr {
            self.expr(expr);
        }
    }

    fn template(&mut self, template: &Template) {
        for part in &template.parts {
            if let Part::Expr(expr) = part {
                self.expr(expr);
            }
        }
    }

    fn stream(&mut self, stream: Option<&Template>) {
        if let Some(stream) = stream {
            self.template(stream);
        }
    }

    fn buffer(&mut self, buffer: &'f BufferRef) {
        self.optional(buffer.index.as_ref());
        if self.buffers.contains(buffer.name.as_str()) {
            self.used_buffers.insert(&buffer.name);
            return;
        }
        let help = did_you_mean(&buffer.name, self.buffers.iter().copied()).unwrap_or_else(|| {
            let names = self
                .file
                .buffers
                .iter()
                .map(|buffer| buffer.name.text.as_str());
            format!("the buffers are {}", list(names))
        });
        self.error(
            buffer.name_loc,
            format!("there is no buffer {}", quoted(&buffer.name)),
            Some(help),
        );
    }

    fn steps(&mut self, steps: &'f [Step]) {
        for step in steps {
            self.step(&step.kind);
        }
    }

    fn step(&mut self, kind: &'f StepKind) {
        use StepKind as S;
        match kind {
            S::Copy(copy) => self.copy(copy),
            S::Memset {
                to,
                value,
                offset,
                bytes,
                stream,
            } => {
                self.buffer(to);
                [value, offset, bytes]
                    .into_iter()
                    .for_each(|expr| self.optional(expr.as_ref()));
                self.stream(stream.as_ref());
            }
            S::Launch {
                kernel,
                on,
                args,
                stream,
            } => {
                self.stream(stream.as_ref());
                self.launch(
                    &kernel.text,
                    kernel.loc,
                    on,
                    args.as_ref().map(|(args, loc)| (args.as_slice(), *loc)),
                );
            }
            S::Record {
                event: name,
                stream,
            }
            | S::Wait {
                event: name,
                stream,
            }
            | S::LaunchGraph {
                graph: name,
                stream,
            } => {
                self.template(name);
                self.stream(stream.as_ref());
            }
            S::SyncStream(stream) => self.stream(stream.as_ref()),
            S::SyncEvent(event) => self.template(event),
            S::SyncDevice(device) => self.optional(device.as_ref()),
            S::Alloc { buffer, stream } | S::Free { buffer, stream } => {
                self.buffer(buffer);
                self.stream(stream.as_ref());
            }
            S::Capture {
                graph,
                stream,
                body,
            } => {
                self.template(graph);
                self.stream(stream.as_ref());
                self.steps(body);
            }
            S::Busy(time) => self.expr(time),
            S::Sum(buffer) | S::Sin(buffer) => self.buffer(buffer),
            S::Matmul { of, n } => {
                of.iter().for_each(|buffer| self.buffer(buffer));
                self.expr(n);
            }
            S::Range { name, body } => {
                self.template(name);
                self.steps(body);
            }
            S::For(inner) => {
                [&inner.from, &inner.to]
                    .into_iter()
                    .for_each(|expr| self.expr(expr));
                self.optional(inner.step.as_ref());
                self.variable(&inner.variable.text, inner.variable.loc);
                self.loops.push(&inner.variable.text);
                self.steps(&inner.body);
                self.loops.pop();
            }
            S::If {
                condition,
                body,
                otherwise,
            } => {
                self.expr(condition);
                self.steps(body);
                self.steps(otherwise);
            }
        }
    }

    fn variable(&mut self, name: &str, loc: Loc) {
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

    fn copy(&mut self, copy: &'f CopyStep) {
        self.buffer(&copy.from);
        if let Some(to) = &copy.to {
            self.buffer(to);
        }
        for expr in [&copy.offset, &copy.to_offset, &copy.bytes, &copy.chunk] {
            self.optional(expr.as_ref());
        }
        self.stream(copy.stream.as_ref());
    }

    fn launch(
        &mut self,
        name: &str,
        loc: Loc,
        on: &'f [BufferRef],
        args: Option<(&'f [ArgDecl], Loc)>,
    ) {
        on.iter().for_each(|buffer| self.buffer(buffer));
        let Some(kernel) = self
            .file
            .kernels
            .iter()
            .find(|kernel| kernel.name.text == name)
        else {
            let names = || {
                self.file
                    .kernels
                    .iter()
                    .map(|kernel| kernel.name.text.as_str())
            };
            let help = did_you_mean(name, names())
                .unwrap_or_else(|| format!("the kernels are {}", list(names())));
            self.error(
                loc,
                format!("there is no kernel {}", quoted(name)),
                Some(help),
            );
            return;
        };
        self.used_kernels.insert(&kernel.name.text);
        for expr in kernel.grid.iter().chain(&kernel.block) {
            self.expr(expr);
        }
        for expr in [&kernel.shared, &kernel.flops, &kernel.bytes, &kernel.time] {
            self.optional(expr.as_ref());
        }
        let (args, args_loc) = args.unwrap_or((&kernel.args, kernel.args_loc));
        self.args(kernel, args, args_loc);
        for target in on {
            let is_named = args.iter().any(|arg| matches!(arg, ArgDecl::Expr(expr) if expr.as_name() == Some(target.name.as_str())));
            if !is_named && self.buffers.contains(target.name.as_str()) {
                let help = "`on` says which element of an array that the kernel's args name; use `args` for other buffers";
                let message = format!(
                    "the kernel {} has no argument {}",
                    quoted(name),
                    quoted(&target.name)
                );
                self.error(target.loc, message, Some(help.to_owned()));
            }
        }
    }

    fn args(&mut self, kernel: &'f KernelDecl, args: &'f [ArgDecl], loc: Loc) {
        for arg in args {
            match arg {
                ArgDecl::Element(buffer) => self.buffer(buffer),
                ArgDecl::Expr(expr) => match expr
                    .as_name()
                    .and_then(|name| self.buffers.get(name).copied())
                {
                    Some(name) => {
                        self.used_buffers.insert(name);
                    }
                    None => self.expr(expr),
                },
            }
        }
        let Some((_, params)) = &kernel.code else {
            return;
        };
        let declared: Vec<String> = params.iter().map(|param| param.to_string()).collect();
        let signature = format!("{}({})", kernel.entry.text, declared.join(", "));
        if args.len() != params.len() {
            let message = format!(
                "{} takes {} argument{}, not {}",
                quoted(&kernel.entry.text),
                params.len(),
                if params.len() == 1 { "" } else { "s" },
                args.len()
            );
            self.error(loc, message, Some(format!("it is declared as {signature}")));
            return;
        }
        for (arg, param) in args.iter().zip(params) {
            let is_buffer = match arg {
                ArgDecl::Element(_) => true,
                ArgDecl::Expr(expr) => expr
                    .as_name()
                    .is_some_and(|name| self.buffers.contains(name)),
            };
            let wrong = match &param.kind {
                ParamKind::Pointer { .. } if !is_buffer => {
                    "this argument is a pointer, so it takes a buffer"
                }
                ParamKind::Other(_) => {
                    "cuptop passes pointers, int, unsigned, 64-bit integers and float, and this argument is none of them"
                }
                ParamKind::Pointer { .. } => continue,
                _ if is_buffer => "this argument is a number, not a buffer",
                _ => continue,
            };
            self.error(
                arg.loc(),
                wrong.to_owned(),
                Some(format!("the kernel is declared as {signature}")),
            );
        }
    }

    fn unused(&mut self) {
        for buffer in &self.file.buffers {
            if !self.used_buffers.contains(buffer.name.text.as_str()) {
                let message = format!("no step uses the buffer {}", quoted(&buffer.name.text));
                self.diagnostics
                    .push(Diagnostic::warning(buffer.name.loc.range(), message));
            }
        }
        for kernel in &self.file.kernels {
            if !self.used_kernels.contains(kernel.name.text.as_str()) {
                let message = format!("no step launches the kernel {}", quoted(&kernel.name.text));
                self.diagnostics
                    .push(Diagnostic::warning(kernel.name.loc.range(), message));
            }
        }
    }
}
