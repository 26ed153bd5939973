//! Operations and host calls by name, as the report and the screen tell of them.

use super::table::Column;
use activity::Ns;
use activity::units::{bytes, count, duration, gb_per_s, percent, rate};
use figures::shapes::Use;
use figures::tables::NameRow;

/// Operations of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations {
    /// Their times, under the name that is shown.
    pub times: NameRow,
    /// Bytes that they moved, as far as they lie in scope.
    pub bytes: f64,
}

impl Operations {
    /// What a table tells of them.
    #[rustfmt::skip]
    pub fn columns() -> Vec<Column<Self>> {
        let column = Column::<Self>::new;
        vec![
            Column::rest("operation", 24, |it: &Self| it.times.name.clone()),
            column("count", 9, |it| count(it.times.count)).sorted(|it| it.times.count as Ns),
            column("total", 9, |it| duration(it.times.total_ns)).sorted(|it| it.times.total_ns),
            column("mean", 9, |it| duration(it.times.mean_ns)).sorted(|it| it.times.mean_ns),
            column("min", 9, |it| duration(it.times.min_ns)).dim().spare(3),
            column("max", 9, |it| duration(it.times.max_ns)).sorted(|it| it.times.max_ns),
            column("share", 6, |it| percent(it.times.share)).dim(),
            column("class", 8, |it| used(it, |it| Some(it.class.label().to_owned()))).spare(1),
            column("DRAM", 6, |it| used(it, |it| it.dram.map(percent))).spare(1),
            column("tensor", 6, |it| used(it, |it| it.tensor.map(percent))).spare(1),
            column("moved", 10, |it| moved(it, |moved| Some(bytes(moved)))).dim().spare(2),
            column("GB/s", 7, |it| moved(it, |moved| gb_per_s(moved, it.times.total_ns).map(rate))).spare(2),
        ]
    }
}

/// A text on what counters tell of a kernel, if they do.
fn used(it: &Operations, text: impl Fn(Use) -> Option<String>) -> String {
    Use::of(&it.times.shapes).and_then(text).unwrap_or_default()
}

/// A text on the bytes that were moved, if there are any.
fn moved(it: &Operations, text: impl Fn(u64) -> Option<String>) -> String {
    let bytes = Some(it.bytes.round() as u64).filter(|bytes| *bytes > 0);
    bytes.and_then(text).unwrap_or_default()
}
