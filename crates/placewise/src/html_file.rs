//! A page of results and traces as a file: what `placewise report` and `--html` write.

use std::io::Write;
use std::path::Path;

use placewise_report::{JsonResult, Recording};

use crate::output_file::{FOR_ALL, OutputFile};

/// A page that appears when it is complete.
pub struct HtmlFile(OutputFile);

impl HtmlFile {
    /// Refuses a place that cannot be written before any work is done for it.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        OutputFile::create(path, FOR_ALL).map(Self)
    }

    pub fn write(mut self, results: &[JsonResult], recordings: &[Recording]) -> anyhow::Result<()> {
        let page = placewise_report::page(results, recordings, env!("PLACEWISE_VERSION"));
        // The file keeps the error for `finish`.
        let _ = self.0.write_all(page.as_bytes());
        self.0.finish()
    }
}
