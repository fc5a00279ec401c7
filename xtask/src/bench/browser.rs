//! Measures how fast Chromium loads a page of 60 resources over a slow link, with the server's cache cold and warm.

pub mod content;
pub mod visit;

use super::counted::{StartedServer, start_one};
use super::lane::Lane;
use super::run::Run;
use super::slow_link::SlowLink;
use super::table::{Table, table};
use super::timed::median;
use crate::Failure;
use visit::{Browser, Protocol, Visit};

/// Measures DOMContentLoaded and load for the first visit after the server's start and for the second.
pub fn page(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "A page with 4 style sheets and 15 scripts of 60 KB and 40 images of 48 KB, by Chromium over the same relay and TLS, \
                each time with an empty profile: cold right after the server's start, then warm. RockNet compresses text when it is \
                first requested; the others send it uncompressed. Medians of the rounds.";
    let browser = Browser::find()?;
    content::create(&run.site.root())?;
    let columns = ["cold, ms", "warm, ms", "cold ÷ warm", "all loaded cold, ms", "warm, ms"];
    Ok(table(lanes, &columns, note, |lane| {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for _ in 0..run.rounds {
            let started = start_one(run, lane, &[])?;
            cold.push(open(&browser, &started)?);
            warm.push(open(&browser, &started)?);
        }
        let of = |all: &[Visit], figure: fn(&Visit) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        let (first, second) = (of(&cold, |visit| visit.parsed), of(&warm, |visit| visit.parsed));
        let (first_load, second_load) = (of(&cold, |visit| visit.loaded), of(&warm, |visit| visit.loaded));
        Ok(vec![first, second, first / second, first_load, second_load])
    }))
}

fn open(browser: &Browser, started: &StartedServer) -> Result<Visit, Failure> {
    let link = SlowLink::to(started.port)?;
    browser.visit(
        &[],
        ("127.0.0.1", link.port),
        Protocol::Http2,
        &["--ignore-certificate-errors"],
    )
}
