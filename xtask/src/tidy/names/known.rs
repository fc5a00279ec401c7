//! Types that share a name by design, with the reasons.

use super::super::listed::Listed;

/// Modules that declare the same names by design, each with the reason. For a shared name, only the types of one
/// sibling count.
pub const SIBLINGS: &[(&str, &str)] = &[
    ("h1", "one of the HTTP versions, which a path names"),
    ("h2", "one of the HTTP versions, which a path names"),
    ("h3", "one of the HTTP versions, which a path names"),
];

/// Single names that types share, with the folder of the crate in place of a file. The list only shrinks.
pub const SHARED: &[Listed] = &[
    Listed {
        file: "crates/rocknet",
        name: "Options",
        reason: "the arguments of one command, named by its module, as is usual with clap",
    },
    Listed {
        file: "xtask",
        name: "Options",
        reason: "the arguments of one command, named by its module, as is usual with clap",
    },
];
