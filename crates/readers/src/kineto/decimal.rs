//! Kineto's microseconds, exactly.
//!
//! A trace writes `1712195495519689.031`: a double holds fewer digits and would lose nanoseconds. It reads the text as
//! a decimal and cuts it off (without rounding) at nanoseconds.

use activity::Ns;

/// Digits that it reads; further ones cannot matter to a number that fits.
const DIGITS_MAX: u32 = 36;

/// Nanoseconds from a JSON number of microseconds. `None` for other text, or when it does not fit.
pub(super) fn ns_from_us(text: &str) -> Option<Ns> {
    short(text.as_bytes()).or_else(|| any(text))
}

/// The shape of all times in real traces: digits, and up to three more behind a point.
fn short(text: &[u8]) -> Option<Ns> {
    if text.is_empty() || text[0] == b'.' || text.len() > 17 {
        return None;
    }
    let mut value: Ns = 0;
    let mut decimals = None;
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                value = value * 10 + Ns::from(byte - b'0');
                decimals = decimals.map(|n| n + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return None,
        }
    }
    match decimals {
        Some(3) => Some(value),
        Some(2) => Some(value * 10),
        Some(1) => Some(value * 100),
        None => value.checked_mul(1000),
        _ => None,
    }
}

/// Any number that JSON can write.
fn any(text: &str) -> Option<Ns> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    let mut digits = 0;
    // A microsecond is 10^3 ns.
    let mut power = exponent.checked_add(3)?;
    for (is_fraction, part) in [(false, whole), (true, fraction)] {
        for byte in part.bytes() {
            if !byte.is_ascii_digit() {
                return None;
            }
            if digits < DIGITS_MAX {
                value = value * 10 + i128::from(byte - b'0');
                digits += u32::from(value != 0);
                power = power.checked_sub(i32::from(is_fraction))?;
            } else {
                power = power.checked_add(i32::from(!is_fraction))?;
            }
        }
    }
    if value == 0 {
        return Some(0);
    }
    let scale = 10i128.checked_pow(power.unsigned_abs());
    let ns = if power < 0 {
        scale.map_or(0, |scale| value / scale)
    } else {
        value.checked_mul(scale?)?
    };
    Ns::try_from(if negative { -ns } else { ns }).ok()
}

#[cfg(test)]
mod tests {
    use super::ns_from_us;
    use proptest::prelude::*;

    #[test]
    fn microseconds_become_nanoseconds_without_rounding() {
        let cases = [
            ("0", Some(0)),
            ("4368170406511.092", Some(4_368_170_406_511_092)),
            ("1712195495519689.0", Some(1_712_195_495_519_689_000)),
            ("1712195495519689.9999", Some(1_712_195_495_519_689_999)),
            ("-1.2349", Some(-1_234)),
            ("1.5e3", Some(1_500_000)),
            ("15E-1", Some(1_500)),
            ("1e-400", Some(0)),
            (
                "0.000000000000000000000000000000000000000000001e45",
                Some(1_000),
            ),
            ("1e400", None),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("", None),
            (".5", None),
            ("1.2.3", None),
            ("nan", None),
            ("1e", None),
        ];
        for (text, ns) in cases {
            assert_eq!(ns_from_us(text), ns, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_nanosecond_survives(ns in i64::MIN + 1..) {
            let (sign, value) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            let text = format!("{sign}{}.{:03}", value / 1000, value % 1000);
            prop_assert_eq!(ns_from_us(&text), Some(ns));
        }

        #[test]
        fn the_short_way_and_the_long_way_agree(text in "[0-9]{1,14}(\\.[0-9]{0,4})?") {
            let long = super::any(&text);
            prop_assert!(super::short(text.as_bytes()).is_none_or(|ns| Some(ns) == long), "{}", text);
        }

        #[test]
        fn no_text_panics(text in "[-+0-9eE.]{0,60}") {
            let _ = ns_from_us(&text);
        }
    }
}
