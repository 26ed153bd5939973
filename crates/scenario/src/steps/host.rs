//! `host`: the host thread works.

use super::super::plan::{HostWork, MemRef};
use super::super::syntax::decl::BufferRef;
use super::common::only;
use super::*;

const WORDS: &[&str] = &["busy", "sum", "sin", "matmul"];

pub(super) const FORM: Form = Form {
    check,
    ..Form::new(
        key!(required "host" OneOf(WORDS), "The host thread works."),
        &[
            key!("time" Time, "For \"busy\": how long."),
            key!("of" Buffers, "For \"sum\" and \"sin\" one buffer; for \"matmul\" three, the last one is the product."),
            key!("n" Number, "For \"matmul\": rows and columns."),
        ],
        lower,
    )
};

fn check(step: &Step, fields: &Fields<'_>, reader: &mut Reader<'_>) {
    let word = step.word();
    let allowed: &[&str] = match word {
        "busy" => &["time"],
        "matmul" => &["of", "n"],
        _ => &["of"],
    };
    only(reader, fields, word, allowed, &["time", "of", "n"]);
    for key in allowed.iter().filter(|key| !fields.has(key)) {
        let message = format!("host = \"{word}\" needs {}", quoted(key));
        reader.error(fields.loc, message);
    }
    let (wanted, s) = if word == "matmul" { (3, "s") } else { (1, "") };
    let of = fields.get("of").filter(|_| allowed.contains(&"of"));
    if let Some(of) = of.filter(|of| Reader::list(*of).len() != wanted) {
        let message = format!("host = \"{word}\" works on {wanted} buffer{s}");
        reader.error(of.loc, message);
    }
}

fn lower<'f>(step: &'f Step, unroll: &mut Unroll<'_, 'f>) -> Option<()> {
    unroll.not_captured("host work", step.loc)?;
    let work = match (step.word(), step.buffers("of")) {
        ("busy", _) => HostWork::Busy(unroll.time(step.expr("time")?)?),
        ("matmul", of) => matmul(unroll, of, step.expr("n")?)?,
        (word, of) => {
            let reference = of.first()?;
            let buffer = unroll.buffer(reference)?;
            unroll.host_side(buffer, reference.loc)?;
            let at = MemRef { buffer, offset: 0 };
            // The host side of a buffer, as f32 values.
            let bytes = unroll.plan.buffers[buffer].bytes / 4 * 4;
            match word {
                "sum" => HostWork::Sum(at, bytes),
                _ => HostWork::Sin(at, bytes),
            }
        }
    };
    unroll.emit(OpKind::Host(work), step.loc)
}

fn matmul<'f>(unroll: &mut Unroll<'_, 'f>, of: &'f [BufferRef], n: &Expr) -> Option<HostWork> {
    let n = unroll.integer(n, 1..=32_768, "the size of a matrix")? as u32;
    let needed = u64::from(n) * u64::from(n) * 4;
    let mut ids = [0; 3];
    for (id, reference) in ids.iter_mut().zip(of) {
        *id = unroll.buffer(reference)?;
        unroll.host_side(*id, reference.loc)?;
        let bytes = unroll.plan.buffers[*id].bytes;
        if bytes < needed {
            let name = quoted(&unroll.plan.buffers[*id].name);
            let message =
                format!("{name} has {bytes} B, and a {n} x {n} matrix of f32 has {needed} B");
            return unroll.error(reference.loc, message);
        }
    }
    let [a, b, c] = ids;
    Some(HostWork::Matmul(a, b, c, n))
}
