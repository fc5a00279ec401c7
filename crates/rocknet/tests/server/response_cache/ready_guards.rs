//! Guards and bans decide about hits that workers could send without a lookup.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use rcgen::DnType;

use super::super::metrics::value;
use super::super::signed_urls::{SECRET as URL_SECRET, key, signed, signed_by};
use super::super::support::certs::{Authority, Kind, Leaf};
use super::super::support::client::request;
use super::super::support::tls_client::TlsClient;
use super::super::support::upstream::{Next, Upstream, write_to};
use super::super::support::{Client, DEADLINE, Folder, Running};
use super::ready::{FREQUENT, heat, heat_all, ready_hits, start, text, wait_for_round, while_hot, with_cache};
use super::{response, status, upstream};

over_http3! {
    workers_count_frequent_hits_together,
    limits_of_connections_apply_to_frequent_hits,
    frequent_hits_need_a_signature,
    bans_apply_to_frequent_hits_of_all_workers,
}

const VISITOR: &str = "X-Forwarded-For: 198.51.100.1";
const OTHER: &str = "X-Forwarded-For: 198.51.100.2";

/// Returns an upstream whose responses are the same for each client.
fn pages() -> Upstream {
    upstream(|request| match request.line.contains("missing") {
        true => response("404 Not Found", "", "missing"),
        false => response("200 OK", "Cache-Control: public, max-age=60", &request.line),
    })
}

/// Returns the number of requests to the cache with an outcome.
fn outcomes(server: &Running, outcome: &str) -> f64 {
    let sample = format!("rocknet_stored_requests_total{{site=\"default\",outcome=\"{outcome}\"}}");
    value(server, &sample).expect("a counter")
}

#[test]
fn workers_count_frequent_hits_together() {
    const BURST: usize = 400;
    let upstream = pages();
    let keys = format!("route.\"/in/*\" = {{ limit = {{ rate = \"20/h\", burst = {BURST} }} }}");
    let text = text(&upstream, &keys).replace("workers = 1", "workers = 2");
    let server = Running::start(Folder::with(&[]), &text);
    let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    heat_all(&server, &mut clients, "GET /in/a", &[VISITOR]);
    let is_served = |client: &mut Client| {
        let next = client.fetch("GET /in/a", &[VISITOR]);
        match next.status {
            200 => assert_eq!(status(&next), "hit"),
            _ => drop(next.expect("above the limit", 429, &["Retry-After", "RateLimit", "!Cache-Status"])),
        }
        next.status == 200
    };
    while clients.iter_mut().map(is_served).filter(|is_served| *is_served).count() > 0 {}
    // All requests but the first were hits. Those that were refused count in neither.
    let served = outcomes(&server, "hit") + outcomes(&server, "miss");
    assert_eq!((served, upstream.all().len()), (BURST as f64, 1));
    // Another client is not limited, and neither are other routes.
    let [first, second, ..] = &mut clients[..] else {
        unreachable!("there are clients")
    };
    for line in ["GET /in/a", "GET /a"] {
        while_hot(&server, first, line, &[OTHER], || {
            let next = second.fetch("GET /in/a", &[VISITOR]);
            next.expect(line, 429, &["!Cache-Status"]);
        });
    }
    heat(&server, first, "GET /a", &[VISITOR]);
}

/// Frequent hits are refused while another request of the client is in progress.
#[test]
fn limits_of_connections_apply_to_frequent_hits() {
    let (arrive, arrived) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let channels = Arc::new(Mutex::new((arrive, released)));
    let upstream = Upstream::start(move |request, stream| {
        if request.line.contains("slow") {
            let channels = channels.lock().expect("not poisoned");
            channels.0.send(()).expect("the test waits");
            channels.1.recv_timeout(DEADLINE).expect("the test continues");
        }
        write_to(stream, response("200 OK", "Cache-Control: max-age=60", "page"));
        Next::Keep
    });
    let keys = "limit = [{ connections = 1 }, { rate = \"1000/s\" }]\nroute.\"/free\" = { limit = false }";
    let server = start(&upstream, keys);
    let (mut client, mut slow) = (server.connect(), server.connect());
    // The permit of a response is free soon after the client has received it.
    let wait = |client: &mut Client| {
        let until = Instant::now() + DEADLINE;
        while client.fetch("GET /a", &[VISITOR]).status != 200 {
            assert!(Instant::now() < until, "the permit stays in use");
        }
    };
    (0..3 * FREQUENT).for_each(|_| wait(&mut client));
    assert!(ready_hits(&server) > 0.0, "the hits are looked up");
    slow.send(request("GET /slow", &[VISITOR]));
    arrived.recv_timeout(DEADLINE).expect("a request");
    while_hot(&server, &mut server.connect(), "GET /free", &[VISITOR], || {
        let next = client.fetch("GET /a", &[VISITOR]);
        next.expect("a second request", 429, &["Retry-After", "!Cache-Status"]);
        assert_eq!(status(&client.fetch("GET /a", &[OTHER])), "hit");
    });
    release.send(()).expect("the upstream waits");
    assert_eq!(slow.response().status, 200);
    wait(&mut client);
}

/// A client that does not receive its response occupies its permit, whether the response is looked up or kept ready.
#[test]
fn large_hits_are_in_progress_until_they_are_sent() {
    let large = "l".repeat(24 << 20);
    let upstream = upstream(move |request| match request.line.contains("/large") {
        true => response("200 OK", "Cache-Control: max-age=60", &large),
        false => response("200 OK", "Cache-Control: no-store", "small"),
    });
    let text = with_cache(
        &upstream,
        "{ max_object = \"32MiB\" }",
        "limit = { connections = 1 }\n[cache]\nresponses = \"1GiB\"",
    );
    let server = Running::start(Folder::with(&[]), &text);
    let wait_for = |fields: &[&str], expected: u16| {
        let until = Instant::now() + DEADLINE;
        while server.fetch("GET /small", fields).status != expected {
            assert!(Instant::now() < until, "the status did not become {expected}");
        }
    };
    // Returns true if the response was sent without a lookup.
    let check = || {
        let before = ready_hits(&server);
        let mut slow = server.connect();
        slow.send(request("GET /large", &[VISITOR]));
        wait_for(&[VISITOR], 429);
        wait_for(&[OTHER], 200);
        let is_ready = ready_hits(&server) > before;
        drop(slow);
        wait_for(&[VISITOR], 200);
        is_ready
    };
    assert_eq!(server.fetch("GET /large", &[OTHER]).status, 200);
    assert!(!check());
    let until = Instant::now() + DEADLINE;
    loop {
        heat(&server, &mut server.connect(), "GET /large", &[OTHER]);
        wait_for(&[OTHER], 200);
        if check() {
            break;
        }
        assert!(Instant::now() < until, "the response does not stay ready");
    }
}

#[test]
fn frequent_hits_need_a_signature() {
    let upstream = pages();
    let folder = Folder::with(&[("url.keys", "")]);
    folder.write("url.keys", format!("main:{URL_SECRET}\n"));
    let keys = "route.\"/dl/*\" = { auth = { signed = \"url.keys\" } }\n\
                route.\"/any/*\" = { auth = { signed = \"url.keys\" }, allow = \"198.51.100.2\", satisfy = \"any\" }";
    let server = Running::start(folder, &text(&upstream, keys));
    let (mut client, mut other) = (server.connect(), server.connect());
    let valid = signed("GET /dl/a?x=1");
    let expired = signed_by(&key(), "GET /dl/a?x=1", -1, |_| {});
    while_hot(&server, &mut other, "GET /open", &[], || {
        for _ in 0..FREQUENT {
            let sent = client.fetch(&valid, &[]);
            // The signature is no part of the stored request.
            assert_eq!((sent.status, &*sent.text()), (200, "GET /dl/a?x=1 HTTP/1.1"));
            for (line, expected) in [
                ("GET /dl/a?x=1", 403),
                ("GET /dl/a?x=1&signed=", 403),
                ("GET /open/../dl/a?x=1", 403),
                (&*valid.replace("/dl/a", "/dl/b"), 403),
                (&*expired, 410),
            ] {
                client.fetch(line, &[]).expect(line, expected, &["!Cache-Status"]);
            }
        }
    });
    // An address takes the place of the signature.
    for _ in 0..FREQUENT {
        assert_eq!(client.fetch("GET /any/a", &[OTHER]).status, 200);
        client
            .fetch("GET /any/a", &[VISITOR])
            .expect("no signature", 403, &["!Cache-Status"]);
    }
    assert_eq!(outcomes(&server, "miss"), 3.0);
}

/// Responses to clients with a certificate are their own, and rules about certificates precede the cache.
#[test]
fn frequent_hits_are_not_for_clients_with_a_certificate() {
    let upstream = pages();
    let (authority, clients) = (Authority::new("root"), Authority::new("clients"));
    let folder = Folder::with(&[]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    folder.write("clients.pem", &clients.pem);
    let text = |keys: &str| {
        format!(
            "[server]\nworkers = 2\nblocking_threads = 2\nevents = {{ wait = \"20ms\", connections = 16 }}\n\
             [site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\n{}\ncache = true\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\", client_ca = \"clients.pem\", client = \"optional\" }}\n{keys}\n",
            upstream.key()
        )
    };
    let rule = "route.\"/in/*\" = { auth = { certificate = { subject = { CN = \"bob\" } } } }";
    let server = Running::start(folder, &text(rule));
    let own = |name: &'static str| clients.client(|params| params.distinguished_name.push(DnType::CommonName, name));
    let (bob, eve) = (own("bob"), own("eve"));
    let connect = |own: Option<&Leaf>| {
        let client = TlsClient {
            own,
            ..TlsClient::new(authority.roots(), "a.test")
        };
        client.client(server.address())
    };
    const HOST: &[&str] = &["Host: a.test"];
    let mut visitors: Vec<Client> = (0..8).map(|_| connect(None)).collect();
    let (mut bob, mut eve) = (connect(Some(&bob)), connect(Some(&eve)));
    heat_all(&server, &mut visitors, "GET /a", HOST);
    let [first, others @ ..] = &mut visitors[..] else {
        unreachable!("there are clients")
    };
    while_hot(&server, first, "GET /a", HOST, || {
        for _ in 0..FREQUENT {
            for (client, expected) in [(&mut bob, 200), (&mut eve, 403)] {
                let open = client.fetch("GET /a", HOST);
                assert_eq!((open.status, &*status(&open)), (200, "fwd=bypass"));
                let inner = client.fetch("GET /in/a", HOST);
                assert_eq!(inner.status, expected);
                if expected == 200 {
                    assert_eq!(status(&inner), "fwd=bypass");
                }
            }
            for line in ["GET /in/a", "GET /a/../in/a"] {
                others[0].fetch(line, HOST).expect(line, 403, &["!Cache-Status"]);
            }
        }
    });
    // The open page gets a rule. No worker sends it to a client without a certificate any more.
    heat_all(&server, &mut visitors, "GET /a", HOST);
    server
        .reload(&text(
            "headers = { X-Round = \"1\" }\nroute.\"/a\" = { auth = { certificate = true } }",
        ))
        .expect("a valid configuration");
    wait_for_round(&mut visitors, HOST, "1");
    wait_for_round(std::slice::from_mut(&mut eve), HOST, "1");
    for client in &mut visitors {
        let next = client.fetch("GET /a", HOST);
        next.expect("no certificate", 403, &["!Cache-Status"]);
    }
    assert_eq!(status(&eve.fetch("GET /a", HOST)), "fwd=bypass");
}

#[test]
fn bans_apply_to_frequent_hits_of_all_workers() {
    let upstream = pages();
    let ban = "[ban]\nnot_found = \"5/10m\"\n";
    let text = text(&upstream, "").replace("workers = 1", "workers = 2");
    let server = Running::start(Folder::with(&[]), &format!("{text}{ban}"));
    let bans = &server.server().registries().bans;
    let mut clients: Vec<Client> = (0..12).map(|_| server.connect()).collect();
    // By an operator, and by offences.
    for is_added in [true, false] {
        heat_all(&server, &mut clients, "GET /a", &[VISITOR]);
        match is_added {
            true => drop(bans.add("198.51.100.1", None, "test").expect("an address")),
            false => {
                for _ in 0..5 {
                    let missing = clients[0].fetch("GET /missing", &[VISITOR]);
                    assert_eq!(missing.status, 404);
                }
            }
        }
        for client in &mut clients {
            let refused = client.fetch("GET /a", &[VISITOR]);
            refused.expect("a ban", 403, &["!Cache-Status"]);
        }
        // The connections belong to a proxy, and other clients use them.
        heat_all(&server, &mut clients, "GET /a", &[OTHER]);
        assert_eq!(bans.lift("198.51.100.1"), Ok(("198.51.100.1".to_owned(), true)));
        heat_all(&server, &mut clients, "GET /a", &[VISITOR]);
    }
    assert_eq!(value(&server, "rocknet_banned_requests_total"), Some(24.0));
}
