//! The keys of the scenario language, in tables. The parser knows keys from here and tells unknown ones from here. The
//! JSON schema for editors comes from here too. The keys of a step stand with its kind (`scenario/steps`).

/// What a key's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A name, with expressions in braces where it is in a step: "s{i}".
    Name,
    /// A whole number or an expression.
    Number,
    /// A size: bytes as a number, or an expression such as "64 MiB".
    Size,
    /// A time with its unit: "200 us".
    Time,
    /// true or false.
    Bool,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A buffer, or one of an array: "batch\[i\]".
    Buffer,
    /// One buffer or a list of them.
    Buffers,
    /// One to three numbers: x, y, z.
    Dim3,
    /// Kernel arguments: buffers, numbers, expressions.
    Args,
    /// A device's number, or false for host memory alone.
    Device,
    /// A list of steps.
    Steps,
    /// A list of numbers.
    Numbers,
    Condition,
    /// "i in 0..n".
    Loop,
    /// A part of a pass: "first 100 us".
    View,
    /// What-if edits: "pin+no-sync".
    Edits,
    /// A table of names and numbers.
    Params,
    /// A table of names, each with a table of these keys.
    Tables(&'static [Key]),
    /// A list of tables of these keys.
    List(&'static [Key]),
    /// One table of these keys.
    Table(&'static [Key]),
    /// The table of expectations.
    Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for, shown by editors.
    pub doc: &'static str,
}

pub(crate) const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        required: false,
        doc,
    }
}

pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key {
        name,
        kind,
        required: true,
        doc,
    }
}

/// The keys of the file itself.
pub const TOP: &[Key] = &[
    required("name", Kind::Text, "The scenario's name, as shown."),
    key("about", Kind::Text, "What it does, in a sentence or two."),
    key("look_for", Kind::Text, "What to look for on the timeline."),
    key("view", Kind::View, VIEW_DOC),
    key(
        "baseline",
        Kind::Name,
        "The variant that speed-ups are against. Default: the first one that shows no race.",
    ),
    key(
        "params",
        Kind::Params,
        "Numbers that expressions use and `--set name=value` changes.",
    ),
    key(
        "sweep",
        Kind::Table(SWEEP),
        "A parameter that takes several values in turn.",
    ),
    key(
        "buffers",
        Kind::Tables(BUFFER),
        "Memory: on the device, on the host, or both.",
    ),
    key(
        "kernels",
        Kind::Tables(KERNEL),
        "Kernels, with how to launch them.",
    ),
    key(
        "streams",
        Kind::Tables(STREAM),
        "Streams that need a device or a priority; others exist by being used.",
    ),
    required(
        "variant",
        Kind::List(VARIANT),
        "A way to do the work; each is run and compared.",
    ),
    key(
        "pair",
        Kind::List(PAIR),
        "A mistake and its cure: what-if on the mistake's trace predicts the cure.",
    ),
    key(
        "expect",
        Kind::Expect,
        "What must hold: \"VARIANT.FIGURE\" = \">= 2.0\".",
    ),
];

const VIEW_DOC: &str = "The part of a pass to show first: \"first 100 us\", \"last 1 ms\" or \"200 us .. 300 us\", from its first operation on. Default: all of it.";

/// The keys of `[[pair]]`.
pub const PAIR: &[Key] = &[
    required("mistake", Kind::Name, "The variant to predict from."),
    required("cure", Kind::Name, "The variant that is predicted."),
    required(
        "edit",
        Kind::Edits,
        "What to change of the mistake, as `cuptop whatif --edit` takes it: \"pin\", \"no-sync+own-stream\".",
    ),
    key(
        "at",
        Kind::Size,
        "At this value of the sweep. Default: at every value.",
    ),
];

/// The keys of `[buffers.NAME]`.
pub const BUFFER: &[Key] = &[
    required(
        "bytes",
        Kind::Size,
        "Size of each side. May use `index`, the element's number.",
    ),
    key(
        "count",
        Kind::Number,
        "Makes an array of this many buffers, used as NAME[0], NAME[1] … Default: no array.",
    ),
    key(
        "host",
        Kind::OneOf(HOSTS),
        "Which host memory it has. Default: \"none\".",
    ),
    key(
        "device",
        Kind::Device,
        "The device it lives on, or false for host memory alone. May use `index`. Default: 0.",
    ),
    key(
        "fill",
        Kind::OneOf(FILLS),
        "What it holds at first. Default: \"zero\".",
    ),
    key(
        "alloc",
        Kind::OneOf(ALLOCS),
        "\"before\" the first pass, or by alloc steps (\"step\"). Default: \"before\".",
    ),
];

/// Values of `host`.
pub const HOSTS: &[&str] = &["none", "pinned", "pageable", "managed"];
/// Values of `fill`.
pub const FILLS: &[&str] = &["zero", "one", "iota", "random"];
/// Values of `alloc`.
pub const ALLOCS: &[&str] = &["before", "step"];

/// The keys of `[kernels.NAME]`.
pub const KERNEL: &[Key] = &[
    required(
        "file",
        Kind::Text,
        "CUDA C++ source: a file next to the scenario, in its kernels/ folder, or a bundled one.",
    ),
    required(
        "entry",
        Kind::Text,
        "The extern \"C\" __global__ function in it.",
    ),
    key("grid", Kind::Dim3, "Blocks in x, y, z. Default: 1."),
    key(
        "block",
        Kind::Dim3,
        "Threads of a block in x, y, z. Default: 256.",
    ),
    key(
        "shared",
        Kind::Size,
        "Dynamic shared memory of a block. Default: 0.",
    ),
    key(
        "args",
        Kind::Args,
        "Arguments in order. Expressions may use the loop variables of the launch.",
    ),
    key(
        "flops",
        Kind::Number,
        "Floating point operations of a launch; gives FLOP/s.",
    ),
    key(
        "bytes",
        Kind::Size,
        "Bytes of device memory that a launch must move; gives GB/s.",
    ),
    key(
        "time",
        Kind::Time,
        "How long a launch takes by its own nature (a spin kernel); for the simulator.",
    ),
];

/// The keys of `[streams.NAME]`.
pub const STREAM: &[Key] = &[
    key(
        "device",
        Kind::Number,
        "The device it belongs to. Default: that of the first buffer used on it.",
    ),
    key(
        "priority",
        Kind::Number,
        "CUDA's priority; lower numbers go first. Default: 0.",
    ),
];

/// The keys of `[[variant]]`.
pub const VARIANT: &[Key] = &[
    required("name", Kind::Name, "Its name: letters, digits, _ and -."),
    key("about", Kind::Text, "What it does differently."),
    key("view", Kind::View, VIEW_DOC),
    key(
        "baseline",
        Kind::Name,
        "The variant that its speed-up is against; its own name for none. Default: the scenario's.",
    ),
    key(
        "warmup",
        Kind::Number,
        "Passes that are not measured. Default: 1, or 0 when cold.",
    ),
    key(
        "repeat",
        Kind::Number,
        "Measured passes. Default: 3, or 1 when cold.",
    ),
    key(
        "cold",
        Kind::Bool,
        "Starts with a fresh CUDA context inside the measured pass. Default: false.",
    ),
    key(
        "race",
        Kind::Bool,
        "The variant shows a race on purpose: `check` names it as a note, and complains if there is none. Default: false.",
    ),
    key(
        "params",
        Kind::Params,
        "Other values of parameters, for this variant.",
    ),
    required("steps", Kind::Steps, "What one pass does."),
];

/// The keys of `[sweep]`.
pub const SWEEP: &[Key] = &[
    required(
        "param",
        Kind::Text,
        "The parameter that takes several values.",
    ),
    key("values", Kind::Numbers, "Its values."),
    key("from", Kind::Number, "Or: the first value,"),
    key("to", Kind::Number, "the last,"),
    key(
        "factor",
        Kind::Number,
        "and what each is multiplied by for the next",
    ),
    key("step", Kind::Number, "or what is added to it."),
];
