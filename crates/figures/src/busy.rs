//! What a busy GPU is busy with: the class of most kernel time, for its verdict.

use activity::units::{percent, share};
use activity::{Ns, Span};
use trace::Trace;

use crate::class::{Class, NEAR};
use crate::shapes::{self, ShapeRow};
use crate::tables;

/// A class of less of the kernel time is not worth a word.
const MUCH: f64 = 0.25;

/// Of kernel time "61 % of it memory-bound at 88 % of DRAM's peak"; `None` where nobody sampled, or no class has much.
pub fn words(trace: &Trace, window: Option<Span>) -> Option<String> {
    if !trace.is_sampled() {
        return None;
    }
    let rows = tables::kernels(trace, window);
    let all: Ns = rows.iter().map(|it| it.total_ns).sum();
    let of = |class| {
        let shapes = rows.iter().flat_map(|it| &it.shapes);
        shapes.filter(move |it: &&ShapeRow| it.class == class)
    };
    let time = |class: &Class| of(*class).map(|it| it.total_ns).sum::<Ns>();
    let classes = [Class::Memory, Class::Compute, Class::Latency, Class::Launch];
    let class = classes.into_iter().max_by_key(time)?;
    let part = share(time(&class), all);
    let what = match class {
        Class::Memory => {
            let dram = shapes::mean(of(class), |it| it.dram)?;
            format!("memory-bound at {} of DRAM's peak", percent(dram))
        }
        Class::Compute => match shapes::mean(of(class), |it| it.tensor) {
            Some(it) if it >= NEAR => {
                format!("compute-bound at {} of the tensor peak", percent(it))
            }
            _ => "compute-bound".to_owned(),
        },
        Class::Latency => "near no peak".to_owned(),
        _ => "in kernels shorter than their launches".to_owned(),
    };
    (part >= MUCH).then(|| format!("{} of it {what}", percent(part)))
}
