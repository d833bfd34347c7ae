//! What the simulator makes of a recorded run: the same load on the machine's file, under the profile
//! that stands for the running kernel, with the same knobs turned; and its counts by the names of the
//! recorded ones.
//!
//! Limits: knobs that are no scheduler's, but for `cpus` and `smt`, and loads that no model has are not
//! simulated; what a kernel's release string does not tell, its back-ports, is not either.

use std::collections::BTreeMap;
use std::path::Path;

use placewise_machine::{CpuSet, Machine};
use placewise_policy::{
    MEASURED_5_10, MEASURED_6_12, MEASURED_7_3, MeasuredKernel, Policy, kernel_for_release,
    with_knobs,
};
use placewise_sim::{LoadBalance, NewidleMemory, Outcome, Scenario, simulate_after};
use placewise_workload::Case;
use placewise_workload::program::Workload;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg32;

use crate::summary::Load;

/// What `interventions costs` calls `thread_start_ns` and `process_start_ns`, under Linux 6.18.
const THREAD_START_US: u64 = 100;
const PROCESS_START_US: u64 = 420;

/// Counts of one run by the names of recorded ones.
pub type Counts = BTreeMap<&'static str, f64>;

/// A recorded run, as the simulator takes it.
pub struct Simulation {
    machine: Machine,
    policy: Policy,
    workload: Workload,
}

impl Simulation {
    /// `release` is what the kernel said it is; the machine's file is in `machines`. An error says why
    /// there is nothing to predict.
    pub fn of(
        [machine, _, workload, case]: &Load,
        release: &str,
        knob: &str,
        machines: &Path,
    ) -> Result<Self, String> {
        let kernel = kernel_for_release(release)
            .ok_or_else(|| format!("no kernel stands for release {release}"))?;
        if !placewise_workload::names().any(|name| name == workload) {
            return Err(format!("no model is called {workload}"));
        }
        let file = machines.join(format!("{machine}.toml")).display().to_string();
        let mut machine = placewise_machine::load(&file).map_err(|error| error.to_string())?;
        let case = as_in_the_guest(workload, case.parse().map_err(|error| format!("{error}"))?);
        let workload = placewise_workload::build(workload, &case);
        let mut workload = workload.map_err(|error| error.to_string())?;
        let (mut knobs, turns) = (Vec::new(), knob.split(';').filter(|turn| !turn.is_empty()));
        for turn in turns {
            match turn.split_once('=') {
                Some(("cpus", list)) => confine(&mut workload, list)?,
                Some(("smt", "off")) => turn_smt_off(&mut machine),
                _ => knobs.push(turn.to_owned()),
            }
        }
        let policy = Policy::parse(kernel, &with_knobs("baseline", &knobs));
        let mut policy = policy.map_err(|error| error.to_string())?;
        // A guest's lock is not handed on to who waits: who lets it go only to take it again has it at once.
        policy.profile.wait_queue_batch = 0;
        Ok(Self { machine, policy, workload })
    }

    /// After what left this memory.
    pub fn run(&self, seed: u64, memory: &mut NewidleMemory) -> anyhow::Result<Counts> {
        let Self { machine, policy, workload } = self;
        let workload = &self.begun_by_the_shell(workload.clone(), seed);
        let outcome = simulate_after(&Scenario { machine, policy, workload, seed }, memory)?;
        Ok(counts(&outcome, machine.online().len() as f64))
    }

    /// On whatever CPU the guest's shell was when it started the load, and with its wake flips.
    fn begun_by_the_shell(&self, mut workload: Workload, seed: u64) -> Workload {
        let online = self.machine.online();
        let main = &mut workload.programs[0];
        main.wakee_flips = inherited_flips(self.policy.profile.measured);
        let cpus: Vec<usize> = main.cpus.map_or(online, |cpus| cpus & online).iter().collect();
        let cpu = cpus.choose(&mut Pcg32::seed_from_u64(seed));
        main.begins_on = cpu.map(|cpu| *cpu as u32);
        workload
    }
}

/// Tasks inherit how often who forked them has changed whom it wakes, and a guest's first program has written and read
/// many files: what its shell has (probes of select_task_rq_fair() on `two-nodes-16`; under 5.10 taken as under 6.1).
/// Half of it, since who wakes another first halves what is older than a second. How the rows of `filled` fit with half
/// and with all of it was seen, and did not decide it.
fn inherited_flips(kernel: MeasuredKernel) -> u32 {
    let of_the_shell = match kernel {
        MEASURED_5_10 => 80,
        MEASURED_6_12 => 127,
        MEASURED_7_3 => 186,
        // MEASURED_6_18
        _ => 103,
    };
    of_the_shell / 2
}

/// The guest's loads create all of their tasks before the start, each of which first reads its account in
/// /proc: `interventions costs` says for how long.
fn as_in_the_guest(workload: &str, case: Case) -> Case {
    let start_up =
        if case.get("tasks") == Some("process") { PROCESS_START_US } else { THREAD_START_US };
    let case = match workload {
        "hackbench" | "herd" | "context_switch1" => case.with("startup_us", start_up),
        _ => case,
    };
    if workload == "context_switch1" { case.with("partners", "main") } else { case }
}

/// As taskset does for what it starts.
fn confine(workload: &mut Workload, list: &str) -> Result<(), String> {
    let cpus = CpuSet::parse_list(list).map_err(|error| error.to_string())?;
    workload.programs.iter_mut().for_each(|program| program.cpus = Some(cpus));
    Ok(())
}

/// The first CPU of each core stays.
fn turn_smt_off(machine: &mut Machine) {
    let mut cores = Vec::new();
    for cpu in machine.cpus.iter_mut().filter(|cpu| cpu.online) {
        cpu.online = !cores.contains(&cpu.core);
        cores.push(cpu.core);
    }
}

fn counts(outcome: &Outcome, nr_cpus: f64) -> Counts {
    let account = &outcome.statistics.account;
    let counter = |name: &str| {
        let figures = outcome.statistics.figures.iter();
        figures.filter(|figure| figure.metric == name).map(|figure| figure.value).sum::<f64>()
    };
    // Those of /proc/schedstat are given per CPU.
    let schedstat = |name: &str| counter(&format!("schedstat_{name}")) * nr_cpus;
    let at = |level: &str| schedstat(&format!("wakeups_on_same_{level}"));
    let wakeups = "try_to_wake_up_was_called";
    let run = "total_runtime_by_tasks_on_this_processor_in_jiffies";
    let delay = "total_waittime_by_tasks_on_this_processor_in_jiffies";
    let mut counts = Counts::from([
        ("messages", account.units as f64),
        ("ns", account.ns as f64),
        ("tasks", account.tasks as f64),
        ("sleeps", account.sleeps as f64),
        ("preemptions", account.preemptions as f64),
        ("migrations", account.migrations as f64),
        ("wakeups", schedstat(wakeups)),
        ("wakeups_same_cpu", schedstat(&format!("{wakeups}_to_wake_up_the_local_cpu"))),
        ("wakeups_smt", at("smt")),
        ("wakeups_llc", at("cls") + at("mc")),
        ("wakeups_node", at("die") + at("pkg")),
        ("wakeups_other_node", at("node") + at("numa")),
        ("schedules", schedstat("schedule_called")),
        ("idle_entries", schedstat("schedule_left_the_processor_idle")),
        ("run_ns", schedstat(run)),
        ("run_delay_ns", schedstat(delay)),
    ]);
    for (idle, passes, pulls) in [
        ("newly_idle", "newidle_passes", "newidle_pulls"),
        ("idle", "idle_passes", "idle_pulls"),
        ("busy", "busy_passes", "busy_pulls"),
    ] {
        counts.insert(passes, balance(outcome, idle, "lb_count"));
        counts.insert(pulls, balance(outcome, idle, "lb_gained"));
    }
    for (metric, name) in
        [("p50_wakeup_latency", "latency_p50_ns"), ("p99_wakeup_latency", "latency_p99_ns")]
    {
        let figure = outcome.figures.iter().find(|figure| figure.metric == metric);
        counts.extend(figure.map(|figure| (name, figure.value * 1e3)));
    }
    counts
}

/// Of all levels.
fn balance(outcome: &Outcome, idle: &str, counter: &str) -> f64 {
    let place = LoadBalance::COUNTERS.iter().position(|known| *known == counter);
    let of_type = outcome.statistics.load_balance.iter().filter(|one| one.idle == idle);
    of_type.filter_map(|one| Some(one.counters[place?] as f64)).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const CASE: &str = "groups=1;fds=2;loops=30;warmup_ms=0;window_ms=60000";

    fn simulation(workload: &str, knob: &str) -> Result<Simulation, String> {
        simulation_of(["two-nodes-16", "v6.18", workload, CASE], "6.18.15+deb13-cloud-amd64", knob)
    }

    fn simulation_of(load: [&str; 4], release: &str, knob: &str) -> Result<Simulation, String> {
        let directory =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/interventions/machines");
        Simulation::of(&load.map(str::to_owned), release, knob, &directory)
    }

    fn run(simulation: &Simulation) -> Counts {
        simulation.run(1, &mut NewidleMemory::default()).unwrap()
    }

    fn counts(knob: &str) -> Counts {
        run(&simulation("hackbench", knob).unwrap())
    }

    #[test]
    fn a_run_is_counted_by_the_names_of_recorded_ones() {
        let counts = counts("");
        assert_eq!((counts["messages"], counts["tasks"]), (120.0, 4.0));
        assert!(counts["ns"] > 120_000.0, "a message takes more than a us");
        let by_distance: f64 = ["same_cpu", "smt", "llc", "node", "other_node"]
            .map(|it| counts[&*format!("wakeups_{it}")])
            .iter()
            .sum();
        assert!((counts["wakeups"] - by_distance).abs() < 1e-6);
        assert!(counts["wakeups"] >= counts["sleeps"] && counts["sleeps"] > 0.0);
    }

    /// The machine's file adds up to what `interventions costs` has measured, on one CPU and on two.
    #[test]
    fn round_trips_take_as_long_as_on_the_emulated_machine() {
        // On two the median of four distances, which cost nothing there: 10,807 to 12,435.
        for (cpus, measured) in [("cpus=0", 11_501.0), ("cpus=0,2", 11_477.0)] {
            let case = "loops=2000;warmup_ms=0;window_ms=60000";
            let load = ["two-nodes-16", "v6.18", "schedpipe", case];
            let counts = run(&simulation_of(load, "6.18.15", cpus).unwrap());
            let round_trip = counts["ns"] / counts["messages"];
            assert!((round_trip / measured - 1.0).abs() < 0.04, "{cpus}: {round_trip}");
        }
    }

    #[test]
    fn cpus_confine_the_load_and_smt_leaves_a_cpu_of_each_core() {
        assert_eq!(counts("cpus=3")["migrations"], 0.0);
        assert_eq!(counts("cpus=3")["wakeups"], counts("cpus=3")["wakeups_same_cpu"]);
        assert_eq!(simulation("hackbench", "smt=off").unwrap().machine.online().len(), 8);
        assert_eq!(counts("smt=off")["wakeups_smt"], 0.0);
    }

    #[test]
    fn a_load_begins_on_any_cpu_that_it_may_run_on() {
        let simulation = simulation("hackbench", "cpus=4-7").unwrap();
        let begins_on = |seed| {
            let workload = simulation.begun_by_the_shell(simulation.workload.clone(), seed);
            workload.programs[0].begins_on.unwrap()
        };
        assert_eq!((1..=50).map(begins_on).collect::<BTreeSet<_>>(), BTreeSet::from([4, 5, 6, 7]));
    }

    #[test]
    fn a_load_begins_with_the_flips_of_the_guests_shell() {
        let simulation = simulation("hackbench", "").unwrap();
        let as_in_guests = simulation.begun_by_the_shell(simulation.workload.clone(), 1);
        assert_eq!(as_in_guests.programs[0].wakee_flips, 51);
        assert_eq!(as_in_guests.programs[1].wakee_flips, 0, "they inherit it");
    }

    #[test]
    fn who_opens_a_gate_of_a_guest_has_its_lock_until_all_are_woken() {
        let load = ["two-nodes-16", "v6.1", "hackbench", CASE];
        let simulation = simulation_of(load, "6.1.176", "").unwrap();
        assert_eq!(simulation.policy.profile.wait_queue_batch, 0);
    }

    #[test]
    fn knobs_of_the_scheduler_are_those_of_the_policy() {
        let profile =
            simulation("hackbench", "WA_IDLE=0;cpus=0-7;SIS_UTIL=0").unwrap().policy.profile;
        assert!(!profile.wa_idle && !profile.sis_util && profile.wa_weight);
    }

    #[test]
    fn what_cannot_be_predicted_says_why() {
        let refusal = |workload, knob| simulation(workload, knob).err().unwrap();
        assert_eq!(refusal("ring", ""), "no model is called ring");
        assert!(
            refusal("hackbench", "timer_migration=0").contains("unknown knob 'timer_migration'")
        );
        assert!(refusal("hackbench", "SIS_PROP=1").contains("kernel v6.18.15 has no SIS_PROP"));
    }
}
