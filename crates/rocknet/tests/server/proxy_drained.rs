//! Upstreams that an operator drains: they get no new clients, but keep those that a cookie binds to them.

use rocknet::inventory;
use rocknet_control::UpstreamState;

use super::proxy_balance::{balanced, list, numbered};
use super::support::Running;
use super::support::upstream::Upstream;

/// Drains an upstream or enables it again. Returns false if no upstream has its URL.
fn set_drained(server: &Running, upstream: &Upstream, is_drained: bool) -> bool {
    let upstreams = &server.server().registries().upstreams;
    upstreams.set_drained(&upstream.url(), is_drained)
}

#[test]
fn a_drained_upstream_gets_no_new_clients() {
    for balance in ["round_robin", "least_conn", "random_two", "ip_hash"] {
        let all = numbered(2);
        let server = balanced(&list(&all), &format!("balance = \"{balance}\""));
        assert!(set_drained(&server, &all[0], true));
        let mut client = server.connect();
        for _ in 0..8 {
            assert_eq!(client.get("/").text(), "1", "{balance}");
        }
        let states = inventory::upstreams(server.server());
        let state = |upstream: &Upstream| {
            states
                .iter()
                .find(|one| one.address == upstream.url())
                .map(|one| one.state)
        };
        assert_eq!(state(&all[0]), Some(UpstreamState::Drained));
        assert_eq!(state(&all[1]), Some(UpstreamState::Up));

        // Without any upstream left, requests fail at once.
        set_drained(&server, &all[1], true);
        assert_eq!(client.get("/").status, 503);
        set_drained(&server, &all[0], false);
        assert_eq!(client.get("/").text(), "0", "{balance}");
    }
}

#[test]
fn the_only_upstream_can_be_drained_and_enabled() {
    let all = numbered(1);
    let server = balanced(&list(&all), "");
    assert_eq!(server.get("/").text(), "0");
    set_drained(&server, &all[0], true);
    assert_eq!(server.get("/").status, 503);
    set_drained(&server, &all[0], false);
    assert_eq!(server.get("/").text(), "0");
    let unknown = server
        .server()
        .registries()
        .upstreams
        .set_drained("http://a.test", true);
    assert!(!unknown);
}

#[test]
fn a_drained_upstream_keeps_the_clients_that_are_bound_to_it() {
    let all = numbered(2);
    let server = balanced(&list(&all), "balance = \"round_robin\", sticky = \"at\"");
    let mut client = server.connect();
    let response = client.get("/");
    let cookie = response.field("Set-Cookie").expect("a cookie").to_owned();
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a pair"));
    let own: usize = response.text().parse().expect("a number");
    set_drained(&server, &all[own], true);
    for _ in 0..4 {
        assert_eq!(client.fetch("GET /", &[&cookie]).text(), own.to_string());
        assert_eq!(client.get("/").text(), (1 - own).to_string());
    }
}
