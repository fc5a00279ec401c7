//! `cargo xtask conform h3`: clients of other projects over HTTP/3 against the built server.

mod aioquic;
mod chromium;
mod h3i;
mod qpack;
mod quic_go;
pub mod site;
mod transfers;
mod wordpress;

use crate::Failure;
use std::path::Path;

/// Name of a part, and its work with the built server.
type Part = (&'static str, fn(&Path) -> Result<(), Failure>);

/// Parts of the step, in the order in which they run.
pub const PARTS: [Part; 7] = [
    ("h3 aioquic", aioquic::run),
    ("h3 h3i", h3i::run),
    ("h3 qpack", qpack::run),
    ("h3 quic-go", quic_go::run),
    ("h3 chromium", chromium::run),
    ("h3 transfers", transfers::run),
    ("h3 wordpress", wordpress::run),
];
