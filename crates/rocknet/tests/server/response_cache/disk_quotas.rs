//! Quotas of sites on disk: restarts, reloads, and routes.

use super::super::support::upstream::Upstream;
use super::super::support::{Folder, Running};
use super::disk::{flush, restart, start};
use super::{response, status};

/// Number of responses of each site.
const COUNT: usize = 30;

/// Returns a configuration with two sites. `cache`: value of `cache` of the first one.
fn text(upstream: &Upstream, cache: &str) -> String {
    let proxy = upstream.key();
    format!(
        "[server]\nworkers = 1\nblocking_threads = 2\nstate = \"state\"\nevents = {{ wait = \"20ms\", connections = 16 }}\n\
         [cache]\nresponses_disk = \"16MiB\"\n\
         [site.default]\nlisten = \"127.0.0.1:0\"\n{proxy}\ncache = {cache}\n\
         [site.\"other.test\"]\nlisten = \"http://127.0.0.1:0\"\n{proxy}\ncache = true\n"
    )
}

fn fetch(server: &Running, host: &str, number: usize) -> String {
    status(&server.fetch(&format!("GET /{number}"), &[&format!("Host: {host}")]))
}

/// Drops all responses from memory, and returns the numbers of those that are sent from disk.
fn on_disk(server: &Running, host: &str) -> Vec<usize> {
    flush(server);
    let memory = &server.server().registries().responses.memory;
    // The others are not stored, so this look changes nothing on disk.
    let is_on_disk = |number: &usize| {
        memory.retain(|_, _| false);
        let fields = [&*format!("Host: {host}"), "Cache-Control: only-if-cached"];
        server.fetch(&format!("GET /{number}"), &fields).status == 200
    };
    (0..COUNT).filter(is_on_disk).collect()
}

#[track_caller]
fn expect_newest(found: &[usize], least: usize, most: usize) {
    assert!((least..=most).contains(&found.len()), "{found:?}");
    assert_eq!(found, (COUNT - found.len()..COUNT).collect::<Vec<_>>());
}

#[test]
fn a_quota_limits_the_responses_of_a_site_on_disk() {
    let body = "x".repeat(100_000);
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", &body));
    let limited = text(&upstream, "{ disk = \"1MiB\" }");
    let server = start(Folder::with(&[]), &limited);
    for number in 0..COUNT {
        assert_eq!(fetch(&server, "localhost", number), "fwd=uri-miss; stored");
        assert_eq!(fetch(&server, "other.test", number), "fwd=uri-miss; stored");
    }
    let newest = on_disk(&server, "localhost");
    expect_newest(&newest, 8, 10);
    assert_eq!(on_disk(&server, "other.test").len(), COUNT);
    let metrics = rocknet::inventory::metrics(server.server());
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("no {name} in {metrics}"));
        value.trim().parse().expect("a number")
    };
    assert!((800_000..=1 << 20).contains(&value("rocknet_stored_disk_site_bytes{site=\"default\"}")));
    assert_eq!(value("rocknet_stored_disk_site_quota_bytes{site=\"default\"}"), 1 << 20);
    assert_eq!(
        value("rocknet_stored_disk_trimmed_total"),
        (COUNT - newest.len()) as u64
    );
    // The sizes are known again after a restart, and what was dropped stays dropped without the quota.
    let server = restart(server, &limited);
    assert_eq!(on_disk(&server, "localhost"), newest);
    let server = restart(server, &text(&upstream, "true"));
    assert_eq!(on_disk(&server, "localhost"), newest);
    assert_eq!(on_disk(&server, "other.test").len(), COUNT);
}

#[test]
fn a_reload_changes_the_quota_of_a_site() {
    let body = "x".repeat(100_000);
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", &body));
    let server = start(Folder::with(&[]), &text(&upstream, "true"));
    for number in 0..COUNT {
        fetch(&server, "localhost", number);
        fetch(&server, "other.test", number);
    }
    assert_eq!(on_disk(&server, "localhost").len(), COUNT);
    let reload = |cache: &str| server.reload(&text(&upstream, cache)).expect("a valid configuration");
    reload("{ disk = \"2MiB\" }");
    expect_newest(&on_disk(&server, "localhost"), 17, 20);
    reload("{ disk = \"1MiB\" }");
    expect_newest(&on_disk(&server, "localhost"), 8, 10);
    assert_eq!(on_disk(&server, "other.test").len(), COUNT);
    // Without the disk, the responses of the site are dropped, and do not come back.
    reload("{ disk = \"0\" }");
    reload("true");
    assert!(on_disk(&server, "localhost").is_empty());
    assert_eq!(on_disk(&server, "other.test").len(), COUNT);
}

/// A site whose routes use the disk keeps their responses.
#[test]
fn a_route_uses_the_disk_though_its_site_does_not() {
    let upstream = Upstream::responding_with(response("200 OK", "Cache-Control: max-age=600", "body"));
    let off = text(&upstream, "{ disk = false }");
    let route = "\n[site.default.route.\"/1\"]\ncache = { disk = true }\n";
    let text = off.replace("\n[site.\"other.test\"]", &format!("{route}[site.\"other.test\"]"));
    let server = start(Folder::with(&[]), &text);
    (0..COUNT).for_each(|number| drop(fetch(&server, "localhost", number)));
    assert_eq!(on_disk(&server, "localhost"), [1]);
    let server = restart(server, &text);
    assert_eq!(on_disk(&server, "localhost"), [1]);
}
