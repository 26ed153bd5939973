//! Which numbers of a profile the model can work with.

use super::Profile;

/// No single cost in a profile is longer than a minute.
const MAX_NS: i64 = 60_000_000_000;

impl Profile {
    /// The first number that would make the model divide by zero or run backwards.
    pub(super) fn first_fault(&self) -> Option<String> {
        let d = &self.device;
        let counts = [
            ("device.multiprocessors", d.multiprocessors),
            ("device.threads_per_sm", d.threads_per_sm),
            ("device.blocks_per_sm", d.blocks_per_sm),
            ("device.shared_per_sm", d.shared_per_sm),
            ("device.registers_per_sm", d.registers_per_sm),
            (
                "kernel.threads_for_compute",
                self.kernel.threads_for_compute,
            ),
            ("kernel.threads_for_memory", self.kernel.threads_for_memory),
            ("kernel.concurrent", self.kernel.concurrent),
            ("api.graph_portion", self.api.graph_portion),
            ("api.queue_depth", self.api.queue_depth),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, n)| *n == 0) {
            return Some(format!("{name} must be at least 1"));
        }
        let c = &self.copy;
        let m = &self.memory;
        let mut rates = vec![
            ("device.memory_gbps", d.memory_gbps),
            ("device.fp32_tflops", d.fp32_tflops),
            ("copy.h2d_gbps", c.h2d_gbps),
            ("copy.d2h_gbps", c.d2h_gbps),
            ("copy.h2d_shared_gbps", c.h2d_shared_gbps),
            ("copy.d2h_shared_gbps", c.d2h_shared_gbps),
            ("copy.inline_gbps", c.inline_gbps),
            ("copy.d2d_gbps", c.d2d_gbps),
            ("copy.p2p_gbps", c.p2p_gbps),
            ("kernel.compute_share", self.kernel.compute_share),
            ("kernel.memory_share", self.kernel.memory_share),
            ("kernel.memset_gbps", self.kernel.memset_gbps),
            ("kernel.sm_gbps", self.kernel.sm_gbps),
            ("kernel.l2_gain", self.kernel.l2_gain),
            ("memory.alloc_gbps", m.alloc_gbps),
            ("memory.free_gbps", m.free_gbps),
            ("memory.pinned_alloc_gbps", m.pinned_alloc_gbps),
            ("memory.pinned_free_gbps", m.pinned_free_gbps),
            ("host.sum_gbps", self.host.sum_gbps),
            ("host.sin_gbps", self.host.sin_gbps),
            ("host.matmul_gflops", self.host.matmul_gflops),
            ("host.zero_gbps", self.host.zero_gbps),
            ("host.random_gbps", self.host.random_gbps),
        ];
        for p in &c.pageable {
            rates.push(("copy.pageable.h2d_gbps", p.h2d_gbps));
            rates.push(("copy.pageable.d2h_gbps", p.d2h_gbps));
            rates.extend((p.h2d_again_gbps).map(|r| ("copy.pageable.h2d_again_gbps", r)));
        }
        for e in self.entry.values() {
            rates.extend(e.compute_share.map(|s| ("entry.compute_share", s)));
            rates.extend(e.memory_share.map(|s| ("entry.memory_share", s)));
        }
        if let Some((name, _)) = rates.iter().find(|(_, r)| !(r.is_finite() && *r > 0.0)) {
            return Some(format!("{name} must be more than 0"));
        }
        if c.pageable.is_empty() || !c.pageable.is_sorted_by(|a, b| a.bytes < b.bytes) {
            return Some("copy.pageable must have sizes in ascending order".to_owned());
        }
        if c.stage_bytes == 0 {
            return Some("copy.stage_bytes must be at least 1".to_owned());
        }
        let times = self.times();
        (times.iter().find(|(_, ns)| !(0..=MAX_NS).contains(ns)))
            .map(|(name, _)| format!("{name} must lie between 0 and {MAX_NS} ns"))
    }

    fn times(&self) -> Vec<(&'static str, i64)> {
        let (a, l, m, c) = (&self.api, &self.latency, &self.memory, &self.cold);
        let mut times = vec![
            ("copy.h2d_fixed_ns", self.copy.h2d_fixed_ns),
            ("copy.h2d_ramp_ns", self.copy.h2d_ramp_ns),
            ("copy.d2h_fixed_ns", self.copy.d2h_fixed_ns),
            ("copy.d2d_fixed_ns", self.copy.d2d_fixed_ns),
            ("copy.p2p_fixed_ns", self.copy.p2p_fixed_ns),
            ("kernel.fixed_ns", self.kernel.fixed_ns),
            ("api.launch_ns", a.launch_ns),
            ("api.copy_ns", a.copy_ns),
            ("api.memset_ns", a.memset_ns),
            ("api.event_record_ns", a.event_record_ns),
            ("api.event_wait_ns", a.event_wait_ns),
            ("api.sync_ns", a.sync_ns),
            ("api.stream_create_ns", a.stream_create_ns),
            ("api.event_create_ns", a.event_create_ns),
            ("api.graph_launch_ns", a.graph_launch_ns),
            ("api.graph_launch_node_ns", a.graph_launch_node_ns),
            ("api.graph_upload_node_ns", a.graph_upload_node_ns),
            ("api.graph_capture_node_ns", a.graph_capture_node_ns),
            ("api.graph_instantiate_ns", a.graph_instantiate_ns),
            ("api.graph_instantiate_node_ns", a.graph_instantiate_node_ns),
            ("api.between_ns", a.between_ns),
            ("latency.launch_ns", l.launch_ns),
            ("latency.copy_ns", l.copy_ns),
            ("latency.kernel_to_kernel_ns", l.kernel_to_kernel_ns),
            ("latency.kernel_to_copy_ns", l.kernel_to_copy_ns),
            ("latency.copy_to_kernel_ns", l.copy_to_kernel_ns),
            ("latency.copy_to_copy_ns", l.copy_to_copy_ns),
            ("latency.poll_ns", l.poll_ns),
            ("latency.event_ns", l.event_ns),
            ("latency.graph_node_ns", l.graph_node_ns),
            ("latency.wake_ns", l.wake_ns),
            ("memory.alloc_small_ns", m.alloc_small_ns),
            ("memory.alloc_ns", m.alloc_ns),
            ("memory.free_ns", m.free_ns),
            ("memory.pool_alloc_ns", m.pool_alloc_ns),
            ("memory.pool_free_ns", m.pool_free_ns),
            ("memory.pool_stream_ns", m.pool_stream_ns),
            ("memory.pinned_alloc_ns", m.pinned_alloc_ns),
            ("memory.pinned_free_ns", m.pinned_free_ns),
            ("cold.context_ns", c.context_ns),
            ("cold.context_destroy_ns", c.context_destroy_ns),
            ("cold.module_load_ns", c.module_load_ns),
            ("cold.first_stream_ns", c.first_stream_ns),
            ("cold.first_launch_ns", c.first_launch_ns),
            ("cold.first_copy_ns", c.first_copy_ns),
            ("cold.first_memset_ns", c.first_memset_ns),
        ];
        let entries = self.entry.values().filter_map(|e| e.fixed_ns);
        times.extend(entries.map(|ns| ("entry.fixed_ns", ns)));
        times
    }
}
