//! How well predictions fit what was recorded.
//!
//! An **effect** is what a knob does to a figure of a load: a change of a tenth or more, where the ranges
//! with the knob and without do not overlap. Its prediction has the right sign or the wrong one; under
//! half a percent it has none, which counts as wrong. A **level** is what a figure is, with a knob or
//! without: wakeups by distance fit within ten points, and sleeps, preemptions and migrations per message
//! within a factor of 1.5. What is below a thousandth before and after is no effect, and below it as
//! recorded and as predicted one number is as good as another: that is a handful of events in a run.

use serde::Serialize;

use crate::prediction::{Case, Compared};

/// The least change that is an effect.
const EFFECT: f64 = 0.1;
/// The least that has a sign.
const SIGN: f64 = 0.005;
const POINTS: f64 = 0.1;
const FACTOR: f64 = 1.5;
const RARE: f64 = 0.001;

/// What a knob does to a figure.
#[derive(Debug, Serialize)]
pub struct Effect<'a> {
    #[serde(skip)]
    pub case: &'a Case,
    pub figure: &'static str,
    pub before: Compared,
    pub after: Compared,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Right,
    Wrong,
    NoSign,
}

/// The relative change, infinite from nothing; none where nothing stays nothing.
fn change(before: f64, after: f64) -> Option<f64> {
    (before != after || before != 0.0).then(|| after / before - 1.0)
}

impl Effect<'_> {
    pub fn recorded(&self) -> f64 {
        change(self.before.recorded.median, self.after.recorded.median).unwrap_or_default()
    }

    /// How large it is, either way; to nothing it is no larger than to a thousandth.
    pub fn size(&self) -> f64 {
        let [before, after] = [self.before, self.after].map(|it| it.recorded.median.max(RARE));
        (after / before).ln().abs()
    }

    pub fn predicted(&self) -> Option<f64> {
        change(self.before.predicted.median, self.after.predicted.median)
    }
}

/// The effects that there are among these cases.
pub fn effects<'a>(cases: &[&'a Case]) -> Vec<Effect<'a>> {
    let mut effects = Vec::new();
    for case in cases.iter().filter(|case| !case.knob.is_empty()) {
        let is_baseline =
            |it: &&&Case| it.knob.is_empty() && (&it.batch, &it.load) == (&case.batch, &case.load);
        let Some(baseline) = cases.iter().find(is_baseline) else { continue };
        for (&figure, &after) in &case.figures {
            let Some(&before) = baseline.figures.get(figure) else { continue };
            let recorded = change(before.recorded.median, after.recorded.median);
            let recorded = recorded.filter(|change| change.abs() >= EFFECT);
            let counts = before.recorded.median.max(after.recorded.median) >= RARE;
            let clear = before.recorded.apart(&after.recorded);
            if let Some(recorded) = recorded.filter(|_| counts && clear) {
                let predicted = change(before.predicted.median, after.predicted.median);
                let verdict = verdict(recorded, predicted.unwrap_or_default());
                effects.push(Effect { case, figure, before, after, verdict });
            }
        }
    }
    effects
}

fn verdict(recorded: f64, predicted: f64) -> Verdict {
    match predicted.abs() >= SIGN {
        false => Verdict::NoSign,
        true if (predicted > 0.0) == (recorded > 0.0) => Verdict::Right,
        true => Verdict::Wrong,
    }
}

/// How many hold of how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    pub hold: usize,
    pub of: usize,
}

impl Part {
    fn count(&mut self, holds: bool) {
        self.hold += usize::from(holds);
        self.of += 1;
    }

    pub fn percent(self) -> Option<f64> {
        (self.of > 0).then(|| 100.0 * self.hold as f64 / self.of as f64)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Effects with the right sign.
    pub signs: Part,
    /// Effects whose prediction has no sign.
    pub no_sign: usize,
    /// Pairs of a load and a knob whose level fits.
    pub distances: Part,
    pub sleeps: Part,
    pub preemptions: Part,
    pub migrations: Part,
    /// In all four of them.
    pub levels: Part,
}

impl Score {
    /// `levels_of` says whose levels count.
    pub fn of(cases: &[&Case], effects: &[&Effect], levels_of: impl Fn(&Case) -> bool) -> Self {
        let mut score = Self::default();
        for effect in effects {
            score.signs.count(effect.verdict == Verdict::Right);
            score.no_sign += usize::from(effect.verdict == Verdict::NoSign);
        }
        for case in cases.iter().filter(|case| levels_of(case)) {
            let parts = [
                (&mut score.distances, distance(case).map(|points| points <= POINTS)),
                (&mut score.sleeps, fits(case, "sleeps_per_message")),
                (&mut score.preemptions, fits(case, "preemptions_per_message")),
                (&mut score.migrations, fits(case, "migrations_per_message")),
            ];
            let mut all = true;
            for (part, holds) in parts {
                holds.into_iter().for_each(|holds| part.count(holds));
                all &= holds.unwrap_or(true);
            }
            score.levels.count(all);
        }
        score
    }
}

/// By how much the share of wakeups at some distance is off, at most.
pub fn distance(case: &Case) -> Option<f64> {
    let share = |figure, of: fn(&Compared) -> f64| case.figures.get(figure).map(of);
    let shares = |of: fn(&Compared) -> f64| {
        let [cpu, core, llcs, nodes] =
            ["wakeups_same_cpu", "wakeups_same_core", "wakeups_other_llc", "wakeups_other_node"]
                .map(|figure| share(figure, of));
        // One LLC has no distance beyond it.
        let (cpu, core) = (cpu?, core?);
        let (llcs, nodes) = (llcs.unwrap_or_default(), nodes.unwrap_or_default());
        Some([cpu, core - cpu, 1.0 - core - llcs, llcs - nodes, nodes])
    };
    let recorded = shares(|compared| compared.recorded.median)?;
    let predicted = shares(|compared| compared.predicted.median)?;
    let off =
        recorded.iter().zip(predicted).map(|(recorded, predicted)| (recorded - predicted).abs());
    off.reduce(f64::max)
}

fn fits(case: &Case, figure: &str) -> Option<bool> {
    Some(factor(case, figure)? <= FACTOR)
}

/// How many times too much, or too little, is predicted.
pub fn factor(case: &Case, figure: &str) -> Option<f64> {
    let Compared { recorded, predicted } = case.figures.get(figure)?;
    let (recorded, predicted) = (recorded.median, predicted.median);
    if recorded.max(predicted) < RARE {
        return Some(1.0);
    }
    Some((recorded / predicted).max(predicted / recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Spread;

    fn spread([min, median, max]: [f64; 3]) -> Spread {
        Spread { median, min, max }
    }

    fn case(knob: &str, figures: &[(&'static str, [f64; 3], f64)]) -> Case {
        let compared = |&(figure, recorded, predicted): &(&'static str, [f64; 3], f64)| {
            let predicted = spread([predicted; 3]);
            (figure, Compared { recorded: spread(recorded), predicted })
        };
        Case {
            batch: "knobs".to_owned(),
            load: ["m", "v6.18", "w", "c"].map(str::to_owned),
            knob: knob.to_owned(),
            replicates: 3,
            figures: figures.iter().map(compared).collect(),
        }
    }

    const SLEEPS: &str = "sleeps_per_message";

    fn verdicts(after: [f64; 3], predicted: f64) -> Vec<Verdict> {
        let without = case("", &[(SLEEPS, [1.0, 1.1, 1.2], 2.0)]);
        let with = case("WA_IDLE=0", &[(SLEEPS, after, predicted)]);
        effects(&[&without, &with]).iter().map(|effect| effect.verdict).collect()
    }

    #[test]
    fn an_effect_is_a_clear_change_of_a_tenth() {
        assert_eq!(verdicts([1.3, 1.4, 1.5], 3.0), [Verdict::Right]);
        assert_eq!(verdicts([1.2, 1.4, 1.5], 3.0), [], "the ranges meet");
        assert_eq!(verdicts([1.201, 1.205, 1.5], 3.0), [], "less than a tenth");
    }

    #[test]
    fn the_sign_of_an_effect_is_right_wrong_or_missing() {
        assert_eq!(verdicts([0.1, 0.2, 0.3], 1.0), [Verdict::Right]);
        assert_eq!(verdicts([0.1, 0.2, 0.3], 3.0), [Verdict::Wrong]);
        assert_eq!(verdicts([0.1, 0.2, 0.3], 2.009), [Verdict::NoSign]);
        assert_eq!(verdicts([0.0, 0.0, 0.0], 0.0), [Verdict::Right]);
    }

    #[test]
    fn what_is_rare_before_and_after_is_no_effect() {
        let few = |before| {
            let without = case("", &[(SLEEPS, [before; 3], 0.0)]);
            let with = case("WA_IDLE=0", &[(SLEEPS, [0.0; 3], 0.0)]);
            effects(&[&without, &with]).len()
        };
        assert_eq!((few(0.0009), few(0.001)), (0, 1));
    }

    #[test]
    fn what_came_from_nothing_is_an_effect() {
        let without = case("", &[(SLEEPS, [0.0; 3], 0.0)]);
        let with = case("WA_IDLE=0", &[(SLEEPS, [1.0; 3], 0.0)]);
        let effects = effects(&[&without, &with]);
        assert_eq!(effects[0].verdict, Verdict::NoSign);
        assert_eq!(effects[0].recorded(), f64::INFINITY);
    }

    #[test]
    fn levels_fit_within_a_factor_unless_they_are_rare() {
        let off_by = |recorded, predicted| {
            factor(&case("", &[(SLEEPS, [recorded; 3], predicted)]), SLEEPS).unwrap()
        };
        assert_eq!(off_by(0.1, 0.2), 2.0);
        assert_eq!(off_by(0.2, 0.1), 2.0);
        assert_eq!(off_by(0.0009, 0.0), 1.0);
        assert_eq!(off_by(0.001, 0.0), f64::INFINITY);
    }

    #[test]
    fn distances_are_compared_class_by_class() {
        // Of 10, as recorded: 1 on the CPU, 2 on the core, 3 in the LLC, none in the node, 4 beyond.
        let case = case(
            "",
            &[
                ("wakeups_same_cpu", [0.1; 3], 0.1),
                ("wakeups_same_core", [0.3; 3], 0.3),
                ("wakeups_other_llc", [0.4; 3], 0.4),
                ("wakeups_other_node", [0.4; 3], 0.15),
            ],
        );
        assert!((distance(&case).unwrap() - 0.25).abs() < 1e-9);
    }
}
