//! The file that `cuptop new NAME` writes: commented, valid, and ready to run.

/// A scenario to start from. `name` becomes its title.
pub fn template(name: &str) -> String {
    let shown: String = name
        .chars()
        .filter(|c| !activity::text::is_unprintable(*c) && *c != '"' && *c != '\\')
        .collect();
    let title = if shown.trim().is_empty() {
        "A new scenario"
    } else {
        shown.trim()
    };
    TEMPLATE
        .replacen("SCHEMA", SCHEMA, 1)
        .replacen("TITLE", title, 1)
}

/// A scenario's text for a file of its own: the schema is named where every folder finds it.
pub fn fork(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("#:schema ") => format!("{SCHEMA}\n{rest}"),
        _ => text.to_owned(),
    }
}

/// Names the schema to an editor.
const SCHEMA: &str =
    "#:schema https://raw.githubusercontent.com/cuptop/cuptop/main/docs/scenario.schema.json";

const TEMPLATE: &str = r#"SCHEMA
# Run it:    cuptop run THIS_FILE        (saving the file runs it again)
# Check it:  cuptop check THIS_FILE
# The whole language: cuptop help scenarios

name = "TITLE"
about = "Upload, add one, download: four batches, one after another and each on a stream of its own."
look_for = "In `streamed`, the download of one batch lies above the upload of another; `sequential` does one thing at a time."

[params]                 # change one without editing: --set size="64 MiB"
batches = 4
size = "16 MiB"

[buffers.batch]          # an array: batch[0] to batch[batches - 1]
bytes = "size"
count = "batches"
host = "pinned"          # or "pageable", "managed", "none"
fill = "iota"            # 0, 1, 2, ... as f32

[kernels.add]
file = "add.cu"          # bundled; a file of your own goes beside this one
entry = "add_one"
grid = "ceil_div(size / 4, 256)"
block = 256
args = ["batch", "size / 4"]
bytes = "2 * size"       # reads and writes each value: gives GB/s

[[variant]]
name = "sequential"
about = "One stream."
steps = [
  { for = "i in 0..batches", do = [
    { h2d = "batch[i]", stream = "main" },
    { launch = "add", on = "batch[i]", stream = "main" },
    { d2h = "batch[i]", stream = "main" },
  ] },
]

[[variant]]
name = "streamed"
about = "A stream for each batch."
steps = [
  { for = "i in 0..batches", do = [
    { h2d = "batch[i]", stream = "s{i}" },
    { launch = "add", on = "batch[i]", stream = "s{i}" },
    { d2h = "batch[i]", stream = "s{i}" },
  ] },
]

[expect]                 # `cuptop run THIS_FILE --headless` exits with 1 when one does not hold
"streamed.speedup_over.sequential" = ">= 1.2"
"#;
