//! Which colours stand for the roles: for dark and for light backgrounds, and for eyes that do not tell red from green.

use ratatui::style::Color;

use super::{KERNEL_COLORS, Role};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThemeChoice {
    /// For a light background: every colour is dark enough to be seen on white.
    pub is_light: bool,
    /// Hues that stay apart without red or green (after Okabe and Ito).
    pub is_color_blind: bool,
}

/// A colour as 24 bits, one of 256, and one of 16.
pub(super) type Swatch = (u32, u8, Color);

impl ThemeChoice {
    /// What stands for a shade of `role`, whose colour on a dark background is `dark`.
    pub(super) fn swatch(self, role: Role, is_second: bool, dark: Swatch) -> Swatch {
        let hue = self.is_color_blind.then(|| color_blind(role)).flatten();
        let (rgb, indexed, ansi) = match hue {
            Some((rgb, _)) if is_second => {
                let rgb = darker(rgb, SECOND);
                (rgb, nearest(rgb), dark.2)
            }
            Some((rgb, ansi)) => (rgb, nearest(rgb), ansi),
            None => dark,
        };
        if !self.is_light {
            return (rgb, indexed, ansi);
        }
        let rgb = on_white(role, is_second, rgb);
        (rgb, nearest(rgb), sixteen_on_white(ansi))
    }

    /// Whether text on a block of this colour is better light than dark.
    pub(super) fn wants_light_ink(&self, rgb: u32) -> bool {
        *self != ThemeChoice::default() && contrast(rgb, 0xff_ff_ff) > contrast(rgb, 0x10_14_18)
    }
}

/// Hues of Okabe and Ito's palette (<https://jfly.uni-koeln.de/color/>), and lighter and darker ones of them.
fn color_blind(role: Role) -> Option<(u32, Color)> {
    Some(match role {
        Role::Accent | Role::Good | Role::Overlap => (0x2c_c5_a0, Color::LightCyan),
        Role::Warning => (0xf0_e4_42, Color::LightYellow),
        Role::Bad => (0xe8_6a_10, Color::LightRed),
        Role::H2D => (0x56_b4_e9, Color::LightBlue),
        Role::D2H => (0xcc_79_a7, Color::LightMagenta),
        Role::D2D => (0x00_9e_73, Color::Cyan),
        Role::P2P => (0x3b_82_d0, Color::Blue),
        Role::Kernel(i) => match i % KERNEL_COLORS {
            0 => (0xe6_9f_00, Color::Yellow),
            1 => (0xf7_ee_8c, Color::LightYellow),
            2 => (0xb8_7a_00, Color::Yellow),
            3 => (0xff_cf_70, Color::LightYellow),
            4 => (0xd4_c4_1c, Color::Yellow),
            _ => (0xff_e9_c4, Color::LightYellow),
        },
        Role::Wait => (0xc0_54_00, Color::Red),
        // Blue is P2P's here.
        Role::Python => (0x8a_90_d8, Color::Magenta),
        _ => return None,
    })
}

/// A colour darkened until it is seen on white: text at 4.5 : 1, rules at 1.6 : 1, all else at 3 : 1 (WCAG 2.2).
fn on_white(role: Role, is_second: bool, rgb: u32) -> u32 {
    let wanted = match role {
        // Ground that text stands on.
        Role::Cause(_) if is_second => return lighter(rgb, GROUND),
        Role::Dim | Role::Selected | Role::Warning | Role::Bad | Role::Good | Role::Accent => 4.5,
        Role::Rule => return 0xb4_ba_c2,
        _ => 3.0,
    };
    let mut parts = (0..=100).rev().map(|part| darker(rgb, part));
    parts
        .find(|&rgb| contrast(rgb, 0xff_ff_ff) >= wanted)
        .unwrap_or_default()
}

/// Parts in a hundred of a colour's light that its second shade has.
const SECOND: u32 = 80;

/// Parts in a hundred of the way to white of the ground of idle time.
const GROUND: u32 = 62;

/// A colour so many parts in a hundred of the way to white.
fn lighter(rgb: u32, parts: u32) -> u32 {
    !darker(!rgb & 0xff_ff_ff, 100 - parts) & 0xff_ff_ff
}

/// A colour with so many parts in a hundred of its light.
fn darker(rgb: u32, parts: u32) -> u32 {
    let channel = |shift: u32| ((rgb >> shift) & 0xff) * parts / 100;
    channel(16) << 16 | channel(8) << 8 | channel(0)
}

/// The light half of the sixteen is made for black.
fn sixteen_on_white(color: Color) -> Color {
    match color {
        Color::White => Color::Black,
        Color::Gray => Color::DarkGray,
        Color::LightRed => Color::Red,
        Color::LightGreen => Color::Green,
        Color::LightYellow => Color::Yellow,
        Color::LightBlue => Color::Blue,
        Color::LightMagenta => Color::Magenta,
        Color::LightCyan => Color::Cyan,
        other => other,
    }
}

/// The one of the 256 colours (of their cube and their greys; the first 16 are the terminal's) that is nearest.
fn nearest(rgb: u32) -> u8 {
    const STEPS: [u32; 6] = [0, 95, 135, 175, 215, 255];
    let channels = [(rgb >> 16) & 0xff, (rgb >> 8) & 0xff, rgb & 0xff];
    let distance = |of: [u32; 3]| -> u32 {
        let pairs = of.iter().zip(&channels);
        pairs.map(|(a, b)| a.abs_diff(*b).pow(2)).sum()
    };
    let cube = (0..216).map(|i: usize| {
        let of = [STEPS[i / 36], STEPS[i / 6 % 6], STEPS[i % 6]];
        (distance(of), 16 + i as u8)
    });
    let greys = (0..24).map(|i: u8| (distance([8 + 10 * u32::from(i); 3]), 232 + i));
    cube.chain(greys).min().map_or(15, |(_, index)| index)
}

/// How far two colours stand apart in lightness: 1 to 21 (WCAG 2.2, relative luminance).
fn contrast(a: u32, b: u32) -> f64 {
    let luminance = |rgb: u32| {
        let linear = |shift: u32| {
            let c = f64::from((rgb >> shift) & 0xff) / 255.0;
            match c <= 0.040_45 {
                true => c / 12.92,
                false => ((c + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0)
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::super::{ColorLevel, Theme};
    use super::*;

    fn rgb(theme: &Theme, role: Role) -> u32 {
        match theme.fg(role).fg {
            Some(Color::Rgb(r, g, b)) => u32::from_be_bytes([0, r, g, b]),
            other => panic!("{role:?}: {other:?}"),
        }
    }

    fn theme(is_light: bool, is_color_blind: bool) -> Theme {
        let choice = ThemeChoice {
            is_light,
            is_color_blind,
        };
        Theme {
            level: ColorLevel::True,
            choice,
            ..Theme::default()
        }
    }

    const SHOWN: [Role; 18] = [
        Role::Dim,
        Role::Accent,
        Role::Good,
        Role::Warning,
        Role::Bad,
        Role::H2D,
        Role::D2H,
        Role::D2D,
        Role::P2P,
        Role::Memset,
        Role::Kernel(0),
        Role::Kernel(5),
        Role::Overlap,
        Role::Host,
        Role::Wait,
        Role::Op,
        Role::Python,
        Role::Selected,
    ];

    #[test]
    fn contrast_is_that_of_the_standard() {
        // Worked values of WCAG's own examples: black on white, and #767676, the lightest grey that passes 4.5.
        assert!((contrast(0, 0xff_ff_ff) - 21.0).abs() < 1e-9);
        assert!((4.5..4.6).contains(&contrast(0x76_76_76, 0xff_ff_ff)));
        assert!(contrast(0x77_77_77, 0xff_ff_ff) < 4.5);
    }

    #[test]
    fn everything_is_seen_on_its_background_and_text_on_everything() {
        for (is_light, paper) in [(false, 0x0d_11_17), (true, 0xff_ff_ff)] {
            for is_color_blind in [false, true] {
                let theme = theme(is_light, is_color_blind);
                for role in SHOWN {
                    let of = rgb(&theme, role);
                    let seen = contrast(of, paper);
                    assert!(
                        seen >= 2.99,
                        "{role:?} {of:06x} {is_light} {is_color_blind}: {seen}"
                    );
                    let ink = match theme.bg(role).fg {
                        Some(Color::Rgb(r, g, b)) => u32::from_be_bytes([0, r, g, b]),
                        other => panic!("{other:?}"),
                    };
                    assert!(contrast(ink, of) >= 3.0, "text on {role:?} {of:06x}");
                }
            }
        }
    }

    /// What a deuteranope sees of a colour (Viénot, Brettel and Mollon 1999), linear RGB.
    fn without_green(rgb: u32) -> [f64; 3] {
        let linear = |shift: u32| (f64::from((rgb >> shift) & 0xff) / 255.0).powf(2.2);
        let [r, g, b] = [linear(16), linear(8), linear(0)];
        [
            0.292_75 * r + 0.707_25 * g,
            0.292_75 * r + 0.707_25 * g,
            -0.022_34 * r + 0.022_34 * g + b,
        ]
    }

    #[test]
    fn the_color_blind_palette_keeps_apart_what_must_not_be_confused() {
        let apart = |theme: &Theme, a: Role, b: Role| -> f64 {
            let (a, b) = (without_green(rgb(theme, a)), without_green(rgb(theme, b)));
            let squares = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2));
            squares.sum::<f64>().sqrt()
        };
        let theme = theme(false, true);
        for (a, b) in [
            (Role::Good, Role::Bad),
            (Role::H2D, Role::D2H),
            (Role::H2D, Role::Kernel(0)),
            (Role::D2H, Role::Kernel(0)),
            (Role::Overlap, Role::Kernel(0)),
            (Role::Wait, Role::Host),
            (Role::Op, Role::Kernel(0)),
            (Role::Op, Role::Python),
        ] {
            let distance = apart(&theme, a, b);
            assert!(distance > 0.15, "{a:?} and {b:?}: {distance}");
        }
    }

    /// CPU ops, Python functions, calls, ranges and what runs on the GPU lie under each other.
    #[test]
    fn lanes_of_the_host_have_colours_of_their_own() {
        let kernels = (0..KERNEL_COLORS).map(Role::Kernel);
        let others = [Role::H2D, Role::D2H, Role::D2D, Role::P2P, Role::Overlap];
        for level in [ColorLevel::True, ColorLevel::Indexed, ColorLevel::Ansi] {
            for (is_light, is_color_blind) in [(false, false), (true, false), (false, true)] {
                let theme = Theme {
                    level,
                    ..theme(is_light, is_color_blind)
                };
                // On white half of the sixteen cannot be seen: copies and second shades share theirs there.
                let is_scarce = is_light && level == ColorLevel::Ansi;
                let others = others.into_iter().filter(|_| !is_scarce);
                for own in [Role::Op, Role::Python] {
                    let different = [Role::Op, Role::Python, Role::Range, Role::Host, Role::Wait];
                    for other in different
                        .into_iter()
                        .chain(kernels.clone())
                        .chain(others.clone())
                    {
                        let is_same = theme.fg(own).fg == theme.fg(other).fg;
                        assert_eq!(is_same, own == other, "{own:?} {other:?} {level:?}");
                    }
                    // Neighbours are told apart.
                    let is_same = theme.ink_of(own, false) == theme.ink_of(own, true);
                    assert_eq!(is_same, is_scarce, "{own:?} {level:?}");
                }
            }
        }
    }
}
