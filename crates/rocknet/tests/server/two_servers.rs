//! Two servers in one process: each has its own state of the same upstreams.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

fn proxy(keys: &str) -> Running {
    Running::site(Folder::with(&[("www/x", "")]), &format!("proxy = {{ {keys} }}"))
}

#[test]
fn an_upstream_that_failed_for_one_server_is_used_by_the_other() {
    let is_broken = Arc::new(AtomicBool::new(false));
    let broken = Arc::clone(&is_broken);
    let first = Upstream::start(move |_, stream| match broken.load(Ordering::SeqCst) {
        true => Next::Close,
        false => {
            write_to(stream, ok("first"));
            Next::Keep
        }
    });
    let second = Upstream::responding_with(ok("second"));
    let keys = format!(
        "to = [\"{}\", \"{}\"], balance = \"round_robin\", fails = 1, fail_time = \"1h\"",
        first.url(),
        second.url()
    );
    let (one, other) = (proxy(&keys), proxy(&keys));
    let fetch_four = |server: &Running| -> Vec<String> {
        let mut client = server.connect();
        (0..4).map(|_| client.get("/").text()).collect()
    };
    let goes_to_first = |server: &Running| fetch_four(server).iter().any(|text| text == "first");
    assert!(goes_to_first(&one) && goes_to_first(&other));
    is_broken.store(true, Ordering::SeqCst);
    assert_eq!(fetch_four(&one), ["second"; 4]);
    is_broken.store(false, Ordering::SeqCst);
    assert_eq!(fetch_four(&one), ["second"; 4], "the failed upstream must be paused");
    assert!(
        goes_to_first(&other),
        "the upstream is also paused for the other server"
    );
}

#[test]
fn the_concurrency_limit_of_one_server_does_not_affect_the_other() {
    let (release, released) = mpsc::channel::<()>();
    let (arrived, has_arrived) = mpsc::channel();
    let released = Arc::new(Mutex::new(released));
    let upstream = Upstream::start(move |incoming, stream| {
        if incoming.line.starts_with("GET /held ") {
            let _ = arrived.send(());
            let _ = released.lock().expect("a lock").recv();
        }
        write_to(stream, ok("here"));
        Next::Keep
    });
    let keys = format!("to = \"{}\", connections = 1, queue = \"100ms\"", upstream.url());
    let (one, other) = (proxy(&keys), proxy(&keys));
    let mut held = one.connect();
    held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
    has_arrived.recv_timeout(DEADLINE).expect("the request");
    assert_eq!(one.get("/").status, 503);
    let response = other.get("/");
    assert_eq!((response.status, response.text().as_str()), (200, "here"));
    drop(release);
    assert_eq!(held.response().text(), "here");
}

over_http3! {
    an_upstream_that_failed_for_one_server_is_used_by_the_other,
    the_concurrency_limit_of_one_server_does_not_affect_the_other,
}
