//! Just enough of protobuf's wire format to write messages.
//!
//! <https://protobuf.dev/programming-guides/encoding/>

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// An integer, or an enumerator.
    pub(super) fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    /// Eight bytes as they are.
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A number by which others name it, and its words: how tracks and interned names begin.
    pub(super) fn named(&mut self, id: u64, name: &str) {
        self.uint(1, id);
        self.text(2, name);
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn the_examples_of_the_specification_are_written() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.0, [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(
            message.0,
            [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]
        );
        let mut outer = Message::default();
        outer.message(3, |inner| inner.uint(1, 150));
        assert_eq!(outer.0, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.double(1, 1.0);
        assert_eq!(message.0, [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
