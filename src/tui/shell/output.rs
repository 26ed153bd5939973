//! Frames on their way to the terminal: each one write, and atomic where the terminal can.

use std::io::{self, Write};

/// Frames are collected up to this size before they are written.
const CAPACITY: usize = 64 * 1024;

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Collects what is written until it is flushed. With synchronized output the terminal shows the
/// whole frame at once; tmux repaints the whole pane for each such block, so it is off there.
#[derive(Debug)]
pub(super) struct Frames<W: Write> {
    out: W,
    frame: Vec<u8>,
    is_synchronized: bool,
}

impl<W: Write> Frames<W> {
    pub(super) fn new(out: W, is_synchronized: bool) -> Self {
        Frames {
            out,
            frame: Vec::with_capacity(CAPACITY),
            is_synchronized,
        }
    }
}

impl<W: Write> Write for Frames<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.frame.is_empty() && self.is_synchronized {
            self.frame.extend_from_slice(BEGIN);
        }
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        if self.is_synchronized {
            self.frame.extend_from_slice(END);
        }
        let result = self.out.write_all(&self.frame);
        self.frame.clear();
        result.and_then(|()| self.out.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_block_and_no_frame_is_no_byte() {
        let mut bytes = Vec::new();
        let mut frames = Frames::new(&mut bytes, true);
        frames.flush().expect("nothing to write");
        frames.write_all(b"ab").expect("a buffer");
        frames.write_all(b"c").expect("a buffer");
        frames.flush().expect("a buffer");
        frames.flush().expect("nothing to write");
        assert_eq!(bytes, b"\x1b[?2026habc\x1b[?2026l");
    }
}
