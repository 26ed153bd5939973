//! Colours and glyphs: the one place that knows which terminal can show what.

mod choice;
mod palette;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier, Style};

pub use choice::ThemeChoice;

/// How many colours the terminal has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|v| !v.is_empty());
        let term = variable("TERM").unwrap_or_default();
        if is_set("NO_COLOR") || term == "dumb" {
            return ColorLevel::None;
        }
        let truecolor = variable("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
        let known = "kitty ghostty wezterm foot alacritty -direct";
        if is_set("TMUX") || term.starts_with("screen") || term.starts_with("tmux") {
            return ColorLevel::Indexed;
        }
        if truecolor || known.split(' ').any(|name| term.contains(name)) {
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
    H2D,
    D2H,
    /// D2D and other copies.
    D2D,
    P2P,
    Memset,
    /// Kernels, by a number made from the name.
    Kernel(u8),
    /// Overlap of copies and kernels.
    Overlap,
    Host,
    /// Host calls that wait for the GPU.
    Wait,
    /// Phases, and other ranges.
    Range,
    /// CPU ops of a framework.
    Op,
    /// Python functions, recorded or seen in samples.
    Python,
    /// Idle time by its cause: one of [`CAUSE_COLORS`].
    Cause(u8),
    Selected,
}

/// Colours that causes of idle time are told apart by.
pub const CAUSE_COLORS: u8 = 8;

/// Colours that kernels are told apart by.
pub const KERNEL_COLORS: u8 = 6;

/// Whether the environment says that the terminal shows ASCII only: a locale that is not UTF-8, "C" and
/// "POSIX" among them. Nothing said is no word against blocks: containers have no locale.
pub fn is_ascii_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty());
    locale.is_some_and(|value| {
        let plain = value.to_ascii_lowercase().replace('-', "");
        !plain.contains("utf8")
    })
}

/// Colours and glyphs for one terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theme {
    pub level: ColorLevel,
    pub is_ascii: bool,
    pub choice: ThemeChoice,
}

impl Theme {
    /// Ink in one of a role's two shades, which tell neighbours apart.
    pub fn ink_of(&self, role: Role, is_second: bool) -> Style {
        if let Some(color) = palette::color(self, role, is_second) {
            return Style::new().fg(color);
        }
        let plain = match role {
            Role::Dim | Role::Rule => Modifier::DIM,
            Role::Bad | Role::Accent | Role::Selected => Modifier::BOLD,
            _ => Modifier::empty(),
        };
        Style::new().add_modifier(plain | dim_if(is_second))
    }

    /// Text on one of a role's two shades.
    pub fn on_shade(&self, role: Role, is_second: bool) -> Style {
        match palette::color(self, role, is_second) {
            Some(color) => Style::new().fg(self.ink(color)).bg(color),
            None => Style::new().add_modifier(Modifier::REVERSED | dim_if(is_second)),
        }
    }

    /// Text or a block in the role's colour.
    pub fn fg(&self, role: Role) -> Style {
        self.ink_of(role, false)
    }

    /// Text on the role's colour, as in a box on a lane.
    pub fn bg(&self, role: Role) -> Style {
        self.on_shade(role, false)
    }

    /// Bold text in the role's colour.
    pub fn bold(&self, role: Role) -> Style {
        self.fg(role).add_modifier(Modifier::BOLD)
    }

    /// Text, bold or not.
    pub fn text(&self, role: Role, is_bold: bool) -> Style {
        match is_bold {
            true => self.bold(role),
            false => self.fg(role),
        }
    }

    /// Text that is readable on a block of this colour.
    fn ink(&self, on: Color) -> Color {
        let is_light = match on {
            Color::Rgb(r, g, b) => {
                let rgb = u32::from_be_bytes([0, r, g, b]);
                self.choice.wants_light_ink(rgb)
            }
            _ => self.choice.is_light,
        };
        match self.level {
            ColorLevel::True if is_light => Color::from_u32(0xff_ff_ff),
            ColorLevel::Indexed if is_light => Color::Indexed(231),
            ColorLevel::Ansi if is_light => Color::White,
            ColorLevel::True => Color::from_u32(0x10_14_18),
            ColorLevel::Indexed => Color::Indexed(233),
            _ => Color::Black,
        }
    }

    /// A block whose height is `eighths` of a cell, from 0 to 8.
    pub fn block(&self, eighths: u8) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', '-', '=', '+', '*', '#'];
        let table = if self.is_ascii { &ASCII } else { &BLOCKS };
        table[usize::from(eighths.min(8))]
    }

    /// A block from the left over `eighths` of a cell, from 0 to 8.
    pub fn left_block(&self, eighths: u8) -> char {
        const BLOCKS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
        if self.is_ascii {
            self.block(eighths)
        } else {
            BLOCKS[usize::from(eighths.min(8))]
        }
    }

    /// The left and the right edge of a box.
    pub fn edges(&self) -> (char, char) {
        if self.is_ascii {
            ('[', ']')
        } else {
            ('▐', '▌')
        }
    }

    /// Whether a cell can have two colours, as heights before the cause of idle time have.
    pub fn has_grounds(&self) -> bool {
        self.level != ColorLevel::None && !self.is_ascii
    }

    /// The letter of a cause of idle time, for eyes and terminals that tell no colours apart.
    pub fn cause(&self, cause: u8) -> char {
        // CPU work, launching, sync, memory and set-up, queued, another process, profiler, unknown.
        ['c', 'l', 's', 'm', 'q', 'a', 'p', '?'][usize::from(cause % CAUSE_COLORS)]
    }

    /// What fills idle time of a cause: dim ground, of a gap that is selected bright. Sixteen colours have no dim ones, but a
    /// pattern. `None` where a cell has no ground.
    pub fn idle(&self, cause: u8, is_selected: bool) -> Option<(char, Style)> {
        let role = Role::Cause(cause);
        match self.level {
            _ if !self.has_grounds() => None,
            ColorLevel::Ansi => Some((if is_selected { '▒' } else { '░' }, self.fg(role))),
            _ => palette::color(self, role, !is_selected).map(|it| (' ', Style::new().bg(it))),
        }
    }

    /// The letter of a cause on what fills its idle time.
    pub fn cause_mark(&self, cause: u8) -> (char, Style) {
        let style = self.idle(cause, false).map(|it| it.1);
        let style = style.unwrap_or_else(|| self.fg(Role::Cause(cause)));
        (self.cause(cause), style)
    }

    /// Puts what stands for them in ASCII in the place of all characters, where only that may be shown.
    pub fn spell(&self, buf: &mut Buffer) {
        let foreign = |cell: &&mut Cell| self.is_ascii && !cell.symbol().is_ascii();
        for cell in buf.content.iter_mut().filter(foreign) {
            let first = cell.symbol().chars().next();
            cell.set_char(self.glyph(first.unwrap_or(' ')));
        }
    }

    /// A character, or what stands for it in ASCII.
    pub fn glyph(&self, unicode: char) -> char {
        if !self.is_ascii || unicode.is_ascii() {
            return unicode;
        }
        match unicode {
            '─' => '-',
            '‹' => '<',
            '│' | '╷' | '▏' => '|',
            '●' => '*',
            '‖' => '=',
            '■' | '✓' => '+',
            '▾' => 'v',
            '▴' => '^',
            '✗' => 'x',
            '▸' | '▶' | '›' | '→' => '>',
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
            '╱' => '/',
            '≥' => '>',
            '≤' => '<',
            '−' | '–' | '—' => '-',
            _ => '?',
        }
    }

    /// How much of a cell `share` (0 to 1) fills, in eighths. It is nothing only for nothing, and all only for nearly
    /// all, so that neither a rare touch nor a rare gap is hidden.
    pub fn eighths(share: f64) -> u8 {
        Theme::levels(share, 8)
    }

    /// The same for a height of `full` eighths.
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

fn dim_if(is_second: bool) -> Modifier {
    if is_second {
        Modifier::DIM
    } else {
        Modifier::empty()
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
    fn a_locale_without_utf8_gets_ascii() {
        let of = |vars: &[(&str, &str)]| {
            is_ascii_locale(|name| {
                let found = vars.iter().find(|(n, _)| *n == name);
                found.map(|(_, v)| (*v).to_owned())
            })
        };
        assert!(of(&[("LANG", "C")]));
        assert!(of(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "POSIX")]));
        assert!(of(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(!of(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
        assert!(!of(&[("LANG", "en_GB.utf8")]));
        assert!(!of(&[]));
    }

    #[test]
    fn without_colours_no_style_has_one() {
        let theme = Theme {
            level: ColorLevel::None,
            ..Theme::default()
        };
        for role in [
            Role::H2D,
            Role::Bad,
            Role::Dim,
            Role::Kernel(3),
            Role::Selected,
        ] {
            for style in [theme.fg(role), theme.bg(role), theme.bold(role)] {
                assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
            }
        }
    }

    #[test]
    fn no_two_parts_of_the_legend_look_alike() {
        let choices = [(false, false), (true, false), (false, true), (true, true)];
        for (is_light, is_color_blind) in choices {
            for level in [ColorLevel::Ansi, ColorLevel::Indexed, ColorLevel::True] {
                let theme = Theme {
                    level,
                    is_ascii: false,
                    choice: ThemeChoice {
                        is_light,
                        is_color_blind,
                    },
                };
                let ran = [Role::Good, Role::H2D].map(|role| ('■', theme.fg(role)));
                let causes = (0..CAUSE_COLORS).map(|cause| theme.cause_mark(cause));
                let seen: Vec<_> = ran.into_iter().chain(causes).collect();
                for (i, (mark, style)) in seen.iter().enumerate() {
                    let of = |it: &Style| (it.fg, it.bg);
                    let is_alike = |it: &(char, Style)| it.0 == *mark && of(&it.1) == of(style);
                    assert!(
                        !seen[..i].iter().any(is_alike),
                        "{theme:?} {mark} in {seen:?}"
                    );
                    // In greyscale, and for whoever sees no hues, letters alone tell causes apart.
                    let is_letter = |it: &(char, Style)| it.0 == *mark && *mark != '■';
                    assert!(!seen[..i].iter().any(is_letter), "{mark} in {seen:?}");
                }
            }
        }
    }

    #[test]
    fn ascii_is_ascii() {
        let theme = Theme {
            level: ColorLevel::None,
            is_ascii: true,
            ..Theme::default()
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
