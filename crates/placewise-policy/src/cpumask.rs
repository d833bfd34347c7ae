//! Masks of CPUs in the policy's state, as sets.

use crate::ids::CpuId;
use crate::state::Cpumask;

impl Cpumask {
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        let cpu = usize::from(cpu);
        self.bits[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// In the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + use<> {
        self.bits.into_iter().enumerate().flat_map(|(word, bits)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|&rest| rest != 0);
            let words = std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest);
            words.map(move |bits| CpuId::from(word * 64 + bits.trailing_zeros() as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_cpus_that_it_lists() {
        let mut mask = Cpumask { bits: [0; _] };
        mask.bits[0] = 1 << 63 | 1;
        mask.bits[15] = 1 << 63;
        let listed: Vec<u32> = mask.iter().map(u32::from).collect();
        assert_eq!(listed, [0, 63, 1023]);
        assert!(mask.iter().all(|cpu| mask.contains(cpu)) && !mask.contains(CpuId::new(1)));
    }
}
