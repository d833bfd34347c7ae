//! The page of accuracy: what the score means and says, a plot, and the rows as CSV beside it.

use std::io::Write;
use std::path::Path;

use super::provenance;
use super::report;
use super::reproduction::Reproduction;
use super::{plot, tables};
use crate::output_file::{FOR_ALL, OutputFile};
use crate::report::foreign::in_markdown;
use crate::report::{Table, markdown};

const SCORE: &str = "\
A **decisive** row has a published change of 5 % or more that is beyond twice the noise of its
publication: the two spreads that it states, or those usual for its workload and metric
([noise.toml](../studies/noise.toml)). It is right if the predicted change has the same sign. A
prediction under 0.5 %, or with 0 in its 95 % interval, has no sign, and is wrong, too; few runs give
wide intervals, so more of them may show a sign.

A **null** is a published change under 2 %, and quiet if the predicted one is under 5 %. `hint:none`
changes no decision, cannot be loud, and is no null.

A row is **in sample** if its own published outcome was in view when a cost or a parameter was chosen:
the list below. What these rows show is that the model can be fitted.

An **experiment** is a policy with a workload on a machine in a series. Its rows are one question asked
many times, so each experiment also counts once, by the share of its rows that is right. A row that two
tables of a series have counts once.

Beside that stand a predictor that says nothing ever changes, one that repeats the change published for
the nearest case on another machine, and the ceiling: how often two publications of one patch agree.";

const SERIES: &str = "\
The same of each series: how many experiments have decisive rows and what share of these rows is right,
each experiment counted once, and then its rows.";

const BASELINES: &str = "\
The factor between published and predicted figures without any patch, whichever is larger: 1.5 is a
third too low or half too high. The shape is each case relative to the first of its table, so that what
is wrong by the same factor everywhere cancels out. Normalised figures are left out.";

const LIMITS: &str = "\
Most runs simulate a short window, 0.6 s for hackbench and up to 40 s for schbench, that
stands for the whole run of the benchmark on hardware; lu is run whole, or for 10 minutes. Runs are added
while a verdict is not settled: to a decisive row while the 95 % interval of its prediction has 0 in it
and is not within the precision either, to a null while it is neither quiet nor loud throughout. Looking
again and again lets up to one case in seven pass that is noise. Baselines get more until they are known to 25 %. The
warm-up is that of the workload: a transient that outlasts it is in the figures. Nothing runs beside a
workload: where each CPU that a wakeup looks at first is idle, as with one worker of schbench, no policy
that is about busy ones changes a decision, and the change is exactly 0.";

/// The files of the page, which appear together with what is in them.
pub struct Page {
    page: OutputFile,
    plot: OutputFile,
    rows: OutputFile,
}

impl Page {
    /// Refuses a directory that cannot be written before anything is simulated.
    pub fn create(directory: &Path) -> anyhow::Result<Self> {
        let create = |name: &str| OutputFile::create(&directory.join(name), FOR_ALL);
        Ok(Self {
            page: create("ACCURACY.md")?,
            plot: create("accuracy.svg")?,
            rows: create("accuracy.csv")?,
        })
    }

    pub fn write(self, reproduction: &Reproduction) -> anyhow::Result<()> {
        let texts = [text(reproduction), plot::svg(&reproduction.rows), report::csv(reproduction)?];
        for (mut file, text) in [self.page, self.plot, self.rows].into_iter().zip(texts) {
            // The file keeps the error for `finish`.
            let _ = file.write_all(text.as_bytes());
            file.finish()?;
        }
        Ok(())
    }
}

fn text(reproduction: &Reproduction) -> String {
    let [score, series, experiments, baselines] =
        tables::of(&reproduction.score, markdown::empty_table);
    let mut text = "# How predictions fit what was published\n\n".to_owned();
    text += "Written by `make accuracy`. Rows of [studies/](../studies) are simulated and compared; these\n";
    text += "rows with their predictions are in [accuracy.csv](accuracy.csv), and how to read them in\n";
    text += "[reproduce](reproduce.md).\n\n";
    text += &format!("Runs: {}.\n\n", reproduction.runs);
    text += &format!("{}\n\n{SCORE}\n\n", score.1);
    text += "![Predicted against published changes](accuracy.svg)\n\n";
    text += &format!("## Series\n\n{SERIES}\n\n{}\n\n", series.1);
    text += &format!("## Experiments\n\n{}\n\n", experiments.1);
    text += &format!("## Baselines\n\n{BASELINES}\n\n{}\n\n", baselines.1);
    text += &format!("## Chosen with published rows in view\n\n{}\n\n", choices());
    text += &format!("## Limits\n\n{LIMITS}\n");
    for (heading, points) in [
        (
            "Runs that settled in different states; their median stands for them:",
            tables::states(&reproduction.rows),
        ),
        ("Not simulated, and so in no figure:", report::reasons(&reproduction.rows)),
    ] {
        let points: String = points.iter().map(|one| format!("- {}\n", in_markdown(one))).collect();
        if !points.is_empty() {
            text += &format!("\n{heading}\n\n{points}");
        }
    }
    text
}

fn choices() -> Table {
    let mut table = markdown::empty_table();
    table.set_header(["what", "where", "why", "decides besides"]);
    for choice in provenance::choices() {
        let decides = choice.decides.clone().unwrap_or_default();
        table.add_row([choice.what.clone(), choice.place.clone(), choice.why.clone(), decides]);
    }
    table
}
