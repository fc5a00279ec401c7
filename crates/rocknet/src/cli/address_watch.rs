//! The URLs by which other machines reach a served folder: printed at start, and again when the addresses of this
//! machine change.

use std::net::IpAddr;
use std::time::Duration;

use rocknet_config::Config;
use rocknet_control::SiteSummary;
use rocknet_io::machine;
use rocknet_io::terminal::{StandardStream, is_terminal, shows_colour};
use tokio::time::{self, MissedTickBehavior};

use super::{banner, print, qr_code};

/// Interval between two looks at the addresses, which read two small tables of the kernel.
const INTERVAL: Duration = Duration::from_secs(3);

/// Returns the note with the URLs, and a QR code of the first one if `with_code` is set; `None` if no site is reachable
/// from other machines.
pub fn note(sites: &[SiteSummary], config: &Config, addresses: &[IpAddr], with_code: bool) -> Option<String> {
    let urls = banner::urls_for_other_machines(sites, config, addresses);
    let first = urls.first()?;
    let mut note = format!("Other machines reach it at:\n  {}", urls.join("\n  "));
    if with_code && let Some(code) = qr_code::render(first, shows_colour(StandardStream::Output)) {
        note.push_str("\n\n");
        note.push_str(code.trim_end_matches('\n'));
    }
    Some(note)
}

/// Returns true if a QR code is printed without a request for it.
pub fn prints_code() -> bool {
    is_terminal(StandardStream::Output)
}

/// Prints the note again whenever the addresses have changed. Ends only with the program.
pub async fn run(sites: Vec<SiteSummary>, config: Config, with_code: bool) {
    let mut known = machine::addresses();
    let mut interval = time::interval(INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let found = machine::addresses();
        if found == known {
            continue;
        }
        match note(&sites, &config, &found, with_code) {
            Some(note) => print(format_args!("\nThe addresses of this machine have changed. {note}\n\n")),
            None => print("\nThe addresses of this machine have changed: no other machine reaches it now.\n\n"),
        }
        known = found;
    }
}
