//! Sticky sessions by cookie: clients are sent to the same upstream while it is available and while it drains, and to
//! one other upstream afterwards.

use std::io::Read;
use std::net::TcpListener;
use std::time::Instant;

use super::proxy_balance::{balanced, list, numbered, until};
use super::support::upstream::{Upstream, write_to};
use super::support::{DEADLINE, Folder, ReceivedResponse, Running};

#[test]
fn clients_with_a_cookie_are_sent_to_the_same_upstream() {
    let all = numbered(4);
    let server = balanced(&list(&all), "balance = \"round_robin\", sticky = \"at\"");
    let mut client = server.connect();
    let response = client.get("/");
    let cookie = response.field("Set-Cookie").expect("a cookie").to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
    let cookie = format!("Cookie: a=b; {}", cookie.split(';').next().expect("a pair"));
    for _ in 0..8 {
        let again = client.fetch("GET /", &[&cookie]);
        assert_eq!((again.text(), again.field("Set-Cookie")), (response.text(), None));
    }
    // A cookie that names no upstream is replaced.
    client
        .fetch("GET /", &["Cookie: at=0000000000000000"])
        .expect("stray", 200, &["Set-Cookie"]);
    client
        .fetch("GET /", &["Cookie: at=x"])
        .expect("garbage", 200, &["Set-Cookie"]);
}

#[test]
fn clients_of_a_removed_upstream_are_moved_to_one_other() {
    let all = numbered(3);
    let [first, third] = [&all[0], &all[2]].map(Upstream::url);
    let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
    let second = format!("http://{}", gone.local_addr().expect("its address"));
    // The second upstream serves one request and then exits.
    let once = std::thread::spawn(move || {
        let (mut stream, _) = gone.accept().expect("a client");
        let _ = stream.read(&mut [0; 4096]);
        write_to(
            &mut stream,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1",
        );
    });
    let to = format!("[\"{first}\", \"{second}\", \"{third}\"]");
    let server = balanced(&to, "balance = \"round_robin\", sticky = \"at\"");
    let mut client = server.connect();
    let cookie_of = |response: &ReceivedResponse| {
        let cookie = response.field("Set-Cookie").expect("a cookie").to_owned();
        format!("Cookie: {}", cookie.split(';').next().expect("a pair"))
    };
    let began = Instant::now();
    let cookie = loop {
        let response = client.get("/");
        if response.text() == "1" {
            break cookie_of(&response);
        }
        assert!(began.elapsed() < DEADLINE, "the second upstream got no request");
    };
    once.join().expect("a response");
    let elsewhere = client.fetch("GET /", &[&cookie]);
    assert_eq!(elsewhere.status, 200);
    assert_ne!(elsewhere.text(), "1");
    let cookie = cookie_of(&elsewhere);
    for _ in 0..8 {
        let again = client.fetch("GET /", &[&cookie]);
        assert_eq!((again.text(), again.field("Set-Cookie")), (elsewhere.text(), None));
    }
}

#[test]
fn a_draining_upstream_keeps_its_clients_and_gets_no_new_ones() {
    let all = numbered(3);
    // `keys`: further keys of the second upstream.
    let config = |keys: &str| {
        let [first, second, third] = [&all[0], &all[1], &all[2]].map(Upstream::url);
        let to = format!("[\"{first}\", {{ url = \"{second}\"{keys} }}, \"{third}\"]");
        let limits = "connections = 1, fails = 0";
        format!(
            "[server]\nworkers = 1\nevents = {{ wait = \"20ms\" }}\n[site.default]\nlisten = \"127.0.0.1:0\"\n\
             proxy = {{ to = {to}, sticky = \"at\", {limits} }}\n[site.default.route.\"/turn\"]\n\
             proxy = {{ to = {to}, balance = \"round_robin\" }}\n[site.default.route.\"/key/*\"]\n\
             proxy = {{ to = {to}, balance = \"uri\" }}\n"
        )
    };
    let server = Running::start(Folder::with(&[]), &config(""));
    let mut client = server.connect();
    // Requests without a cookie are sent to the upstreams in turn.
    let of_second = (0..30).map(|_| client.get("/")).find(|response| response.text() == "1");
    let cookie = of_second.expect("a response of the second upstream");
    let cookie = cookie.field("Set-Cookie").expect("a cookie").to_owned();
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a pair"));
    server.reload(&config(", drain = true")).expect("a reload");
    let mut client = server.connect();
    for number in 0..30 {
        for path in ["/".to_owned(), "/turn".to_owned(), format!("/key/{number}")] {
            assert_ne!(client.get(&path).text(), "1", "{path}");
        }
        let again = client.fetch("GET /", &[&cookie]);
        assert_eq!((again.text(), again.field("Set-Cookie")), ("1".to_owned(), None));
    }
    server.reload(&config("")).expect("a reload");
    let mut client = server.connect();
    until(&mut client, |_, text| text == "1");
}

over_http3! {
    clients_of_a_removed_upstream_are_moved_to_one_other,
    a_draining_upstream_keeps_its_clients_and_gets_no_new_ones,
}
