//! Numbers and texts in the blocks of files beside a recording. All little-endian.

use std::str;

use activity::Span;

/// Entries of a block: each a tag, the length of what follows, and that.
#[derive(Debug, Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
}

impl Entries {
    /// Appends an entry. One that is longer than 64 KiB is left out: no writer here makes one.
    pub(super) fn add(&mut self, tag: u8, fill: impl FnOnce(&mut Fields)) {
        let at = self.bytes.len();
        self.bytes.extend([tag, 0, 0]);
        let mut fields = Fields(std::mem::take(&mut self.bytes));
        fill(&mut fields);
        self.bytes = fields.0;
        match u16::try_from(self.bytes.len() - at - 3) {
            Ok(length) => self.bytes[at + 1..at + 3].copy_from_slice(&length.to_le_bytes()),
            Err(_) => self.bytes.truncate(at),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// What an entry holds, as it is written.
#[derive(Debug)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn i64(&mut self, value: i64) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn f32(&mut self, value: f32) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn span(&mut self, span: Span) {
        self.i64(span.start);
        self.i64(span.end);
    }

    /// A text, cut to 255 bytes.
    pub(super) fn text(&mut self, text: &str) {
        let mut end = text.len().min(255);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // At most 255.
        self.u8(end as u8);
        self.raw(&text.as_bytes()[..end]);
    }
}

/// What an entry holds, as it is read. Every question answers `None` behind its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    /// A number; what is none is an error.
    pub(super) fn f64(&mut self) -> Option<f64> {
        let value = self.take().map(f64::from_le_bytes)?;
        value.is_finite().then_some(value)
    }

    /// A number; what is none is an error.
    pub(super) fn f32(&mut self) -> Option<f32> {
        let value = self.take().map(f32::from_le_bytes)?;
        value.is_finite().then_some(value)
    }

    /// A span that does not end before it starts.
    pub(super) fn span(&mut self) -> Option<Span> {
        let (start, end) = (self.i64()?, self.i64()?);
        // So that lengths never overflow.
        let is_sound = start <= end && start >= 0;
        is_sound.then_some(Span { start, end })
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::from(self.u8()?);
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok().map(str::to_owned)
    }
}

/// Goes through the entries of a block. `false` when it is not made of entries to its end, or `each` says that one is none.
pub(super) fn each_entry(
    mut block: &[u8],
    mut each: impl FnMut(u8, Rest<'_>) -> Option<()>,
) -> bool {
    let mut is_sound = true;
    while let Some(([tag, low, high], rest)) = block.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let Some((entry, after)) = rest.split_at_checked(length) else {
            return false;
        };
        is_sound &= each(*tag, Rest(entry)).is_some();
        block = after;
    }
    is_sound && block.is_empty()
}
