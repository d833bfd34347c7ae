//! Reads ahead on a thread of its own: what is compressed is unpacked beside what is done with it.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

const CHUNK: usize = 128 * 1024;
/// Chunks that wait to be taken, at most.
const CHUNKS: usize = 8;

/// The same bytes and the same error at the same place as the reader behind it.
pub(super) struct Ahead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: io::Cursor<Vec<u8>>,
}

impl Ahead {
    pub fn of(mut reader: impl Read + Send + 'static) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        // It ends with the text, at an error, or once nobody takes its chunks.
        thread::spawn(move || {
            loop {
                let chunk = next_chunk(&mut reader);
                let is_last = !matches!(&chunk, Ok(chunk) if !chunk.is_empty());
                if sender.send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        Ahead { chunks, current: io::Cursor::default() }
    }
}

/// What is there by now; nothing at the end.
fn next_chunk(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => {
                chunk.truncate(read?);
                return Ok(chunk);
            }
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.current.position() == self.current.get_ref().len() as u64 {
            let Ok(chunk) = self.chunks.recv() else { return Ok(0) };
            self.current = io::Cursor::new(chunk?);
        }
        self.current.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails behind its text.
    struct Broken(io::Cursor<Vec<u8>>);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(ErrorKind::UnexpectedEof.into()),
                count => Ok(count),
            }
        }
    }

    #[test]
    fn bytes_and_errors_come_in_their_order() {
        let text: Vec<u8> = (0..3 * CHUNK + 5).map(|at| at as u8).collect();
        let mut read = Vec::new();
        Ahead::of(io::Cursor::new(text.clone())).read_to_end(&mut read).unwrap();
        assert!(read == text);
        read.clear();
        let error = Ahead::of(Broken(io::Cursor::new(text.clone()))).read_to_end(&mut read);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(read == text);
    }

    #[test]
    fn the_end_stays_the_end() {
        let mut ahead = Ahead::of(&b"a"[..]);
        let mut buffer = [0; 2];
        assert_eq!([1, 2, 3].map(|_| ahead.read(&mut buffer).unwrap()), [1, 0, 0]);
    }
}
