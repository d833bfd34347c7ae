//! For programs: the figures as a line of JSON.

use serde::Serialize;

use crate::figures::Figures;

/// As in all JSON of Placewise: keys are added under the same number, and none is renamed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a> {
    schema: u32,
    #[serde(flatten)]
    figures: &'a Figures,
}

pub fn json(figures: &Figures) -> serde_json::Result<String> {
    serde_json::to_string(&Versioned { schema: SCHEMA, figures })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_stand_beside_the_schema() {
        let line = json(&Figures::default()).unwrap();
        assert_eq!(line, r#"{"schema":1,"placed":{},"balanced":{}}"#);
    }
}
