//! Tells the crate which compiler builds it, for `carillon_build_info`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").expect("cargo sets it for build scripts");
    let version = Command::new(rustc).arg("--version").output().expect("the compiler that cargo uses runs");
    // `rustc 1.95.0 (59807616e 2026-04-14)`
    let version = String::from_utf8_lossy(&version.stdout);
    println!("cargo:rustc-env=CARILLON_RUSTC={}", version.split(' ').nth(1).unwrap_or_default().trim());
}
