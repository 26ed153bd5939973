//! Steps to operations: the ones that neither move memory nor launch anything, and loops.

use super::super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::super::expr::parse::Template;
use super::super::expr::value::{Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::file::{BufferRef, Loop, Step, StepKind};
use super::super::plan::{
    BufferId, HostMemory, HostWork, MemRef, Op, OpKind, StreamId, SyncTarget,
};
use super::count::iterations;
use super::objects::MAX_DEVICES;
use super::{MAX_FAILURES, Unroll};

/// Device memory above which a scenario is likely a mistake, in bytes: most GPUs have less.
const MUCH_MEMORY: u64 = 80 << 30;

impl<'f> Unroll<'_, 'f> {
    /// How many names of the scope are parameters.
    pub(super) fn params_end(&self) -> usize {
        self.lowering.file.params.len()
    }

    pub(super) fn steps(&mut self, steps: &'f [Step]) {
        for step in steps {
            if self.has_stopped {
                return;
            }
            // What went wrong in a step is reported; the steps behind it are looked at, too.
            if self.step(step).is_none() {
                if !self.lowering.diagnostics.has_errors() {
                    self.error(step.loc, "this step cannot be carried out");
                }
                self.failures += 1;
                self.has_stopped |= self.failures >= MAX_FAILURES;
            }
        }
    }

    /// Adds an operation.
    pub(super) fn emit(&mut self, kind: OpKind, loc: Loc) -> Option<()> {
        self.emit_many(kind, loc, 1)
    }

    /// Adds an operation that stands for `count` of them.
    pub(super) fn emit_many(&mut self, kind: OpKind, loc: Loc, count: u64) -> Option<()> {
        if !self.spend(count, loc) {
            return None;
        }
        let op = Op {
            kind,
            site: self.lowering.sites.id(loc),
        };
        match &mut self.capturing {
            Some(capturing) => capturing.ops.push(op),
            None => self.plan.ops.push(op),
        }
        Some(())
    }

    fn step(&mut self, step: &'f Step) -> Option<()> {
        use StepKind as S;
        let loc = step.loc;
        match &step.kind {
            S::Copy(copy) => self.copy(copy, loc),
            S::Memset {
                to,
                value,
                offset,
                bytes,
                stream,
            } => self.memset(
                to,
                [value.as_ref(), offset.as_ref(), bytes.as_ref()],
                stream.as_ref(),
                loc,
            ),
            S::Launch {
                kernel,
                on,
                args,
                stream,
            } => {
                let args = args.as_ref().map(|(args, _)| args.as_slice());
                self.launch(&kernel.text, on, args, stream.as_ref(), loc)
            }
            S::Record { event, stream } => self.record(event, stream.as_ref(), loc),
            S::Wait { event, stream } => self.wait(event, stream.as_ref(), loc),
            S::SyncStream(stream) => {
                self.not_captured("a sync", loc)?;
                let stream = self.stream(stream.as_ref(), None)?;
                self.mention(stream, loc, "waited for");
                self.emit(OpKind::Sync(SyncTarget::Stream(stream)), loc)
            }
            S::SyncEvent(event) => {
                self.not_captured("a sync", loc)?;
                let event = self.recorded_event(event)?;
                self.emit(OpKind::Sync(SyncTarget::Event(event)), loc)
            }
            S::SyncDevice(device) => {
                self.not_captured("a sync", loc)?;
                let device = match device {
                    Some(device) => {
                        self.integer(device, 0..=MAX_DEVICES - 1, "a device's number")? as u32
                    }
                    None => 0,
                };
                self.device_used(device);
                self.emit(OpKind::Sync(SyncTarget::Device(device)), loc)
            }
            S::Alloc { buffer, stream } => self.alloc(buffer, stream.as_ref(), loc),
            S::Free { buffer, stream } => self.free(buffer, stream.as_ref(), loc),
            S::Capture {
                graph,
                stream,
                body,
            } => self.capture(graph, stream.as_ref(), body, loc),
            S::LaunchGraph { graph, stream } => self.launch_graph(graph, stream.as_ref(), loc),
            S::Busy(time) => {
                self.not_captured("host work", loc)?;
                let time = self.time(time)?;
                self.emit(OpKind::Host(HostWork::Busy(time)), loc)
            }
            S::Sum(buffer) => {
                let (at, bytes) = self.host_floats(buffer, loc)?;
                self.emit(OpKind::Host(HostWork::Sum(at, bytes)), loc)
            }
            S::Sin(buffer) => {
                let (at, bytes) = self.host_floats(buffer, loc)?;
                self.emit(OpKind::Host(HostWork::Sin(at, bytes)), loc)
            }
            S::Matmul { of, n } => self.host_matmul(of, n, loc),
            S::Range { name, body } => {
                self.not_captured("a range of host time", loc)?;
                let phase = self.phase(name)?;
                self.emit(OpKind::RangeBegin(phase), loc)?;
                self.steps(body);
                self.emit(OpKind::RangeEnd, loc)
            }
            S::For(inner) => self.for_loop(inner),
            S::If {
                condition,
                body,
                otherwise,
            } => {
                let holds = self.eval(condition)?.is_true();
                self.steps(if holds { body } else { otherwise });
                Some(())
            }
        }
    }

    fn for_loop(&mut self, inner: &'f Loop) -> Option<()> {
        let from = self.whole(&inner.from, "the start of a loop")?;
        let to = self.whole(&inner.to, "the end of a loop")?;
        let step = match &inner.step {
            Some(expr) => {
                let step = self.whole(expr, "the step of a loop")?;
                if step == 0 {
                    self.error(expr.loc, "this loop never ends: its step is 0");
                    return None;
                }
                step
            }
            None => 1,
        };
        let name = inner.variable.text.as_str();
        let mut value = from;
        for _ in 0..iterations(from, to, step) {
            self.scope.push((name, Value::Int(value, Unit::None)));
            self.steps(&inner.body);
            self.scope.pop();
            if self.has_stopped {
                return None;
            }
            value = value.saturating_add(step);
        }
        Some(())
    }

    fn record(&mut self, event: &Template, stream: Option<&Template>, loc: Loc) -> Option<()> {
        let event = self.event(event)?;
        let stream = self.stream(stream, None)?;
        self.mention(stream, loc, "recorded on");
        match self.capturing {
            Some(_) => self.captured_record(event, stream, loc)?,
            None => {
                self.objects.recorded.insert(event);
            }
        }
        self.emit(OpKind::Record { event, stream }, loc)
    }

    fn wait(&mut self, event: &Template, stream: Option<&Template>, loc: Loc) -> Option<()> {
        let event = match self.capturing {
            Some(_) => self.event(event)?,
            None => self.recorded_event(event)?,
        };
        let stream = self.stream(stream, None)?;
        self.mention(stream, loc, "told to wait");
        if self.capturing.is_some() {
            self.captured_wait(event, stream, loc)?;
        }
        self.emit(OpKind::Wait { event, stream }, loc)
    }

    fn alloc(
        &mut self,
        reference: &'f BufferRef,
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<()> {
        self.not_captured("an allocation", loc)?;
        let (buffer, stream) = self.pool(reference, stream, loc)?;
        if let Some(first) = self.objects.alive.insert(buffer, loc) {
            let message = format!(
                "{} is allocated already",
                quoted(&self.plan.buffers[buffer].name)
            );
            self.report(
                Diagnostic::error(loc.range(), message)
                    .related(first.range(), "it is allocated here"),
            );
            return None;
        }
        self.objects.freed.remove(&buffer);
        self.emit(OpKind::Alloc { buffer, stream }, loc)
    }

    fn free(
        &mut self,
        reference: &'f BufferRef,
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<()> {
        self.not_captured("freeing memory", loc)?;
        let (buffer, stream) = self.pool(reference, stream, loc)?;
        if self.objects.alive.remove(&buffer).is_none() {
            let name = quoted(&self.plan.buffers[buffer].name);
            let when = if self.objects.freed.contains(&buffer) {
                "freed already"
            } else {
                "not allocated yet"
            };
            self.error(loc, format!("{name} is {when}"));
            return None;
        }
        self.objects.freed.insert(buffer);
        self.emit(OpKind::Free { buffer, stream }, loc)
    }

    /// The buffer and the stream of an allocation.
    fn pool(
        &mut self,
        reference: &'f BufferRef,
        stream: Option<&Template>,
        loc: Loc,
    ) -> Option<(BufferId, Option<StreamId>)> {
        let buffer = self.buffer(reference)?;
        let spec = &self.plan.buffers[buffer];
        let (device, is_before) = (spec.device, spec.preallocated || spec.device.is_none());
        if is_before {
            let message = format!("{} is allocated before the first pass", quoted(&spec.name));
            self.report(
                Diagnostic::error(loc.range(), message)
                    .help("set alloc = \"step\" in its [buffers] table"),
            );
            return None;
        }
        let stream = match stream {
            Some(_) => {
                let stream = self.stream(stream, device)?;
                self.feed(stream);
                Some(stream)
            }
            None => None,
        };
        Some((buffer, stream))
    }

    /// The host side of a buffer, as f32 values.
    fn host_floats(&mut self, reference: &'f BufferRef, loc: Loc) -> Option<(MemRef, u64)> {
        self.not_captured("host work", loc)?;
        let buffer = self.buffer(reference)?;
        self.host_side(buffer, reference.loc)?;
        Some((
            MemRef { buffer, offset: 0 },
            self.plan.buffers[buffer].bytes / 4 * 4,
        ))
    }

    fn host_matmul(&mut self, of: &'f [BufferRef; 3], n: &Expr, loc: Loc) -> Option<()> {
        self.not_captured("host work", loc)?;
        let n = self.integer(n, 1..=32_768, "the size of a matrix")? as u32;
        let needed = u64::from(n) * u64::from(n) * 4;
        let mut ids = [0; 3];
        for (id, reference) in ids.iter_mut().zip(of) {
            *id = self.buffer(reference)?;
            self.host_side(*id, reference.loc)?;
            let bytes = self.plan.buffers[*id].bytes;
            if bytes < needed {
                let name = quoted(&self.plan.buffers[*id].name);
                self.error(
                    reference.loc,
                    format!("{name} has {bytes} B, and a {n} x {n} matrix of f32 has {needed} B"),
                );
                return None;
            }
        }
        let [a, b, c] = ids;
        self.emit(OpKind::Host(HostWork::Matmul(a, b, c, n)), loc)
    }

    /// What can only be said when all steps are unrolled.
    pub(super) fn finish(&mut self) {
        self.plan.devices = self.plan.devices.max(1);
        if self.lowering.diagnostics.has_errors() {
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
        self.memory();
        if self.plan.ops.is_empty() {
            let message = format!(
                "the variant {} does nothing",
                quoted(&self.variant.name.text)
            );
            self.report(Diagnostic::warning(self.variant.name.loc.range(), message));
        }
    }

    fn unfed_streams(&mut self) {
        let fed = |(stream, used): (usize, &super::objects::StreamUse)| {
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
    fn memory(&mut self) {
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
                let amount = crate::activity::units::bytes(bytes);
                let message = format!(
                    "the buffers of {} need {amount} {what}",
                    quoted(&self.variant.name.text)
                );
                self.report(Diagnostic::warning(self.variant.name.loc.range(), message));
            }
        }
    }
}
