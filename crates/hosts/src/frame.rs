//! The protocol of the two ends: frames of a length, a checksum and that many bytes, and what they hold.
//!
//! The far side begins with [`HELLO`], the version of this protocol (u32), and its own version (u8 length and text).
//! Then the near side sends requests and the far side sends responses, in frames. A frame is: u32 length of the
//! payload, u32 CRC-32 of it (both little-endian), and a [`Request`] or a [`Response`] as postcard writes it.
//!
//! Bytes of a file come from its start, each once and in order. A file is known by its name. After a new connection,
//! [`Request::Have`] tells how much of each file has arrived.

use activity::entry::Field;
use serde::{Deserialize, Serialize};

/// The first bytes of the far side. A shell there may have printed something before them.
pub(super) const HELLO: &[u8; 16] = b"\0cuptop-serves\x1a\n";
/// The version of this protocol.
pub(super) const PROTOCOL: u32 = 3;
/// Bytes of a file in one frame.
pub(super) const PIECE: usize = 256 << 10;
/// The longest payload.
pub(super) const LONGEST: usize = PIECE + 64;
/// Length of a recording's header page.
pub(super) const PAGE: usize = recording::file::HEADER;
/// The longest text.
pub(super) const TEXT: usize = 4096;
/// Bytes before a payload.
const HEAD: usize = 8;

/// A request of the near side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// Serve what lies at this path.
    Open(Vec<u8>),
    /// So much of a file has arrived.
    Have { offset: u64, name: String },
    /// Send what is new, at most so many bytes of files.
    Next { budget: u32 },
}

/// A response of the far side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Response {
    /// There is a file.
    File { id: u32, name: String },
    /// The [`PAGE`] bytes of a recording's header page as they are now.
    Page { id: u32, page: Vec<u8> },
    /// Bytes of a file.
    Data {
        id: u32,
        offset: u64,
        bytes: Vec<u8>,
    },
    /// Whether its writer lives, where that is known.
    Life { id: u32, lives: Option<bool> },
    /// The answer to one `Next` ends here.
    End { has_more: bool },
    /// What is wrong, and whether nothing else comes.
    Trouble { is_last: bool, text: String },
}

/// Bytes that are no frames of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("a frame of {0} bytes")]
    TooLong(u32),
    #[error("a frame whose checksum is another")]
    Checksum,
    #[error("a frame that makes no sense")]
    Senseless,
}

/// A request or a response as a frame; it is no longer than [`LONGEST`].
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    // Writing to memory cannot fail.
    let mut frame = postcard::to_extend(message, vec![0; HEAD]).unwrap_or_default();
    let payload = frame.split_off(HEAD.min(frame.len()));
    frame[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame[4..].copy_from_slice(&crc32fast::hash(&payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// The request or the response that a frame holds.
pub(super) fn decode<'p, T: Deserialize<'p>>(payload: &'p [u8]) -> Result<T, Broken> {
    postcard::from_bytes(payload).map_err(|_| Broken::Senseless)
}

/// Turns bytes, as they arrive, into frames. It never holds more than one frame and the last bytes added.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// The payload of the next frame; `None` until it is whole.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Broken> {
        let rest = &self.bytes[self.at..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [a, b, c, d, sum @ ..] = *head;
        let length = u32::from_le_bytes([a, b, c, d]);
        if length == 0 || length as usize > LONGEST {
            return Err(Broken::TooLong(length));
        }
        let Some(payload) = rest.get(..length as usize) else {
            return Ok(None);
        };
        if crc32fast::hash(payload) != u32::from_le_bytes(sum) {
            return Err(Broken::Checksum);
        }
        self.at += HEAD + length as usize;
        Ok(Some(payload))
    }
}

/// Makes the far side's first bytes.
pub(super) fn encode_hello(version: &str) -> Vec<u8> {
    let mut bytes = HELLO.to_vec();
    bytes.extend(PROTOCOL.to_le_bytes());
    let version = &version.as_bytes()[..version.len().min(255)];
    bytes.push(version.len() as u8);
    bytes.extend(version);
    bytes
}

/// What the far side's first bytes tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) protocol: u32,
    pub(super) version: String,
    /// How many bytes it takes, including what the shell printed before it.
    pub(super) length: usize,
}

/// Searches the received bytes for [`HELLO`]; `None` until it is whole.
pub(super) fn find_greeting(bytes: &[u8]) -> Option<Greeting> {
    let at = memchr::memmem::find(bytes, HELLO)?;
    let rest = &bytes[at + HELLO.len()..];
    let length = u8::get(rest, 4)?;
    let version = rest[5..].get(..usize::from(length))?;
    Some(Greeting {
        protocol: Field::get(rest, 0)?,
        version: String::from_utf8_lossy(version).into_owned(),
        length: at + HELLO.len() + 5 + version.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> Vec<Response> {
        vec![
            Response::File {
                id: 7,
                name: "gpu01-3.run/1-a.cuptop".to_owned(),
            },
            Response::Page {
                id: 7,
                page: vec![3; PAGE],
            },
            Response::Data {
                id: 7,
                offset: 1 << 40,
                bytes: vec![9; PIECE],
            },
            Response::Life { id: 7, lives: None },
            Response::End { has_more: true },
            Response::Trouble {
                is_last: true,
                text: "weg".to_owned(),
            },
        ]
    }

    #[test]
    fn what_is_said_is_understood_however_it_is_cut() {
        let all: Vec<u8> = words().iter().flat_map(encode).collect();
        for size in [1, 7, 4_096, all.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in all.chunks(size) {
                frames.add(piece);
                while let Some(payload) = frames.next().expect("frames") {
                    found.push(decode::<Response>(payload).expect("a word"));
                }
                assert!(frames.bytes.len() <= LONGEST + HEAD + size);
            }
            assert_eq!(found, words());
        }
        for ask in [
            Request::Open(b"/a b".to_vec()),
            Request::Have {
                offset: 5,
                name: "x".to_owned(),
            },
            Request::Next { budget: 1 << 20 },
        ] {
            assert_eq!(decode(&encode(&ask)[HEAD..]), Ok(ask));
        }
    }

    #[test]
    fn a_shell_that_prints_something_first_is_no_obstacle() {
        let mut bytes = b"Welcome to gpu01\r\n\0cuptop".to_vec();
        bytes.extend(encode_hello("0.1.0"));
        for end in 0..bytes.len() {
            assert_eq!(find_greeting(&bytes[..end]), None);
        }
        let found = find_greeting(&bytes).expect("whole");
        assert_eq!(
            (found.protocol, found.version.as_str(), found.length),
            (PROTOCOL, "0.1.0", bytes.len())
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (decode::<Response>(&bytes), decode::<Request>(&bytes), find_greeting(&bytes));
            let mut frames = Frames::default();
            frames.add(&bytes);
            while let Ok(Some(_)) = frames.next() {}
        }
    }
}
