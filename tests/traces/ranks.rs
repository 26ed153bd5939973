//! Jobs of several ranks: what was put into them is found again.

use crate::common::job::{Clock, Job, Truth};
use activity::feed::{Message, Outcome};
use activity::{
    Activity, Batch, Frame, Kernel, Place, SampleDef, SampledThread, Samples, Sampling, Span,
    StackSample, What,
};
use causes::Causes;
use causes::graph::Graph;
use cuptop::report::KnownGpus;
use cuptop::report::Report;
use cuptop::tui::action::Action;
use cuptop::tui::app::App;
use cuptop::tui::{Theme, render};
use figures::steps::{self, Steps};
use jobs::{JobAnalysis, MatchedCollectives, Pattern, Reason, Stretch};
use ratatui::layout::Size;
use trace::{SourceInfo, Trace};

fn ranks_of(trace: &Trace, causes: Option<&Causes<'_>>, steps: &[Steps]) -> Option<JobAnalysis> {
    Some(MatchedCollectives::of(trace)?.judge(trace, causes, steps))
}

fn found(trace: &Trace) -> JobAnalysis {
    let graph = Graph::new(trace);
    let causes = Causes::new(trace, &graph);
    ranks_of(trace, Some(&causes), &steps::find(trace, None)).expect("a job")
}

/// The same once the clocks are set, as the program sets them before it asks.
fn late_of(mut trace: Trace) -> JobAnalysis {
    jobs::align_clocks(&mut trace);
    found(&trace)
}

/// By how much the aligned clocks of two ranks differ at most at the begin, in the middle and at the end, ns.
fn apart(job: &Job, ranks: &JobAnalysis, end: i64) -> i64 {
    let clock = |rank: usize, time: i64| ranks.aligned(rank, (job.clock)(rank).read(time));
    let at = |time: i64| {
        let all: Vec<i64> = (0..job.ranks).map(|rank| clock(rank, time)).collect();
        all.iter().max().expect("ranks") - all.iter().min().expect("ranks")
    };
    [0, end / 2, end].into_iter().map(at).max().expect("times")
}

#[test]
fn a_clock_that_is_off_and_drifts_is_set_right() {
    let clocks: [fn(usize) -> Clock; 3] = [
        |rank| Clock {
            offset: rank as i64 * 1_700_000,
            drift: rank as f64 * 20e-6,
        },
        |rank| Clock {
            offset: rank as i64 * -7_200_000_000_000,
            drift: rank as f64 * -35e-6,
        },
        |_| Clock::default(),
    ];
    for clock in clocks {
        let job = Job {
            ranks: 3,
            steps: 60,
            clock,
            // Ordinary unevenness, without which hours could not be told from steps.
            idle: |rank, step| ((rank * 31 + step * step * 7_919) % 977) as i64 * 500,
            missing: |rank| rank * 3,
            ..Job::default()
        };
        let (trace, truth) = job.make();
        let ranks = found(&trace);
        assert!(
            apart(&job, &ranks, truth.end) < 20_000,
            "{:?}",
            ranks.clocks
        );
        let residual = ranks.clocks.residual.expect("aligned");
        // Exits differ by less than 15 us.
        assert!(residual.median_ns < 10_000.0 && residual.p95_ns < 16_000.0);
        assert_eq!(residual.count, 60 * 3 - 3 * 3);
    }
}

/// A report speaks of the same time on every rank, however far its clock is off. One that took the ranks' times as they are would
/// look at hours.
#[test]
fn findings_do_not_depend_on_how_far_clocks_are_off() {
    let of = |clock: fn(usize) -> Clock| {
        let job = Job {
            steps: 40,
            idle: |rank, step| 1_500_000 + ((rank * 31 + step * step * 7_919) % 977) as i64 * 500,
            has_host: true,
            clock,
            ..Job::default()
        };
        let report = Report::new(&job.make().0, None, KnownGpus::default());
        let found = report.findings.iter();
        let found = found.map(|it| (it.rule.name(), it.title.clone(), it.bound_ns));
        let spans = report.verdicts.iter().map(|it| (it.bound_by, it.span_ns));
        (found.collect::<Vec<_>>(), spans.collect::<Vec<_>>())
    };
    let even = of(|_| Clock::default());
    assert!(!even.0.is_empty());
    // Two ranks' steps take 40 times some 5 ms.
    assert!(
        (150_000_000..250_000_000).contains(&even.1[0].1),
        "{even:?}"
    );
    let hours = of(|rank| Clock {
        offset: rank as i64 * -7_200_000_000_000,
        drift: 0.0,
    });
    assert_eq!(hours, even);
}

/// Several collectives a step: of the times between them most are alike in all steps, and the one that tells the steps apart
/// must not drown in them. Clocks are 38 ms apart, nine steps.
#[test]
fn a_step_of_many_collectives_is_told_from_its_neighbours() {
    let job = Job {
        ranks: 8,
        steps: 120,
        kernels: 10,
        collectives: 5,
        work: 100_000,
        idle: |rank, step| ((rank * 31 + step * step * 7_919) % 977) as i64 * 500,
        clock: |rank| Clock {
            offset: rank as i64 * 37_919_173,
            drift: rank as f64 * 2e-6,
        },
        ..Job::default()
    };
    let (trace, truth) = job.make();
    let apart = apart(&job, &found(&trace), truth.end);
    assert!(apart < 20_000, "{apart} ns");
}

#[test]
fn transfers_and_waits_are_those_that_were_made() {
    let job = Job {
        ranks: 4,
        idle: |rank, _| if rank == 2 { 2_000_000 } else { 0 },
        ..Job::default()
    };
    let (trace, truth) = job.make();
    let ranks = found(&trace);
    for (rank, sums) in ranks.split.sums.iter().enumerate() {
        assert_eq!(sums.judged, 30 * 3);
        // A transfer ends up to 15 us late on each rank.
        let slack = 90 * 15_000;
        assert!((sums.transfer_ns - 90 * 250_000).abs() <= slack, "{sums:?}");
        assert!(
            (sums.wait_ns - truth.waits[rank]).abs() <= 2 * slack,
            "{sums:?}"
        );
        // Nothing else runs meanwhile.
        assert_eq!(sums.exposed_ns, sums.wait_ns);
    }
    // Within a step ranks come up to 30 us apart, which now and then is more than their ends do.
    let last = |rank: usize| ranks.split.sums[rank].last_arrivals;
    assert!((30..40).contains(&last(2)) && last(0) + last(1) + last(3) < 20);
    // What a device does is what it was: waiting is busy there.
    let report = Report::new(&trace, None, KnownGpus::default());
    assert_eq!(report.devices.len(), 4);
    let made: i64 = truth.steps.iter().sum();
    for (rank, device) in report.devices.iter().enumerate() {
        assert!(device.span_ns <= made);
        // Only the late one idles: the others wait in a kernel.
        assert_eq!(device.busy_ns * 10 > made * 9, rank != 2, "{device:?}");
    }
}

/// An exchange among all runs as a kernel of sends and receives, of which nobody could tell who waits in it: what the program calls
/// it does. Two ranks of eight: the others may have been last.
#[test]
fn an_exchange_is_told_from_sends_and_ranks_that_are_not_here_are_said() {
    let job = |is_exchange, has_host| Job {
        idle: |rank, _| if rank == 1 { 2_000_000 } else { 0 },
        absent: 6,
        is_exchange,
        has_host,
        ..Job::default()
    };
    let (trace, truth) = job(true, true).make();
    let report = Report::new(&trace, None, KnownGpus::default());
    let sums: Vec<_> = report.ranks.iter().map(|it| it.wait_ns).collect();
    for (made, told) in truth.waits.iter().zip(&sums) {
        // A transfer ends up to 15 us late on each rank.
        assert!((told - made).abs() <= 2 * 90 * 15_000, "{made} {told}");
    }
    assert_eq!(
        report.job.as_ref().expect("a job").rates[0].operation,
        "all-to-all"
    );
    let late = &report.job.as_ref().expect("a job").late;
    assert_eq!(late.first().and_then(|it| it.rank), Some(1), "{late:?}");
    let text = cuptop::report::text::render(&report, &cuptop::report::text::Options::default());
    assert!(
        text.contains("6 of the job's 8 ranks are not recorded"),
        "{text}"
    );
    // Without host calls nothing says so: they are sends.
    let report = Report::new(&job(true, false).make().0, None, KnownGpus::default());
    assert!(report.job.is_none(), "{:?}", report.job);
    let all = Report::new(&Job::default().make().0, None, KnownGpus::default());
    assert!(
        !cuptop::report::text::render(&all, &cuptop::report::text::Options::default())
            .contains("not here")
    );
}

#[test]
fn a_rank_that_is_late_on_every_third_step_is_told_with_its_cause_and_its_cost() {
    let late = |rank: usize, step: usize| match (rank, step % 3) {
        (1, 1) => 3_000_000,
        _ => 50_000,
    };
    let job = Job {
        steps: 36,
        idle: late,
        has_host: true,
        clock: |rank| Clock {
            offset: rank as i64 * -900_000,
            drift: 0.0,
        },
        ..Job::default()
    };
    let (trace, truth) = job.make();
    let ranks = late_of(trace);
    assert_eq!(ranks.late.len(), 1, "{:?}", ranks.late);
    let lateness = &ranks.late[0];
    assert_eq!(lateness.rank, 1);
    let Pattern::ByTurns { late, of } = lateness.pattern else {
        panic!("{lateness:?}");
    };
    // Of 36 steps the last has no end, and leading ones may be warm-up.
    assert!(
        (of - 2) / 3 <= late && late <= of / 3 + 1 && of >= 30,
        "{late} of {of}"
    );
    // It idles 2.95 ms longer than the other, give or take the kernels' unevenness (15 us each, eight a step), and each step that was made so is named.
    assert_eq!(lateness.steps.len(), late);
    for step in &lateness.steps {
        assert!((step.by - 2_950_000).abs() < 100_000, "{step:?}");
    }
    let turns: Vec<usize> = lateness.steps.iter().map(|it| it.step % 3).collect();
    assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
    let Reason::Idle(cause) = &lateness.reason else {
        panic!("{lateness:?}");
    };
    assert_eq!(
        (cause.cause.id(), cause.culprit.as_deref()),
        ("host work", Some("next(loader)"))
    );
    // The cure: the same job without it.
    let cured = Job {
        idle: |_, _| 50_000,
        has_host: true,
        steps: 36,
        ..Job::default()
    };
    let (before, after) = (mean(&truth.steps), mean(&cured.make().1.steps));
    let saving = lateness.saving.expect("steps");
    let predicted = (saving.now_ns - saving.without_ns) as f64;
    assert!(
        (predicted / (before - after) - 1.0).abs() < 0.1,
        "{saving:?} {before} {after}"
    );
    // And without it nobody is told of.
    assert!(found(&cured.make().0).late.is_empty());
}

/// What a step takes on average.
fn mean(steps: &[i64]) -> f64 {
    steps.iter().sum::<i64>() as f64 / steps.len() as f64
}

/// Looks at the thread that launches, a millisecond apart, which is always at the same line.
fn seen_at(process: u32, file: &str, line: u32, times: std::ops::Range<i64>) -> Batch {
    let frame = Frame {
        file: file.to_owned(),
        function: "main".to_owned(),
        line,
    };
    let look = |time| StackSample {
        time,
        changed: vec![SampledThread {
            thread: 1,
            stack: 1,
            is_running: true,
        }],
    };
    Batch {
        process,
        samples: Some(Samples {
            series: 0,
            defs: vec![
                SampleDef::Frame { id: 1, frame },
                SampleDef::Stack {
                    id: 1,
                    caller: 0,
                    frame: 1,
                },
            ],
            looks: times.step_by(1_000_000).map(look).collect(),
            sampling: Sampling {
                hz: 1_000,
                ..Sampling::default()
            },
        }),
        ..Batch::default()
    }
}

/// Rank 1 is late by 3 ms on every step, 36 of them: some 108 looks of one a millisecond fall into it.
#[test]
fn the_late_ranks_line_is_told() {
    let job = Job {
        steps: 36,
        idle: |rank, _| if rank == 1 { 3_000_000 } else { 50_000 },
        has_host: true,
        ..Job::default()
    };
    let (mut trace, truth) = job.make();
    for (rank, line) in [(0, 12), (1, 88)] {
        let clock = (job.clock)(rank as usize);
        let times = clock.read(0)..clock.read(truth.end);
        trace.apply(seen_at(rank, "/home/me/train.py", line, times));
    }
    let report = Report::new(&trace, None, KnownGpus::default());
    let late = &report.job.as_ref().expect("a job").late;
    assert_eq!(late.len(), 1);
    let line = late[0].line.as_ref().expect("a line");
    assert_eq!(line.place, "train.py:88");
    assert!(
        line.samples == line.of && (90..=110).contains(&line.of),
        "{line:?}"
    );
    let reason = late[0].reason.as_ref().expect("a reason");
    assert_eq!(reason, "its CPU is at train.py:88");
    assert!(late[0].text.contains(reason), "{}", late[0].text);
}

#[test]
fn what_lateness_costs_is_what_the_job_takes_without_it() {
    // Idle on every step, on every third, slower kernels; collectives that block, that hide behind kernels, that are
    // most of a step, and steps that are shorter than what a rank is late by.
    let late = |rank: usize, _: usize| if rank == 1 { 2_000_000 } else { 0 };
    let third = |rank: usize, step: usize| {
        if rank == 1 && step % 3 == 1 {
            3_000_000
        } else {
            0
        }
    };
    let none = |_: usize, _: usize| 0;
    let even = |_: usize| 1.0;
    let slow = |rank: usize| if rank == 1 { 1.4 } else { 1.0 };
    type Idle = fn(usize, usize) -> i64;
    type Slow = fn(usize) -> f64;
    let mistakes: [(&str, Idle, Slow); 3] = [
        ("every step", late, even),
        ("every third", third, even),
        ("slow kernels", none, slow),
    ];
    let kinds = [
        ("blocking", false, 250_000, 400_000),
        ("hidden", true, 250_000, 400_000),
        ("most of a step", true, 2_000_000, 400_000),
        ("short steps", false, 250_000, 100_000),
    ];
    for (kind, is_overlapped, transfer, work) in kinds {
        for (mistake, idle, slow) in mistakes {
            let job = |idle: Idle, slow: Slow| Job {
                ranks: 3,
                steps: 36,
                kernels: 9,
                is_overlapped,
                transfer,
                work,
                idle,
                slow,
                clock: |rank| Clock {
                    offset: rank as i64 * 400_000,
                    drift: 0.0,
                },
                ..Job::default()
            };
            let (trace, truth) = job(idle, slow).make();
            let cured = job(none, even).make();
            let ranks = late_of(trace);
            let [lateness] = ranks.late.as_slice() else {
                panic!("{kind}, {mistake}: {:?}", ranks.late);
            };
            assert_eq!(lateness.rank, 1);
            let saving = lateness.saving.expect("the ranks run the same kernels");
            let predicted = (saving.now_ns - saving.without_ns) as f64;
            let made = mean(&truth.steps) - mean(&cured.1.steps);
            assert!(
                (predicted / made - 1.0).abs() < 0.1,
                "{kind}, {mistake}: {predicted} of {made}, {lateness:?}"
            );
            let is_slow = matches!(lateness.reason, Reason::SlowKernels(_));
            assert_eq!(
                is_slow,
                mistake == "slow kernels",
                "{kind}, {mistake}: {:?}",
                lateness.reason
            );
            assert!(late_of(cured.0).late.is_empty(), "{kind}");
        }
    }
}

/// Whether a text tells by how much a rank came later than the last of the others on these steps, but for the first, as it was made: to
/// what two kernels differ by at most, 30 us.
fn is_late_by(text: &str, rank: usize, truth: &Truth, is_late: impl Fn(usize) -> bool) {
    let mut made: Vec<i64> = (1..truth.arrivals.len())
        .filter(|step| is_late(*step))
        .map(|step| {
            let all = &truth.arrivals[step];
            let others = (0..all.len()).filter(|it| *it != rank);
            all[rank] - others.map(|it| all[it]).max().expect("others")
        })
        .collect();
    made.sort_unstable();
    let made = made[made.len() / 2] as f64 / 1e6;
    let told = text
        .split(&format!("rank {rank}: "))
        .nth(1)
        .expect("a rank");
    let told: f64 = told
        .split(' ')
        .next()
        .and_then(|it| it.parse().ok())
        .expect("ms");
    assert!((told - made).abs() < 0.03, "{made}: {text}");
}

/// A program whose kernels show no steps: what lies between two collectives stands for them.
#[test]
fn without_steps_a_late_rank_is_told_by_its_collectives() {
    // Kernels that are all one fit those of another rank at several places.
    for is_alike in [false, true] {
        late_by_its_collectives(is_alike);
    }
}

fn late_by_its_collectives(is_alike: bool) {
    let job = |late: fn(usize, usize) -> i64| Job {
        steps: 36,
        collectives: 1,
        is_alike,
        idle: late,
        has_host: true,
        ..Job::default()
    };
    let (trace, truth) = job(|rank, step| i64::from(rank == 1 && step % 3 == 1) * 3_000_000).make();
    let cured = job(|_, _| 0).make().1;
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let ranks = ranks_of(&trace, Some(&causes), &[]).expect("a job");
    let [late] = ranks.late.as_slice() else {
        panic!("{:?}", ranks.late);
    };
    assert_eq!((late.rank, late.unit), (1, Stretch::Collective));
    // Of 35 stretches; what it was late by at the first collective of the 36 nothing is known of.
    assert_eq!(late.pattern, Pattern::ByTurns { late: 12, of: 35 });
    assert!(
        late.steps
            .iter()
            .all(|it| (it.by - 3_000_000).abs() < 100_000)
    );
    assert_eq!(late.steps.len(), 12, "{:?}", late.steps);
    assert!(
        matches!(&late.reason, Reason::Idle(cause) if cause.culprit.as_deref() == Some("next(loader)"))
    );
    let saving = late.saving.expect("the same kernels");
    let saved = (mean(&truth.steps) - mean(&cured.steps)) * 36.0;
    assert!(
        (saving.all_ns as f64 / saved - 1.0).abs() < 0.1,
        "{saving:?}, {saved}"
    );
    let text = ranks.sentence(late);
    assert!(text.contains(" ms late every third collective,"), "{text}");
    is_late_by(&text, 1, &truth, |step| step % 3 == 1);
}

#[test]
fn a_slow_gpu_is_told_by_its_kernels() {
    let job = Job {
        ranks: 8,
        slow: |rank| if rank == 5 { 1.3 } else { 1.0 },
        ..Job::default()
    };
    let ranks = found(&job.make().0);
    let [lateness] = ranks.late.as_slice() else {
        panic!("{:?}", ranks.late);
    };
    assert_eq!((lateness.rank, lateness.pattern), (5, Pattern::Steady));
    let Reason::SlowKernels(ratio) = lateness.reason else {
        panic!("{lateness:?}");
    };
    assert!((ratio - 1.3).abs() < 0.03, "{ratio}");
    // GPUs of one kind differ by some percent, and nothing cures that.
    let even = Job {
        ranks: 8,
        slow: |rank| if rank == 5 { 1.03 } else { 1.0 },
        ..Job::default()
    };
    let late = found(&even.make().0).late;
    assert!(late.is_empty(), "{late:?}");
}

/// Batches of another size make other kernels: then it is told whether they take longer, by sums alone.
#[test]
fn a_rank_with_more_to_do_is_told_by_what_its_kernels_take() {
    let job = |slow: fn(usize) -> f64, idle: fn(usize, usize) -> i64| Job {
        ranks: 3,
        slow,
        idle,
        is_other: |rank| rank == 2,
        has_host: true,
        ..Job::default()
    };
    let (larger, truth) = job(|rank| if rank == 2 { 1.25 } else { 1.0 }, |_, _| 20_000).make();
    let ranks = found(&larger);
    let [late] = ranks.late.as_slice() else {
        panic!("{:?}", ranks.late);
    };
    assert_eq!((late.rank, late.pattern), (2, Pattern::Steady));
    let Reason::MoreWork(more) = late.reason else {
        panic!("{late:?}");
    };
    let (mine, theirs) = (more.mine, more.theirs);
    // Eight kernels of 400 us a step, and of 500: each up to 15 us longer.
    assert!((3_200_000..3_320_000).contains(&theirs), "{theirs}");
    assert!((4_000_000..4_120_000).contains(&mine), "{mine}");
    let even = job(|_| 1.0, |_, _| 20_000).make().1;
    let made = mean(&truth.steps) - mean(&even.steps);
    let saving = late.saving.expect("a replay");
    let predicted = (saving.now_ns - saving.without_ns) as f64;
    assert!((predicted / made - 1.0).abs() < 0.1, "{saving:?}, {made}");
    let text = ranks.sentence(late);
    let told = ", its kernels take 4.06 ms, 3.26 ms on rank 1.";
    assert!(text.contains(told), "{text}");
    // As late, and not for its kernels.
    let idle = |rank: usize, _: usize| if rank == 2 { 800_000 } else { 20_000 };
    let (held_up, _) = job(|_| 1.0, idle).make();
    let ranks = found(&held_up);
    let [late] = ranks.late.as_slice() else {
        panic!("{:?}", ranks.late);
    };
    assert_eq!(late.rank, 2);
    assert!(
        matches!(&late.reason, Reason::Idle(cause) if cause.culprit.as_deref() == Some("next(loader)"))
    );
}

/// Who came late to the first collective of all keeps nobody waiting in the steps behind it.
#[test]
fn a_late_start_is_no_lateness_of_steps() {
    let job = Job {
        is_other: |rank| rank == 1,
        has_host: true,
        idle: |_, _| 20_000,
        ..Job::default()
    };
    let (mut batches, truth) = job.batches();
    let began = (job.clock)(0).read(0);
    for (batch, waits) in batches.iter_mut().zip([62_000_000, 2_000_000]) {
        let end = began - 40_000_000;
        let first = Activity {
            span: Span::new(end - waits, end),
            correlation: 1_000_000,
            what: What::Kernel(Kernel {
                place: Place {
                    device: 0,
                    context: 1,
                    stream: 20,
                },
                shape: 1,
                graph: 0,
                node: 0,
            }),
        };
        batch.items.insert(0, first);
    }
    let mut trace = Trace::new(SourceInfo::default());
    batches.into_iter().for_each(|batch| trace.apply(batch));
    let ranks = found(&trace);
    // It is there, and would be a third of all that the steps take.
    assert!(ranks.split.sums[0].exposed_ns > 59_000_000);
    assert!(truth.end < 3 * 60_000_000, "{}", truth.end);
    assert_eq!(ranks.late, []);
}

#[test]
fn programs_that_have_nothing_to_do_with_each_other_are_no_job() {
    let one = Job {
        ranks: 1,
        idle: |_, step| (step * 7919 % 613) as i64 * 1_000,
        ..Job::default()
    };
    let other = Job {
        ranks: 1,
        idle: |_, step| (step * 104_729 % 977) as i64 * 1_000,
        ..Job::default()
    };
    let mut trace = one.make().0;
    for mut batch in other.batches().0 {
        batch.process = 1;
        trace.apply(batch);
    }
    assert!(ranks_of(&trace, None, &[]).is_none());
    assert!(ranks_of(&one.make().0, None, &[]).is_none());
}

/// A machine has one clock: what ran there an hour later was another run of the same program, unless each says which rank of a job it
/// is. Two machines' clocks may be an hour apart.
#[test]
fn two_runs_of_a_program_on_one_machine_are_no_job() {
    let job = |host, clock| Job {
        host,
        clock,
        is_ranked: false,
        ..Job::default()
    };
    let later = |rank: usize| Clock {
        offset: rank as i64 * 3_600_000_000_000,
        drift: 0.0,
    };
    let of = |job: Job| ranks_of(&job.make().0, None, &[]);
    assert!(of(job(|_| "a".to_owned(), later)).is_none());
    assert!(of(job(|rank| format!("node{rank}"), later)).is_some());
    assert!(of(job(|_| "a".to_owned(), |_| Clock::default())).is_some());
    let mut ranked = job(|_| "a".to_owned(), later);
    ranked.is_ranked = true;
    assert!(of(ranked).is_some());
}

/// Collectives of two ranks of 128, of which each recording lacks others, as a published pair of sampled traces has them (start and length,
/// us, in one process group's stream and in another's): rows of the first that fit best fit badly, by 600 ms. What two all-gathers in the
/// second stream tell stands.
#[test]
fn collectives_that_fit_badly_are_not_matched() {
    const REDUCE: &str = "ncclKernel_AllReduce_RING_LL_Sum_float";
    const EXCHANGE: &str = "ncclKernel_AllToAll";
    const GATHER: &str = "ncclKernel_AllGather_RING_LL_Sum_int8_t";
    let made = [
        [
            (0, 30_669, EXCHANGE),
            (30_675, 62_783, EXCHANGE),
            (201_285, 11_727, REDUCE),
            (254_119, 47_652, REDUCE),
            (490_944, 42_496, GATHER),
            (646_719, 67_827, EXCHANGE),
            (760_307, 21_124, EXCHANGE),
            (1_036_689, 12_119, REDUCE),
            (1_051_950, 36_158, REDUCE),
            (1_091_513, 63_644, GATHER),
        ],
        [
            (35_534, 57_924, EXCHANGE),
            (139_965, 41_375, EXCHANGE),
            (204_587, 8_370, REDUCE),
            (418_310, 17_614, REDUCE),
            (491_028, 42_744, GATHER),
            (607_074, 39_630, EXCHANGE),
            (805_615, 4_624, REDUCE),
            (944_168, 90_771, EXCHANGE),
            (1_074_278, 13_838, REDUCE),
            (1_092_805, 62_163, GATHER),
        ],
    ];
    let mut trace = Trace::new(SourceInfo::default());
    for (rank, kernels) in made.iter().enumerate() {
        trace.apply(crate::common::job::collectives(rank as u32, kernels));
    }
    let ranks = ranks_of(&trace, None, &[]).expect("two share all-gathers");
    assert!(ranks.clocks.residual.is_none(), "{:?}", ranks.clocks);
    for (sums, wait_us) in ranks.split.sums.iter().zip([1_481, 248]) {
        assert_eq!(
            (sums.judged, sums.wait_ns),
            (2, wait_us * 1_000),
            "{sums:?}"
        );
        assert_eq!((sums.transfer_ns, sums.unjudged), (104_659_000, 8));
    }
}

#[test]
fn the_report_of_many_ranks_is_one_screen() {
    let job = Job {
        ranks: 96,
        steps: 12,
        idle: |rank, _| if rank == 17 { 4_000_000 } else { 0 },
        host: |rank| format!("node{}", rank / 8),
        ..Job::default()
    };
    let (trace, truth) = job.make();
    let report = Report::new(&trace, None, KnownGpus::default());
    let text = cuptop::report::text::render(&report, &cuptop::report::text::Options::default());
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.iter().position(|l| *l == "Ranks").expect("a section");
    let length = lines[from..]
        .iter()
        .position(|l| l.is_empty())
        .unwrap_or(lines.len() - from);
    assert!(
        length <= 36,
        "{length} lines:\n{}",
        lines[from..from + length].join("\n")
    );
    // All of it is a few screens, with the first rank and the late one.
    assert!(lines.len() < 120, "{} lines", lines.len());
    assert!(text.contains("94 more GPUs: see --json"), "{text}");
    let section = lines[from..from + length].join("\n");
    assert!(section.contains("96 ranks on 12 hosts"), "{section}");
    is_late_by(&section, 17, &truth, |_| true);
    let json: serde_json::Value =
        serde_json::from_str(&report.json().expect("JSON")).expect("valid");
    assert_eq!(json["ranks"].as_array().map(Vec::len), Some(96));
    assert_eq!(json["ranks"][17]["last_arrivals"], 12);
    assert_eq!(json["job"]["late"][0]["rank"], 17);
    // A rank's idle time by cause is that of its device, which is at work or idle.
    for (rank, device) in report.ranks.iter().zip(&report.devices) {
        let by_cause: i64 = rank.idle.iter().map(|it| it.total_ns).sum();
        assert_eq!(by_cause, device.span_ns - device.busy_ns);
        assert_eq!(rank.idle_ns, by_cause);
    }
    let idle = &json["ranks"][17]["idle"][0];
    // 4 ms before each of the eleven steps behind the first.
    let time = idle["total_ns"].as_i64().expect("a time");
    assert!((44_000_000..45_000_000).contains(&time), "{idle}");
}

#[test]
fn the_view_of_many_ranks_fits_a_small_screen() {
    let job = Job {
        ranks: 96,
        steps: 12,
        idle: |rank, _| if rank == 17 { 4_000_000 } else { 0 },
        host: |rank| format!("node{}", rank / 8),
        ..Job::default()
    };
    let mut app = App::new(Vec::new());
    let peaks = KnownGpus::default();
    app.start(SourceInfo::default(), None, peaks);
    let (batches, truth) = job.batches();
    for batch in batches {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    app.state.size = Size::new(80, 24);
    app.prepare();
    app.act(Action::Show(5));
    let shown = |app: &mut App| -> String {
        app.prepare();
        let buffer = render(app, &Theme::default());
        let cells = buffer.content.chunks(80);
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|c| c.symbol()).collect();
        cells.map(line).collect::<Vec<String>>().join("\n")
    };
    let text = shown(&mut app);
    assert!(text.contains("clocks are aligned to ±"), "{text}");
    is_late_by(&text, 17, &truth, |_| true);
    assert!(text.contains("rank 0 node0"), "{text}");
    // By lateness the one that is late comes first, by host eight ranks are a line.
    app.act(Action::Sort);
    let text = shown(&mut app);
    let at = |name: &str| text.find(name).unwrap_or(usize::MAX);
    assert!(at("rank 17 node2") < at("rank 0 node0"), "{text}");
    // Why its GPU idles: for 4 ms before each of eleven steps, of some 92.7 ms.
    let line = |text: &str| -> String {
        let line = text.lines().find(|line| line.contains("rank 17 node2 "));
        line.expect("a line").trim_end().to_owned()
    };
    assert!(line(&text).ends_with(" unknown 47 %"), "{text}");
    app.state.size = Size::new(120, 24);
    app.prepare();
    let buffer = render(&mut app, &Theme::default());
    let wide: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
    // There its clock stands before it.
    assert!(wide.contains(" ns  unknown 47 %"), "{wide}");
    app.state.size = Size::new(80, 24);
    // On it, below the list: why its GPU idles.
    app.act(Action::Down);
    app.act(Action::Down);
    let text = shown(&mut app);
    assert!(text.contains("the GPU of rank 17 was idle for 4"), "{text}");
    app.act(Action::Up);
    app.act(Action::Up);
    app.act(Action::Sort);
    app.act(Action::Sort);
    let text = shown(&mut app);
    assert!(
        text.contains("node2 (8)") && text.contains("node11 (8)"),
        "{text}"
    );
    // Taking the sentence on the late rank, on which the cursor stands, opens its lanes.
    app.act(Action::Choose);
    let text = shown(&mut app);
    assert!(text.contains("rank 17"), "{text}");
    // There its GPU waits for its own launches, before the collective.
    assert!(text.contains("GPU idle 4.0"), "{text}");
    // A host opens one that waits; what its kernel waits is told with whom it waits for.
    app.act(Action::Show(5));
    app.act(Action::Down);
    app.act(Action::Down);
    app.act(Action::Down);
    app.act(Action::Choose);
    let text = shown(&mut app);
    assert!(text.contains(" ms of it for rank 17"), "{text}");
}

/// Rank 2 of four comes 5 ms late to each of 40 steps of some 9: the others wait for more than half of the time, and do not compute.
#[test]
fn a_job_that_waits_for_a_late_rank_is_not_bound_by_its_gpus() {
    let job = |idle: fn(usize, usize) -> i64| Job {
        ranks: 4,
        steps: 40,
        idle,
        has_host: true,
        ..Job::default()
    };
    let late = job(|rank, _| if rank == 2 { 5_000_000 } else { 20_000 });
    let (trace, truth) = late.make();
    let report = Report::new(&trace, None, KnownGpus::default());
    let [whole, each @ ..] = report.verdicts.as_slice() else {
        panic!("no verdict");
    };
    let (cured, after) = job(|_, _| 20_000).make();
    let made = 1.0 - mean(&after.steps) / mean(&truth.steps);
    assert!((whole.share - made).abs() < 0.02, "{whole:?}, {made}");
    let told = whole.headline();
    assert!(told.starts_with("straggler rank 2: "), "{told}");
    is_late_by(&told, 2, &truth, |_| true);
    assert!(
        told.contains(" ms late every step, its CPU is in next(loader) · without rank 2's delays "),
        "{told}"
    );
    let peer = serde_json::json!("peer");
    for (rank, verdict) in each.iter().enumerate() {
        let is_peer = serde_json::json!(verdict.bound_by) == peer;
        assert_eq!(is_peer, rank != 2, "{verdict:?}");
    }
    // A finding says the same, and what the cure is worth.
    let finding = report
        .findings
        .iter()
        .find(|it| it.rule.name() == "late-rank");
    let finding = finding.expect("a finding");
    let steps = report.job.as_ref().and_then(|job| job.late[0].step_ns);
    assert!(steps.is_some() && finding.title.starts_with("straggler rank 2"));
    let saved = (mean(&truth.steps) - mean(&after.steps)) * 40.0;
    // The last step has no end, and the first may be warm-up.
    let told = finding.bound_ns as f64 / saved;
    assert!((0.85..=1.02).contains(&told), "{finding:?}, {saved}");
    assert!(finding.evidence.len() == 20 && finding.count >= 40);
    // A little late, so that the GPUs are at work for most of the time: that is what bounds the job, and the late rank still costs more than
    // a tenth of a step.
    let (little, truth_little) = job(|rank, _| if rank == 2 { 600_000 } else { 20_000 }).make();
    let cost = mean(&truth_little.steps) / mean(&after.steps);
    assert!((1.12..1.6).contains(&cost), "{cost}");
    let told = Report::new(&little, None, KnownGpus::default())
        .verdicts
        .swap_remove(0);
    assert!(told.text.starts_with("straggler rank 2: "), "{told:?}");
    let cured = Report::new(&cured, None, KnownGpus::default());
    assert!(
        cured
            .findings
            .iter()
            .all(|it| it.rule.name() != "late-rank")
    );
    assert!(serde_json::json!(cured.verdicts[0].bound_by) != peer);
}

/// Of four ranks two come 5 ms late to each step of some 9, by turns. Without any one of them the job takes as long, and what all of them
/// wait for is the loader.
#[test]
fn ranks_that_wait_for_each_other_by_turns_are_bound_by_what_those_did() {
    let job = Job {
        ranks: 4,
        steps: 40,
        idle: |rank, step| 20_000 + i64::from((step + rank / 2) % 2 == 0) * 5_000_000,
        has_host: true,
        ..Job::default()
    };
    let report = Report::new(&job.make().0, None, KnownGpus::default());
    let whole = &report.verdicts[0];
    assert_eq!(serde_json::json!(whole.bound_by), "host");
    let told = &whole.text;
    // Eight kernels of 0.4 ms and three transfers of 0.25, in a step of 14 ms: its own 5 ms, and those of the other two.
    assert!(
        told.starts_with("4 ranks, CPU-bound: the GPUs work 2"),
        "{told}"
    );
    assert!(told.ends_with("and wait for next(loader)"), "{told}");
}

/// Two kernels of 20 us and a transfer as long, 2 ms apart. What comes 0.3 ms late takes an eighth of the time, and most of what the other
/// GPU seems to work.
#[test]
fn a_gpu_that_mostly_waits_for_another_is_told_beside_what_both_wait_for() {
    let beside = |idle: fn(usize, usize) -> i64| {
        let job = Job {
            steps: 40,
            kernels: 2,
            collectives: 1,
            work: 20_000,
            transfer: 20_000,
            jitter: 0,
            idle,
            has_host: true,
            ..Job::default()
        };
        let report = Report::new(&job.make().0, None, KnownGpus::default());
        report.verdicts[0].beside.join(" · ")
    };
    let told = beside(|rank, _| 2_000_000 + rank as i64 * 300_000);
    let waits = "rank 0 waits for rank 1 in collectives for 1";
    assert!(told.contains(waits), "{told}");
    assert!(told.contains("ms that its GPU works"), "{told}");
    let even = beside(|_, _| 2_000_000);
    assert!(!even.contains("waits for rank"), "{even}");
}

#[test]
fn clocks_are_said_on_the_screen_and_carried_by_exports() {
    let job = Job {
        ranks: 3,
        steps: 40,
        clock: |rank| Clock {
            offset: rank as i64 * 1_700_000,
            drift: rank as f64 * -20e-6,
        },
        // Ordinary unevenness: of steps that are all alike the nearest would be believed.
        idle: |rank, step| ((rank * 31 + step * step * 7_919) % 977) as i64 * 500,
        ..Job::default()
    };
    let (trace, truth) = job.make();
    let export = |format| {
        let mut out = Vec::new();
        cuptop::export::write_data(format, &trace, &KnownGpus::default(), &mut out)
            .expect("written");
        out
    };
    let chrome = export(cuptop::export::TimelineFormat::Chrome);
    let chrome: serde_json::Value = serde_json::from_slice(&chrome).expect("JSON");
    let clocks = &chrome["rankClocks"];
    assert_eq!(clocks["clocks"], "collectives");
    // By the formula that is documented, two clocks that are read at once show the same.
    let aligned = |rank: usize, time: i64| {
        let it = &clocks["ranks"][rank];
        let number = |what: &str| it[what].as_i64().expect("a number");
        let own = (job.clock)(rank).read(time);
        let drift = it["drift_ppm"].as_f64().expect("a rate") / 1e6;
        own + number("offset_ns") + (drift * (own - number("at_ns")) as f64) as i64
    };
    for time in [0, truth.end / 2, truth.end] {
        let all: Vec<i64> = (0..3).map(|rank| aligned(rank, time)).collect();
        let apart = all.iter().max().expect("some") - all.iter().min().expect("some");
        assert!(apart < 20_000, "{apart}");
    }
    // Times stay those that were recorded.
    let base = chrome["baseTimeNanoseconds"].as_i64().expect("a time");
    let events = chrome["traceEvents"].as_array().expect("events");
    let first = events.iter().find(|it| it["ph"] == "X").expect("one");
    let start = base + (first["ts"].as_f64().expect("us") * 1e3).round() as i64;
    let recorded = trace.extent().expect("records");
    assert!(recorded.start <= start && start < recorded.end);

    let mut app = App::new(Vec::new());
    app.start(
        SourceInfo {
            title: "three_ranks_of_a_job_with_a_long_name".to_owned(),
            ..SourceInfo::default()
        },
        None,
        KnownGpus::default(),
    );
    for batch in job.batches().0 {
        app.take(Message::Batch(batch));
    }
    app.take(Message::Finished(Outcome::Complete));
    for (columns, words) in [(80, "clocks ± "), (200, "clocks aligned to ± ")] {
        app.state.size = Size::new(columns, 24);
        for view in [0, 1, 5] {
            app.act(Action::Show(view));
            app.prepare();
            let buffer = render(&mut app, &Theme::default());
            let line = buffer.content.iter().take(usize::from(columns));
            let line: String = line.map(|cell| cell.symbol()).collect();
            assert!(line.contains(words), "{view}: {line}");
        }
    }
}
