//! Plans against what the file says, worked out by hand.

use activity::Direction;
use cuptop::bundled::LIBRARY;
use scenario::expect::{Compare, Figure, Kind};
use scenario::expr::Loc;
use scenario::expr::parse::{Piece, expression};
use scenario::expr::value::{Unit, Value};
use scenario::plan::*;
use scenario::{Overrides, Source, compile};

use crate::source_of;

fn plan_of(text: &str, set: &[(&str, &str)]) -> Plan {
    let source = source_of(text);
    let set = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let overrides = Overrides {
        set: set.collect(),
        ..Overrides::default()
    };
    let compiled = compile(&source, &overrides);
    compiled
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
        .plan
}

/// A file with one variant of these steps, and what is above it.
fn steps(above: &str, steps: &str) -> VariantPlan {
    let text = format!("name = \"t\"\n{above}\n[[variant]]\nname = \"v\"\nsteps = [\n{steps}\n]\n");
    plan_of(&text, &[]).variants.remove(0)
}

fn kinds(variant: &VariantPlan) -> Vec<OpKind> {
    variant.ops.iter().map(|op| op.kind).collect()
}

fn at(buffer: BufferId, offset: u64) -> MemRef {
    MemRef { buffer, offset }
}

#[test]
fn pipeline_unrolls_as_written() {
    let source = Source::find("pipeline", LIBRARY).expect("it is bundled");
    let plan = plan_of(&source.text, &[("batches", "2"), ("n", "256")]);
    let names: Vec<&str> = plan
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names, ["sequential", "streamed"]);
    let streamed = &plan.variants[1];
    assert_eq!(
        (streamed.warmup, streamed.repeat, streamed.devices),
        (1, 3, 1)
    );
    let streams: Vec<&str> = streamed
        .streams
        .iter()
        .map(|stream| stream.name.as_str())
        .collect();
    assert_eq!(streams, ["s0", "s1"]);
    let buffers: Vec<&str> = streamed
        .buffers
        .iter()
        .map(|buffer| buffer.name.as_str())
        .collect();
    assert_eq!(
        buffers,
        ["batch[0]", "product[0]", "batch[1]", "product[1]"]
    );
    assert!(
        streamed
            .buffers
            .iter()
            .all(|buffer| buffer.bytes == 262_144 && buffer.preallocated)
    );
    let copy = |direction, buffer, stream| {
        OpKind::Copy(CopySpec {
            direction,
            from: at(buffer, 0),
            to: at(buffer, 0),
            bytes: 262_144,
            chunk: 0,
            stream,
            is_async: true,
        })
    };
    let expected = [
        copy(Direction::H2D, 0, 0),
        OpKind::Launch {
            launch: 0,
            stream: 0,
        },
        copy(Direction::D2H, 1, 0),
        copy(Direction::H2D, 2, 1),
        OpKind::Launch {
            launch: 1,
            stream: 1,
        },
        copy(Direction::D2H, 3, 1),
        OpKind::Sync(SyncTarget::Device(0)),
    ];
    assert_eq!(kinds(streamed), expected);
    let device = |buffer| Arg::Device(at(buffer, 0));
    assert_eq!(
        streamed.launches[1].args,
        [device(2), device(2), device(3), Arg::U32(256)]
    );
    assert_eq!(
        (streamed.launches[0].grid, streamed.launches[0].block),
        ([2, 2, 1], [256, 1, 1])
    );
    assert_eq!(streamed.launches[0].flops, Some(2 * 256 * 256 * 256));
    // The first h2d of `streamed` stands where the file says.
    let site = &plan.sites[streamed.ops[0].site as usize];
    let line = source
        .text
        .lines()
        .nth(site.line as usize - 1)
        .expect("a line of the file");
    assert_eq!(
        &line[site.column as usize - 1..],
        "{ h2d = \"batch[i]\", stream = \"s{i}\" },"
    );
}

#[test]
fn expressions_have_the_values_of_arithmetic() {
    let value = |text: &str| {
        let piece = Piece {
            text,
            start: None,
            whole: Loc::default(),
        };
        let lookup = |name: &str| (name == "n").then_some(Value::Int(7, Unit::None));
        expression(piece)
            .and_then(|expr| expr.eval(&lookup))
            .map_err(|error| error.message)
    };
    let whole = |number| Ok(Value::Int(number, Unit::None));
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("7 / 2 * 2", 6),
        ("-7 / 2", -3),
        ("2 ** 3 ** 2", 512),
        ("-2 ** 2", -4),
        ("2 ** -0", 1),
        ("n % 4 == 3 && n > 6", 1),
        ("n < 3 || !(n == 7)", 0),
        ("1 + 1 == 2", 1),
        ("ceil_div(n, 2)", 4),
        ("ceil_div(8, 2)", 4),
        ("min(n, 3, 9) + max(1, n)", 10),
        ("log2(1024) + log2(1023)", 19),
        ("1_000 * 2", 2000),
    ] {
        assert_eq!(value(text), whole(expected), "{text}");
    }
    assert_eq!(
        value("2 * 64 MiB"),
        Ok(Value::Int(134_217_728, Unit::Bytes))
    );
    assert_eq!(value("1.5KiB"), Ok(Value::Int(1536, Unit::Bytes)));
    assert_eq!(value("1 MB / 1 kB"), whole(1000));
    assert_eq!(value("0.5 us"), Ok(Value::Int(500, Unit::Time)));
    assert_eq!(value("25 GB/s"), Ok(Value::Int(25, Unit::Rate)));
    assert_eq!(value("1 / 4.0"), Ok(Value::Float(0.25, Unit::None)));
    for wrong in [
        "n / 0",
        "n % 0",
        "2 ** 63",
        "9223372036854775807 + 1",
        "1 s + 1 B",
        "1 B * 1 B",
        "log2(0)",
        "1 2",
        "",
    ] {
        assert!(value(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn loops_count_as_written() {
    let buffer = "[buffers.x]\nbytes = 64\nhost = \"pinned\"\n";
    let offsets = |head: &str| -> Vec<u64> {
        let variant = steps(
            buffer,
            &format!(
                "{{ for = \"{head}\", do = [{{ h2d = \"x\", offset = \"i\", bytes = 1, stream = \"s\" }}] }}, {{ memset = \"x\", stream = \"s\" }}"
            ),
        );
        let offset = |kind| match kind {
            OpKind::Copy(CopySpec { from, to, .. }) => {
                assert_eq!(from.offset, to.offset);
                Some(from.offset)
            }
            _ => None,
        };
        kinds(&variant).into_iter().filter_map(offset).collect()
    };
    assert_eq!(offsets("i in 0..3"), [0, 1, 2]);
    assert_eq!(offsets("i in 3..10 step 3"), [3, 6, 9]);
    assert_eq!(offsets("i in 9..0 step -4"), [9, 5, 1]);
    assert!(offsets("i in 3..3").is_empty());
    assert!(offsets("i in 5..2").is_empty());
}

#[test]
fn conditions_choose_steps() {
    let variant = steps(
        "[buffers.x]\nbytes = 4\n",
        "{ for = \"i in 0..3\", do = [{ if = \"i % 2 == 0\", do = [{ memset = \"x\", value = \"i\" }], else = [{ sync = \"device\" }] }] }",
    );
    let memset = |value| OpKind::Memset {
        to: at(0, 0),
        bytes: 4,
        value,
        stream: 0,
    };
    assert_eq!(
        kinds(&variant),
        [memset(0), OpKind::Sync(SyncTarget::Device(0)), memset(2)]
    );
    assert_eq!(variant.streams[0].name, "default");
}

#[test]
fn copies_take_the_bytes_that_are_left() {
    let variant = steps(
        "[buffers.x]\nbytes = 100\nhost = \"pinned\"\n[buffers.y]\nbytes = 100\nhost = \"pageable\"\n",
        "{ h2d = \"x\", offset = 60, stream = \"s\" },
         { d2d = \"x\", to = \"y\", offset = 60, stream = \"s\" },
         { d2h = \"x\", to = \"y\", offset = 60, to_offset = 10, bytes = 5, chunk = 2, stream = \"s\" },
         { d2h = \"y\", sync = true },",
    );
    let copies: Vec<(u64, u64, u64, u64, bool)> = kinds(&variant)
        .into_iter()
        .filter_map(|kind| match kind {
            OpKind::Copy(CopySpec {
                from,
                to,
                bytes,
                chunk,
                is_async,
                ..
            }) => Some((from.offset, to.offset, bytes, chunk, is_async)),
            _ => None,
        })
        .collect();
    let expected = [
        (60, 60, 40, 0, true),
        (60, 0, 40, 0, true),
        (60, 10, 5, 2, true),
        (0, 0, 100, 0, false),
    ];
    assert_eq!(copies, expected);
}

#[test]
fn sweeps_run_every_variant_at_every_value() {
    let source = Source::find("pinned_vs_pageable", LIBRARY).expect("it is bundled");
    let plan = plan_of(&source.text, &[]);
    let sweep = plan.sweep.expect("it has a sweep");
    let sizes: Vec<i64> = (0..9).map(|power| 4096 << (2 * power)).collect();
    assert_eq!(
        (sweep.param.as_str(), &sweep.values, sweep.is_log),
        ("size", &sizes, true)
    );
    let points: Vec<(&str, Option<i64>)> = plan
        .variants
        .iter()
        .map(|v| (v.name.as_str(), v.point))
        .collect();
    assert_eq!(points.len(), 36);
    assert_eq!(
        (points[0], points[8], points[9]),
        (
            ("pinned_async", Some(4096)),
            ("pinned_async", Some(256 << 20)),
            ("pinned_sync", Some(4096)),
        )
    );
    assert!(
        plan.variants
            .iter()
            .all(|v| v.buffers[0].bytes == v.point.expect("swept").unsigned_abs())
    );
    let only = plan_of(&source.text, &[("size", "8 MiB")]);
    assert_eq!(only.sweep.expect("still one value").values, [8 << 20]);
    assert!(only.expectations.is_empty(), "256 MiB was not run");
}

#[test]
fn expectations_carry_their_bounds_in_base_units() {
    let text = "name = \"t\"\n[params]\nn = 1\n[sweep]\nparam = \"n\"\nvalues = [\"1 KiB\", \"4 KiB\"]\n\
        [buffers.x]\nbytes = \"n\"\nhost = \"pinned\"\n\
        [[variant]]\nname = \"a\"\nsteps = [{ range = \"up load\", do = [{ h2d = \"x\" }] }]\n\
        [[variant]]\nname = \"b\"\nsteps = [{ h2d = \"x\" }]\n[expect]\n\
        \"a[n=4 KiB].speedup_over.b\" = \"> 1.5\"\n\"a.idle\" = [\">= 10 %\", \"< 0.9\"]\n\
        \"a.makespan\" = \"<= 3 ms\"\n\"a.h2d_gbps\" = \">= 25 GB/s\"\n\"b.peak_memory\" = \"<= 1 MiB\"\n\"a.phase.up load\" = \"< 1 s\"\n";
    let plan = plan_of(text, &[]);
    let found: Vec<_> = plan
        .expectations
        .iter()
        .map(|e| (e.variant.as_str(), e.point, &e.figure, e.compare, e.value))
        .collect();
    let expected = [
        (
            "a",
            Some(4096),
            &Figure::new(Kind::SpeedupOver, "b"),
            Compare::Above,
            1.5,
        ),
        (
            "a",
            None,
            &Figure::new(Kind::Idle, ""),
            Compare::AtLeast,
            0.1,
        ),
        ("a", None, &Figure::new(Kind::Idle, ""), Compare::Below, 0.9),
        (
            "a",
            None,
            &Figure::new(Kind::Makespan, ""),
            Compare::AtMost,
            3e6,
        ),
        (
            "a",
            None,
            &Figure::new(Kind::H2dGbps, ""),
            Compare::AtLeast,
            25.0,
        ),
        (
            "b",
            None,
            &Figure::new(Kind::PeakMemory, ""),
            Compare::AtMost,
            1_048_576.0,
        ),
        (
            "a",
            None,
            &Figure::new(Kind::Phase, "up load"),
            Compare::Below,
            1e9,
        ),
    ];
    assert_eq!(found, expected);
    assert_eq!(plan.expectations[0].what, "a[n=4 KiB].speedup_over.b");
    assert_eq!(plan.expectations[0].expected, "> 1.5");
}

#[test]
fn streams_take_the_device_of_their_first_buffer() {
    let variant = steps(
        "[buffers.x]\nbytes = 8\ncount = 2\nhost = \"pinned\"\ndevice = \"index\"\n[streams.fast]\npriority = -1\n",
        "{ h2d = \"x[1]\", stream = \"one\" },
         { record = \"e\", stream = \"one\" },
         { wait = \"e\", stream = \"fast\" },
         { p2p = \"x[1]\", to = \"x[0]\", stream = \"one\" },
         { memset = \"x[0]\", stream = \"fast\" },
         { d2h = \"x[1]\", sync = true },",
    );
    let streams: Vec<(&str, u32, i32)> = variant
        .streams
        .iter()
        .map(|stream| (stream.name.as_str(), stream.device, stream.priority))
        .collect();
    assert_eq!(streams, [("one", 1, 0), ("fast", 0, -1), ("default", 1, 0)]);
    assert_eq!(variant.devices, 2);
}

#[test]
fn a_graph_captured_alike_twice_is_one_graph() {
    let capture = |value| {
        format!(
            "{{ capture = \"g\", stream = \"s\", do = [{{ memset = \"x\", value = {value}, stream = \"s\" }}] }}, {{ launch_graph = \"g\", stream = \"s\" }},"
        )
    };
    let same = steps(
        "[buffers.x]\nbytes = 8\n",
        &format!("{{ for = \"i in 0..2\", do = [{}] }}", capture("7")),
    );
    assert_eq!(same.graphs.len(), 1);
    let differing = steps(
        "[buffers.x]\nbytes = 8\n",
        &format!("{{ for = \"i in 0..2\", do = [{}] }}", capture("\"i\"")),
    );
    assert_eq!(differing.graphs.len(), 2);
    let graph = |graph| OpKind::Capture { graph, stream: 0 };
    let launch = |graph| OpKind::GraphLaunch { graph, stream: 0 };
    assert_eq!(
        kinds(&differing),
        [graph(0), launch(0), graph(1), launch(1)]
    );
}

#[test]
fn memory_of_steps_is_not_allocated_before() {
    let variant = steps(
        "[buffers.x]\nbytes = 8\nalloc = \"step\"\n",
        "{ alloc = \"x\", stream = \"s\" }, { memset = \"x\", stream = \"s\" }, { free = \"x\", stream = \"s\" },
         { alloc = \"x\" }, { free = \"x\" },",
    );
    assert!(!variant.buffers[0].preallocated);
    let stream = Some(0);
    assert_eq!(kinds(&variant)[0], OpKind::Alloc { buffer: 0, stream });
    assert_eq!(
        kinds(&variant)[3..],
        [
            OpKind::Alloc {
                buffer: 0,
                stream: None
            },
            OpKind::Free {
                buffer: 0,
                stream: None
            }
        ]
    );
}

#[test]
fn cold_variants_run_once() {
    let text = "name = \"t\"\n[buffers.x]\nbytes = 8\n[[variant]]\nname = \"v\"\ncold = true\nsteps = [{ memset = \"x\" }]\n";
    let variant = plan_of(text, &[]).variants.remove(0);
    assert_eq!((variant.cold, variant.warmup, variant.repeat), (true, 0, 1));
}
