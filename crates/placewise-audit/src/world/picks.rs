//! What the queues would pick, beside what the kernel has picked: whether their order is its own.

/// Picks of a CPU on which two or more tasks waited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Picks {
    all: u32,
    foretold: u32,
}

impl Picks {
    pub fn count(&mut self, is_foretold: bool) {
        self.all += 1;
        self.foretold += u32::from(is_foretold);
    }

    pub fn foretold_pct(self) -> u32 {
        self.foretold * 100 / self.all
    }
}
