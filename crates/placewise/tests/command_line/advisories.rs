//! No crate in Cargo.lock has a version that advisories.toml knows to be affected.

use semver::{Version, VersionReq};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Version,
}

#[derive(Deserialize)]
struct Known {
    advisories: Vec<Advisory>,
}

#[derive(Deserialize)]
struct Advisory {
    id: String,
    #[serde(rename = "crate")]
    name: String,
    patched: Vec<VersionReq>,
    unaffected: Vec<VersionReq>,
}

impl Advisory {
    fn affects(&self, package: &Package) -> bool {
        let mut fine = self.patched.iter().chain(&self.unaffected);
        self.name == package.name && !fine.any(|versions| versions.matches(&package.version))
    }
}

fn affected(lock: &str) -> Vec<String> {
    let lock: Lock = toml::from_str(lock).unwrap();
    let known: Known = toml::from_str(include_str!("../../../../advisories.toml")).unwrap();
    let against = |package: &Package| -> Vec<String> {
        let affecting = known.advisories.iter().filter(|advisory| advisory.affects(package));
        affecting.map(|it| format!("{}: {} {}", it.id, package.name, package.version)).collect()
    };
    lock.package.iter().flat_map(against).collect()
}

#[test]
fn nothing_is_known_against_the_locked_crates() {
    assert_eq!(affected(include_str!("../../../../Cargo.lock")), [] as [String; 0]);
}

#[test]
fn an_affected_version_is_found() {
    let with =
        |version| affected(&format!("[[package]]\nname = \"slab\"\nversion = \"{version}\""));
    assert_eq!(with("0.4.10"), ["RUSTSEC-2025-0047: slab 0.4.10"]);
    assert!(with("0.4.9").is_empty(), "unaffected");
    assert!(with("0.4.11").is_empty(), "patched");
}
