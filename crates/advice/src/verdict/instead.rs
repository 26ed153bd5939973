//! What is said in the place of a verdict, or before it: nothing ran, records are lost, the run failed.

use super::outside::BEFORE;
use super::{Bound, Verdict, on_cpu, words};
use activity::text::counted;
use activity::units::duration;
use activity::{Ns, Span};
use causes::Causes;
use figures::DeviceFigures;
use figures::failed::{self, Failed};
use figures::lost::Lost;
use trace::Trace;

/// How a headline begins where records are missing.
pub(super) const NO_VERDICT: &str = "no verdict";

/// Puts it there: `verdicts` are those of all devices together and of each.
pub(super) fn put(
    verdicts: &mut [Verdict],
    (trace, causes, window): (&Trace, &Causes<'_>, Option<Span>),
    devices: &[DeviceFigures],
) {
    let Some((bound, text, lost)) = instead((trace, causes, window), devices) else {
        return;
    };
    let on = devices.iter().map(|f| Some(f.index));
    for (verdict, on) in verdicts.iter_mut().zip([None].into_iter().chain(on)) {
        // What is recorded whole has a verdict of its own.
        let lost = lost.as_ref().zip(on);
        if lost.is_some_and(|(lost, device)| !lost.is_on(trace, device)) {
            continue;
        }
        verdict.bound_by = bound;
        let is_without = text.starts_with(failed::NO_LAUNCH);
        (verdict.share, verdict.line) = (0.0, None);
        verdict.frames = Default::default();
        verdict.text.clone_from(&text);
        // Nor is anything known of its parts, but for what the CPU did before them.
        if lost.is_some() || is_without {
            let from = lost.map_or(Ns::MIN, |it| it.0.from(causes.graph()));
            let is_before = trace.operations_extent().is_some_and(|it| it.start < from);
            verdict.beside.retain(|it| is_before && it.contains(BEFORE));
        }
        // What left no records may have been any amount of work.
        let is_lost = text.starts_with(NO_VERDICT);
        (verdict.beside).retain(|it| !is_lost || !it.starts_with(super::NEXT_TO_NONE));
        // The CPU's own times are all there is to tell.
        if is_without {
            let (most, told) = on_cpu::told(trace);
            verdict.text += &most.map_or_else(String::new, |it| format!("; {it}"));
            verdict.beside.extend(told);
        }
    }
}

/// What is said in the place of any verdict: nothing ran, graphs are captured, or records are lost.
fn instead(
    (trace, causes, window): (&Trace, &Causes<'_>, Option<Span>),
    devices: &[DeviceFigures],
) -> Option<(Bound, String, Option<Lost>)> {
    let graph = causes.graph();
    let nothing = |text| (Bound::Nothing, text, None);
    let is_whole = window.is_none();
    let failed = is_whole.then(|| Failed::of(trace, graph)).flatten();
    if let Some(failed) = failed.filter(Failed::is_all) {
        return Some(nothing(format!("no kernel ran: {}", failed.text())));
    }
    let early = is_whole
        .then(|| failed::ended_early(trace, devices))
        .flatten();
    if let Some(copies) = early {
        let (copies, busy) = (
            counted(copies, "copy", "copies"),
            devices.iter().map(|f| f.busy_ns),
        );
        let ran = duration(busy.max().unwrap_or(0));
        return Some(nothing(format!(
            "{}; only {copies} ran ({ran})",
            failed::NO_LAUNCH
        )));
    }
    if let Some(captured) = graph.capture(window) {
        return Some(nothing(words::of_capture(captured)));
    }
    let lost = Lost::of(trace, graph, window).filter(|it| is_whole || it.are_over(graph))?;
    let cure = match lost.are_left_out() {
        true => " · open the export as it was made, or record again",
        false => "",
    };
    let text = format!("{NO_VERDICT}: {}{cure}", lost.text());
    Some((Bound::Unknown, text, Some(lost)))
}

/// Says first of a run that failed why it did: what follows is of what ran until then.
pub fn fail(verdicts: &mut [Verdict], trace: &Trace, causes: &Causes<'_>) {
    if let Some((whole, failed)) = verdicts.first_mut().zip(fatal(trace, causes)) {
        let text = failed.text();
        whole.gain = whole.gain.take().filter(|it| *it != text);
        whole.text.insert_str(0, &format!("{text} · "));
    }
}

/// What made a run fail that did some work before.
fn fatal(trace: &Trace, causes: &Causes<'_>) -> Option<Failed> {
    let failed = Failed::of(trace, causes.graph());
    failed.filter(|it| it.is_fatal() && !it.is_all())
}

/// Whether something did.
pub(super) fn fails(trace: &Trace, causes: &Causes<'_>) -> bool {
    fatal(trace, causes).is_some()
}
