//! The table of ranks: what each did with its time, and why its GPU was idle.

use crate::report::ranks::{IdleShare, RankReport};
use crate::tui::theme::Role;
use crate::tui::view::list::Cell;
use activity::Ns;
use activity::units::{duration, percent};

/// Columns of names, of figures from working to late, and of clocks.
const NAME: u16 = 21;
const FIGURES: [u16; 5] = [7, 7, 5, 5, 8];
const CLOCK: u16 = 9;
/// Columns of a screen from which on clocks have theirs.
const WITH_CLOCK: u16 = 96;
/// A cause of idle time of which a line tells has this part of the time.
const IDLE_TOLD: f64 = 0.005;

/// What the width of the screen leaves.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Whether clocks have a column: where there is little room, why a GPU idles is worth more.
    has_clock: bool,
    /// Columns in which a line may say why its GPU was idle.
    because: usize,
}

impl Room {
    pub(super) fn of(width: u16) -> Room {
        let has_clock = width >= WITH_CLOCK;
        // Two columns stand before each, and the last of the screen is left free.
        let figures: u16 = FIGURES.iter().map(|columns| columns + 2).sum();
        let clock = if has_clock { CLOCK + 2 } else { 0 };
        Room {
            has_clock,
            because: usize::from(width.saturating_sub(2 + NAME + figures + clock + 2 + 1)),
        }
    }
}

/// What stands above the table, ordered by `order`.
pub(super) fn heading(order: &str, room: Room) -> Vec<Cell> {
    let head = |word: &str, column: &str, columns: u16| {
        if order == column {
            Cell::right(word, columns, Role::Accent).bold()
        } else {
            Cell::right(word, columns, Role::Dim)
        }
    };
    let name = if order == "host" { "host" } else { "rank" };
    let mut cells = vec![
        Cell::left(name, NAME, Role::Dim),
        Cell::right("working", FIGURES[0], Role::Dim),
        head("waiting", "waiting", FIGURES[1]),
        Cell::right("idle", FIGURES[2], Role::Dim),
        Cell::right("last", FIGURES[3], Role::Dim),
        head("late", "late", FIGURES[4]),
    ];
    if room.has_clock {
        cells.push(Cell::right("clock", CLOCK, Role::Dim));
    }
    cells.push(Cell::rest("idle because", Role::Dim));
    cells
}

/// The means of these ranks, with the clock of one.
pub(super) fn figures(name: &str, ranks: &[&RankReport], clock: String, room: Room) -> Vec<Cell> {
    let sum = |what: fn(&RankReport) -> Ns| ranks.iter().map(|rank| what(rank)).sum::<Ns>();
    let all = sum(|rank| rank.span.len()).max(1) as f64;
    let share = |ns: Ns| percent(ns as f64 / all);
    let (busy, waiting) = (sum(|rank| rank.busy_ns), sum(|rank| rank.exposed_wait_ns));
    let last: u64 = ranks.iter().map(|rank| rank.last_arrivals).sum();
    let judged: u64 = ranks.iter().map(|rank| rank.collectives).sum();
    let late = sum(|rank| rank.late_ns);
    let mut cells = vec![
        Cell::left(name, NAME, Role::Text),
        Cell::right(share(busy - waiting), FIGURES[0], Role::Text),
        Cell::right(share(waiting), FIGURES[1], Role::Warning),
        Cell::right(
            share(sum(|rank| rank.span.len()) - busy),
            FIGURES[2],
            Role::Dim,
        ),
        Cell::right(
            percent(last as f64 / judged.max(1) as f64),
            FIGURES[3],
            Role::Text,
        ),
        Cell::right(duration(late), FIGURES[4], Role::Text),
    ];
    if room.has_clock {
        cells.push(Cell::right(clock, CLOCK, Role::Dim));
    }
    cells.push(Cell::rest(because(ranks, all, room), Role::Dim));
    cells
}

/// Why GPUs were idle, as parts of `all`: the main causes where there is room for them and their figures, else the first.
fn because(ranks: &[&RankReport], all: f64, room: Room) -> String {
    let causes = IdleShare::of_all(ranks);
    let shares = causes.iter().map(|it| (it, it.total_ns as f64 / all));
    let told: Vec<_> = shares.filter(|(_, share)| *share >= IDLE_TOLD).collect();
    let mut text = String::new();
    for (cause, share) in &told {
        let next = format!("{} {}", cause.words(), percent(*share));
        let more = if text.is_empty() {
            next
        } else {
            format!("{text}, {next}")
        };
        if more.chars().count() > room.because {
            break;
        }
        text = more;
    }
    match told.first() {
        Some((first, _)) if text.is_empty() => first.words(),
        _ => text,
    }
}
