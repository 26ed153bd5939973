//! Finds the values of a JSON document in a stream, without ever holding the document.
//!
//! It knows strings and brackets, no more. That is enough to skip unneeded values, and to hand out the events of
//! `traceEvents` one after the other as slices. Serde reads these in place. So memory is bounded by the longest event,
//! whatever the file's size, and one bad event costs one event.

use std::io::Read;

use memchr::memchr2;

/// Bytes asked from the input at a time.
const CHUNK: usize = 256 * 1024;
/// The longest value that it hands out.
pub(super) const VALUE_MAX: usize = 64 << 20;
/// How deep values may nest: one bit of a `u128` a level.
const DEPTH_MAX: u32 = 128;

/// Why a document ends before its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScanError {
    /// The input could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It ends where JSON does not.
    #[error("byte {at}: {what}")]
    Cut {
        /// Offset in the uncompressed text.
        at: u64,
        /// What it ends in.
        what: &'static str,
    },
    /// It is JSON, and has no events.
    #[error("no list \"traceEvents\"")]
    NoEvents,
    /// It is not JSON, or not JSON that can be read.
    #[error("byte {at}: {what}")]
    Malformed {
        /// Offset in the uncompressed text.
        at: u64,
        /// What was wrong there.
        what: &'static str,
    },
}

/// A JSON text that is read once, from front to back.
pub(super) struct Scanner<R> {
    input: R,
    /// The bytes read so far lie in `buffer[..end]`.
    buffer: Vec<u8>,
    end: usize,
    /// Next byte to scan, in `buffer`.
    next: usize,
    /// Bytes of the text before `buffer`.
    before: u64,
    /// Where the value begins that it will hand out, in `buffer`.
    keep: Option<usize>,
    /// Whether there is no input to read on, and whether the text goes on all the same.
    is_block: bool,
    is_piece: bool,
}

impl Scanner<std::io::Empty> {
    /// A scanner of a block alone, which stays as it is.
    pub(super) fn of_block(block: Block) -> Self {
        let is_piece = !block.is_last;
        Scanner {
            is_block: true,
            is_piece,
            ..Scanner::resume(block, std::io::empty())
        }
    }

    /// The block again.
    pub(super) fn into_block(self) -> Block {
        Block {
            buffer: self.buffer,
            end: self.end,
            at: self.before,
            is_last: !self.is_piece,
        }
    }
}

/// A piece of a text.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The piece is `buffer[..end]`. The bytes behind it are left from earlier use.
    pub(super) buffer: Vec<u8>,
    pub(super) end: usize,
    /// Its offset in the uncompressed text.
    pub(super) at: u64,
    /// Whether the text ends with it.
    pub(super) is_last: bool,
}

impl Block {
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    /// Its text from an offset of the whole text on.
    pub(super) fn text_from(&self, at: u64) -> &[u8] {
        let from = usize::try_from(at.saturating_sub(self.at)).unwrap_or(self.end);
        &self.buffer[from.min(self.end)..self.end]
    }
}

impl<R: Read> Scanner<R> {
    pub(super) fn new(input: R) -> Self {
        Scanner::resume(Block::default(), input)
    }

    /// Makes a scanner of a piece of a text and the `input` behind it.
    pub(super) fn resume(block: Block, input: R) -> Self {
        Scanner {
            input,
            buffer: block.buffer,
            end: block.end,
            next: 0,
            before: block.at,
            keep: None,
            is_block: false,
            is_piece: false,
        }
    }

    /// The bytes that were read but not scanned, and the input.
    pub(super) fn into_parts(mut self) -> (Block, R) {
        let at = self.offset();
        self.buffer.copy_within(self.next..self.end, 0);
        let block = Block {
            end: self.end - self.next,
            buffer: self.buffer,
            at,
            is_last: false,
        };
        (block, self.input)
    }

    /// Skips bytes that the caller has seen in [`Scanner::rest`].
    pub(super) fn advance(&mut self, bytes: usize) {
        self.next = (self.next + bytes).min(self.end);
    }

    /// Offset of the next byte in the uncompressed text.
    pub(super) fn offset(&self) -> u64 {
        self.before + self.next as u64
    }

    fn error(&self, what: &'static str) -> ScanError {
        ScanError::Malformed {
            at: self.offset(),
            what,
        }
    }

    fn cut(&self, what: &'static str) -> ScanError {
        ScanError::Cut {
            at: self.offset(),
            what,
        }
    }

    /// The bytes that were read but not scanned.
    pub(super) fn rest(&self) -> &[u8] {
        &self.buffer[self.next..self.end]
    }

    /// Reads on. False when there is no more.
    fn fill(&mut self) -> Result<bool, ScanError> {
        if self.is_block {
            return Ok(false);
        }
        let from = self.keep.unwrap_or(self.next);
        if self.end - from > VALUE_MAX {
            return Err(self.error("a single value of more than 64 MiB"));
        }
        self.buffer.copy_within(from..self.end, 0);
        self.before += from as u64;
        self.next -= from;
        self.end -= from;
        self.keep = self.keep.map(|_| 0);
        if self.buffer.len() < self.end + CHUNK {
            // It grows by half, so that a long value is not copied for every chunk of it.
            self.buffer.resize(self.end + self.end / 2 + CHUNK, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
            }
        }
    }

    /// The next byte that is not white space; it stays where it is.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ScanError> {
        loop {
            let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
            let rest = self.rest();
            let blanks = rest.iter().position(|b| !is_blank(b));
            if let Some(blanks) = blanks {
                let byte = rest[blanks];
                self.next += blanks;
                return Ok(Some(byte));
            }
            self.next = self.end;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Skips `byte` if it comes next.
    pub(super) fn eat(&mut self, byte: u8) -> Result<bool, ScanError> {
        let is_next = self.peek()? == Some(byte);
        self.next += usize::from(is_next);
        Ok(is_next)
    }

    /// Skips a byte order mark.
    pub(super) fn skip_mark(&mut self) -> Result<(), ScanError> {
        self.peek()?;
        if self.rest().starts_with(b"\xef\xbb\xbf") {
            self.next += 3;
        }
        Ok(())
    }

    pub(super) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), ScanError> {
        if self.eat(byte)? {
            return Ok(());
        }
        Err(match self.peek()? {
            None => self.cut("the text ends here, before its end"),
            Some(_) => self.error(what),
        })
    }

    /// The next value, as it is written.
    pub(super) fn value(&mut self) -> Result<&[u8], ScanError> {
        self.peek()?;
        self.keep = Some(self.next);
        let end = self.skip_value();
        let from = self.keep.take().unwrap_or_default();
        end?;
        Ok(&self.buffer[from..self.next])
    }

    /// Skips the next value.
    pub(super) fn skip_value(&mut self) -> Result<(), ScanError> {
        match self.peek()? {
            None => Err(self.cut("the text ends here, before its end")),
            Some(b'"') => self.skip_string(),
            Some(b'{' | b'[') => self.skip_container(),
            Some(b'}' | b']' | b',' | b':') => Err(self.error("expected a value")),
            Some(_) => self.skip_word(),
        }
    }

    fn skip_word(&mut self) -> Result<(), ScanError> {
        let is_end = |b: &u8| {
            matches!(
                b,
                b',' | b'}' | b']' | b':' | b'"' | b' ' | b'\t' | b'\n' | b'\r'
            )
        };
        loop {
            if let Some(length) = self.rest().iter().position(is_end) {
                self.next += length;
                return Ok(());
            }
            self.next = self.end;
            if !self.fill()? {
                if self.is_piece {
                    return Err(self.cut("the text ends within a value"));
                }
                return Ok(());
            }
        }
    }

    /// Skips a string whose opening quote comes next.
    fn skip_string(&mut self) -> Result<(), ScanError> {
        self.next += 1;
        loop {
            match memchr2(b'"', b'\\', self.rest()) {
                Some(length) => {
                    self.next += length + 1;
                    if self.buffer[self.next - 1] == b'"' {
                        return Ok(());
                    }
                    // An escaped byte may be a quote, and may not be in memory yet.
                    if self.next == self.end && !self.fill()? {
                        return Err(self.cut("the text ends within a string"));
                    }
                    self.next += 1;
                }
                None => {
                    self.next = self.end;
                    if !self.fill()? {
                        return Err(self.cut("the text ends within a string"));
                    }
                }
            }
        }
    }

    fn skip_container(&mut self) -> Result<(), ScanError> {
        let (mut depth, mut braces) = (0u32, 0u128);
        let is_mark = |b: &u8| matches!(b, b'"' | b'{' | b'}' | b'[' | b']');
        loop {
            let Some(length) = self.rest().iter().position(is_mark) else {
                self.next = self.end;
                if !self.fill()? {
                    return Err(self.cut("the text ends within a value"));
                }
                continue;
            };
            self.next += length;
            match self.buffer[self.next] {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                byte @ (b'{' | b'[') => {
                    if depth == DEPTH_MAX {
                        return Err(self.error("values nest more than 128 deep"));
                    }
                    depth += 1;
                    braces = braces << 1 | u128::from(byte == b'{');
                }
                byte => {
                    if (braces & 1 == 1) != (byte == b'}') {
                        return Err(self.error("this bracket closes another one"));
                    }
                    depth -= 1;
                    braces >>= 1;
                    if depth == 0 {
                        self.next += 1;
                        return Ok(());
                    }
                }
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives out a byte or three at a time, as a slow pipe would.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(into.len()).min(3);
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            "[a-z\"\\\\{}\\[\\],:\u{e9}\n]{0,8}".prop_map(serde_json::Value::from),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::vec(("[a-z\"\\\\{]{0,5}", inner), 0..6)
                    .prop_map(|v| serde_json::Value::Object(v.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_cut_out_whole(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }
                .expect("JSON");
            let stream = format!(" {text} ,");
            let mut scanner = Scanner::new(Drip(stream.as_bytes()));
            prop_assert_eq!(scanner.value().expect("a value"), text.as_bytes());
            prop_assert!(scanner.eat(b',').expect("no error"));
            prop_assert_eq!(scanner.offset(), stream.len() as u64);
            prop_assert_eq!(scanner.peek().expect("no error"), None);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\a1 \n\xff".to_vec()), 0..200)) {
            let mut scanner = Scanner::new(&bytes[..]);
            while scanner.value().is_ok() && scanner.peek().is_ok_and(|b| b.is_some()) {
                let _ = scanner.eat(b',');
            }
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let text = "[".repeat(200);
        let error = Scanner::new(text.as_bytes())
            .skip_value()
            .expect_err("too deep");
        assert_eq!(
            error.to_string(),
            "byte 128: values nest more than 128 deep"
        );
    }

    #[test]
    fn errors_name_the_place() {
        let cases = [
            ("{\"a\": [1, 2}", "byte 11: this bracket closes another one"),
            ("{\"a\": \"b", "byte 8: the text ends within a string"),
            ("[1, 2", "byte 5: the text ends within a value"),
            ("  ]", "byte 2: expected a value"),
        ];
        for (text, message) in cases {
            let error = Scanner::new(text.as_bytes())
                .value()
                .expect_err(text)
                .to_string();
            assert_eq!(error, message);
        }
    }
}
