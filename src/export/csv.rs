//! Operations as CSV: one line for each kernel, copy and memset, by start (`docs/REPORT.md`).

use std::io::{self, Write};

use super::rows::{self, Marks};
use activity::What;
use activity::units::gb_per_s;
use trace::{LaneKind, Trace, describe};

const COLUMNS: &str = "process,pid,device,device_name,context,stream,kind,name,start_ns,end_ns,duration_ns,\
bytes,gb_per_s,from,to,asynchronous,grid,block,registers,shared_bytes,graph,correlation,simulated,lost_records,recorded_start_ns";

/// Writes the operations of a timeline.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let marks = Marks::of(trace);
    writeln!(out, "{COLUMNS}")?;
    for (id, row) in rows::operations(trace) {
        let key = trace.lanes()[id].key();
        let LaneKind::Stream {
            device,
            context,
            stream,
        } = key.kind
        else {
            continue;
        };
        let activity = trace.activity(id, row);
        let info = &trace.devices()[device].info;
        let Some(kind) = rows::kind(&activity.what) else {
            continue;
        };
        let name = match activity.what {
            What::Kernel(_) => quoted(&describe::whole(trace, &activity.what)),
            _ => String::new(),
        };
        let span = activity.span;
        let pid = trace.processes()[key.process].info.pid;
        write!(
            out,
            "{},{pid},{},{},{context},{stream},{kind},{name},{},{},{}",
            key.process,
            info.id,
            quoted(&info.name),
            span.start,
            span.end,
            span.len()
        )?;
        match rows::bytes(&activity.what) {
            Some(bytes) => {
                let rate = gb_per_s(bytes, span.len()).map(|r| format!("{r:.4}"));
                write!(out, ",{bytes},{}", rate.unwrap_or_default())?;
            }
            None => write!(out, ",,")?,
        }
        match activity.what {
            What::Copy(c) => {
                write!(
                    out,
                    ",{},{},{},,,,",
                    c.from.label(),
                    c.to.label(),
                    c.is_async
                )?;
            }
            What::Kernel(k) => {
                let s = trace.shape(k.shape);
                write!(
                    out,
                    ",,,,{},{},{},{}",
                    rows::size(s.grid),
                    rows::size(s.block),
                    s.registers,
                    rows::shared(&s)
                )?;
            }
            _ => write!(out, ",,,,,,,")?,
        }
        writeln!(
            out,
            ",{},{},{},{},{}",
            activity.what.graph(),
            activity.correlation,
            marks.simulated,
            marks.lost,
            trace.as_recorded(key.process, span).start
        )?;
    }
    Ok(())
}

/// A text as RFC 4180 wants it; one that a spreadsheet would take for a formula stands behind an apostrophe.
fn quoted(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) {
        return quoted(&format!("'{text}"));
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn no_text_is_a_formula() {
        assert_eq!(
            quoted("=cmd|\"/c calc\"!A1"),
            "\"'=cmd|\"\"/c calc\"\"!A1\""
        );
        assert_eq!(
            ["+1", "-1", "@a", "a=b"].map(quoted),
            ["'+1", "'-1", "'@a", "a=b"]
        );
    }
}
