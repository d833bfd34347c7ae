//! What comes with the program: manual pages, completions, and the commit that it says it is of.

use std::fs;
use std::path::Path;
use std::process::Command;

const PLACEWISE: &str = env!("CARGO_BIN_EXE_placewise");

fn placewise(args: &[&str]) -> String {
    let output = Command::new(PLACEWISE).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// As `placewise help` lists them.
fn verbs() -> Vec<String> {
    let help = placewise(&["help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = listed.take_while(|line| !line.is_empty());
    let verbs = verbs.map(|line| line.split_whitespace().next().unwrap().to_owned());
    verbs.filter(|verb| verb != "help").collect()
}

#[test]
fn every_verb_has_its_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let share = directory.path().join("made/for/it");
    placewise(&["share", share.to_str().unwrap()]);
    let verbs = verbs();
    assert!(verbs.len() >= 8, "{verbs:?}");
    for verb in verbs {
        let page = share.join(format!("man/man1/placewise-{verb}.1"));
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains(&format!("placewise\\-{verb}")), "{text}");
    }
    assert!(share.join("man/man1/placewise.1").exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output = Command::new(PLACEWISE).args(["share", "/dev/null/share"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("cannot create /dev/null/share/man/man1"), "{stderr}");
}

/// What a shell makes of `placewise rep<TAB>`.
fn completed(shell: &str, script: &str, completions: &Path) -> Option<String> {
    let mut command = Command::new(shell);
    command.args(["-c", script, shell]).arg(completions);
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    Some(text)
}

#[test]
fn shells_complete_verbs() {
    const BASH: &str = "source \"$1/bash-completion/completions/placewise\"; \
        COMP_WORDS=(placewise rep); COMP_CWORD=1; _placewise placewise rep placewise; \
        echo \"${COMPREPLY[@]}\"";
    const FISH: &str = "source $argv[1]/fish/vendor_completions.d/placewise.fish; \
        complete --do-complete 'placewise rep'";
    const ZSH: &str = "fpath=($1/zsh/site-functions $fpath); autoload -Uz compinit; \
        compinit -D -u && functions _placewise >/dev/null && echo $_comps[placewise]";
    let directory = tempfile::tempdir().unwrap();
    placewise(&["share", directory.path().to_str().unwrap()]);
    for (shell, script, expected) in
        [("bash", BASH, "reproduce"), ("fish", FISH, "reproduce"), ("zsh", ZSH, "_placewise")]
    {
        match completed(shell, script, directory.path()) {
            Some(text) => assert!(text.contains(expected), "{shell}: {text}"),
            None => println!("skipped: there is no {shell}"),
        }
    }
}

/// As git has it; out of a checkout the version stands alone.
#[test]
fn the_version_names_the_commit() {
    let git = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let commit = git.ok().filter(|git| git.status.success()).map(|git| git.stdout);
    let Some(commit) = commit.filter(|_| std::env::var_os("PLACEWISE_COMMIT").is_none()) else {
        return println!("skipped: not in a checkout, or with a commit of the builder's");
    };
    let commit = String::from_utf8(commit).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(placewise(&["--version"]), format!("placewise {version} ({})\n", commit.trim()));
}
