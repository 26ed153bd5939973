//! Times from the timeline's start beside those of its clock.
//!
//! Nanoseconds since 1970 do not fit a double: jq and JavaScript round them by up to 256 ns. So every object with
//! `start_ns` or `end_ns` also says how far that is from `origin_ns`.

use serde_json::{Map, Value};

use activity::Ns;

/// The fields that are times of the timeline's clock, and what stands beside each.
const FIELDS: [(&str, &str); 2] = [("start_ns", "start_offset_ns"), ("end_ns", "end_offset_ns")];

/// Adds the distance from `origin` to every time in a report.
pub(super) fn add(value: &mut Value, origin: Ns) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|value| add(value, origin)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| add(value, origin));
            if FIELDS.iter().any(|(name, _)| fields.contains_key(*name)) {
                *fields = with_offsets(std::mem::take(fields), origin);
            }
        }
        _ => {}
    }
}

fn with_offsets(fields: Map<String, Value>, origin: Ns) -> Map<String, Value> {
    let mut with = Map::new();
    for (name, value) in fields {
        let beside = FIELDS.iter().find(|(of, _)| *of == name);
        let offset = value.as_i64().map(|time| time - origin);
        with.insert(name, value);
        if let (Some((_, beside)), Some(offset)) = (beside, offset) {
            with.insert((*beside).to_owned(), offset.into());
        }
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_time_of_the_clock_has_its_distance_from_the_start() {
        let origin = 1_700_000_000_000_000_001;
        let mut value = json!({
            "total_ns": 7,
            "evidence": [{"start_ns": origin + 3, "end_ns": origin + 5, "device": null}],
            "slow": {"start_ns": origin, "time_ns": 9},
        });
        add(&mut value, origin);
        assert_eq!(
            value,
            json!({
                "total_ns": 7,
                "evidence": [{
                    "start_ns": origin + 3, "start_offset_ns": 3,
                    "end_ns": origin + 5, "end_offset_ns": 5,
                    "device": null,
                }],
                "slow": {"start_ns": origin, "start_offset_ns": 0, "time_ns": 9},
            })
        );
    }
}
