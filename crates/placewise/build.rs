//! What `placewise --version` tells.

#[path = "build/version.rs"]
mod version;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    version::tell();
}
