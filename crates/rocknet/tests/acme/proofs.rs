//! Issues certificates by each challenge type, and waits until they are in the store and on disk.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rocknet::certificates::acme::Clock;
use rocknet_config::model::{Challenge, Dns, DnsZone, Secret, SharedKey};

use crate::pebble::{CaBehaviour, Pebble, own_address, until};
use crate::site::{Site, leaf};
use crate::zone::Zone;

#[test]
fn a_certificate_is_issued_by_http_01() {
    let pebble = Pebble::with(CaBehaviour { rejects_nonces: true });
    let mut site = Site::new(&pebble.settings(&[Challenge::Http]));
    site.listen(pebble.ip());
    let names = ["a.example.com", "b.example.com"];
    site.request(&names);
    // An attempt fails after three rejected nonces in a row. Advancing the clock makes the next attempt due.
    until(|| {
        let all = names.iter().all(|name| site.store.find(name).is_some());
        if !all {
            site.clock.advance(Duration::from_secs(1));
        }
        all
    });
    for name in names {
        let set = site.wait_for(name);
        assert_eq!(set.certificates()[0].names(), [name]);
    }
    assert_ne!(
        leaf(&site.wait_for("a.example.com")),
        leaf(&site.wait_for("b.example.com"))
    );
    // Only the owner can read the stored files, and neither a challenge nor an order remains.
    let kept = site.folder.path().join("acme/certificates/a.example.com.pem");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(kept).unwrap();
    assert!(text.contains("PRIVATE KEY") && text.contains("CERTIFICATE"));
    for target in site.requested.lock().unwrap().iter() {
        let token = target.rsplit('/').next().unwrap();
        assert_eq!(site.store.http_challenge(token), None);
    }
    until(|| fs::read_dir(site.folder.path().join("acme/orders")).unwrap().count() == 0);
    // A new process serves the stored certificate immediately, although the CA has stopped.
    let first = leaf(&site.wait_for("a.example.com"));
    let (folder, settings) = (Arc::clone(&site.folder), pebble.settings(&[Challenge::Http]));
    drop((site, pebble));
    let mut next = Site::in_folder(folder, &settings, Clock::default());
    next.request(&["a.example.com"]);
    assert_eq!(leaf(&next.store.find("a.example.com").unwrap()), first);
}

#[test]
fn a_certificate_is_issued_by_tls_alpn_01() {
    let pebble = Pebble::start();
    let mut site = Site::new(&pebble.settings(&[Challenge::TlsAlpn]));
    site.listen(pebble.ip());
    site.request(&["a.example.com"]);
    site.wait_for("a.example.com");
    // The proof has been removed from the store, and the CA has requested nothing over plain HTTP.
    assert!(site.store.tls_alpn_challenge("a.example.com").is_none());
    assert!(site.requested.lock().unwrap().is_empty());
}

/// The site has an IP address in place of a host name.
#[test]
fn a_certificate_is_issued_for_an_ip_address() {
    let pebble = Pebble::start();
    let mut site = Site::new(&pebble.settings(&[Challenge::Http]));
    site.listen(pebble.ip());
    let ip = pebble.ip().to_string();
    site.request(&[&ip]);
    assert_eq!(site.wait_for(&ip).certificates()[0].names(), [ip]);
}

#[test]
fn a_certificate_is_issued_by_dns_01_with_a_hook() {
    let pebble = Pebble::start();
    let folder = tempfile::tempdir().unwrap();
    let (program, seen) = (folder.path().join("hook"), folder.path().join("seen"));
    // The hook is a script of the operator that calls the API of a DNS server.
    let script = format!(
        "#!/bin/sh\nset -e\necho \"$1 $2\" >> {seen}\ncase $1 in\n  \
         present) curl -sf -d '{{\"host\":\"'$2'.\",\"value\":\"'$3'\"}}' http://{ip}:8055/set-txt;;\n  \
         cleanup) curl -sf -d '{{\"host\":\"'$2'.\"}}' http://{ip}:8055/clear-txt;;\nesac\n",
        seen = seen.display(),
        ip = pebble.ip()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = pebble.settings(&[Challenge::Dns]);
    settings.dns = Some(Dns::Hook {
        program,
        wait: Duration::ZERO,
    });
    let mut site = Site::new(&settings);
    site.request(&["*.example.com"]);
    let set = site.wait_for("any.example.com");
    assert_eq!(set.certificates()[0].names(), ["*.example.com"]);
    let seen = fs::read_to_string(seen).unwrap();
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        [
            "present _acme-challenge.example.com",
            "cleanup _acme-challenge.example.com"
        ]
    );
}

#[test]
fn a_certificate_is_issued_by_dns_01_with_a_dynamic_update() {
    let pebble = Pebble::start();
    let secret = b"thirty-two bytes of a TSIG key!!".to_vec();
    let zone = Zone::serve("example.com", "updates", &secret, pebble.ip());
    let mut settings = pebble.settings(&[Challenge::Dns]);
    settings.dns = Some(Dns::Update {
        zone: DnsZone {
            server: zone.address,
            name: None,
            key: Some(SharedKey {
                name: "updates".to_owned(),
                secret: Secret::new(secret),
            }),
        },
        wait: Duration::ZERO,
    });
    let mut site = Site::new(&settings);
    site.request(&["*.deep.example.com"]);
    site.wait_for("a.deep.example.com");
    let done = zone.done.lock().unwrap().clone();
    assert_eq!(
        done,
        [
            "add _acme-challenge.deep.example.com",
            "delete _acme-challenge.deep.example.com"
        ]
    );
}

#[test]
fn on_demand_issuance_is_limited_to_permitted_names() {
    let pebble = Pebble::start();
    // Before the server issues a certificate on demand, it requests the URL `ask` with the name. Status 200 permits
    // the name.
    let listener = TcpListener::bind((own_address(), 0)).unwrap();
    let requested: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut settings = pebble.settings(&[Challenge::Http]);
    settings.ask = Some(format!("http://{}/may?from=rocknet", listener.local_addr().unwrap()));
    let seen = Arc::clone(&requested);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap_or(0);
            let line = String::from_utf8_lossy(&head[..read])
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            let status = if line.contains("=yes.example.com ") {
                "200 OK"
            } else {
                "403 Forbidden"
            };
            seen.lock().unwrap().push(line);
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    let mut site = Site::new(&settings);
    site.listen(pebble.ip());
    site.request(&["*.example.com"]);
    // A handshake reports a name that has no certificate.
    for name in [
        "no.example.com",
        "other.example.org",
        "yes.example.com",
        "yes.example.com",
        "no.example.com",
    ] {
        site.store.report_missing(name);
    }
    site.wait_for("yes.example.com");
    // `ask` is requested once for each name, and never for a name outside of `*.example.com`.
    let mut lines = requested.lock().unwrap().clone();
    lines.sort();
    assert_eq!(
        lines,
        [
            "GET /may?from=rocknet&domain=no.example.com HTTP/1.1",
            "GET /may?from=rocknet&domain=yes.example.com HTTP/1.1"
        ]
    );
    assert!(site.store.find("no.example.com").is_none());
    // A new process keeps the certificates that were issued on demand.
    let mut next = Site::in_folder(Arc::clone(&site.folder), &settings, Clock::default());
    next.request(&["*.example.com"]);
    assert!(next.store.find("yes.example.com").is_some());
}
