//! Bans of an operator, the state folder that keeps them, and lists in files.

use std::time::Instant;

use super::{ATTACKER, FORWARDED, VISITOR, bans, folder, from, text};
use crate::support::{DEADLINE, Running};

#[test]
fn an_operator_bans_a_client_until_a_restart_and_beyond() {
    let config = text(FORWARDED, "time = \"10m\"", "");
    let server = Running::start(folder(), &config);
    let registry = &server.server().registries().bans;
    let mut open = server.connect();
    assert_eq!(open.fetch("GET /", &[&from(ATTACKER)]).status, 200);
    let (address, until) = registry.add(ATTACKER, None, "a \u{1b}bot\nx").unwrap();
    assert!(address == ATTACKER && until.is_some());
    let forever = Some(std::time::Duration::ZERO);
    assert_eq!(
        registry.add("203.0.113.9/24", forever, ""),
        Ok(("203.0.113.0/24".to_owned(), None))
    );
    for refused in ["127.0.0.1", "10.0.0.0/8", "nonsense", "0.0.0.0/0"] {
        assert!(registry.add(refused, None, "").is_err(), "{refused}");
    }
    assert_eq!(open.fetch("GET /", &[&from(ATTACKER)]).status, 403);
    // A reload keeps the bans, and so does a restart.
    server.reload(&config).unwrap();
    let (stopped, folder) = server.take();
    assert!(stopped.stop());
    let server = Running::start(folder, &config);
    for (address, status) in [(ATTACKER, 403), ("203.0.113.77", 403), (VISITOR, 200)] {
        assert_eq!(
            server.connect().fetch("GET /", &[&from(address)]).status,
            status,
            "{address}"
        );
    }
    let reasons: Vec<_> = bans(&server).bans.into_iter().map(|ban| ban.reason).collect();
    assert!(reasons.contains(&"a ?bot?x".to_owned()), "{reasons:?}");
    let registry = &server.server().registries().bans;
    assert!(registry.lift("203.0.113.77").is_err());
    assert_eq!(registry.lift("203.0.113.0/24"), Ok(("203.0.113.0/24".to_owned(), true)));
    assert_eq!(server.connect().fetch("GET /", &[&from("203.0.113.77")]).status, 200);
}

#[test]
fn lists_in_files_are_read_again_when_they_change() {
    let folder = folder();
    folder.write(
        "bans.txt",
        "# bad networks\n198.51.100.0/24 ; scanner\nnonsense\n10.0.0.0/8\n",
    );
    let server = Running::start(folder, &text(FORWARDED, "files = [\"bans.txt\"]", ""));
    let status = |address: &str| server.connect().fetch("GET /", &[&from(address)]).status;
    // An exempt client is not banned by a list either.
    assert_eq!([ATTACKER, "203.0.113.9", "10.1.1.1"].map(status), [403, 200, 200]);
    let list = bans(&server);
    assert_eq!(
        (list.files[0].entries, list.files[0].skipped_lines, list.total),
        (2, 1, 0)
    );
    assert!(
        server
            .server()
            .registries()
            .bans
            .lift(ATTACKER)
            .unwrap_err()
            .contains("bans.txt")
    );
    server.folder.write("bans.txt", "203.0.113.9\n");
    let begun = Instant::now();
    while status("203.0.113.9") != 403 {
        assert!(begun.elapsed() < DEADLINE, "the file was not read again");
        std::thread::yield_now();
    }
    assert_eq!(status(ATTACKER), 200);
    server.reload(&text(FORWARDED, "", "")).unwrap();
    assert_eq!(status("203.0.113.9"), 200);
}
