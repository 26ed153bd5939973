//! A calibration measures each figure in several processes: the profile holds the middle one, and how far they lay apart.
//!
//! A figure is named by its place in the file: tables and positions of lists, joined by dots. So nothing here knows which figures
//! there are.

use std::collections::BTreeMap;

use toml::Value;

use super::Profile;

/// Figures that differ by less than this part of the middle one are taken for the same.
const SAME: f64 = 0.01;

/// An end of what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything as quick as it was at its quickest.
    Quick,
    /// Everything as slow as it was at its slowest.
    Slow,
}

/// A profile, and which of its figures were not measured, as "table.key" or "table".
#[derive(Clone, Debug)]
pub struct Measured {
    pub profile: Profile,
    pub missing: Vec<&'static str>,
    /// The least and the greatest of figures that were measured in several circumstances, by their place in the profile.
    pub ends: BTreeMap<&'static str, [f64; 2]>,
}

impl Measured {
    fn lacks(&self, path: &str) -> bool {
        self.missing.iter().any(|name| {
            path.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl Profile {
    /// The middle of what several runs measured of each figure, with the spread. `None` without runs.
    ///
    /// What a run did not measure does not count; what none did stays as in the first.
    #[must_use]
    pub fn middle(runs: &[Measured]) -> Option<Profile> {
        let first = &runs.first()?.profile;
        let values: Vec<Value> = (runs.iter())
            .map(|run| Value::try_from(&run.profile).ok())
            .collect::<Option<_>>()?;
        let mut middle = values.first()?.clone();
        let mut spread = BTreeMap::new();
        each_figure(&mut middle, String::new(), &mut |path, place| {
            let mut found: Vec<f64> = (runs.iter().zip(&values))
                .filter(|(run, _)| !run.lacks(path))
                .filter_map(|(_, value)| number(at_path(value, path)?))
                .collect();
            found.sort_by(f64::total_cmp);
            if found.is_empty() {
                return;
            }
            let value = found[found.len() / 2];
            set(place, value);
            found.extend(runs.iter().filter_map(|run| run.ends.get(path)).flatten());
            let least = found.iter().copied().fold(value, f64::min);
            let most = found.iter().copied().fold(value, f64::max);
            if most - least > SAME * value.abs() {
                spread.insert(path.to_owned(), [least, most]);
            }
        });
        let mut profile: Profile = middle.try_into().unwrap_or_else(|_| first.clone());
        profile.spread = spread;
        Some(profile)
    }

    /// The profile with every figure at one end of what was measured of it.
    ///
    /// # Errors
    /// The name in the spread that no figure of the profile has.
    pub fn at(&self, end: End) -> Result<Profile, String> {
        let mut value = Value::try_from(self).map_err(|error| error.to_string())?;
        for (path, &[least, most]) in &self.spread {
            let place = at_path_mut(&mut value, path).filter(|place| number(place).is_some());
            let place = place.ok_or_else(|| path.clone())?;
            // Of times the least is quick, of rates and shares of peaks the greatest.
            let is_least = path.ends_with("_ns") == (end == End::Quick);
            set(place, if is_least { least } else { most });
        }
        let mut profile: Profile = value.try_into().map_err(|error| error.to_string())?;
        profile.spread.clear();
        Ok(profile)
    }

    /// Whether it tells how far what was measured lay apart.
    #[must_use]
    pub fn has_spread(&self) -> bool {
        !self.spread.is_empty()
    }
}

/// Hands every number to `take`, with its place.
fn each_figure(value: &mut Value, path: String, take: &mut impl FnMut(&str, &mut Value)) {
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

fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Table(table) => table.get(key),
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

fn at_path_mut<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Table(table) => table.get_mut(key),
        Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?),
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
        Measured {
            profile,
            missing,
            ends: BTreeMap::new(),
        }
    }

    #[test]
    fn the_middle_stands_and_the_ends_are_kept() {
        let mut runs = [
            run(4_000, 9.0, vec![]),
            run(3_000, 17.0, vec![]),
            run(3_200, 16.0, vec![]),
        ];
        // In one of them launches of another kind took longer than in any.
        runs[1].ends.insert("api.launch_ns", [2_900.0, 4_500.0]);
        let middle = Profile::middle(&runs).expect("three runs");
        assert_eq!(middle.api.launch_ns, 3_200);
        assert_eq!(middle.copy.pageable[2].d2h_gbps, 16.0);
        // What was the same each time has no spread.
        let names: Vec<&str> = middle.spread.keys().map(String::as_str).collect();
        assert_eq!(names, ["api.launch_ns", "copy.pageable.2.d2h_gbps"]);
        let quick = middle.at(End::Quick).expect("names of its own");
        let slow = middle.at(End::Slow).expect("names of its own");
        assert_eq!((quick.api.launch_ns, slow.api.launch_ns), (2_900, 4_500));
        assert_eq!(quick.copy.pageable[2].d2h_gbps, 17.0);
        assert_eq!(slow.copy.pageable[2].d2h_gbps, 9.0);
    }

    #[test]
    fn what_a_run_did_not_measure_does_not_count() {
        let runs = [
            run(9_000, 9.0, vec!["api.launch_ns", "copy.pageable"]),
            run(3_000, 10.0, vec![]),
        ];
        let middle = Profile::middle(&runs).expect("two runs");
        assert_eq!(middle.api.launch_ns, 3_000);
        assert_eq!(middle.copy.pageable[2].d2h_gbps, 10.0);
        assert!(!middle.has_spread(), "{:?}", middle.spread);
    }

    #[test]
    fn a_file_keeps_the_spread_and_a_wrong_name_in_it_is_told() {
        let mut profile = Profile::bundled();
        profile
            .spread
            .insert("latency.wake_ns".to_owned(), [2_000.0, 4_000.0]);
        let text = profile.to_toml().expect("TOML");
        assert_eq!(Profile::parse(&text, "test").expect("a profile"), profile);
        for name in ["latency.wake", "device.name", "copy.pageable.99.d2h_gbps"] {
            let wrong = text.replace("latency.wake_ns\"", &format!("{name}\""));
            let error = Profile::parse(&wrong, "test").expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
        let backwards = text.replace("2000.0", "5000.0");
        assert!(Profile::parse(&backwards, "test").is_err());
    }
}
