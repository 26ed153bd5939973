//! How figures are written for people: nanoseconds, bytes, rates, counts.
//!
//! GB/s is 10^9 bytes per second; KiB, MiB and GiB are powers of two.

use super::Ns;

/// A length of time with three significant digits: "338 ns", "1.74 us", "3.34 ms", "2.10 s".
pub fn duration(ns: Ns) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let value = ns.unsigned_abs() as f64;
    let (value, unit) = match value {
        v if v < 1e3 => return format!("{sign}{v:.0} ns"),
        v if v < 999.5e3 => (v / 1e3, "µs"),
        v if v < 999.5e6 => (v / 1e6, "ms"),
        v => (v / 1e9, "s"),
    };
    format!("{sign}{} {unit}", significant(value))
}

/// From one time to another: "36.4 to 203 ms", "900 µs to 1.20 ms".
pub fn range((least, most): (Ns, Ns)) -> String {
    let (least, most) = (duration(least), duration(most));
    match (least.split_once(' '), most.split_once(' ')) {
        _ if least == most => most,
        (Some((number, a)), Some((_, b))) if a == b => format!("{number} to {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// A size: "4 B", "16 MiB", "1.50 GiB".
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{} {}", significant(value), UNITS[unit])
    }
}

/// Bytes over nanoseconds, which is GB/s. `None` when no time passed.
pub fn gb_per_s(bytes: u64, ns: Ns) -> Option<f64> {
    (ns > 0).then(|| bytes as f64 / ns as f64)
}

/// A rate in GB/s with three significant digits, without its unit: "54.9", "0.58", "2130".
pub fn rate(gb_per_s: f64) -> String {
    if gb_per_s != 0.0 && gb_per_s.abs() < 0.01 {
        return format!("{gb_per_s:.4}");
    }
    significant(gb_per_s)
}

/// `part` of `whole`, 0 when there is no whole.
pub fn share(part: Ns, whole: Ns) -> f64 {
    if whole > 0 {
        part as f64 / whole as f64
    } else {
        0.0
    }
}

/// A share of 1 in per cent: "81 %", "0.1 %".
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A count with thousands set apart: "24,310".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What the numbers of a figure are; each is kept in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One over another.
    Ratio,
    /// A share of 1.
    Share,
    /// Nanoseconds.
    Time,
    /// GB/s.
    Rate,
    /// FLOP/s.
    Flops,
    /// Bytes.
    Bytes,
    /// How many.
    Count,
}

impl Unit {
    /// A value with its unit, for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Ratio => factor(value),
            Unit::Share => percent(value),
            Unit::Time => duration(value as Ns),
            Unit::Rate => format!("{} GB/s", rate(value)),
            Unit::Flops => flops(value),
            Unit::Bytes => bytes(value as u64),
            Unit::Count => count(value as u64),
        }
    }
}

/// How many times as much: "2.43×", "4,266×".
pub fn factor(value: f64) -> String {
    match value {
        v if v != 0.0 && v < 0.01 => format!("{v:.4}×"),
        v if v < 99.95 => format!("{}×", significant(v)),
        v => format!("{}×", count(v.round() as u64)),
    }
}

/// FLOP/s: "60.3 TFLOP/s".
pub fn flops(per_s: f64) -> String {
    let (value, unit) = match per_s {
        v if v < 999.5e6 => (v / 1e6, "M"),
        v if v < 999.5e9 => (v / 1e9, "G"),
        v => (v / 1e12, "T"),
    };
    format!("{} {unit}FLOP/s", rate(value))
}

/// A plain number: "512", "1024", from 10,000 on "64 Ki" for multiples of powers of two, else "20 k", "3 M".
pub fn number(value: f64) -> String {
    if value < 10.0 && value.fract() != 0.0 {
        return format!("{value:.2}");
    }
    let whole = value.round();
    // A matrix of 1024 is not one of "1 Ki".
    if whole < 10_000.0 {
        return format!("{whole:.0}");
    }
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

/// Three significant digits, without an exponent.
fn significant(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_740, "1.74 µs"),
            (338_000, "338 µs"),
            (999_600, "1.00 ms"),
            (3_340_423, "3.34 ms"),
            (2_100_000_000, "2.10 s"),
            (-1_500, "-1.50 µs"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(range((36_400_000, 203_000_000)), "36.4 to 203 ms");
        assert_eq!(range((900_000, 1_200_000)), "900 µs to 1.20 ms");
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!(bytes(4), "4 B");
        assert_eq!(bytes(16 << 20), "16 MiB");
        assert_eq!(bytes(1_610_612_736), "1.50 GiB");
        assert_eq!(
            gb_per_s(134_217_728, 2_440_475).map(rate).as_deref(),
            Some("55.0")
        );
        assert_eq!(gb_per_s(1, 0), None);
    }

    #[test]
    fn every_unit_is_shown_with_its_sign() {
        let cases = [
            (Unit::Ratio, 2.434, "2.43×"),
            (Unit::Ratio, 4_266.4, "4,266×"),
            (Unit::Share, 0.81, "81 %"),
            (Unit::Time, 3_340_423.0, "3.34 ms"),
            (Unit::Rate, 54.94, "54.9 GB/s"),
            (Unit::Flops, 60.3e12, "60.3 TFLOP/s"),
            (Unit::Flops, 1.5e9, "1.50 GFLOP/s"),
            (Unit::Flops, 2e6, "2.00 MFLOP/s"),
            (Unit::Bytes, 268_435_456.0, "256 MiB"),
            (Unit::Count, 24_310.0, "24,310"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.show(value), text);
        }
    }

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
            (1_024.0, "1024"),
            (9_999.0, "9999"),
            (16_384.0, "16 Ki"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(24_310), "24,310");
        assert_eq!(count(1_037_311), "1,037,311");
    }
}
