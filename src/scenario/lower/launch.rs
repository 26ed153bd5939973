//! Kernel launches: configuration, arguments, and the device they run on.

use super::super::diagnostics::{Diagnostic, quoted};
use super::super::expr::parse::Template;
use super::super::expr::value::Value;
use super::super::expr::{Expr, Loc};
use super::super::file::{ArgDecl, BufferRef, KernelDecl};
use super::super::plan::{Arg, BufferId, KernelSpec, LaunchId, LaunchSpec, MemRef, OpKind};
use super::super::signature::{Param, ParamKind};
use super::Unroll;

/// Threads of a block.
const MAX_THREADS: u64 = 1024;
/// Dynamic shared memory of a block that current GPUs can give, in bytes (227 KiB).
const MAX_SHARED: i64 = 232_448;
/// CUDA's limits of a grid in x, y, z.
const MAX_GRID: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];
/// CUDA's limits of a block in x, y, z.
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];

/// A launch as a key: two launches with equal keys are one [`LaunchSpec`].
pub(super) type LaunchKey = (
    usize,
    [u32; 3],
    [u32; 3],
    u32,
    Vec<(u8, u64, u64)>,
    [Option<u64>; 3],
);

impl<'f> Unroll<'_, 'f> {
    pub(super) fn launch(
        &mut self,
        name: &'f str,
        on: &'f [BufferRef],
        args: Option<&'f [ArgDecl]>,
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<()> {
        let decl = self
            .lowering
            .file
            .kernels
            .iter()
            .find(|kernel| kernel.name.text == name)?;
        let (source, params) = decl.code.as_ref()?;
        let (args, device) = self.args(decl, params, args.unwrap_or(&decl.args), on)?;
        let grid = self.dim3(&decl.grid, [1, 1, 1], MAX_GRID, "a grid")?;
        let block = self.dim3(&decl.block, [256, 1, 1], MAX_BLOCK, "a block")?;
        let threads: u64 = block.iter().map(|side| u64::from(*side)).product();
        if threads > MAX_THREADS {
            let at = decl
                .block
                .iter()
                .fold(decl.block[0].loc, |loc, expr| loc.to(expr.loc));
            self.error(
                at,
                format!("a block has {MAX_THREADS} threads at most, and this one has {threads}"),
            );
            return None;
        }
        let shared = match &decl.shared {
            Some(shared) => {
                self.integer(shared, 0..=MAX_SHARED, "the shared memory of a block")? as u32
            }
            None => 0,
        };
        let flops = self.amount(decl.flops.as_ref(), "a number of operations")?;
        let bytes = self.amount(decl.bytes.as_ref(), "a size")?;
        let time = match &decl.time {
            Some(time) => Some(self.time(time)?),
            None => None,
        };
        let kernel = match self.objects.kernels.get(name) {
            Some(kernel) => *kernel,
            None => {
                let spec = KernelSpec {
                    name: name.to_owned(),
                    file: decl.file.text.clone(),
                    source: source.clone(),
                    entry: decl.entry.text.clone(),
                    site: self.lowering.sites.id(decl.name.loc),
                };
                self.plan.kernels.push(spec);
                self.objects
                    .kernels
                    .insert(name, self.plan.kernels.len() - 1);
                self.plan.kernels.len() - 1
            }
        };
        let launch = self.launch_id(LaunchSpec {
            kernel,
            grid,
            block,
            shared,
            args,
            flops,
            bytes,
            time,
        });
        let stream = self.stream(stream, device)?;
        self.captured_use(stream, loc)?;
        self.feed(stream);
        self.emit(OpKind::Launch { launch, stream }, loc)
    }

    fn launch_id(&mut self, spec: LaunchSpec) -> LaunchId {
        let args = spec.args.iter().map(|arg| match *arg {
            Arg::Device(at) => (0, at.buffer as u64, at.offset),
            Arg::I32(value) => (1, u64::from(value.cast_unsigned()), 0),
            Arg::U64(value) => (2, value, 0),
            Arg::F32(value) => (3, u64::from(value.to_bits()), 0),
        });
        let time = spec.time.map(i64::unsigned_abs);
        let key = (
            spec.kernel,
            spec.grid,
            spec.block,
            spec.shared,
            args.collect(),
            [spec.flops, spec.bytes, time],
        );
        let plan = &mut self.plan;
        *self.objects.launches.entry(key).or_insert_with(|| {
            plan.launches.push(spec);
            plan.launches.len() - 1
        })
    }

    fn amount(&mut self, expr: Option<&Expr>, what: &str) -> Option<Option<u64>> {
        match expr {
            Some(expr) => self
                .integer(expr, 0..=i64::MAX, what)
                .map(|value| Some(value.unsigned_abs())),
            None => Some(None),
        }
    }

    fn dim3(
        &mut self,
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
            *side = self.integer(expr, 1..=*most, &format!("the {axis} of {what}"))? as u32;
        }
        Some(dim)
    }

    /// The arguments, and the device that their buffers are on.
    fn args(
        &mut self,
        kernel: &'f KernelDecl,
        params: &[Param],
        args: &'f [ArgDecl],
        on: &'f [BufferRef],
    ) -> Option<(Vec<Arg>, Option<u32>)> {
        let mut values = Vec::with_capacity(args.len());
        let mut first: Option<(BufferId, u32)> = None;
        for (arg, param) in args.iter().zip(params) {
            let ParamKind::Pointer { .. } = param.kind else {
                let ArgDecl::Expr(expr) = arg else {
                    return None;
                };
                values.push(self.number_arg(expr, &param.kind)?);
                continue;
            };
            let (buffer, loc) = self.pointer_arg(kernel, arg, on)?;
            let device = self.device_side(buffer, loc)?;
            match first {
                Some((other, known)) if known != device => {
                    let name = |id: BufferId| quoted(&self.plan.buffers[id].name);
                    let message = format!(
                        "{} is on device {device}, and {} on device {known}",
                        name(buffer),
                        name(other)
                    );
                    self.report(
                        Diagnostic::error(loc.range(), message)
                            .help("copy it there first, with p2p"),
                    );
                    return None;
                }
                _ => first = Some((buffer, device)),
            }
            values.push(Arg::Device(MemRef { buffer, offset: 0 }));
        }
        Some((values, first.map(|(_, device)| device)))
    }

    /// The buffer of an argument: the element that `on` says, where the argument names an array.
    fn pointer_arg(
        &mut self,
        kernel: &'f KernelDecl,
        arg: &'f ArgDecl,
        on: &'f [BufferRef],
    ) -> Option<(BufferId, Loc)> {
        let (name, loc) = match arg {
            ArgDecl::Element(reference) => return Some((self.buffer(reference)?, reference.loc)),
            ArgDecl::Expr(expr) => (expr.as_name()?, expr.loc),
        };
        if let Some(target) = on.iter().find(|target| target.name == name) {
            return Some((self.buffer(target)?, target.loc));
        }
        let file = self.lowering.file;
        let decl = file
            .buffers
            .iter()
            .find(|buffer| buffer.name.text == name)?;
        if decl.count.is_some() {
            let message = format!(
                "the kernel {} takes one of the array {}: which?",
                quoted(&kernel.name.text),
                quoted(name)
            );
            self.report(
                Diagnostic::error(loc.range(), message)
                    .help(format!("say so where it is launched: on = \"{name}[0]\"")),
            );
            return None;
        }
        let known = self.whole_buffer(name)?;
        Some((known, loc))
    }

    fn number_arg(&mut self, expr: &'f Expr, kind: &ParamKind) -> Option<Arg> {
        if *kind == ParamKind::F32 {
            return self.eval(expr).map(|value| Arg::F32(value.as_f64() as f32));
        }
        let value = match self.eval(expr)? {
            Value::Int(value, _) => value,
            Value::Float(value, _) if value.fract() == 0.0 && value.abs() < 9e15 => value as i64,
            value => {
                self.error(
                    expr.loc,
                    format!("this argument is a whole number, not {value}"),
                );
                return None;
            }
        };
        let arg = match kind {
            ParamKind::I32 => i32::try_from(value).ok().map(Arg::I32),
            ParamKind::U32 => u32::try_from(value)
                .ok()
                .map(|value| Arg::I32(value.cast_signed())),
            _ => Some(Arg::U64(value.cast_unsigned())),
        };
        if arg.is_none() {
            self.error(
                expr.loc,
                format!("{value} does not fit in this argument, which has 32 bits"),
            );
        }
        arg
    }
}
