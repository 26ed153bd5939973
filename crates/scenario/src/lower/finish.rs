//! Checks of a variant that need all its steps unrolled.

use super::super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::super::expr::Loc;
use super::super::unroll::Unroll;

impl Unroll<'_, '_> {
    /// Reports what the variant leaves undone. `loc` is where its name stands.
    pub(super) fn finish(&mut self, loc: Loc) {
        self.plan.devices = self.plan.devices.max(1);
        if self.shared.diagnostics.has_errors() {
            return;
        }
        self.events_have_one_device();
        self.unfed_streams();
        for (buffer, loc) in self.objects.alive.clone().into_iter().take(3) {
            let name = quoted(&self.plan.buffers[buffer].name);
            let message = format!("{name} is never freed, and the next pass allocates it again");
            let diagnostic = if self.plan.warmup + self.plan.repeat > 1 {
                Diagnostic::error(loc.range(), message)
            } else {
                Diagnostic::warning(loc.range(), format!("{name} is never freed"))
            };
            self.report(diagnostic.help("add a step { free = … } at the end"));
        }
        if self.plan.ops.is_empty() {
            let message = format!("the variant {} does nothing", quoted(&self.plan.name));
            self.report(Diagnostic::warning(loc.range(), message));
        }
    }

    fn unfed_streams(&mut self) {
        let uses = std::mem::take(&mut self.objects.stream_use);
        for (stream, used) in uses.iter().enumerate().filter(|(_, used)| !used.is_fed) {
            if let Some((loc, how)) = used.mention {
                let name = &self.plan.streams[stream].name;
                let all = self.plan.streams.iter().zip(&uses);
                let fed = all
                    .filter(|(_, used)| used.is_fed)
                    .map(|(it, _)| it.name.as_str());
                let help = did_you_mean(name, fed);
                let name = quoted(name);
                let message = format!("the stream {name} is {how}, but nothing is ever put on it");
                self.report(Diagnostic::warning(loc.range(), message).maybe_help(help));
            }
        }
    }
}
