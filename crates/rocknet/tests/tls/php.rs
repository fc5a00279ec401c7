//! PHP over TLS with HTTP/2 and HTTP/1.1: variables, uploads, sessions, and slow scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::certs::{Authority, Kind};
use super::support::{Folder, Running};

fn start() -> (Running, Authority) {
    let authority = Authority::new("root");
    let folder = Folder::with(&[
        (
            "www/about.php",
            "<?php foreach (['HTTPS', 'SERVER_PROTOCOL', 'REQUEST_SCHEME', 'SERVER_NAME', 'PATH_INFO'] as $name)\n\
             echo $name, '=', $_SERVER[$name] ?? '', ' ';",
        ),
        (
            "www/upload.php",
            "<?php $file = $_FILES['f']; echo $file['error'], ' ', $file['size'], ' ', md5_file($file['tmp_name']);",
        ),
        (
            "www/session.php",
            "<?php session_save_path('/tmp'); session_start(); echo $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;",
        ),
        (
            "www/long.php",
            "<?php ob_end_flush(); for ($i = 0; $i < 3; $i++) { echo $i, str_repeat(' ', 9000); flush(); usleep(1400000); } echo 'end';",
        ),
        (
            "www/send.php",
            "<?php header('Content-Type: text/x-own'); header('X-Accel-Redirect: /about.txt');",
        ),
        ("www/about.txt", "0123456789"),
    ]);
    // If root starts the server, PHP runs under another account, which must be able to read the folder.
    fs::set_permissions(folder.path(""), fs::Permissions::from_mode(0o755)).expect("an open folder");
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    folder.write("root.pem", &authority.pem);
    let text = "[server]\nworkers = 2\nstate = \"state\"\n[limits]\nanswer_timeout = \"4s\"\n[log]\nerrors = \"off\"\n\
        [site.\"a.test\"]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\nphp = \"auto\"\ntls = { cert = \"a.pem\", key = \"a.key\" }";
    (Running::start(folder, text), authority)
}

fn curl(server: &Running, path: &str, arguments: &[&str]) -> String {
    let address = server.address();
    let output = Command::new("curl")
        .args(["-sS", "--max-time", "60", "--cacert"])
        .arg(server.folder.path("root.pem"))
        .arg("--resolve")
        .arg(format!("a.test:{}:{}", address.port(), address.ip()))
        .args(arguments)
        .arg(format!("https://a.test:{}{path}", address.port()))
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{path}: {}{text}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn scripts_are_run_over_http1_and_http2() {
    let (server, _authority) = start();
    let file: Vec<u8> = (0..50_000_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    server.folder.write("file", &file);
    let path = server.folder.path("file").display().to_string();
    let sum = Command::new("md5sum").arg(&path).output().expect("md5sum").stdout;
    let sum = String::from_utf8_lossy(&sum[..32]).into_owned();
    for (version, protocol) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")] {
        let response = curl(&server, "/about.php/x", &[version]);
        let expected =
            format!("HTTPS=on SERVER_PROTOCOL={protocol} REQUEST_SCHEME=https SERVER_NAME=a.test PATH_INFO=/x ");
        assert_eq!(response, expected);
        let form = format!("f=@{path}");
        let response = curl(&server, "/upload.php", &[version, "-F", &form]);
        assert_eq!(response, format!("0 50000000 {sum}"), "{version}");
        let jar = server.folder.path(&format!("jar{version}")).display().to_string();
        for count in ["1", "2", "3"] {
            assert_eq!(
                curl(&server, "/session.php", &[version, "-b", &jar, "-c", &jar]),
                count,
                "{version}"
            );
        }
        // The whole response takes longer than the response timeout, which applies to each piece. The body has three
        // digits, each with 9,000 spaces, and then `end`.
        let response = curl(&server, "/long.php", &[version]);
        assert!(
            response.starts_with('0') && response.ends_with("end") && response.len() == 27_006,
            "{version}: {response}"
        );
        let response = curl(&server, "/send.php", &[version, "-i", "-H", "Range: bytes=3-5"]);
        assert!(
            response.to_lowercase().contains("content-type: text/x-own"),
            "{response}"
        );
        assert!(
            response.contains(" 206") && response.ends_with("\r\n\r\n345"),
            "{response}"
        );
    }
}
