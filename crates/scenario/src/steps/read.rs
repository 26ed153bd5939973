//! TOML to steps: which kind a step is.

use super::super::diagnostics::{Diagnostic, did_you_mean, quoted};
use super::{Field, Reader, STEPS, Step};

/// A list of steps. A step that cannot be read is left out and reported.
pub(crate) fn read(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<Step> {
    if !field.value.is_array() {
        reader.wrong_type(field, "steps are a list");
        return Vec::new();
    }
    let mut steps = Vec::new();
    for part in Reader::list(field) {
        steps.extend(step(reader, part));
    }
    steps
}

fn step(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Step> {
    let Some(table) = field.value.as_table() else {
        reader.wrong_type(field, "a step is a table, as { h2d = \"buffer\" }");
        return None;
    };
    let form = STEPS.iter().find(|form| {
        table
            .iter()
            .any(|(key, _)| key.get_ref().as_ref() == form.head.name)
    });
    let Some(form) = form else {
        unknown_step(reader, field);
        return None;
    };
    let items = Reader::items(table);
    let second = items.iter().find(|item| {
        item.key != form.head.name
            && !form.keys.iter().any(|key| key.name == item.key)
            && STEPS.iter().any(|other| other.head.name == item.key)
    });
    if let Some(second) = second {
        let message = format!(
            "this step is {} and {} at once",
            quoted(form.head.name),
            quoted(second.key)
        );
        reader.error_help(second.field.key_loc, message, "write two steps");
        return None;
    }
    let what = format!("a {} step", form.head.name);
    let fields = reader.fields(field, &[&[form.head], form.keys], &what)?;
    let kind = (form.read)(reader, &fields, fields.get(form.head.name)?)?;
    Some(Step {
        loc: field.loc,
        kind,
    })
}

fn unknown_step(reader: &mut Reader<'_>, field: Field<'_>) {
    let heads = || STEPS.iter().map(|form| form.head.name);
    let table = field.value.as_table();
    let meant = table.into_iter().flat_map(Reader::items).find_map(|item| {
        let help = did_you_mean(item.key, heads())?;
        Some((item.field.key_loc, quoted(item.key), help))
    });
    let names: Vec<String> = heads().map(quoted).collect();
    let diagnostic = match meant {
        Some((loc, key, help)) => {
            Diagnostic::error(loc.range(), format!("there is no step {key}")).help(help)
        }
        None => Diagnostic::error(field.loc.range(), "this step does not say what to do")
            .help(format!("a step has one of the keys {}", names.join(", "))),
    };
    reader.diagnostics.push(diagnostic);
}
