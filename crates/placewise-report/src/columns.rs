//! Numbers as the page reads them: columns one behind the other in one block of bytes.

use serde::Serialize;

/// Where a column is: its first byte and how many values it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place(usize, usize);

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
    }
}
