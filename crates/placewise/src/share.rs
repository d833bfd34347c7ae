//! `placewise share`: the manual pages and the completions of shells, made of what the command line
//! takes, where programs look for them below a `share` directory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_complete::Shell;

const EXAMPLE: &str = "\
Example:
  placewise share ~/.local/share

For those who have installed it with cargo; `make install` and packages have done this.";

/// Where each shell looks for the completion of a command.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/placewise"),
    (Shell::Zsh, "zsh/site-functions/_placewise"),
    (Shell::Fish, "fish/vendor_completions.d/placewise.fish"),
];

/// Write manual pages and completions for bash, zsh and fish
#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct ShareArgs {
    /// Directory for them, such as ~/.local/share; it is made if it is not there
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// `command` is the whole command line.
pub fn run(args: &ShareArgs, mut command: clap::Command) -> anyhow::Result<()> {
    let pages = make(&args.directory.join("man/man1"))?;
    clap_mangen::generate_to(command.clone(), &pages)
        .with_context(|| format!("cannot write to {}", pages.display()))?;
    for (shell, place) in COMPLETIONS {
        let file = args.directory.join(place);
        let directory = file.parent().expect("a completion has a directory");
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "placewise", &mut text);
        make(directory)?;
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    writeln!(io::stdout(), "wrote manual pages and completions to {}", args.directory.display())?;
    Ok(())
}

fn make(directory: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory.to_owned())
}
