//! Attention whose scores go through memory: a product, a softmax and the next product are kernels of their own.

use crate::communication::has_any;
use crate::device::DeviceFigures;
use activity::{Ns, Span, What};
use trace::{LaneId, Trace};

/// So many elementwise kernels lie between at most: a scale, a mask, casts to single precision and back, a dropout.
const BETWEEN: usize = 6;

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Product,
    Softmax,
    EachElement,
    Other,
}

impl Does {
    /// By a kernel's name, as PyTorch and its libraries call them. A logarithm of the softmax is a loss's.
    fn of(name: &str) -> Does {
        let low = name.to_ascii_lowercase();
        if has_any(&low, "softmaxforward softmax_warp_forward") && !low.contains("logsoftmax") {
            Does::Softmax
        } else if has_any(&low, "gemm nvjet") {
            Does::Product
        } else if has_any(&low, "elementwise dropout") {
            Does::EachElement
        } else {
            Does::Other
        }
    }
}

/// Whether a kernel of such a name is a softmax.
pub fn is_softmax(name: &str) -> bool {
    Does::of(name) == Does::Softmax
}

/// Whether a kernel is FlashAttention-2's, forward or backward: it uses tensor cores as GPUs of 8.x have them. Those of FlashAttention-3
/// are called "FlashAttnFwdSm90"; those that read a cache for few rows ("splitkv") wait for memory.
pub fn is_of_ampere(name: &str) -> bool {
    has_any(name, "flash_fwd_kernel flash_bwd_dq_dk_dv")
}

/// Whether a library has such a kernel for GPUs from 9.0 on alone.
pub fn is_of_hopper(name: &str) -> bool {
    has_any(name, "nvjet sm90_xmma sm90_gemm")
}

/// Attention of a device that is not fused, in ns.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// What it takes with both products.
    pub all: Ns,
    /// What lies between the two.
    pub inside: Ns,
    /// The softmaxes, with what each takes.
    pub at: Vec<(Ns, (LaneId, usize))>,
}

impl Scores {
    /// Of kernels that start within `window`, or of all.
    pub fn of(trace: &Trace, f: &DeviceFigures, window: Option<Span>) -> Scores {
        let mut found = Scores::default();
        for (id, lane) in trace.streams_of(f.index) {
            let rows = lane.rows_in(window);
            let kernels = rows.filter_map(|row| match trace.what(id, row) {
                What::Kernel(it) => {
                    let name = trace.names().full(trace.shape(it.shape).name);
                    Some((Does::of(name), lane.span(row).len(), (id, row)))
                }
                _ => None,
            });
            found.add(&kernels.collect::<Vec<_>>());
        }
        found
    }

    fn add(&mut self, ran: &[(Does, Ns, (LaneId, usize))]) {
        let sum = |of: &[(Does, Ns, _)]| of.iter().map(|it| it.1).sum::<Ns>();
        for softmax in (0..ran.len()).filter(|it| ran[*it].0 == Does::Softmax) {
            let ends = |it: &usize| ran[*it].0 != Does::EachElement;
            let is_product = |it: &usize| ran[*it].0 == Does::Product;
            let mut before = (softmax.saturating_sub(BETWEEN)..softmax).rev();
            let mut behind = softmax + 1..ran.len().min(softmax + 1 + BETWEEN);
            let (before, behind) = (before.find(ends), behind.find(ends));
            if let (Some(first), Some(last)) =
                (before.filter(is_product), behind.filter(is_product))
            {
                self.all += sum(&ran[first..=last]);
                self.inside += sum(&ran[first + 1..last]);
                self.at.push((ran[softmax].1, ran[softmax].2));
            }
        }
    }
}
