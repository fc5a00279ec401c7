//! The URLs by which other machines reach a served folder: printed at start, and again when they change.

use std::time::Duration;

use rocknet_config::Config;
use rocknet_control::SiteSummary;
use rocknet_io::machine;
use rocknet_io::terminal::{StandardStream, is_terminal, shows_colour};
use tokio::time::{self, MissedTickBehavior};

use super::{banner, print, qr_code};

/// Interval between two checks of the addresses. A check reads four small tables of the kernel.
const INTERVAL: Duration = Duration::from_secs(3);

/// Returns the note with the present URLs; `None` if no site is reachable from other machines. `with_code`: true to add
/// a QR code of the first one.
pub fn present_note(sites: &[SiteSummary], config: &Config, with_code: bool) -> Option<String> {
    note(&urls(sites, config), with_code)
}

/// Returns the present URLs for other machines.
fn urls(sites: &[SiteSummary], config: &Config) -> Vec<String> {
    banner::urls_for_other_machines(sites, config, &machine::lan_addresses())
}

/// Returns the note with these URLs; `None` without any.
fn note(urls: &[String], with_code: bool) -> Option<String> {
    let first = urls.first()?;
    let mut note = format!("Other machines reach it at:\n  {}", urls.join("\n  "));
    if with_code && let Some(code) = qr_code::render(first, shows_colour(StandardStream::Output)) {
        note.push_str("\n\n");
        note.push_str(code.trim_end_matches('\n'));
    }
    Some(note)
}

/// Returns true if `rocknet serve` prints a QR code even without `--lan`: standard output is a terminal.
pub fn prints_code() -> bool {
    is_terminal(StandardStream::Output)
}

/// Prints the note again whenever the URLs have changed. Interfaces of containers that come and go do not change them,
/// because `machine::lan_addresses` leaves these interfaces out. Ends only with the program.
pub async fn run(sites: Vec<SiteSummary>, config: Config, with_code: bool) {
    let mut known = urls(&sites, &config);
    let mut interval = time::interval(INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let found = urls(&sites, &config);
        if found == known {
            continue;
        }
        match note(&found, with_code) {
            Some(note) => print(format_args!("\nThe addresses of this machine have changed. {note}\n\n")),
            None => print("\nThe addresses of this machine have changed: no other machine reaches it now.\n\n"),
        }
        known = found;
    }
}
