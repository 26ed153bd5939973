//! The colours of the roles: 24 bits, 256, and the terminal's own sixteen.

use ratatui::style::Color;

use super::choice::Swatch;
use super::{CAUSE_COLORS, ColorLevel, KERNEL_COLORS, Role, Theme};

/// The colour of a role; `None` for the terminal's own. The second shade of a role, which tells
/// neighbours apart, is the darker one.
pub(super) fn color(theme: &Theme, role: Role, is_second: bool) -> Option<Color> {
    let dark = if is_second { second(role) } else { first(role) };
    let (rgb, indexed, ansi) = theme.choice.swatch(role, is_second, dark?);
    match theme.level {
        ColorLevel::None => None,
        ColorLevel::Ansi => Some(ansi),
        ColorLevel::Indexed => Some(Color::Indexed(indexed)),
        ColorLevel::True => Some(Color::from_u32(rgb)),
    }
}

fn first(role: Role) -> Option<Swatch> {
    Some(match role {
        Role::Text => return None,
        Role::Dim => (0x8a_8f_98, 245, Color::DarkGray),
        Role::Rule => (0x4b_50_59, 239, Color::DarkGray),
        Role::Accent => (0x76_d0_9b, 79, Color::LightGreen),
        Role::Good => (0x76_d0_9b, 79, Color::LightGreen),
        Role::Warning => (0xe8_b8_4a, 179, Color::Yellow),
        Role::Bad => (0xf0_6a_6a, 203, Color::LightRed),
        Role::H2D => (0x5b_a7_f0, 75, Color::LightBlue),
        Role::D2H => (0xc0_8c_f0, 141, Color::LightMagenta),
        Role::D2D => (0x58_c7_c2, 80, Color::Cyan),
        Role::P2P => (0xf0_8c_b8, 211, Color::Magenta),
        Role::Memset => (0x9a_a5_b5, 247, Color::Gray),
        // Kernels are warm, copies cool, what is good is green.
        Role::Kernel(i) => match i % KERNEL_COLORS {
            0 => (0xa8_d6_72, 149, Color::LightYellow),
            1 => (0xe0_c0_5c, 179, Color::LightYellow),
            2 => (0xf0_9a_5c, 209, Color::Yellow),
            3 => (0xf5_b9_71, 215, Color::Yellow),
            4 => (0xc4_d0_58, 185, Color::LightYellow),
            _ => (0xe8_8f_7a, 174, Color::LightRed),
        },
        Role::Overlap => (0x6f_d6_a8, 79, Color::LightGreen),
        Role::Host => (0x8f_9b_b3, 103, Color::Gray),
        Role::Wait => (0xb8_6b_74, 132, Color::Red),
        Role::Range => (0x7a_9c_c8, 110, Color::Cyan),
        Role::Op => (0x8f_ae_86, 108, Color::Green),
        Role::Python => (0x8a_90_d8, 104, Color::Blue),
        // Darker than what runs, and each another than black.
        Role::Cause(i) => match i % CAUSE_COLORS {
            0 => (0x9a_55_1f, 130, Color::Yellow),
            1 => (0x7d_77_1c, 100, Color::Cyan),
            2 => (0x8c_2f_3c, 88, Color::Red),
            3 => (0x6a_40_8c, 54, Color::Magenta),
            4 => (0x2c_5f_8a, 24, Color::Blue),
            5 => (0x2b_63_5e, 23, Color::Cyan),
            _ => (0x55_5b_66, 240, Color::DarkGray),
        },
        Role::Selected => (0xff_ff_ff, 231, Color::White),
    })
}

fn second(role: Role) -> Option<Swatch> {
    Some(match role {
        // Bars that stand back have two shades too.
        Role::Rule => (0x3b_40_48, 237, Color::DarkGray),
        Role::H2D => (0x47_86_c4, 68, Color::Blue),
        Role::D2H => (0x9b_6d_c6, 98, Color::Magenta),
        Role::D2D => (0x43_9d_99, 73, Color::LightCyan),
        Role::P2P => (0xc4_6d_93, 168, Color::LightMagenta),
        Role::Memset => (0x7b_85_93, 243, Color::White),
        Role::Kernel(i) => match i % KERNEL_COLORS {
            0 => (0x86_ad_58, 107, Color::Yellow),
            1 => (0xb4_99_45, 136, Color::Yellow),
            2 => (0xc4_79_42, 173, Color::LightYellow),
            3 => (0xc8_93_53, 172, Color::LightYellow),
            4 => (0x9c_a6_41, 143, Color::Yellow),
            _ => (0xbd_70_5e, 131, Color::Red),
        },
        Role::Host => (0x73_7d_92, 66, Color::White),
        Role::Wait => (0x94_52_5a, 95, Color::LightRed),
        Role::Range => (0x5f_7d_a4, 67, Color::LightCyan),
        Role::Op => (0x71_8b_6a, 65, Color::LightGreen),
        Role::Python => (0x6c_71_b3, 61, Color::LightBlue),
        other => return first(other),
    })
}
