//! The JSON schema (draft 7) of scenario files, for completion and checks in editors. It is made from the tables of
//! keys that the parser reads, too.

use serde_json::{Map, Value, json};

use super::super::edit::FORMS;
use super::super::figures::{CAUSES, FIGURES, Operand};
use super::super::steps::{Form, STEPS};
use super::super::syntax::keys::{self, Key, ValueKind};

/// The schema as JSON text.
pub fn schema() -> String {
    let mut top = object(keys::TOP);
    let steps: Vec<Value> = STEPS.iter().map(step).collect();
    if let Some(map) = top.as_object_mut() {
        map.insert(
            "$schema".into(),
            json!("http://json-schema.org/draft-07/schema#"),
        );
        map.insert("title".into(), json!("cuptop scenario"));
        map.insert(
            "definitions".into(),
            json!({
                "number": { "type": ["number", "string"] },
                "step": { "anyOf": steps },
                "steps": { "type": "array", "items": { "$ref": "#/definitions/step" } },
            }),
        );
    }
    let mut text = serde_json::to_string_pretty(&top).unwrap_or_default();
    text.push('\n');
    text
}

/// A table of keys.
fn object(keys: &[Key]) -> Value {
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let required = keys.iter().filter(|key| key.required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn step(form: &Form) -> Value {
    let keys: Vec<Key> = std::iter::once(form.head)
        .chain(form.keys.iter().copied())
        .collect();
    let mut step = object(&keys);
    if let Some(map) = step.as_object_mut() {
        map.insert("title".into(), json!(form.head.name));
        map.insert("description".into(), json!(form.head.doc));
    }
    step
}

fn property(key: &Key) -> (String, Value) {
    let mut value = kind(key.kind);
    if let Some(map) = value.as_object_mut() {
        map.insert("description".into(), json!(key.doc));
    }
    (key.name.to_owned(), value)
}

/// A list, or one of its elements by itself.
fn one_or_more(item: &Value, most: Option<u32>) -> Value {
    let mut list = json!({ "type": "array", "items": item, "minItems": 1 });
    if let (Some(map), Some(most)) = (list.as_object_mut(), most) {
        map.insert("maxItems".into(), json!(most));
    }
    json!({ "anyOf": [item, list] })
}

fn kind(kind: ValueKind) -> Value {
    // Siblings of "$ref" are ignored in draft 7, so the description needs the reference inside.
    let number = || json!({ "allOf": [{ "$ref": "#/definitions/number" }] });
    match kind {
        ValueKind::Text | ValueKind::Name | ValueKind::Buffer | ValueKind::Time => {
            json!({ "type": "string" })
        }
        ValueKind::Number | ValueKind::Size | ValueKind::Condition => number(),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::OneOf(words) => json!({ "enum": words }),
        ValueKind::Buffers => one_or_more(&json!({ "type": "string" }), None),
        ValueKind::Dim3 => one_or_more(&number(), Some(3)),
        ValueKind::Args => json!({ "type": "array", "items": number() }),
        ValueKind::Numbers => json!({ "type": "array", "items": number(), "minItems": 1 }),
        ValueKind::Device => json!({ "anyOf": [number(), { "const": false }] }),
        ValueKind::Steps => json!({ "allOf": [{ "$ref": "#/definitions/steps" }] }),
        ValueKind::Loop => {
            json!({ "type": "string", "pattern": "^\\s*[A-Za-z_][A-Za-z0-9_]*\\s+in\\s.*\\.\\." })
        }
        ValueKind::View => json!({ "type": "string", "pattern": "^\\s*(first|last) |\\.\\." }),
        ValueKind::Edits => {
            let words: Vec<&str> = FORMS.iter().map(|(word, _)| *word).collect();
            json!({ "type": "string", "pattern": format!("^\\s*({})\\s*([:@+]|$)", words.join("|")) })
        }
        ValueKind::Params => json!({ "type": "object", "additionalProperties": number() }),
        ValueKind::Tables(keys) => {
            json!({ "type": "object", "additionalProperties": object(keys) })
        }
        ValueKind::List(keys) => json!({ "type": "array", "items": object(keys), "minItems": 1 }),
        ValueKind::Table(keys) => object(keys),
        ValueKind::NumberOr(keys) => json!({ "anyOf": [number(), object(keys)] }),
        ValueKind::Expect => {
            let comparison = json!({ "type": "string", "pattern": "^\\s*[<>]=?" });
            let figures: Vec<String> = FIGURES
                .iter()
                .map(|spec| match spec.operand {
                    Operand::None => format!("{}$", spec.name),
                    Operand::Cause => format!("{}\\.({})$", spec.name, CAUSES.join("|")),
                    _ => format!("{}\\..+", spec.name),
                })
                .collect();
            json!({
                "type": "object",
                "propertyNames": { "pattern": format!("^[A-Za-z0-9_-]+(\\[.+\\])?\\.({})", figures.join("|")) },
                "additionalProperties": one_or_more(&comparison, None),
            })
        }
    }
}
