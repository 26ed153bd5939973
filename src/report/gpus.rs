//! What is known of GPUs beside what a recording shows, by the profiles that were measured of them.

use std::sync::Arc;

use figures::Peaks;
use replay::program::GpuRates;
use sim::Profile;
use trace::Trace;

/// What is known of one kind of GPU.
#[derive(Clone, Debug, Default)]
pub struct KnownGpu {
    /// Its name, as CUDA tells it.
    pub name: String,
    /// What it can do at most.
    pub peaks: Peaks,
    /// What predictions know of it.
    pub rates: GpuRates,
}

impl From<&Profile> for KnownGpu {
    fn from(profile: &Profile) -> KnownGpu {
        KnownGpu {
            name: profile.device.name.clone(),
            peaks: peaks(profile),
            rates: rates(profile),
        }
    }
}

/// GPUs of which something is known. That is the same in every command.
#[derive(Clone, Debug, Default)]
pub struct KnownGpus(Arc<[KnownGpu]>);

impl FromIterator<KnownGpu> for KnownGpus {
    fn from_iter<I: IntoIterator<Item = KnownGpu>>(all: I) -> KnownGpus {
        KnownGpus(all.into_iter().collect())
    }
}

impl KnownGpus {
    /// What the GPU of a timeline can do; nothing is known where the timeline has GPUs of several names.
    pub fn peaks(&self, trace: &Trace) -> Peaks {
        let own = name_of(trace).and_then(|name| self.find(name));
        own.map_or_else(Peaks::default, |own| own.peaks)
    }

    /// What predictions know of the GPU of a timeline. The bundled profile serves them, too, though it was measured on another machine.
    pub fn rates(&self, trace: &Trace) -> GpuRates {
        let Some(name) = name_of(trace) else {
            return GpuRates::default();
        };
        let bundled = Profile::bundled();
        match self.find(name) {
            Some(own) => own.rates.clone(),
            None if bundled.device.name == name => rates(&bundled),
            None => GpuRates::default(),
        }
    }

    fn find(&self, name: &str) -> Option<&KnownGpu> {
        self.0.iter().find(|it| it.name == name)
    }
}

/// The name that all GPUs of a timeline have.
fn name_of(trace: &Trace) -> Option<&str> {
    let mut names = trace.devices().iter().map(|device| &*device.info.name);
    names.next().filter(|first| names.all(|it| it == *first))
}

fn peaks(profile: &Profile) -> Peaks {
    Peaks {
        h2d: Some(profile.copy.h2d_gbps),
        d2h: Some(profile.copy.d2h_gbps),
        d2d: Some(profile.copy.d2d_gbps),
        p2p: Some(profile.copy.p2p_gbps),
        memory: Some(profile.device.memory_gbps),
        flops: Some(profile.device.fp32_tflops * 1e12),
    }
}

fn rates(profile: &Profile) -> GpuRates {
    let (copy, api, latency) = (&profile.copy, &profile.api, &profile.latency);
    let shared = copy.h2d_shared_gbps + copy.d2h_shared_gbps;
    GpuRates {
        source: format!("measured on an {}", profile.device.name),
        h2d_gbps: Some(copy.h2d_gbps),
        d2h_gbps: Some(copy.d2h_gbps),
        copy_fixed: Some([copy.h2d_fixed_ns, copy.d2h_fixed_ns]),
        copy_call: Some(api.copy_ns),
        sync_call: Some(api.sync_ns),
        launch_call: Some(api.launch_ns),
        launch: Some([
            api.launch_ns + latency.launch_ns,
            api.copy_ns + latency.copy_ns,
        ]),
        kernel_fixed: Some(profile.kernel.fixed_ns),
        queued: Some([
            latency.kernel_to_kernel_ns,
            latency.kernel_to_copy_ns,
            latency.copy_to_kernel_ns,
            latency.copy_to_copy_ns,
        ]),
        event: Some(latency.event_ns),
        wake: Some(latency.wake_ns),
        graph_call: Some([api.graph_launch_ns, api.graph_launch_node_ns]),
        graph_upload: Some(api.graph_upload_node_ns),
        graph_node: Some(latency.graph_node_ns),
        link_share: Some(shared / (copy.h2d_gbps + copy.d2h_gbps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::DeviceInfo;
    use trace::testing::Scene;

    fn on(names: &[&str]) -> Trace {
        let mut scene = Scene::new();
        for (id, name) in names.iter().enumerate() {
            scene.device(DeviceInfo {
                id: id as u32,
                name: (*name).to_owned(),
                ..DeviceInfo::default()
            });
        }
        scene.trace()
    }

    #[test]
    fn a_gpu_is_known_by_the_profile_that_was_measured_of_it() {
        let mut profile = Profile::bundled();
        let h200 = profile.device.name.clone();
        "A100".clone_into(&mut profile.device.name);
        profile.copy.h2d_gbps = 24.5;
        let gpus = KnownGpus::from_iter([(&profile).into()]);
        let known = |names: &[&str]| {
            let trace = on(names);
            (gpus.peaks(&trace).h2d, gpus.rates(&trace).h2d_gbps)
        };
        assert_eq!(known(&["A100"]), (Some(24.5), Some(24.5)));
        assert_eq!(known(&["A100", "A100"]), (Some(24.5), Some(24.5)));
        // Several kinds of GPU match no profile.
        assert_eq!(known(&["A100", "L4"]), (None, None));
        assert_eq!(known(&["L4"]), (None, None));
        // The bundled profile was measured on another machine: nothing is compared with it.
        let bundled = Profile::bundled().copy.h2d_gbps;
        assert_eq!(known(&[&h200]), (None, Some(bundled)));
    }
}
