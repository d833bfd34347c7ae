//! The options that give the same figures again, every default spelt out.

use std::borrow::Cow;

use super::args::{CompareArgs, Stats};
use super::plan::Plan;
use crate::subject::Axis;

pub fn command(args: &CompareArgs, plan: &Plan) -> Vec<String> {
    let mut command = Vec::new();
    let mut option = |name: &str, value: &str| {
        command.push(format!("--{name} {}", quoted(value)));
    };
    let subjects = plan.subjects();
    args.machines.iter().for_each(|machine| option("machine", machine));
    args.costs_from.iter().for_each(|machine| option("costs-from", machine));
    Axis::Kernel.values(&subjects).iter().for_each(|kernel| option("kernel", kernel));
    option("workload", &args.workload);
    args.cases.iter().for_each(|case| option("case", case));
    args.environments.iter().for_each(|environment| option("environment", environment));
    plan.policies().iter().for_each(|policy| option("policy", policy));
    option("runs", &args.runs().to_string());
    if let Some(precision) = args.effort.precision {
        option("precision", &precision.to_string());
        option("budget", &args.effort.budget().to_string());
    }
    option("seed", &args.seed.to_string());
    command.extend(args.quick.then(|| "--quick".to_owned()));
    command.extend(args.stats.map(|stats| match stats {
        Stats::Moved => "--stats".to_owned(),
        Stats::All => "--stats=all".to_owned(),
    }));
    command.extend(args.uncertain.draws().map(|draws| format!("--uncertain={draws}")));
    command
}

/// For a shell, with quotes only where it needs them.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => shell_words::quote(word),
    }
}
