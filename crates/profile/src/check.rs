//! Which numbers of a profile the model can work with.

use toml::Value;

use super::Profile;

/// No single cost in a profile is longer than a minute.
const MAX_NS: i64 = 60_000_000_000;

/// Numbers that the model divides by, beside rates.
const COUNTS: &str = "device.multiprocessors device.threads_per_sm device.blocks_per_sm device.shared_per_sm \
    device.registers_per_sm copy.stage_bytes kernel.threads_for_compute kernel.threads_for_memory \
    kernel.concurrent api.graph_portion api.queue_depth";

impl Profile {
    /// The first number that would make the model divide by zero or run backwards. What is no whole number is a rate
    /// or a share, and what ends in `_ns` is a time.
    pub(super) fn first_fault(&self) -> Option<String> {
        let mut figures = match Value::try_from(self) {
            Ok(figures) => figures,
            Err(error) => return Some(error.to_string()),
        };
        let mut fault = None;
        each_figure(&mut figures, String::new(), &mut |name, value| {
            let wrong = match *value {
                Value::Float(rate) if !(rate.is_finite() && rate > 0.0) => {
                    "must be more than 0".to_owned()
                }
                Value::Integer(0) if COUNTS.split(' ').any(|it| it == name) => {
                    "must be at least 1".to_owned()
                }
                Value::Integer(ns) if name.ends_with("_ns") && !(0..=MAX_NS).contains(&ns) => {
                    format!("must lie between 0 and {MAX_NS} ns")
                }
                _ => return,
            };
            fault.get_or_insert(format!("{name} {wrong}"));
        });
        let sizes = &self.copy.pageable;
        if sizes.is_empty() || !sizes.is_sorted_by(|a, b| a.bytes < b.bytes) {
            fault.get_or_insert("copy.pageable must have sizes in ascending order".to_owned());
        }
        fault
    }
}

/// Hands every number of a profile to `take`, with its place: tables and positions of lists, joined by dots.
pub fn each_figure(value: &mut Value, path: String, take: &mut impl FnMut(&str, &mut Value)) {
    let below = |key: &str| match path.as_str() {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    match value {
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                each_figure(value, below(key), take);
            }
        }
        Value::Array(list) => {
            for (i, value) in list.iter_mut().enumerate() {
                each_figure(value, below(&i.to_string()), take);
            }
        }
        Value::Integer(_) | Value::Float(_) => take(&path, value),
        _ => {}
    }
}
