//! Findings of `rocknet doctor` with their codes, places and commands, and its repairs.

use std::net::TcpListener;

use serde_json::Value;

use crate::program::{ProgramFolder, ProgramOutput};

/// Returns the checks in the output as JSON.
fn checks(output: &ProgramOutput) -> Vec<Value> {
    let report: Value = serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    report["checks"].as_array().expect("an array").clone()
}

/// Returns the checks with a code.
fn with_code(output: &ProgramOutput, code: &str) -> Vec<Value> {
    checks(output)
        .into_iter()
        .filter(|check| check["code"] == code)
        .collect()
}

#[test]
fn a_port_that_another_program_holds_has_its_process_and_a_command() {
    let other = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let taken = other.local_addr().expect("an address").to_string();
    let site = format!("[site.default]\nlisten = \"{taken}\"\nroot = \".\"\n");
    let dir = ProgramFolder::new(&[("rocknet.toml", &site)]);
    let output = dir.run(&["doctor", "--json"]);
    let found = with_code(&output, "port-in-use");
    assert_eq!(found.len(), 1, "{output:?}");
    assert_eq!(
        (found[0]["verdict"].as_str(), found[0]["place"].as_str()),
        (Some("fair"), Some(&*taken))
    );
    let holder = format!("(pid {})", std::process::id());
    assert!(
        found[0]["found"].as_str().is_some_and(|text| text.contains(&holder)),
        "{found:?}"
    );
    // The test runs in a terminal or as a part of a service.
    let command = found[0]["command"].as_str().expect("a command");
    assert!(
        command.starts_with("ps -f -p ") || command.starts_with("sudo systemctl disable --now "),
        "{command}"
    );
}

#[test]
fn open_files_are_compared_with_the_configured_connections() {
    let site = "[limits]\nconnections = 1000000\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \".\"\n";
    let dir = ProgramFolder::new(&[("rocknet.toml", site)]);
    // The hard limit of the shell applies to the program, which can raise its soft limit only up to it.
    let limited = ["sh", "-c", "ulimit -n 4096; exec \"$@\"", "sh"];
    let output = dir.run_by(&limited, &["doctor", "--json"]);
    let found = with_code(&output, "open-files-below-connections");
    assert_eq!(found.len(), 1, "{output:?}");
    let text = found[0]["found"].as_str().expect("a text");
    assert!(
        text.starts_with("4096 at most") && text.contains("not the 1000000"),
        "{text}"
    );

    // The limit of the running server counts, not that of the terminal.
    let server = dir.serve_by(&limited, &["run"]);
    let output = dir.run(&["doctor", "--json"]);
    let found = with_code(&output, "open-files-below-connections");
    assert_eq!(found.len(), 1, "{output:?}");
    assert!(
        found[0]["found"]
            .as_str()
            .is_some_and(|text| text.starts_with("4096 at most")),
        "{found:?}"
    );
    drop(server);
}

#[test]
fn each_finding_has_a_code_and_each_good_check_has_none() {
    let site = "[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \".\"\ntls = \"local\"\n";
    let dir = ProgramFolder::new(&[("rocknet.toml", site)]);
    let output = dir.run(&["doctor", "--json"]);
    let checks = checks(&output);
    assert!(checks.iter().any(|check| check["check"] == "clock"), "{output:?}");
    for check in checks {
        assert_eq!(check.get("code").is_none(), check["verdict"] == "good", "{check}");
    }
}

#[test]
fn repairs_need_a_terminal_or_a_confirmation() {
    let dir = ProgramFolder::new(&[(
        "rocknet.toml",
        "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \".\"\n",
    )]);
    let output = dir.run(&["doctor", "--fix"]);
    assert!(output.code == Some(2) && output.err.contains("`--yes`"), "{output:?}");
    let output = dir.run(&["doctor", "--yes"]);
    assert!(output.code == Some(2) && output.err.contains("--fix"), "{output:?}");
}
