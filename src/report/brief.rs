//! The report in under 4 KB of JSON, for scripts and language models. It says what bounds the run, with five causes and
//! five findings, and how sure each of them is (`docs/REPORT.md`).
//!
//! `provenance` says how sure a row is: `fact` (records say it), `likely` (times show it), `unknown`, `estimated` (a
//! prediction), or `simulated` (no GPU was involved).

use serde_json::{Map, Value, json};

use super::Report;
use activity::text::plain_json;
use causes::sum_by;

/// The most bytes that it takes.
pub const BYTES_MAX: usize = 4000;
/// Rows of causes, and of findings.
const ROWS: usize = 5;
/// Characters of a text.
const TEXT_MAX: usize = 180;

impl Report {
    /// The report in under [`BYTES_MAX`] bytes of JSON, on one line.
    ///
    /// # Errors
    /// Never for a report that [`Report::new`] made; the serializer's signature has it.
    pub fn brief(&self) -> serde_json::Result<String> {
        let whole: Value = serde_json::from_str(&self.json()?)?;
        let mut lists = vec![
            ("causes", self.causes(&whole)),
            ("findings", self.findings(&whole)),
            ("devices", self.devices()),
            (
                "kernels",
                picked(
                    &whole["kernels"],
                    &["name", "count", "share"],
                    self.as_recorded(),
                ),
            ),
            (
                "late_ranks",
                picked(
                    &whole["job"]["late"],
                    &["name", "pattern", "reason", "late_steps"],
                    "likely",
                ),
            ),
            ("failed", self.failed()),
        ];
        let found: Vec<usize> = lists.iter().map(|(_, rows)| rows.len()).collect();
        lists.iter_mut().for_each(|(_, rows)| rows.truncate(ROWS));
        loop {
            let text = serde_json::to_string(&self.put_together(&whole, &lists, &found))?;
            let text = plain_json(text);
            let longest = lists.iter_mut().max_by_key(|(_, rows)| rows.len());
            match longest {
                Some((_, rows)) if text.len() > BYTES_MAX && !rows.is_empty() => drop(rows.pop()),
                _ => return Ok(text),
            }
        }
    }

    fn put_together(&self, whole: &Value, lists: &[(&str, Vec<Value>)], found: &[usize]) -> Value {
        let mut left_out = Map::new();
        for ((name, rows), &found) in lists.iter().zip(found) {
            if rows.len() < found {
                left_out.insert((*name).to_owned(), json!(found - rows.len()));
            }
        }
        let mut brief = json!({
            "cuptop": self.cuptop,
            "schema": self.schema,
            "source": { "kind": self.source.kind, "title": cut(&self.source.title), "simulated": self.source.simulated },
            "lost_records": self.health.source.losses(),
            "headline": self.headline(whole),
        });
        if let Some(steps) = self.main_steps() {
            let (typical, odd) = (&steps.typical, steps.odd_cost.as_ref());
            let odd = odd.map(|it| json!({ "count": it.count, "every": it.every, "more_ns": it.more_ns, "total_ns": it.total_ns, "why": it.why.as_deref().map(cut) }));
            brief["step"] = json!({
                "count": steps.count, "median_ns": steps.median_ns, "kind": steps.kind.as_deref().map(cut), "from": cut(&steps.from),
                "typical": { "time_ns": typical.time_ns, "busy_ns": typical.busy_ns, "compute_ns": typical.compute_ns, "copy_ns": typical.copy_ns, "idle_by": typical.idle_by },
                "odd": odd, "provenance": self.as_recorded(),
            });
            brief["start_up"] = json!({ "time_ns": steps.start_up_ns });
        }
        if !self.steady.is_empty() {
            let steady = self.steady.iter().take(ROWS).map(
                |it| json!({ "device": it.device, "time_ns": it.time_ns, "idle_ns": it.idle_ns }),
            );
            brief["steady"] = steady.collect();
        }
        for (name, rows) in lists.iter().filter(|(_, rows)| !rows.is_empty()) {
            brief[*name] = json!(rows);
        }
        brief["left_out"] = Value::Object(left_out);
        brief
    }

    /// The provenance of what was recorded.
    fn as_recorded(&self) -> &'static str {
        if self.source.simulated {
            "simulated"
        } else {
            "fact"
        }
    }

    fn headline(&self, whole: &Value) -> Value {
        let Some(verdict) = self.verdicts.first() else {
            return Value::Null;
        };
        json!({
            "text": cut(&verdict.text),
            "gain": verdict.gain.as_deref().map(cut),
            "bound_by": whole["verdicts"][0]["bound_by"],
            "share": rounded(verdict.share),
            "of": verdict.scope.of,
            "kind": verdict.scope.kind.as_deref().map(cut),
            "cost_ns": verdict.cost_ns,
            "cost_a_step_ns": verdict.cost_a_step_ns,
            "beside": verdict.beside.iter().map(|it| cut(it)).collect::<Vec<_>>(),
            "provenance": self.as_recorded(),
        })
    }

    fn causes(&self, whole: &Value) -> Vec<Value> {
        let of_steps = self.verdicts.first().is_some_and(|it| it.steps.is_some());
        let of = if of_steps {
            &whole["steps"]
        } else {
            &whole["devices"]
        };
        // Of several devices and roots one row each.
        let part = |row: &Value| {
            let mut named = picked_one(row, &["cause", "culprit"]);
            if let Some(line) = row["line"]["place"].as_str() {
                named["line"] = json!(cut(line));
            }
            named["provenance"] = match self.source.simulated {
                true => json!("simulated"),
                false => row["certainty"].clone(),
            };
            (named, row["total_ns"].as_i64().unwrap_or(0))
        };
        let idle = array(of).iter().flat_map(|it| array(&it["idle"]));
        let sums = sum_by(idle.map(part));
        let all: i64 = sums.iter().map(|(_, time)| time).sum();
        let rows = sums.into_iter().map(|(mut row, time)| {
            row["total_ns"] = json!(time);
            row["share"] = json!(rounded(time as f64 / all.max(1) as f64));
            row
        });
        rows.collect()
    }

    fn findings(&self, whole: &Value) -> Vec<Value> {
        let fields = [
            "rule",
            "severity",
            "title",
            "advice",
            "change",
            "edit",
            "saving_ns",
        ];
        let row = |of: &Value| {
            let mut row = picked_one(of, &fields);
            let place = ["device", "stream", "start_offset_ns", "end_offset_ns"];
            row["evidence"] = of["evidence"]
                .get(0)
                .map_or(Value::Null, |it| picked_one(it, &place));
            if of["predicted"].is_object() {
                let fields = ["per", "measured_ns", "likely_ns", "low_ns", "high_ns"];
                row["predicted"] = picked_one(&of["predicted"], &fields);
            }
            row["provenance"] = match of["saving_ns"].is_null() {
                true => json!(self.as_recorded()),
                false => json!("estimated"),
            };
            row
        };
        array(&whole["findings"]).iter().map(row).collect()
    }

    fn devices(&self) -> Vec<Value> {
        let row = |of: &figures::DeviceFigures| {
            let busy = of.busy_ns as f64 / of.span_ns.max(1) as f64;
            json!({
                "device": of.device, "name": cut(&of.name), "ops": of.ops, "span_ns": of.span_ns, "busy_share": rounded(busy),
                "h2d_gbps": of.h2d.gbps.map(rounded), "d2h_gbps": of.d2h.gbps.map(rounded), "provenance": self.as_recorded(),
            })
        };
        self.devices.iter().map(row).collect()
    }

    fn failed(&self) -> Vec<Value> {
        let failed = self.expectations.iter().flatten().filter(|it| !it.ok);
        failed.map(|it| json!(cut(&it.what))).collect()
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn rounded(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// Rows with only these fields.
fn picked(rows: &Value, fields: &[&str], provenance: &str) -> Vec<Value> {
    let row = |row: &Value| {
        let mut row = picked_one(row, fields);
        row["provenance"] = json!(provenance);
        row
    };
    array(rows).iter().map(row).collect()
}

fn picked_one(row: &Value, fields: &[&str]) -> Value {
    let value = |field: &&str| match &row[field] {
        Value::String(text) => json!(cut(text)),
        Value::Number(it) if it.is_f64() => json!(rounded(it.as_f64().unwrap_or(0.0))),
        it => it.clone(),
    };
    let fields = fields.iter().filter(|field| !row[**field].is_null());
    Value::Object(
        fields
            .map(|field| ((*field).to_owned(), value(field)))
            .collect(),
    )
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
