//! Operations as CSV: one line for each kernel, copy and memset, by start (`docs/REPORT.md`).

use std::fmt::{self, Display};
use std::io::{self, Write};

use super::rows::{self, Caveats};
use activity::units::gb_per_s;
use trace::Trace;

const COLUMNS: &str = "process,pid,device,device_name,context,stream,kind,name,start_ns,end_ns,duration_ns,\
bytes,gb_per_s,from,to,asynchronous,grid,block,registers,shared_bytes,graph,correlation,simulated,lost_records,recorded_start_ns";

/// Writes the operations of a timeline.
pub(super) fn write(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let marks = Caveats::of(trace);
    writeln!(out, "{COLUMNS}")?;
    for it in rows::operations(trace) {
        let (span, copy, shape) = (it.activity.span, it.copy, it.shape);
        let rate = it.bytes.and_then(|bytes| gb_per_s(bytes, span.len()));
        write!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},",
            it.process,
            it.pid,
            it.device.id,
            quoted(&it.device.name),
            it.context,
            it.stream,
            it.kind,
            cell(it.name.map(|name| quoted(&name))),
            span.start,
            span.end,
            span.len(),
            cell(it.bytes),
            cell(rate.map(|rate| format!("{rate:.4}"))),
        )?;
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            cell(copy.map(|copy| copy.from.label())),
            cell(copy.map(|copy| copy.to.label())),
            cell(copy.map(|copy| copy.is_async)),
            cell(shape.map(|shape| rows::size(shape.grid))),
            cell(shape.map(|shape| rows::size(shape.block))),
            cell(shape.map(|shape| shape.registers)),
            cell(shape.map(|shape| rows::shared(&shape))),
            it.activity.what.graph(),
            it.activity.correlation,
            marks.simulated,
            marks.lost,
            trace.as_recorded(it.process, span).start
        )?;
    }
    Ok(())
}

/// A value, or nothing.
fn cell(value: Option<impl Display>) -> impl Display {
    fmt::from_fn(move |f| value.as_ref().map_or(Ok(()), |value| value.fmt(f)))
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
