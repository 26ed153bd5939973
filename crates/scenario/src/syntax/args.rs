//! Kernel arguments, of kernels and of the steps that launch them.

use toml::de::DeValue;

use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, Loc};
use super::decl::ArgDecl;
use super::reader::{Field, Reader};

/// Kernel arguments.
pub(crate) fn args(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<ArgDecl> {
    let mut args = Vec::new();
    for part in Reader::list(field) {
        let arg = match part.value {
            DeValue::String(text) if text.contains('[') => {
                reader.buffer(part).map(ArgDecl::Element)
            }
            _ => reader.expr(part).map(ArgDecl::Expr),
        };
        // A placeholder keeps the number of arguments right when one of them could not be read.
        args.push(arg.unwrap_or_else(|| ArgDecl::Expr(placeholder(part.loc))));
    }
    args
}

/// Stands in for a value that could not be read, which has been reported.
pub(crate) fn placeholder(loc: Loc) -> Expr {
    Expr::constant(Value::Int(1, Unit::None), loc)
}
