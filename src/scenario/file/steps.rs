//! TOML to [`Step`]s.

use super::super::diagnostics::{Diagnostic, did_you_mean, list, quoted};
use super::super::expr::Expr;
use super::super::expr::parse::{self, Template, is_identifier};
use super::args::args;
use super::keys::{self, Form};
use super::reader::{Field, Fields, Reader};
use super::{BufferRef, CopyStep, Loop, Named, Step, StepKind};
use crate::activity::Direction;

/// A list of steps. A step that cannot be read is left out and reported.
pub(super) fn steps(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<Step> {
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
    let form = keys::STEPS.iter().find(|form| {
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
            && keys::STEPS.iter().any(|other| other.head.name == item.key)
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
    let kind = kind(reader, &fields, form)?;
    Some(Step {
        loc: field.loc,
        kind,
    })
}

fn unknown_step(reader: &mut Reader<'_>, field: Field<'_>) {
    let heads = || keys::STEPS.iter().map(|form| form.head.name);
    let table = field.value.as_table();
    let meant = table.into_iter().flat_map(Reader::items).find_map(|item| {
        let help = did_you_mean(item.key, heads())?;
        Some((item.field.key_loc, quoted(item.key), help))
    });
    let diagnostic = match meant {
        Some((loc, key, help)) => {
            Diagnostic::error(loc.range(), format!("there is no step {key}")).help(help)
        }
        None => Diagnostic::error(field.loc.range(), "this step does not say what to do")
            .help(format!("a step has one of the keys {}", list_all(heads()))),
    };
    reader.diagnostics.push(diagnostic);
}

fn list_all<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(quoted).collect::<Vec<_>>().join(", ")
}

fn kind(reader: &mut Reader<'_>, fields: &Fields<'_>, form: &Form) -> Option<StepKind> {
    let head = fields.get(form.head.name)?;
    Some(match form.head.name {
        "h2d" => copy(reader, fields, head, Direction::H2D)?,
        "d2h" => copy(reader, fields, head, Direction::D2H)?,
        "d2d" => copy(reader, fields, head, Direction::D2D)?,
        "p2p" => copy(reader, fields, head, Direction::P2P)?,
        "memset" => StepKind::Memset {
            to: reader.buffer(head)?,
            value: expr(reader, fields, "value"),
            offset: expr(reader, fields, "offset"),
            bytes: expr(reader, fields, "bytes"),
            stream: stream(reader, fields),
        },
        "launch" => StepKind::Launch {
            kernel: reader.named(head)?,
            on: fields
                .get("on")
                .map(|field| buffers(reader, field))
                .unwrap_or_default(),
            args: fields
                .get("args")
                .map(|field| (args(reader, field), field.loc)),
            stream: stream(reader, fields),
        },
        "record" => StepKind::Record {
            event: reader.template(head)?,
            stream: stream(reader, fields),
        },
        "wait" => StepKind::Wait {
            event: reader.template(head)?,
            stream: stream(reader, fields),
        },
        "alloc" => StepKind::Alloc {
            buffer: reader.buffer(head)?,
            stream: stream(reader, fields),
        },
        "free" => StepKind::Free {
            buffer: reader.buffer(head)?,
            stream: stream(reader, fields),
        },
        "capture" => StepKind::Capture {
            graph: reader.template(head)?,
            stream: stream(reader, fields),
            body: body(reader, fields, "do"),
        },
        "launch_graph" => StepKind::LaunchGraph {
            graph: reader.template(head)?,
            stream: stream(reader, fields),
        },
        "host" => host(reader, fields, head)?,
        "range" => StepKind::Range {
            name: reader.template(head)?,
            body: body(reader, fields, "do"),
        },
        "for" => StepKind::For(for_loop(reader, fields, head)?),
        "if" => StepKind::If {
            condition: reader.expr(head)?,
            body: body(reader, fields, "do"),
            otherwise: body(reader, fields, "else"),
        },
        _ => sync(reader, fields, head)?,
    })
}

fn expr(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Expr> {
    fields.get(key).and_then(|field| reader.expr(field))
}

fn stream(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Template> {
    fields
        .get("stream")
        .and_then(|field| reader.template(field))
}

fn body(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Vec<Step> {
    fields
        .get(key)
        .map(|field| steps(reader, field))
        .unwrap_or_default()
}

fn buffers(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<BufferRef> {
    let parts = Reader::list(field);
    parts
        .into_iter()
        .filter_map(|part| reader.buffer(part))
        .collect()
}

fn copy(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    head: Field<'_>,
    direction: Direction,
) -> Option<StepKind> {
    let is_sync = fields
        .get("sync")
        .and_then(|field| reader.boolean(field))
        .unwrap_or(false);
    if is_sync && let Some(stream) = fields.get("stream") {
        let help = "take out `stream`, or `sync = true`";
        reader.error_help(
            stream.key_loc,
            "a synchronous copy runs on the default stream",
            help,
        );
    }
    Some(StepKind::Copy(CopyStep {
        direction,
        from: reader.buffer(head)?,
        to: fields.get("to").and_then(|field| reader.buffer(field)),
        offset: expr(reader, fields, "offset"),
        to_offset: expr(reader, fields, "to_offset"),
        bytes: expr(reader, fields, "bytes"),
        chunk: expr(reader, fields, "chunk"),
        stream: stream(reader, fields),
        is_sync,
    }))
}

/// Reports keys that the step's word has no use for.
fn only(reader: &mut Reader<'_>, fields: &Fields<'_>, word: &str, allowed: &[&str], all: &[&str]) {
    for key in all.iter().filter(|key| !allowed.contains(key)) {
        if let Some(field) = fields.get(key) {
            let takes = if allowed.is_empty() {
                "nothing".to_owned()
            } else {
                list(allowed.iter().copied())
            };
            let message = format!("{} has no use for {}", quoted(word), quoted(key));
            reader.error_help(field.key_loc, message, format!("it takes {takes}"));
        }
    }
}

fn host(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<StepKind> {
    let word = reader.one_of(head, keys::HOST_WORK)?;
    let allowed: &[&str] = match word {
        "busy" => &["time"],
        "matmul" => &["of", "n"],
        _ => &["of"],
    };
    only(reader, fields, word, allowed, &["time", "of", "n"]);
    for key in allowed {
        if !fields.has(key) {
            reader.error(
                fields.loc,
                format!("host = \"{word}\" needs {}", quoted(key)),
            );
        }
    }
    if word == "busy" {
        return expr(reader, fields, "time").map(StepKind::Busy);
    }
    let of = fields.get("of")?;
    let mut named = buffers(reader, of);
    let wanted = if word == "matmul" { 3 } else { 1 };
    if named.len() != wanted {
        // Fewer than were written means that one could not be read, which is reported already.
        if Reader::list(of).len() != wanted {
            reader.error(
                of.loc,
                format!(
                    "host = \"{word}\" works on {wanted} buffer{}",
                    if wanted == 1 { "" } else { "s" }
                ),
            );
        }
        return None;
    }
    let last = named.pop()?;
    match word {
        "sum" => Some(StepKind::Sum(last)),
        "sin" => Some(StepKind::Sin(last)),
        _ => {
            let second = named.pop()?;
            let first = named.pop()?;
            let n = expr(reader, fields, "n")?;
            Some(StepKind::Matmul {
                of: [first, second, last],
                n,
            })
        }
    }
}

fn sync(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<StepKind> {
    let word = reader.one_of(head, keys::SYNCS)?;
    only(reader, fields, word, &[word], keys::SYNCS);
    match word {
        "stream" => Some(StepKind::SyncStream(stream(reader, fields))),
        "device" => Some(StepKind::SyncDevice(expr(reader, fields, "device"))),
        _ => {
            let Some(event) = fields.get("event") else {
                reader.error(fields.loc, "sync = \"event\" needs `event`");
                return None;
            };
            reader.template(event).map(StepKind::SyncEvent)
        }
    }
}

/// "i in 0..n" or "i in 0..n step 2".
fn for_loop(reader: &mut Reader<'_>, fields: &Fields<'_>, head: Field<'_>) -> Option<Loop> {
    const SHAPE: &str = "a loop is \"i in 0..n\" or \"i in 0..n step 2\"";
    let piece = reader.piece(head, SHAPE)?;
    let text = piece.text;
    let parts = text.find(" in ").zip(text.find(".."));
    let Some((name_end, dots)) = parts.filter(|(name_end, dots)| name_end + 4 <= *dots) else {
        reader.error_help(head.loc, format!("{} is not a loop", quoted(text)), SHAPE);
        return None;
    };
    let name = text[..name_end].trim();
    if !is_identifier(name) {
        reader.error_help(
            piece.loc(0, name_end),
            format!("{} cannot be a loop variable", quoted(name)),
            SHAPE,
        );
        return None;
    }
    let (to_end, step) = match text[dots..].find(" step ") {
        Some(found) => (
            dots + found,
            Some(piece.slice(dots + found + 6, text.len())),
        ),
        None => (text.len(), None),
    };
    let from = reader.parsed(parse::expression(piece.slice(name_end + 4, dots)));
    let to = reader.parsed(parse::expression(piece.slice(dots + 2, to_end)));
    let step = match step {
        Some(step) => Some(reader.parsed(parse::expression(step))?),
        None => None,
    };
    let start = text.len() - text.trim_start().len();
    Some(Loop {
        variable: Named {
            text: name.to_owned(),
            loc: piece.loc(start, start + name.len()),
        },
        from: from?,
        to: to?,
        step,
        body: body(reader, fields, "do"),
    })
}
