//! TOML to steps: which kind a step is, and what it says under each of its keys.

use super::super::expr::parse::Template;
use super::super::syntax::args::args;
use super::super::syntax::decl::{ArgDecl, BufferRef, Named};
use super::super::syntax::keys::ValueKind;
use super::super::syntax::reader::Field;
use super::loop_head::Loop;
use super::*;

/// A step as written.
pub(crate) struct Step {
    pub(super) loc: Loc,
    pub(super) form: &'static Form,
    /// What it says, by key, the head first.
    pub(super) given: Vec<(&'static str, Given)>,
}

/// What a step says under one key.
pub(super) enum Given {
    Expr(Expr),
    Name(Template),
    Text(Named),
    Word(&'static str),
    Is(bool),
    /// One or several.
    Buffers(Vec<BufferRef>),
    /// And where they stand.
    Args(Vec<ArgDecl>, Loc),
    Loop(Loop),
    Steps(Vec<Step>),
}

impl Given {
    fn read(reader: &mut Reader<'_>, key: &Key, field: Field<'_>) -> Option<Given> {
        Some(match key.kind {
            ValueKind::Name => Given::Name(reader.template(field)?),
            ValueKind::Text => Given::Text(reader.named(field)?),
            ValueKind::OneOf(words) => Given::Word(reader.one_of(field, words)?),
            ValueKind::Bool => Given::Is(reader.boolean(field)?),
            ValueKind::Buffer => Given::Buffers(vec![reader.buffer(field)?]),
            ValueKind::Buffers => Given::Buffers(reader.buffers(field)),
            ValueKind::Args => Given::Args(args(reader, field), field.loc),
            ValueKind::Loop => Given::Loop(Loop::read(reader, field)?),
            ValueKind::Steps => Given::Steps(read(reader, field)),
            _ => Given::Expr(reader.expr(field)?),
        })
    }

    /// Checks that what it names exists.
    pub(super) fn resolve<'f>(&'f self, names: &mut Names<'f>) {
        match self {
            Given::Expr(expr) => names.expr(expr),
            Given::Name(name) => names.template(name),
            Given::Buffers(buffers) => buffers.iter().for_each(|buffer| names.buffer(buffer)),
            Given::Loop(of) => of.resolve(names),
            Given::Steps(steps) => resolve(steps, names),
            Given::Text(_) | Given::Word(_) | Given::Is(_) | Given::Args(..) => {}
        }
    }
}

impl Step {
    pub(super) fn get(&self, key: &str) -> Option<&Given> {
        let found = self.given.iter().find(|(known, _)| *known == key);
        found.map(|(_, given)| given)
    }

    /// The word of its head.
    pub(super) fn word(&self) -> &'static str {
        match self.get(self.form.head.name) {
            Some(Given::Word(word)) => word,
            _ => "",
        }
    }

    /// The buffer of its head.
    pub(super) fn buffer(&self) -> Option<&BufferRef> {
        self.buffers(self.form.head.name).first()
    }

    pub(super) fn expr(&self, key: &str) -> Option<&Expr> {
        match self.get(key)? {
            Given::Expr(expr) => Some(expr),
            _ => None,
        }
    }

    pub(super) fn name(&self, key: &str) -> Option<&Template> {
        match self.get(key)? {
            Given::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn stream(&self) -> Option<&Template> {
        self.name("stream")
    }

    pub(super) fn buffers(&self, key: &str) -> &[BufferRef] {
        match self.get(key) {
            Some(Given::Buffers(buffers)) => buffers,
            _ => &[],
        }
    }

    pub(super) fn steps(&self, key: &str) -> &[Step] {
        match self.get(key) {
            Some(Given::Steps(steps)) => steps,
            _ => &[],
        }
    }
}

/// A list of steps. A step that cannot be read is left out and reported.
pub(crate) fn read(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<Step> {
    if !field.value.is_array() {
        reader.wrong_type(field, "steps are a list");
        return Vec::new();
    }
    let parts = Reader::list(field).into_iter();
    parts.filter_map(|part| step(reader, part)).collect()
}

fn step(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Step> {
    let Some(table) = field.value.as_table() else {
        reader.wrong_type(field, "a step is a table, as { h2d = \"buffer\" }");
        return None;
    };
    let items = Reader::items(table);
    let has = |form: &&Form| items.iter().any(|item| item.key == form.head.name);
    let Some(form) = STEPS.iter().find(has) else {
        unknown_step(reader, field);
        return None;
    };
    let second = items.iter().find(|item| {
        item.key != form.head.name
            && !form.keys.iter().any(|key| key.name == item.key)
            && STEPS.iter().any(|other| other.head.name == item.key)
    });
    if let Some(second) = second {
        let (one, other) = (quoted(form.head.name), quoted(second.key));
        let message = format!("this step is {one} and {other} at once");
        reader.error_help(second.field.key_loc, message, "write two steps");
        return None;
    }
    let article = match form.head.name {
        "h2d" | "alloc" | "if" => "an",
        _ => "a",
    };
    let what = format!("{article} {} step", form.head.name);
    let fields = reader.fields(field, &[&[form.head], form.keys], &what)?;
    let head = Given::read(reader, &form.head, fields.get(form.head.name)?)?;
    let mut given = vec![(form.head.name, head)];
    for key in form.keys {
        let field = fields.get(key.name);
        let value = field.and_then(|field| Given::read(reader, key, field));
        given.extend(value.map(|value| (key.name, value)));
    }
    let loc = field.loc;
    let step = Step { loc, form, given };
    (form.check)(&step, &fields, reader);
    Some(step)
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
