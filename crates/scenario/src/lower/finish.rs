//! Checks of a variant that need all its steps unrolled.

use super::super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::super::expr::Loc;
use super::super::plan::{BufferId, HostMemory};
use super::super::unroll::{MAX_DEVICES, StreamUse, Unroll};

/// Device memory above which a scenario is likely a mistake, in bytes: most GPUs have less.
const MUCH_MEMORY: u64 = 80 << 30;

impl Unroll<'_, '_> {
    /// Reports what the variant leaves undone. `loc` is where its name stands.
    pub(super) fn finish(&mut self, loc: Loc) {
        self.plan.devices = self.plan.devices.max(1);
        if self.shared.diagnostics.has_errors() {
            return;
        }
        self.events_have_one_device();
        self.unfed_streams();
        let mut left: Vec<(BufferId, Loc)> = self
            .objects
            .alive
            .iter()
            .map(|(id, loc)| (*id, *loc))
            .collect();
        left.sort_unstable_by_key(|(id, _)| *id);
        for (buffer, loc) in left.into_iter().take(3) {
            let name = quoted(&self.plan.buffers[buffer].name);
            let message = format!("{name} is never freed, and the next pass allocates it again");
            let diagnostic = if self.plan.warmup + self.plan.repeat > 1 {
                Diagnostic::error(loc.range(), message)
            } else {
                Diagnostic::warning(loc.range(), format!("{name} is never freed"))
            };
            self.report(diagnostic.help("add a step { free = … } at the end"));
        }
        self.memory(loc);
        if self.plan.ops.is_empty() {
            let message = format!("the variant {} does nothing", quoted(&self.plan.name));
            self.report(Diagnostic::warning(loc.range(), message));
        }
    }

    fn unfed_streams(&mut self) {
        let fed = |(stream, used): (usize, &StreamUse)| {
            used.is_fed.then(|| self.plan.streams[stream].name.clone())
        };
        let fed: Vec<String> = self
            .objects
            .stream_use
            .iter()
            .enumerate()
            .filter_map(fed)
            .collect();
        let uses = self.objects.stream_use.clone();
        for (stream, used) in uses.iter().enumerate().filter(|(_, used)| !used.is_fed) {
            if let Some((loc, how)) = used.mention {
                let name = &self.plan.streams[stream].name;
                let help = did_you_mean(name, fed.iter().map(String::as_str));
                let message = format!(
                    "the stream {} is {how}, but nothing is ever put on it",
                    quoted(name)
                );
                self.report(Diagnostic::warning(loc.range(), message).maybe_help(help));
            }
        }
    }

    /// Warns of more memory than machines usually have.
    fn memory(&mut self, loc: Loc) {
        let mut on_device = [0u64; MAX_DEVICES as usize];
        let mut on_host = 0u64;
        for buffer in &self.plan.buffers {
            if let Some(device) = buffer.device {
                let sum = &mut on_device[device as usize];
                *sum = sum.saturating_add(buffer.bytes);
            }
            if matches!(buffer.host, HostMemory::Pinned | HostMemory::Pageable) {
                on_host = on_host.saturating_add(buffer.bytes);
            }
        }
        let most = on_device.into_iter().max().unwrap_or(0);
        for (bytes, what) in [(most, "of device memory"), (on_host, "of host memory")] {
            if bytes > MUCH_MEMORY {
                let amount = activity::units::bytes(bytes);
                let message = format!(
                    "the buffers of {} need {amount} {what}",
                    quoted(&self.plan.name)
                );
                self.report(Diagnostic::warning(loc.range(), message));
            }
        }
    }
}
