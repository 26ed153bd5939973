//! Which record of the calibration gives which figure of the profile.

use std::collections::BTreeMap;

use activity::{Ns, What};
use profile::{Entry, Profile};
use scenario::plan::Plan;

use crate::observe::{Observed, Passes, Stretch, mean};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const LARGE: u64 = 256 * MIB;

/// Figures that nothing measures here: those of the simulator's host, and what one GPU alone does not show.
const UNASKED: &str = "api.between_ns api.event_create_ns api.event_record_ns api.event_wait_ns api.graph_capture_node_ns \
    api.graph_instantiate_node_ns api.graph_instantiate_ns api.graph_portion api.memset_ns api.queue_depth api.stream_create_ns \
    cold copy.inline_bytes copy.inline_gbps copy.p2p_fixed_ns copy.p2p_gbps copy.pageable copy.stage_bytes device.l2 host \
    kernel.compute_share kernel.concurrent kernel.l2_gain kernel.sm_gbps kernel.threads_for_compute kernel.threads_for_memory \
    latency.poll_ns memory";

/// A profile in the builder: figures that were measured replace those of the profile it began as.
pub(crate) struct ProfileBuilder<'a> {
    pub(crate) profile: Profile,
    /// Figures that were not measured.
    pub(crate) missing: Vec<&'static str>,
    observed: &'a Observed,
}

/// Bytes (or operations) in nanoseconds as GB/s, without a fixed part.
pub(crate) fn rate(bytes: u64, ns: Option<Ns>, fixed: Ns) -> Option<f64> {
    let ns = ns? - fixed;
    (ns > 0).then(|| bytes as f64 / ns as f64)
}

/// A line through two points (bytes, ns): what it costs at 0, and GB/s.
fn line(small: (u64, Option<Ns>), large: (u64, Option<Ns>)) -> Option<(Ns, f64)> {
    let (x1, y1) = (small.0 as f64, small.1? as f64);
    let (x2, y2) = (large.0 as f64, large.1? as f64);
    if y2 <= y1 {
        return None;
    }
    let slope = (y2 - y1) / (x2 - x1);
    Some(((y1 - slope * x1).max(1.0) as Ns, 1.0 / slope))
}

/// Takes a figure of the profile in, or notes that there is none.
macro_rules! put {
    ($builder:ident, $table:ident.$key:ident, $value:expr) => {
        match $value {
            Some(value) => $builder.profile.$table.$key = value,
            None => {
                let name = concat!(stringify!($table), ".", stringify!($key));
                $builder.missing.push(name);
            }
        }
    };
}
pub(crate) use put;

impl<'a> ProfileBuilder<'a> {
    /// Begins with `profile`, of which the limits of the device are replaced by what the driver says.
    pub(crate) fn new(observed: &'a Observed, profile: Profile) -> ProfileBuilder<'a> {
        let mut builder = ProfileBuilder {
            profile,
            missing: Vec::new(),
            observed,
        };
        builder.device();
        builder
    }

    /// Puts in everything that the recording tells.
    pub(crate) fn measure(&mut self, plan: &Plan) {
        self.calls();
        self.copies();
        self.kernels(plan);
        self.delays();
        self.graphs();
        self.missing.extend(UNASKED.split_whitespace());
    }

    pub(crate) fn passes(&self, variant: &str) -> Passes<'a> {
        self.observed.passes(variant)
    }

    fn device(&mut self) {
        let Some(info) = self.observed.device() else {
            self.missing.push("device");
            return;
        };
        let d = &mut self.profile.device;
        d.name.clone_from(&info.name);
        d.capability = [info.capability.0, info.capability.1];
        let known = |place: &mut u32, value: u32| {
            if value > 0 {
                *place = value;
            }
        };
        known(&mut d.multiprocessors, info.multiprocessors);
        known(&mut d.clock_khz, info.clock_khz);
        known(&mut d.copy_engines, info.copy_engines);
        known(
            &mut d.threads_per_sm,
            info.max_warps_per_sm * info.warp_size,
        );
        known(&mut d.blocks_per_sm, info.max_blocks_per_sm);
        known(&mut d.shared_per_sm, info.shared_per_sm);
        known(&mut d.registers_per_sm, info.registers_per_sm);
        if info.memory > 0 {
            d.memory = info.memory;
        }
        if info.memory_bandwidth > 0 {
            d.memory_gbps = info.memory_bandwidth as f64 / 1e9;
        }
        if !info.link.is_empty() {
            d.link.clone_from(&info.link);
        }
        if let Some(lanes) = fp32_lanes(d.capability) {
            // A multiply-add is two operations a cycle.
            let per_cycle = f64::from(d.multiprocessors * lanes * 2);
            d.fp32_tflops = per_cycle * f64::from(d.clock_khz) * 1e3 / 1e12;
        } else {
            self.missing.push("device.fp32_tflops");
        }
    }

    fn calls(&mut self) {
        let launches = self.passes("launches");
        let calls = self.passes("calls");
        let time = |passes: &Passes<'a>, name: &str| passes.mean(|s| s.calls(name));
        let waits = calls.mean(|s| s.empty_waits("cuStreamSynchronize"));
        // A launch takes the longer, the less of it the processor has done just before. One kernel over and over is one end.
        // Several in turn, with waits in between, are nearer to what programs do.
        let rows = [&launches, &self.passes("early"), &self.passes("mixed")];
        let rows = (rows.iter()).filter_map(|passes| time(passes, "cuLaunchKernel"));
        let launch = mean(rows.collect());
        put!(self, api.launch_ns, launch);
        put!(self, api.copy_ns, time(&calls, "cuMemcpyHtoDAsync"));
        put!(self, api.sync_ns, waits);
    }

    fn kernels(&mut self, plan: &Plan) {
        let passes = self.passes("kernels");
        let small = self.passes("small");
        let within = self.passes("within");
        let time = |entry: &str| passes.median(|s| s.kernels(entry));
        put!(self, kernel.fixed_ns, time("empty"));
        let memset = within.median(|s| s.memsets(LARGE));
        let memset = rate(LARGE, memset, self.profile.kernel.fixed_ns);
        put!(self, kernel.memset_gbps, memset);
        let device = &self.profile.device;
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        let variants = plan.variants.iter().filter(|v| v.name == "kernels");
        for (variant, launch) in variants.flat_map(|v| v.launches.iter().map(move |it| (v, it))) {
            let entry = &variant.kernels[launch.kernel].entry;
            // With one block and hardly any data: what is left is the kernel's own.
            let fixed_ns = small.median(|s| s.kernels(entry));
            let fixed = fixed_ns.unwrap_or(self.profile.kernel.fixed_ns);
            let Some(ns) = time(entry).map(|ns| ns - fixed).filter(|&ns| ns > 0) else {
                continue;
            };
            let shape = self.observed.shape(entry);
            // A share of a peak that is printed too low must not come out above 1.
            let share =
                |amount: Option<u64>, peak: f64| Some((amount? as f64 / ns as f64 / peak).min(1.0));
            let found = Entry {
                fixed_ns,
                compute_share: share(launch.flops, device.fp32_tflops * 1e3),
                memory_share: share(launch.bytes, device.memory_gbps),
                registers: shape.map(|s| s.registers).filter(|&r| r > 0),
                static_shared: shape.map(|s| s.static_shared).filter(|&s| s > 0),
                stalls: Vec::new(),
            };
            entries.insert(entry.clone(), found);
        }
        let copy = entries.get("copy_f4").and_then(|e| e.memory_share);
        put!(self, kernel.memory_share, copy);
        if entries.is_empty() {
            self.missing.push("entry");
        } else {
            self.profile.entry = entries;
        }
    }

    fn delays(&mut self) {
        let idle = self.passes("idle");
        let queued = self.passes("queued");
        let events = self.passes("events");
        let is_kernel = |what: What| matches!(what, What::Kernel(_));
        let is_copy = |what: What| matches!(what, What::Copy(_));
        let gap = |is_first: fn(What) -> bool, is_next: fn(What) -> bool| {
            queued.median(|s| s.gaps(|a, b| is_first(a) && is_next(b)))
        };
        let wakes = idle.mean(|s| s.wakes("cuStreamSynchronize"));
        put!(self, latency.launch_ns, idle.mean(|s| s.delays(is_kernel)));
        put!(self, latency.copy_ns, idle.mean(|s| s.delays(is_copy)));
        put!(self, latency.kernel_to_kernel_ns, gap(is_kernel, is_kernel));
        put!(self, latency.kernel_to_copy_ns, gap(is_kernel, is_copy));
        put!(self, latency.copy_to_kernel_ns, gap(is_copy, is_kernel));
        put!(self, latency.copy_to_copy_ns, gap(is_copy, is_copy));
        put!(self, latency.event_ns, events.median(Stretch::hand_overs));
        put!(self, latency.wake_ns, wakes);
    }

    fn graphs(&mut self) {
        const SMALL: u64 = 20;
        const LARGE: u64 = 1000;
        let small = self.passes("graph_small");
        let large = self.passes("graph_large");
        // A line through two numbers of nodes, as ns at 0 and ns a node.
        let time = |passes: &Passes<'a>| passes.mean(|s| usual_launches(s.calls("cuGraphLaunch")));
        let launch = line((SMALL, time(&small)), (LARGE, time(&large)))
            .map(|(fixed, per_ns)| (fixed, ((1.0 / per_ns) as Ns).max(1)));
        // Of the launches after a capture only the first hands the nodes to the device.
        let first = large.mean(|s| {
            let calls = s.calls("cuGraphLaunch").into_iter();
            calls.step_by(LAUNCHES_OF_A_GRAPH).collect()
        });
        let node = large.median(|s| s.gaps(|_, _| true));
        put!(self, api.graph_launch_ns, launch.map(|l| l.0));
        put!(self, api.graph_launch_node_ns, launch.map(|l| l.1));
        let a = &self.profile.api;
        let usual = a.graph_launch_ns + LARGE as Ns * a.graph_launch_node_ns;
        let upload = first.map(|ns| ((ns - usual) / LARGE as Ns).max(0));
        put!(self, api.graph_upload_node_ns, upload);
        put!(self, latency.graph_node_ns, node);
    }
}

/// How often each graph of the calibration is launched.
const LAUNCHES_OF_A_GRAPH: usize = 5;

/// The launches that are not the first of a graph, which hands its nodes over.
fn usual_launches(calls: Vec<Ns>) -> Vec<Ns> {
    let calls = calls.into_iter().enumerate();
    let usual = calls.filter(|(i, _)| !i.is_multiple_of(LAUNCHES_OF_A_GRAPH));
    usual.map(|(_, ns)| ns).collect()
}

/// fp32 lanes of an SM, by compute capability (CUDA C++ programming guide, arithmetic throughput).
fn fp32_lanes(capability: [u32; 2]) -> Option<u32> {
    match capability {
        [7, _] | [8, 0] => Some(64),
        [8..=10 | 12, _] => Some(128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_two_points() {
        // 1000 ns, and 2 bytes a nanosecond.
        let (fixed, gbps) = line((100, Some(1050)), (10_000, Some(6000))).expect("a line");
        assert_eq!((fixed, gbps), (1000, 2.0));
        assert_eq!(line((100, Some(1050)), (10_000, Some(1050))), None);
        assert_eq!(line((100, None), (10_000, Some(1))), None);
    }

    #[test]
    fn an_h200_peaks_at_67_teraflops() {
        // 132 SMs x 128 lanes x 2 x 1.98 GHz, the data sheet's 67 TFLOP/s.
        let lanes = fp32_lanes([9, 0]).expect("known");
        let peak = f64::from(132 * lanes * 2) * 1.98e9 / 1e12;
        assert!((66.5..67.5).contains(&peak), "{peak}");
    }
}
