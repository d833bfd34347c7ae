//! A set of up to 1,024 CPUs, with the two text formats of the kernel: lists and hex masks.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};

use crate::error::MachineError;

const WORDS: usize = 16;

/// A set of CPU ids, 0 to 1,023. `Display` writes the kernel's list format, `0-63,128-191`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    /// How many CPUs a set, and so a machine, can hold.
    pub const MAX_CPUS: usize = WORDS * 64;

    pub const EMPTY: CpuSet = CpuSet([0; WORDS]);

    /// The set {cpu}.
    #[inline]
    pub fn single(cpu: usize) -> Self {
        let mut set = Self::EMPTY;
        set.insert(cpu);
        set
    }

    /// The CPUs 0 to `nr_cpus` - 1.
    pub fn first_n(nr_cpus: usize) -> Self {
        (0..nr_cpus).collect()
    }

    /// # Panics
    /// If `cpu` is not below [`CpuSet::MAX_CPUS`].
    #[inline]
    pub fn insert(&mut self, cpu: usize) {
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    #[inline]
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The number of CPUs in the set (its weight).
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The lowest CPU of the set.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        self.next_at_or_after(0)
    }

    /// The highest CPU of the set.
    pub fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word * 64 + 63 - self.0[word].leading_zeros() as usize)
    }

    #[inline]
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        (*self - *other).is_empty()
    }

    #[inline]
    pub fn intersects(&self, other: &CpuSet) -> bool {
        !(*self & *other).is_empty()
    }

    /// The CPUs in increasing order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.first();
        std::iter::from_fn(move || {
            let cpu = next?;
            next = self.next_at_or_after(cpu + 1);
            Some(cpu)
        })
    }

    /// The CPUs in increasing order from the first one at or after `start`, wrapping once.
    pub fn iter_wrap(&self, start: usize) -> impl Iterator<Item = usize> + '_ {
        let from_start = self.iter().skip_while(move |cpu| *cpu < start);
        from_start.chain(self.iter().take_while(move |cpu| *cpu < start))
    }

    /// The bits, CPU 0 in bit 0 of word 0.
    #[inline]
    pub fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Reads the kernel's list format: `0-63,128-191`; empty text is the empty set.
    pub fn parse_list(text: &str) -> Result<Self, MachineError> {
        let wrong = |part: &str| {
            MachineError::new(
                format!("CPU list `{}`", shortened(text)),
                format!(
                    "`{}` is not a CPU or a range of CPUs from 0 to {}, such as `4` or `0-63`",
                    shortened(part),
                    Self::MAX_CPUS - 1
                ),
            )
        };
        let mut set = Self::EMPTY;
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = parse_cpu(first).ok_or_else(|| wrong(part))?;
            let last = parse_cpu(last).ok_or_else(|| wrong(part))?;
            if first > last {
                return Err(wrong(part));
            }
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Ok(set)
    }

    /// Reads a hex mask as the kernel (`ffffffff,00000000`) and hwloc (`0xffffffff,,0x0`) write it:
    /// 32-bit pieces, the highest first; hwloc leaves out the digits of a piece that is zero.
    pub fn parse_mask(text: &str) -> Result<Self, MachineError> {
        let wrong = |why: &str| MachineError::new(format!("CPU mask `{}`", shortened(text)), why);
        let mut set = Self::EMPTY;
        for (index, piece) in text.trim().rsplit(',').enumerate() {
            let digits = piece.strip_prefix("0x").unwrap_or(piece);
            if digits.is_empty() {
                continue;
            }
            if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong("expected hex digits in comma-separated 32-bit pieces"));
            }
            let bits = u32::from_str_radix(digits, 16)
                .map_err(|_| wrong("a comma-separated piece has more than 32 bits"))?;
            if bits == 0 {
                continue;
            }
            let word = set
                .0
                .get_mut(index / 2)
                .ok_or_else(|| wrong("names a CPU above 1023, the highest that can be modelled"))?;
            *word |= u64::from(bits) << (index % 2 * 32);
        }
        Ok(set)
    }

    /// Writes the kernel's hex mask format, without leading zero pieces.
    pub fn to_mask(&self) -> String {
        let pieces: Vec<u32> = (0..WORDS * 2)
            .rev()
            .map(|index| (self.0[index / 2] >> (index % 2 * 32)) as u32)
            .skip_while(|piece| *piece == 0)
            .collect();
        match pieces.split_first() {
            None => "0".to_string(),
            Some((first, rest)) => {
                rest.iter().fold(format!("{first:x}"), |mask, piece| format!("{mask},{piece:08x}"))
            }
        }
    }

    #[inline]
    fn next_at_or_after(&self, cpu: usize) -> Option<usize> {
        let mut word = cpu / 64;
        let mut bits = self.0.get(word)? & (u64::MAX << (cpu % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// `+5` and ` 5` are not CPU numbers although `usize::from_str` would take the first.
fn parse_cpu(text: &str) -> Option<usize> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPUS)
}

/// Bad input is quoted in messages, but not at any length.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<T: IntoIterator<Item = usize>>(cpus: T) -> Self {
        let mut set = Self::EMPTY;
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl BitOr for CpuSet {
    type Output = CpuSet;
    #[inline]
    fn bitor(self, other: CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}

impl BitOrAssign for CpuSet {
    #[inline]
    fn bitor_assign(&mut self, other: CpuSet) {
        *self = *self | other;
    }
}

impl BitAnd for CpuSet {
    type Output = CpuSet;
    #[inline]
    fn bitand(self, other: CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}

impl Sub for CpuSet {
    type Output = CpuSet;
    /// The CPUs of `self` that are not in `other`.
    #[inline]
    fn sub(self, other: CpuSet) -> CpuSet {
        CpuSet(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = *self;
        let mut separator = "";
        while let Some(first) = rest.first() {
            let last = (first..).take_while(|cpu| rest.contains(*cpu)).last().unwrap_or(first);
            match first == last {
                true => write!(out, "{separator}{first}")?,
                false => write!(out, "{separator}{first}-{last}")?,
            }
            (first..=last).for_each(|cpu| rest.remove(cpu));
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn list_format_is_the_kernels() {
        let set = CpuSet::parse_list("0-63,128-191,200\n").unwrap();
        assert_eq!(set.len(), 129);
        assert_eq!(set.to_string(), "0-63,128-191,200");
        assert_eq!(CpuSet::parse_list("").unwrap(), CpuSet::EMPTY);
    }

    #[test]
    fn bad_lists_name_the_part() {
        for (list, part) in
            [("0-3,x", "`x`"), ("5-2", "`5-2`"), ("1024", "`1024`"), ("-1", "`-1`"), ("+1", "`+1`")]
        {
            let message = CpuSet::parse_list(list).unwrap_err().to_string();
            assert!(message.contains(&format!("{part} is not a CPU")), "{message}");
        }
    }

    #[test]
    fn masks_of_the_kernel_and_of_hwloc() {
        let high = CpuSet::parse_mask("0xffffffff,0xffffffff,,0x0").unwrap();
        assert_eq!(high.to_string(), "64-127");
        assert_eq!(high.to_mask(), "ffffffff,ffffffff,00000000,00000000");
        assert_eq!(CpuSet::parse_mask("0x000000ff").unwrap().to_string(), "0-7");
        for bad in ["0xf...f", "123456789", "zz"] {
            assert!(CpuSet::parse_mask(bad).is_err(), "{bad}");
        }
        let too_high = format!("1{}", ",0".repeat(32));
        assert!(CpuSet::parse_mask(&too_high).unwrap_err().to_string().contains("above 1023"));
    }

    #[test]
    fn wrap_starts_at_the_first_cpu_not_below_the_start() {
        let set = CpuSet::parse_list("8-10,136-137").unwrap();
        assert_eq!(set.iter_wrap(10).collect::<Vec<_>>(), [10, 136, 137, 8, 9]);
        assert_eq!(set.iter_wrap(11).collect::<Vec<_>>(), [136, 137, 8, 9, 10]);
        assert_eq!(set.iter_wrap(500).collect::<Vec<_>>(), [8, 9, 10, 136, 137]);
    }

    proptest! {
        #[test]
        fn both_formats_round_trip(cpus in proptest::collection::vec(0usize..1024, 0..80)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(CpuSet::parse_list(&set.to_string()).unwrap(), set);
            prop_assert_eq!(CpuSet::parse_mask(&set.to_mask()).unwrap(), set);
            prop_assert!(cpus.iter().all(|cpu| set.contains(*cpu)));
            prop_assert_eq!(set.iter().count(), set.len());
            prop_assert_eq!(set.iter().last(), set.last());
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = CpuSet::parse_list(&text);
            let _ = CpuSet::parse_mask(&text);
        }
    }
}
