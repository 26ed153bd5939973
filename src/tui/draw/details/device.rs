//! What is said of a row of a device: on the whole, and under the cursor.

use super::Details;
use crate::tui::draw::label;
use crate::tui::state::State;
use crate::tui::state::row::RowKind;
use crate::tui::theme::Role;
use activity::{Metric, Span, units};
use causes::Group;
use figures::hardware;
use trace::{Measure, describe};

impl Details {
    pub(super) fn device_row(&mut self, state: &State, kind: RowKind) {
        let window = state.figures_span();
        match kind {
            RowKind::Bandwidth(device, direction) => {
                let usage = &state.model.run.trace.devices()[device].usage;
                let busy = usage.time(Measure::Direction(direction), window);
                let bytes = state.model.run.trace.bytes_moved(device, direction, window);
                self.name = Some((
                    direction.label().to_owned(),
                    label::direction_role(direction),
                ));
                self.facts
                    .push(format!("{} moved", units::bytes(bytes.round() as u64)));
                self.say(format!("in {} of copying", units::duration(busy)));
                self.say("height: GB/s within the column");
            }
            RowKind::Overlap(device) => {
                let usage = &state.model.run.trace.devices()[device].usage;
                let both = usage.time(Measure::Overlap, window);
                let copy = usage.time(Measure::Copy, window);
                let any = usage.time(Measure::Concurrent, window);
                self.name = Some(("overlap".to_owned(), Role::Overlap));
                self.say(format!(
                    "for {} two or more engines (kernels, copies of a direction, memsets) were at work at once",
                    units::duration(any)
                ));
                self.say(format!(
                    "{} of {} of copying lie under kernels",
                    units::duration(both),
                    units::duration(copy)
                ));
            }
            RowKind::Gpu(device) => {
                let (run, usage) = (
                    &state.model.run,
                    &state.model.run.trace.devices()[device].usage,
                );
                let busy = usage.time(Measure::Busy, window);
                let name = describe::device(&run.trace, device);
                self.name = Some((name, Role::Good));
                self.facts.push(format!(
                    "busy for {} of {}",
                    units::duration(busy),
                    units::duration(window.len())
                ));
                let used = window.intersect(state.used(device));
                let causes = state.model.idle.idle_within(run, device, used);
                for (group, ns) in Group::most(causes, 0) {
                    let time = units::duration(ns);
                    self.say(format!("idle {time}: {}", group.label()));
                }
            }
            RowKind::Memory(device) => {
                self.name = Some(("memory".to_owned(), Role::Memset));
                let memory = state.rows.memory.get(device);
                if let Some(peak) = memory.and_then(|m| m.peak(window)) {
                    self.say(format!("at most {} in use", units::bytes(peak)));
                }
                self.say("what was allocated before is not counted");
            }
            RowKind::Counter(device, metric) => self.counter(state, device, metric, window),
            _ => {}
        }
    }

    /// A counter or a sensor: on the whole, and under the cursor.
    fn counter(&mut self, state: &State, device: usize, metric: Metric, window: Span) {
        let Some(gpu) = state.model.run.trace.readings(device) else {
            return;
        };
        self.name = Some((metric.words().to_owned(), Role::Host));
        let Some(level) = gpu.level(metric, window) else {
            let why = gpu.lack(metric).unwrap_or("not read here");
            self.say(why);
            return;
        };
        let show = |value| hardware::show(metric, value);
        if gpu.resolves(metric, window) {
            self.say(format!("mean {}", show(level.mean)));
            self.say(format!("max {}", show(level.max)));
            let most = gpu.most(metric).filter(|most| *most != 1.0);
            self.facts
                .extend(most.map(|most| format!("{} is possible", show(most))));
        }
        if let Some(it) = gpu.at(metric, state.focus.selection.cursor) {
            let value = it.value(metric).map_or_else(|| "not read".to_owned(), show);
            let length = units::duration(it.span.len());
            self.say(format!("{value} in the {length} here"));
            self.facts
                .extend(hardware::reason(it.reasons).map(str::to_owned));
        }
        if metric == Metric::Power {
            self.say("a mean over about a second");
        }
    }
}
