//! `host`: the host thread works.

use super::super::diagnostics::quoted;
use super::super::expr::Expr;
use super::super::plan::{HostWork, MemRef, OpKind};
use super::super::syntax::decl::BufferRef;
use super::super::syntax::keys::key;
use super::common::only;
use super::{Field, Fields, Form, Loc, Names, Reader, StepKind, Unroll};

const WORDS: &[&str] = &["busy", "sum", "sin", "matmul"];

pub(super) const FORM: Form = Form {
    head: key!(required "host" OneOf(WORDS), "The host thread works."),
    keys: &[
        key!("time" Time, "For \"busy\": how long."),
        key!("of" Buffers, "For \"sum\" and \"sin\" one buffer; for \"matmul\" three, the last one is the product."),
        key!("n" Number, "For \"matmul\": rows and columns."),
    ],
    read: |reader, fields, head| Some(Box::new(read(reader, fields, head)?)),
};

enum Host {
    Busy(Expr),
    Sum(BufferRef),
    Sin(BufferRef),
    Matmul { of: Box<[BufferRef; 3]>, n: Expr },
}

fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<Host> {
    let word = reader.one_of(head, WORDS)?;
    let allowed: &[&str] = match word {
        "busy" => &["time"],
        "matmul" => &["of", "n"],
        _ => &["of"],
    };
    only(reader, fields, word, allowed, &["time", "of", "n"]);
    for key in allowed {
        if !fields.has(key) {
            reader.error(
                fields.loc,
                format!("host = \"{word}\" needs {}", quoted(key)),
            );
        }
    }
    if word == "busy" {
        return reader.optional(fields, "time").map(Host::Busy);
    }
    let of = fields.get("of")?;
    let mut named = reader.buffers(of);
    let wanted = if word == "matmul" { 3 } else { 1 };
    if named.len() != wanted {
        // Fewer than were written means that one could not be read, which is reported already.
        if Reader::list(of).len() != wanted {
            reader.error(
                of.loc,
                format!(
                    "host = \"{word}\" works on {wanted} buffer{}",
                    if wanted == 1 { "" } else { "s" }
                ),
            );
        }
        return None;
    }
    let last = named.pop()?;
    match word {
        "sum" => Some(Host::Sum(last)),
        "sin" => Some(Host::Sin(last)),
        _ => {
            let second = named.pop()?;
            let first = named.pop()?;
            let n = reader.optional(fields, "n")?;
            Some(Host::Matmul {
                of: Box::new([first, second, last]),
                n,
            })
        }
    }
}

impl StepKind for Host {
    fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        match self {
            Host::Busy(time) => names.expr(time),
            Host::Sum(buffer) | Host::Sin(buffer) => names.buffer(buffer),
            Host::Matmul { of, n } => {
                of.iter().for_each(|buffer| names.buffer(buffer));
                names.expr(n);
            }
        }
    }

    fn lower<'f>(&'f self, unroll: &mut Unroll<'_, 'f>, loc: Loc) -> Option<()> {
        unroll.not_captured("host work", loc)?;
        let work = match self {
            Host::Busy(time) => HostWork::Busy(unroll.time(time)?),
            Host::Sum(buffer) => {
                let (at, bytes) = floats(unroll, buffer)?;
                HostWork::Sum(at, bytes)
            }
            Host::Sin(buffer) => {
                let (at, bytes) = floats(unroll, buffer)?;
                HostWork::Sin(at, bytes)
            }
            Host::Matmul { of, n } => matmul(unroll, of, n)?,
        };
        unroll.emit(OpKind::Host(work), loc)
    }
}

/// The host side of a buffer, as f32 values.
fn floats<'f>(unroll: &mut Unroll<'_, 'f>, reference: &'f BufferRef) -> Option<(MemRef, u64)> {
    let buffer = unroll.buffer(reference)?;
    unroll.host_side(buffer, reference.loc)?;
    Some((
        MemRef { buffer, offset: 0 },
        unroll.plan.buffers[buffer].bytes / 4 * 4,
    ))
}

fn matmul<'f>(unroll: &mut Unroll<'_, 'f>, of: &'f [BufferRef; 3], n: &Expr) -> Option<HostWork> {
    let n = unroll.integer(n, 1..=32_768, "the size of a matrix")? as u32;
    let needed = u64::from(n) * u64::from(n) * 4;
    let mut ids = [0; 3];
    for (id, reference) in ids.iter_mut().zip(of) {
        *id = unroll.buffer(reference)?;
        unroll.host_side(*id, reference.loc)?;
        let bytes = unroll.plan.buffers[*id].bytes;
        if bytes < needed {
            let name = quoted(&unroll.plan.buffers[*id].name);
            unroll.error(
                reference.loc,
                format!("{name} has {bytes} B, and a {n} x {n} matrix of f32 has {needed} B"),
            )?;
        }
    }
    let [a, b, c] = ids;
    Some(HostWork::Matmul(a, b, c, n))
}
