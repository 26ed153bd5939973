//! Kineto's microseconds, exactly.
//!
//! A trace writes `1712195495519689.031`: a double holds fewer digits and would lose nanoseconds. It reads the text as
//! a decimal and cuts it off (without rounding) at nanoseconds.

use activity::Ns;

/// Nanoseconds from a JSON number of microseconds. `None` for other text, or when it does not fit.
pub(super) fn ns_from_us(text: &[u8]) -> Option<Ns> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    let mut value: Ns = 0;
    // Digits behind the point so far, once there is one.
    let mut decimals = None;
    for &byte in digits {
        match byte {
            b'0'..=b'9' if decimals == Some(3) => {}
            b'0'..=b'9' => {
                value = value.checked_mul(10)?.checked_add(Ns::from(byte - b'0'))?;
                decimals = decimals.map(|n| n + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b'e' | b'E' => return from_float(text),
            _ => return None,
        }
    }
    let value = value.checked_mul(10_i64.pow(3 - decimals.unwrap_or(0)))?;
    Some(if digits.len() < text.len() {
        -value
    } else {
        value
    })
}

/// The same of a number with an exponent: no profiler writes times so, which have more digits than a double.
fn from_float(text: &[u8]) -> Option<Ns> {
    let ns = std::str::from_utf8(text).ok()?.parse::<f64>().ok()? * 1000.0;
    (ns.abs() < Ns::MAX as f64).then_some(ns as Ns)
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
            assert_eq!(ns_from_us(text.as_bytes()), ns, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_nanosecond_survives(ns in i64::MIN + 1..) {
            let (sign, value) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
            let text = format!("{sign}{}.{:03}", value / 1000, value % 1000);
            prop_assert_eq!(ns_from_us(text.as_bytes()), Some(ns));
        }

        #[test]
        fn what_is_less_than_a_nanosecond_is_cut_off(us in 0..1_i64 << 40, decimals in "[0-9]{0,8}") {
            let ns: String = decimals.chars().chain("000".chars()).take(3).collect();
            let ns = us * 1000 + ns.parse::<i64>().expect("three digits");
            prop_assert_eq!(ns_from_us(format!("{us}.{decimals}").as_bytes()), Some(ns));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9eE.]{0,60}") {
            let _ = ns_from_us(text.as_bytes());
        }
    }
}
