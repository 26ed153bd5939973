//! The keys of the scenario language, in tables. The parser knows keys from here and tells unknown ones from here. The
//! JSON schema for editors comes from here too. The keys of a step stand with its kind (`scenario/steps`).

/// What a key's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
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
    /// A number, or one table of these keys.
    NumberOr(&'static [Key]),
    /// The table of expectations.
    Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: ValueKind,
    /// Whether it must be there.
    pub required: bool,
    /// What it is for, shown by editors.
    pub doc: &'static str,
}

/// A key: `required` where it must be there, its name, its kind, what it is for.
macro_rules! key {
    (@is) => { false };
    (@is required) => { true };
    ($($required:ident)? $name:literal $kind:ident $(($of:expr))?, $doc:expr) => {
        $crate::syntax::keys::Key {
            name: $name,
            kind: $crate::syntax::keys::ValueKind::$kind $(($of))?,
            required: key!(@is $($required)?),
            doc: $doc,
        }
    };
}
pub(crate) use key;

/// Keys, one a line, as [`key`] takes them.
macro_rules! keys {
    ($($($word:ident)? $name:literal $kind:ident $(($of:expr))?, $doc:expr;)*) => {
        &[$(key!($($word)? $name $kind $(($of))?, $doc)),*]
    };
}

/// The keys of the file itself.
pub const TOP: &[Key] = keys! {
    required "name" Text, "The scenario's name, as shown.";
    "about" Text, "What it does, in a sentence or two.";
    "look_for" Text, "What to look for on the timeline.";
    "view" View, VIEW_DOC;
    "baseline" Name, "The variant that speed-ups are against. Default: the first one that shows no race.";
    "params" Params, "Numbers that expressions use and `--set name=value` changes.";
    "sweep" Table(SWEEP), "A parameter that takes several values in turn.";
    "buffers" Tables(BUFFER), "Memory: on the device, on the host, or both.";
    "kernels" Tables(KERNEL), "Kernels, with how to launch them.";
    "streams" Tables(STREAM), "Streams that need a device or a priority; others exist by being used.";
    required "variant" List(VARIANT), "A way to do the work; each is run and compared.";
    "pair" List(PAIR), "A mistake and its cure: what-if on the mistake's trace predicts the cure.";
    "expect" Expect, "What must hold: \"VARIANT.FIGURE\" = \">= 2.0\".";
};

const VIEW_DOC: &str = "The part of a pass to show first: \"first 100 us\", \"last 1 ms\" or \"200 us .. 300 us\", from its first operation on. Default: all of it.";

/// The keys of `[[pair]]`.
pub const PAIR: &[Key] = keys! {
    required "mistake" Name, "The variant to predict from.";
    required "cure" Name, "The variant that is predicted.";
    required "edit" Edits, "What to change of the mistake, as `cuptop whatif --edit` takes it: \"pin\", \"no-sync+own-stream\".";
    "at" Size, "At this value of the sweep. Default: at every value.";
};

/// The keys of `[buffers.NAME]`.
pub const BUFFER: &[Key] = keys! {
    required "bytes" Size, "Size of each side. May use `index`, the element's number.";
    "count" Number, "Makes an array of this many buffers, used as NAME[0], NAME[1] … Default: no array.";
    "host" OneOf(HOSTS), "Which host memory it has. Default: \"none\".";
    "device" Device, "The device it lives on, or false for host memory alone. May use `index`. Default: 0.";
    "fill" OneOf(FILLS), "What it holds at first. Default: \"zero\".";
    "alloc" OneOf(ALLOCS), "\"before\" the first pass, or by alloc steps (\"step\"). Default: \"before\".";
};

/// Values of `host`.
pub const HOSTS: &[&str] = &["none", "pinned", "pageable", "managed"];
/// Values of `fill`.
pub const FILLS: &[&str] = &["zero", "one", "iota", "random"];
/// Values of `alloc`.
pub const ALLOCS: &[&str] = &["before", "step"];

/// The keys of `[kernels.NAME]`.
pub const KERNEL: &[Key] = keys! {
    required "file" Text, "CUDA C++ source: a file next to the scenario, in its kernels/ folder, or a bundled one.";
    required "entry" Text, "The extern \"C\" __global__ function in it.";
    "grid" Dim3, "Blocks in x, y, z. Default: 1.";
    "block" Dim3, "Threads of a block in x, y, z. Default: 256.";
    "shared" Size, "Dynamic shared memory of a block. Default: 0.";
    "args" Args, "Arguments in order. Expressions may use the loop variables of the launch.";
    "flops" Number, "Floating point operations of a launch; gives FLOP/s.";
    "bytes" Size, "Bytes of device memory that a launch must move; gives GB/s.";
    "time" Time, "How long a launch takes by its own nature (a spin kernel); for the simulator.";
};

/// The keys of `[streams.NAME]`.
pub const STREAM: &[Key] = keys! {
    "device" Number, "The device it belongs to. Default: that of the first buffer used on it.";
    "priority" Number, "CUDA's priority; lower numbers go first. Default: 0.";
};

/// The keys of `[[variant]]`.
pub const VARIANT: &[Key] = keys! {
    required "name" Name, "Its name: letters, digits, _ and -.";
    "about" Text, "What it does differently.";
    "view" View, VIEW_DOC;
    "baseline" Name, "The variant that its speed-up is against; its own name for none. Default: the scenario's.";
    "warmup" Number, "Passes that are not measured. Default: 1, or 0 when cold.";
    "repeat" NumberOr(UNTIL), "Measured passes, or until when. Default: 3, or 1 when cold.";
    "cold" Bool, "Starts with a fresh CUDA context inside the measured pass. Default: false.";
    "race" Bool, "The variant shows a race on purpose: `check` names it as a note, and complains if there is none. Default: false.";
    "params" Params, "Other values of parameters, for this variant.";
    required "steps" Steps, "What one pass does.";
};

/// The keys of a `repeat` that goes by what was measured.
pub const UNTIL: &[Key] = keys! {
    required "until" Text, "Repeats until half of the 95 % interval of the median is below this share of it: \"2 %\". Six repeats at least.";
    "at_most" Number, "But not more often. Default: 200.";
};

/// The keys of `[sweep]`.
pub const SWEEP: &[Key] = keys! {
    required "param" Text, "The parameter that takes several values.";
    "values" Numbers, "Its values.";
    "from" Number, "Or: the first value,";
    "to" Number, "the last,";
    "factor" Number, "and what each is multiplied by for the next";
    "step" Number, "or what is added to it.";
};
