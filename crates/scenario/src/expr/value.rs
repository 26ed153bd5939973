//! Numbers in scenario files: integers, floats, sizes ("64 MiB") and times ("200 us"). The arithmetic on them is
//! checked: nothing wraps, nothing is rounded unseen.

use std::cmp::Ordering;
use std::fmt;

/// What a number counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A plain number.
    #[default]
    None,
    Bytes,
    /// Nanoseconds.
    Time,
    /// Bytes per second, in GB/s.
    Rate,
    /// A share of 1.
    Share,
    /// Floating point operations per second.
    Flops,
}

/// A number with its unit, in the unit's base: bytes, nanoseconds, GB/s, a share of 1, FLOP/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64, Unit),
    /// Any other.
    Float(f64, Unit),
}

/// The units that a number may carry: name, what it counts, how many of the base it is.
pub const UNITS: &[(&str, Unit, f64)] = &[
    ("B", Unit::Bytes, 1.0),
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("GiB", Unit::Bytes, 1_073_741_824.0),
    ("TiB", Unit::Bytes, 1_099_511_627_776.0),
    ("kB", Unit::Bytes, 1e3),
    ("KB", Unit::Bytes, 1e3),
    ("MB", Unit::Bytes, 1e6),
    ("GB", Unit::Bytes, 1e9),
    ("TB", Unit::Bytes, 1e12),
    ("ns", Unit::Time, 1.0),
    ("us", Unit::Time, 1e3),
    ("µs", Unit::Time, 1e3),
    ("μs", Unit::Time, 1e3),
    ("ms", Unit::Time, 1e6),
    ("s", Unit::Time, 1e9),
    ("MB/s", Unit::Rate, 1e-3),
    ("GB/s", Unit::Rate, 1.0),
    ("TB/s", Unit::Rate, 1e3),
    ("GFLOP/s", Unit::Flops, 1e9),
    ("TFLOP/s", Unit::Flops, 1e12),
];

/// Reads a size as people write it: "500 MiB", "2 GB", "4096".
///
/// The result is whole bytes; `None` for a negative number, no size, or one too large.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let scale = match text[digits..].trim() {
        "" => 1.0,
        name => unit(name).filter(|it| it.0 == Unit::Bytes)?.1,
    };
    let bytes = number * scale;
    (bytes < u64::MAX as f64).then_some(bytes.round() as u64)
}

/// The unit of a name.
pub fn unit(name: &str) -> Option<(Unit, f64)> {
    let found = UNITS.iter().find(|(known, ..)| *known == name);
    found.map(|&(_, unit, scale)| (unit, scale))
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::None => "a plain number",
            Unit::Bytes => "a size",
            Unit::Time => "a time",
            Unit::Rate => "a rate",
            Unit::Share => "a share",
            Unit::Flops => "an arithmetic rate",
        })
    }
}

impl Value {
    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Value::Int(_, unit) | Value::Float(_, unit) => unit,
        }
    }

    /// As a float, in the unit's base.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(value, _) => value as f64,
            Value::Float(value, _) => value,
        }
    }

    /// Whether a condition made of it holds.
    pub fn is_true(self) -> bool {
        self.as_f64() != 0.0
    }

    /// A number of a unit. It is an integer where that is exact.
    ///
    /// # Errors
    /// When the product does not fit.
    pub fn with_unit(self, unit: Unit, scale: f64) -> Result<Value, String> {
        if let Value::Int(value, _) = self
            && scale >= 1.0
        {
            let product = value.checked_mul(scale as i64);
            let product = product.ok_or_else(|| "this number is too large".to_owned())?;
            return Ok(Value::Int(product, unit));
        }
        let exact = self.as_f64() * scale;
        let rounded = exact.round();
        let is_whole = matches!(unit, Unit::Bytes | Unit::Time)
            && (exact - rounded).abs() <= 1e-9 * exact.abs().max(1.0)
            && rounded.abs() < 9e18;
        Ok(if is_whole {
            Value::Int(rounded as i64, unit)
        } else {
            Value::Float(exact, unit)
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value, _) => write!(f, "{value}")?,
            Value::Float(value, _) => write!(f, "{value}")?,
        }
        f.write_str(match self.unit() {
            Unit::None | Unit::Share => "",
            Unit::Bytes => " B",
            Unit::Time => " ns",
            Unit::Rate => " GB/s",
            Unit::Flops => " FLOP/s",
        })
    }
}

/// An operator that combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, of integers the whole part
    Div,
    /// `%`
    Rem,
    /// `**`
    Pow,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Combines two values.
///
/// # Errors
/// A sentence: overflow, a division by zero, units that do not go together.
pub fn combine(operator: Operator, left: Value, right: Value) -> Result<Value, String> {
    use Operator as O;
    let unit = match operator {
        O::And => return Ok(truth(left.is_true() && right.is_true())),
        O::Or => return Ok(truth(left.is_true() || right.is_true())),
        O::Eq | O::Ne | O::Lt | O::Le | O::Gt | O::Ge => {
            same_unit(left, right)?;
            return Ok(truth(compare(operator, left, right)));
        }
        O::Add | O::Sub | O::Rem => same_unit(left, right)?,
        O::Mul => match (left.unit(), right.unit()) {
            (Unit::None, unit) | (unit, Unit::None) => unit,
            (a, b) => return Err(format!("{a} times {b} is neither")),
        },
        O::Div => match (left.unit(), right.unit()) {
            (unit, Unit::None) => unit,
            (a, b) if a == b => Unit::None,
            (a, b) => return Err(format!("{a} cannot be divided by {b}")),
        },
        O::Pow if right.unit() == Unit::None && left.unit() == Unit::None => Unit::None,
        O::Pow => return Err("only plain numbers can be raised to a power".to_owned()),
    };
    match (left, right) {
        (Value::Int(a, _), Value::Int(b, _)) => {
            integers(operator, a, b).map(|v| Value::Int(v, unit))
        }
        _ => floats(operator, left.as_f64(), right.as_f64()).map(|v| Value::Float(v, unit)),
    }
}

pub(super) fn truth(holds: bool) -> Value {
    Value::Int(i64::from(holds), Unit::None)
}

/// The unit that both have; a plain number goes with any.
fn same_unit(left: Value, right: Value) -> Result<Unit, String> {
    match (left.unit(), right.unit()) {
        (a, b) if a == b => Ok(a),
        (Unit::None, unit) | (unit, Unit::None) => Ok(unit),
        (a, b) => Err(format!("{a} and {b} do not go together")),
    }
}

fn compare(operator: Operator, left: Value, right: Value) -> bool {
    let order = match (left, right) {
        (Value::Int(a, _), Value::Int(b, _)) => Some(a.cmp(&b)),
        _ => left.as_f64().partial_cmp(&right.as_f64()),
    };
    order.is_some_and(match operator {
        Operator::Eq => Ordering::is_eq,
        Operator::Ne => Ordering::is_ne,
        Operator::Lt => Ordering::is_lt,
        Operator::Le => Ordering::is_le,
        Operator::Gt => Ordering::is_gt,
        _ => Ordering::is_ge,
    })
}

fn integers(operator: Operator, a: i64, b: i64) -> Result<i64, String> {
    if matches!(operator, Operator::Div | Operator::Rem) && b == 0 {
        return Err("this divides by zero".to_owned());
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Sub => a.checked_sub(b),
        Operator::Mul => a.checked_mul(b),
        Operator::Div => a.checked_div(b),
        Operator::Rem => a.checked_rem(b),
        _ if b < 0 => return Err("a power below zero is not an integer".to_owned()),
        _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
    };
    result.ok_or_else(|| "this overflows a 64-bit integer".to_owned())
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<f64, String> {
    if matches!(operator, Operator::Div | Operator::Rem) && b == 0.0 {
        return Err("this divides by zero".to_owned());
    }
    let result = match operator {
        Operator::Add => a + b,
        Operator::Sub => a - b,
        Operator::Mul => a * b,
        Operator::Div => a / b,
        Operator::Rem => a % b,
        _ => a.powf(b),
    };
    let finite = Some(result).filter(|it| it.is_finite());
    finite.ok_or_else(|| "this is not a finite number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("500 MiB"), Some(500 << 20));
        assert_eq!(parse_bytes(" 1.5GB "), Some(1_500_000_000));
        assert_eq!(parse_bytes("4096"), Some(4096));
        for wrong in ["", "MiB", "-1 MiB", "5 ms", "1e9", "1 MiB more", "9e99 TB"] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }
}
