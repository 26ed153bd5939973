//! Reads events of the common shape in one pass over their bytes.
//!
//! That shape is what profilers write: an object of plain strings, whole numbers and one object of arguments. Serde reads
//! any other event: one with an escape in a string, a number in quotes, or a value of an unexpected type. It also gets
//! what is no JSON. So serde decides what an event is and what is in it. Where this code reads a text, both read the same.

use super::event::{ArgsKey, Event, EventKey, Place, Text};

/// How deep unneeded values may nest here.
const DEPTH_MAX: u32 = 16;

/// The length of the object that a text begins with, if there is neither an object, a list nor an escape in it.
fn flat(text: &[u8]) -> Option<usize> {
    let length = memchr::memchr(b'}', text)?;
    let inside = text[..length].strip_prefix(b"{")?;
    let quotes = memchr::memchr_iter(b'"', inside).count();
    let is_whole = quotes.is_multiple_of(2)
        && memchr::memchr3(b'\\', b'{', b'[', inside).is_none()
        && memchr::memchr(b']', inside).is_none();
    is_whole.then_some(length + 1)
}

/// Reads the event that a text begins with, and returns its length; `None` for one that is not of the common shape. Of one
/// that is passed over it reads no more than tells so.
pub(super) fn event<'a>(text: &'a [u8], into: &mut Event<'a>) -> Option<usize> {
    let mut reader = Reader { text, at: 0 };
    let (mut has_args, mut end) = (false, None);
    let whole = reader.object(|reader, key| {
        use EventKey as Key;
        let key = Key::of(key);
        match key {
            Key::Phase => into.phase = reader.words()?,
            Key::Category => into.category = reader.words()?,
            Key::Name => into.name = reader.words()?,
            Key::Pid => into.pid = Some(reader.integer()?),
            Key::Tid => into.tid = Some(reader.integer()?),
            Key::Ts => into.ts = Some(reader.number()?),
            Key::Dur => into.dur = Some(reader.number()?),
            Key::Args if has_args || reader.peek()? != b'{' => return None,
            Key::Args => {
                has_args = true;
                // Nobody needs those of an operator or a Python function.
                match into.category.0.as_ref() {
                    "cpu_op" | "Operator" | "python_function" => reader.skip(DEPTH_MAX)?,
                    _ => reader
                        .object(|reader, key| reader.argument(into.read.place(ArgsKey::of(key))))?,
                }
            }
            Key::Other => reader.skip(DEPTH_MAX)?,
        }
        if matches!(key, Key::Phase | Key::Category) && into.is_passed_over() {
            end = flat(text);
        }
        // Where its end is known nothing of it is read on.
        end.is_none().then_some(())
    });
    end.or(whole.map(|()| reader.at))
}

/// A text and the position of the next unread byte.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Walks through an object: it calls `value` with each key, and `value` has to read that key's value.
    fn object(&mut self, mut value: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.items(*b"{}", |reader| {
            let key = reader.string()?;
            reader.blanks();
            reader.expect(b':')?;
            reader.blanks();
            value(reader, key)
        })
    }

    /// What is between the quotes of a string without escapes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let rest = &self.text[self.at..];
        let length = closing(rest)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    /// A string without escapes and control characters.
    fn words(&mut self) -> Option<Text<'a>> {
        let bytes = self.string()?;
        let has_control = bytes.iter().fold(false, |any, &b| any | (b < b' '));
        if has_control {
            return None;
        }
        Some(Text(std::str::from_utf8(bytes).ok()?.into()))
    }

    /// A whole number that is written as one.
    fn integer(&mut self) -> Option<i64> {
        let is_negative = self.peek()? == b'-';
        self.at += usize::from(is_negative);
        let from = self.at;
        let mut value = 0i64;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            // 18 digits cannot overflow; longer numbers are refused below.
            value = value.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
            self.at += 1;
        }
        let digits = self.at - from;
        let is_padded = digits > 1 && self.text[from] == b'0';
        let is_end = matches!(
            self.peek()?,
            b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'
        );
        // Nor does serde call "-0" whole.
        if !(1..=18).contains(&digits) || is_padded || !is_end || (is_negative && value == 0) {
            return None;
        }
        Some(if is_negative { -value } else { value })
    }

    /// A number, as it is written.
    fn number(&mut self) -> Option<&'a [u8]> {
        let from = self.at;
        self.skip_number()?;
        Some(&self.text[from..self.at])
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn skip_number(&mut self) -> Option<()> {
        self.at += usize::from(self.peek()? == b'-');
        let from = self.at;
        self.digits()?;
        if self.text[from] == b'0' && self.at - from > 1 {
            return None;
        }
        if self.peek()? == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek()?, b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek()?, b'-' | b'+'));
            self.digits()?;
        }
        // An error behind it shows up where a comma or a bracket must come.
        Some(())
    }

    /// Steps over any value.
    fn skip(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' if depth > 0 => self.object(|reader, _| reader.skip(depth - 1)),
            b'[' if depth > 0 => self.items(*b"[]", |reader| reader.skip(depth - 1)),
            b'-' | b'0'..=b'9' => self.skip_number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text[self.at..]
            .starts_with(word)
            .then(|| self.at += word.len())
    }

    /// Walks through what stands between two brackets with commas between: `item` has to read each.
    fn items(
        &mut self,
        [open, close]: [u8; 2],
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(open)?;
        self.blanks();
        let mut is_over = self.peek()? == close;
        while !is_over {
            item(self)?;
            self.blanks();
            is_over = self.peek()? == close;
            if !is_over {
                self.expect(b',')?;
                self.blanks();
            }
        }
        self.at += 1;
        Some(())
    }

    fn argument(&mut self, place: Place<'_, 'a>) -> Option<()> {
        match place {
            Place::Number(it) => *it = Some(self.integer()?),
            Place::Sizes(it) => {
                let mut sizes = it.iter_mut();
                self.items(*b"[]", |reader| {
                    *sizes.next()? = u32::try_from(reader.integer()?).ok()?;
                    Some(())
                })?;
                if sizes.next().is_some() {
                    return None;
                }
            }
            Place::Text(it) => *it = self.words()?,
            Place::Nowhere => self.skip(DEPTH_MAX)?,
        }
        Some(())
    }
}

/// Where the first quote is in a text that has no escape before it.
fn closing(text: &[u8]) -> Option<usize> {
    // Keys and most values are short. Eight bytes at a time are faster there than a search made for long texts.
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = 0;
    while at < 24
        && let Some(eight) = text[at..].first_chunk()
    {
        let word = u64::from_le_bytes(*eight);
        let found =
            is_zero(word ^ (ONES * u64::from(b'"'))) | is_zero(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            // Of several marks the lowest is right, also where one carries into the next.
            let at = at + found.trailing_zeros() as usize / 8;
            return (text[at] == b'"').then_some(at);
        }
        at += 8;
    }
    let at = at + memchr::memchr2(b'"', b'\\', &text[at..])?;
    (text[at] == b'"').then_some(at)
}

#[cfg(test)]
mod tests;
