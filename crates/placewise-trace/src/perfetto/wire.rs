//! The wire format of protocol buffers, as far as a writer of it goes: numbers, texts, and messages
//! within messages. What the fields mean is said where they are written.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// A message as it is written, field by field.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn uint(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// As `int32` and `int64` have negative numbers: in 64 bits.
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn text(&mut self, field: u32, text: &str) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// The fields of another message.
    pub fn append(&mut self, other: &Message) {
        self.0.extend_from_slice(&other.0);
    }

    /// A message within this one.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        self.key(field, LENGTH_DELIMITED);
        let start = self.0.len();
        fill(self);
        let length = self.0.len() - start;
        self.varint(length as u64);
        // The length stands in front.
        let of_length = self.0.len() - start - length;
        self.0[start..].rotate_right(of_length);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the examples of the format's own description.
    #[test]
    fn fields_are_as_the_format_has_them() {
        let mut message = Message::default();
        message.uint(1, 150);
        message.text(2, "testing");
        message.message(3, |within| within.uint(1, 150));
        let expected =
            [&[0x08, 0x96, 0x01, 0x12, 0x07][..], b"testing", &[0x1a, 3, 8, 0x96, 1]].concat();
        assert_eq!(message.as_bytes(), expected);
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let mut message = Message::default();
        message.int(1, -2);
        assert_eq!(message.as_bytes()[1..], [0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }

    #[test]
    fn long_messages_have_a_long_length() {
        let mut message = Message::default();
        message.message(2, |within| within.text(1, &"x".repeat(300)));
        // 300 and the three bytes in front of it.
        assert_eq!(message.as_bytes()[..6], [0x12, 0xaf, 0x02, 0x0a, 0xac, 0x02]);
        assert_eq!(message.len(), 6 + 300);
    }
}
