//! The colours of the roles: 24 bits, 256, and the terminal's own sixteen.

use ratatui::style::Color::{self, *};

use super::choice::Swatch;
use super::{CAUSE_COLORS, ColorLevel, KERNEL_COLORS, Role, Theme};

/// The colour of a role; `None` for the terminal's own. The second shade of a role, which tells
/// neighbours apart, is the darker one.
pub(super) fn color(theme: &Theme, role: Role, is_second: bool) -> Option<Color> {
    // On white the ground of idle time is a light tint of the cause's own colour.
    let is_tint = theme.choice.is_light && matches!(role, Role::Cause(_));
    let dark = shades(role)?[usize::from(is_second && !is_tint)];
    let (rgb, indexed, ansi) = theme.choice.swatch(role, is_second, dark);
    match theme.level {
        ColorLevel::None => None,
        ColorLevel::Ansi => Some(ansi),
        ColorLevel::Indexed => Some(Indexed(indexed)),
        ColorLevel::True => Some(Color::from_u32(rgb)),
    }
}

/// Both shades of a role: bars that stand back have two, too.
fn shades(role: Role) -> Option<&'static [Swatch; 2]> {
    Some(match role {
        Role::Text => return None,
        Role::Dim => &[(0x8a_8f_98, 245, DarkGray); 2],
        Role::Rule => &[(0x4b_50_59, 239, DarkGray), (0x3b_40_48, 237, DarkGray)],
        Role::Accent => &[(0x76_d0_9b, 79, LightGreen); 2],
        Role::Good => &[(0x76_d0_9b, 79, LightGreen); 2],
        Role::Warning => &[(0xe8_b8_4a, 179, Yellow); 2],
        Role::Bad => &[(0xf0_6a_6a, 203, LightRed); 2],
        Role::H2D => &[(0x5b_a7_f0, 75, LightBlue), (0x47_86_c4, 68, Blue)],
        Role::D2H => &[(0xc0_8c_f0, 141, LightMagenta), (0x9b_6d_c6, 98, Magenta)],
        Role::D2D => &[(0x58_c7_c2, 80, Cyan), (0x43_9d_99, 73, LightCyan)],
        Role::P2P => &[(0xf0_8c_b8, 211, Magenta), (0xc4_6d_93, 168, LightMagenta)],
        Role::Memset => &[(0x9a_a5_b5, 247, Gray), (0x7b_85_93, 243, White)],
        // Kernels are warm, copies cool, what is good is green.
        Role::Kernel(i) => match i % KERNEL_COLORS {
            0 => &[(0xa8_d6_72, 149, LightYellow), (0x86_ad_58, 107, Yellow)],
            1 => &[(0xe0_c0_5c, 179, LightYellow), (0xb4_99_45, 136, Yellow)],
            2 => &[(0xf0_9a_5c, 209, Yellow), (0xc4_79_42, 173, LightYellow)],
            3 => &[(0xf5_b9_71, 215, Yellow), (0xc8_93_53, 172, LightYellow)],
            4 => &[(0xc4_d0_58, 185, LightYellow), (0x9c_a6_41, 143, Yellow)],
            _ => &[(0xe8_8f_7a, 174, LightRed), (0xbd_70_5e, 131, Red)],
        },
        Role::Overlap => &[(0x6f_d6_a8, 79, LightGreen); 2],
        Role::Host => &[(0x8f_9b_b3, 103, Gray), (0x73_7d_92, 66, White)],
        Role::Wait => &[(0xb8_6b_74, 132, Red), (0x94_52_5a, 95, LightRed)],
        Role::Range => &[(0x7a_9c_c8, 110, Cyan), (0x5f_7d_a4, 67, LightCyan)],
        Role::Op => &[(0x8f_ae_86, 108, Green), (0x71_8b_6a, 65, LightGreen)],
        Role::Python => &[(0x8a_90_d8, 104, Blue), (0x6c_71_b3, 61, LightBlue)],
        // Darker than what runs. The second one is the ground of idle time: dim, and yet no black.
        Role::Cause(i) => match i % CAUSE_COLORS {
            0 => &[(0x9a_55_1f, 130, Yellow), (0x52_2d_11, 94, Yellow)],
            1 => &[(0x7d_77_1c, 100, Cyan), (0x3f_3c_0e, 58, Cyan)],
            2 => &[(0xb0_34_44, 124, Red), (0x5a_1b_23, 52, Red)],
            3 => &[(0x85_55_ad, 97, Magenta), (0x43_2b_57, 53, Magenta)],
            4 => &[(0x2f_6d_a8, 25, Blue), (0x19_39_58, 17, Blue)],
            5 => &[
                (0x9c_4a_80, 132, LightMagenta),
                (0x4e_25_40, 89, LightMagenta),
            ],
            6 => &[(0x2f_80_78, 30, Cyan), (0x18_42_3e, 23, Cyan)],
            _ => &[(0x6b_72_7e, 243, DarkGray), (0x33_36_3c, 237, DarkGray)],
        },
        Role::Selected => &[(0xff_ff_ff, 231, White); 2],
    })
}
