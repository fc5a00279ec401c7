//! Orders certificates with the built server: an order is resumed after the server was killed, and orders succeed in
//! the strict sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::pebble::{Pebble, TLS_PORT, until};

/// Starts the built server with the configuration `rocknet.toml` in `folder`.
fn serve(folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_rocknet"))
        .args(["run", "-c", "rocknet.toml"])
        .current_dir(folder)
        .env_remove("ROCKNET_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn an_order_is_resumed_after_the_server_was_killed() {
    let pebble = Pebble::start();
    let folder = tempfile::tempdir().unwrap();
    // The hook hangs when it is first called, so the server is killed before the proof is published. Port 8055 is the
    // management port of Pebble's DNS server.
    let hook = folder.path().join("hook");
    let script = format!(
        "#!/bin/sh\nset -e\ncd {}\n[ -e began ] || {{ touch began; exec sleep 60; }}\n\
         [ $1 = cleanup ] || curl -sf -d '{{\"host\":\"'$2'.\",\"value\":\"'$3'\"}}' http://{}:8055/set-txt\n",
        folder.path().display(),
        pebble.ip()
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let (ip, root) = (pebble.ip(), pebble.root());
    let config = format!(
        "[server]\nstate = \"state\"\n[log]\nerrors = \"errors.log\"\n[tls]\nca = \"{}\"\nca_root = \"{}\"\n\
         dns = {{ hook = \"hook\", wait = \"0s\" }}\n\
         [site.\"a.example.com\"]\nroot = \".\"\nlisten = [\"https://{ip}:{TLS_PORT}\"]\n",
        pebble.ca().url,
        root.display()
    );
    fs::write(folder.path().join("rocknet.toml"), config).unwrap();
    let order = folder.path().join("state/acme/orders/a.example.com.json");
    let certificate = folder.path().join("state/acme/certificates/a.example.com.pem");

    let mut first = serve(folder.path());
    until(|| folder.path().join("began").exists());
    assert!(order.is_file(), "the order is stored before its challenge is answered");
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!certificate.exists(), "no proof was validated yet");
    let stored_order = fs::read_to_string(&order).unwrap();
    assert!(stored_order.contains("PRIVATE KEY"));

    let mut second = serve(folder.path());
    until(|| certificate.is_file());
    until(|| !order.exists());
    let log = fs::read_to_string(folder.path().join("errors.log")).unwrap();
    assert!(
        log.contains("resuming the certificate order for a.example.com"),
        "{log}"
    );
    // The key on disk is the key of the stored order.
    let key: serde_json::Value = serde_json::from_str(&stored_order).unwrap();
    let pem = fs::read_to_string(&certificate).unwrap();
    assert!(pem.starts_with(key["key_pem"].as_str().unwrap()));
    second.kill().unwrap();
    second.wait().unwrap();

    // A killed server can leave a truncated temporary file or order. The next server ignores both.
    fs::write(certificate.with_file_name(".a.example.com.pem.1.tmp"), "torn").unwrap();
    fs::write(&order, "torn").unwrap();
    let before = fs::metadata(&certificate).unwrap().modified().unwrap();
    let mut third = serve(folder.path());
    let out = folder.path().join("chain.pem");
    until(|| {
        let fetched = Command::new("curl")
            .args([
                "-sk",
                "--resolve",
                &format!("a.example.com:{TLS_PORT}:{ip}"),
                "-w",
                "%{certs}",
                "-o",
                "/dev/null",
            ])
            .arg(format!("https://a.example.com:{TLS_PORT}/"))
            .output()
            .unwrap();
        fs::write(&out, &fetched.stdout).unwrap();
        fetched.status.success()
    });
    let served = fs::read_to_string(out).unwrap();
    let leaf = pem
        .split("-----BEGIN CERTIFICATE-----")
        .nth(1)
        .unwrap()
        .split("-----END")
        .next()
        .unwrap();
    assert!(
        served.replace('\n', "").contains(&leaf.replace('\n', "")),
        "the stored certificate is served"
    );
    assert_eq!(fs::metadata(&certificate).unwrap().modified().unwrap(), before);
    third.kill().unwrap();
    third.wait().unwrap();
}

#[test]
fn certificates_are_ordered_in_the_strict_sandbox() {
    let pebble = Pebble::start();
    let folder = tempfile::tempdir().unwrap();
    let (ip, root) = (pebble.ip(), pebble.root());
    let config = format!(
        "[server]\nstate = \"state\"\nsandbox = \"strict\"\n[log]\nerrors = \"errors.log\"\n[tls]\nca = \"{}\"\n\
         ca_root = \"{}\"\nchallenge = \"tls-alpn-01\"\n[site.\"a.example.com\"]\nroot = \".\"\nlisten = [\"https://{ip}:{TLS_PORT}\"]\n",
        pebble.ca().url,
        root.display()
    );
    fs::write(folder.path().join("rocknet.toml"), config).unwrap();
    let mut server = serve(folder.path());
    until(|| {
        folder
            .path()
            .join("state/acme/certificates/a.example.com.pem")
            .is_file()
    });
    // Only the strict sandbox filters the system calls of the server itself. Mode 2 means that a filter is installed.
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    assert!(status.contains("Seccomp:\t2"), "{status}");
    server.kill().unwrap();
    server.wait().unwrap();
}
