//! Pages of ring buffers, put aside as they are while something is recorded: to make text of an event
//! takes many times what it takes to copy it, and what is recorded needs the CPUs.
//!
//! It has no name, so nothing is left of it however the recorder ends.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::Path;

/// In the place of a CPU: a round ends.
const ROUND: u32 = u32::MAX;

pub struct Spool {
    file: BufWriter<File>,
}

/// What was put aside, in its order.
pub enum Spooled<'a> {
    Page {
        cpu: u32,
        page: &'a [u8],
    },
    /// No event from before `until_ns` comes later.
    Round {
        until_ns: u64,
    },
}

impl Spool {
    pub fn create(directory: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile_in(directory)?) })
    }

    pub fn page(&mut self, cpu: u32, page: &[u8]) -> io::Result<()> {
        self.file.write_all(&cpu.to_le_bytes())?;
        self.file.write_all(&(page.len() as u32).to_le_bytes())?;
        self.file.write_all(page)
    }

    pub fn round(&mut self, until_ns: u64) -> io::Result<()> {
        self.page(ROUND, &until_ns.to_le_bytes())
    }

    /// Reads all of it; `wrap` sees how far that is.
    pub fn read<R: Read>(
        self,
        wrap: impl FnOnce(File, u64) -> R,
        mut to: impl FnMut(Spooled<'_>),
    ) -> io::Result<()> {
        let mut file = self.file.into_inner()?;
        let length = file.stream_position()?;
        file.rewind()?;
        let mut file = BufReader::new(wrap(file, length));
        let (mut head, mut page) = ([0; 8], Vec::new());
        while read_or_end(&mut file, &mut head)? {
            let [cpu, length] = [0, 4].map(|at| u32_at(&head, at));
            page.resize(length as usize, 0);
            file.read_exact(&mut page)?;
            to(match cpu {
                ROUND => Spooled::Round {
                    until_ns: u64::from_le_bytes(page[..].try_into().expect("it was a u64")),
                },
                _ => Spooled::Page { cpu, page: &page },
            });
        }
        Ok(())
    }
}

fn u32_at(head: &[u8; 8], at: usize) -> u32 {
    u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"))
}

/// False at the end.
fn read_or_end(file: &mut impl Read, head: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_aside_comes_back_in_its_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::create(directory.path()).unwrap();
        spool.page(7, b"one page").unwrap();
        spool.round(1 << 40).unwrap();
        spool.page(0, &[1; 4096]).unwrap();
        let (mut told, mut bytes) = (Vec::new(), 0);
        let wrap = |file, length| {
            bytes = length;
            file
        };
        let read = spool.read(wrap, |spooled| {
            told.push(match spooled {
                Spooled::Page { cpu, page } => (u64::from(cpu), page.len()),
                Spooled::Round { until_ns } => (until_ns, 0),
            });
        });
        read.unwrap();
        assert_eq!(told, [(7, 8), (1 << 40, 0), (0, 4096)]);
        assert_eq!(bytes, 3 * 8 + 8 + 8 + 4096);
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }
}
