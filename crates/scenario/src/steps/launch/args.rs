//! The arguments of a launch: what the kernel's source asks for, and which buffers are meant.

use super::super::super::diagnostics::quoted;
use super::super::super::expr::Expr;
use super::super::super::expr::value::Value;
use super::super::super::plan::{Arg, BufferId, MemRef};
use super::super::super::signature::{Param, ParamKind};
use super::super::super::syntax::decl::{ArgDecl, BufferRef, KernelDecl};
use super::super::{Loc, Names, Unroll};

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
            ArgDecl::Expr(expr) => match expr
                .as_name()
                .and_then(|name| names.buffers.get(name).copied())
            {
                Some(name) => {
                    names.used_buffers.insert(name);
                }
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
        let message = format!(
            "{} takes {} argument{}, not {}",
            quoted(&kernel.entry.text),
            params.len(),
            if params.len() == 1 { "" } else { "s" },
            args.len()
        );
        names.error(loc, message, Some(format!("it is declared as {signature}")));
        return;
    }
    for (arg, param) in args.iter().zip(params) {
        let is_buffer = match arg {
            ArgDecl::Element(_) => true,
            ArgDecl::Expr(expr) => expr
                .as_name()
                .is_some_and(|name| names.buffers.contains(name)),
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
        names.error(
            arg.loc(),
            wrong.to_owned(),
            Some(format!("the kernel is declared as {signature}")),
        );
    }
}

/// The arguments, and the device that their buffers are on.
pub(super) fn lower<'f>(
    kernel: &'f KernelDecl,
    params: &[Param],
    args: &'f [ArgDecl],
    on: &'f [BufferRef],
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
        let (buffer, loc) = pointer(unroll, kernel, arg, on)?;
        let device = unroll.device_side(buffer, loc)?;
        match first {
            Some((other, known)) if known != device => {
                let name = |id: BufferId| quoted(&unroll.plan.buffers[id].name);
                let message = format!(
                    "{} is on device {device}, and {} on device {known}",
                    name(buffer),
                    name(other)
                );
                unroll.error_help(loc, message, "copy it there first, with p2p");
                return None;
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
    on: &'f [BufferRef],
) -> Option<(BufferId, Loc)> {
    let (name, loc) = match arg {
        ArgDecl::Element(reference) => return Some((unroll.buffer(reference)?, reference.loc)),
        ArgDecl::Expr(expr) => (expr.as_name()?, expr.loc),
    };
    if let Some(target) = on.iter().find(|target| target.name == name) {
        return Some((unroll.buffer(target)?, target.loc));
    }
    let declared = unroll.shared.declared;
    let decl = declared
        .buffers
        .iter()
        .find(|buffer| buffer.name.text == name)?;
    if decl.count.is_some() {
        let message = format!(
            "the kernel {} takes one of the array {}: which?",
            quoted(&kernel.name.text),
            quoted(name)
        );
        unroll.error_help(
            loc,
            message,
            format!("say so where it is launched: on = \"{name}[0]\""),
        )?;
    }
    let known = unroll.whole_buffer(name)?;
    Some((known, loc))
}

fn number(unroll: &mut Unroll<'_, '_>, expr: &Expr, kind: &ParamKind) -> Option<Arg> {
    if *kind == ParamKind::F32 {
        return unroll
            .eval(expr)
            .map(|value| Arg::U32((value.as_f64() as f32).to_bits()));
    }
    let value = match unroll.eval(expr)? {
        Value::Int(value, _) => value,
        Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 9e15 => value as i64,
        value => {
            unroll.error(
                expr.loc,
                format!("this argument is a whole number, not {value}"),
            );
            return None;
        }
    };
    let arg = match kind {
        ParamKind::I32 => i32::try_from(value)
            .ok()
            .map(i32::cast_unsigned)
            .map(Arg::U32),
        ParamKind::U32 => u32::try_from(value).ok().map(Arg::U32),
        _ => Some(Arg::U64(value.cast_unsigned())),
    };
    if arg.is_none() {
        unroll.error(
            expr.loc,
            format!("{value} does not fit in this argument, which has 32 bits"),
        );
    }
    arg
}
