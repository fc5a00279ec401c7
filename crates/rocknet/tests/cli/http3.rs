//! HTTP/3 from the command line: reports of `rocknet doctor`, and a UDP port that is in use.

use std::net::UdpSocket;

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
    let lines: Vec<_> = output.out.lines().filter(|line| line.contains("HTTP/3")).collect();
    let expected = [
        "good  HTTP/3         UDP port of 127.0.0.1:0 can be opened; a firewall in front has to let it pass".to_owned(),
        format!("fair  HTTP/3         UDP port of {taken} is in use"),
    ];
    for expected in expected {
        assert!(lines.contains(&expected.as_str()), "{output:?}");
    }

    let dir = ProgramFolder::new(&[("rocknet.toml", &site("a", "https://127.0.0.1:0", "http3 = false\n"))]);
    let output = dir.run(&["doctor"]);
    assert!(!output.out.contains("HTTP/3"), "{output:?}");
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
