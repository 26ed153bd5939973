//! What GPUs' counters and sensors said, as CSV: one line for each window and metric, by device and time. Samples of a
//! device's counters come after what NVML said of it.

use std::io::{self, Write};

use activity::Metric;
use analysis::hardware;
use trace::Trace;

/// Writes them.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "device,device_name,start_ns,end_ns,metric,unit,value,held_down,simulated"
    )?;
    for (index, device) in trace.devices().iter().enumerate() {
        let Some(gpu) = trace.readings(index) else {
            continue;
        };
        let name = super::csv::quoted(&device.info.name);
        for window in gpu.windows().chain(gpu.samples()) {
            for metric in Metric::ALL {
                let Some(value) = window.value(metric) else {
                    continue;
                };
                writeln!(
                    out,
                    "{},{name},{},{},{},{},{value},{},{}",
                    device.info.id,
                    window.span.start,
                    window.span.end,
                    metric.key(),
                    metric.unit().label(),
                    hardware::reason(window.reasons).unwrap_or_default(),
                    trace.source.simulated,
                )?;
            }
        }
    }
    Ok(())
}
