//! Kernels that only turn values into another type.

use activity::What;
use activity::units::{duration, percent, share};
use causes::graph::Graph;
use trace::Trace;

use crate::communication::has_any;

/// What bitsandbytes, GPTQ, AWQ and llama.cpp call kernels that unpack weights.
const UNPACKS: &str = "kDequantize dequantize_block dequantize_weight dequantize_4bit dequant_kernel Dequant4Bit Dequant8Bit";

/// Those that multiply what they unpack do more.
const MULTIPLIES: &str = "gemm gemv mul_mat matmul marlin moe Marlin";

/// What PyTorch and llama.cpp call kernels that convert.
const CONVERTS: &str = "float16_copy_kernel convert_unary float8_copy_kernel";

/// What PyTorch calls its copies, and what of their names tells that types differ.
const COPIES: &str = "direct_copy_kernel";
const CASTS: &str = "LoadWithCast StoreWithCast";

/// Whether a kernel unpacks quantised values and does no more.
fn unpacks(name: &str) -> bool {
    has_any(name, UNPACKS) && !has_any(name, MULTIPLIES)
}

/// Whether a kernel converts from one type to another and does no more.
fn converts(name: &str) -> bool {
    has_any(name, CONVERTS) || name.contains(COPIES) && has_any(name, CASTS)
}

/// Conversions of this part are told beside as many kernels of single values, which go with them where kernels are fused.
const BESIDE: f64 = 0.05;
const VALUES: f64 = 0.2;

/// "unpacking quantised weights and converting types take 6.39 ms, 49 % of kernel time", of a device where it is a tenth or more.
/// Beside other elementwise kernels less is told.
pub fn told(trace: &Trace, graph: &Graph, device: usize) -> Option<String> {
    let kinds: Vec<[bool; 3]> = (0..trace.names().len() as u32)
        .map(|id| trace.names().full(id))
        .map(|name| {
            [
                unpacks(name),
                converts(name),
                name.contains("elementwise_kernel"),
            ]
        })
        .collect();
    let (mut sums, mut all) = ([0, 0, 0], 0);
    for &op in graph.ops.of_device(device) {
        if let What::Kernel(it) = graph.what(trace, op) {
            let time = graph.ops.span(op).len();
            all += time;
            if let Some(kind) = kinds.get(trace.shape(it.shape).name as usize) {
                sums[0] += if kind[0] { time } else { 0 };
                sums[1] += if kind[1] { time } else { 0 };
                sums[2] += if kind[2] && !kind[1] { time } else { 0 };
            }
        }
    }
    let [unpacking, converting, others] = sums;
    let time = unpacking + converting;
    let what = match (unpacking > 0, converting > 0) {
        (true, true) => "unpacking quantised weights and converting types take",
        (true, false) => "unpacking quantised weights takes",
        _ => "converting types takes",
    };
    let part = share(time, all);
    let cure = match 2 * unpacking > converting {
        true => ": try kernels that multiply quantised weights",
        false => "",
    };
    let is_beside = part >= BESIDE && share(time + others, all) >= VALUES;
    let beside = match is_beside && others > 0 {
        true => format!(", and other elementwise kernels {}", duration(others)),
        false => String::new(),
    };
    (cases::LARGE_SHARE.is_reached_by(part) || is_beside).then(|| {
        let (time, part) = (duration(time), percent(part));
        format!("{what} {time}, {part} of kernel time{beside}{cure}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::testing::Scene;

    #[test]
    fn what_only_converts_is_told_together() {
        let cast = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}, memory::LoadWithCast<1>, memory::StoreWithCast<1>>";
        let of = |names: &[(&str, i64)]| {
            let (mut scene, mut at) = (Scene::new(), 0);
            for (name, time) in names {
                scene.kernel(name, 1, at, at + time * 1_000_000);
                at += time * 1_000_000 + 1_000;
            }
            let trace = scene.trace();
            told(&trace, &Graph::new(&trace), 0)
        };
        let unpack = "void kDequantizeBlockwise<__half, 512, 64, 8, 2>(float*)";
        let both = "unpacking quantised weights and converting types take 6.00 ms, 60 % of kernel time: try kernels that multiply quantised weights";
        assert_eq!(
            of(&[(unpack, 3), (cast, 3), ("ampere_s16816gemm", 4)]).as_deref(),
            Some(both)
        );
        let casts = "converting types takes 2.00 ms, 20 % of kernel time";
        assert_eq!(of(&[(cast, 2), ("gemm", 8)]).as_deref(), Some(casts));
        // A twentieth beside a fifth of single values, and beside less.
        let add =
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>";
        let beside = "converting types takes 1.00 ms, 5 % of kernel time, and other elementwise kernels 3.00 ms";
        let with = |time| of(&[(cast, 1), (add, time), ("gemm", 19 - time)]);
        assert_eq!(with(3).as_deref(), Some(beside));
        assert_eq!(with(2), None);
        // A twentieth; a copy of one type; a product that unpacks what it multiplies.
        assert_eq!(of(&[(cast, 1), ("gemm", 19)]), None);
        assert_eq!(
            of(&[
                ("elementwise_kernel<direct_copy_kernel_cuda>", 5),
                ("gemm", 5)
            ]),
            None
        );
        assert_eq!(of(&[("dequantize_block_gemm", 5), ("gemm", 5)]), None);
    }
}
