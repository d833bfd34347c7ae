//! What the tasks of a draw wait for: posts, and what others of their class hold.
//!
//! A task waits for a class: who mostly wakes it there. Where its class waits for others, too, after the same acts,
//! any of these will do. Posts of others stay there until it waits for such.
//!
//! **Posts that are missing**: a caller and its callee are drawn apart. Where one has drawn fewer posts than the
//! other waits for, both wait, and all that wait for them. Who of those has waited longest takes a post that was to
//! be taken later, or is posted to by one of those whom it waits for: as if that had done so before it slept.
//! Where these are gone, they have done so before.
//!
//! **Locks**: who waits for a peer that hands on what it holds waits for any that goes on, until that has
//! computed next. Where nobody goes on, nobody holds anything.

use std::collections::BTreeSet;

use placewise_workload::program::Wake;
use rand::RngExt;

use super::Stage;
use super::actors::{State, partners};
use crate::model::act::{Act, ClassIndex};
use crate::recording::{Step, TaskIndex};

impl Stage<'_> {
    /// Who waits for it may wait in vain now.
    pub(super) fn exits(&mut self, index: TaskIndex) {
        self.stretches += 1;
        let actor = &self.actors[index as usize];
        let others = self.model.members[actor.member as usize].partners.iter();
        let others: Vec<TaskIndex> = partners(&self.rows, actor, others).collect();
        for other in others {
            if self.actors[other as usize].state == State::Waits {
                self.make_up(other);
            }
        }
    }

    /// Whom it waits for then.
    pub(super) fn will_await(&mut self, index: TaskIndex, act: Act) {
        let model = self.model;
        let chain = &model.classes[self.class_of(index) as usize].chain;
        let actor = &mut self.actors[index as usize];
        (actor.awaited, actor.others) = (None, BTreeSet::new());
        if let Act::Await(class) = act {
            let wakers = &model.members[actor.member as usize].wakers;
            let own = || wakers.iter().map(|waker| model.members[*waker as usize].class);
            // Another of its class knows whom it does not.
            let known = own().find(|it| *it == class).or_else(|| own().next());
            let others: BTreeSet<ClassIndex> = chain.awaited(&actor.history).collect();
            actor.awaited = known.or(Some(class));
            actor.others = Some(others).filter(|it| it.contains(&class)).unwrap_or_default();
        }
    }

    pub(super) fn awaits(&mut self, index: TaskIndex, act: Act) {
        self.will_await(index, act);
        let actor = &self.actors[index as usize];
        let mut posts = actor.posts.iter();
        match posts.position(|from| actor.would_take(self.class_of(*from))) {
            Some(at) => self.takes(index, at),
            None if self.has_been_answered(index) => {
                self.actors[index as usize].history.push(act);
                self.goes_on(index, None);
            }
            None => {
                self.answers_before_it_sleeps(index);
                let actor = &mut self.actors[index as usize];
                (actor.state, actor.since) = (State::Waits, self.now);
                self.busy -= 1;
                self.make_up(index);
            }
        }
    }

    /// It waits for those whom it calls, and none has a call of it left to answer.
    fn has_been_answered(&self, index: TaskIndex) -> bool {
        let own = self.class_of(index);
        let Some(awaited) = self.actors[index as usize].awaited else { return false };
        let has_call = |callee: TaskIndex| {
            let callee = &self.actors[callee as usize];
            let serves = callee.owed.contains(&index) && !callee.wants(own);
            serves || callee.posts.contains(&index)
        };
        self.model.pairs.if_awaited.contains_key(&(own, awaited))
            && !self.wakers(index).any(has_call)
    }

    /// Those that have called it and wait for that.
    pub(super) fn answers_before_it_sleeps(&mut self, index: TaskIndex) {
        let own = self.class_of(index);
        let way = |stage: &Self, task: TaskIndex| {
            let way = stage.model.pairs.if_awaited.get(&(stage.class_of(task), own)).copied();
            way.filter(|_| stage.actors[task as usize].wants(own))
        };
        let owed = std::mem::take(&mut self.actors[index as usize].owed);
        for to in owed {
            match way(self, to) {
                Some(wake) => self.post(index, to, Step::Post(to, wake)),
                None => self.actors[index as usize].owed.push(to),
            }
        }
    }

    /// The post at that place among those that are there.
    fn takes(&mut self, index: TaskIndex, at: usize) {
        if let Some(from) = self.actors[index as usize].posts.remove(at) {
            self.woken(index, from);
        }
    }

    /// Some peer holds what this one wants: one that goes on. If all wait, nobody does.
    pub(super) fn contends(&mut self, index: TaskIndex, wake: Wake) {
        let goes_on = |task: &TaskIndex| {
            let state = self.actors[*task as usize].state;
            *task != index && matches!(state, State::Computes | State::Sleeps)
        };
        let peers = self.cast[self.class_of(index) as usize].iter().copied().filter(goes_on);
        let peers: Vec<TaskIndex> = peers.collect();
        if peers.is_empty() {
            return self.goes_on(index, None);
        }
        let holder = peers[self.rng.random_range(0..peers.len())];
        self.actors[holder as usize].contenders.push((index, wake));
        self.actors[index as usize].state = State::Contends;
        self.busy -= 1;
    }

    /// Who holds something gives it away after what it computes.
    pub(super) fn hands_on(&mut self, index: TaskIndex) {
        for (to, wake) in std::mem::take(&mut self.actors[index as usize].contenders) {
            self.take_down(index, Step::Post(to, wake));
            self.take_down(to, Step::Await(index));
            self.stretches += 1;
            self.goes_on(to, None);
        }
    }

    /// Makes up for a missing post, if this one waits for nobody who goes on: by one that is there and was to be
    /// taken later, or by another.
    fn make_up(&mut self, index: TaskIndex) {
        let Some(all) = self.wait_in_vain(index) else { return };
        let actor = |task: TaskIndex| &self.actors[task as usize];
        let longest = |tasks: &mut dyn Iterator<Item = TaskIndex>| {
            tasks.min_by_key(|&task| (actor(task).since, task))
        };
        let has_posts = |task: &TaskIndex| !actor(*task).posts.is_empty();
        if let Some(task) = longest(&mut all.iter().copied().filter(has_posts)) {
            return self.takes(task, 0);
        }
        let waiting_waker = |task: TaskIndex| self.wakers(task).find(|waker| all.contains(waker));
        let waker = |task: TaskIndex| waiting_waker(task).or_else(|| self.gone_waker(task));
        let is_missed = |task: &TaskIndex| waker(*task).is_some();
        let Some(task) = longest(&mut all.iter().copied().filter(is_missed)) else { return };
        if let Some(waker) = waker(task) {
            self.post(waker, task, Step::Post(task, Wake::Plain));
        }
    }

    /// Of one that does as in the recording, and whose wakers there have all been here and are gone.
    fn gone_waker(&self, index: TaskIndex) -> Option<TaskIndex> {
        let actor = &self.actors[index as usize];
        let member = &self.model.members[actor.member as usize];
        let is_awaited =
            |waker: &&TaskIndex| actor.awaited == Some(self.model.members[**waker as usize].class);
        let mut wakers = member.wakers.iter().filter(is_awaited);
        let all_were_here = wakers.all(|waker| !self.rows[*waker as usize].is_empty());
        let waker = self.wakers(index).last();
        waker.filter(|_| all_were_here && self.does_as_recorded(index))
    }

    /// All that this one waits for, themselves or by others, and itself; `None` if one of them goes on.
    fn wait_in_vain(&self, index: TaskIndex) -> Option<BTreeSet<TaskIndex>> {
        let mut all = BTreeSet::from([index]);
        let mut left = vec![index];
        while let Some(task) = left.pop() {
            for waker in self.wakers(task) {
                match self.actors[waker as usize].state {
                    State::Waits if all.insert(waker) => left.push(waker),
                    State::Waits | State::Gone => {}
                    State::Computes | State::Sleeps | State::Contends => return None,
                }
            }
        }
        Some(all)
    }

    /// Those whom one waits for: others may come first, but it is not for these that it sleeps.
    fn wakers(&self, index: TaskIndex) -> impl Iterator<Item = TaskIndex> {
        let actor = &self.actors[index as usize];
        let wakers = self.model.members[actor.member as usize].wakers.iter();
        partners(&self.rows, actor, wakers)
            .filter(move |waker| actor.awaited == Some(self.class_of(*waker)))
    }

    /// A post of `from` is taken.
    fn woken(&mut self, index: TaskIndex, from: TaskIndex) {
        let waker = self.class_of(from);
        self.stretches += 1;
        self.take_down(index, Step::Await(from));
        let actor = &mut self.actors[index as usize];
        actor.history.push(Act::Await(waker));
        actor.owed.retain(|task| *task != from);
        actor.owed.push(from);
        self.goes_on(index, None);
    }

    /// `step`: the post as `from` does it.
    pub(super) fn post(&mut self, from: TaskIndex, to: TaskIndex, step: Step) {
        let [class, callee] = [from, to].map(|task| self.class_of(task));
        let wakee = &mut self.actors[to as usize];
        if wakee.state == State::Gone {
            return;
        }
        // Who is called, and answers those that wait, does not sleep on.
        let is_called = wakee.state == State::Sleeps
            && self.model.pairs.if_awaited.contains_key(&(class, callee));
        if is_called {
            wakee.sleep = None;
            wakee.steps.pop();
        }
        let is_waited_for = is_called || wakee.wants(class);
        if !is_waited_for {
            wakee.posts.push_back(from);
        }
        let waits = wakee.state == State::Waits;
        self.take_down(from, step);
        if is_waited_for {
            self.woken(to, from);
        } else if waits {
            self.make_up(to);
        }
    }
}
