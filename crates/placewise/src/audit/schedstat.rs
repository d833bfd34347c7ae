//! What /proc/schedstat has counted in the interval of a trace, from a copy before and one after.
//!
//! Its versions 15 to 17 differ in the order of the kinds of balance passes and in how many numbers
//! each has:
//!
//! | version | passes | numbers of each | of them the tasks pulled |
//! |---|---|---|---|
//! | 15 | idle, busy, newly idle | 8 | the fifth |
//! | 16 | busy, idle, newly idle | 8 | the fifth |
//! | 17, with the name of the domain | busy, idle, newly idle | 11 | the eighth |
//!
//! Limit: counters of 32 bits may wrap once in an interval, not twice.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::input::InputError;

/// Of a CPU: yields, one without meaning, and what [`Counted`] has.
const NUMBERS_OF_CPU: usize = 9;
/// Of a domain after its passes: active balancing, exec and fork balancing, wakeups.
const NUMBERS_OF_REST: usize = 12;
const ACTIVE_PUSHED: usize = 2;
const WOKEN_REMOTE: usize = 9;

/// One copy of the file.
#[derive(Debug)]
pub struct Schedstat {
    layout: Layout,
    timestamp: u64,
    cpus: BTreeMap<u32, Vec<u64>>,
    /// By CPU and level.
    domains: BTreeMap<(u32, u32), Domain>,
}

#[derive(Debug)]
struct Domain {
    name: String,
    numbers: Vec<u64>,
}

/// Where a version has what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    version: u32,
    kinds: [Kind; 3],
    numbers_of_kind: usize,
    pulled: usize,
    named: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Busy,
    Idle,
    NewlyIdle,
}

impl Layout {
    fn of(version: u32) -> Option<Self> {
        use Kind::{Busy, Idle, NewlyIdle};

        let (kinds, numbers_of_kind, pulled) = match version {
            15 => ([Idle, Busy, NewlyIdle], 8, 4),
            16 => ([Busy, Idle, NewlyIdle], 8, 4),
            17 => ([Busy, Idle, NewlyIdle], 11, 7),
            _ => return None,
        };
        Some(Layout { version, kinds, numbers_of_kind, pulled, named: version >= 17 })
    }

    fn numbers_of_domain(&self) -> usize {
        self.kinds.len() * self.numbers_of_kind + NUMBERS_OF_REST
    }

    fn domain(&self, name: &str, numbers: &[u64]) -> CountedOfDomain {
        let (passes, rest) = numbers.split_at(self.kinds.len() * self.numbers_of_kind);
        let of_kind = |kind| {
            let at = self.kinds.iter().position(|of| *of == kind).expect("all three are there");
            let numbers = &passes[at * self.numbers_of_kind..];
            let (pulled, failed) = (numbers[self.pulled], numbers[2]);
            Passes { passes: numbers[0], balanced: numbers[1], failed, pulled }
        };
        CountedOfDomain {
            name: name.to_owned(),
            busy: of_kind(Kind::Busy),
            idle: of_kind(Kind::Idle),
            newly_idle: of_kind(Kind::NewlyIdle),
            active_pushed: rest[ACTIVE_PUSHED],
            woken_remote: rest[WOKEN_REMOTE],
        }
    }
}

/// What was counted between two copies, summed over all CPUs.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub version: Option<u32>,
    pub schedules: u64,
    pub idle_entries: u64,
    pub wakeups: u64,
    pub wakeups_same_cpu: u64,
    pub run_ns: u64,
    pub run_delay_ns: u64,
    pub switched_in: u64,
    /// From the smallest domains up.
    pub domains: Vec<CountedOfDomain>,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct CountedOfDomain {
    /// From version 17 on; before, `domain0` and so on.
    pub name: String,
    pub busy: Passes,
    pub idle: Passes,
    pub newly_idle: Passes,
    pub active_pushed: u64,
    /// Wakeups from one CPU of the domain to another, which no smaller domain has both of.
    pub woken_remote: u64,
}

/// Balance passes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passes {
    pub passes: u64,
    pub balanced: u64,
    pub failed: u64,
    /// Tasks.
    pub pulled: u64,
}

impl Passes {
    fn add(&mut self, other: &Passes) {
        self.passes = self.passes.saturating_add(other.passes);
        self.balanced = self.balanced.saturating_add(other.balanced);
        self.failed = self.failed.saturating_add(other.failed);
        self.pulled = self.pulled.saturating_add(other.pulled);
    }
}

impl Schedstat {
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let name = path.display();
        let text = std::fs::read(path).map_err(|error| InputError(format!("{name}: {error}")))?;
        Self::parse(&String::from_utf8_lossy(&text))
            .map_err(|problem| InputError(format!("{name}: {problem}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or_default();
        let layout = first.strip_prefix("version ").and_then(|version| version.trim().parse().ok());
        let layout = layout.and_then(Layout::of).ok_or_else(|| {
            let expected = "line 1: expected `version 15`, `16` or `17`, as in /proc/schedstat";
            format!("{expected}, found `{}`", first.chars().take(40).collect::<String>())
        })?;
        let (cpus, domains) = (BTreeMap::new(), BTreeMap::new());
        let mut schedstat = Schedstat { layout, timestamp: 0, cpus, domains };
        let mut cpu = None;
        for (at, line) in text.lines().enumerate().skip(1) {
            schedstat
                .line(line, &mut cpu)
                .map_err(|problem| format!("line {}: {problem}", at + 1))?;
        }
        match schedstat.cpus.is_empty() {
            true => Err("it has no line of a CPU; expected a copy of /proc/schedstat".to_owned()),
            false => Ok(schedstat),
        }
    }

    fn line(&mut self, line: &str, cpu: &mut Option<u32>) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let Some(key) = words.next() else { return Ok(()) };
        if key == "timestamp" {
            self.timestamp = numbers(words, 1)?[0];
        } else if let Some(id) = key.strip_prefix("cpu") {
            let id = index(key, id)?;
            *cpu = Some(id);
            let known = self.cpus.insert(id, numbers(words, NUMBERS_OF_CPU)?);
            known.map_or(Ok(()), |_| Err(format!("CPU {id} stands there twice")))?;
        } else if let Some(level) = key.strip_prefix("domain") {
            let level = index(key, level)?;
            let cpu = cpu.ok_or("a domain before the first CPU")?;
            let name = if self.layout.named { words.next() } else { None };
            words.next().ok_or("expected the CPUs of the domain")?;
            let numbers = numbers(words, self.layout.numbers_of_domain())?;
            let name = name.unwrap_or(key).to_owned();
            self.domains.insert((cpu, level), Domain { name, numbers });
        } else {
            return Err(format!(
                "expected `timestamp`, `cpuN` or `domainN`, found `{}`",
                key.chars().take(40).collect::<String>()
            ));
        }
        Ok(())
    }

    /// What was counted from this copy to a later one; an error says how they do not fit.
    pub fn until(&self, after: &Self) -> Result<Counted, String> {
        let Layout { version, .. } = self.layout;
        if self.layout != after.layout {
            return Err(format!("version {version} before, {} after", after.layout.version));
        }
        if after.timestamp < self.timestamp {
            return Err("the first is the later one: name the copy from before first".to_owned());
        }
        if !self.cpus.keys().eq(after.cpus.keys()) || !self.domains.keys().eq(after.domains.keys())
        {
            return Err("their CPUs or domains differ: one went offline or came online".to_owned());
        }
        let mut counted = Counted { version: Some(version), ..Counted::default() };
        for (before, after) in self.cpus.values().zip(after.cpus.values()) {
            // Yields and the number without meaning come first.
            counted.add_cpu(&grown(before, after)[2..]);
        }
        for ((&(_, level), before), after) in self.domains.iter().zip(after.domains.values()) {
            let numbers = grown(&before.numbers, &after.numbers);
            counted.add_domain(level, self.layout.domain(&after.name, &numbers));
        }
        Ok(counted)
    }
}

impl Counted {
    /// The counters of a CPU, in their order here.
    pub fn add_cpu(&mut self, numbers: &[u64]) {
        let sums = [
            &mut self.schedules,
            &mut self.idle_entries,
            &mut self.wakeups,
            &mut self.wakeups_same_cpu,
            &mut self.run_ns,
            &mut self.run_delay_ns,
            &mut self.switched_in,
        ];
        for (sum, number) in sums.into_iter().zip(numbers) {
            *sum = sum.saturating_add(*number);
        }
    }

    pub fn add_domain(&mut self, level: u32, of_cpu: CountedOfDomain) {
        let at = level as usize;
        if self.domains.len() <= at {
            self.domains.resize_with(at + 1, CountedOfDomain::default);
        }
        let domain = &mut self.domains[at];
        if domain.name.is_empty() {
            domain.name = of_cpu.name;
        }
        domain.busy.add(&of_cpu.busy);
        domain.idle.add(&of_cpu.idle);
        domain.newly_idle.add(&of_cpu.newly_idle);
        domain.active_pushed = domain.active_pushed.saturating_add(of_cpu.active_pushed);
        domain.woken_remote = domain.woken_remote.saturating_add(of_cpu.woken_remote);
    }

    /// Tasks that balancing has moved.
    pub fn moved(&self) -> u64 {
        let of = |domain: &CountedOfDomain| {
            let pulled = [domain.busy, domain.idle, domain.newly_idle].map(|of| of.pulled);
            pulled.into_iter().fold(domain.active_pushed, u64::saturating_add)
        };
        self.domains.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// `cpu12` and `domain0` count from 0, a machine has no more than this of either.
fn index(key: &str, digits: &str) -> Result<u32, String> {
    let index = digits.parse().ok().filter(|&index: &u32| index < placewise_policy::NR_CPUS);
    index.ok_or_else(|| {
        let most = placewise_policy::NR_CPUS - 1;
        format!(
            "expected a number from 0 to {most} in `{}`",
            key.chars().take(40).collect::<String>()
        )
    })
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>, count: usize) -> Result<Vec<u64>, String> {
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    match numbers {
        Some(numbers) if numbers.len() == count => Ok(numbers),
        Some(numbers) => Err(format!("expected {count} numbers, found {}", numbers.len())),
        None => Err(format!("expected {count} numbers, found something else")),
    }
}

/// Counters of 32 bits begin anew at 0.
fn grown(before: &[u64], after: &[u64]) -> Vec<u64> {
    let grown = |(&before, &after): (&u64, &u64)| match after.checked_sub(before) {
        Some(count) => count,
        None => u64::from((after as u32).wrapping_sub(before as u32)),
    };
    before.iter().zip(after).map(grown).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;

    fn numbers_from(first: u64, count: u64) -> String {
        (first..first + count).map(|n| format!(" {n}")).collect()
    }

    /// A copy with two CPUs of one domain each; numbers count up from `first`.
    fn copy(version: u32, first: u64) -> String {
        let (name, count) = if version >= 17 { (" MC", 45) } else { ("", 36) };
        let of_cpu = |cpu: u32| {
            let (of_cpu, of_domain) = (numbers_from(first, 9), numbers_from(first, count));
            format!("cpu{cpu}{of_cpu}\ndomain0{name} 00000003{of_domain}\n")
        };
        format!("version {version}\ntimestamp {first}\n{}{}", of_cpu(0), of_cpu(1))
    }

    /// From zeros.
    fn counted(version: u32) -> Counted {
        let zeros = |text: String| {
            let lines = text.lines().map(|line| {
                let words = line.split(' ').enumerate().map(|(at, word)| match at {
                    0 => word,
                    _ if line.starts_with("version") || word == "MC" || word == "00000003" => word,
                    _ => "0",
                });
                words.collect::<Vec<_>>().join(" ")
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        let after = copy(version, 1);
        let before = Schedstat::parse(&zeros(after.clone())).unwrap();
        before.until(&Schedstat::parse(&after).unwrap()).unwrap()
    }

    #[test]
    fn cpus_are_summed_up() {
        let of = counted(15);
        assert_eq!((of.schedules, of.idle_entries, of.wakeups), (6, 8, 10));
        assert_eq!((of.run_ns, of.run_delay_ns, of.switched_in), (14, 16, 18));
    }

    #[test]
    fn columns_follow_the_version() {
        let of = |version| {
            let mut domains = counted(version).domains;
            assert_eq!(domains.len(), 1);
            domains.remove(0)
        };
        let passes = |first: u64, pulled: u64| Passes {
            passes: 2 * first,
            balanced: 2 * (first + 1),
            failed: 2 * (first + 2),
            pulled: 2 * (first + pulled),
        };
        let (v15, v16, v17) = (of(15), of(16), of(17));
        assert_eq!(
            (v15.idle, v15.busy, v15.newly_idle),
            (passes(1, 4), passes(9, 4), passes(17, 4))
        );
        assert_eq!(
            (v16.busy, v16.idle, v16.newly_idle),
            (passes(1, 4), passes(9, 4), passes(17, 4))
        );
        assert_eq!(
            (v17.busy, v17.idle, v17.newly_idle),
            (passes(1, 7), passes(12, 7), passes(23, 7))
        );
        assert_eq!((v15.name.as_str(), v17.name.as_str()), ("domain0", "MC"));
        assert_eq!((v15.active_pushed, v17.active_pushed), (2 * 27, 2 * 36));
        assert_eq!((v15.woken_remote, v17.woken_remote), (2 * 34, 2 * 43));
    }

    #[test]
    fn a_counter_of_32_bits_may_wrap() {
        assert_eq!(grown(&[u32::MAX.into(), 5], &[3, 7]), [4, 2]);
    }

    #[track_caller]
    fn refused(text: &str, part: &str) {
        let problem = Schedstat::parse(text).unwrap_err();
        assert!(problem.contains(part), "`{part}` is not in: {problem}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        refused("", "line 1: expected `version 15`");
        refused("version 14\n", "found `version 14`");
        refused("version 18\n", "found `version 18`");
        refused("version 15\ntimestamp 1\n", "no line of a CPU");
        refused("version 15\ncpu0 1 2 3\n", "line 2: expected 9 numbers, found 3");
        refused("version 15\ncpu5000 1\n", "from 0 to 1023 in `cpu5000`");
        refused("version 15\ndomain0 3 1\n", "a domain before the first CPU");
        refused(&copy(15, 1).replacen("version 15", "version 17", 1), "expected 45 numbers");
        refused(
            &copy(17, 1).replacen("version 17", "version 16", 1),
            "line 4: expected 36 numbers",
        );
        refused(&(copy(15, 1) + &copy(15, 1)), "expected `timestamp`");
        let twice = copy(15, 1).replace("cpu1", "cpu0");
        refused(&twice, "line 5: CPU 0 stands there twice");
    }

    #[test]
    fn copies_have_to_fit() {
        let parse = |text: &str| Schedstat::parse(text).unwrap();
        let (early, late) = (parse(&copy(15, 1)), parse(&copy(15, 2)));
        assert!(late.until(&early).unwrap_err().contains("the first is the later one"));
        assert!(early.until(&parse(&copy(16, 2))).unwrap_err().contains("version 15 before, 16"));
        let one_cpu = copy(15, 2).replace("cpu1", "cpu7");
        assert!(early.until(&parse(&one_cpu)).unwrap_err().contains("CPUs or domains differ"));
    }

    /// Copies with words and lines replaced, repeated or left out.
    fn any_copy() -> impl Strategy<Value = String> {
        let word = prop_oneof![any::<u64>().prop_map(|n| n.to_string()), "[a-z0-9 \n-]{0,12}"];
        let change = (any::<prop::sample::Index>(), word, any::<bool>());
        let changes = prop::collection::vec(change, 0..4);
        let damaged = (15..18_u32, 0..100_u64, changes).prop_map(|(version, first, changes)| {
            let text = copy(version, first);
            let mut words: Vec<String> =
                text.split_inclusive([' ', '\n']).map(str::to_owned).collect();
            for (at, word, replaces) in changes {
                let at = at.index(words.len());
                let end = if words[at].ends_with('\n') { "\n" } else { " " };
                let new = word + end;
                match replaces {
                    true => words[at] = new,
                    false => words.insert(at, new),
                }
            }
            words.concat()
        });
        prop_oneof![9 => damaged, 1 => any::<String>()]
    }

    /// Read, and compared with itself and a sound copy; or refused in one line.
    fn assert_sound(text: &str) -> bool {
        let one_line = |problem: &str| {
            let sound = !problem.contains('\n') && problem.len() < 500;
            assert!(sound, "{problem:?}\n{text}");
        };
        let schedstat = match Schedstat::parse(text) {
            Ok(schedstat) => schedstat,
            Err(problem) => {
                one_line(&problem);
                return false;
            }
        };
        assert_eq!(schedstat.until(&schedstat).unwrap().moved(), 0, "{text}");
        let sound = Schedstat::parse(&copy(schedstat.layout.version, u64::from(u32::MAX))).unwrap();
        for (before, after) in [(&schedstat, &sound), (&sound, &schedstat)] {
            let counted = before.until(after);
            counted.map_or_else(|problem| one_line(&problem), |of| assert!(of.moved() < u64::MAX));
        }
        true
    }

    #[test]
    fn damaged_copies_are_read_or_refused() {
        let mut runner = TestRunner::deterministic();
        let read = (0..2_000)
            .filter(|_| assert_sound(&any_copy().new_tree(&mut runner).unwrap().current()));
        assert!(read.count() > 100);
    }

    #[test]
    #[ignore = "runs for PLACEWISE_FUZZ_SECONDS, 60 by default"]
    fn fuzz_schedstat() {
        let seconds = std::env::var("PLACEWISE_FUZZ_SECONDS").ok();
        let seconds = seconds.map_or(60, |text| text.parse().expect("PLACEWISE_FUZZ_SECONDS"));
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut runner = TestRunner::default();
        while Instant::now() < end {
            assert_sound(&any_copy().new_tree(&mut runner).unwrap().current());
        }
    }
}
