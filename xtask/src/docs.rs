//! `cargo xtask docs`: the pages that are generated, so that they cannot disagree with the parser.

use crate::{Failure, repository};
use rocknet_config::reference;
use std::fs;

#[derive(clap::Args)]
pub struct Options {
    /// Change nothing; fail when a page is out of date
    #[arg(long)]
    check: bool,
}

/// Every generated file: its place, and what makes its text.
const PAGES: &[Page] = &[
    ("docs/configuration.md", reference::markdown),
    ("docs/rocknet.schema.json", reference::schema),
];

/// A place from the root of the checkout, and what makes the text.
type Page = (&'static str, fn() -> String);

pub fn run(options: &Options) -> Result<(), Failure> {
    if options.check {
        return check();
    }
    for (place, text) in PAGES {
        let path = repository::root().join(place);
        fs::write(&path, text()).map_err(|error| format!("{place}: {error}"))?;
        println!("wrote {place}");
    }
    Ok(())
}

/// Fails when a page on disk is not what would be generated now.
pub fn check() -> Result<(), Failure> {
    let stale: Vec<_> = PAGES
        .iter()
        .filter(|(place, text)| {
            // A checkout on Windows may have turned the line ends.
            let on_disk = fs::read_to_string(repository::root().join(place)).unwrap_or_default();
            on_disk.replace("\r\n", "\n") != text()
        })
        .map(|(place, _)| *place)
        .collect();
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("out of date: {}: run cargo xtask docs", stale.join(", ")).into())
    }
}
