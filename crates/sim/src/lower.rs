//! A plan as the steps of its one host thread.
//!
//! [`Lowering`] is an iterator. It unrolls variants, passes and operations as the model asks for the next step. So a
//! plan of millions of operations needs the memory of one. To the plan's own operations it adds what the runner does
//! around them: contexts, modules, streams, buffers, and marks. The marks tell to which variant and pass everything
//! belongs.

mod cache;
mod fill;
mod graph;
mod ops;
mod setup;
mod tables;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use self::cache::HostCache;
use self::ops::PendingCopy;
use self::setup::{Contexts, SmallBlock};
use self::tables::Tables;
use super::program::{EventKey, Graph, Operation, Step, StreamKey, THREAD};
use activity::feed::Failure;
use activity::{Def, Ns, ProcessInfo, Range, RangeKind};
use profile::Profile;
use scenario::plan::{Op, Plan, SyncTarget, VariantPlan};

/// Host time between two passes, which the runner needs for itself.
const BETWEEN_PASSES: Ns = 20_000;

/// How far a plan has been lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Start,
    /// Before a variant.
    Variant(usize),
    /// Before a pass of a variant.
    Pass(usize, u32),
    /// Before an operation of a pass of a variant.
    Op(usize, u32, usize),
    End,
}

/// The steps of a plan.
pub(super) struct Lowering {
    plan: Arc<Plan>,
    profile: Arc<Profile>,
    position: Position,
    /// Steps that are ready.
    ready: VecDeque<Step>,
    /// A copy in pieces that is not yet lowered to its end.
    copy: Option<PendingCopy>,
    tables: Tables,
    contexts: Contexts,
    /// The primary contexts, while a cold pass has its own.
    primary: Contexts,
    current: Current,
    /// Device memory in use, by device.
    in_use: Vec<u64>,
    /// Blocks of small allocations, by device, and of pinned memory.
    small_device: Vec<SmallBlock>,
    small_pinned: SmallBlock,
    /// Why the program cannot go on, once it cannot. The steps end there.
    failure: Arc<OnceLock<Failure>>,
}

/// What belongs to the variant that is being lowered.
#[derive(Default)]
struct Current {
    /// For each stream of the plan, the model's.
    streams: Vec<StreamKey>,
    /// The model's number of the plan's event 0.
    first_event: EventKey,
    /// For each launch, the operation without its place.
    launches: Vec<Operation>,
    /// For each buffer, where its device side lies; 0 while it has none.
    device_address: Vec<u64>,
    /// For each buffer, where its host side lies.
    host_address: Vec<u64>,
    /// The graphs that were captured, and whether they were launched since.
    graphs: Vec<Option<(Arc<Graph>, bool)>>,
    /// For each event, the context of the stream that recorded it last.
    event_context: Vec<u32>,
    /// For each phase, how often it was opened in this pass.
    phases: Vec<u32>,
    cache: HostCache,
}

impl Lowering {
    pub(super) fn new(
        plan: Arc<Plan>,
        profile: Arc<Profile>,
        failure: Arc<OnceLock<Failure>>,
    ) -> Lowering {
        Lowering {
            in_use: vec![0; Lowering::devices(&plan) as usize],
            small_device: vec![SmallBlock::default(); Lowering::devices(&plan) as usize],
            small_pinned: SmallBlock::default(),
            failure,
            plan,
            profile,
            position: Position::Start,
            ready: VecDeque::new(),
            copy: None,
            tables: Tables::default(),
            contexts: Contexts::default(),
            primary: Contexts::default(),
            current: Current::default(),
        }
    }

    /// The number of devices that the plan needs, at least one.
    pub(super) fn devices(plan: &Plan) -> u32 {
        let devices = plan.variants.iter().map(|v| v.devices);
        devices.max().unwrap_or(0).max(1)
    }

    /// Lowers the next part of the plan into `ready`.
    fn go_on(&mut self) {
        if let Some(copy) = self.copy.take() {
            self.lower_piece(copy);
            return;
        }
        self.position = match self.position {
            Position::Start => {
                self.begin();
                Position::Variant(0)
            }
            Position::Variant(variant) if variant >= self.plan.variants.len() => Position::End,
            Position::Variant(variant) => {
                self.begin_variant(variant);
                Position::Pass(variant, 0)
            }
            Position::Pass(variant, pass) => {
                let spec = &self.plan.clone().variants[variant];
                // The model's repeats are alike: with the fewest of which there is an interval, enough is known.
                let most = if spec.until.is_some() { 6 } else { u32::MAX };
                if pass >= spec.warmup + spec.repeat.clamp(1, most) {
                    if !spec.cold {
                        self.tear_down(spec);
                    }
                    self.push(Step::End);
                    Position::Variant(variant + 1)
                } else {
                    self.begin_pass(spec, pass);
                    Position::Op(variant, pass, 0)
                }
            }
            Position::Op(variant, pass, op) => {
                let spec = &self.plan.clone().variants[variant];
                if let Some(Op { kind, .. }) = spec.ops.get(op) {
                    self.lower_op(spec, *kind);
                    Position::Op(variant, pass, op + 1)
                } else {
                    self.end_pass(spec);
                    Position::Pass(variant, pass + 1)
                }
            }
            Position::End => Position::End,
        };
    }

    fn begin(&mut self) {
        for id in 0..Lowering::devices(&self.plan) {
            let info = self.profile.device_info(id);
            self.push(Step::Define(Def::Device(info)));
        }
        let process = ProcessInfo {
            command: self.plan.name.clone(),
            versions: format!("simulated with the profile of {}", self.profile.device.name),
            ..ProcessInfo::default()
        };
        self.push(Step::Define(Def::Process(process)));
        let thread = Def::Thread {
            thread: THREAD,
            name: "main".to_owned(),
        };
        self.push(Step::Define(thread));
    }

    fn begin_variant(&mut self, variant: usize) {
        let plan = self.plan.clone();
        let spec = &plan.variants[variant];
        self.begin_range(RangeKind::Variant, &spec.name, variant as u32);
        self.prepare(spec);
        if !spec.cold {
            self.make_contexts(spec);
            self.set_up(spec);
        }
    }

    fn begin_pass(&mut self, spec: &VariantPlan, pass: u32) {
        self.push(Step::Work(BETWEEN_PASSES));
        self.current.phases.fill(0);
        if pass < spec.warmup {
            self.begin_range(RangeKind::Warmup, &spec.name, pass);
        } else {
            self.begin_range(RangeKind::Repeat, &spec.name, pass - spec.warmup);
        }
        if spec.cold {
            self.begin_range(RangeKind::Phase, "make the context", pass);
            self.make_contexts(spec);
            self.push(Step::End);
            self.begin_range(RangeKind::Phase, "allocate and load", pass);
            self.set_up(spec);
            self.push(Step::End);
        }
    }

    fn end_pass(&mut self, spec: &VariantPlan) {
        for device in 0..spec.devices.max(1) {
            self.sync(SyncTarget::Device(device));
        }
        self.push(Step::End);
        self.free_leftovers(spec);
        if spec.cold {
            self.tear_down(spec);
            self.destroy_contexts(spec);
        }
    }

    fn begin_range(&mut self, kind: RangeKind, name: &str, index: u32) {
        let name = self.name(name);
        let thread = THREAD;
        self.push(Step::Begin(Range {
            kind,
            name,
            thread,
            index,
        }));
    }

    fn push(&mut self, step: Step) {
        self.ready.push_back(step);
    }

    /// A call that takes the host's time.
    fn call(&mut self, call: &str, cost: Ns) {
        let call = self.name(call);
        self.push(Step::Call {
            call,
            cost,
            overhead: None,
        });
    }
}

impl Iterator for Lowering {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Some(step);
            }
            if self.position == Position::End || self.failure.get().is_some() {
                return None;
            }
            self.go_on();
        }
    }
}
