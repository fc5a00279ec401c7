//! Renewal over simulated time: certificates are renewed when due, and an expiring one is served until then.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rocknet::certificates::acme::Clock;
use rocknet_config::model::Challenge;

use crate::pebble::{Pebble, until};
use crate::site::{Site, leaf, not_after};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn a_certificate_is_renewed_when_due_and_not_before() {
    let pebble = Pebble::start();
    let mut site = Site::new(&pebble.settings(&[Challenge::Http]));
    site.listen(pebble.ip());
    site.request(&["a.example.com"]);
    let first = leaf(&site.wait_for("a.example.com"));
    // Pebble's certificates are valid for 90 days: no renewal is due after 20 days, and one is due after 75.
    site.clock.advance(20 * DAY);
    // A certificate for another name is requested. A renewal that is due would start at the same time as this order.
    site.request(&["a.example.com", "b.example.com"]);
    site.wait_for("b.example.com");
    assert_eq!(leaf(&site.wait_for("a.example.com")), first);
    site.clock.advance(55 * DAY);
    until(|| leaf(&site.wait_for("a.example.com")) != first);
}

#[test]
fn an_expiring_certificate_is_served_until_it_is_renewed() {
    let pebble = Pebble::start();
    let settings = pebble.settings(&[Challenge::Http]);
    let mut site = Site::new(&settings);
    site.listen(pebble.ip());
    site.request(&["a.example.com"]);
    let old = site.wait_for("a.example.com");
    // The server was down for a long time: the next one starts an hour before the certificate expires.
    let clock = Clock::default();
    let remaining = not_after(&old).duration_since(SystemTime::now()).unwrap();
    clock.advance(remaining - Duration::from_secs(3600));
    let (folder, store) = (Arc::clone(&site.folder), Arc::clone(&site.store));
    drop(site);
    let mut next = Site::in_folder(folder, &settings, clock);
    // The listeners of the dropped site still run and serve proofs from its store.
    next.store = store;
    next.request(&["a.example.com"]);
    assert!(next.store.find("a.example.com").is_some());
    until(|| leaf(&next.wait_for("a.example.com")) != leaf(&old));
}
