//! The GPU copies most of the time, and no other batch is there to compute meanwhile.

use super::{DeviceFigures, Finding, Occurrence, Says, Scope, Severity, longest_first, no_overlap};
use crate::thresholds;
use activity::units::{duration, percent, share};
use activity::{Direction, Ns, Span};
use figures::own_work::part_in;

/// Copies that take so many times what kernels do are told of a program that waits for the CPU, too.
const TIMES: Ns = 3;

/// Whether it is a range in which FSDP of PyTorch brings the parameters of a layer.
fn is_of_fsdp(name: &str) -> bool {
    name.starts_with("FSDP::pre_") || name.starts_with("FullyShardedDataParallel._pre_")
}

const FSDP: &str = "Keep the parameters on the GPU where memory allows. Else convert them to their smaller type before they are copied.";
const OFFLOAD: &str = "try fully_shard|FullyShardedDataParallel: without CPU offload";

pub(super) fn check(scope: &Scope, f: &DeviceFigures) -> Option<Finding> {
    let alone = f.copy_ns - f.overlap_ns;
    // Without kernels copying is the work. With kernels and several batches what is missing is overlap.
    let is_bound = f.part(alone) >= thresholds::COPY_SHARE;
    // However long the CPU is at other work, there is little beside copies that the GPU does.
    let is_most = cases::LARGE_SHARE.is_reached_by(f.part(alone)) && alone / TIMES > f.compute_ns;
    let overlaps = is_bound
        && cases::ENGINE_SHARE.is_reached_by(f.part(f.compute_ns))
        && !no_overlap::has_one_batch(scope, f);
    // Copies of pageable memory have a cure of their own.
    let pageable = scope.copies(f).iter().filter(|it| it.2.is_pageable());
    let is_pageable = 2 * Span::union_len(pageable.map(|it| it.1).collect()) >= alone;
    // TensorFlow swaps tensors by its own choice, and hides some of it.
    let swaps = scope.has_name(|it| it.contains("_CopyFromGpuToHost"))
        && cases::LARGE_SHARE.is_reached_by(f.part(alone));
    let is_told = swaps || !overlaps && (is_bound || is_most);
    if f.kernels == 0 || !is_told || is_pageable {
        return None;
    }
    let busy = |d: &Direction| f.direction(*d).map_or(0, |d| d.busy_ns);
    let most = Direction::NAMED.iter().map(busy).max()?;
    // Those that take about as long as the longest: none of a tie takes most.
    let takes_most = |d: &Direction| !cases::LARGE_SHARE.is_reached_by(share(most - busy(d), most));
    let directions: Vec<_> = Direction::NAMED.into_iter().filter(takes_most).collect();
    let names: Vec<&str> = directions.iter().map(|it| it.label()).collect();
    let which = match names.as_slice() {
        [one] => format!("{one} copies take most"),
        several => format!("{} copies take equally long", several.join(" and ")),
    };
    // Both engines work at once where something asks them to.
    let [to, back] = [Direction::H2D, Direction::D2H].map(|it| busy(&it));
    let at_once = (to + back - f.copy_ns).max(0);
    let are_apart =
        to.min(back) >= most / 4 && !cases::LARGE_SHARE.is_reached_by(share(at_once, most));
    let mut advice = match swaps {
        true => "TensorFlow swaps tensors to the CPU's memory: swap fewer (a smaller batch, or compute them again), or bring them back earlier.",
        false => "Copy less: keep data on the GPU, copy reused data once, use a smaller data type.",
    }
    .to_owned();
    if are_apart && !swaps {
        advice += " H2D and D2H copies never run at once: copy one batch back while the next one goes, on two streams.";
    }
    let at = (scope.copies(f).iter()).filter(|it| directions.contains(&it.2.direction));
    let (graph, places) = (scope.causes.graph(), at.clone().map(|it| it.0));
    let (mut which, mut change) = (which, "");
    if part_in(scope.trace, graph, places, is_of_fsdp) > 0.5 {
        (advice, change) = (FSDP.to_owned(), OFFLOAD);
        which += ", and bring FSDP's parameters from the CPU's memory";
    }
    let at = at.map(|&(place, span, _)| (span.len(), Occurrence::Row(place)));
    Some(Finding {
        title: format!(
            "copies run {} of the time, {} of it without a kernel beside them; ",
            percent(f.part(f.copy_ns)),
            duration(alone),
        ) + &which,
        severity: Severity::warn_where(is_bound || is_most || swaps),
        says: swaps.then(|| {
            let part = percent(f.part(alone));
            Says::of_kernels(f, format!("{part} goes to copies that swap tensors"))
        }),
        advice,
        change: scope.changes(change, None),
        ..scope.found(f.span_ns, alone, &longest_first(at.collect()))
    })
}
