//! How a launch fills a GPU, by its configuration alone: no counter and no right is needed, and every source has it.

use serde::{Serialize, Serializer};

use activity::occupancy::{Limit, idle_sms, theoretical};
use activity::{DeviceInfo, LaunchShape};

/// What a launch's configuration tells. `None` where the source does not say enough of launch or GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fill {
    /// How often the grid fills all SMs.
    pub waves: Option<f64>,
    /// Part of its time that the last wave costs at most, by leaving places for blocks empty.
    pub tail_share: Option<f64>,
    /// SMs that no block reaches.
    pub idle_sms: Option<u32>,
    /// Warps of it that an SM can hold, over the most that it can.
    pub occupancy: Option<f64>,
    /// What keeps an SM from holding more blocks of it.
    #[serde(serialize_with = "key")]
    pub occupancy_limit: Option<Limit>,
}

impl Fill {
    /// Of a launch on a device.
    pub fn of(shape: &LaunchShape, device: &DeviceInfo) -> Fill {
        let idle_sms = idle_sms(shape, device);
        let Some(found) = theoretical(shape, device) else {
            return Fill {
                idle_sms,
                ..Fill::default()
            };
        };
        let has_waves = idle_sms.is_some();
        Fill {
            waves: has_waves.then_some(found.waves),
            tail_share: has_waves.then(|| found.tail()),
            idle_sms,
            occupancy: Some(found.share),
            occupancy_limit: Some(found.limit),
        }
    }
}

fn key<S: Serializer>(limit: &Option<Limit>, serializer: S) -> Result<S::Ok, S::Error> {
    limit.map(Limit::key).serialize(serializer)
}
