//! What the tables of a file declare, steps apart.

use std::sync::Arc;

use super::super::expr::value::Operator;
use super::super::expr::{Expr, Loc};
use super::super::plan::{Fill, HostMemory};
use super::super::signature::Param as KernelParam;

/// A name and where it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub(crate) text: String,
    pub(crate) loc: Loc,
}

/// What steps may use.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    pub(crate) params: Vec<ParamDecl>,
    pub(crate) sweep: Option<SweepDecl>,
    pub(crate) buffers: Vec<BufferDecl>,
    pub(crate) kernels: Vec<KernelDecl>,
    pub(crate) streams: Vec<StreamDecl>,
}

/// `name = value` of `[params]`.
#[derive(Debug)]
pub(crate) struct ParamDecl {
    pub(crate) name: Named,
    pub(crate) value: Expr,
}

#[derive(Debug)]
pub(crate) struct SweepDecl {
    pub(crate) param: Named,
    pub(crate) values: SweepValues,
    pub(crate) loc: Loc,
}

#[derive(Debug)]
pub(crate) enum SweepValues {
    List(Vec<Expr>),
    /// The first, the last, and what makes the next of each.
    Grown([Expr; 3], Operator),
}

/// `[buffers.NAME]`.
#[derive(Debug)]
pub(crate) struct BufferDecl {
    pub(crate) name: Named,
    pub(crate) bytes: Expr,
    pub(crate) count: Option<Expr>,
    pub(crate) host: HostMemory,
    /// `None` for host memory alone.
    pub(crate) device: Option<Expr>,
    pub(crate) fill: Fill,
    pub(crate) is_allocated_by_steps: bool,
}

/// `[kernels.NAME]`.
#[derive(Debug)]
pub(crate) struct KernelDecl {
    pub(crate) name: Named,
    pub(crate) file: Named,
    pub(crate) entry: Named,
    pub(crate) grid: Vec<Expr>,
    pub(crate) block: Vec<Expr>,
    pub(crate) shared: Option<Expr>,
    pub(crate) args: Vec<ArgDecl>,
    pub(crate) args_loc: Loc,
    pub(crate) flops: Option<Expr>,
    pub(crate) bytes: Option<Expr>,
    pub(crate) time: Option<Expr>,
    /// The source and the entry's parameters; `None` when it was not found, which is reported.
    pub(crate) code: Option<(Arc<str>, Vec<KernelParam>)>,
}

/// A kernel argument.
#[derive(Clone, Debug)]
pub(crate) enum ArgDecl {
    /// "batch\[i\]".
    Element(BufferRef),
    /// An expression, or the bare name of a buffer.
    Expr(Expr),
}

impl ArgDecl {
    pub(crate) fn loc(&self) -> Loc {
        match self {
            ArgDecl::Element(buffer) => buffer.loc,
            ArgDecl::Expr(expr) => expr.loc,
        }
    }
}

/// `[streams.NAME]`.
#[derive(Debug)]
pub(crate) struct StreamDecl {
    pub(crate) name: Named,
    pub(crate) device: Option<Expr>,
    pub(crate) priority: Option<Expr>,
}

/// A buffer, or one of an array.
#[derive(Clone, Debug)]
pub(crate) struct BufferRef {
    pub(crate) name: String,
    pub(crate) name_loc: Loc,
    pub(crate) index: Option<Expr>,
    pub(crate) loc: Loc,
}
