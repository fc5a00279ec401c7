//! Failing CAs: the next CA is tried, rate limits are obeyed, and retries are spaced out.

use std::sync::Arc;
use std::time::Duration;

use rocknet_config::model::{Acme, AcmeCa, Challenge};

use crate::pebble::{Pebble, until};
use crate::scripted_ca::ScriptedCa;
use crate::site::Site;

/// Response to a new order: a rate limit of 7,200 s.
const RATE_LIMITED: &str = "429 Too Many Requests\r\nRetry-After: 7200\r\n\r\n\
     {\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many certificates\",\"status\":429}";
/// Response to a new order: an error that is not in the format of ACME.
const BROKEN: &str = "500 Internal Server Error\r\n\r\n<html>sorry</html>";

/// Returns settings with the scripted CA as the only CA.
fn settings_for(scripted: &ScriptedCa, folder: &tempfile::TempDir) -> Acme {
    let root = folder.path().join("root.pem");
    scripted.add_root(&root);
    Acme {
        email: None,
        cas: vec![scripted.ca.clone()],
        ca_root: Some(root),
        challenges: vec![Challenge::Http],
        dns: None,
        ask: None,
    }
}

#[test]
fn the_next_ca_is_tried_when_one_fails() {
    for refusal in [RATE_LIMITED, BROKEN] {
        let (pebble, scripted) = (Pebble::start(), ScriptedCa::new(refusal));
        scripted.add_root(&pebble.root());
        let mut settings = pebble.settings(&[Challenge::Http]);
        // Nothing listens on this port.
        let dead = AcmeCa {
            url: format!("https://{}:1/dir", pebble.ip()),
            binding: None,
        };
        settings.cas = vec![dead, scripted.ca.clone(), pebble.ca()];
        let mut site = Site::new(&settings);
        site.listen(pebble.ip());
        site.request(&["a.example.com"]);
        site.wait_for("a.example.com");
        assert_eq!(scripted.orders(), 1);
        assert!(site.failures("a.example.com").is_none());
    }
}

#[test]
fn no_order_is_sent_while_a_rate_limit_lasts() {
    let (folder, scripted) = (tempfile::tempdir().unwrap(), ScriptedCa::new(RATE_LIMITED));
    let mut site = Site::new(&settings_for(&scripted, &folder));
    site.request(&["a.example.com"]);
    until(|| site.failures("a.example.com").is_some());
    let kept = site.failures("a.example.com").unwrap();
    assert!(
        kept["last"]
            .as_str()
            .unwrap()
            .contains("too many certificates (rateLimited)"),
        "{kept}"
    );
    assert_eq!((scripted.orders(), &kept["count"]), (1, &1.into()));
    // While the rate limit of 7,200 s lasts, the CA receives no order, even for other names.
    for _ in 0..3 {
        site.clock.advance(Duration::from_secs(2_200));
        site.request(&["a.example.com", "b.example.com"]);
    }
    until(|| site.failures("b.example.com").is_some());
    assert!(
        site.failures("b.example.com").unwrap()["last"]
            .as_str()
            .unwrap()
            .contains("is paused")
    );
    assert_eq!(scripted.orders(), 1);
    site.clock.advance(Duration::from_secs(700));
    // The pause is over and an order reaches the CA again. The order for the second name follows, unless the first is
    // refused earlier and pauses the CA again.
    until(|| scripted.orders() >= 2);
}

#[test]
fn retry_delays_grow_and_survive_a_restart() {
    let (folder, scripted) = (tempfile::tempdir().unwrap(), ScriptedCa::new(BROKEN));
    let settings = settings_for(&scripted, &folder);
    let mut site = Site::new(&settings);
    site.request(&["a.example.com"]);
    // Waits for the failure with this number, and returns the seconds until the next attempt.
    let pause = |site: &Site, count: u32| {
        until(|| {
            site.failures("a.example.com")
                .is_some_and(|kept| kept["count"] == count)
        });
        let next = site.failures("a.example.com").unwrap()["next_try"].as_u64().unwrap();
        let now = site
            .clock
            .now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        next.saturating_sub(now)
    };
    let mut last = 0;
    for count in 1..=4 {
        let now = pause(&site, count);
        assert!(now > last, "pause {count}: {now} after {last}");
        last = now;
        if count < 4 {
            site.clock.advance(Duration::from_secs(now + 1));
        }
    }
    // After a restart, the next attempt is due within five minutes, even if the recorded delay is longer.
    // The second step of the clock passes these five minutes.
    let orders = scripted.orders();
    let mut next = Site::in_folder(Arc::clone(&site.folder), &settings, site.clock.clone());
    drop(site);
    next.request(&["a.example.com"]);
    next.clock.advance(Duration::from_secs(200));
    next.clock.advance(Duration::from_secs(120));
    until(|| scripted.orders() > orders);
    assert!(pause(&next, 5) > last);
}

#[test]
fn a_failed_validation_is_reported_with_the_message_of_the_ca() {
    let pebble = Pebble::start();
    // No listener serves the proof.
    let mut site = Site::new(&pebble.settings(&[Challenge::Http]));
    site.request(&["a.example.com", "blocked.example.com"]);
    for (name, words) in [
        ("a.example.com", "could not validate"),
        ("blocked.example.com", "rejectedIdentifier"),
    ] {
        until(|| site.failures(name).is_some());
        let last = site.failures(name).unwrap()["last"].as_str().unwrap().to_owned();
        assert!(last.contains(words), "{name}: {last}");
    }
}
