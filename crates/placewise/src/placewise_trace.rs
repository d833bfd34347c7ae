//! Stand-in for the trace writer until it lands.
pub trait Sink {
    fn line(&mut self, line: &str);
}
pub struct FtraceWriter<W: std::io::Write>(W);
impl<W: std::io::Write> FtraceWriter<W> {
    pub fn new(w: W) -> Self {
        Self(w)
    }
}
impl<W: std::io::Write> Sink for FtraceWriter<W> {
    fn line(&mut self, line: &str) {
        let _ = self.0.write_all(line.as_bytes());
    }
}
