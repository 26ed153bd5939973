//! Times from the timeline's start beside those of its clock.
//!
//! Nanoseconds since 1970 do not fit a double: jq and JavaScript round them by up to 256 ns. So every object with
//! `start_ns` or `end_ns` also says how far that is from `origin_ns`.

use std::fmt::Write as _;

use activity::Ns;

/// The fields that are times of the timeline's clock, and what stands beside each.
const FIELDS: [(&str, &str); 2] = [("start_ns", "start_offset_ns"), ("end_ns", "end_offset_ns")];

/// Adds the distance from `origin` beside every time in a report, which has a field a line. As text, as a tree of it takes
/// several times the memory.
pub(super) fn with(json: &str, origin: Ns) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    for line in json.split_inclusive('\n') {
        let field = line.trim_start();
        let indent = &line[..line.len() - field.len()];
        let found = FIELDS.iter().find_map(|(name, beside)| {
            let value = field.strip_prefix('"')?.strip_prefix(name)?;
            let value = value.strip_prefix("\": ")?;
            let end = value.find([',', '\n']).unwrap_or(value.len());
            let time: Ns = value[..end].parse().ok()?;
            Some((time, beside, &value[end..]))
        });
        let Some((time, beside, rest)) = found else {
            out.push_str(line);
            continue;
        };
        out.push_str(&line[..line.len() - rest.len()]);
        let _ = write!(out, ",\n{indent}\"{beside}\": {}{rest}", time - origin);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn every_time_of_the_clock_has_its_distance_from_the_start() {
        let origin = 1_700_000_000_000_000_001;
        let value = json!({
            "total_ns": 7, "text": "\n\"start_ns\": 5,\n",
            "evidence": [{"start_ns": origin + 3, "end_ns": origin + 5, "device": null}],
            "slow": {"start_ns": origin, "time_ns": 9, "end_ns": null},
        });
        let text = with(&serde_json::to_string_pretty(&value).expect("JSON"), origin);
        let with: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            with,
            json!({
                "total_ns": 7, "text": "\n\"start_ns\": 5,\n",
                "evidence": [{
                    "start_ns": origin + 3, "start_offset_ns": 3,
                    "end_ns": origin + 5, "end_offset_ns": 5,
                    "device": null,
                }],
                "slow": {"start_ns": origin, "start_offset_ns": 0, "time_ns": 9, "end_ns": null},
            })
        );
        assert_eq!(serde_json::to_string_pretty(&with).expect("JSON"), text);
    }
}
