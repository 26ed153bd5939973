//! The arguments of a launch: what the kernel's source asks for, and which buffers are meant.

use super::super::super::diagnostics::{Diagnostic, quoted};
use super::super::super::expr::Expr;
use super::super::super::expr::value::Value;
use super::super::super::names::Names;
use super::super::super::plan::{Arg, BufferId, MemRef};
use super::super::super::signature::{Param, ParamKind};
use super::super::super::syntax::decl::{ArgDecl, KernelDecl};
use super::super::{Loc, Step, Unroll};
use super::named;
use activity::text::plural;
use std::collections::HashSet;

/// Checks arguments against the kernel's parameters; `loc` is where they all stand.
pub(super) fn resolve<'f>(
    kernel: &'f KernelDecl,
    args: &'f [ArgDecl],
    loc: Loc,
    names: &mut Names<'f>,
) {
    for arg in args {
        match arg {
            ArgDecl::Element(buffer) => names.buffer(buffer),
            ArgDecl::Expr(expr) => match expr.as_name().filter(|it| names.buffers.contains(it)) {
                Some(name) => _ = names.used_buffers.insert(name),
                None => names.expr(expr),
            },
        }
    }
    let Some((_, params)) = &kernel.code else {
        return;
    };
    let declared: Vec<String> = params.iter().map(|param| param.to_string()).collect();
    let signature = format!("{}({})", kernel.entry.text, declared.join(", "));
    if args.len() != params.len() {
        let (entry, given) = (quoted(&kernel.entry.text), args.len());
        let takes = plural(params.len() as u64, "argument");
        let message = format!("{entry} takes {takes}, not {given}");
        names.error(loc, message, Some(format!("it is declared as {signature}")));
        return;
    }
    let wrong = |arg: &ArgDecl, param: &Param| unfit(arg, &param.kind, &names.buffers);
    let pairs = args.iter().zip(params);
    let mistakes = pairs.filter_map(|(arg, param)| Some((arg, param, wrong(arg, param)?)));
    let mistakes: Vec<_> = mistakes.collect();
    let declared = format!("the kernel is declared as {signature}");
    if let [(one, of_one, _), (other, of_other, _)] = mistakes[..]
        && wrong(one, of_other).or(wrong(other, of_one)).is_none()
    {
        let (from, to) = (one.loc().range(), other.loc().range());
        let [one, other] = [&from, &to].map(|it| quoted(names.diagnostics.written(it.clone())));
        let message = format!("{one} and {other} are in each other's place");
        let error = Diagnostic::error(from, message).related(to, "and this");
        names
            .diagnostics
            .push(error.help(format!("swap them: {declared}")));
        return;
    }
    for (arg, _, wrong) in mistakes {
        names.error(arg.loc(), wrong.to_owned(), Some(declared.clone()));
    }
}

/// What is wrong with an argument of this kind.
fn unfit(arg: &ArgDecl, kind: &ParamKind, buffers: &HashSet<&str>) -> Option<&'static str> {
    let is_buffer = match arg {
        ArgDecl::Element(_) => true,
        ArgDecl::Expr(expr) => expr.as_name().is_some_and(|it| buffers.contains(it)),
    };
    match kind {
        ParamKind::Pointer { .. } if is_buffer => None,
        ParamKind::Pointer { .. } => Some("this argument is a pointer, so it takes a buffer"),
        ParamKind::Other(_) => Some(
            "cuptop passes pointers, int, unsigned, 64-bit integers and float, and this argument is none of them",
        ),
        _ => is_buffer.then_some("this argument is a number, not a buffer"),
    }
}

/// The arguments, and the device that their buffers are on.
pub(super) fn lower<'f>(
    kernel: &'f KernelDecl,
    params: &[Param],
    args: &'f [ArgDecl],
    step: &'f Step,
    unroll: &mut Unroll<'_, 'f>,
) -> Option<(Vec<Arg>, Option<u32>)> {
    let mut values = Vec::with_capacity(args.len());
    let mut first: Option<(BufferId, u32)> = None;
    for (arg, param) in args.iter().zip(params) {
        let ParamKind::Pointer { .. } = param.kind else {
            let ArgDecl::Expr(expr) = arg else {
                return None;
            };
            values.push(number(unroll, expr, &param.kind)?);
            continue;
        };
        let (buffer, loc) = pointer(unroll, kernel, arg, step)?;
        let device = unroll.device_side(buffer, loc)?;
        match first {
            Some((other, known)) if known != device => {
                let name = |id: BufferId| quoted(&unroll.plan.buffers[id].name);
                let (this, other) = (name(buffer), name(other));
                let message =
                    format!("{this} is on device {device}, and {other} on device {known}");
                return unroll.error_help(loc, message, "copy it there first, with p2p");
            }
            _ => first = Some((buffer, device)),
        }
        values.push(Arg::Device(MemRef { buffer, offset: 0 }));
    }
    Some((values, first.map(|(_, device)| device)))
}

/// The buffer of an argument: the element that `on` says, where the argument names an array.
fn pointer<'f>(
    unroll: &mut Unroll<'_, 'f>,
    kernel: &'f KernelDecl,
    arg: &'f ArgDecl,
    step: &'f Step,
) -> Option<(BufferId, Loc)> {
    let (name, loc) = match arg {
        ArgDecl::Element(reference) => return Some((unroll.buffer(reference)?, reference.loc)),
        ArgDecl::Expr(expr) => (expr.as_name()?, expr.loc),
    };
    let mut on = step.buffers("on").iter();
    if let Some(target) = on.find(|target| target.name == name) {
        return Some((unroll.buffer(target)?, target.loc));
    }
    let mut declared = unroll.shared.declared.buffers.iter();
    let decl = declared.find(|buffer| buffer.name.text == name)?;
    if decl.count.is_some() {
        let (kernel, array) = (quoted(&kernel.name.text), quoted(name));
        let message = format!("the kernel {kernel} takes one of the array {array}: which?");
        let element = unroll.an_element(name);
        // The launch's own arguments say it themselves.
        let (at, help) = match (step.get("args"), named(step)) {
            (None, Some(launch)) => (launch.loc, format!("add on = \"{element}\"")),
            _ => (loc, format!("write \"{element}\"")),
        };
        let error = Diagnostic::error(at.range(), message).help(help);
        unroll.report(error.related(loc.range(), "the argument"));
        return None;
    }
    let known = unroll.whole_buffer(name)?;
    Some((known, loc))
}

fn number(unroll: &mut Unroll<'_, '_>, expr: &Expr, kind: &ParamKind) -> Option<Arg> {
    let value = match unroll.eval(expr)? {
        value if *kind == ParamKind::F32 => {
            return Some(Arg::U32((value.as_f64() as f32).to_bits()));
        }
        Value::Int(value, _) => value,
        Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 9e15 => value as i64,
        value => {
            let message = format!("this argument is a whole number, not {value}");
            return unroll.error(expr.loc, message);
        }
    };
    let word = match kind {
        ParamKind::I32 => i32::try_from(value).map(i32::cast_unsigned),
        ParamKind::U32 => u32::try_from(value),
        _ => return Some(Arg::U64(value.cast_unsigned())),
    };
    let message = || format!("{value} does not fit in this argument, which has 32 bits");
    word.map_or_else(
        |_| unroll.error(expr.loc, message()),
        |it| Some(Arg::U32(it)),
    )
}
