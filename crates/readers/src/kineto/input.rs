//! A trace's text: its bytes as they are, or unpacked.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt as _;

use flate2::read::MultiGzDecoder;

/// The first bytes of gzip data.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file's text.
pub(super) type Input = Box<dyn Read + Send>;

/// The text of a file, by its first bytes.
pub(super) fn text(file: File) -> Input {
    let mut magic = [0; 2];
    // What cannot be read is told when the text is.
    if file.read_exact_at(&mut magic, 0).is_ok() && magic == GZIP {
        let buffered = BufReader::with_capacity(256 * 1024, file);
        return Box::new(MultiGzDecoder::new(buffered));
    }
    Box::new(file)
}
