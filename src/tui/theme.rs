//! Colours and glyphs: the one place that knows which terminal can show what.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorLevel {
    /// None, or NO_COLOR is set: attributes only.
    None,
    /// The 16 colours of the terminal's own palette.
    Ansi,
    /// 256.
    #[default]
    Indexed,
    /// 24 bits.
    True,
}

impl ColorLevel {
    /// What the environment says, by the conventions NO_COLOR, COLORTERM and TERM.
    ///
    /// tmux shows 256 unless told otherwise, whatever COLORTERM it inherited.
    #[must_use]
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|v| !v.is_empty());
        let term = variable("TERM").unwrap_or_default();
        if is_set("NO_COLOR") || term == "dumb" {
            return ColorLevel::None;
        }
        let truecolor = variable("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
        let known = [
            "kitty",
            "ghostty",
            "wezterm",
            "foot",
            "alacritty",
            "-direct",
        ];
        if is_set("TMUX") || term.starts_with("screen") || term.starts_with("tmux") {
            return ColorLevel::Indexed;
        }
        if truecolor || known.iter().any(|name| term.contains(name)) {
            ColorLevel::True
        } else if term.contains("256color") {
            ColorLevel::Indexed
        } else {
            ColorLevel::Ansi
        }
    }
}

/// What a colour stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Ordinary text.
    #[default]
    Text,
    /// Text of less weight.
    Dim,
    /// Rules and ticks.
    Rule,
    /// The program's own name, keys, what is active.
    Accent,
    /// Well.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong, lost.
    Bad,
    /// H2D copies.
    H2D,
    /// D2H copies.
    D2H,
    /// D2D and other copies.
    D2D,
    /// P2P copies.
    P2P,
    Memset,
    /// Kernels, by a number made from the name.
    Kernel(u8),
    /// Overlap of copies and kernels.
    Overlap,
    /// Host calls.
    Host,
    /// Host calls that wait for the GPU.
    Wait,
    /// Phases and NVTX ranges.
    Range,
    /// What is selected.
    Selected,
}

/// Colours that kernels are told apart by.
pub const KERNEL_COLORS: u8 = 6;

/// Colours and glyphs for one terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theme {
    /// Colours.
    pub level: ColorLevel,
    /// Whether only ASCII may be shown.
    pub is_ascii: bool,
}

impl Theme {
    /// The colour of a role; `None` for the terminal's own.
    fn color(&self, role: Role) -> Option<Color> {
        // 24 bits, 256, 16.
        let (rgb, indexed, ansi) = match role {
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
            Role::Selected => (0xff_ff_ff, 231, Color::White),
        };
        match self.level {
            ColorLevel::None => None,
            ColorLevel::Ansi => Some(ansi),
            ColorLevel::Indexed => Some(Color::Indexed(indexed)),
            ColorLevel::True => Some(Color::from_u32(rgb)),
        }
    }

    /// Text or a block in the role's colour.
    #[must_use]
    pub fn fg(&self, role: Role) -> Style {
        match (self.color(role), role) {
            (Some(color), _) => Style::new().fg(color),
            (None, Role::Dim | Role::Rule) => Style::new().add_modifier(Modifier::DIM),
            (None, Role::Bad | Role::Accent | Role::Selected) => {
                Style::new().add_modifier(Modifier::BOLD)
            }
            (None, _) => Style::new(),
        }
    }

    /// Text on the role's colour, as in a box on a lane.
    #[must_use]
    pub fn on(&self, role: Role) -> Style {
        match self.color(role) {
            Some(color) => Style::new().fg(self.ink()).bg(color),
            None => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// Bold text in the role's colour.
    #[must_use]
    pub fn bold(&self, role: Role) -> Style {
        self.fg(role).add_modifier(Modifier::BOLD)
    }

    /// Dark text that is readable on every role's colour.
    fn ink(&self) -> Color {
        match self.level {
            ColorLevel::True => Color::from_u32(0x10_14_18),
            ColorLevel::Indexed => Color::Indexed(233),
            _ => Color::Black,
        }
    }

    /// A block whose height is `eighths` of a cell, from 0 to 8.
    #[must_use]
    pub fn block(&self, eighths: u8) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', '-', '=', '+', '*', '#'];
        let table = if self.is_ascii { &ASCII } else { &BLOCKS };
        table[usize::from(eighths.min(8))]
    }

    /// The left and the right edge of a box.
    #[must_use]
    pub fn edges(&self) -> (char, char) {
        if self.is_ascii {
            ('[', ']')
        } else {
            ('▐', '▌')
        }
    }

    /// What frames the name of a gap.
    #[must_use]
    pub fn gap_marks(&self) -> (char, char) {
        if self.is_ascii {
            ('<', '>')
        } else {
            ('‹', '›')
        }
    }

    /// A character, or what stands for it in ASCII.
    #[must_use]
    pub fn glyph(&self, unicode: char) -> char {
        if !self.is_ascii || unicode.is_ascii() {
            return unicode;
        }
        match unicode {
            '─' => '-',
            '│' | '╷' => '|',
            '●' => '*',
            '‖' => '=',
            '■' | '✓' => '+',
            '▾' => 'v',
            '✗' => 'x',
            '▸' | '›' | '→' => '>',
            '…' => '~',
            '·' => '.',
            '⚠' => '!',
            '×' => 'x',
            'µ' => 'u',
            '◆' => 'o',
            '╭' | '╮' | '╰' | '╯' | '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┼' => {
                '+'
            }
            '█' => '#',
            '≥' => '>',
            '≤' => '<',
            '−' => '-',
            _ => '?',
        }
    }

    /// How much of a cell `share` (0 to 1) fills, in eighths: nothing only for nothing, all only for
    /// nearly all, so that neither a rare touch nor a rare gap is hidden.
    #[must_use]
    pub fn eighths(share: f64) -> u8 {
        Theme::levels(share, 8)
    }

    /// The same for a height of `full` eighths.
    #[must_use]
    pub fn levels(share: f64, full: u8) -> u8 {
        if share.is_nan() || share <= 0.0 || full == 0 {
            return 0;
        }
        if share >= 0.97 {
            return full;
        }
        ((share * f64::from(full)).round() as u8).clamp(1, (full - 1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(vars: &[(&str, &str)]) -> ColorLevel {
        ColorLevel::detect(|name| {
            vars.iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        })
    }

    #[test]
    fn the_environment_decides_the_colours() {
        assert_eq!(level(&[("TERM", "xterm-256color")]), ColorLevel::Indexed);
        assert_eq!(level(&[("TERM", "xterm-kitty")]), ColorLevel::True);
        assert_eq!(level(&[("TERM", "xterm")]), ColorLevel::Ansi);
        assert_eq!(level(&[("TERM", "dumb")]), ColorLevel::None);
        let tmux = [
            ("TERM", "tmux-256color"),
            ("TMUX", "/x"),
            ("COLORTERM", "truecolor"),
        ];
        assert_eq!(level(&tmux), ColorLevel::Indexed);
        let none = [("TERM", "xterm-kitty"), ("NO_COLOR", "1")];
        assert_eq!(level(&none), ColorLevel::None);
        assert_eq!(
            level(&[("TERM", "xterm-kitty"), ("NO_COLOR", "")]),
            ColorLevel::True
        );
    }

    #[test]
    fn without_colours_no_style_has_one() {
        let theme = Theme {
            level: ColorLevel::None,
            is_ascii: false,
        };
        for role in [
            Role::H2D,
            Role::Bad,
            Role::Dim,
            Role::Kernel(3),
            Role::Selected,
        ] {
            for style in [theme.fg(role), theme.on(role), theme.bold(role)] {
                assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
            }
        }
    }

    #[test]
    fn ascii_is_ascii() {
        let theme = Theme {
            level: ColorLevel::None,
            is_ascii: true,
        };
        for c in "─│●‖▸…·⚠×µ╭╯█≥ü".chars() {
            assert!(theme.glyph(c).is_ascii());
        }
        assert!((0..=8).all(|i| theme.block(i).is_ascii()));
    }

    #[test]
    fn one_touch_is_never_a_full_block_and_never_nothing() {
        assert_eq!(Theme::eighths(0.0), 0);
        assert_eq!(Theme::eighths(0.001), 1);
        assert_eq!(Theme::eighths(0.5), 4);
        assert_eq!(Theme::eighths(0.95), 7);
        assert_eq!(Theme::eighths(1.0), 8);
    }
}
