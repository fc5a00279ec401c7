//! Findings of `rocknet doctor` with their codes, places and commands, and its repairs.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, KeyPair};
use rocknet_testing::{Need, skip};
use serde_json::Value;

use crate::accounts::{is_root, make_accessible, uid};
use crate::hardening::AS_NOBODY;
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

/// Returns the report as JSON.
fn report(output: &ProgramOutput) -> Value {
    serde_json::from_str(&output.out).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Uses a mount namespace, in which `/etc/hosts` is a file of the test.
#[test]
fn names_are_added_to_the_hosts_file_and_resolve_afterwards() {
    if !is_root() {
        return rocknet_testing::skip(
            rocknet_testing::Need::Root,
            "only root can have other accounts and mounts",
        );
    }
    let in_namespace = Command::new("unshare").args(["--mount", "true"]).output();
    if !in_namespace.is_ok_and(|output| output.status.success()) {
        return skip(Need::Root, "no mount namespace can be created");
    }
    let site = "[server]\nstate = \"state\"\n\
                [site.\"doctor-a.test\"]\naliases = [\"doctor-b.test\"]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";
    // The file alone is mounted as in a container, where it cannot be replaced; then the whole folder.
    for mount in ["mount --bind etc/hosts /etc/hosts", "mount --bind etc /etc"] {
        let original = "127.0.0.1\tlocalhost # mine\n";
        let dir = ProgramFolder::new(&[
            ("www/index.html", ""),
            ("rocknet.toml", site),
            ("etc/hosts", original),
            ("etc/passwd", "root:x:0:0::/:/bin/sh\n"),
            ("etc/nsswitch.conf", "hosts: files dns\n"),
        ]);
        let script = format!("{mount} && exec \"$@\"");
        let namespace = ["unshare", "--mount", "sh", "-c", &script, "sh"];
        let output = dir.run_by(&namespace, &["doctor", "--json"]);
        let found = with_code(&output, "name-unresolved");
        assert_eq!(found.len(), 1, "{mount}: {output:?}");
        assert_eq!(found[0]["fix"], true, "{found:?}");
        assert_eq!(
            found[0]["command"],
            "echo '127.0.0.1 doctor-a.test doctor-b.test' | sudo tee -a /etc/hosts"
        );
        assert_eq!(dir.read("etc/hosts"), original);

        let output = dir.run_by(&namespace, &["doctor", "--json", "--fix", "--yes"]);
        let repairs = report(&output)["repairs"].clone();
        let is_done = |repair: &Value| repair["code"] == "name-unresolved" && repair.get("done").is_some();
        assert!(
            repairs.as_array().is_some_and(|all| all.iter().any(is_done)),
            "{mount}: {output:?}"
        );
        let line = "127.0.0.1 doctor-a.test doctor-b.test # added by `rocknet doctor`\n";
        assert_eq!(dir.read("etc/hosts"), format!("{original}{line}"), "{mount}");
        assert!(with_code(&output, "name-unresolved").is_empty(), "{output:?}");
        let is_good = |check: &Value| check["check"] == "host names" && check["verdict"] == "good";
        assert!(checks(&output).iter().any(is_good), "{output:?}");
    }
}

#[test]
fn a_certificate_file_that_expires_soon_is_reported() {
    let site = "[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\" }\n";
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", site)]);
    let write = |days: u32| write_certificate(&dir, -80, i64::from(days) + 1);
    write(10);
    let output = dir.run(&["doctor", "--json"]);
    let found = with_code(&output, "certificate-expires-soon");
    assert_eq!(found.len(), 1, "{output:?}");
    assert_eq!(
        (found[0]["place"].as_str(), output.code),
        (Some("a.test"), Some(0)),
        "{output:?}"
    );
    assert!(
        found[0]["found"]
            .as_str()
            .is_some_and(|text| text.contains("in 10 days")),
        "{found:?}"
    );
    // The running server reports the same of the certificate that it serves.
    let server = dir.serve(&["run"]);
    assert_eq!(
        with_code(&dir.run(&["doctor", "--json"]), "certificate-expires-soon").len(),
        1
    );
    drop(server);
    write(60);
    let output = dir.run(&["doctor", "--json"]);
    assert!(with_code(&output, "certificate-expires-soon").is_empty(), "{output:?}");
    let is_good = |check: &Value| check["check"] == "certificate" && check["verdict"] == "good";
    assert!(checks(&output).iter().any(is_good), "{output:?}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn folders_that_the_account_of_the_server_cannot_use_are_reported_and_logs_are_repaired() {
    if !is_root() {
        return rocknet_testing::skip(
            rocknet_testing::Need::Root,
            "only root can have other accounts and mounts",
        );
    }
    let text = "[server]\nstate = \"state\"\nuser = \"daemon\"\n[log]\nerrors = \"logs/error.log\"\n\
                [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"home/site\"\n\
                [site.default.route.\"/dl/*\"]\nauth = { signed = \"url.keys\" }\n";
    let dir = ProgramFolder::new(&[
        ("home/site/index.html", ""),
        ("logs/error.log", ""),
        ("rocknet.toml", text),
        ("url.keys", "main:0123456789abcdef0123456789abcdef\n"),
    ]);
    for path in ["", "home", "home/site", "logs"] {
        make_accessible(&dir.path().join(path));
    }
    set_mode(&dir.path().join("home"), 0o700);
    set_mode(&dir.path().join("rocknet.toml"), 0o600);
    set_mode(&dir.path().join("url.keys"), 0o600);
    let top = dir.path().canonicalize().expect("a folder");
    let output = dir.run(&["doctor", "--json", "-c", "rocknet.toml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    for (code, verdict, place) in [
        ("root-not-readable", "bad", top.join("home")),
        ("log-not-writable", "bad", top.join("logs/error.log")),
        ("config-not-readable", "fair", top.join("rocknet.toml")),
        ("url-keys-not-readable", "bad", top.join("url.keys")),
    ] {
        let found = with_code(&output, code);
        assert_eq!(found.len(), 1, "{code}: {output:?}");
        assert_eq!(found[0]["verdict"], verdict, "{found:?}");
        assert_eq!(found[0]["place"].as_str(), place.to_str(), "{found:?}");
        assert!(
            found[0]["command"]
                .as_str()
                .is_some_and(|command| command.starts_with("sudo ")),
            "{found:?}"
        );
    }

    let output = dir.run(&["doctor", "--json", "--fix", "--yes", "-c", "rocknet.toml"]);
    assert!(with_code(&output, "log-not-writable").is_empty(), "{output:?}");
    let owner = |path: &str| fs::metadata(dir.path().join(path)).expect("it exists").uid();
    assert_eq!((owner("logs"), owner("logs/error.log")), (uid("daemon"), uid("daemon")));
    // The doctor changes neither the folder of a user nor the configuration.
    assert_eq!((owner("home"), owner("rocknet.toml")), (0, 0));
    assert_eq!(with_code(&output, "root-not-readable").len(), 1, "{output:?}");

    set_mode(&dir.path().join("home"), 0o711);
    set_mode(&dir.path().join("rocknet.toml"), 0o644);
    set_mode(&dir.path().join("url.keys"), 0o644);
    let output = dir.run(&["doctor", "--json", "-c", "rocknet.toml"]);
    for code in [
        "root-not-readable",
        "log-not-writable",
        "config-not-readable",
        "url-keys-not-readable",
    ] {
        assert!(with_code(&output, code).is_empty(), "{code}: {output:?}");
    }
}

/// Writes a certificate for `a.test` and its key with this validity, in days from now.
fn write_certificate(dir: &ProgramFolder, from: i64, until: i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    let days = |days: i64| {
        let shift = Duration::from_secs(86_400 * days.unsigned_abs());
        rcgen::date_time_ymd(1970, 1, 1) + if days < 0 { now - shift } else { now + shift }
    };
    let mut params = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
    (params.not_before, params.not_after) = (days(from), days(until) - Duration::from_secs(43_200));
    let key = KeyPair::generate().expect("a key");
    dir.write("tls/cert.pem", &params.self_signed(&key).expect("a certificate").pem());
    set_mode(&dir.write("tls/key.pem", &key.serialize_pem()), 0o600);
}

#[test]
fn an_account_that_is_not_that_of_the_server_gets_no_false_findings() {
    if !is_root() {
        return skip(Need::Root, "only root can have other accounts");
    }
    let site = "[server]\nstate = \"state\"\n[log]\nerrors = \"logs/error.log\"\n\
                [site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\" }\n\
                [site.\"b.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"private/www\"\n\
                [site.\"c.example.com\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\n";
    let dir = ProgramFolder::new(&[
        ("www/index.html", ""),
        ("private/www/index.html", ""),
        ("logs/error.log", ""),
        ("state/local/ca.pem", "secret"),
        ("rocknet.toml", site),
    ]);
    write_certificate(&dir, -1, 60);
    make_accessible(dir.path());
    // The server's account owns these, as that of a package does.
    let daemon = Some(uid("daemon"));
    for path in ["state", "logs", "logs/error.log", "private", "tls", "tls/key.pem"] {
        let path = dir.path().join(path);
        chown(&path, daemon, None).expect("an owner");
        set_mode(&path, if path.is_dir() { 0o700 } else { 0o600 });
    }
    let as_nobody = AS_NOBODY.replace("ARGUMENTS", "");
    let by = ["sh", "-c", &as_nobody, "sh"];
    let output = dir.run_by(&by, &["doctor", "--json", "-c", "rocknet.toml"]);
    let bad: Vec<Value> = checks(&output)
        .into_iter()
        .filter(|check| check["verdict"] == "bad" && check["check"] != "host names")
        .collect();
    assert!(bad.is_empty(), "{bad:?} {output:?}");
    let skipped = with_code(&output, "needs-root");
    for subject in ["site", "certificate", "folders", "accounts", "local CA", "open files"] {
        let of_subject = |check: &&Value| check["check"] == subject;
        let found = skipped.iter().find(of_subject);
        let found = found.unwrap_or_else(|| panic!("{subject}: {output:?}"));
        assert_eq!(found["verdict"], "skipped");
        assert!(
            found["found"]
                .as_str()
                .is_some_and(|text| text.contains("because daemon runs the server")),
            "{found}"
        );
        assert_eq!(found["command"], "sudo rocknet doctor");
    }

    // The account of the server gets the true findings: it owns the state folder, but not this root.
    chown(dir.path().join("private"), Some(0), None).expect("an owner");
    for path in ["state", "state/local", "state/local/ca.pem"] {
        chown(dir.path().join(path), Some(65_534), None).expect("an owner");
    }
    let output = dir.run_by(&by, &["doctor", "--json", "-c", "rocknet.toml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(with_code(&output, "needs-root").is_empty(), "{output:?}");
    for code in ["site-not-served", "log-not-writable", "scripts-share-account"] {
        assert!(!with_code(&output, code).is_empty(), "{code}: {output:?}");
    }

    // A configuration that this account cannot read belongs to another.
    set_mode(&dir.path().join("rocknet.toml"), 0o600);
    let output = dir.run_by(&by, &["doctor", "--json", "-c", "rocknet.toml"]);
    assert_eq!(
        (with_code(&output, "needs-root").len(), output.code),
        (1, Some(0)),
        "{output:?}"
    );
}

#[test]
fn certificates_that_browsers_refuse_are_bad() {
    let site = "[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"tls/cert.pem\", key = \"tls/key.pem\" }\n";
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", site)]);
    for (from, until, code) in [(2, 60, "certificate-not-yet-valid"), (-60, -2, "certificate-expired")] {
        write_certificate(&dir, from, until);
        let output = dir.run(&["doctor", "--json"]);
        let found = with_code(&output, code);
        assert_eq!((found.len(), output.code), (1, Some(1)), "{output:?}");
        assert_eq!(found[0]["verdict"], "bad", "{found:?}");
        // The check of the configuration does not repeat it.
        assert!(with_code(&output, "certificate-unusable").is_empty(), "{output:?}");
    }
}

#[test]
fn a_root_below_a_closed_folder_is_not_reported_as_missing() {
    if !is_root() {
        return skip(Need::Root, "only root can have other accounts");
    }
    let site = "[server]\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"private/www\"\n";
    let dir = ProgramFolder::new(&[("private/www/index.html", ""), ("state/x", ""), ("rocknet.toml", site)]);
    make_accessible(dir.path());
    chown(dir.path().join("state"), Some(65_534), None).expect("an owner");
    set_mode(&dir.path().join("private"), 0o700);
    let as_nobody = AS_NOBODY.replace("ARGUMENTS", "");
    let by = ["sh", "-c", &as_nobody, "sh"];
    let output = dir.run_by(&by, &["doctor", "--json", "-c", "rocknet.toml"]);
    let found = with_code(&output, "site-not-served");
    assert_eq!(found.len(), 1, "{output:?}");
    let text = found[0]["found"].as_str().unwrap_or_default();
    assert!(
        text.contains("this account may not see the folder") && text.contains("private/www"),
        "{text}"
    );
}

#[test]
fn several_logs_in_one_folder_share_a_repair() {
    if !is_root() {
        return skip(Need::Root, "only root can have other accounts");
    }
    let text = "[server]\nstate = \"state\"\nuser = \"daemon\"\n\
                [log]\nerrors = \"logs/error.log\"\naccess = \"logs/access.log\"\n\
                [site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";
    let dir = ProgramFolder::new(&[
        ("www/index.html", ""),
        ("logs/error.log", ""),
        ("logs/access.log", ""),
        ("logs/access.log.1", ""),
        ("rocknet.toml", text),
    ]);
    for path in ["", "www", "logs"] {
        make_accessible(&dir.path().join(path));
    }
    let output = dir.run(&["doctor", "--json", "-c", "rocknet.toml"]);
    let found = with_code(&output, "log-not-writable");
    assert_eq!(found.len(), 1, "{output:?}");
    assert_eq!(found[0]["fix"], true, "{found:?}");
    let output = dir.run(&["doctor", "--json", "--fix", "--yes", "-c", "rocknet.toml"]);
    assert!(with_code(&output, "log-not-writable").is_empty(), "{output:?}");
    for path in ["logs", "logs/error.log", "logs/access.log", "logs/access.log.1"] {
        assert_eq!(
            fs::metadata(dir.path().join(path)).expect("it exists").uid(),
            uid("daemon")
        );
    }
}

#[test]
fn the_text_contains_no_control_characters_of_the_configuration() {
    let text = "[log]\nerrors = \"logs/\\u001b[2J.log\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", text)]);
    let output = dir.run(&["doctor"]);
    assert!(!output.out.contains('\u{1b}'), "{output:?}");
    let json = dir.run(&["doctor", "--json"]);
    assert!(!checks(&json).is_empty());
}

#[test]
fn a_local_ca_that_no_site_needs_is_not_installed() {
    let site = "[server]\nstate = \"state\"\n[site.\"a.localhost\"]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\ntls = \"off\"\n";
    let dir = ProgramFolder::new(&[("www/index.html", ""), ("rocknet.toml", site)]);
    let untrusted = || with_code(&dir.run(&["doctor", "--json"]), "ca-not-trusted").len();
    let with_tls = site
        .replace("\"127.0.0.1:0\"", "\"https://127.0.0.1:0\"")
        .replace("off", "local");
    dir.write("rocknet.toml", &with_tls);
    // The server creates the CA.
    drop(dir.serve(&["run"]));
    assert!(dir.path().join("state/local").exists());
    if untrusted() == 0 {
        return skip(
            Need::Program("update-ca-certificates"),
            "this machine has no trust store",
        );
    }
    dir.write("rocknet.toml", site);
    assert_eq!(untrusted(), 0);
}
