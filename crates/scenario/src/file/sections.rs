//! TOML to [`File`]: the sections. Steps are read by `scenario::steps`.

use toml::de::{DeTable, DeValue};

use super::super::diagnostics::{Diagnostic, Diagnostics, quoted};
use super::super::edit;
use super::super::expr::parse::is_identifier;
use super::super::expr::value::{Operator, Unit, Value};
use super::super::expr::{Expr, Loc};
use super::super::plan::{Fill, HostMemory};
use super::super::steps;
use super::super::syntax::args::{args, placeholder};
use super::super::syntax::decl::{
    BufferDecl, KernelDecl, Named, ParamDecl, StreamDecl, SweepDecl, SweepValues,
};
use super::super::syntax::keys::{self, ValueKind};
use super::super::syntax::reader::{Field, Fields, Item, Reader, element};
use super::super::view::{self, View};
use super::{ExpectDecl, File, PairDecl, VariantDecl, mistakes};

/// Reads a file as far as it can be read; what is wrong is in `diagnostics`.
pub(in super::super) fn parse(text: &str, diagnostics: &mut Diagnostics) -> File {
    let reader = &mut Reader {
        text,
        diagnostics,
        lacks_header: false,
    };
    if reader.text.len() as u64 > activity::door::TEXT {
        reader.diagnostics.push(Diagnostic {
            line: 1,
            column: 1,
            ..Diagnostic::error(0..0, "a scenario file may have 256 KiB")
        });
        return File::default();
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        mistakes::report(text, &errors, reader.diagnostics);
        return File::default();
    }
    let loc = Loc::from(table.span());
    let root = DeValue::Table(table.into_inner());
    let field = Field {
        value: &root,
        loc,
        key_loc: first_line(reader.text),
    };
    let top = reader.fields(field, &[keys::TOP], "a scenario");
    let mut sections = root.as_table().into_iter().flatten();
    let is_misnamed = sections.any(|(name, it)| {
        let known = keys::TOP.iter().find(|key| key.name == name.get_ref());
        let table = it.get_ref().as_table();
        table.is_some_and(|table| match known.map(|key| key.kind) {
            Some(ValueKind::Tables(_)) => table.values().any(|it| !it.get_ref().is_table()),
            known => known.is_none(),
        })
    });
    let file = top.map(|top| read(reader, &top)).unwrap_or_default();
    let file = File {
        is_misnamed: is_misnamed || reader.lacks_header,
        ..file
    };
    twice(reader, &file);
    file
}

/// Reads all sections.
fn read(reader: &mut Reader<'_>, top: &Fields<'_>) -> File {
    let mut file = File::default();
    let mut text = |key: &str| top.read(key, reader, Reader::text).unwrap_or_default();
    file.name = text("name");
    file.about = text("about");
    file.look_for = text("look_for");
    file.view = view(reader, top);
    file.baseline = named(reader, top, "baseline");
    file.declared.params = top.read("params", reader, params);
    file.declared.sweep = top.get("sweep").and_then(|field| sweep(reader, field));
    for (name, field) in each(reader, top, "buffers") {
        check_identifier(reader, &name);
        file.declared.buffers.extend(buffer(reader, name, field));
    }
    for (name, field) in each(reader, top, "kernels") {
        check_identifier(reader, &name);
        file.declared.kernels.extend(kernel(reader, name, field));
    }
    for (name, field) in each(reader, top, "streams") {
        file.declared.streams.extend(stream(reader, name, field));
    }
    for field in tables(reader, top, "variant") {
        file.variants.extend(variant(reader, field));
    }
    for field in tables(reader, top, "pair") {
        file.pairs.extend(pair(reader, field));
    }
    file.expect = top.read("expect", reader, expect);
    file
}

/// The first line with text: the place of errors about the file as a whole.
fn first_line(text: &str) -> Loc {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let shown = line.trim();
        if !shown.is_empty() && !shown.starts_with('#') {
            return Loc::from(start..start + line.trim_end().len());
        }
        start += line.len();
    }
    Loc::from(0..text.find('\n').unwrap_or(text.len()))
}

/// The tables of `[[what]]`.
fn tables<'a>(reader: &mut Reader<'_>, top: &Fields<'a>, what: &str) -> Vec<Field<'a>> {
    let Some(field) = top.get(what) else {
        return Vec::new();
    };
    match field.value {
        DeValue::Array(array) => return array.iter().map(|value| element(value)).collect(),
        DeValue::Table(_) => {
            let help = format!("write [[{what}]], with two brackets");
            reader.error_help(field.key_loc, format!("{what}s are a list"), help);
        }
        _ => reader.wrong_type(
            field,
            &format!("{what}s are a list of tables, as [[{what}]]"),
        ),
    }
    Vec::new()
}

/// Each `[what.NAME]` with its name.
fn each<'a>(reader: &mut Reader<'_>, top: &Fields<'a>, what: &str) -> Vec<(Named, Field<'a>)> {
    let Some(field) = top.get(what) else {
        return Vec::new();
    };
    let Some(table) = field.value.as_table() else {
        reader.wrong_type(field, &format!("{what} are tables, as [{what}.NAME]"));
        return Vec::new();
    };
    let (named, bare): (Vec<_>, _) =
        (entries(table).into_iter()).partition(|(_, field)| field.value.is_table());
    if let Some((key, _)) = bare.first() {
        let key = quoted(&key.text);
        let message = format!("[{what}] lacks a name: {key} belongs to one of them");
        let launched = reader.text.split("launch = \"").nth(1);
        let launched = launched.filter(|_| what == "kernels");
        let name = launched.and_then(|it| it.split('"').next());
        let help = format!("write [{what}.{}]", name.unwrap_or("NAME"));
        reader.error_help(field.key_loc, message, help);
    }
    named
}

/// The entries of a table with their names.
fn entries<'a>(table: &'a DeTable<'a>) -> Vec<(Named, Field<'a>)> {
    let named = |item: Item<'a>| {
        let name = Named {
            text: item.key.to_owned(),
            loc: item.field.key_loc,
        };
        (name, item.field)
    };
    Reader::items(table).into_iter().map(named).collect()
}

/// Reports a name that expressions cannot use.
fn check_identifier(reader: &mut Reader<'_>, name: &Named) {
    if !is_identifier(&name.text) {
        let message = format!("{} cannot be a name in expressions", quoted(&name.text));
        let help = "use letters, digits and _, a letter first";
        reader.error_help(name.loc, message, help);
    }
}

/// Names that stand for two things.
fn twice(reader: &mut Reader<'_>, file: &File) {
    let mut report = |name: &Named, message: String, first: &Named, what: &str| {
        let error = Diagnostic::error(name.loc.range(), message);
        let error = error.related(first.loc.range(), what);
        let error = error.help("give one of them another name");
        reader.diagnostics.push(error);
    };
    for buffer in &file.declared.buffers {
        let mut params = file.declared.params.iter();
        if let Some(param) = params.find(|param| param.name.text == buffer.name.text) {
            let message = format!("{} is a parameter and a buffer", quoted(&buffer.name.text));
            report(&buffer.name, message, &param.name, "the parameter");
        }
    }
    for (at, variant) in file.variants.iter().enumerate() {
        let mut others = file.variants[..at].iter();
        if let Some(first) = others.find(|other| other.name.text == variant.name.text) {
            let message = format!("two variants are named {}", quoted(&variant.name.text));
            report(&variant.name, message, &first.name, "the first one");
        }
    }
}

fn params(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<ParamDecl> {
    let Some(table) = field.value.as_table() else {
        reader.wrong_type(field, "parameters are a table of names and numbers");
        return Vec::new();
    };
    let mut params = Vec::new();
    for (name, field) in entries(table) {
        check_identifier(reader, &name);
        let value = reader.expr(field);
        let value = value.unwrap_or_else(|| placeholder(field.loc));
        params.push(ParamDecl { name, value });
    }
    params
}

fn named(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Named> {
    fields.read(key, reader, Reader::named)
}

fn view(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<View> {
    let field = fields.get("view")?;
    let what = "a view is a text in quotes, such as \"first 100 us\"";
    let piece = reader.piece(field, what)?;
    reader.parsed(view::read(piece))
}

fn pair(reader: &mut Reader<'_>, field: Field<'_>) -> Option<PairDecl> {
    let field = below(field, "[[pair]]");
    let fields = reader.fields(field, &[keys::PAIR], "a pair")?;
    let mistake = named(reader, &fields, "mistake");
    let cure = named(reader, &fields, "cure");
    let at = reader.optional(&fields, "at");
    let edit = fields.get("edit").and_then(|field| {
        let piece = reader.piece(field, "edits are a text in quotes, such as \"pin\"")?;
        reader.parsed(edit::read(piece))
    });
    Some(PairDecl {
        mistake: mistake?,
        cure: cure?,
        edit: edit?,
        at,
        loc: field.key_loc,
    })
}

/// A table of a list: what is wrong with it as a whole is at the brackets that it begins with.
fn below<'a>(field: Field<'a>, brackets: &str) -> Field<'a> {
    let start = field.loc.start;
    let key_loc = Loc::from(start..field.loc.end.min(start + brackets.len()));
    Field { key_loc, ..field }
}

fn sweep(reader: &mut Reader<'_>, field: Field<'_>) -> Option<SweepDecl> {
    let list = field.value.as_array();
    if let Some((first, second)) = list.and_then(|it| Some((it.first()?, it.get(1)?))) {
        let error = Diagnostic::error(second.span(), "a scenario has one sweep");
        let error = error.related(first.span(), "the first one");
        let help = "keep one, as [sweep]; `--set NAME=VALUE` changes another parameter";
        reader.diagnostics.push(error.help(help));
        return None;
    }
    let fields = reader.fields(field, &[keys::SWEEP], "a sweep")?;
    let param = fields.read("param", reader, Reader::named)?;
    let mut number = |key: &str| reader.optional(&fields, key);
    let (from, to) = (number("from"), number("to"));
    let (factor, step) = (number("factor"), number("step"));
    let values = match (fields.get("values"), from, to, factor, step) {
        (Some(values), None, None, None, None) => {
            let values = Reader::list(values).into_iter();
            SweepValues::List(values.filter_map(|field| reader.expr(field)).collect())
        }
        (None, Some(from), Some(to), Some(factor), None) => {
            SweepValues::Grown([from, to, factor], Operator::Mul)
        }
        (None, Some(from), Some(to), None, Some(step)) => {
            SweepValues::Grown([from, to, step], Operator::Add)
        }
        _ => {
            let help = "give `values`, or `from`, `to` and `factor`, or `from`, `to` and `step`";
            reader.error_help(field.key_loc, "this sweep does not say which values", help);
            return None;
        }
    };
    Some(SweepDecl {
        param,
        values,
        loc: field.key_loc,
    })
}

fn buffer(reader: &mut Reader<'_>, name: Named, field: Field<'_>) -> Option<BufferDecl> {
    let fields = reader.fields(field, &[keys::BUFFER], "a buffer")?;
    let mut word = |key: &str, words: &[&'static str]| {
        fields.read(key, reader, |reader, field| reader.one_of(field, words))
    };
    let host = word("host", keys::HOSTS);
    let fill = word("fill", keys::FILLS);
    let alloc = word("alloc", keys::ALLOCS);
    let device = device(reader, &fields, name.loc);
    let host = match host {
        Some("pinned") => HostMemory::Pinned,
        Some("pageable") => HostMemory::Pageable,
        Some("managed") => HostMemory::Managed,
        _ => HostMemory::None,
    };
    let loc = name.loc;
    if fields.get("device").is_some()
        && device.is_none()
        && matches!(host, HostMemory::None | HostMemory::Managed)
    {
        let shown = quoted(&name.text);
        let message = format!("{shown} has neither a device side nor a host side");
        let help = "set host = \"pinned\" or \"pageable\", or give it a device";
        reader.error_help(loc, message, help);
    }
    let is_allocated_by_steps = alloc == Some("step");
    if is_allocated_by_steps && (device.is_none() || host == HostMemory::Managed) {
        let is_for = "is for the device side, which this buffer does not have by itself";
        reader.error(loc, format!("alloc = \"step\" {is_for}"));
    }
    let bytes = reader.optional(&fields, "bytes");
    Some(BufferDecl {
        bytes: bytes.unwrap_or_else(|| placeholder(loc)),
        count: reader.optional(&fields, "count"),
        host,
        device,
        fill: match fill {
            Some("one") => Fill::One,
            Some("iota") => Fill::Iota,
            Some("random") => Fill::Random,
            _ => Fill::Zero,
        },
        is_allocated_by_steps,
        name,
    })
}

/// The device that a buffer lives on; `None` for host memory alone.
fn device(reader: &mut Reader<'_>, fields: &Fields<'_>, loc: Loc) -> Option<Expr> {
    let zero = Expr::constant(Value::Int(0, Unit::None), loc);
    let Some(field) = fields.get("device") else {
        return Some(zero);
    };
    match field.value.as_bool() {
        Some(false) => None,
        Some(true) => {
            let message = "a device is a number from 0, or false for host memory alone";
            reader.error(field.loc, message);
            Some(zero)
        }
        None => reader.expr(field),
    }
}

fn dim3(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Vec<Expr> {
    let Some(field) = fields.get(key) else {
        return Vec::new();
    };
    let parts = Reader::list(field);
    if parts.is_empty() || parts.len() > 3 {
        let message = format!("a {key} has one to three numbers: x, y, z");
        reader.error(field.loc, message);
    }
    let parts = parts.into_iter().take(3);
    parts.filter_map(|part| reader.expr(part)).collect()
}

fn kernel(reader: &mut Reader<'_>, name: Named, field: Field<'_>) -> Option<KernelDecl> {
    let fields = reader.fields(field, &[keys::KERNEL], "a kernel")?;
    let mut named = |key: &str| fields.read(key, reader, Reader::named).unwrap_or_default();
    let (file, entry) = (named("file"), named("entry"));
    Some(KernelDecl {
        file,
        entry,
        grid: dim3(reader, &fields, "grid"),
        block: dim3(reader, &fields, "block"),
        shared: reader.optional(&fields, "shared"),
        args: fields.read("args", reader, args),
        args_loc: fields.get("args").map_or(name.loc, |field| field.loc),
        flops: reader.optional(&fields, "flops"),
        bytes: reader.optional(&fields, "bytes"),
        time: reader.optional(&fields, "time"),
        code: None,
        name,
    })
}

fn stream(reader: &mut Reader<'_>, name: Named, field: Field<'_>) -> Option<StreamDecl> {
    let fields = reader.fields(field, &[keys::STREAM], "a stream")?;
    Some(StreamDecl {
        device: reader.optional(&fields, "device"),
        priority: reader.optional(&fields, "priority"),
        name,
    })
}

fn variant(reader: &mut Reader<'_>, field: Field<'_>) -> Option<VariantDecl> {
    let field = below(field, "[[variant]]");
    let fields = reader.fields(field, &[keys::VARIANT], "a variant")?;
    let name = named(reader, &fields, "name").unwrap_or(Named {
        text: String::new(),
        loc: field.key_loc,
    });
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.text.chars().all(fits) || name.text.len() > 64 {
        let message = format!("{} cannot be the name of a variant", quoted(&name.text));
        reader.error_help(name.loc, message, "use up to 64 letters, digits, _ and -");
    }
    let is_cold = fields.read("cold", reader, Reader::boolean) == Some(true);
    if is_cold && let Some(warmup) = fields.get("warmup") {
        let help = "take out `warmup`, or `cold`";
        reader.error_help(warmup.key_loc, "a cold variant has no warm-up", help);
    }
    let about = fields.read("about", reader, Reader::text);
    let (repeat, until) = match fields.get("repeat") {
        Some(field) if field.value.is_table() => repeat_until(reader, field),
        _ => (reader.optional(&fields, "repeat"), None),
    };
    Some(VariantDecl {
        about: about.unwrap_or_default(),
        view: view(reader, &fields),
        baseline: named(reader, &fields, "baseline"),
        warmup: reader.optional(&fields, "warmup"),
        repeat,
        until,
        is_cold,
        shows_race: fields.read("race", reader, Reader::boolean) == Some(true),
        params: fields.read("params", reader, params),
        steps: fields.read("steps", reader, steps::read),
        name,
    })
}

/// `{ until = "2 %", at_most = 200 }`
fn repeat_until(reader: &mut Reader<'_>, field: Field<'_>) -> (Option<Expr>, Option<f64>) {
    let Some(fields) = reader.fields(field, &[keys::UNTIL], "a repeat") else {
        return (None, None);
    };
    let share = fields.get("until").and_then(|field| {
        let text = reader.named_or_number(field)?.text;
        let number = text.trim_matches(['%', '<', '=', ' ']).parse::<f64>().ok();
        let number = number.filter(|it| *it > 0.0 && *it < 100.0);
        let share = number
            .filter(|_| text.ends_with('%') && text.starts_with(|it: char| it.is_ascii_digit()));
        if share.is_none() {
            let is_part = number.is_some_and(|it| it < 1.0);
            let meant = number.unwrap_or(2.0) * if is_part { 100.0 } else { 1.0 };
            let message = format!("{} is not a share of the median", quoted(&text));
            reader.error_help(field.loc, message, format!("write it as \"{meant} %\""));
        }
        Some(share? / 100.0)
    });
    let most = reader.optional(&fields, "at_most");
    let default = Expr::constant(Value::Int(200, Unit::None), field.loc);
    (most.or(Some(default)), share)
}

fn expect(reader: &mut Reader<'_>, field: Field<'_>) -> Vec<ExpectDecl> {
    let Some(table) = field.value.as_table() else {
        reader.wrong_type(field, "expectations are a table");
        return Vec::new();
    };
    let mut lines = Vec::new();
    for item in Reader::items(table) {
        if item.field.value.is_table() {
            let help = "put the whole key in quotes: \"VARIANT.FIGURE\" = \">= 2.0\"";
            let message = "an expectation is one key and a comparison";
            reader.error_help(item.field.key_loc, message, help);
            continue;
        }
        let bounds = Reader::list(item.field).into_iter();
        lines.push(ExpectDecl {
            key: item.key.to_owned(),
            key_loc: item.field.key_loc,
            // What lacks its comparison lacks it in quotes, too.
            bounds: bounds.filter_map(|it| reader.named_or_number(it)).collect(),
        });
    }
    lines
}
