//! What changes from outside during a run, at the times that the workload names.

use placewise_machine::CpuSet;
use placewise_workload::program::{Change, Setting};

use crate::engine::{Engine, Slot, task_group};
use crate::{Scenario, SimError};

/// Changes that no kernel would carry out are refused before the run.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let booted = scenario.machine.online();
    let mut online = booted;
    for Change { at, to } in &scenario.workload.changes {
        let problem = match to {
            Setting::Offline { cpu } => go_offline(*cpu as usize, &mut online),
            Setting::Online { cpu } => go_online(*cpu as usize, &booted, &mut online),
            Setting::Cpuset { cpus: Some(cpus), .. } | Setting::Affinity { cpus, .. } => {
                find_online(cpus, &online)
            }
            Setting::Cpuset { cpus: None, .. } | Setting::Quota { .. } => Ok(()),
        };
        problem.map_err(|problem| SimError::Change {
            workload: scenario.workload.name.clone(),
            seconds: *at as f64 / 1e9,
            problem,
        })?;
    }
    Ok(())
}

fn go_offline(cpu: usize, online: &mut CpuSet) -> Result<(), String> {
    if !online.contains(cpu) {
        return Err(format!("CPU {cpu} is not online then; online are {online}"));
    }
    if online.len() == 1 {
        return Err(format!("CPU {cpu} is the last one online; leave one"));
    }
    online.remove(cpu);
    Ok(())
}

fn go_online(cpu: usize, booted: &CpuSet, online: &mut CpuSet) -> Result<(), String> {
    if online.contains(cpu) {
        return Err(format!("CPU {cpu} is online then; take it offline before"));
    }
    if !booted.contains(cpu) {
        return Err(format!("CPU {cpu} was never online; the machine boots with {booted}"));
    }
    online.insert(cpu);
    Ok(())
}

fn find_online(cpus: &CpuSet, online: &CpuSet) -> Result<(), String> {
    if cpus.intersects(online) {
        return Ok(());
    }
    Err(format!("none of the CPUs {cpus} is online then; online are {online}"))
}

impl Engine<'_> {
    /// The next change is due at its time.
    pub fn await_change(&mut self) {
        if let Some(change) = self.workload.changes.get(self.next_change) {
            self.arm(Slot::Change, change.at.max(self.now));
        }
    }

    pub fn change(&mut self) -> Result<(), SimError> {
        let workload = self.workload;
        let Change { to, .. } = &workload.changes[self.next_change];
        self.next_change += 1;
        self.await_change();
        match *to {
            Setting::Offline { cpu } => self.set_online(cpu, false)?,
            Setting::Online { cpu } => self.set_online(cpu, true)?,
            Setting::Cpuset { cgroup, cpus } => self.set_cpuset(task_group(Some(cgroup)), cpus),
            Setting::Quota { cgroup, quota } => self.set_quota(task_group(Some(cgroup)), quota),
            Setting::Affinity { ref task, cpus } => self.set_affinity(task, cpus),
        }
        Ok(())
    }
}
