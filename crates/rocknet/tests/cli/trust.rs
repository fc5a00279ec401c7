//! Trust in the local CA of a user, and the findings of `doctor` about the machine.

use std::process::Command;

use crate::program::ProgramFolder;

const SITE: &str = "[server]\nstate = \"state\"\n\
                    [site.localhost]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\ntls = \"local\"\n";

/// Runs command lines in order. A row has the arguments, the expected exit code and a part of the output.
#[track_caller]
fn run_all(dir: &ProgramFolder, rows: &[(&str, i32, &str)]) {
    for (line, code, part) in rows {
        let arguments: Vec<_> = line.split_whitespace().collect();
        let output = dir.run(&arguments);
        let text = format!("{}{}", output.out, output.err);
        assert!(
            output.code == Some(*code) && text.contains(part),
            "{line}: {code} and {part:?} were expected: {output:?}"
        );
    }
}

/// Tests only the browser stores, in a temporary home, because all users share the store of the system.
#[test]
fn trust_is_installed_into_a_home_and_removed() {
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", SITE), ("bad.toml", "[site\n")]);
    let database = dir.path().join(".pki/nssdb");
    std::fs::create_dir_all(&database).unwrap();
    let made = Command::new("certutil")
        .args(["-N", "--empty-password", "-d"])
        .arg(&database)
        .status();
    assert!(made.expect("certutil: `cargo xtask test` installs it").success());
    run_all(
        &dir,
        &[
            ("trust --look --browsers", 1, "There is no local CA yet"),
            ("untrust --browsers", 0, "There is no local CA yet"),
            ("doctor", 0, "the server creates it when it starts"),
            ("trust --browsers", 0, "Chromium  trusted"),
            ("trust --browsers", 0, "Chromium  trusted"),
            ("trust --look --browsers --json", 0, "\"state\": \"trusted\""),
            ("doctor", 0, "trusted by Chromium"),
            ("untrust --browsers", 0, "Chromium  not trusted"),
            ("trust --look --browsers", 1, "Chromium  not trusted"),
            ("doctor", 0, "not trusted by Chromium"),
            ("trust --browsers --dangerous-any-name", 0, "for any name"),
            ("untrust --browsers --json", 0, "\"state\": \"not trusted\""),
            ("trust -c bad.toml", 78, "bad.toml:1"),
        ],
    );
}

/// The CA is in a temporary state folder, so no store of the system trusts it.
#[test]
fn start_up_suggests_the_trust_command_if_the_ca_is_not_trusted() {
    let clear = SITE
        .replace("\ntls = \"local\"", "\ntls = \"off\"")
        .replace("https://", "");
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", SITE), ("clear.toml", &clear)]);
    let server = dir.serve(&["run"]);
    let hint = format!(
        "rocknet trust -c {}/rocknet.toml",
        dir.path().canonicalize().unwrap().display()
    );
    assert!(
        server.banner.contains("Browsers will warn of localhost") && server.banner.contains(&hint),
        "{}",
        server.banner
    );
    let server = dir.serve(&["run", "clear.toml"]);
    assert!(!server.banner.contains("trust"), "{}", server.banner);
}

#[test]
fn the_doctor_reports_configurations_that_cannot_be_used() {
    let dir = ProgramFolder::new(&[
        ("www/index.html", ""),
        ("rocknet.toml", SITE),
        ("bad.toml", "[site.localhost]\nrot = \"www\"\n"),
        ("away.toml", &SITE.replace("127.0.0.1:0", "192.0.2.1:443")),
        ("full.toml", &SITE.replace("\"state\"", "\"www/index.html/state\"")),
    ]);
    run_all(
        &dir,
        &[
            ("doctor", 0, "127.0.0.1:0 can be bound"),
            ("doctor --json", 0, "\"verdict\": \"good\""),
            ("doctor -c bad.toml", 1, "unknown key `rot`"),
            ("doctor -c away.toml", 1, "192.0.2.1:443"),
            ("doctor -c full.toml", 1, "cannot be written"),
            ("doctor -c nowhere.toml", 1, "nowhere.toml"),
        ],
    );
}
