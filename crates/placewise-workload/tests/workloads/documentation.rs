//! The page on workloads tells the parameters there are: no more, no fewer, no others' values.

use placewise_workload::{BINDING, Parameter, Value, names, parameters};

const PAGE: &str = include_str!("../../../../docs/workloads.md");

fn row(parameter: &Parameter) -> String {
    let Parameter { name, meaning, value } = parameter;
    match value {
        Value::Choice { words } => {
            format!("| `{name}` | {} | {} | {meaning} |", words[0], words.join(", "))
        }
        Value::Integer { default, min, max, unit } => {
            let default = default.map_or("depends".to_string(), |default| default.to_string());
            let range = format!("{min} to {max} {unit}");
            format!("| `{name}` | {default} | {} | {meaning} |", range.trim_end())
        }
        Value::Text { default, form, .. } => {
            format!("| `{name}` | `{default}` | {form} | {meaning} |")
        }
    }
}

fn table(parameters: &[Parameter]) -> String {
    let rows: Vec<String> = parameters.iter().map(row).collect();
    format!("| key | default | values | meaning |\n|---|---|---|---|\n{}\n", rows.join("\n"))
}

#[test]
fn the_page_has_what_every_workload_takes() {
    let table = table(&BINDING);
    assert!(PAGE.contains(&table), "docs/workloads.md should have\n{table}");
}

#[test]
fn the_page_has_the_table_of_each_workload() {
    for name in names() {
        let table = table(parameters(name).unwrap());
        let section = PAGE.split("\n## ").find(|section| section.starts_with(&format!("{name}\n")));
        let section =
            section.unwrap_or_else(|| panic!("docs/workloads.md has no section on {name}"));
        assert!(
            section.contains(&table),
            "docs/workloads.md: the table of {name} should be\n{table}"
        );
    }
}

#[test]
fn the_page_on_rt_app_names_every_example() {
    let page = include_str!("../../../../docs/rt-app.md");
    for entry in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/rt-app")).unwrap()
    {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&file), "docs/rt-app.md does not name {file}");
    }
}
