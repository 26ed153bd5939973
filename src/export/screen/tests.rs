//! The same small screen in every format, read back by something that did not write it.

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier, Style};

use std::time::Duration;

use super::{Cast, PictureFormat, Shown, write};

const RED: Color = Color::Rgb(200, 10, 20);
const BLUE: Color = Color::Rgb(0, 0, 250);

/// ```text
/// ab <&> │█▄  x
/// 世 µ
/// ```
fn screen() -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 14, 2));
    buffer.set_string(
        0,
        0,
        "ab <&>",
        Style::new().fg(RED).add_modifier(Modifier::BOLD),
    );
    buffer.set_string(7, 0, "│█▄", Style::new().fg(Color::Green).bg(BLUE));
    buffer.set_string(12, 0, "x", Style::new().add_modifier(Modifier::UNDERLINED));
    buffer.set_string(0, 1, "世 µ", Style::new().fg(Color::Indexed(208)));
    buffer
}

fn bytes(format: PictureFormat, buffer: &Buffer) -> Vec<u8> {
    let shown = Shown {
        buffer: buffer.clone(),
        title: "a <test>".to_owned(),
        is_light: false,
    };
    let mut out = Vec::new();
    write(format, &shown, &mut out).expect("memory can be written to");
    out
}

fn text(format: PictureFormat) -> String {
    String::from_utf8(bytes(format, &screen())).expect("UTF-8")
}

#[test]
fn text_is_what_stands_on_the_screen() {
    assert_eq!(text(PictureFormat::Txt), "ab <&> │█▄  x\n世 µ\n");
}

#[test]
fn what_only_colours_show_is_drawn_in_blocks_in_plain_text() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 16, 1));
    let from_right = Style::new().fg(RED).add_modifier(Modifier::REVERSED);
    // Five eighths from the right, a bar with a name, three eighths from the left.
    buffer.set_string(1, 0, "▍", from_right);
    buffer.set_string(2, 0, " copy 1    ", Style::new().fg(Color::Black).bg(RED));
    buffer.set_string(13, 0, "▍", Style::new().fg(RED));
    let out = bytes(PictureFormat::Txt, &buffer);
    assert_eq!(String::from_utf8_lossy(&out), " ▐ copy 1 ███▍\n");
}

fn size(cells: u16) -> std::num::NonZero<u16> {
    cells.try_into().expect("a size")
}

#[test]
fn a_terminal_that_plays_a_cast_shows_the_same_screen() {
    let mut out = Vec::new();
    let mut cast = Cast::begin(Size::new(14, 2), "", &mut out).expect("written");
    cast.frame(Duration::ZERO, &screen()).expect("written");
    let text = String::from_utf8(out).expect("UTF-8");
    let event: serde_json::Value =
        serde_json::from_str(text.lines().nth(1).expect("an event")).expect("JSON");
    let mut terminal = vt100::Parser::new(size(2), size(14), 0);
    terminal.process(event[2].as_str().expect("a text").as_bytes());
    let shown = terminal.screen();
    let lines: Vec<String> = shown.rows(0, 14).map(|l| l.trim_end().to_owned()).collect();
    assert_eq!(lines, ["ab <&> │█▄  x", "世 µ"]);
    let cell = |row, column| shown.cell(row, column).expect("a cell");
    assert!(cell(0, 0).bold() && cell(0, 12).underline() && !cell(0, 8).bold());
    assert_eq!(cell(0, 0).fgcolor(), vt100::Color::Rgb(200, 10, 20));
    assert_eq!(cell(0, 8).fgcolor(), vt100::Color::Idx(2));
    assert_eq!(cell(0, 8).bgcolor(), vt100::Color::Rgb(0, 0, 250));
    assert_eq!(cell(1, 0).fgcolor(), vt100::Color::Idx(208));
    assert_eq!(cell(0, 11).bgcolor(), vt100::Color::Default);
}

/// The values of an attribute, of all elements of a kind.
fn attributes<'a>(svg: &'a str, element: &str, attribute: &str) -> Vec<&'a str> {
    svg.lines()
        .filter(|line| line.starts_with(&format!("<{element} ")))
        .filter_map(|line| {
            let at = line.find(&format!(" {attribute}=\""))? + attribute.len() + 3;
            line[at..].split('"').next()
        })
        .collect()
}

#[test]
fn svg_puts_every_stretch_of_text_into_its_columns() {
    let svg = text(PictureFormat::Svg);
    assert!(svg.contains("<title>a &lt;test&gt;</title>"));
    // A column is 8.4 wide: "ab <&>" from column 0, "x" from 12, the wide symbol alone, then column 3.
    assert_eq!(attributes(&svg, "text", "x"), ["0", "100.8", "0", "25.2"]);
    assert_eq!(
        attributes(&svg, "text", "textLength"),
        ["50.4", "8.4", "16.8", "8.4"]
    );
    let lines: Vec<&str> = svg.lines().filter(|l| l.starts_with("<text")).collect();
    assert!(
        lines[0].ends_with("class=\"b\">ab &lt;&amp;&gt;</text>") && lines[0].contains("#c80a14")
    );
    assert!(lines[1].contains("class=\"u\""));
    assert!(lines[2].contains("#ff8700"), "208 of xterm's colours");
    // One background of three cells, a line of two arms, a full and a half block.
    let fills = attributes(&svg, "rect", "fill");
    assert_eq!(fills.iter().filter(|f| **f == "#0000fa").count(), 1);
    assert_eq!(fills.iter().filter(|f| **f == "#3fb950").count(), 4);
    let widths = attributes(&svg, "rect", "width");
    assert!(widths.contains(&"25.2"), "{widths:?}");
    assert_eq!(svg.matches('<').count(), svg.matches('>').count());
}

#[test]
fn svg_holds_no_control_character() {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
    buffer[(0, 0)].set_symbol("\u{1b}");
    buffer[(1, 0)].set_symbol("\u{7}");
    let svg = String::from_utf8(bytes(PictureFormat::Svg, &buffer)).expect("UTF-8");
    assert!(svg.chars().all(|c| !c.is_control() || c == '\n'));
}

#[test]
fn png_has_blocks_and_letters_in_their_cells() {
    let png = bytes(PictureFormat::Png, &screen());
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .expect("PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a picture");
    // Cells of 15 by 33 and a margin of 16 around.
    assert_eq!((info.width, info.height), (14 * 15 + 32, 2 * 33 + 32));
    let pixel = |x: usize, y: usize| -> [u8; 3] {
        let at = (y * info.width as usize + x) * 3;
        [pixels[at], pixels[at + 1], pixels[at + 2]]
    };
    let in_cell = |column: usize, row: usize, x: usize, y: usize| {
        pixel(16 + column * 15 + x, 16 + row * 33 + y)
    };
    let (green, blue) = ([0x3f, 0xb9, 0x50], [0, 0, 250]);
    assert_eq!(pixel(0, 0), [0x0d, 0x11, 0x17]);
    for (x, y) in [(0, 0), (14, 0), (0, 32), (14, 32)] {
        assert_eq!(in_cell(8, 0, x, y), green, "a full block fills its cell");
    }
    assert_eq!(
        in_cell(9, 0, 7, 2),
        blue,
        "a lower half block leaves the upper half"
    );
    assert_eq!(in_cell(9, 0, 7, 30), green);
    assert_eq!(
        in_cell(7, 0, 7, 0),
        green,
        "a vertical line reaches its cell's border"
    );
    assert_eq!(in_cell(7, 0, 0, 16), blue);
    let count = |column: usize, row: usize, wanted: [u8; 3]| {
        (0..15 * 33)
            .filter(|i| in_cell(column, row, i % 15, i / 15) == wanted)
            .count()
    };
    for column in [0, 1, 3, 4, 5] {
        assert!(
            count(column, 0, [200, 10, 20]) > 10,
            "a letter in column {column}"
        );
    }
    assert_eq!(count(2, 0, [0x0d, 0x11, 0x17]), 15 * 33, "a blank is empty");
    assert!(count(3, 1, [0xff, 0x87, 0]) > 10, "µ is in the font");
    assert!(
        count(0, 1, [0x0d, 0x11, 0x17]) < 15 * 33 - 20,
        "a box stands for what the font lacks"
    );
}

#[test]
fn an_empty_screen_is_no_error() {
    let buffer = Buffer::empty(Rect::new(0, 0, 0, 0));
    for format in [PictureFormat::Svg, PictureFormat::Png, PictureFormat::Txt] {
        let _ = bytes(format, &buffer);
    }
}
