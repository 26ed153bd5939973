//! The middle of what several processes measured.
//!
//! A figure is named by its place in the profile's file: tables and positions of lists, joined by dots. So nothing here knows
//! which figures there are.

use toml::Value;

use activity::stats;
use profile::{Profile, each_figure};

/// A profile, and which of its figures were not measured, as "table.key" or "table".
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) profile: Profile,
    pub(crate) missing: Vec<&'static str>,
}

impl Measured {
    fn lacks(&self, path: &str) -> bool {
        self.missing.iter().any(|name| {
            path.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

/// The middle of what several runs measured of each figure. `None` without runs.
///
/// What a run did not measure does not count; what none did stays as in the first.
pub(crate) fn middle(runs: &[Measured]) -> Option<Profile> {
    let first = &runs.first()?.profile;
    let values: Vec<Value> = (runs.iter())
        .map(|run| Value::try_from(&run.profile).ok())
        .collect::<Option<_>>()?;
    let mut middle = values.first()?.clone();
    each_figure(&mut middle, String::new(), &mut |path, place| {
        let found: Vec<f64> = (runs.iter().zip(&values))
            .filter(|(run, _)| !run.lacks(path))
            .filter_map(|(_, value)| number(at_path(value, path)?))
            .collect();
        if let Some(value) = stats::median(&found) {
            set(place, value);
        }
    });
    Some(middle.try_into().unwrap_or_else(|_| first.clone()))
}

fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Table(table) => table.get(key),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(n) => Some(*n),
        _ => None,
    }
}

/// Puts a number in the place of one of the same kind.
fn set(place: &mut Value, number: f64) {
    *place = match place {
        Value::Integer(_) => Value::Integer(number.round() as i64),
        _ => Value::Float(number),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(launch_ns: i64, gbps: f64, missing: Vec<&'static str>) -> Measured {
        let mut profile = Profile::bundled();
        profile.api.launch_ns = launch_ns;
        profile.copy.pageable[2].d2h_gbps = gbps;
        Measured { profile, missing }
    }

    #[test]
    fn the_profile_has_the_middle_of_each_figure() {
        let runs = [
            run(4_000, 9.0, vec![]),
            run(3_000, 17.0, vec![]),
            run(3_200, 16.0, vec![]),
        ];
        let middle = middle(&runs).expect("three runs");
        assert_eq!(middle.api.launch_ns, 3_200);
        assert_eq!(middle.copy.pageable[2].d2h_gbps, 16.0);
    }

    #[test]
    fn what_a_run_did_not_measure_does_not_count() {
        let runs = [
            run(9_000, 9.0, vec!["api.launch_ns", "copy.pageable"]),
            run(3_000, 10.0, vec![]),
        ];
        let middle = middle(&runs).expect("two runs");
        assert_eq!(middle.api.launch_ns, 3_000);
        assert_eq!(middle.copy.pageable[2].d2h_gbps, 10.0);
    }
}
