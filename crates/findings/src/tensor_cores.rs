//! Arithmetic that tensor cores could do, and tensors that are turned around for them.

use rustc_hash::FxHashMap;

use super::limits::{full, name, time};
use super::{Change, Finding, Rule, Says, Scope, Severity, configs};
use crate::thresholds;
use activity::occupancy::blocks;
use activity::text::counted;
use activity::{DeviceInfo, NameId, Ns};
use figures::DeviceFigures;
use figures::busy::mostly;
use figures::class::Class;
use figures::communication::has_any;
use figures::configs::Config;
use figures::remarks::{FP32_ATTENTION, LAYOUT, is_fp32, is_half};
use figures::tensor_cores::{BF16_TIMES, is_halved, is_small, lacks_tensor_cores, times};

/// A product of matrices that takes less gains nothing by tensor cores.
const MOMENT: Ns = 5_000;

/// The kernels that multiply matrices while tensor cores do nothing, where they take much, and how that is known.
fn without_tensor<'a>(
    scope: &Scope,
    f: &DeviceFigures,
    all: &[&'a Config],
) -> Option<(Vec<&'a Config>, &'static str)> {
    if lacks_tensor_cores(&scope.trace.devices()[f.index].info) {
        return None;
    }
    // The simulator takes tensor cores for idle, whatever a kernel does.
    let is_sampled = configs::is_sampled(scope, f) && !scope.trace.source.simulated;
    let idles = |it: &Config, unseen: f64| {
        it.row.counted.tensor.map_or(unseen, |it| it.value) < thresholds::NO_TENSOR
    };
    let is_counted = |it: &&&Config| {
        let name = full(scope, it).to_ascii_lowercase();
        let multiplies = || {
            it.row.class == Class::Compute
                && has_any(&name, "gemm matmul fprop dgrad wgrad")
                && !has_any(&name, "dgemm zgemm f64")
        };
        let is_dot = || configs::is_worth(scope, f, it.row.total_ns) && dot(scope, it).is_some();
        is_sampled && idles(it, 1.0) && (multiplies() || is_dot())
    };
    let counted: Vec<&Config> = all.iter().filter(is_counted).copied().collect();
    let is_much = |of: &[&Config]| configs::is_worth(scope, f, time(of));
    // What few blocks do, or a moment, waits for memory and for its launch.
    let sms = scope.trace.devices()[f.index].info.multiprocessors;
    let is_moment = |it: &Config| {
        let blocks = blocks(&it.shape);
        blocks > 0 && blocks < u64::from(sms.div_ceil(10)) || it.usual < MOMENT
    };
    let named = |it: &&&Config| is_fp32(full(scope, it)) && idles(it, 0.0) && !is_moment(it);
    let (of, how): (Vec<&Config>, _) = match is_much(&counted) {
        // Those that counters call limited by something else multiply so, too.
        true => (
            all.iter()
                .filter(|it| is_counted(it) || named(it))
                .copied()
                .collect(),
            "tensor cores are idle while kernels multiply matrices",
        ),
        false => (
            all.iter().filter(named).copied().collect(),
            "kernels multiply matrices in fp32 without tensor cores, by their names,",
        ),
    };
    // Attention that uses tensor cores in its own way is told apart: as whichever takes more.
    let (split, products): (Vec<_>, Vec<_>) = of.into_iter().partition(|it| is_split(scope, it));
    let (of, how) = match time(&split) > time(&products) {
        true => (split, SPLITS),
        false => (products, how),
    };
    is_much(&of).then_some((of, how))
}

/// Where a kernel of Triton multiplies matrices, where its source can be read here.
fn dot(scope: &Scope, it: &Config) -> Option<String> {
    scope.sources(None).within(full(scope, it), &["tl.dot("])
}

/// Measured on an H200: what Triton makes of a product in fp32 was 11 times as slow as that in TF32. It reaches half of what a library's does.
const OF_TRITON: f64 = 2.0;

/// Whether a kernel of attention multiplies parts of fp32 on tensor cores.
fn is_split(scope: &Scope, it: &Config) -> bool {
    let name = full(scope, it).to_ascii_lowercase();
    has_any(&name, FP32_ATTENTION) && has_any(&name, "sm80 sm90")
}

const SPLITS: &str = "kernels of attention split fp32 into several products, by their names,";

/// What is said where values are of half precision already.
const OF_HALF: &str = "They are in half precision already: give the tensor cores shapes that they take, with channels and sides in multiples of 8.";

/// Products of matrices that issue instructions all the time while tensor cores do nothing, by counters. Without them names tell what
/// the tensor cores cannot have done.
pub(super) fn no_tensor(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let info = &scope.trace.devices()[f.index].info;
    // Before 7.0 there are no tensor cores; 7.x have them for fp16 alone.
    let all: Vec<&Config> = configs::of_device(scope, f).iter().collect();
    let (of, how) = without_tensor(scope, f, &all)?;
    let mut by_name: FxHashMap<NameId, (Ns, &Config)> = FxHashMap::default();
    for it in &of {
        by_name.entry(it.shape.name).or_insert((0, it)).0 += it.row.total_ns;
    }
    // In whatever shapes it was launched.
    let (of_most, most) = by_name.into_values().max_by_key(|it| (it.0, it.1.first))?;
    let is_split = is_split(scope, most);
    let is_half = is_half(full(scope, most));
    let dot = dot(scope, most).filter(|_| configs::is_sampled(scope, f));
    let precision = precision(scope, info, most, &all)?;
    // Where the GPU waits for the CPU, faster kernels alone bring little; a card may multiply in TF32 no faster.
    let waits = cases::LARGE_SHARE.is_reached_by(f.part(f.idle_ns));
    let of_card = |precision| {
        let more = if dot.is_some() { OF_TRITON } else { 1.0 };
        times(info, precision).map(|[least, most]| [least, more * most])
    };
    let by_card = of_card(precision).filter(|_| !is_half && !is_split);
    let known = by_card.filter(|_| !waits);
    let part = configs::kernel_time(scope, f);
    let of_it = part.of_it(time(&of));
    let why = match is_split {
        true => format!("{of_it} in attention in fp32"),
        false => format!("{of_it} in fp32 products without tensor cores"),
    };
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "{how} for {}, {} {}",
            part.words(time(&of)),
            mostly(of_most, time(&of)),
            name(scope, most),
        ),
        advice: match is_half {
            true => OF_HALF.to_owned(),
            false if is_split => format!(
                "{}Where it is precise enough, use {precision}: the tensor cores then multiply once instead of several times.",
                configs::first(f)
            ),
            false => format!(
                "{}Where it is precise enough, use {precision}: tensor cores multiply {} as fast.",
                configs::first(f),
                match by_card {
                    Some([_, most]) if most <= BF16_TIMES => "up to twice",
                    _ => "several times",
                }
            ),
        },
        // Of what runs beside other kernels or copies nobody knows what it saves.
        estimated: known
            .map(|times| saved(scope, &of, times))
            .map(|[least, most]| match precision.contains("bf16") {
                // Other kernels move half of the bytes then.
                true => [least, most + (f.compute_ns - time(&of)).max(0) / 2],
                false => [least, most],
            })
            .filter(|it| !part.is_beside() && it[1] <= f.compute_ns - f.overlap_ns),
        tried_first: precision
            .starts_with("TF32")
            .then(|| of_card("TF32").map(|it| saved(scope, &of, it)[1]))
            .flatten(),
        says: (!is_half).then(|| Says::of_kernels(f, why)),
        instead_of: if dot.is_some() {
            &[Rule::LatencyBound]
        } else {
            &[]
        },
        change: match info.capability.0 {
            _ if dot.is_some() => scope
                .changes("tl.dot: input_precision=\"tf32\"", None)
                .into_iter()
                .map(|it| Change {
                    place: dot.clone(),
                    ..it
                })
                .collect(),
            // Its words are those of TF32.
            _ if is_half || !precision.contains("TF32") => Default::default(),
            // Its kernels are chosen while an engine is built.
            _ if scope.has_name(|it| it.starts_with("trt_")) => scope.change("engine", None),
            _ if precision.starts_with("bf16") => scope.change("bf16", None),
            _ => scope.change("tensor", None),
        },
        ..scope.found(f.span_ns, time(&of), &configs::places(scope, f, &of))
    })
}

/// What has tensor cores on such a card, in place of what takes most; `None` where it has none.
fn precision(
    scope: &Scope,
    info: &DeviceInfo,
    most: &Config,
    all: &[&Config],
) -> Option<&'static str> {
    let is_fast = |it: &&Config| full(scope, it).contains("tf32");
    Some(match info.capability.0 {
        // A convolution in fp32 though others take TF32 has no such kernel; products of matrices are asked for it apart.
        8.. if is_split(scope, most) => "bf16 or fp16",
        8.. if is_convolution(scope, most) && all.iter().any(is_fast) => "bf16",
        8.. if is_small(info) && is_halved(info) => "bf16 (TF32 is no faster on this card)",
        8.. if is_small(info) => "bf16 (TF32 is at most twice as fast on this card)",
        8.. => "TF32 or bf16",
        7 => "fp16",
        0 => "a lower precision",
        _ => return None,
    })
}

fn is_convolution(scope: &Scope, it: &Config) -> bool {
    let name = full(scope, it).to_ascii_lowercase();
    has_any(&name, "conv scudnn winograd wgrad dgrad fprop")
}

/// What products of matrices save at least and at most that run so many times as fast. Convolutions gain less where they multiply less to
/// begin with (Winograd).
fn saved(scope: &Scope, of: &[&Config], [least, most]: [f64; 2]) -> [Ns; 2] {
    let at_least = |it: &&Config| {
        let times = match is_convolution(scope, it) {
            true => least.min(2.0),
            false => least,
        };
        it.row.total_ns as f64 * (1.0 - 1.0 / times)
    };
    let at_most = time(of) as f64 * (1.0 - 1.0 / most);
    [of.iter().map(at_least).sum(), at_most].map(|it| it as Ns)
}

/// cuDNN's kernels that turn a tensor's layout around before a convolution or behind it.
pub(super) fn layout(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let all = configs::such(scope, f, |it| has_any(it, LAYOUT));
    if !cases::LAYOUT_SHARE.is_reached_by(f.part(time(&all))) {
        return None;
    }
    let found = scope.found(f.span_ns, time(&all), &configs::places(scope, f, &all));
    let is_flat = scope.has_name(|it| it == "aten::conv1d")
        && !scope.has_name(|it| it == "aten::conv2d" || it == "aten::conv3d");
    let (advice, change) = match is_flat {
        true => (
            "1-D convolutions know no channels_last: write them as conv2d of height 1 in that order.",
            "",
        ),
        false => (
            "Keep images and weights in the order that the convolutions read.",
            "layout",
        ),
    };
    Some(Finding {
        title: format!(
            "{} turn tensors between NCHW and NHWC: {}",
            counted(found.count, "kernel", "kernels"),
            configs::kernel_time(scope, f).words(time(&all)),
        ),
        advice: advice.to_owned(),
        change: scope.change(change, None),
        severity: found
            .severity
            .keep_where(cases::LARGE_SHARE.is_reached_by(f.part(time(&all)))),
        ..found
    })
}
