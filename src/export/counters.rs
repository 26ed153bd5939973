//! What GPUs' counters and sensors said, as CSV: one line for each window and metric, by device and time. Samples of a
//! device's counters come after what NVML said of it.

use std::io::{self, Write};

use super::rows;
use analysis::hardware;
use trace::Trace;

/// Writes them.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "device,device_name,start_ns,end_ns,metric,unit,value,held_down,simulated"
    )?;
    for (device, window, metric, value) in rows::readings(trace) {
        writeln!(
            out,
            "{},{},{},{},{},{},{value},{},{}",
            device.id,
            super::csv::quoted(&device.name),
            window.span.start,
            window.span.end,
            metric.key(),
            metric.unit().label(),
            hardware::reason(window.reasons).unwrap_or_default(),
            trace.source.simulated,
        )?;
    }
    Ok(())
}
