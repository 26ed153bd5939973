//! The protocol of the two ends: frames of a length, a checksum and that many bytes, and what they hold.
//!
//! The far side begins with [`HELLO`], the version of this protocol (u32), and its own version (u8 length and text).
//! Then the near side sends requests and the far side sends responses, in frames. A frame is: u32 length of the
//! payload, u32 CRC-32 of it, the payload with u8 tag and fields. All numbers are little-endian.
//!
//! | asked | tag | fields |
//! |---|---|---|
//! | open | 1 | the path, to the end |
//! | have | 2 | u64 bytes of a file that have arrived, its name to the end |
//! | next | 3 | u32 the most bytes of files that may come |
//!
//! | answered | tag | fields |
//! |---|---|---|
//! | file | 1 | u32 id, its name to the end |
//! | page | 2 | u32 id, the 4096 bytes of a recording's header page as they are now |
//! | data | 3 | u32 id, u64 where in the file, bytes to the end |
//! | life | 4 | u32 id, u8 whether its writer lives: 0 no, 1 yes, 2 unknown |
//! | end | 5 | u8 whether there is more already: the answer to one `next` ends here |
//! | trouble | 6 | u8 whether nothing else comes, text to the end |
//!
//! Bytes of a file come from its start, each once and in order. A file is known by its name. After a new connection,
//! `have` tells how much of each file has arrived.

use activity::entry::Field;

/// The first bytes of the far side. A shell there may have printed something before them.
pub(super) const HELLO: &[u8; 16] = b"\0cuptop-serves\x1a\n";
/// The version of this protocol.
pub(super) const PROTOCOL: u32 = 2;
/// Bytes of a file in one frame.
pub(super) const PIECE: usize = 256 << 10;
/// The longest payload.
pub(super) const LONGEST: usize = PIECE + 64;
/// Length of a recording's header page.
pub(super) const PAGE: usize = recording::file::HEADER;
/// The longest text, and the longest path.
pub(super) const TEXT: usize = 4096;
/// Bytes before a payload.
const HEAD: usize = 8;

/// A request of the near side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Open(Vec<u8>),
    Have { offset: u64, name: String },
    Next { budget: u32 },
}

/// A response of the far side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Response {
    File {
        id: u32,
        name: String,
    },
    Page {
        id: u32,
        page: Box<[u8; PAGE]>,
    },
    Data {
        id: u32,
        offset: u64,
        bytes: Vec<u8>,
    },
    Life {
        id: u32,
        lives: Option<bool>,
    },
    End {
        has_more: bool,
    },
    Trouble {
        is_last: bool,
        text: String,
    },
}

/// Bytes that are no frames of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("a frame of {0} bytes")]
    TooLong(u32),
    #[error("a frame whose checksum is another")]
    Checksum,
    #[error("a frame that makes no sense (tag {0})")]
    Senseless(u8),
}

fn framed(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    frame.push(tag);
    for part in parts {
        frame.extend_from_slice(part);
    }
    let payload = &frame[HEAD..];
    // Callers send no more than LONGEST.
    let (length, sum) = (payload.len() as u32, crc32fast::hash(payload));
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
    frame
}

fn text(bytes: &[u8]) -> Option<String> {
    let is_short = bytes.len() <= TEXT;
    is_short.then(|| String::from_utf8_lossy(bytes).into_owned())
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Request::Open(path) => framed(1, &[path]),
            Request::Have { offset, name } => framed(2, &[&offset.to_le_bytes(), name.as_bytes()]),
            Request::Next { budget } => framed(3, &[&budget.to_le_bytes()]),
        }
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Request, Broken> {
        let (&tag, fields) = payload.split_first().ok_or(Broken::Senseless(0))?;
        let parsed = || {
            Some(match tag {
                1 if fields.len() <= TEXT => Request::Open(fields.to_vec()),
                2 => Request::Have {
                    offset: Field::get(fields, 0)?,
                    name: text(&fields[8..])?,
                },
                3 => Request::Next {
                    budget: Field::get(fields, 0)?,
                },
                _ => return None,
            })
        };
        parsed().ok_or(Broken::Senseless(tag))
    }
}

impl Response {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Response::File { id, name } => framed(1, &[&id.to_le_bytes(), name.as_bytes()]),
            Response::Page { id, page } => framed(2, &[&id.to_le_bytes(), &page[..]]),
            Response::Data { id, offset, bytes } => {
                framed(3, &[&id.to_le_bytes(), &offset.to_le_bytes(), bytes])
            }
            Response::Life { id, lives } => {
                let life = lives.map_or(2, u8::from);
                framed(4, &[&id.to_le_bytes(), &[life]])
            }
            Response::End { has_more } => framed(5, &[&[u8::from(*has_more)]]),
            Response::Trouble { is_last, text } => {
                let text = text.as_bytes();
                framed(6, &[&[u8::from(*is_last)], &text[..text.len().min(TEXT)]])
            }
        }
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Response, Broken> {
        let (&tag, fields) = payload.split_first().ok_or(Broken::Senseless(0))?;
        let parsed = || {
            let id = || u32::get(fields, 0);
            Some(match tag {
                1 => Response::File {
                    id: id()?,
                    name: text(&fields[4..])?,
                },
                2 => Response::Page {
                    id: id()?,
                    page: Box::new(fields[4..].try_into().ok()?),
                },
                3 => Response::Data {
                    id: id()?,
                    offset: Field::get(fields, 4)?,
                    bytes: fields[12..].to_vec(),
                },
                4 => Response::Life {
                    id: id()?,
                    lives: match fields[4..] {
                        [0] => Some(false),
                        [1] => Some(true),
                        [2] => None,
                        _ => return None,
                    },
                },
                5 => Response::End {
                    has_more: *fields.first()? != 0,
                },
                6 => Response::Trouble {
                    is_last: *fields.first()? != 0,
                    text: text(&fields[1..])?,
                },
                _ => return None,
            })
        };
        parsed().ok_or(Broken::Senseless(tag))
    }
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
                page: Box::new([3; PAGE]),
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
        let all: Vec<u8> = words().iter().flat_map(Response::encode).collect();
        for size in [1, 7, 4_096, all.len()] {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in all.chunks(size) {
                frames.add(piece);
                while let Some(payload) = frames.next().expect("frames") {
                    found.push(Response::decode(payload).expect("a word"));
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
            assert_eq!(Request::decode(&ask.encode()[HEAD..]), Ok(ask));
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
            let _ = (Response::decode(&bytes), Request::decode(&bytes), find_greeting(&bytes));
            let mut frames = Frames::default();
            frames.add(&bytes);
            while let Ok(Some(_)) = frames.next() {}
        }
    }
}
