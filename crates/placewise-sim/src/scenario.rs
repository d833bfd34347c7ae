//! What is run, and what is refused before it runs: what neither the machine nor the workload can
//! tell alone.

use placewise_machine::{CpuSet, Machine};
use placewise_policy::{NR_TASK_GROUP_LEVELS, NR_TASK_GROUPS, Policy};
use placewise_workload::program::{Change, Setting, Workload};

use crate::error::SimError;

/// One run.
#[derive(Clone, Copy)]
pub struct Scenario<'a> {
    pub machine: &'a Machine,
    pub policy: &'a Policy,
    pub workload: &'a Workload,
    pub seed: u64,
}

impl Scenario<'_> {
    pub(crate) fn check(&self) -> Result<(), SimError> {
        check_affinities(self)?;
        check_cgroups(self.workload)?;
        check_changes(self)
    }
}

fn check_cgroups(workload: &Workload) -> Result<(), SimError> {
    let mut depths: Vec<u32> = Vec::new();
    for cgroup in &workload.cgroups {
        let above = cgroup.parent.map_or(Some(0), |parent| depths.get(parent as usize).copied());
        let fits = |depth: &u32| *depth < NR_TASK_GROUP_LEVELS;
        match above.filter(fits) {
            Some(depth) if depths.len() + 1 < NR_TASK_GROUPS as usize => depths.push(depth + 1),
            _ => {
                return Err(SimError::Cgroup {
                    workload: workload.name.clone(),
                    cgroup: cgroup.name.clone(),
                    groups: NR_TASK_GROUPS - 1,
                    levels: NR_TASK_GROUP_LEVELS,
                });
            }
        }
    }
    Ok(())
}

fn check_affinities(scenario: &Scenario) -> Result<(), SimError> {
    let online = scenario.machine.online();
    let none = |cpus: &Option<CpuSet>| cpus.is_some_and(|cpus| !cpus.intersects(&online));
    let Workload { programs, cgroups, .. } = scenario.workload;
    let program = programs.iter().find(|program| none(&program.asks_for(scenario.machine)));
    let cgroup = cgroups.iter().find(|cgroup| none(&cgroup.cpus));
    let confined = program.map(|program| ("program", &program.name));
    match confined.or(cgroup.map(|cgroup| ("cgroup", &cgroup.name))) {
        Some((what, name)) => Err(SimError::NoAllowedCpu {
            confined: format!("{what} '{name}'"),
            machine: scenario.machine.name.clone(),
        }),
        None => Ok(()),
    }
}

/// Changes that no kernel would carry out are refused before the run.
fn check_changes(scenario: &Scenario) -> Result<(), SimError> {
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
