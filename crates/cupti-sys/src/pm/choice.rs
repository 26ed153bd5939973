//! As many metrics as one pass holds.

use std::ffi::CStr;

use super::{Config, Host, PmApi};
use crate::api::{Code, NOT_SUPPORTED};

/// Metrics that a chip counts together.
pub struct Choice {
    /// What evaluates them.
    pub host: Host,
    /// What counts them.
    pub config: Config,
    /// Which they are: the place in the list of what was wanted, and the name.
    pub metrics: Vec<(usize, &'static str)>,
}

impl Choice {
    /// Of what is wanted, most wanted first, each under the names that chips have for it: what can be counted in one pass.
    ///
    /// # Errors
    /// CUPTI's code for the chip, or of the last thing tried where not one can be counted.
    pub fn of(
        api: PmApi,
        chip: &CStr,
        availability: Option<&[u8]>,
        wanted: &[&'static [&'static str]],
    ) -> Result<Choice, Code> {
        let mut chosen: Result<Choice, Code> = Err(NOT_SUPPORTED);
        for (place, names) in wanted.iter().enumerate() {
            for name in *names {
                let mut metrics = chosen.as_ref().map_or(Vec::new(), |it| it.metrics.clone());
                metrics.push((place, *name));
                // A host's metrics can only grow: each try has one of its own.
                let mut host = Host::new(api, chip, availability)?;
                let all: Vec<&str> = metrics.iter().map(|(_, name)| *name).collect();
                match host.config(&all) {
                    Ok(config) if config.passes == 1 => {
                        chosen = Ok(Choice {
                            host,
                            config,
                            metrics,
                        });
                        break;
                    }
                    Ok(_) => {}
                    Err(code) if chosen.is_err() => chosen = Err(code),
                    Err(_) => {}
                }
            }
        }
        chosen
    }
}
