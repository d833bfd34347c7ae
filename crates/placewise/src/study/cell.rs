//! A cell is one simulation of a study, addressed by a digest of all that its figures follow from: two
//! plans that ask for the same share it, and a changed file or another build makes another of it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use placewise_sim::Scenario;
use serde::Serialize;

use super::plan::{Group, Part, StudyPlan};
use crate::compare::plan as compare;
use crate::finished::Digest;
use crate::subject::Subject;

/// By its place in the plan. The order is that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub part: usize,
    pub group: usize,
    /// Its place in the group.
    pub member: usize,
    pub run: u32,
}

/// What a cell is a simulation of.
#[derive(Serialize)]
pub struct Label<'a> {
    pub cell: String,
    pub workload: &'a str,
    pub case: &'a str,
    #[serde(flatten)]
    pub subject: &'a Subject,
    pub seed: u64,
}

/// A plan with the addresses of its cells.
pub struct Cells<'a> {
    pub plan: &'a StudyPlan,
    /// Of all but the seed, by part, group and member.
    digests: Vec<Vec<Vec<Digest>>>,
}

impl<'a> Cells<'a> {
    pub fn new(plan: &'a StudyPlan) -> anyhow::Result<Self> {
        let build = Digest::of_build()?;
        let mut known = Known::default();
        let digests = plan.parts.iter().map(|part| {
            let of_group = |group: &Group| {
                let digest = |combination| {
                    let scenario = scenario(part, group, combination, 0, plan.seed);
                    let Scenario { machine, policy, workload, .. } = scenario;
                    let of = [known.digest(machine), known.digest(policy), known.digest(workload)];
                    Digest::of(&(build, of))
                };
                group.combinations.iter().copied().map(digest).collect()
            };
            part.groups.iter().map(of_group).collect()
        });
        let digests = digests.collect();
        Ok(Self { plan, digests })
    }

    pub fn scenario(&self, cell: Cell) -> Scenario<'a> {
        let part = &self.plan.parts[cell.part];
        let group = &part.groups[cell.group];
        scenario(part, group, group.combinations[cell.member], cell.run, self.plan.seed)
    }

    pub fn id(&self, cell: Cell) -> Digest {
        Digest::of(&(self.digests[cell.part][cell.group][cell.member], self.seed(cell)))
    }

    pub fn label(&self, cell: Cell) -> Label<'a> {
        let part = &self.plan.parts[cell.part];
        let group = &part.groups[cell.group];
        Label {
            cell: self.id(cell).to_string(),
            workload: &part.workload,
            case: &part.plan.cases[group.case].name,
            subject: &part.plan.combinations[group.combinations[cell.member]].subject,
            seed: self.seed(cell),
        }
    }

    /// Those of the first runs of every group, and all that may be added to them.
    pub fn by_id(&self) -> BTreeMap<String, Cell> {
        let budget = self.plan.effort.precision.map(|_| self.plan.effort.budget());
        let runs = 0..budget.unwrap_or(self.plan.runs).max(self.plan.runs);
        let cells = runs.flat_map(|run| self.groups().flat_map(move |group| self.of(group, run)));
        cells.map(|cell| (self.id(cell).to_string(), cell)).collect()
    }

    /// By part and place.
    pub fn groups(&self) -> impl Iterator<Item = (usize, usize)> {
        let parts = self.plan.parts.iter().enumerate();
        parts.flat_map(|(at, part)| (0..part.groups.len()).map(move |group| (at, group)))
    }

    /// A run of each combination of a group.
    pub fn of(&self, (part, group): (usize, usize), run: u32) -> impl Iterator<Item = Cell> {
        let members = self.plan.parts[part].groups[group].combinations.len();
        (0..members).map(move |member| Cell { part, group, member, run })
    }

    fn seed(&self, cell: Cell) -> u64 {
        self.plan.seed + u64::from(cell.run)
    }
}

fn scenario<'a>(
    part: &'a Part,
    group: &Group,
    combination: usize,
    run: u32,
    seed: u64,
) -> Scenario<'a> {
    part.plan.scenario(compare::Cell { case: group.case, combination, run }, seed)
}

/// Digests by address: a machine of many CPUs is in many cells.
#[derive(Default)]
struct Known(BTreeMap<usize, Digest>);

impl Known {
    fn digest<T: Debug>(&mut self, value: &T) -> Digest {
        *self.0.entry(std::ptr::from_ref(value).addr()).or_insert_with(|| Digest::of(value))
    }
}
