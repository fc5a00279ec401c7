//! Ports in reports of `rocknet doctor`, with and without a running server, and a UDP port that is in use.

use std::net::UdpSocket;
use std::os::unix::net::UnixListener;

use super::program::ProgramFolder;

#[test]
fn the_doctor_reports_udp_ports() {
    let other = UdpSocket::bind(("127.0.0.1", 0)).expect("a socket");
    let taken = other.local_addr().expect("an address");
    let site = |name: &str, listen: &str, keys: &str| {
        format!("[site.\"{name}.test\"]\nlisten = \"{listen}\"\nroot = \".\"\ntls = \"local\"\n{keys}")
    };
    let text = site("a", "https://127.0.0.1:0", "") + &site("b", &format!("https://{taken}"), "");
    let dir = ProgramFolder::new(&[("rocknet.toml", &text)]);
    let output = dir.run(&["doctor"]);
    // This process holds the port, and the report names it.
    let expected = [
        "good  HTTP/3         UDP port of 127.0.0.1:0 can be opened; a firewall in front has to let it pass".to_owned(),
        format!("fair  HTTP/3         UDP port of {taken} is in use by "),
        format!("(pid {})", std::process::id()),
        "[udp-port-in-use]  $ ".to_owned(),
    ];
    for expected in expected {
        assert!(output.out.contains(&expected), "{expected}: {output:?}");
    }

    let dir = ProgramFolder::new(&[("rocknet.toml", &site("a", "https://127.0.0.1:0", "http3 = false\n"))]);
    let output = dir.run(&["doctor"]);
    assert!(!output.out.contains("HTTP/3"), "{output:?}");
}

#[test]
fn the_doctor_recognizes_the_ports_of_the_running_server() {
    let text = |http: &str, further: &str| {
        format!(
            "[site.default]\nlisten = [\"http://{http}\"{further}]\nroot = \".\"\n\
             [site.\"a.test\"]\nlisten = \"https://127.0.0.2:0\"\nroot = \".\"\ntls = \"local\"\n"
        )
    };
    let dir = ProgramFolder::new(&[("rocknet.toml", &text("127.0.0.1:0", ""))]);
    let server = dir.serve(&["run"]);
    let check = |expected: &[&str]| {
        let output = dir.run(&["doctor"]);
        let lines: Vec<_> = output.out.lines().collect();
        for expected in expected {
            assert!(lines.contains(expected), "{expected}: {output:?}");
        }
    };
    check(&[
        "good  port           127.0.0.1:0 is served",
        "good  port           127.0.0.2:0 is served",
        "good  HTTP/3         UDP port of 127.0.0.2:0 is served",
    ]);
    // The file now names the port that the kernel has chosen, and an address that the server does not serve yet.
    let bound = server.authority();
    dir.write("rocknet.toml", &text(bound, ", \"http://127.0.0.3:0\""));
    check(&[
        &format!("good  port           {bound} is served"),
        "good  port           127.0.0.3:0 can be bound",
        "good  HTTP/3         UDP port of 127.0.0.2:0 is served",
    ]);
}

#[test]
fn the_doctor_reports_a_server_that_does_not_reply() {
    let dir = ProgramFolder::new(&[(
        "rocknet.toml",
        "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \".\"\n",
    )]);
    // The kernel accepts connections on this socket, but no process reads them.
    let _listener = UnixListener::bind(dir.path().join("control.sock")).expect("a socket");
    let output = dir.run(&["doctor"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let is_reported = |line: &str| {
        line.starts_with("bad   server ") && line.contains("control.sock") && line.contains("did not reply within 5 s")
    };
    assert!(output.out.lines().any(is_reported), "{output:?}");
    // The other checks do not need the server.
    assert!(output.out.contains("127.0.0.1:0 can be bound"), "{output:?}");
}

#[test]
fn a_udp_port_in_use_is_logged_at_the_start() {
    let other = UdpSocket::bind(("127.0.0.9", 0)).expect("a socket");
    let taken = other.local_addr().expect("an address");
    let text = format!("[site.\"a.test\"]\nlisten = \"https://{taken}\"\nroot = \".\"\ntls = \"local\"\n");
    let dir = ProgramFolder::new(&[("rocknet.toml", &text)]);
    let server = dir.serve(&["run", "--console", "-c", "rocknet.toml"]);
    let line = server.logged("the UDP port cannot be opened, and HTTP/3 is not served there");
    assert!(line.contains(&taken.to_string()) && line.contains("in use"), "{line}");
}
