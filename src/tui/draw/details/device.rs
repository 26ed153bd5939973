//! What is said of a row of a device: on the whole, and under the cursor.

use super::Details;
use crate::tui::draw::label;
use crate::tui::state::{RowKind, State};
use crate::tui::theme::Role;
use activity::units::{bytes, duration};
use activity::{Metric, Span};
use causes::Group;
use figures::hardware;
use trace::{Measure, describe};

impl Details {
    pub(super) fn device_row(&mut self, state: &State, kind: RowKind) {
        let (trace, window) = (&state.model.run.trace, state.figures_span());
        let usage = |device: usize| &trace.devices()[device].usage;
        match kind {
            RowKind::Bandwidth(device, direction) => {
                let busy = usage(device).time(Measure::Direction(direction), window);
                let moved = trace.bytes_moved(device, direction, window).round() as u64;
                let name = direction.label().to_owned();
                self.name = Some((name, label::direction_role(direction)));
                self.facts.push(format!("{} moved", bytes(moved)));
                self.say(format!("in {} of copying", duration(busy)));
                self.say("height: GB/s within the column");
            }
            RowKind::Overlap(device) => {
                let measures = [Measure::Overlap, Measure::Copy, Measure::Concurrent];
                let [both, copy, any] = measures.map(|it| duration(usage(device).time(it, window)));
                self.name = Some(("parallel".to_owned(), Role::Overlap));
                self.say(format!(
                    "for {any} two or more engines (kernels, copies of a direction, memsets) were at work"
                ));
                self.say(format!(
                    "overlap: {both} of {copy} of copying lie under kernels"
                ));
            }
            RowKind::Gpu(device) => {
                let busy = duration(usage(device).time(Measure::Busy, window));
                let length = duration(window.len());
                self.name = Some((describe::device(trace, device), Role::Good));
                self.facts.push(format!("busy for {busy} of {length}"));
                let (run, used) = (&state.model.run, window.intersect(state.used(device)));
                let idle = &state.model.idle;
                let (causes, untold) = idle.told_within(run, device, used);
                for (group, ns) in Group::most(causes, 0) {
                    self.say(format!("idle {}: {}", duration(ns), group.label()));
                }
                if untold > used.len() / 1_000 {
                    self.say(format!("idle {}: {}", duration(untold), idle.untold(run)));
                }
            }
            RowKind::Memory(device) => {
                self.name = Some(("memory".to_owned(), Role::Memset));
                let memory = state.rows.memory.get(device);
                if let Some(peak) = memory.and_then(|m| m.peak(window)) {
                    self.say(format!("at most {} in use", bytes(peak)));
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
            return self.say(gpu.lack(metric).unwrap_or("not read here"));
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
            let length = duration(it.span.len());
            self.say(format!("{value} in the {length} here"));
            self.facts
                .extend(hardware::reason(it.reasons).map(str::to_owned));
        }
        if metric == Metric::Power {
            self.say("a mean over about a second");
        }
    }
}
