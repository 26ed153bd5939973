//! What runs on this machine's GPUs, as lines of the picker.

use std::time::Duration;

use super::list::Cell;
use crate::tui::theme::Role;
use activity::text::printable;
use activity::units::bytes;
use live::machine::{GpuLoad, PAST, ProcessLoad, Sight};

/// Columns of a GPU's line before the last minute.
const BEFORE: u16 = 68;
/// Columns of the last minute at most: one a second.
const MINUTE: u16 = 60;

/// The line of a GPU in `columns`.
pub(super) fn gpu(gpu: &GpuLoad, columns: u16) -> Vec<Cell> {
    let busy = gpu.busy.map(|it| format!("{it} % busy"));
    let power = gpu.power.map(|mw| format!("{} W", mw / 1_000));
    let memory = gpu.memory.map(|(used, all)| part_of(used, all));
    let name = format!("GPU {} {}", gpu.index, printable(&gpu.name));
    vec![
        Cell::left(name, 28, Role::Text).bold(),
        Cell::right(busy.unwrap_or_default(), 9, Role::Text),
        Cell::right(memory.unwrap_or_default(), 16, Role::Text),
        Cell::right(power.unwrap_or_default(), 5, Role::Text),
        Cell::levels(minute(
            &gpu.past,
            columns.saturating_sub(BEFORE).min(MINUTE),
        )),
    ]
}

/// "61.2 of 79.6 GiB".
fn part_of(used: u64, all: u64) -> String {
    let (used, all) = (bytes(used), bytes(all));
    let unit = |text: &str| text.rsplit(' ').next().map(str::to_owned);
    match used.split_once(' ') {
        Some((number, own)) if unit(&all).as_deref() == Some(own) => format!("{number} of {all}"),
        _ => format!("{used} of {all}"),
    }
}

/// How busy a GPU was, a height a column, the newest at the right. An idle stretch has a line; where nobody looked is nothing.
fn minute(past: &[Option<u32>], columns: u16) -> Vec<(u8, Role)> {
    let columns = usize::from(columns);
    let missing = PAST.saturating_sub(past.len());
    let looks = |column: usize| {
        let from = (column * PAST / columns).saturating_sub(missing);
        let to = ((column + 1) * PAST / columns).saturating_sub(missing);
        past.get(from..to).unwrap_or_default().iter().flatten()
    };
    let height = |column: usize| {
        let (count, sum) = (looks(column).count() as u32, looks(column).sum::<u32>());
        match sum.checked_div(count) {
            None => (0, Role::Rule),
            Some(0) => (1, Role::Rule),
            Some(mean) => ((8 * mean.min(100)).div_ceil(100) as u8, Role::Good),
        }
    };
    (0..columns).map(height).collect()
}

pub(super) fn process(process: &ProcessLoad) -> Vec<Cell> {
    let (user, began, command) = match &process.sight {
        Sight::Seen(seen) => {
            // The program's folder says little and takes much room.
            let (program, rest) = seen.command.split_once(' ').unwrap_or((&seen.command, ""));
            let name = program.rsplit('/').next().unwrap_or(program);
            (seen.user.as_str(), age(seen.age), format!("{name} {rest}"))
        }
        Sight::Hidden => ("?", String::new(), "hidden by /proc".to_owned()),
        Sight::Elsewhere => ("?", String::new(), "not in /proc here".to_owned()),
    };
    let role = match process.right() {
        Ok(_) => Role::Text,
        Err(_) => Role::Dim,
    };
    let memory = process.memory.map_or("-".to_owned(), bytes);
    let share = process.share.map_or("-".to_owned(), |it| format!("{it} %"));
    vec![
        Cell::right(process.pid.to_string(), 9, Role::Accent),
        Cell::left(printable(user), 8, role),
        Cell::right(memory, 8, role),
        Cell::right(share, 5, role),
        Cell::right(began, 6, role),
        Cell::rest(printable(&command), role),
    ]
}

/// "45 s", "13 min", "2.2 h", "31 d".
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3_600 => format!("{} min", seconds / 60),
        seconds @ ..86_400 => format!("{:.1} h", seconds as f64 / 3_600.0),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// What a filter looks at.
pub(super) fn texts(process: &ProcessLoad) -> [String; 3] {
    let (user, command) = match &process.sight {
        Sight::Seen(seen) => (seen.user.clone(), seen.command.clone()),
        _ => Default::default(),
    };
    [process.pid.to_string(), user, command]
}

/// What there is to say of a process under the cursor.
pub(super) fn sentences(process: &ProcessLoad) -> Vec<&str> {
    let mut said = match (&process.sight, process.right()) {
        (Sight::Seen(seen), _) => vec![&seen.command, "Enter shows what attaching to it means."],
        (_, Ok(text) | Err(text)) => vec![text],
    };
    if !process.is_listed {
        said.push(
            "Its open device files say that it may use this GPU: in a container, NVML's numbers are the host's.",
        );
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_minute_ends_at_the_right() {
        let heights = |past: &[Option<u32>], columns| -> Vec<u8> {
            minute(past, columns).iter().map(|it| it.0).collect()
        };
        assert_eq!(heights(&[], 4), [0, 0, 0, 0]);
        // Half a minute in which it was idle, then a quarter of one at half its time, then all of it.
        let mut past = vec![Some(0); 60];
        past.extend([Some(50); 30]);
        past.extend([Some(100); 30]);
        assert_eq!(heights(&past, 4), [1, 1, 4, 8]);
        assert_eq!(heights(&past[60..], 4), [0, 0, 4, 8]);
        assert_eq!(heights(&[Some(1)], 13).last(), Some(&1));
        // A stretch in which nobody looked.
        assert_eq!(heights(&[None; 120], 2), [0, 0]);
        assert!(heights(&past, 0).is_empty());
    }

    #[test]
    fn ages_and_parts_are_short() {
        for (seconds, expected) in [
            (59, "59 s"),
            (60, "1 min"),
            (7_992, "2.2 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(part_of(3 << 29, 80 << 30), "1.50 of 80 GiB");
        assert_eq!(part_of(5 << 20, 80 << 30), "5 MiB of 80 GiB");
    }
}
