//! Folders and files that are still to be reworded.

/// Folders, or the files right in one (`folder/*.rs`), with violations of the prose rules.
pub const PROSE: &[&str] = &[
    "crates/rocknet-access",
    "crates/rocknet-certificates",
    "crates/rocknet-pages",
    "crates/rocknet-routing",
    "crates/rocknet/examples/*.rs",
    "crates/rocknet/src/*.rs",
    "crates/rocknet/src/cli",
    "crates/rocknet/src/filter",
    "crates/rocknet/src/handler",
    "crates/rocknet/src/lifecycle",
    "crates/rocknet/src/metrics",
    "crates/rocknet/src/pipeline",
    "crates/rocknet/src/protocol",
    "crates/rocknet/src/transport",
    "fuzz",
];

/// Crates with violations of the rule of type names.
pub const TYPE_NAMES: &[&str] = &["crates/rocknet"];
