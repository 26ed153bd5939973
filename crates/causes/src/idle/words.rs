//! A gap's answer in a sentence, with the records that show it.

use super::{Cause, Causes, Certainty, Culprit, Gap, Piece};
use crate::evidence::Evidence;
use crate::graph::NONE;
use crate::stacks::StackCounts;
use activity::units::{count, duration};
use activity::{Ns, Span};
use trace::describe;

/// A gap with its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub gap: Span,
    /// Its greatest cause.
    pub cause: Cause,
    /// How sure that is.
    pub certainty: Certainty,
    /// The whole answer in a sentence.
    pub sentence: String,
    /// The pieces that sum to the gap, in order of time.
    pub pieces: Vec<Piece>,
    /// The records that show it, those of the greatest piece first.
    pub evidence: Vec<Evidence>,
}

/// A piece that is less than this part of its gap is not in the sentence.
const WORTH: Ns = 5;

impl Explanation {
    /// No operation followed.
    pub(super) fn nothing(gap: Span) -> Explanation {
        Explanation::because(gap, Cause::Unknown, "No later operation is recorded.")
    }

    /// Recording was off for some of it.
    pub(super) fn unrecorded(gap: Span) -> Explanation {
        let sentence = "Recording was off for a part of it, so nothing says why.";
        Explanation::because(gap, Cause::Missing, sentence)
    }

    fn because(gap: Span, cause: Cause, sentence: &str) -> Explanation {
        Explanation {
            gap,
            cause,
            certainty: Certainty::Unknown,
            sentence: sentence.to_owned(),
            pieces: Vec::new(),
            evidence: Vec::new(),
        }
    }
}

/// Pieces of one cause, one culprit.
struct Share {
    piece: Piece,
    total: Ns,
}

impl Share {
    /// How long it took, and of how much.
    fn time(&self, length: Ns) -> String {
        if self.total == length {
            duration(length)
        } else {
            format!("{} of {}", duration(self.total), duration(length))
        }
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
}

impl Causes<'_> {
    /// Why a gap is there, in a sentence.
    pub fn explain(&self, gap: Gap) -> Explanation {
        let pieces = self.pieces(gap);
        let mut shares: Vec<Share> = Vec::new();
        for piece in &pieces {
            let key = |p: &Piece| (p.cause, p.certainty, self.named(p));
            let total = piece.span.len();
            match shares.iter_mut().find(|s| key(&s.piece) == key(piece)) {
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
        let Some(main) = shares.first() else {
            return Explanation::nothing(gap.span);
        };
        let length = gap.span.len();
        let seen = match main.piece.cause.is_of_host() {
            true => self.seen_in(gap, &pieces, &main.piece),
            false => String::new(),
        };
        let of_gap = MainCause {
            piece: &main.piece,
            gap,
            name: self.name_of(main.piece.culprit),
            next: self.name_of(Culprit::Op(gap.next)),
            time: main.time(length),
        };
        let mut parts = vec![self.part(&of_gap, seen.is_empty())];
        let others = shares[1..]
            .iter()
            .take(2)
            .filter(|s| s.total * WORTH >= length);
        for share in others {
            let label = share.piece.cause.label();
            let time = duration(share.total);
            parts.push(match share.piece.culprit {
                culprit @ Culprit::Row(..) => {
                    format!("{label} {time} ({})", self.name_of(culprit))
                }
                _ => format!("{label} {time}"),
            });
        }
        let mut sentence = parts.join("; ");
        if let Some(root) = main.piece.root {
            let name = self.name_of(Culprit::Call(root));
            sentence.push_str(&format!(
                "; nothing was queued, because the CPU had waited in {name}"
            ));
        }
        sentence.push('.');
        sentence.push_str(&seen);
        let blamed = shares.iter().map(|share| share.piece.culprit);
        let blamed = blamed.chain(main.piece.root.map(Culprit::Call));
        let mut evidence: Vec<Evidence> = blamed.filter_map(|it| self.evidence(it)).collect();
        let call = self.graph.ops.call[gap.next as usize];
        if call != NONE {
            let launch = self.evidence(Culprit::Call(call));
            evidence.extend(launch.filter(|it| !evidence.contains(it)));
        }
        Explanation {
            gap: gap.span,
            cause: main.piece.cause,
            certainty: main.piece.certainty,
            sentence: capital(&sentence),
            evidence,
            pieces,
        }
    }

    /// What stack samples saw of the host in the pieces that are like `main`, as a sentence of its own: an estimate beside
    /// the fact. Empty without samples in them.
    fn seen_in(&self, gap: Gap, pieces: &[Piece], main: &Piece) -> String {
        let mut seen = StackCounts::default();
        for piece in pieces {
            if piece.cause == main.cause && self.named(piece) == self.named(main) {
                self.add_samples(gap.next, piece.span, &mut seen);
            }
        }
        match seen.most(self.trace) {
            None => String::new(),
            Some(told) if told.of == 1 => {
                format!(" The one stack sample of this gap is at {}.", told.at())
            }
            Some(told) => format!(
                " The CPU was at {} in {} of {} stack samples.",
                told.at(),
                count(told.samples),
                count(told.of)
            ),
        }
    }

    /// What the CPU did for the time of the greatest cause; `None` where the GPU was at something. Without samples nothing
    /// says what it did outside CUDA and ranges.
    fn cpu_words(&self, main: &MainCause<'_>, is_unseen: bool) -> Option<String> {
        let MainCause {
            piece,
            gap,
            name,
            next,
            time,
        } = main;
        Some(match piece.cause {
            Cause::SyncDevice | Cause::SyncStream | Cause::SyncEvent => {
                format!("the CPU waited in {name} for {time}, and launched {next} only then")
            }
            Cause::BlockingH2D | Cause::BlockingD2H | Cause::BlockingCopy => {
                format!("the CPU waited in {name} for {time}: it returns when its copy is done")
            }
            Cause::Staging => format!("the CPU staged a pageable copy in {name} for {time}"),
            Cause::Pages => format!(
                "the CPU used managed memory for {time}: its page faults moved pages right before and right after"
            ),
            Cause::Host if self.graph.ops.call[gap.next as usize] == NONE => format!(
                "the CPU was outside CUDA for {time}, then touched managed memory, so its pages moved ({next})"
            ),
            Cause::Host => match piece.culprit {
                Culprit::Nobody => {
                    let untraced = match is_unseen {
                        true => ", in code that was not traced",
                        false => "",
                    };
                    format!(
                        "{next} was not launched yet: the CPU was outside CUDA for {time}{untraced}"
                    )
                }
                _ => format!("{next} was not launched yet: the CPU was in {name} for {time}"),
            },
            Cause::Launching => format!(
                "{next} was not launched yet: the CPU was launching other work ({name}) for {time}"
            ),
            Cause::Lock => format!(
                "the launch of {next} waited {time} for a driver lock, held by another thread's {name}"
            ),
            Cause::SlowLaunch => format!("the CPU was inside one slow launch ({name}) for {time}"),
            Cause::Call | Cause::Memory | Cause::GraphSetup => {
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
            Cause::Missing => {
                format!("records are missing: {name} launched work, and none was recorded")
            }
            Cause::Unknown => match piece.culprit {
                Culprit::Call(call) => format!(
                    "{next} was launched {} before it started, and no record says what it waited for",
                    duration(
                        self.graph.ops.start[gap.next as usize]
                            - self.graph.calls.start[call as usize]
                    )
                ),
                _ => format!("no record says who launched {next}"),
            },
            Cause::SyncDevice | Cause::SyncStream | Cause::SyncEvent => String::new(),
            Cause::BlockingH2D | Cause::BlockingD2H | Cause::BlockingCopy => String::new(),
            Cause::Staging | Cause::Pages | Cause::Host | Cause::Launching => String::new(),
            Cause::Lock | Cause::SlowLaunch | Cause::Call | Cause::Memory => String::new(),
            Cause::GraphSetup | Cause::Load | Cause::QueueFull => String::new(),
        }
    }

    /// The greatest cause in words.
    fn part(&self, main: &MainCause<'_>, is_unseen: bool) -> String {
        let text = self.cpu_words(main, is_unseen);
        let text = text.unwrap_or_else(|| self.gpu_words(main));
        match main.piece.certainty {
            Certainty::Likely => format!("likely {text}"),
            Certainty::Fact | Certainty::Unknown => text,
        }
    }

    fn evidence(&self, culprit: Culprit) -> Option<Evidence> {
        let (lane, row) = self.place(culprit)?;
        Some(Evidence::row(self.trace, lane, row))
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
