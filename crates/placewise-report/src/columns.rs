//! Numbers as the page reads them: columns one behind the other in one block of bytes.

use serde::Serialize;

/// Where a column is: its first byte and how many values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place(usize, usize);

impl Place {
    pub fn len(self) -> usize {
        self.1
    }

    pub fn u8(self, columns: &[u8], at: usize) -> u8 {
        columns[self.0 + at]
    }

    pub fn u16(self, columns: &[u8], at: usize) -> u16 {
        let at = self.0 + 2 * at;
        u16::from_le_bytes([columns[at], columns[at + 1]])
    }

    pub fn varints(self, columns: &[u8]) -> impl Iterator<Item = u64> {
        let mut bytes = columns[self.0..].iter();
        let mut value = move || {
            let (mut value, mut shift) = (0, 0);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value
        };
        (0..self.1).map(move |_| value())
    }
}

/// The block.
#[derive(Default)]
pub struct Columns {
    pub bytes: Vec<u8>,
}

impl Columns {
    pub fn u8s(&mut self, values: impl IntoIterator<Item = u8>) -> Place {
        let at = self.begin();
        self.bytes.extend(values);
        Place(at, self.bytes.len() - at)
    }

    /// Little endian.
    pub fn u16s(&mut self, values: impl IntoIterator<Item = u16>) -> Place {
        let at = self.begin();
        self.bytes.extend(values.into_iter().flat_map(u16::to_le_bytes));
        Place(at, (self.bytes.len() - at) / 2)
    }

    /// Of any size: seven bits in each byte, the lowest first; the eighth says that there are more.
    pub fn varints(&mut self, values: impl IntoIterator<Item = u64>) -> Place {
        let at = self.begin();
        let mut count = 0;
        for mut value in values {
            while value >= 0x80 {
                self.bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            self.bytes.push(value as u8);
            count += 1;
        }
        Place(at, count)
    }

    /// Where typed arrays may begin.
    fn begin(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_one_behind_the_other() {
        let mut columns = Columns::default();
        assert_eq!(columns.u8s([1, 2, 3]), Place(0, 3));
        assert_eq!(columns.u16s([0x1234]), Place(8, 1));
        assert_eq!(columns.varints([5, 300]), Place(16, 2));
        assert_eq!(
            columns.bytes,
            [1, 2, 3, 0, 0, 0, 0, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 5, 0xac, 2]
        );
        assert_eq!(
            (Place(0, 3).u8(&columns.bytes, 2), Place(8, 1).u16(&columns.bytes, 0)),
            (3, 0x1234)
        );
        assert!(Place(16, 2).varints(&columns.bytes).eq([5, 300]));
    }
}
