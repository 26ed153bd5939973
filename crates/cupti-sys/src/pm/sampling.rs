//! Counting on a GPU.

use std::ffi::{CStr, CString};

use super::layouts::{
    Availability, ChipName, DataInfo, DataInitialize, DataSize, Decode, Enable, Evaluate, Object,
    Of, Params as _, SampleInfo, SetConfig,
};
use super::{Call, Host, PmApi, ask};
use crate::api::{Code, UNKNOWN};

/// `CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL`
const DATA_FULL: u32 = 1;

/// What tells when a sample ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// So many cycles of the system's clock, whose frequency varies: what Turing and GA100 have.
    Cycles(u64),
    /// So many nanoseconds.
    Nanoseconds(u64),
}

/// One sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// From when, in nanoseconds of CUPTI's clock (since 1970).
    pub start: u64,
    /// Until when.
    pub end: u64,
    /// The metrics' values, in their order.
    pub values: Vec<f64>,
}

/// What came of a decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Samples that it held.
    pub samples: usize,
    /// The hardware's buffer was full: samples are lost, and none will come until it is started anew.
    pub overflow: bool,
    /// There is more to decode.
    pub has_more: bool,
}

/// The counters of one GPU, taken from whoever else would have them until it is dropped.
pub struct Sampling {
    host: Host,
    object: Object,
    /// Must outlive the object.
    config: Vec<u8>,
    image: Vec<u8>,
    is_running: bool,
}

/// The name of a device's chip, and what of its counters may be used.
///
/// # Errors
/// CUPTI's code.
pub fn chip(api: &PmApi, device: usize) -> Result<(CString, Vec<u8>), Code> {
    let mut params = ChipName::new();
    params.device = device;
    ask(api.chip_name, &mut params)?;
    if params.name.is_null() {
        return Err(UNKNOWN);
    }
    // SAFETY: a success with a pointer means a string of the library's.
    let name = unsafe { CStr::from_ptr(params.name) }.to_owned();
    let mut params = Availability::new();
    params.device = device;
    ask(api.availability, &mut params)?;
    let mut image = vec![0; params.size];
    params.image = image.as_mut_ptr();
    ask(api.availability, &mut params)?;
    Ok((name, image))
}

impl Sampling {
    /// Takes a device's counters, to count what the host's configuration has.
    ///
    /// # Errors
    /// CUPTI's code: [`super::HARDWARE_BUSY`], no right, not on this chip.
    pub fn enable(host: Host, config: Vec<u8>, device: usize) -> Result<Sampling, Code> {
        let mut params = Enable::new();
        params.device = device;
        ask(host.api.enable, &mut params)?;
        Ok(Sampling {
            host,
            object: params.sampling,
            config,
            image: Vec::new(),
            is_running: false,
        })
    }

    /// Says how often to sample, how much the hardware's buffer holds, and at the first time how many samples
    /// are decoded at once. Stops it.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn set(&mut self, trigger: Trigger, buffer: usize, samples: u32) -> Result<(), Code> {
        self.stop()?;
        let mut params = SetConfig::new();
        params.sampling = self.object;
        params.size = self.config.len();
        params.config = self.config.as_ptr();
        params.buffer = buffer;
        (params.trigger, params.interval) = match trigger {
            Trigger::Cycles(cycles) => (0, cycles),
            Trigger::Nanoseconds(time) => (1, time),
        };
        ask(self.host.api.set_config, &mut params)?;
        if self.image.is_empty() {
            let mut size = DataSize::new();
            size.sampling = self.object;
            size.names = self.host.pointers.as_ptr();
            size.count = self.host.pointers.len();
            size.samples = samples;
            ask(self.host.api.data_size, &mut size)?;
            self.image = vec![0; size.size];
        }
        self.clear()
    }

    /// Begins to count.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn start(&mut self) -> Result<(), Code> {
        self.ask_of(self.host.api.start)?;
        self.is_running = true;
        Ok(())
    }

    /// Ends counting; what was counted can still be decoded.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn stop(&mut self) -> Result<(), Code> {
        if std::mem::take(&mut self.is_running) {
            self.ask_of(self.host.api.stop)?;
        }
        Ok(())
    }

    /// Fetches what was counted since the last time into an image that [`Self::clear`] has emptied.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn decode(&mut self) -> Result<Decoded, Code> {
        let mut params = Decode::new();
        params.sampling = self.object;
        params.image = self.image.as_mut_ptr();
        params.size = self.image.len();
        match ask(self.host.api.decode, &mut params) {
            Err(super::OUT_OF_MEMORY) => {
                return Ok(Decoded {
                    overflow: true,
                    ..Decoded::default()
                });
            }
            result => result?,
        }
        let mut info = DataInfo::new();
        info.image = self.image.as_ptr();
        info.size = self.image.len();
        ask(self.host.api.data_info, &mut info)?;
        Ok(Decoded {
            samples: info.completed,
            overflow: params.overflow != 0,
            has_more: params.stop_reason == DATA_FULL,
        })
    }

    /// A sample that was fetched.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn read(&self, index: usize, sample: &mut Sample) -> Result<(), Code> {
        let mut info = SampleInfo::new();
        info.sampling = self.object;
        info.image = self.image.as_ptr();
        info.size = self.image.len();
        info.sample = index;
        ask(self.host.api.sample_info, &mut info)?;
        (sample.start, sample.end) = (info.start, info.end);
        sample.values.resize(self.host.pointers.len(), 0.0);
        let mut params = Evaluate::new();
        params.host = self.host.object;
        params.image = self.image.as_ptr();
        params.size = self.image.len();
        params.sample = index;
        params.names = self.host.pointers.as_ptr();
        params.count = self.host.pointers.len();
        params.values = sample.values.as_mut_ptr();
        ask(self.host.api.evaluate, &mut params)
    }

    /// Empties the image of fetched samples: it takes as long as the image is large.
    ///
    /// # Errors
    /// CUPTI's code.
    pub fn clear(&mut self) -> Result<(), Code> {
        let mut params = DataInitialize::new();
        params.sampling = self.object;
        params.size = self.image.len();
        params.image = self.image.as_mut_ptr();
        ask(self.host.api.data_initialize, &mut params)
    }

    fn ask_of(&self, function: Call<Of>) -> Result<(), Code> {
        let mut params = Of::new();
        params.object = self.object;
        ask(function, &mut params)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // Nobody is left to hear why not.
        let _ = self.stop();
        let _ = self.ask_of(self.host.api.disable);
    }
}
