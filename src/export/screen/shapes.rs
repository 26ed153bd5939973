//! Symbols that are drawn as rectangles, not taken from a font: blocks, lines, braille.
//!
//! They must meet at the borders of cells, which no font does at every size, and fonts lack many of
//! them. A shape is given in a cell of 1 by 1; line widths are given as shares of the cell's width.

/// A rectangle in a cell of 1 by 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
    /// How much of what is behind it hides: less than 1 for shades.
    pub(super) opacity: f32,
}

/// A cell is so many times as high as wide, in pictures of either kind.
pub(super) const ASPECT: f32 = 2.2;

const fn rect(left: f32, top: f32, right: f32, bottom: f32) -> Rect {
    Rect {
        left,
        top,
        right,
        bottom,
        opacity: 1.0,
    }
}

/// The rectangles of a symbol; `None` when it is one for the font.
pub(super) fn find(symbol: &str) -> Option<Vec<Rect>> {
    let mut chars = symbol.chars();
    let (Some(c), None) = (chars.next(), chars.next()) else {
        return None;
    };
    match c {
        '\u{2500}'..='\u{257f}' => lines(c),
        '\u{2580}'..='\u{259f}' => Some(blocks(c)),
        '\u{2800}'..='\u{28ff}' => Some(braille(c)),
        // The double bar that marks a pause; the font lacks it.
        '\u{2016}' => Some(vec![
            rect(0.28, 0.2, 0.42, 0.75),
            rect(0.58, 0.2, 0.72, 0.75),
        ]),
        _ => None,
    }
}

fn blocks(c: char) -> Vec<Rect> {
    let eighths = |n: u32| n as f32 / 8.0;
    let code = c as u32;
    let quadrants = |bits: u8| {
        let all = [
            rect(0.0, 0.0, 0.5, 0.5),
            rect(0.5, 0.0, 1.0, 0.5),
            rect(0.0, 0.5, 0.5, 1.0),
            rect(0.5, 0.5, 1.0, 1.0),
        ];
        (0..4)
            .filter(|i| bits >> i & 1 == 1)
            .map(|i| all[i])
            .collect()
    };
    match code {
        0x2580 => vec![rect(0.0, 0.0, 1.0, 0.5)],
        0x2581..=0x2588 => vec![rect(0.0, 1.0 - eighths(code - 0x2580), 1.0, 1.0)],
        0x2589..=0x258f => vec![rect(0.0, 0.0, 1.0 - eighths(code - 0x2588), 1.0)],
        0x2590 => vec![rect(0.5, 0.0, 1.0, 1.0)],
        0x2591..=0x2593 => vec![Rect {
            opacity: (code - 0x2590) as f32 / 4.0,
            ..rect(0.0, 0.0, 1.0, 1.0)
        }],
        0x2594 => vec![rect(0.0, 0.0, 1.0, 0.125)],
        0x2595 => vec![rect(0.875, 0.0, 1.0, 1.0)],
        // One bit a quadrant: upper left, upper right, lower left, lower right.
        _ => quadrants([4, 8, 1, 13, 9, 7, 11, 2, 6, 14][(code - 0x2596) as usize]),
    }
}

/// Two bits an arm, from the lowest: up, right, down, left; 1 light, 2 heavy, 3 double. In the order
/// of Unicode's names ("BOX DRAWINGS LIGHT DOWN AND HEAVY RIGHT"); diagonals have none.
const ARMS: [u8; 128] = [
    0x44, 0x88, 0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x14, 0x18, 0x24, 0x28,
    0x50, 0x90, 0x60, 0xa0, 0x05, 0x09, 0x06, 0x0a, 0x41, 0x81, 0x42, 0x82, 0x15, 0x19, 0x16, 0x25,
    0x26, 0x1a, 0x29, 0x2a, 0x51, 0x91, 0x52, 0x61, 0x62, 0x92, 0xa1, 0xa2, 0x54, 0x94, 0x58, 0x98,
    0x64, 0xa4, 0x68, 0xa8, 0x45, 0x85, 0x49, 0x89, 0x46, 0x86, 0x4a, 0x8a, 0x55, 0x95, 0x59, 0x99,
    0x56, 0x65, 0x66, 0x96, 0x5a, 0xa5, 0x69, 0x9a, 0xa9, 0xa6, 0x6a, 0xaa, 0x44, 0x88, 0x11, 0x22,
    0xcc, 0x33, 0x1c, 0x34, 0x3c, 0xd0, 0x70, 0xf0, 0x0d, 0x07, 0x0f, 0xc1, 0x43, 0xc3, 0x1d, 0x37,
    0x3f, 0xd1, 0x73, 0xf3, 0xdc, 0x74, 0xfc, 0xcd, 0x47, 0xcf, 0xdd, 0x77, 0xff, 0x14, 0x50, 0x41,
    0x05, 0x00, 0x00, 0x00, 0x40, 0x01, 0x04, 0x10, 0x80, 0x02, 0x08, 0x20, 0x48, 0x21, 0x84, 0x12,
];

/// Width of a light line, as a share of the cell's width.
const LINE: f32 = 0.12;

fn lines(c: char) -> Option<Vec<Rect>> {
    let arms = *ARMS.get((c as u32 - 0x2500) as usize)?;
    if arms == 0 {
        return None;
    }
    // Half the width of each; a double line is drawn as a heavy one.
    let half = |arm: u32| f32::from((arms >> (2 * arm) & 3).min(2)) * LINE / 2.0;
    let [up, right, down, left] = [0, 1, 2, 3].map(half);
    // Arms reach as far as the thickest of the lines that they meet, so that corners are closed.
    let across = up.max(down).max(LINE / 2.0);
    let along = left.max(right).max(LINE / 2.0) / ASPECT;
    let upright = |half: f32, from, to| rect(0.5 - half, from, 0.5 + half, to);
    let level = |half: f32, from, to| rect(from, 0.5 - half / ASPECT, to, 0.5 + half / ASPECT);
    let arms = [
        (up, upright(up, 0.0, 0.5 + along)),
        (down, upright(down, 0.5 - along, 1.0)),
        (left, level(left, 0.0, 0.5 + across)),
        (right, level(right, 0.5 - across, 1.0)),
    ];
    let drawn = arms.into_iter().filter(|(half, _)| *half > 0.0);
    Some(drawn.map(|(_, rect)| rect).collect())
}

fn braille(c: char) -> Vec<Rect> {
    let bits = c as u32 - 0x2800;
    // Bits 0 to 2 are the left column's upper dots, 3 to 5 the right one's, 6 and 7 the lowest row.
    let dot = |bit: u8| {
        let (column, line) = if bit < 6 {
            (bit / 3, bit % 3)
        } else {
            (bit - 6, 3)
        };
        let (x, y) = (
            0.25 + 0.5 * f32::from(column),
            0.125 + 0.25 * f32::from(line),
        );
        rect(x - 0.14, y - 0.14 / ASPECT, x + 0.14, y + 0.14 / ASPECT)
    };
    (0..8).filter(|i| bits >> i & 1 == 1).map(dot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(symbol: &str) -> f32 {
        find(symbol)
            .expect("a shape")
            .iter()
            .map(|r| (r.right - r.left) * (r.bottom - r.top) * r.opacity)
            .sum()
    }

    #[test]
    fn blocks_cover_what_their_names_say() {
        let eighths = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
        for (n, symbol) in (1u8..).zip(eighths) {
            assert_eq!(area(symbol), f32::from(n) / 8.0, "{symbol}");
        }
        for (symbol, share) in [
            ("▏", 0.125),
            ("▉", 0.875),
            ("▌", 0.5),
            ("▐", 0.5),
            ("▀", 0.5),
            ("░", 0.25),
            ("▓", 0.75),
        ] {
            assert_eq!(area(symbol), share, "{symbol}");
        }
        for (symbol, quarters) in [("▖", 1.0), ("▚", 2.0), ("▟", 3.0), ("▙", 3.0), ("▜", 3.0)]
        {
            assert_eq!(area(symbol), quarters / 4.0, "{symbol}");
        }
        // Quadrant upper left and lower left and lower right.
        let parts = find("▙").expect("a shape");
        assert!(
            parts.contains(&rect(0.0, 0.0, 0.5, 0.5)) && !parts.contains(&rect(0.5, 0.0, 1.0, 0.5))
        );
    }

    #[test]
    fn lines_reach_the_borders_that_their_names_say() {
        // Up, right, down, left.
        let cases = [
            ("─", [false, true, false, true]),
            ("│", [true, false, true, false]),
            ("╭", [false, true, true, false]),
            ("┘", [true, false, false, true]),
            ("├", [true, true, true, false]),
            ("╋", [true, true, true, true]),
            ("╗", [false, false, true, true]),
            ("╷", [false, false, true, false]),
        ];
        for (symbol, arms) in cases {
            let rects = find(symbol).expect("a shape");
            let reaches = [
                rects.iter().any(|r| r.top == 0.0),
                rects.iter().any(|r| r.right == 1.0),
                rects.iter().any(|r| r.bottom == 1.0),
                rects.iter().any(|r| r.left == 0.0),
            ];
            assert_eq!(reaches, arms, "{symbol}");
        }
        assert!(find("╱").is_none());
    }

    #[test]
    fn every_shape_stays_in_its_cell() {
        for code in (0x2500..=0x259f).chain(0x2800..=0x28ff) {
            let symbol = char::from_u32(code).expect("a character").to_string();
            for r in find(&symbol).unwrap_or_default() {
                assert!(
                    r.left >= 0.0 && r.top >= 0.0 && r.right <= 1.0 && r.bottom <= 1.0,
                    "{symbol} {r:?}"
                );
                assert!(r.left < r.right && r.top < r.bottom, "{symbol} {r:?}");
            }
        }
        assert_eq!(find("⣿").expect("a shape").len(), 8);
        assert!(find("a").is_none() && find("").is_none() && find("──").is_none());
    }
}
