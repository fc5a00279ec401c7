//! Purges and reloads end the hits that workers send without a lookup: at once, and at every worker.

use rocknet_control::response_purge::ResponsePurge;

use super::super::access::SECRET;
use super::super::signed_urls::{SECRET as URL_SECRET, SIGNED};
use super::super::support::upstream::Upstream;
use super::super::support::{Client, Folder, Running};
use super::ready::{heat_all, ready_hits, text, versions, wait_for_round};
use super::status;

over_http3! {
    purges_end_frequent_hits_of_all_workers,
    reloads_end_frequent_hits_of_all_workers,
    a_reload_after_a_purge_brings_no_purged_response_back,
}

/// Number of clients. Each worker most probably has the connections of some.
const CLIENTS: usize = 12;

/// Returns a configuration with two workers.
fn for_two(upstream: &Upstream, keys: &str) -> String {
    text(upstream, keys).replace("workers = 1", "workers = 2")
}

fn start(upstream: &Upstream) -> (Running, Vec<Client>) {
    let folder = Folder::with(&[("www/x", ""), ("url.keys", "")]);
    folder.write("url.keys", format!("main:{URL_SECRET}\n"));
    let server = Running::start(folder, &for_two(upstream, ""));
    let clients = (0..CLIENTS).map(|_| server.connect()).collect();
    (server, clients)
}

fn purge(change: impl FnOnce(&mut ResponsePurge)) -> ResponsePurge {
    let mut purge = ResponsePurge::default();
    change(&mut purge);
    purge
}

#[test]
fn purges_end_frequent_hits_of_all_workers() {
    let upstream = versions("Cache-Control: max-age=60|Cache-Tag: all, product-42");
    let (server, mut clients) = start(&upstream);
    for (purge, dropped) in [
        (purge(|purge| purge.url = Some("http://localhost/a?b=1".into())), 1),
        (purge(|purge| purge.prefix = Some("https://localhost/a".into())), 1),
        (purge(|purge| purge.tag = Some("product-42".into())), 1),
        (purge(|purge| purge.site = Some("default".into())), 1),
        (ResponsePurge::default(), 1),
        // Purges of other responses.
        (purge(|purge| purge.url = Some("http://localhost/a".into())), 0),
        (purge(|purge| purge.prefix = Some("http://localhost/b".into())), 0),
        (purge(|purge| purge.tag = Some("product-4".into())), 0),
        (purge(|purge| purge.site = Some("other".into())), 0),
    ] {
        heat_all(&server, &mut clients, "GET /a?b=1", &[]);
        let before = upstream.all().len();
        assert_eq!(server.server().purge_responses(&purge), Ok(dropped), "{purge:?}");
        let expected = format!("GET /a?b=1 HTTP/1.1 {}", before + dropped - 1);
        for client in &mut clients {
            assert_eq!(client.get("/a?b=1").text(), expected, "{purge:?}");
        }
        assert_eq!(upstream.all().len(), before + dropped);
    }
}

#[test]
fn reloads_end_frequent_hits_of_all_workers() {
    let upstream = versions("Cache-Control: public, max-age=60|Content-Type: text/html");
    let (server, mut clients) = start(&upstream);
    let password = format!("auth = {{ bob = \"{SECRET}\" }}");
    let mut round = 0;
    // `keys`: those of the route of the page. `rules`: further keys of the site.
    let mut reload = |clients: &mut [Client], keys: &str, rules: &str| {
        round += 1;
        let route = format!("route.\"/a\" = {{ {keys} }}");
        let site = format!("headers = {{ X-Round = \"{round}\" }}\n{route}\n{rules}");
        server
            .reload(&for_two(&upstream, &site))
            .expect("a valid configuration");
        wait_for_round(clients, &[], &round.to_string());
    };
    reload(&mut clients, "", "");
    for (keys, rules, expected, fields) in [
        ("headers = { X-New = \"1\" }", "", 200, &["X-New: 1"][..]),
        ("harden = true", "", 200, &["X-Content-Type-Options: nosniff"]),
        ("deny = \"all\"", "", 403, &["!Cache-Status"]),
        ("allow = \"192.0.2.1\"", "", 403, &["!Cache-Status"]),
        (&password, "", 401, &["!Cache-Status"]),
        (SIGNED, "", 403, &["!Cache-Status"]),
        (
            "",
            "[[site.default.rule]]\npath = \"/a\"\nrespond = 410",
            410,
            &["!Cache-Status"],
        ),
        (
            "",
            "[[site.default.rule]]\npath = \"/a\"\nredirect = \"/b\"",
            308,
            &["Location: /b"],
        ),
    ] {
        heat_all(&server, &mut clients, "GET /a", &[]);
        reload(&mut clients, keys, rules);
        let before = ready_hits(&server);
        for client in &mut clients {
            client.get("/a").expect(keys, expected, fields);
        }
        assert!(expected == 200 || ready_hits(&server) == before, "{keys} {rules}");
        reload(&mut clients, "", "");
        for client in &mut clients {
            let plain = client.get("/a");
            assert_eq!(status(&plain), "hit", "{keys}");
            plain.expect("after the reload", 200, &["!X-New", "!X-Content-Type-Options"]);
        }
    }
    assert_eq!(upstream.all().len(), 2);
    // Without a cache, each response is a new one.
    heat_all(&server, &mut clients, "GET /a", &[]);
    reload(&mut clients, "cache = false", "");
    for (number, client) in clients.iter_mut().enumerate() {
        let next = client.get("/a");
        assert_eq!(next.text(), format!("GET /a HTTP/1.1 {}", number + 2));
        assert_eq!(next.field("Cache-Status"), None);
    }
}

#[test]
fn a_reload_after_a_purge_brings_no_purged_response_back() {
    let upstream = versions("Cache-Control: max-age=60");
    let (server, mut clients) = start(&upstream);
    let purge = || {
        let everything = ResponsePurge::default();
        assert!(
            server
                .server()
                .purge_responses(&everything)
                .is_ok_and(|dropped| dropped > 0)
        );
    };
    let reload = |clients: &mut [Client], round: &str| {
        let text = for_two(&upstream, &format!("headers = {{ X-Round = \"{round}\" }}"));
        server.reload(&text).expect("a valid configuration");
        wait_for_round(clients, &[], round);
    };
    // The version is that of the first request after the purge.
    let check = |clients: &mut [Client], round: &str| {
        let expected = format!("GET /a HTTP/1.1 {}", upstream.all().len());
        for client in clients {
            let next = client.get("/a");
            assert_eq!(next.text(), expected);
            next.expect("a reload", 200, &[&format!("X-Round: {round}")]);
        }
    };
    for round in 0..3 {
        heat_all(&server, &mut clients, "GET /a", &[]);
        purge();
        let round = format!("{round}a");
        reload(&mut clients, &round);
        check(&mut clients, &round);
        heat_all(&server, &mut clients, "GET /a", &[]);
        let round = round.replace('a', "b");
        reload(&mut clients, &round);
        purge();
        check(&mut clients, &round);
    }
}
