//! A trace's text: its bytes as they are, or unpacked.

use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

use crate::stream::Stream;

/// The first bytes of gzip data.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug)]
pub(super) enum Input {
    Plain(Stream),
    Gzip(Box<MultiGzDecoder<BufReader<Stream>>>),
}

impl Input {
    /// Finds out what it is. A caller that only peeks has it kept: [`Input::into_stream`] gives the stream back as it was.
    pub(super) fn open(mut stream: Stream, is_kept: bool) -> io::Result<Input> {
        let mut magic = Vec::new();
        stream.keep();
        (&mut stream).take(2).read_to_end(&mut magic)?;
        stream.rewind();
        if is_kept {
            // This comes before the decoder, which begins to read at once.
            stream.keep();
        }
        Ok(if magic == GZIP {
            let buffered = BufReader::with_capacity(256 * 1024, stream);
            Input::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else {
            Input::Plain(stream)
        })
    }

    /// The stream as [`Input::to_peek`] got it.
    pub(super) fn into_stream(self) -> Stream {
        let mut stream = match self {
            Input::Plain(stream) => stream,
            Input::Gzip(decoder) => decoder.into_inner().into_inner(),
        };
        stream.rewind();
        stream
    }

    /// Bytes of the file that have been read.
    pub(super) fn consumed(&self) -> u64 {
        match self {
            Input::Plain(stream) => stream.read,
            Input::Gzip(decoder) => decoder.get_ref().get_ref().read,
        }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(stream) => stream.read(buffer),
            Input::Gzip(decoder) => decoder.read(buffer),
        }
    }
}
