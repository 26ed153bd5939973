//! A scenario file as written: parsed, each part with its place, nothing evaluated yet.
//!
//! [`keys`] is the table of everything that may be written; [`sections`] and [`steps`] read it with
//! the help of [`reader`]; [`schema`] tells editors.

mod args;
pub mod keys;
mod reader;
mod schema;
mod sections;
mod steps;

use std::sync::Arc;

use super::edit::EditSet;
use super::expr::parse::Template;
use super::expr::{Expr, Loc};
use super::plan::{Fill, HostMemory};
use super::signature::Param as KernelParam;
use super::view::View;
use crate::activity::Direction;

pub use schema::schema;
pub(super) use sections::parse;

/// A name and where it stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) text: String,
    pub(super) loc: Loc,
}

/// The whole file.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) look_for: String,
    pub(super) view: Option<View>,
    pub(super) baseline: Option<Named>,
    pub(super) params: Vec<ParamDecl>,
    pub(super) sweep: Option<SweepDecl>,
    pub(super) buffers: Vec<BufferDecl>,
    pub(super) kernels: Vec<KernelDecl>,
    pub(super) streams: Vec<StreamDecl>,
    pub(super) variants: Vec<VariantDecl>,
    pub(super) pairs: Vec<PairDecl>,
    pub(super) expect: Vec<ExpectDecl>,
}

/// `name = value` of `[params]`.
#[derive(Debug)]
pub(super) struct ParamDecl {
    pub(super) name: Named,
    pub(super) value: Expr,
}

/// `[sweep]`.
#[derive(Debug)]
pub(super) struct SweepDecl {
    pub(super) param: Named,
    pub(super) values: SweepValues,
    pub(super) loc: Loc,
}

#[derive(Debug)]
pub(super) enum SweepValues {
    List(Vec<Expr>),
    Factor { from: Expr, to: Expr, factor: Expr },
    Step { from: Expr, to: Expr, step: Expr },
}

/// `[buffers.NAME]`.
#[derive(Debug)]
pub(super) struct BufferDecl {
    pub(super) name: Named,
    pub(super) bytes: Expr,
    pub(super) count: Option<Expr>,
    pub(super) host: HostMemory,
    /// `None` for host memory alone.
    pub(super) device: Option<Expr>,
    pub(super) fill: Fill,
    pub(super) is_allocated_by_steps: bool,
}

/// `[kernels.NAME]`.
#[derive(Debug)]
pub(super) struct KernelDecl {
    pub(super) name: Named,
    pub(super) file: Named,
    pub(super) entry: Named,
    pub(super) grid: Vec<Expr>,
    pub(super) block: Vec<Expr>,
    pub(super) shared: Option<Expr>,
    pub(super) args: Vec<ArgDecl>,
    pub(super) args_loc: Loc,
    pub(super) flops: Option<Expr>,
    pub(super) bytes: Option<Expr>,
    pub(super) time: Option<Expr>,
    /// The source and the entry's parameters; `None` when it was not found, which is reported.
    pub(super) code: Option<(Arc<str>, Vec<KernelParam>)>,
}

/// A kernel argument.
#[derive(Clone, Debug)]
pub(super) enum ArgDecl {
    /// "batch\[i\]".
    Element(BufferRef),
    /// An expression, or the bare name of a buffer.
    Expr(Expr),
}

impl ArgDecl {
    pub(super) fn loc(&self) -> Loc {
        match self {
            ArgDecl::Element(buffer) => buffer.loc,
            ArgDecl::Expr(expr) => expr.loc,
        }
    }
}

/// `[streams.NAME]`.
#[derive(Debug)]
pub(super) struct StreamDecl {
    pub(super) name: Named,
    pub(super) device: Option<Expr>,
    pub(super) priority: Option<Expr>,
}

/// `[[variant]]`.
#[derive(Debug)]
pub(super) struct VariantDecl {
    pub(super) name: Named,
    pub(super) about: String,
    pub(super) view: Option<View>,
    pub(super) baseline: Option<Named>,
    pub(super) warmup: Option<Expr>,
    pub(super) repeat: Option<Expr>,
    pub(super) is_cold: bool,
    pub(super) shows_race: bool,
    pub(super) params: Vec<ParamDecl>,
    pub(super) steps: Vec<Step>,
}

/// `[[pair]]`.
#[derive(Debug)]
pub(super) struct PairDecl {
    pub(super) mistake: Named,
    pub(super) cure: Named,
    pub(super) edit: EditSet,
    pub(super) at: Option<Expr>,
    pub(super) loc: Loc,
}

/// A line of `[expect]`.
#[derive(Debug)]
pub(super) struct ExpectDecl {
    pub(super) key: String,
    pub(super) key_loc: Loc,
    pub(super) bounds: Vec<Named>,
}

/// A buffer, or one of an array.
#[derive(Clone, Debug)]
pub(super) struct BufferRef {
    pub(super) name: String,
    pub(super) name_loc: Loc,
    pub(super) index: Option<Expr>,
    pub(super) loc: Loc,
}

/// A step and its place.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) loc: Loc,
    pub(super) kind: StepKind,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum StepKind {
    Copy(CopyStep),
    Memset {
        to: BufferRef,
        value: Option<Expr>,
        offset: Option<Expr>,
        bytes: Option<Expr>,
        stream: Option<Template>,
    },
    Launch {
        kernel: Named,
        on: Vec<BufferRef>,
        args: Option<(Vec<ArgDecl>, Loc)>,
        stream: Option<Template>,
    },
    Record {
        event: Template,
        stream: Option<Template>,
    },
    Wait {
        event: Template,
        stream: Option<Template>,
    },
    SyncStream(Option<Template>),
    SyncEvent(Template),
    SyncDevice(Option<Expr>),
    Alloc {
        buffer: BufferRef,
        stream: Option<Template>,
    },
    Free {
        buffer: BufferRef,
        stream: Option<Template>,
    },
    Capture {
        graph: Template,
        stream: Option<Template>,
        body: Vec<Step>,
    },
    LaunchGraph {
        graph: Template,
        stream: Option<Template>,
    },
    Busy(Expr),
    Sum(BufferRef),
    Sin(BufferRef),
    Matmul {
        of: [BufferRef; 3],
        n: Expr,
    },
    Range {
        name: Template,
        body: Vec<Step>,
    },
    For(Loop),
    If {
        condition: Expr,
        body: Vec<Step>,
        otherwise: Vec<Step>,
    },
}

/// A copy step.
#[derive(Debug)]
pub(super) struct CopyStep {
    pub(super) direction: Direction,
    pub(super) from: BufferRef,
    pub(super) to: Option<BufferRef>,
    pub(super) offset: Option<Expr>,
    pub(super) to_offset: Option<Expr>,
    pub(super) bytes: Option<Expr>,
    pub(super) chunk: Option<Expr>,
    pub(super) stream: Option<Template>,
    pub(super) is_sync: bool,
}

/// A loop.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) variable: Named,
    pub(super) from: Expr,
    pub(super) to: Expr,
    pub(super) step: Option<Expr>,
    pub(super) body: Vec<Step>,
}
