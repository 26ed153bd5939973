//! Sides made by hand.

use super::super::page::Options;
use super::*;
use activity::stats::INTERVAL_MIN;
use activity::{Batch, Def, Direction, Graph, Mode, RangeKind, What};
use proptest::prelude::*;
use trace::Trace;
use trace::testing::{Scene, count_made, h200, place};

/// Four copies and kernels of lengths that do not repeat, the kernel of each after its copy or beside the next;
/// all of it `slow` per cent longer.
fn trace(slow: i64, is_overlapped: bool) -> Trace {
    let mut scene = Scene::new();
    scene.device(h200());
    let mut at = 1_000;
    for i in 0..4_i64 {
        let of = |ns: i64| ns * (100 + slow) / 100;
        let (copy, kernel) = (of(1_000 + 13 * i), of(900 + 7 * i));
        scene.copy(Direction::H2D, 1, 4096 + i as u64, at, at + copy);
        scene.kernel(&format!("k{i}"), 2, at + copy, at + copy + kernel);
        at += copy + if is_overlapped { 0 } else { kernel + 100 };
    }
    scene.trace()
}

/// 300 of 8,020 ns, on both sides: no part of a difference.
#[test]
fn idle_time_that_is_alike_on_both_sides_is_said_all_the_same() {
    let side = || [ComparedRun::of(&trace(0, false))];
    let answer = CompareReport::new(&side(), &side(), None).expect("an answer");
    let words = [0, 1].map(|side| answer.rows[0].in_words(side));
    assert_eq!(
        words,
        ["8.02 µs · idle 4 % · overlap 0 %"; 2].map(str::to_owned)
    );
}

fn as_markdown() -> Options {
    Options {
        markdown: true,
        ..Options::default()
    }
}

#[test]
fn what_a_report_and_a_comparison_rest_on_is_made_once() {
    let facts = ["graph", "calls", "causes", "steps", "figures", "ranks"];
    let trace = trace(0, true);
    let before = facts.map(count_made);
    let run = ComparedRun::of(&trace);
    let made = facts.map(count_made);
    // Of one process on one device there is no job to be matched.
    for (fact, (made, before)) in facts.into_iter().zip(made.into_iter().zip(before)) {
        assert_eq!(made - before, usize::from(fact != "ranks"), "{fact}");
    }
    assert_eq!(run.report.devices[0].ops, 8);
}

fn runs(slow: &[i64]) -> Vec<ComparedRun> {
    slow.iter()
        .map(|&s| ComparedRun::of(&trace(s, false)))
        .collect()
}

fn sums(answer: &CompareReport) {
    for row in &answer.rows {
        let change: Ns = row.why.iter().map(|p| p.change_ns).sum();
        assert!(
            row.why
                .iter()
                .all(|p| p.change_ns == p.b_ns - p.a_ns && p.change_ns != 0)
        );
        if row.a.count == 1 && row.b.count == 1 {
            assert_eq!(
                change,
                (row.b.median_ns - row.a.median_ns) as Ns,
                "{:?}",
                row.why
            );
        }
    }
}

/// The figures by hand.
#[test]
fn one_run_a_side_is_compared_and_decides_little() {
    let (a, b) = (
        ComparedRun::of(&trace(0, false)),
        ComparedRun::of(&trace(0, true)),
    );
    let answer = CompareReport::new(&[a], &[b], Some(0.05)).expect("an answer");
    sums(&answer);
    let row = &answer.rows[0];
    // Copies 4,078 and kernels 3,642 and three pauses, against the copies and the last kernel.
    assert_eq!((row.a.median_ns, row.b.median_ns), (8_020.0, 4_999.0));
    assert!(
        answer
            .text
            .starts_with("B is 1.60× faster: overlap 0 → 67 %, idle 300 → 0 ns"),
        "{}",
        answer.text
    );
    assert_eq!(
        (answer.samples, row.shown, row.need),
        ("one run", None, Some(4))
    );
    let fail_over = answer.fail_over.as_ref().expect("was asked for");
    // It is faster by more than runs differ by: no number of runs more would make it a regression.
    assert!(fail_over.decided && fail_over.text.starts_with("no regression"));
    assert_eq!(answer.warnings, [] as [String; 0]);
    let text = answer.text(&Options::default());
    assert!(text.starts_with(&answer.text), "{text}");
    // What stays on a low screen names both, and what one run a side cannot tell.
    let short = text.split("In short").nth(1).expect("its end");
    for told in ["\n  A  ", "\n  B  ", "how much runs differ is not known"] {
        assert!(short.contains(told), "{short}");
    }
    assert!(
        text.contains("4 samples a side or more tell whether"),
        "{text}"
    );
    // Of 7,720 ns of copies and kernels 2,721 are at once, which its row takes off: it has one sign in both tables.
    let part = text.lines().find(|it| it.contains("less overlap"));
    let part: Vec<&str> = part.expect("a row").split_whitespace().collect();
    assert_eq!(
        part[2..],
        ["0", "ns", "2.72", "µs", "-2.72", "µs"],
        "{text}"
    );
    // It stands at the end once more: of 24 lines these are what is seen.
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len() - 5..].join(" ");
    assert!(end.contains("B is 1.60× faster"), "{text}");
    // Turned round it is slower by more than runs differ by.
    let (a, b) = (
        ComparedRun::of(&trace(0, true)),
        ComparedRun::of(&trace(0, false)),
    );
    let answer = CompareReport::new(&[a], &[b], Some(0.05)).expect("an answer");
    assert!(
        answer.text.starts_with("B is 1.60× slower"),
        "{}",
        answer.text
    );
    assert!(answer.has_regressed());
}

#[test]
fn a_graph_that_was_recorded_as_a_whole_is_no_memset() {
    let graphs = |length: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        for i in 0..20 {
            let graph = What::Graph(Graph {
                place: place(1),
                graph: 7,
            });
            scene.push(i * 200_000, i * 200_000 + length, 0, graph);
        }
        ComparedRun::of(&scene.trace())
    };
    let answer =
        CompareReport::new(&[graphs(100_000)], &[graphs(140_000)], None).expect("an answer");
    let changed = answer.rows[0].changed.iter();
    let changed: Vec<_> = changed.map(|it| (it.name.as_str(), it.change_ns)).collect();
    assert_eq!(changed, [("graph", 20 * 40_000)]);
}

#[test]
fn what_was_not_recorded_is_not_idle() {
    let gap = |is_off: bool| {
        let mut scene = Scene::new();
        scene.device(h200());
        scene.kernel("k", 1, 0, 1_000);
        scene.kernel("k", 1, 1_500, 2_000);
        scene.kernel("k", 1, 9_000, 10_000);
        let mut trace = scene.trace();
        let mode = |from, is_recorded| {
            Def::Mode(Mode {
                from,
                recording: is_recorded,
                waits: false,
            })
        };
        if is_off {
            trace.apply(Batch {
                defs: vec![mode(0, true), mode(2_500, false), mode(8_000, true)],
                ..Batch::default()
            });
        }
        ComparedRun::of(&trace)
    };
    let answer = CompareReport::new(&[gap(false)], &[gap(true)], None).expect("an answer");
    sums(&answer);
    // By hand: of 10,000 kernels take 2,500 and two gaps 500 and 7,000, of which the second holds the pause.
    let changes: Vec<(bool, Ns, Ns)> = answer.rows[0]
        .why
        .iter()
        .map(|p| (p.cause == PartKind::NotRecorded, p.a_ns, p.b_ns))
        .collect();
    assert!(changes.contains(&(true, 0, 7_000)), "{changes:?}");
    let idle: Ns = changes.iter().filter(|c| !c.0).map(|c| c.1 - c.2).sum();
    assert_eq!(idle, 7_000);
}

#[test]
fn several_runs_a_side_decide() {
    let a = runs(&[0, 1, 2, 0, 1, 2]);
    let slower = runs(&[12, 13, 14, 12, 13, 14]);
    let answer = CompareReport::new(&a, &slower, Some(0.05)).expect("an answer");
    sums(&answer);
    assert!(
        answer.text.starts_with("B is 1.11× slower (p=0.002"),
        "{}",
        answer.text
    );
    assert!(answer.has_regressed());
    assert_eq!(answer.rows[0].shown, Some(true));
    // It is 11.4 % slower, and of 36 ratios the sixth is 1.1038: (0.0104 / 0.0041)² times 6 runs would tell that from 11 %.
    let answer = CompareReport::new(&a, &slower, Some(0.11)).expect("an answer");
    let fail_over = answer.fail_over.as_ref().expect("was asked for");
    assert!(fail_over.need == Some(38) && !answer.has_regressed());
    // Faster is no regression, and five runs decide nothing.
    let answer = CompareReport::new(&slower, &a, Some(0.05)).expect("an answer");
    assert!(answer.text.contains("faster") && !answer.has_regressed());
    let answer =
        CompareReport::new(&a[..INTERVAL_MIN - 1], &slower, Some(0.05)).expect("an answer");
    assert!(!answer.has_regressed());
    assert!(!answer.fail_over.expect("was asked for").decided);
    let markdown = CompareReport::new(&a, &slower, Some(0.05))
        .expect("an answer")
        .text(&as_markdown());
    assert!(markdown.starts_with("**B is 1.11× slower"), "{markdown}");
    assert!(
        markdown.contains("regression: makespan slower by more than 5 %"),
        "{markdown}"
    );
    assert!(markdown.contains("| makespan |"), "{markdown}");
}

#[test]
fn names_speak_no_markdown() {
    let name = r"[l](http://evil) @torvalds #1 ![i](//www.e) \| <b> `c` __d__ ~e~ $f$ a@b.c";
    let run = |length| {
        let mut scene = Scene::new();
        for at in 0..6 {
            scene.kernel("k", 1, at * 10_000, at * 10_000 + length);
        }
        let mut trace = scene.trace();
        trace.source.title = name.to_owned();
        ComparedRun::of(&trace)
    };
    let answer = CompareReport::new(&[run(1_000)], &[run(4_000)], None).expect("an answer");
    let markdown = answer.text(&as_markdown());
    // By the rules of GitHub Flavored Markdown, by hand; mentions and links have a character of no width in them.
    let shown = r"\[l\](http:&#8203;//evil) \@&#8203;torvalds \#&#8203;1 \!\[i\](//www&#8203;.e) \\\| &lt;b> \`c\` \_\_d\_\_ \~e\~ \$f\$ a\@&#8203;b.c";
    assert!(markdown.contains(shown), "{markdown}");
}

/// A run of a scenario: `slow` with these lengths and `fast` with those.
fn variants(slow: &[i64], fast: &[i64]) -> ComparedRun {
    let mut scene = Scene::new();
    let mut at = 0;
    for (name, lengths) in [("slow", slow), ("fast", fast)] {
        for (i, length) in lengths.iter().enumerate() {
            at += 10_000;
            scene.range(RangeKind::Repeat, name, i as u32, at, at + 9_000);
            scene.kernel("k", 1, at + 100, at + 100 + length);
        }
    }
    ComparedRun::of(&scene.trace())
}

#[test]
fn variants_are_compared_each_with_itself() {
    let a = variants(
        &[1000, 1010, 1020, 1030, 1040, 1050],
        &[500, 501, 502, 503, 504, 505],
    );
    let b = variants(
        &[2000, 2020, 2040, 2060, 2080, 2100],
        &[500, 501, 502, 503, 504, 505],
    );
    let answer = CompareReport::new(std::slice::from_ref(&a), &[b], Some(0.05)).expect("an answer");
    sums(&answer);
    let of: Vec<&str> = answer.rows.iter().map(|r| r.of.as_str()).collect();
    assert_eq!((of, answer.samples), (vec!["slow", "fast"], "repeats"));
    assert!(
        answer
            .text
            .starts_with("B is 2.00× slower in slow (p=0.002"),
        "{}",
        answer.text
    );
    assert!(
        answer.text.ends_with("no difference shown in 1 more"),
        "{}",
        answer.text
    );
    // sqrt(2 * 1)
    let mean = answer.geometric_mean.expect("two rows");
    assert!((mean - 2.0_f64.sqrt()).abs() < 1e-9);
    // Repeats of one run: of 2.00× it is decided, of what is as fast it is not.
    assert!(answer.has_regressed() && !answer.fail_over.as_ref().expect("was asked for").decided);
    let less = variants(&[1000, 1010], &[]);
    let answer = CompareReport::new(&[a], &[less], None).expect("an answer");
    assert_eq!(answer.warnings, ["variant fast is missing in some runs"]);
}

#[test]
fn what_is_not_the_same_is_said() {
    let of = |name: &str, kernel: &str, count: i64| {
        let mut scene = Scene::new();
        scene.device(activity::DeviceInfo {
            name: name.to_owned(),
            ..h200()
        });
        for i in 0..count {
            scene.kernel(kernel, 1, 1_000 * i, 1_000 * i + 500 + 100 * (i % 3));
        }
        ComparedRun::of(&scene.trace())
    };
    let (a, b) = (
        of("NVIDIA H200", "gemm", 3),
        of("NVIDIA A100", "other<1>", 4),
    );
    let answer = CompareReport::new(&[a], &[b], None).expect("an answer");
    let expected = [
        "A ran on NVIDIA H200, B on NVIDIA A100",
        "makespan: 3 operations in A, 4 in B",
        "makespan: 100 % of the time in A is in operations that the other side lacks, such as gemm",
        "makespan: 100 % of the time in B is in operations that the other side lacks, such as other<1>",
    ];
    assert_eq!(answer.warnings, expected);
    // A baseline grows over days, and machines change: any of its runs may be the other one.
    let same = || of("NVIDIA H200", "gemm", 3);
    let mut lossy = of("NVIDIA A100", "gemm", 3);
    lossy.report.health.source.lost = 7;
    lossy.is_cut = true;
    let answer = CompareReport::new(&[same(), same(), lossy], &[same()], None).expect("an answer");
    let expected = [
        "A ran on NVIDIA A100 or NVIDIA H200, B on NVIDIA H200",
        "A is incomplete: 7 records lost",
        "A has 3 runs, of which 1 failed or were cut off",
    ];
    assert_eq!(answer.warnings, expected);
    // None of a baseline's runs may be fit to be compared.
    assert!(CompareReport::new(&[], &[variants(&[1], &[1])], None).is_none());
    assert!(
        CompareReport::new(
            &[ComparedRun::of(&Trace::default())],
            &[of("", "k", 1)],
            None
        )
        .is_none()
    );
}

#[test]
fn the_fields_of_before_are_still_there() {
    let answer = CompareReport::new(&runs(&[0]), &runs(&[5]), Some(0.1)).expect("an answer");
    let json: serde_json::Value =
        serde_json::from_str(&answer.json().expect("JSON")).expect("valid");
    for field in [
        "a",
        "b",
        "operations",
        "groups",
        "text",
        "samples",
        "rows",
        "warnings",
        "fail_over",
    ] {
        assert!(json.get(field).is_some(), "{field} is missing");
    }
    assert!(json["rows"][0]["why"][0]["change_ns"].is_i64());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A side against itself shows nothing, whatever it is.
    #[test]
    fn a_side_against_itself_shows_nothing(slow in prop::collection::vec(0i64..60, 1..9)) {
        let a = runs(&slow);
        let answer = CompareReport::new(&a, &a, Some(0.0)).expect("an answer");
        prop_assert!(answer.text.starts_with("no difference shown"), "{}", answer.text);
        prop_assert!(!answer.has_regressed());
        prop_assert!(answer.warnings.is_empty());
        for row in &answer.rows {
            prop_assert!(row.why.is_empty() && row.changed.is_empty());
            prop_assert!(row.shown != Some(true));
        }
    }
}

/// Six steps of so many microseconds each, after each other; the last is not seen to its end.
fn steps(lengths: [i64; 6]) -> ComparedRun {
    let mut scene = Scene::new();
    let mut at = 1_000;
    for length in lengths {
        for (i, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let start = at + i as i64 * length * 250;
            scene.kernel(name, 1, start, start + 200);
        }
        at += length * 1_000;
    }
    ComparedRun::of(&scene.trace())
}

#[test]
fn of_one_run_a_side_a_step_is_compared_and_only_what_is_far_slower_fails() {
    let (a, b) = (
        steps([100, 102, 98, 100, 100, 100]),
        steps([138, 140, 136, 138, 138, 138]),
    );
    let of = |a: &ComparedRun, b: &ComparedRun, limit| {
        CompareReport::new(
            std::slice::from_ref(a),
            std::slice::from_ref(b),
            Some(limit),
        )
        .expect("an answer")
    };
    let slower = of(&a, &b, 0.05);
    assert!(
        slower
            .text
            .starts_with("B is 38 % slower per step (100.00 → 138.00 µs), one run a side, single steps range from 33 % slower to 43 % slower"),
        "{}",
        slower.text
    );
    assert!(slower.has_regressed());
    // 38 % is not beyond 19 % and the 20 % that runs differ by.
    let undecided = of(&a, &b, 0.19);
    assert!(!undecided.has_regressed());
    let text = undecided.fail_over.expect("was asked for").text;
    assert_eq!(
        text,
        "undecided: record 6 runs a side, which may decide (A has 1, B 1)"
    );
    let faster = of(&b, &a, 0.05);
    assert!(
        faster
            .text
            .starts_with("B is 28 % faster per step (138.00 → 100.00 µs)"),
        "{}",
        faster.text
    );
    assert!(!faster.has_regressed());
}

/// So many steps of 100 us, of so many kernels each, that begin with this name.
fn steps_of(count: i64, kernels: i64, name: &str) -> ComparedRun {
    let mut scene = Scene::new();
    for i in 0..count * kernels {
        let at = i * 100_000 / kernels;
        scene.kernel(&format!("{name}{}", i % kernels), 1, at, at + 200);
    }
    ComparedRun::of(&scene.trace())
}

#[test]
fn as_many_steps_are_compared_however_many_kernels_they_have() {
    let a = steps_of(20, 12, "k");
    let told = |b| CompareReport::new(std::slice::from_ref(&a), &[b], None).expect("an answer");
    // A cure takes two thirds of the launches away.
    let cured = told(steps_of(20, 4, "k"));
    assert!(cured.text.contains("per step (100.00"), "{}", cured.text);
    // Fewer steps of other kernels are another program's: neither is faster.
    let other = told(steps_of(14, 4, "l")).text;
    assert_eq!(
        other,
        "A and B run different kernels: steps take 100 µs and 100 µs, runs 1.99 ms and 1.38 ms"
    );
}

#[test]
fn a_whole_run_that_says_something_else_stands_beside_the_steps() {
    let mut scene = Scene::new();
    // Half as long as all steps before them.
    scene.kernel("load", 1, 0, 400);
    for i in 0..24_i64 {
        let at = 300_000 + i * 25_000;
        scene.kernel(["a", "b", "c", "d"][i as usize % 4], 1, at, at + 200);
    }
    let late = ComparedRun::of(&scene.trace());
    let answer = CompareReport::new(&[steps([100; 6])], &[late], None).expect("an answer");
    assert!(
        answer.text.contains("; the whole run is 5")
            && answer.text.contains("per step (100.00 → 100.00"),
        "{}",
        answer.text
    );
}

/// The figures by hand, from `trace`: makespans of 8,020 ns and so many per cent more, each of its parts cut to a nanosecond.
#[test]
fn what_more_runs_would_decide_is_undecided_and_how_many_is_said() {
    let of = |a: &[i64], b: &[i64], limit| {
        let answer = CompareReport::new(&runs(a), &runs(b), Some(limit)).expect("an answer");
        let fail_over = answer.fail_over.expect("was asked for");
        (fail_over.text, fail_over.need)
    };
    let a = [0, 2, 4, 6, 8, 10];
    // Of 36 ratios the sixth from either end: 0.9735 to 1.0834 around 1.0275. The end has to come (0.0559 / 0.0225)² = 6.16 times
    // nearer: 37 runs for 6.
    let noisy = of(&a, &[3, 5, 7, 9, 11, 13], 0.05);
    let said = "undecided: record 37 runs a side, which may decide (A has 6, B 6)";
    assert_eq!(noisy, (said.to_owned(), Some(37)));
    // From 1.0546 on: all of it is beyond 5 %.
    let slower = of(&a, &[12, 14, 16, 18, 20, 22], 0.05);
    let said = "regression: makespan slower by more than 5 %";
    assert_eq!(slower, (said.to_owned(), None));
    // It ends at 1.0556, before 10 %.
    assert_eq!(of(&a, &[1, 2, 4, 6, 8, 10], 0.1).1, None);
}

/// A's runs lie 1.9 % apart, so of one run of B 8.6 % more than their median is beyond 5 %, 1.9 % more is within, and 4.7 % is
/// either.
#[test]
fn a_baselines_own_runs_say_what_one_run_more_can_show() {
    let of = |slow| {
        let answer = CompareReport::new(&runs(&[0, 1, 2, 0, 1, 2]), &runs(&[slow]), Some(0.05));
        let answer = answer.expect("an answer");
        let fail_over = answer.fail_over.as_ref().expect("was asked for");
        (answer.has_regressed(), fail_over.need)
    };
    assert_eq!(of(10), (true, None));
    assert_eq!(of(6), (false, Some(6)));
    assert_eq!(of(3), (false, None));
}

#[test]
fn beside_several_runs_one_run_is_one_sample_whatever_is_repeated_in_it() {
    let a: Vec<ComparedRun> = (0..6).map(|i| steps([100 + i; 6])).collect();
    let answer = CompareReport::new(&a, &[steps([138; 6])], None).expect("an answer");
    assert_eq!(
        (answer.samples, answer.rows[0].of.as_str()),
        ("runs", "step")
    );
    assert_eq!((answer.rows[0].a.count, answer.rows[0].b.count), (6, 1));
}

#[test]
fn markdown_fits_a_comment_however_long_names_are() {
    let run = |length| {
        let mut scene = Scene::new();
        scene.kernel("k", 1, 0, length);
        let mut trace = scene.trace();
        trace.source.title = "k".repeat(70_000);
        ComparedRun::of(&trace)
    };
    let answer = CompareReport::new(&[run(1_000)], &[run(4_000)], None).expect("an answer");
    let markdown = answer.text(&as_markdown());
    assert!(markdown.len() < 65_536, "{}", markdown.len());
    assert!(markdown.starts_with("**B is 4.00"), "{markdown:.40}");
    assert!(markdown.ends_with("### Figures\n\n\n… the rest would be too long for a comment.\n"));
}
