//! `launch`: launches a kernel. Configuration here, arguments in [`args`].

mod args;

use super::super::names::unknown;
use super::super::plan::{KernelSpec, LaunchSpec};
use super::super::syntax::decl::{ArgDecl, KernelDecl, Named};
use super::common::STREAM;
use super::read::Given;
use super::*;

pub(super) const FORM: Form = Form {
    resolve,
    ..Form::new(
        key!(required "launch" Text, "Launches a kernel."),
        &[
            key!("on" Buffers, "Which elements of the arrays that the kernel's args name."),
            key!("args" Args, "Other arguments than the kernel's."),
            STREAM,
        ],
        lower,
    )
};

/// Threads of a block.
const MAX_THREADS: u64 = 1024;
/// Dynamic shared memory of a block that current GPUs can give, in bytes (227 KiB).
const MAX_SHARED: i64 = 232_448;
/// CUDA's limits of a grid in x, y, z.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];
/// CUDA's limits of a block in x, y, z.
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];

/// The kernel's name as the step gives it.
fn named(step: &Step) -> Option<&Named> {
    match step.get("launch")? {
        Given::Text(name) => Some(name),
        _ => None,
    }
}

/// The arguments of a launch, its own or else the kernel's, and where they stand.
fn args_of<'f>(step: &'f Step, kernel: &'f KernelDecl) -> (&'f [ArgDecl], Loc) {
    match step.get("args") {
        Some(Given::Args(args, loc)) => (args, *loc),
        _ => (&kernel.args, kernel.args_loc),
    }
}

fn resolve<'f>(step: &'f Step, names: &mut Names<'f>) {
    let Some(name) = named(step) else { return };
    let declared = names.declared;
    let mut kernels = declared.kernels.iter();
    let known = kernels.clone().map(|kernel| kernel.name.text.as_str());
    let Some(kernel) = kernels.find(|kernel| kernel.name.text == name.text) else {
        let error = unknown("kernel", &name.text, name.loc, known);
        names.diagnostics.fail::<()>(error);
        return;
    };
    names.used_kernels.insert(&kernel.name.text);
    let sides = kernel.grid.iter().chain(&kernel.block);
    let others = [&kernel.shared, &kernel.flops, &kernel.bytes, &kernel.time];
    for expr in sides.chain(others.into_iter().flatten()) {
        names.expr(expr);
    }
    let (args, args_loc) = args_of(step, kernel);
    args::resolve(kernel, args, args_loc, names);
    for target in step.buffers("on") {
        let is_it = |expr: &Expr| expr.as_name() == Some(target.name.as_str());
        let is_named = |arg: &ArgDecl| matches!(arg, ArgDecl::Expr(expr) if is_it(expr));
        if !args.iter().any(is_named) && names.buffers.contains(target.name.as_str()) {
            let help = "`on` says which element of an array that the kernel's args name; use `args` for other buffers";
            let (kernel, argument) = (quoted(&name.text), quoted(&target.name));
            let message = format!("the kernel {kernel} has no argument {argument}");
            names.error(target.loc, message, Some(help.to_owned()));
        }
    }
}

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    let name = named(step)?.text.as_str();
    let mut kernels = unroll.shared.declared.kernels.iter();
    let decl = kernels.find(|kernel| kernel.name.text == name)?;
    let (source, params) = decl.code.as_ref()?;
    let (args, _) = args_of(step, decl);
    let (args, device) = args::lower(decl, params, args, step, unroll)?;
    let grid = dim3(unroll, &decl.grid, [1, 1, 1], MAX_GRID, "a grid")?;
    let block = dim3(unroll, &decl.block, [256, 1, 1], MAX_BLOCK, "a block")?;
    let threads: u64 = block.iter().map(|side| u64::from(*side)).product();
    if threads > MAX_THREADS {
        let sides = decl.block.iter().map(|side| side.loc);
        let at = sides.reduce(Loc::span_to)?;
        let message =
            format!("a block has {MAX_THREADS} threads at most, and this one has {threads}");
        return unroll.error(at, message);
    }
    let what = "the shared memory of a block";
    let shared = unroll.amount(decl.shared.as_ref(), MAX_SHARED, what)?;
    let flops = unroll.amount(decl.flops.as_ref(), i64::MAX, "a number of operations")?;
    let bytes = unroll.amount(decl.bytes.as_ref(), i64::MAX, "a size")?;
    let time = match &decl.time {
        Some(time) => Some(unroll.time(time)?),
        None => None,
    };
    let kernels = &mut unroll.plan.kernels;
    let kernel = kernels.iter().position(|known| known.name == name);
    let kernel = kernel.unwrap_or_else(|| {
        kernels.push(KernelSpec {
            name: name.to_owned(),
            file: decl.file.text.clone(),
            source: source.clone(),
            entry: decl.entry.text.clone(),
            site: unroll.shared.sites.id(decl.name.loc),
        });
        kernels.len() - 1
    });
    let spec = LaunchSpec {
        kernel,
        grid,
        block,
        shared: shared.unwrap_or(0) as u32,
        args,
        flops,
        bytes,
        time,
    };
    let launches = &mut unroll.plan.launches;
    let launch = unroll.objects.launches.entry(spec);
    let launch = *launch.or_insert_with_key(|spec| {
        launches.push(spec.clone());
        launches.len() - 1
    });
    let stream = unroll.fed_stream(step, device)?;
    unroll.emit(OpKind::Launch { launch, stream }, step.loc)
}

fn dim3(
    unroll: &mut Unroll<'_, '_>,
    sides: &[Expr],
    default: [u32; 3],
    most: [i64; 3],
    what: &str,
) -> Option<[u32; 3]> {
    if sides.is_empty() {
        return Some(default);
    }
    let mut dim = [1; 3];
    for ((side, expr), (most, axis)) in dim
        .iter_mut()
        .zip(sides)
        .zip(most.iter().zip(["x", "y", "z"]))
    {
        *side = unroll.integer(expr, 1..=*most, &format!("the {axis} of {what}"))? as u32;
    }
    Some(dim)
}
