//! What a chart over a sweep can show, and how its values are written.

use crate::activity::{Direction, Ns, units};

/// What a chart can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// First operation's start to the last one's end, in ns.
    Makespan,
    /// The host's time around a pass, in ns.
    Wall,
    /// The host's time in the phases that the scenario names, in ns.
    Phases,
    /// GB/s of copies of one direction.
    Rate(Direction),
    /// GB/s of device memory, by what the kernels declare.
    Memory,
    /// FLOP/s, by what the kernels declare.
    Flops,
}

impl Figure {
    /// All, in the order in which a key goes through them.
    pub const ALL: [Figure; 8] = [
        Figure::Makespan,
        Figure::Wall,
        Figure::Phases,
        Figure::Rate(Direction::H2D),
        Figure::Rate(Direction::D2H),
        Figure::Rate(Direction::D2D),
        Figure::Memory,
        Figure::Flops,
    ];

    /// What to call it.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Figure::Makespan => "makespan".to_owned(),
            Figure::Wall => "time of the host".to_owned(),
            Figure::Phases => "time in named phases".to_owned(),
            Figure::Rate(direction) => format!("{} GB/s", direction.label()),
            Figure::Memory => "GB/s of device memory".to_owned(),
            Figure::Flops => "FLOP/s".to_owned(),
        }
    }

    /// A value in words.
    #[must_use]
    pub fn value(self, value: f64) -> String {
        match self {
            Figure::Makespan | Figure::Wall | Figure::Phases => units::duration(value as Ns),
            Figure::Rate(_) | Figure::Memory => format!("{} GB/s", units::rate(value)),
            Figure::Flops => flops(value),
        }
    }

    /// Whether less is better.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Figure::Makespan | Figure::Wall | Figure::Phases)
    }
}

/// "60.3 TFLOP/s".
#[must_use]
pub fn flops(value: f64) -> String {
    let (value, unit) = match value {
        v if v < 1e9 => (v / 1e6, "M"),
        v if v < 1e12 => (v / 1e9, "G"),
        v => (v / 1e12, "T"),
    };
    format!("{} {unit}FLOP/s", units::rate(value))
}

/// A value of a parameter: "512", "64 Ki" for multiples of powers of two, else "20 k", "3 M".
#[must_use]
pub fn number(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    let whole = value.round();
    for (unit, size) in [("Gi", 1u64 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        let size = size as f64;
        if whole >= size && whole % size == 0.0 {
            return format!("{} {unit}", whole / size);
        }
    }
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if whole >= 10.0 * size || (whole >= size && whole % size == 0.0) {
            let scaled = whole / size;
            return if scaled.fract() == 0.0 || scaled >= 100.0 {
                format!("{scaled:.0} {unit}")
            } else {
                format!("{scaled:.1} {unit}")
            };
        }
    }
    format!("{whole:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (512.0, "512"),
            (65_536.0, "64 Ki"),
            (1_073_741_824.0, "1 Gi"),
            (20_000.0, "20 k"),
            (1_000_000.0, "1 M"),
            (0.25, "0.25"),
            (1_234.0, "1234"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn rates_of_computing_have_their_unit() {
        assert_eq!(flops(60.3e12), "60.3 TFLOP/s");
        assert_eq!(flops(1.5e9), "1.50 GFLOP/s");
        assert_eq!(flops(2e6), "2.00 MFLOP/s");
    }
}
