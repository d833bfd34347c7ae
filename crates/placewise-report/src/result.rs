//! Results of Placewise as their JSON has them: which verb one is of, and in one sentence what it
//! shows and how sure that is.

use serde::Serialize;
use serde_json::Value;

/// The keys that tell the verbs apart.
const KINDS: [(Kind, &[&str]); 5] = [
    (Kind::Compare, &["rows", "workload", "machines"]),
    (Kind::Reproduce, &["rows", "summary"]),
    (Kind::Difference, &["changes", "before", "after"]),
    (Kind::Audit, &["trace", "findings", "agreement"]),
    (Kind::Advise, &["advice", "candidates", "is_trusted"]),
];
/// The number of the keys that are known here.
const SCHEMA: u64 = 1;

#[derive(Debug, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct ResultError {
    name: String,
    problem: String,
}

/// What a result is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Compare,
    Reproduce,
    /// Of two traces.
    Difference,
    Audit,
    Advise,
}

/// One result.
#[derive(Serialize)]
pub struct JsonResult {
    name: String,
    kind: Kind,
    verdict: String,
    confidence: String,
    value: Value,
    /// As people post it, where that is known.
    text: Option<String>,
}

impl JsonResult {
    /// Reads what a command has printed.
    pub fn parse(name: &str, json: &[u8], text: Option<String>) -> Result<Self, ResultError> {
        let refuse = |problem: String| ResultError { name: name.to_owned(), problem };
        let value: Value = serde_json::from_slice(json).map_err(|error| {
            refuse(format!("{error}; expected a trace, or JSON of `--format json`"))
        })?;
        if value["schema"].as_u64() != Some(SCHEMA) {
            return Err(refuse(format!(
                "expected `\"schema\": {SCHEMA}`, as `--format json` prints it"
            )));
        }
        let has = |keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
        let kind = KINDS.iter().find(|(_, keys)| has(keys)).map(|(kind, _)| *kind);
        let kind = kind
            .ok_or_else(|| refuse("expected JSON of compare, audit, reproduce or advise".into()))?;
        let (verdict, confidence) = match kind {
            Kind::Compare => of_comparison(&value),
            Kind::Reproduce => of_reproduction(&value),
            Kind::Difference => of_difference(&value),
            Kind::Audit => of_audit(&value),
            Kind::Advise => of_advice(&value),
        };
        let text = text.or_else(|| value["lkml"].as_str().map(str::to_owned));
        Ok(JsonResult { name: name.to_owned(), kind, verdict, confidence, value, text })
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The largest change beyond noise.
fn of_comparison(value: &Value) -> (String, String) {
    let rows = list(value, "rows");
    let size = |row: &Value| row["change_pct"].as_f64().unwrap_or(0.0).abs();
    let significant = || rows.iter().filter(|row| row["significant"] == true);
    let changes = rows.iter().filter(|row| row["change_pct"].is_f64() && !row["better"].is_null());
    let (known, all) = (significant().count(), changes.count());
    let least = rows.iter().filter_map(|row| row["runs"].as_u64()).min().unwrap_or(0);
    let confidence = format!(
        "Simulated, not measured: at least {least} runs of each; {known} of {all} changes are beyond noise."
    );
    let first = |best: &'_ Value, row: &'_ Value| size(row) > size(best);
    let largest = significant().reduce(|best, row| if first(best, row) { row } else { best });
    let Some(row) = largest else {
        let workload = text(value, "workload");
        return (format!("No change of {workload} is beyond noise."), confidence);
    };
    let change = row["change_pct"].as_f64().unwrap_or_default();
    let word = if change < 0.0 { "worse" } else { "better" };
    let case = match text(row, "case") {
        "" => text(value, "workload").to_owned(),
        case => format!("{} ({case})", text(value, "workload")),
    };
    let verdict = format!(
        "{} makes {} of {case} {:.1} % {word}{}.",
        changed(value, row),
        text(row, "metric"),
        change.abs(),
        interval(row),
    );
    (verdict, confidence)
}

/// What tells a row from the first: its policy, or what else differs.
fn changed(value: &Value, row: &Value) -> String {
    let reference = &list(value, "rows")[0];
    let differs = |axis: &&&str| row[**axis] != reference[**axis];
    let axes = ["policy", "kernel", "machine", "environment"];
    let names: Vec<&str> = axes.iter().filter(differs).map(|axis| text(row, axis)).collect();
    names.join(" on ")
}

fn interval(row: &Value) -> String {
    match (row["change_low_pct"].as_f64(), row["change_high_pct"].as_f64()) {
        (Some(low), Some(high)) => {
            format!(", with 95 % certainty between {low:+.1} and {high:+.1} %")
        }
        _ => String::new(),
    }
}

fn of_reproduction(value: &Value) -> (String, String) {
    let summary = &value["summary"];
    let count = |key: &str| summary[key].as_u64().unwrap_or(0);
    let verdict = format!(
        "{} of {} published changes beyond noise are predicted with their sign, {} with none; {} of {} \
         that are none are predicted so.",
        count("decisive_right"),
        count("decisive"),
        count("decisive_unsigned"),
        count("null_real_quiet"),
        count("null_real"),
    );
    let out = &summary["out_of_sample"];
    let of = |key: &str| out[key].as_u64().unwrap_or(0);
    let confidence = format!(
        "Of those that nobody had in view when the simulator was made: {} of {}.",
        of("decisive_right"),
        of("decisive"),
    );
    (verdict, confidence)
}

fn of_difference(value: &Value) -> (String, String) {
    let waited = |side: &str| {
        let turns = list(&value[side], "turns");
        let sum = |key: &str| turns.iter().filter_map(|one| one[key].as_u64()).sum::<u64>() as f64;
        100.0 * sum("waited_ns") / sum("run_ns").max(1.0)
    };
    let verdict = format!(
        "Tasks waited {:.1} % of the time that they ran before, and {:.1} % after.",
        waited("before"),
        waited("after"),
    );
    let unlike: Vec<&str> = list(value, "unlike").iter().filter_map(Value::as_str).collect();
    let unlike = match unlike[..] {
        [] => String::new(),
        _ => format!(" The traces are unlike: {}.", unlike.join("; ")),
    };
    let confidence = "By how much two runs differ without any change, two traces do not tell.";
    (verdict, confidence.to_owned() + &unlike)
}

fn of_audit(value: &Value) -> (String, String) {
    let verdict = match list(value, "findings").first() {
        Some(finding) => format!("{}; {}.", text(finding, "text"), text(finding, "extent")),
        None => "Nothing kept a task waiting for long.".to_owned(),
    };
    let trace = &value["trace"];
    let notes = [list(trace, "cautions"), list(trace, "problems")].concat();
    let notes: String =
        notes.iter().filter_map(Value::as_str).map(|note| format!(" {note}.")).collect();
    let confidence = match value["agreement"]["exact_cpu_pct"].as_f64() {
        Some(pct) => format!(
            "The policy of {} names the CPU that the kernel chose in {pct:.1} % of {} wakeups.{notes}",
            text(trace, "kernel"),
            value["agreement"]["wakeups"],
        ),
        None => format!("The trace has no wakeup that was placed.{notes}"),
    };
    (verdict, confidence)
}

/// What would help most.
fn of_advice(value: &Value) -> (String, String) {
    let verdict = match (list(value, "advice").first(), value["candidates"].as_u64()) {
        (Some(first), _) => format!(
            "To {} changes {} by {:+.1} %{}.",
            text(first, "what"),
            text(value, "goal"),
            first["change_pct"].as_f64().unwrap_or_default(),
            interval(first),
        ),
        (None, Some(1..)) => {
            "Leave it as it is: nothing that was tried is better beyond noise.".to_owned()
        }
        _ => "There is nothing that could be tried, or believed.".to_owned(),
    };
    let trust = match value["is_trusted"] == true {
        true => "Simulated, on a replay that is like the trace.",
        false => "The replay is not like the trace: do not trust this.",
    };
    let left_out: Vec<&str> = list(value, "left_out").iter().filter_map(Value::as_str).collect();
    let left_out = match left_out[..] {
        [] => String::new(),
        _ => format!(" Left out, for their replay is not like it: {}.", left_out.join(", ")),
    };
    (verdict, trust.to_owned() + &left_out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: &Value) -> Result<JsonResult, String> {
        JsonResult::parse("a.json", value.to_string().as_bytes(), None)
            .map_err(|error| error.to_string())
    }

    fn row(policy: &str, change: Option<f64>, significant: Option<bool>) -> Value {
        json!({
            "case": "groups=1", "metric": "time", "policy": policy, "machine": "m", "kernel": "k",
            "environment": "none", "better": "lower", "change_pct": change, "runs": 5,
            "change_low_pct": change.map(|pct| pct - 1.0), "change_high_pct": change.map(|pct| pct + 1.0),
            "significant": significant,
        })
    }

    fn comparison(rows: &[Value]) -> Value {
        json!({ "schema": 1, "workload": "hackbench", "machines": [], "rows": rows, "lkml": "posted" })
    }

    #[test]
    fn the_largest_change_beyond_noise_is_told() {
        let rows = [
            row("baseline", None, None),
            row("a", Some(-50.0), Some(false)),
            row("b", Some(-12.0), Some(true)),
            row("c", Some(7.0), Some(true)),
        ];
        let result = parse(&comparison(&rows)).unwrap();
        let expected = "b makes time of hackbench (groups=1) 12.0 % worse, with 95 % certainty between \
                        -13.0 and -11.0 %.";
        assert_eq!(result.verdict, expected);
        assert!(result.confidence.contains("2 of 3 changes"), "{}", result.confidence);
        assert_eq!(result.text.as_deref(), Some("posted"));
    }

    #[test]
    fn noise_is_no_change() {
        let rows = [row("baseline", None, None), row("a", Some(-50.0), Some(false))];
        let result = parse(&comparison(&rows)).unwrap();
        assert_eq!(result.verdict, "No change of hackbench is beyond noise.");
    }

    #[test]
    fn advice_begins_with_what_helps_most() {
        let line = json!({
            "what": "keep a on LLC 0", "change_pct": 11.79, "change_low_pct": 11.0,
            "change_high_pct": 12.0, "costs": [], "commands": ["do"], "undo": ["undo"],
        });
        let advice = |lines: &[Value], is_trusted: bool| {
            let value = json!({
                "schema": 1, "trace": "t", "goal": "throughput", "is_trusted": is_trusted,
                "left_out": ["b"], "candidates": 3, "advice": lines,
            });
            parse(&value).unwrap()
        };
        let result = advice(&[line], true);
        let expected = "To keep a on LLC 0 changes throughput by +11.8 %, with 95 % certainty between \
                        +11.0 and +12.0 %.";
        assert_eq!(result.verdict, expected);
        assert!(result.confidence.ends_with("not like it: b."), "{}", result.confidence);
        let nothing = advice(&[], false);
        assert!(nothing.verdict.starts_with("Leave it as it is"));
        assert!(nothing.confidence.contains("do not trust"));
    }

    #[test]
    fn what_is_no_result_is_refused_in_one_line() {
        let refused = |json: &str| {
            let parsed = JsonResult::parse("a.json", json.as_bytes(), None);
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused("{").starts_with("a.json: EOF"), "{}", refused("{"));
        assert!(refused("{\"rows\": []}").contains("\"schema\": 1"));
        assert!(refused("{\"schema\": 1}").contains("compare, audit, reproduce or advise"));
    }
}
