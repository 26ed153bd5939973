//! What can be counted at once: needs the library, no GPU.

use std::ffi::{CStr, CString, c_char};

use super::layouts::{
    AddMetrics, ConfigImage, ConfigSize, HostInitialize, Object, Of, Params as _, Passes,
};
use super::{PmApi, ask};
use crate::api::{Code, UNKNOWN};

/// `CUPTI_PROFILER_TYPE_PM_SAMPLING`
const PM_SAMPLING: u32 = 1;

/// What CUPTI knows of one chip, with the metrics of one configuration.
pub struct Host {
    pub(super) api: PmApi,
    pub(super) object: Object,
    /// The metrics, and pointers to them as CUPTI wants them.
    names: Vec<CString>,
    pub(super) pointers: Vec<*const c_char>,
}

/// What counts some metrics.
pub struct Config {
    /// CUPTI's own form of it.
    pub image: Vec<u8>,
    /// How often the same work would have to run. Only what takes one pass can be sampled.
    pub passes: usize,
}

impl Host {
    /// For a chip ("GH100"), with what of its counters this machine's driver lets be used, where that is known.
    ///
    /// # Errors
    /// CUPTI's code; unknown chips have one.
    pub fn new(api: PmApi, chip: &CStr, availability: Option<&[u8]>) -> Result<Host, Code> {
        let mut params = HostInitialize::new();
        params.profiler = PM_SAMPLING;
        params.chip = chip.as_ptr();
        params.availability = availability.map_or(std::ptr::null(), <[u8]>::as_ptr);
        ask(api.host_initialize, &mut params)?;
        Ok(Host {
            api,
            object: params.host,
            names: Vec::new(),
            pointers: Vec::new(),
        })
    }

    /// The configuration for these metrics. To be asked once.
    ///
    /// # Errors
    /// CUPTI's code: one of them is unknown to the chip, or they cannot be counted together.
    pub fn config(&mut self, metrics: &[&str]) -> Result<Config, Code> {
        let names = metrics.iter().map(|&name| CString::new(name));
        self.names = names.collect::<Result<_, _>>().map_err(|_| UNKNOWN)?;
        self.pointers = self.names.iter().map(|name| name.as_ptr()).collect();
        let mut add = AddMetrics::new();
        add.host = self.object;
        add.names = self.pointers.as_ptr();
        add.count = self.pointers.len();
        ask(self.api.add_metrics, &mut add)?;
        let mut size = ConfigSize::new();
        size.host = self.object;
        ask(self.api.config_size, &mut size)?;
        let mut image = vec![0; size.size];
        let mut get = ConfigImage::new();
        get.host = self.object;
        get.size = image.len();
        get.image = image.as_mut_ptr();
        ask(self.api.config_image, &mut get)?;
        let mut passes = Passes::new();
        passes.size = image.len();
        passes.image = image.as_mut_ptr();
        ask(self.api.passes, &mut passes)?;
        Ok(Config {
            image,
            passes: passes.passes,
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let mut params = Of::new();
        params.object = self.object;
        // What it answers changes nothing.
        let _ = ask(self.api.host_deinitialize, &mut params);
    }
}
