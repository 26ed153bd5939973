//! The figures of the variants of a run: those of each one's median pass.

pub mod measure;
pub mod work;

use serde::{Serialize, Serializer};

use crate::device::DeviceFigures;
use crate::memory::MemoryUse;
use crate::passes::{Pass, Passes, Variant};
use crate::tables::{self, NameRow, ShapeTime};
use activity::text::plural;
use activity::units::percent;
use activity::{Direction, Ns, RangeKind, Span};
use causes::{Causes, graph::Graph};
use measure::Measured;
use scenario::figures::Kind;
use scenario::plan::{Plan, VariantPlan, half_interval};
use trace::{CallIndex, Trace};

/// How well repeats tell the median of the CPU's time of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// The part of the median that the scenario asks for (`until`).
    pub asked: f64,
    /// Half of the median's 95 % interval, as a part of it; `null` where too few repeats ran to tell.
    pub half_interval: Option<f64>,
}

/// The figures of one variant, those of its median pass.
///
/// What is written to JSON is a contract: add, don't rename.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VariantFigures {
    /// Which variant: index into [`Passes::variants`].
    #[serde(skip)]
    pub position: usize,
    /// Its name, value of the sweep and place in the plan.
    #[serde(flatten)]
    pub variant: Variant,
    /// Measured passes.
    pub repeats: usize,
    /// First operation's start to the last one's end; 0 when nothing ran on a GPU.
    pub makespan_ns: Ns,
    /// The host's time around the pass.
    pub wall_ns: Ns,
    /// How well its repeats tell the median; absent where the scenario does not ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Precision>,
    /// Every measured pass's makespan, in order.
    pub makespans_ns: Vec<Ns>,
    /// The pass that is described.
    #[serde(skip)]
    pub pass: Pass,
    /// Every figure that it has.
    #[serde(serialize_with = "by_name")]
    pub figures: Vec<Measured>,
    /// Figures by device.
    pub devices: Vec<DeviceFigures>,
    /// Time for which nothing ran on any device, within the makespan.
    #[serde(skip)]
    pub idle_ns: Ns,
    /// Kernels by name, most time first.
    pub kernels: Vec<NameRow>,
    /// Named phases of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<NameRow>,
    /// The most device memory in use at one time; `None` when the source recorded no allocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Kernels by launch configuration.
    #[serde(skip)]
    pub shapes: Vec<ShapeTime>,
}

fn by_name<S: Serializer>(all: &[Measured], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(all.iter().map(|m| (m.figure.name(), m.value)))
}

/// What figures rest on, where it is known.
pub type Known<'a> = (Option<&'a CallIndex>, Option<&'a Causes<'a>>);

impl VariantFigures {
    /// The figures of one variant of `passes`; `None` while none of its measured passes has ended.
    /// Without `calls`, [`DeviceFigures::no_api`] is not known, and without `causes` not why devices were idle.
    pub fn of(
        trace: &Trace,
        passes: &Passes,
        position: usize,
        plan: Option<&Plan>,
        (calls, causes): Known<'_>,
        memory: &MemoryUse,
    ) -> Option<Self> {
        let (pass, _) = standing(passes, position)?;
        let window = Some(pass.span);
        let repeats = passes.measured(position).map(|it| passes.list[it].span);
        let sampled = repeats.reduce(Span::hull);
        let spans = trace.streams().flat_map(|(_, lane)| {
            let rows = lane.starting(pass.span);
            rows.map(|row| lane.span(row))
        });
        let makespans_ns: Vec<Ns> = passes
            .measured(position)
            .map(|i| passes.list[i].makespan())
            .collect();
        let mut of = VariantFigures {
            position,
            variant: passes.variants[position].clone(),
            repeats: makespans_ns.len(),
            makespan_ns: pass.makespan(),
            wall_ns: pass.wall(),
            makespans_ns,
            until: None,
            pass,
            figures: Vec::new(),
            devices: crate::count(trace, calls, window),
            idle_ns: pass.makespan() - Span::union_len(spans.collect()),
            kernels: tables::kernels_sampled(trace, window, sampled),
            phases: tables::ranges(trace, RangeKind::Phase, window),
            peak_memory: memory.peak(pass.span),
            shapes: tables::shapes(trace, window),
        };
        if let Some(until) = of.planned(plan).and_then(|it| it.until) {
            let walls = passes
                .measured(position)
                .map(|it| passes.list[it].wall() as f64);
            of.until = Some(Precision {
                asked: until,
                half_interval: half_interval(&walls.collect::<Vec<_>>()),
            });
        }
        if let Some(causes) = causes {
            let devices = of.devices.iter_mut();
            devices.for_each(|it| it.idle = causes.idle(it.index, window));
        }
        of.figures = measure::all(&of, of.planned(plan));
        Some(of)
    }

    /// How well its repeats tell the median, where the scenario asks: "37 repeats: median ± 1.8 %".
    pub fn precision(&self) -> Option<String> {
        let it = self.until?;
        let (repeats, asked) = (plural(self.repeats as u64, "repeat"), percent(it.asked));
        Some(match it.half_interval {
            Some(half) if half < it.asked => format!("{repeats}: median ± {}", percent(half)),
            Some(half) => {
                let half = percent(half);
                format!("{repeats}, ± {half}: the {asked} asked were not reached")
            }
            None => format!("{repeats}: too few for the {asked} asked"),
        })
    }

    /// Its part of a plan.
    pub fn planned<'a>(&self, plan: Option<&'a Plan>) -> Option<&'a VariantPlan> {
        plan?
            .variants
            .get(self.variant.index)
            .filter(|planned| planned.name == self.variant.name)
    }

    /// Whether the GPU's work is most of the host's time.
    pub fn is_explained(&self) -> bool {
        self.makespan_ns > 0 && 2 * self.makespan_ns >= self.wall_ns
    }

    /// Its name with the sweep's value.
    pub fn label(&self) -> String {
        self.variant.label()
    }

    /// One of its figures that are about nothing else.
    pub fn value(&self, kind: Kind) -> Option<f64> {
        let found = self.figures.iter().find(|m| m.figure.kind == kind)?;
        Some(found.value)
    }

    /// Sums a figure over the devices.
    pub(super) fn sum<T: std::iter::Sum>(&self, figure: impl Fn(&DeviceFigures) -> T) -> T {
        self.devices.iter().map(figure).sum()
    }

    /// Bytes and the sum of the copies' durations of one direction, over all devices.
    pub(super) fn copied(&self, direction: Direction) -> (u64, Ns) {
        let of = |d: &DeviceFigures| d.direction(direction).copied().unwrap_or_default();
        (self.sum(|d| of(d).bytes), self.sum(|d| of(d).sum_ns))
    }
}

/// The pass that stands for a variant, once a measured one has ended, and how many those are.
fn standing(passes: &Passes, position: usize) -> Option<(Pass, usize)> {
    let pass = passes.list[passes.representative(position)?];
    (pass.is_measured && !pass.is_open).then(|| (pass, passes.measured(position).count()))
}

/// The figures of every variant that has a measured pass, in the order they ran.
pub fn of_passes(
    trace: &Trace,
    passes: &Passes,
    plan: Option<&Plan>,
    known: Known<'_>,
    memory: &MemoryUse,
) -> Vec<VariantFigures> {
    let of = |at| VariantFigures::of(trace, passes, at, plan, known, memory);
    (0..passes.variants.len()).filter_map(of).collect()
}

/// The figures of a run's variants, kept up as it grows. A variant's are worked out anew when another of its passes
/// stands for it or that pass got more operations, and at the run's end.
#[derive(Clone, Debug, Default)]
pub struct RunFigures {
    /// Those of the variants that have a measured pass, in the order they ran.
    pub variants: Vec<VariantFigures>,
    /// Whether the run had ended.
    pub is_final: bool,
}

impl RunFigures {
    /// Brings them up to date with the passes.
    pub fn update(
        &mut self,
        trace: &Trace,
        passes: &Passes,
        plan: Option<&Plan>,
        is_running: bool,
    ) {
        let can_keep = self.is_final || is_running;
        self.is_final = !is_running;
        let mut known = std::mem::take(&mut self.variants).into_iter().peekable();
        let mut memory = None;
        let mut expected = plan.iter().flat_map(|it| &it.expectations);
        let is_asked = self.is_final && expected.any(|it| it.figure.kind == Kind::IdleBy);
        let graph = is_asked.then(|| Graph::new(trace));
        let causes = graph.as_ref().map(|it| Causes::new(trace, it));
        for position in 0..passes.variants.len() {
            while known.next_if(|old| old.position < position).is_some() {}
            let old = known.next_if(|old| old.position == position);
            let is_same = |old: &VariantFigures| {
                can_keep
                    && Some((old.pass, old.repeats)) == standing(passes, position)
                    && old.variant.name == passes.variants[position].name
            };
            let figures = match old {
                Some(old) if is_same(&old) => Some(VariantFigures {
                    variant: passes.variants[position].clone(),
                    ..old
                }),
                _ => {
                    let memory = memory.get_or_insert_with(|| MemoryUse::of(trace, None));
                    let known = (None, causes.as_ref());
                    VariantFigures::of(trace, passes, position, plan, known, memory)
                }
            };
            self.variants.extend(figures);
        }
    }

    /// Whether these are those of all variants as they are now.
    pub fn is_current(&self, passes: &Passes, is_running: bool) -> bool {
        let known = self.variants.iter();
        let known = known.map(|it| (it.position, &it.variant, (it.pass, it.repeats)));
        let now = passes.variants.iter().enumerate();
        let now = now.filter_map(|(at, variant)| Some((at, variant, standing(passes, at)?)));
        self.is_final != is_running && known.eq(now)
    }

    /// Those of one variant: index into [`Passes::variants`].
    pub fn of_variant(&self, position: usize) -> Option<&VariantFigures> {
        self.variants.iter().find(|v| v.position == position)
    }
}
