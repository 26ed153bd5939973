//! A trace file as text: as it is, or unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// Counts what is read from a file.
#[derive(Debug)]
pub(super) struct Counted {
    file: File,
    read: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.read += n as u64;
        Ok(n)
    }
}

#[derive(Debug)]
pub(super) enum Input {
    Plain(Counted),
    Gzip(Box<MultiGzDecoder<BufReader<Counted>>>),
}

impl Input {
    pub(super) fn open(path: &Path) -> io::Result<Input> {
        let mut file = File::open(path)?;
        let mut magic = Vec::new();
        (&mut file).take(2).read_to_end(&mut magic)?;
        io::Seek::rewind(&mut file)?;
        let file = Counted { file, read: 0 };
        Ok(if magic == [0x1f, 0x8b] {
            let buffered = BufReader::with_capacity(256 * 1024, file);
            Input::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else {
            Input::Plain(file)
        })
    }

    /// Bytes of the file that have been read.
    pub(super) fn consumed(&self) -> u64 {
        match self {
            Input::Plain(file) => file.read,
            Input::Gzip(decoder) => decoder.get_ref().get_ref().read,
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(file) => file.read(buffer),
            Input::Gzip(decoder) => decoder.read(buffer),
        }
    }
}
