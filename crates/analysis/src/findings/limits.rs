//! What limits kernels, by their launch and by counters: a wait, a last wave, arithmetic without tensor cores, memory.

use rustc_hash::FxHashMap;

use super::configs::{self, Config};
use super::{Finding, Occurrence, Scope, Severity, declared, thresholds};
use crate::DeviceFigures;
use crate::class::{Class, NO_PEAK};
use crate::collectives::is_collective;
use crate::figures::share;
use crate::verdict::NAME_MAX;
use activity::text::{counted, cut_middle};
use activity::units::{duration, percent};
use activity::{NameId, Ns};

/// The device's figures and its configurations, where counters tell of them.
fn sampled<'a>(scope: &'a Scope, device: usize) -> Option<(&'a DeviceFigures, Vec<Config>)> {
    let f = &scope.devices[device];
    configs::is_sampled(scope, f).then(|| (f, configs::of_device(scope, f)))
}

fn name(scope: &Scope, name: NameId) -> String {
    cut_middle(scope.trace.names().short(name), NAME_MAX)
}

/// A kernel near no peak that is most of the time. `under-filled-gpu` tells of too few blocks, `below-roof` of declared
/// bytes.
pub(super) fn latency(scope: &Scope, device: usize) -> Option<Finding> {
    let (f, all) = sampled(scope, device)?;
    let declared: Vec<&str> = declared::kernels(scope, f)
        .iter()
        .map(|it| it.entry)
        .collect();
    let mut by: FxHashMap<NameId, Vec<&Config>> = FxHashMap::default();
    for it in &all {
        let sms = f64::from(scope.trace.devices()[f.index].info.multiprocessors);
        let idle = it.row.fill.idle_sms.map_or(0.0, f64::from);
        let is_full = sms - idle >= thresholds::UNDER_FILLED_BLOCKS * sms;
        let is_new = !declared.contains(&scope.trace.names().full(it.shape.name));
        if it.row.class == Class::Latency && is_full && is_new {
            by.entry(it.shape.name).or_default().push(it);
        }
    }
    let time = |of: &[&Config]| of.iter().map(|it| it.row.total_ns).sum::<Ns>();
    let (most, of) = by.into_iter().max_by_key(|(name, of)| (time(of), *name))?;
    let part = share(time(&of), f.recorded_ns());
    if part < thresholds::LATENCY_SHARE {
        return None;
    }
    // At its roof it takes what the busier of memory and arithmetic is busy for.
    let busy = |it: &&Config| {
        let seen = &it.row.counted;
        let shares = [seen.dram, seen.tensor, seen.issue].into_iter().flatten();
        shares.map(|it| it.value).fold(0.0, f64::max).min(1.0) * it.row.total_ns as f64
    };
    let roof = of.iter().map(busy).sum::<f64>() as Ns;
    let why = match of[0].row.limit.as_str() {
        NO_PEAK => String::new(),
        why => format!(": {why}"),
    };
    Some(Finding {
        title: format!(
            "{} takes {} ({}), limited by neither memory nor compute{why}",
            name(scope, most),
            duration(time(&of)),
            percent(part),
        ),
        advice: format!(
            "At its roofline limit, an upper bound, it would take {} (`scale` in whatif). Raise occupancy or parallelism.",
            duration(roof)
        ),
        ..scope.found(
            f.span_ns,
            time(&of) - roof,
            &configs::places(of.into_iter()),
        )
    })
}

/// Grids whose last wave leaves most places for blocks empty, by the launch alone.
pub(super) fn tail(scope: &Scope, device: usize) -> Option<Finding> {
    let f = &scope.devices[device];
    let all = configs::of_device(scope, f);
    let kernels: Ns = all.iter().map(|it| it.row.total_ns).sum();
    // Kernels beside each other fill each other's last waves.
    if kernels as f64 > f.compute_ns as f64 * thresholds::CONCURRENT {
        return None;
    }
    let is_long =
        |it: &Config| it.row.total_ns >= thresholds::UNDER_FILLED_MIN * it.row.count as Ns;
    // At its roof a kernel gains nothing by fuller waves.
    let may_gain = |it: &Config| matches!(it.row.class, Class::Unknown | Class::Latency);
    let tailed = all.iter().filter(|it| {
        let is_meant = is_collective(scope.trace.names().full(it.shape.name));
        let tail = it.row.fill.tail_share.unwrap_or(0.0);
        tail >= thresholds::TAIL_SHARE && is_long(it) && may_gain(it) && !is_meant
    });
    let tailed: Vec<&Config> = tailed.collect();
    let lost = |it: &&Config| it.row.fill.tail_share.unwrap_or(0.0) * it.row.total_ns as f64;
    let lost = tailed.iter().map(lost).sum::<f64>() as Ns;
    if share(lost, f.recorded_ns()) < thresholds::LARGE_SHARE {
        return None;
    }
    let most = tailed.first()?;
    let found = scope.found(f.span_ns, lost, &configs::places(tailed.iter().copied()));
    Some(Finding {
        // Without counters nobody knows whether anything waits for that wave.
        severity: match most.row.class {
            Class::Unknown => Severity::Info,
            _ => found.severity,
        },
        title: format!(
            "the last wave of {} leaves most SMs idle: {}, mostly {} ({:.2} waves)",
            counted(tailed.iter().map(|it| it.row.count).sum(), "kernel", "kernels"),
            duration(tailed.iter().map(|it| it.row.total_ns).sum()),
            name(scope, most.shape.name),
            most.row.fill.waves.unwrap_or(0.0)
        ),
        advice: "Choose sizes whose blocks fill whole waves, or launch one wave of blocks that loop (a persistent kernel).".to_owned(),
        ..found
    })
}

/// Products of matrices that issue instructions all the time while tensor cores do nothing.
pub(super) fn no_tensor(scope: &Scope, device: usize) -> Option<Finding> {
    let (f, all) = sampled(scope, device)?;
    // The simulator takes tensor cores for idle, whatever a kernel does.
    if scope.trace.source.simulated {
        return None;
    }
    let is_product = |it: &&Config| {
        let name = scope.trace.names().full(it.shape.name).to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        has(&["gemm", "matmul", "fprop", "dgrad", "wgrad"]) && !has(&["dgemm", "zgemm", "f64"])
    };
    let is_idle = |it: &&Config| {
        let tensor = it.row.counted.tensor;
        it.row.class == Class::Compute && tensor.is_some_and(|it| it.value < thresholds::NO_TENSOR)
    };
    let found: Vec<&Config> = all.iter().filter(is_product).filter(is_idle).collect();
    let time: Ns = found.iter().map(|it| it.row.total_ns).sum();
    if share(time, f.recorded_ns()) < thresholds::LARGE_SHARE {
        return None;
    }
    Some(Finding {
        severity: Severity::Info,
        title: format!(
            "tensor cores are idle while {} multiplies matrices for {}",
            name(scope, found.first()?.shape.name),
            duration(time)
        ),
        advice: "Where less precision is enough, use TF32 or bf16: torch.set_float32_matmul_precision(\"high\").".to_owned(),
        ..scope.found(f.span_ns, time, &configs::places(found.into_iter()))
    })
}

/// Elementwise kernels of one size in a row, each at the speed of memory by its counters.
pub(super) fn chain(scope: &Scope, device: usize) -> Option<Finding> {
    let (f, all) = sampled(scope, device)?;
    let is_elementwise = |it: &&Config| {
        scope
            .trace
            .names()
            .full(it.shape.name)
            .contains("elementwise")
    };
    let bound = all.iter().filter(|it| it.row.class == Class::Memory);
    let of_config = bound.filter(is_elementwise).flat_map(|it| {
        let size = (it.shape.grid, it.shape.block);
        it.at.iter().map(move |&(length, at)| (at, length, size))
    });
    let mut ran: Vec<_> = of_config.collect();
    ran.sort_unstable();
    let (mut saved, mut time, mut at) = (0, 0, Vec::new());
    for group in ran.chunk_by(|a, b| a.0.0 == b.0.0 && a.0.1 + 1 == b.0.1 && a.2 == b.2) {
        let lengths = group.iter().map(|it| it.1);
        let (sum, longest) = (lengths.clone().sum::<Ns>(), lengths.max().unwrap_or(0));
        if group.len() > 1 {
            (saved, time) = (saved + sum - longest, time + sum);
            at.extend(group.iter().map(|it| Occurrence::Row(it.0)));
        }
    }
    if share(saved, f.recorded_ns()) < thresholds::LARGE_SHARE {
        return None;
    }
    Some(Finding {
        title: format!(
            "{} elementwise kernels in a row are limited by memory: {}",
            at.len(),
            duration(time)
        ),
        advice: "Fuse those that read what the previous one wrote (torch.compile does so): memory is then read once.".to_owned(),
        ..scope.found(f.span_ns, saved, &at)
    })
}
