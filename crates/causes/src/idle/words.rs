//! A gap's answer in a sentence.

use super::sum::{Label, sum_by};
use super::{Cause, Causes, Certainty, Culprit, Gap, Group, Piece, Shares};
use crate::first_use;
use crate::graph::{NONE, OpId};
use crate::stacks::{LaunchLine, LineShare, StackCounts};
use activity::units::{count, duration};
use activity::{Ns, Span};
use trace::describe;

/// A gap with its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Its greatest cause.
    pub cause: Cause,
    /// What most of it is added up under, as a legend has it.
    pub group: Group,
    /// Who is to blame, in a word or two: the source line, else the range or the call, else the cause.
    pub who: String,
    /// The whole answer in a sentence.
    pub sentence: String,
    /// The pieces that sum to the gap, in order of time.
    pub pieces: Vec<Piece>,
}

/// A piece that is less than this part of its gap is not in the sentence.
const WORTH: Ns = 5;

/// So many gaps like one are looked at.
const ALIKE_MAX: usize = 500;

impl Explanation {
    /// What kept the GPU idle, as a legend has it.
    pub fn label(&self) -> &'static str {
        self.group.label()
    }

    /// No operation followed.
    pub(super) fn nothing() -> Explanation {
        Explanation::because(Cause::Unknown, "No later operation is recorded.")
    }

    pub(super) fn because(cause: Cause, sentence: &str) -> Explanation {
        Explanation {
            cause,
            group: Group::Unknown,
            who: cause.label().to_owned(),
            sentence: sentence.to_owned(),
            pieces: Vec::new(),
        }
    }
}

/// Pieces of one cause, one culprit.
struct Share {
    piece: Piece,
    total: Ns,
}

/// What of a piece lies in the ranges that name what the CPU did.
fn within(ranges: &[Span], piece: &Piece) -> Ns {
    let ranges = ranges.iter().filter(|_| piece.cause == Cause::Host);
    ranges.map(|it| it.intersect(piece.span).len().max(0)).sum()
}

/// How long it took, and of how much.
fn part_of(time: Ns, length: Ns) -> String {
    match [time, length].map(duration) {
        [time, length] if time == length => time,
        [time, length] => format!("{time} of {length}"),
    }
}

/// The greatest cause of a gap, with the words that its sentence is made of.
struct MainCause<'a> {
    piece: &'a Piece,
    gap: Gap,
    /// Who is to blame.
    name: String,
    /// The operation that ended the gap.
    next: String,
    time: String,
    /// The ranges that name what the CPU did.
    ranges: Vec<Span>,
    /// Where stack samples saw the CPU meanwhile, and whether those are of other gaps.
    seen: Option<(LineShare, bool)>,
}

impl Causes<'_> {
    /// Why a gap is there, in a sentence.
    pub fn explain(&self, gap: Gap) -> Explanation {
        let pieces = self.pieces(gap);
        let shares = self.shares(&pieces);
        let Some(main) = shares.first() else {
            return Explanation::nothing();
        };
        let length = gap.span.len();
        let ranges = self.ranges_of(&main.piece, &pieces);
        // One that covers most of a piece need not cover all of it, and it has the time of what it calls.
        let named = match ranges.is_empty() {
            true => main.total,
            false => pieces.iter().map(|it| within(&ranges, it)).sum(),
        };
        let of_gap = MainCause {
            piece: &main.piece,
            gap,
            name: self.name_of(main.piece.culprit),
            next: self.graph.in_sentence(self.trace, gap.next),
            time: part_of(named, length),
            ranges,
            seen: self.seen_in(gap, &pieces, &main.piece),
        };
        let group = self.group_of(gap, &pieces);
        let of_sync = (group == Group::Sync).then(|| self.sync_words(&of_gap, &shares));
        let of_sync = of_sync.flatten();
        let mut sentence = self.sentence(&of_gap, &shares, of_sync.as_ref().map(|it| &*it.0));
        let launched = self.launched_at(gap.next);
        if let Some(line) = &launched {
            let (next, at) = (&of_gap.next, line.at());
            sentence.push_str(&format!(" {next} was launched {at}."));
        }
        // What ended this gap is surer than what was seen in others.
        let is_surer = |it: &(LineShare, bool)| !it.1 || launched.is_none_or(|it| it.waits);
        let seen = of_gap.seen.filter(is_surer);
        if let Some((seen, is_other)) = &seen {
            let of = if *is_other { " of gaps like it" } else { "" };
            sentence.push_str(&format!(" {}.", seen.seen(of)));
        }
        Explanation {
            cause: main.piece.cause,
            group,
            who: match (seen, main.piece.culprit) {
                _ if of_sync.is_some() => of_sync.map_or_else(String::new, |it| it.1),
                (Some((seen, _)), _) => seen.culprit(),
                (_, Culprit::Call(_) | Culprit::Row(..)) => of_gap.name,
                _ => main.piece.cause.label().to_owned(),
            },
            sentence: capital(&sentence),
            pieces,
        }
    }

    /// The greatest cause, or what a sync costs, and beside it what else took a part of the gap.
    fn sentence(&self, main: &MainCause<'_>, shares: &[Share], of_sync: Option<&str>) -> String {
        let (gap, length) = (main.gap, main.gap.span.len());
        let is_other = |(at, share): &(usize, &Share)| match of_sync {
            Some(_) => self.group(gap, &share.piece) != Group::Sync,
            None => *at > 0,
        };
        let others = shares.iter().enumerate().filter(is_other).take(2);
        // What lies in the range that is named is told with it.
        let is_beside = |it: &Piece| 2 * within(&main.ranges, it) < it.span.len();
        let others = others.filter(|(_, it)| it.total * WORTH >= length && is_beside(&it.piece));
        let mut text = of_sync.map_or_else(|| self.part(main), str::to_owned);
        for (_, share) in others {
            let (label, time) = (share.piece.cause.label(), duration(share.total));
            let is_more = (share.piece.cause, main.piece.cause) == (Cause::Host, Cause::Host);
            let other = if is_more { "other " } else { "" };
            text += &format!("; {other}{label} {time}");
            if let culprit @ Culprit::Row(..) = share.piece.culprit {
                text += &format!(" ({})", self.name_of(culprit));
            }
        }
        if let Some(root) = main.piece.root.filter(|_| of_sync.is_none()) {
            let name = self.name_of(Culprit::Call(root));
            text += &format!("; nothing was queued, because the CPU had waited in {name}");
        }
        text + "."
    }

    fn launched_at(&self, op: OpId) -> Option<LaunchLine<'_>> {
        let (lane, row) = self.graph.ops.place(op);
        let lane = &self.trace.lanes()[lane];
        let call = self.graph.ops.call[op as usize];
        let call = (call != NONE).then(|| self.graph.calls.at(call));
        LaunchLine::of(self.trace, lane.key().process, lane.correlation(row), call)
    }

    /// What pieces are told together by.
    fn key(&self, piece: &Piece) -> (Cause, Certainty, Label) {
        (piece.cause, piece.certainty, self.named(piece))
    }

    /// Pieces of one cause and one culprit together, those of most time first.
    fn shares(&self, pieces: &[Piece]) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        for piece in pieces {
            let total = piece.span.len();
            match shares
                .iter_mut()
                .find(|s| self.key(&s.piece) == self.key(piece))
            {
                Some(share) => {
                    if total > share.piece.span.len() {
                        share.piece = *piece;
                    }
                    share.total += total;
                }
                None => shares.push(Share {
                    piece: *piece,
                    total,
                }),
            }
        }
        shares.sort_by_key(|s| std::cmp::Reverse(s.total));
        shares
    }

    /// The ranges that name what the CPU did in pieces like this one, apart and in order.
    fn ranges_of(&self, main: &Piece, pieces: &[Piece]) -> Vec<Span> {
        let alike = pieces
            .iter()
            .filter(|it| main.cause == Cause::Host && self.key(it) == self.key(main));
        let ranges = alike.filter_map(|it| self.place(it.culprit));
        Span::merged(
            ranges
                .map(|(lane, row)| self.trace.lanes()[lane].span(row))
                .collect(),
        )
    }

    /// What takes most of a gap.
    fn group_of(&self, gap: Gap, pieces: &[Piece]) -> Group {
        let mut sums = Shares::default();
        for piece in pieces {
            sums[self.group(gap, piece) as usize] += piece.span.len();
        }
        let most = Group::most(sums, 0).first().map(|it| it.0);
        most.unwrap_or(Group::Unknown)
    }

    /// What a wait costs that is followed by work of the CPU: until it returned, and until the GPU had work again. `None` where it
    /// is nearly all by itself. The call that waited comes with it.
    fn sync_words(&self, main: &MainCause<'_>, shares: &[Share]) -> Option<(String, String)> {
        let (gap, next, length) = (main.gap, &main.next, main.gap.span.len());
        let of_sync = shares
            .iter()
            .filter(|it| self.group(gap, &it.piece) == Group::Sync);
        let (mut waits, rest): (Vec<&Share>, Vec<&Share>) =
            of_sync.partition(|it| it.piece.cause.is_wait());
        let sum = |of: &[&Share]| of.iter().map(|it| it.total).sum::<Ns>();
        let after = sum(&rest);
        let most = rest.first().filter(|_| after * WORTH >= length)?;
        let waited = |it: &Share| Some(self.name_of(Culprit::Call(self.wait_of(&it.piece)?)));
        // Of several the one that most is due to, be it long or what came behind it.
        let due = waits.iter().chain(&rest);
        let by = sum_by(due.filter_map(|it| Some((waited(it)?, it.total))));
        let call = by.into_iter().next()?.0;
        let all = sum(&waits) + after;
        waits.retain(|it| waited(it).as_ref() == Some(&call));
        let woke = sum(&waits);
        let after = duration(all - woke);
        let all = part_of(all, length);
        let by = match most.piece.culprit {
            at @ Culprit::Row(..) => format!(", mostly in {}", self.name_of(at)),
            _ if most.piece.cause == Cause::Staging => {
                format!(", mostly {}", Cause::Staging.label())
            }
            _ => String::new(),
        };
        // Both parts are told: together they are what it costs.
        let woke = match woke {
            0 => format!("{call} left nothing queued"),
            _ => format!(
                "{} until {call} returned with nothing queued",
                duration(woke)
            ),
        };
        let text = format!("the sync costs {all}: {woke}, then {after} until {next} ran{by}");
        Some((text, call))
    }

    /// The line at which stack samples saw the host most in the pieces that are like `main`: an estimate beside the fact. Of a gap
    /// without samples those of gaps like it tell, and that is said.
    fn seen_in(&self, gap: Gap, pieces: &[Piece], main: &Piece) -> Option<(LineShare, bool)> {
        let is_alike = |it: &Piece| it.cause == main.cause && self.named(it) == self.named(main);
        let add = |seen: &mut StackCounts, gap: Gap, pieces: &[Piece]| {
            for piece in pieces.iter().filter(|it| is_alike(it)) {
                self.add_samples(gap.next, piece.span, seen);
            }
        };
        if !main.cause.is_of_host() || !self.ready.is_sampled {
            return None;
        }
        let mut seen = StackCounts::default();
        add(&mut seen, gap, pieces);
        if seen.all > 0 {
            return Some((seen.most(self.trace)?, false));
        }
        let device = self.device(gap.next)?;
        let name = |op| first_use::kernel(self.trace, self.graph, op);
        let length = gap.span.len();
        let others = self.gaps_of_device(device, None).filter(|it| {
            (length / 2..=2 * length).contains(&it.span.len()) && name(it.next) == name(gap.next)
        });
        for other in others.take(ALIKE_MAX) {
            add(&mut seen, other, &self.pieces(other));
        }
        Some((seen.telling(self.trace)?, true))
    }

    /// What the CPU did for the time of the greatest cause; `None` where the GPU was at something. Without samples nothing
    /// says what it did outside CUDA and ranges.
    fn cpu_words(&self, main: &MainCause<'_>) -> Option<String> {
        let MainCause {
            piece,
            gap,
            name,
            next,
            time,
            seen,
            ..
        } = main;
        Some(match piece.cause {
            Cause::SyncDevice | Cause::SyncStream | Cause::SyncEvent => {
                format!("the CPU waited in {name} for {time}, and launched {next} only then")
            }
            Cause::BlockingH2D | Cause::BlockingD2H | Cause::BlockingCopy => {
                format!("the CPU waited in {name} for {time}: it returns when its copy is done")
            }
            Cause::Staging if piece.culprit == Culprit::Nobody => {
                format!("the CPU staged a copy outside CUDA for {time}, as samples show")
            }
            Cause::Staging => format!("the CPU staged a pageable copy in {name} for {time}"),
            Cause::Pages => format!(
                "the CPU used managed memory for {time}: its page faults moved pages right before and right after"
            ),
            Cause::Host if self.graph.ops.call[gap.next as usize] == NONE => format!(
                "the CPU was outside CUDA for {time}, then touched managed memory, so its pages moved ({next})"
            ),
            Cause::Host if piece.culprit == Culprit::Nobody && seen.is_some() => {
                format!("the CPU was outside CUDA for {time} before it launched {next}")
            }
            Cause::Host if piece.culprit == Culprit::Nobody => format!(
                "the CPU was outside CUDA for {time}, in code that was not traced, before it launched {next}"
            ),
            Cause::Launching => format!(
                "{next} was not launched yet: the CPU was launching other work ({name}) for {time}"
            ),
            Cause::Lock => format!(
                "the launch of {next} waited {time} for a driver lock, held by another thread's {name}"
            ),
            Cause::SlowLaunch => format!("the CPU was inside one slow launch ({name}) for {time}"),
            Cause::Host | Cause::Call | Cause::Memory | Cause::GraphSetup => {
                format!("the CPU was in {name} for {time} before it launched {next}")
            }
            Cause::Load => format!("GPU code was loaded for {time} in {name}"),
            Cause::QueueFull => format!("the launch queue was full for {time} ({name})"),
            _ => return None,
        })
    }

    /// What the GPU, a queue or the profiler was at meanwhile.
    fn gpu_words(&self, main: &MainCause<'_>) -> String {
        let MainCause {
            piece,
            gap,
            name,
            next,
            time,
            ..
        } = main;
        match piece.cause {
            Cause::Event => format!(
                "{} waited {time} for an event recorded after {}",
                self.stream(*gap),
                self.elsewhere(piece.culprit)
            ),
            Cause::Engine => {
                let engine = self.graph.ops.engine[gap.next as usize].label();
                let other = self.elsewhere(piece.culprit);
                format!("{next} waited {time} for the {engine}, busy with {other}")
            }
            Cause::Stream => {
                format!("{next} waited {time} for {}", self.elsewhere(piece.culprit))
            }
            Cause::HostFunction => format!(
                "{next} waited {time} for a function of the program, which {name} put into the stream"
            ),
            Cause::Process if piece.culprit == Culprit::Nobody => format!(
                "{next} was launched and waited {time} for its turn: another program has the GPU; MPS lets them run on it together"
            ),
            Cause::Process => format!(
                "{next} waited {time} while another process had the GPU ({name}); MPS lets processes run on it together"
            ),
            Cause::EngineChange => {
                let to = self.graph.ops.engine[gap.next as usize].label();
                let from = match piece.culprit {
                    Culprit::Op(op) => self.graph.ops.engine[op as usize].label(),
                    _ => "another engine",
                };
                format!(
                    "{next} was queued behind {name}: the hand-over from {from} to {to} took {time}"
                )
            }
            Cause::Queued => format!(
                "{next} was queued behind {name}: {time} is the normal gap between operations"
            ),
            Cause::Latency => format!("{next} was just launched: {time} of launch latency"),
            Cause::Profiler => format!("the profiler spent {time} on itself ({name})"),
            Cause::Missing => match self.left_out(gap.next) {
                Some(it) if piece.culprit == Culprit::Nobody => format!(
                    "the file has {} of up to {} CUDA calls of this process: what ran meanwhile is not known",
                    count(it.calls),
                    count(it.of)
                ),
                _ => format!("records are missing: {name} launched work, and none was recorded"),
            },
            Cause::LateStart | Cause::Unknown => match piece.culprit {
                Culprit::Call(call) => format!(
                    "{next} was launched {} before it started, and no record says what it waited for",
                    duration(
                        self.graph.ops.start[gap.next as usize]
                            - self.graph.calls.start[call as usize]
                    )
                ),
                _ => format!("no record says who launched {next}"),
            },
            // The CPU's are told above.
            _ => String::new(),
        }
    }

    /// The greatest cause in words.
    fn part(&self, main: &MainCause<'_>) -> String {
        let text = self.cpu_words(main);
        let mut text = text.unwrap_or_else(|| self.gpu_words(main));
        // A legend has that as launching.
        let of = (main.piece.cause, self.group(main.gap, main.piece));
        if of == (Cause::Host, Group::Launch) {
            text.insert_str(0, "between launches ");
        }
        match main.piece.certainty {
            Certainty::Likely => format!("likely {text}"),
            Certainty::Fact | Certainty::Unknown => text,
        }
    }

    /// What a record is called.
    fn name_of(&self, culprit: Culprit) -> String {
        self.place(culprit)
            .map_or("nothing".to_owned(), |(lane, row)| {
                describe::in_sentence(self.trace, &self.trace.what(lane, row))
            })
    }

    /// An operation with its stream.
    fn elsewhere(&self, culprit: Culprit) -> String {
        match culprit {
            Culprit::Op(op) => format!(
                "{} on {}",
                self.name_of(culprit),
                describe::lane_stream(self.trace, self.graph.ops.place(op).0)
            ),
            _ => self.name_of(culprit),
        }
    }

    fn stream(&self, gap: Gap) -> String {
        describe::lane_stream(self.trace, self.graph.ops.place(gap.next).0)
    }
}

/// A sentence begins with a capital, but for names.
fn capital(text: &str) -> String {
    let words = [
        "the ",
        "a CUDA ",
        "between ",
        "records ",
        "likely ",
        "no record",
        "stream ",
        "default stream",
    ];
    match words.iter().find(|it| text.starts_with(**it)) {
        Some(_) => text[..1].to_uppercase() + &text[1..],
        None => text.to_owned(),
    }
}
