//! `launch`: launches a kernel. Configuration here, arguments in [`args`].

mod args;

use super::super::diagnostics::quoted;
use super::super::expr::Expr;
use super::super::expr::parse::Template;
use super::super::names::unknown;
use super::super::plan::{KernelSpec, LaunchSpec, OpKind};
use super::super::syntax::args::args as read_args;
use super::super::syntax::decl::{ArgDecl, BufferRef, Named};
use super::super::syntax::keys::key;
use super::common::{STREAM, stream};
use super::{Form, Loc, Names, StepKind, Unroll};

pub(super) const FORM: Form = Form {
    head: key!(required "launch" Text, "Launches a kernel."),
    keys: &[
        key!("on" Buffers, "Which elements of the arrays that the kernel's args name."),
        key!("args" Args, "Other arguments than the kernel's."),
        STREAM,
    ],
    read: |reader, fields, head| {
        Some(Box::new(Launch {
            kernel: reader.named(head)?,
            on: fields
                .get("on")
                .map(|field| reader.buffers(field))
                .unwrap_or_default(),
            args: fields
                .get("args")
                .map(|field| (read_args(reader, field), field.loc)),
            stream: stream(reader, fields),
        }))
    },
};

/// Threads of a block.
const MAX_THREADS: u64 = 1024;
/// Dynamic shared memory of a block that current GPUs can give, in bytes (227 KiB).
const MAX_SHARED: i64 = 232_448;
/// CUDA's limits of a grid in x, y, z.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];
/// CUDA's limits of a block in x, y, z.
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];

struct Launch {
    kernel: Named,
    /// Which elements of the arrays that the arguments name.
    on: Vec<BufferRef>,
    /// Other arguments than the kernel's, and where they stand.
    args: Option<(Vec<ArgDecl>, Loc)>,
    stream: Option<Template>,
}

impl StepKind for Launch {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        names.stream(self.stream.as_ref());
        self.on.iter().for_each(|buffer| names.buffer(buffer));
        let declared = names.declared;
        let name = self.kernel.text.as_str();
        let mut kernels = declared.kernels.iter();
        let known = kernels.clone().map(|kernel| kernel.name.text.as_str());
        let Some(kernel) = kernels.find(|kernel| kernel.name.text == name) else {
            let error = unknown("kernel", name, self.kernel.loc, known);
            names.diagnostics.fail::<()>(error);
            return;
        };
        names.used_kernels.insert(&kernel.name.text);
        for expr in kernel.grid.iter().chain(&kernel.block) {
            names.expr(expr);
        }
        for expr in [&kernel.shared, &kernel.flops, &kernel.bytes, &kernel.time] {
            names.optional(expr.as_ref());
        }
        let (args, args_loc) = match &self.args {
            Some((args, loc)) => (args, *loc),
            None => (&kernel.args, kernel.args_loc),
        };
        args::resolve(kernel, args, args_loc, names);
        for target in &self.on {
            let is_named = args.iter().any(|arg| matches!(arg, ArgDecl::Expr(expr) if expr.as_name() == Some(target.name.as_str())));
            if !is_named && names.buffers.contains(target.name.as_str()) {
                let help = "`on` says which element of an array that the kernel's args name; use `args` for other buffers";
                let message = format!(
                    "the kernel {} has no argument {}",
                    quoted(name),
                    quoted(&target.name)
                );
                names.error(target.loc, message, Some(help.to_owned()));
            }
        }
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        let name = self.kernel.text.as_str();
        let mut kernels = unroll.shared.declared.kernels.iter();
        let decl = kernels.find(|kernel| kernel.name.text == name)?;
        let (source, params) = decl.code.as_ref()?;
        let args = self.args.as_ref().map_or(&decl.args, |(args, _)| args);
        let (args, device) = args::lower(decl, params, args, &self.on, unroll)?;
        let grid = dim3(unroll, &decl.grid, [1, 1, 1], MAX_GRID, "a grid")?;
        let block = dim3(unroll, &decl.block, [256, 1, 1], MAX_BLOCK, "a block")?;
        let threads: u64 = block.iter().map(|side| u64::from(*side)).product();
        if threads > MAX_THREADS {
            let at = decl
                .block
                .iter()
                .fold(decl.block[0].loc, |loc, expr| loc.span_to(expr.loc));
            unroll.error(
                at,
                format!("a block has {MAX_THREADS} threads at most, and this one has {threads}"),
            )?;
        }
        let what = "the shared memory of a block";
        let shared = unroll.amount(decl.shared.as_ref(), MAX_SHARED, what)?;
        let flops = unroll.amount(decl.flops.as_ref(), i64::MAX, "a number of operations")?;
        let bytes = unroll.amount(decl.bytes.as_ref(), i64::MAX, "a size")?;
        let time = decl.time.as_ref().map(|time| unroll.time(time));
        let time = time.map_or(Some(None), |time| time.map(Some))?;
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
        let stream = unroll.stream(self.stream.as_ref(), device)?;
        unroll.captured_use(stream, loc)?;
        unroll.feed(stream);
        unroll.emit(OpKind::Launch { launch, stream }, loc)
    }
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
