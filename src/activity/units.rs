//! How figures are written for people: nanoseconds, bytes, rates, counts.
//!
//! GB/s is 10^9 bytes per second; KiB, MiB and GiB are powers of two.

use super::Ns;

/// A length of time with three significant digits: "338 ns", "1.74 us", "3.34 ms", "2.10 s".
#[must_use]
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

/// A size: "4 B", "16 MiB", "1.50 GiB".
#[must_use]
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
#[must_use]
pub fn gb_per_s(bytes: u64, ns: Ns) -> Option<f64> {
    (ns > 0).then(|| bytes as f64 / ns as f64)
}

/// A rate in GB/s with three significant digits, without its unit: "54.9", "0.58", "2130".
#[must_use]
pub fn rate(gb_per_s: f64) -> String {
    if gb_per_s != 0.0 && gb_per_s.abs() < 0.01 {
        return format!("{gb_per_s:.4}");
    }
    significant(gb_per_s)
}

/// A share of 1 in per cent: "81 %", "0.1 %".
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.1} %")
    } else {
        format!("{value:.0} %")
    }
}

/// A count with thousands set apart: "24,310".
#[must_use]
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
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(24_310), "24,310");
        assert_eq!(count(1_037_311), "1,037,311");
    }
}
