//! A list of tasks that wait in an LLC (`policy/shared_runq.h`), as what CPUs have in their caches: who has changed
//! it last, and who has looked at it since.

use placewise_machine::CpuSet;
use placewise_policy::CpuId;

use crate::state::event_queue::Time;
use crate::state::lock::FifoLock;

#[derive(Clone, Debug, Default)]
pub struct SharedList {
    pub lock: FifoLock,
    seen_by: CpuSet,
}

impl SharedList {
    /// `cpu` looks at its head; says whether that has to come from another cache.
    pub fn is_news_to(&mut self, cpu: CpuId) -> bool {
        let cpu = usize::from(cpu);
        let is_news = !self.seen_by.contains(cpu);
        self.seen_by.insert(cpu);
        is_news
    }

    /// `by`, which asks at a time, changes it for so long; says for how long that waits.
    pub fn change(&mut self, by: CpuId, asked: Time, hold: Time) -> Time {
        self.seen_by = CpuSet::single(by.into());
        self.lock.take(by, asked, hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_news_once_until_it_changes() {
        let [own, other] = [3, 70].map(CpuId::new);
        let mut list = SharedList::default();
        assert_eq!([other, other].map(|cpu| list.is_news_to(cpu)), [true, false]);
        list.change(own, 0, 10);
        assert_eq!([own, other, other].map(|cpu| list.is_news_to(cpu)), [false, true, false]);
    }
}
