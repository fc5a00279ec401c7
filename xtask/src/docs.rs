//! `cargo xtask docs`: generates pages from the table of keys and from the types of the API, so that they cannot
//! disagree with the code.

use crate::{Failure, repository};
use rocknet_config::reference;
use std::fs;

#[derive(clap::Args)]
pub struct Options {
    /// Change nothing; fail when a page is out of date
    #[arg(long)]
    check: bool,
}

/// Every generated file: its path, and the function that returns its text.
const PAGES: &[Page] = &[
    ("docs/configuration.md", reference::markdown),
    ("docs/rocknet.schema.json", reference::schema),
    ("docs/openapi.json", rocknet_control::openapi::document),
];

/// A path from the root of the checkout, and the function that returns the text.
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

/// Fails if a page on disk differs from the generated text.
pub fn check() -> Result<(), Failure> {
    let stale: Vec<_> = PAGES
        .iter()
        .filter(|(place, text)| {
            // A checkout on Windows may have converted the line ends.
            let on_disk = fs::read_to_string(repository::root().join(place)).unwrap_or_default();
            on_disk.replace("\r\n", "\n") != text()
        })
        .map(|(place, _)| *place)
        .collect();
    if stale.is_empty() {
        Ok(())
    } else {
        Err(format!("out of date: {}; run cargo xtask docs", stale.join(", ")).into())
    }
}
