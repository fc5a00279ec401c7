//! The control API over TCP: tokens, and the password over TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use super::{SITE, success};
use crate::program::ProgramFolder;

/// Sends a request to an address, with the token unless it is empty. Returns the status and the whole response.
fn fetch(address: &str, request: &str, token: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let head = match token {
        "" => head,
        token => format!("{head}Authorization: Bearer {token}\r\n"),
    };
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    (response[9..12].parse().unwrap(), response)
}

/// Runs curl with arguments and returns the status of the response; 0 without a response.
fn curl(arguments: &[&str]) -> u16 {
    let mut curl = std::process::Command::new("curl");
    curl.args(["-s", "-o", "/dev/null", "-m", "20", "-w", "%{http_code}"]);
    let output = curl.args(arguments).output().expect("curl");
    String::from_utf8_lossy(&output.stdout).parse().expect("a status")
}

#[test]
fn other_machines_are_admitted_by_the_password_over_tls() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let made = rcgen::generate_simple_self_signed(["admin.test".to_owned()]).expect("a certificate");
    dir.write("admin.pem", &made.cert.pem());
    dir.write("admin.key", &made.signing_key.serialize_pem());
    let key = dir.path().join("admin.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    // The hash of `pass word`, with a fixed salt.
    let hash = rocknet_access::password::hash("pass word", [7; 16]).expect("a hash");
    let text = format!(
        "[server]\nstate = \"state\"\n[admin]\nlisten = \"0.0.0.0:0\"\npassword = \"{hash}\"\n\
         cert = \"admin.pem\"\nkey = \"admin.key\"\nhosts = [\"admin.test\"]\n{SITE}"
    );
    dir.write("rocknet.toml", &text);
    let server = dir.serve(&["run"]);
    let line = server.logged("the control API listens at https://");
    let port = line.split_once("https://0.0.0.0:").expect("a port").1;
    let port = port.split('/').next().expect("a port").to_owned();
    let root = dir.path().join("admin.pem").display().to_string();
    let resolve = format!("admin.test:{port}:127.0.0.1");
    let url = format!("https://admin.test:{port}/api/status");
    let common = ["--cacert", &root, "--resolve", &resolve, &url];
    let status = |more: &[&str]| curl(&[&common[..], more].concat());
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&["-u", "admin:pass word"]), 200);
    assert_eq!(status(&["-u", "admin:wrong"]), 401);
    assert_eq!(status(&["-u", "root:pass word"]), 401);
    // A server that listens at `0.0.0.0` may be addressed by each name in `hosts` and by each IP address.
    assert_eq!(status(&["-u", "admin:pass word", "-H", "Host: evil.test"]), 403);
    assert_eq!(status(&["-u", "admin:pass word", "-H", "Host: 10.0.0.1"]), 200);
    // A page without TLS is another origin.
    assert_eq!(
        status(&["-u", "admin:pass word", "-H", "Origin: http://admin.test"]),
        403
    );
    let token = format!("Authorization: Bearer {}", dir.read("state/admin/read-token").trim());
    assert_eq!(status(&["-H", &token]), 200);
    // Without TLS nothing is served.
    let in_clear = format!("http://127.0.0.1:{port}/api/status");
    assert_ne!(curl(&["-u", "admin:pass word", &in_clear]), 200);
    // The password signs in to the dashboard in place of a token, and the cookie is for TLS only.
    let login = format!("https://admin.test:{port}/login");
    let body = |password: &str| format!("{{\"token\":\"{password}\"}}");
    let sign_in = |password: &str| {
        let body = body(password);
        let json = "Content-Type: application/json";
        let headers = ["-d", &body, "-H", json, "-D", "-"];
        let output = std::process::Command::new("curl")
            .args(["-s", "-m", "20", "--cacert", &root, "--resolve", &resolve])
            .args(headers)
            .arg(&login)
            .output()
            .expect("curl");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let response = sign_in("pass word");
    assert!(
        response.starts_with("HTTP/2 200") || response.starts_with("HTTP/1.1 200"),
        "{response}"
    );
    assert!(response.contains("; SameSite=Strict; Secure"), "{response}");
    let response = sign_in("wrong");
    assert!(response.contains(" 401"), "{response}");
    let link = success(dir.run(&["dashboard"]));
    assert!(link.contains(&format!("https://admin.test:{port}/login#")), "{link}");
}

#[test]
fn requests_over_tcp_need_a_token() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let text = format!("[server]\nstate = \"state\"\n[admin]\nlisten = \"127.0.0.1:0\"\n{SITE}");
    dir.write("rocknet.toml", &text);
    let mut tokens = Vec::new();
    // The tokens survive a restart.
    for _ in 0..2 {
        let server = dir.serve(&["run"]);
        let line = server.logged("the control API listens at http://");
        let (_, rest) = line.split_once("http://").unwrap();
        let address = rest.split('/').next().unwrap();
        let read = ["token", "read-token"].map(|name| dir.read(&format!("state/admin/{name}")).trim().to_owned());
        let [full, read_only] = &read;
        assert_eq!((full.len(), read_only.len()), (64, 64));
        assert_ne!(full, read_only);
        let mode = fs::metadata(dir.path().join("state/admin/token"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        for (request, token, expected) in [
            ("GET /api/status", "", 401),
            ("GET /metrics", "", 401),
            ("GET /nothing", "", 401),
            ("GET /api/status", "0000", 401),
            ("GET /api/status", full, 200),
            ("GET /api/status", read_only, 200),
            ("GET /metrics", read_only, 200),
            ("POST /api/reload", read_only, 403),
            ("POST /api/stop", read_only, 403),
            ("POST /api/reload", full, 200),
        ] {
            let (status, response) = fetch(address, request, token);
            assert_eq!(status, expected, "{request} {token}: {response}");
            assert_eq!(
                response.contains("\r\nWWW-Authenticate: Bearer\r\n"),
                expected == 401,
                "{response}"
            );
        }
        // Attempts with wrong tokens are limited; the right token is still accepted.
        let wrong = (0..30)
            .map(|_| fetch(address, "GET /api/status", "0000").0)
            .collect::<Vec<_>>();
        assert_eq!((wrong[0], wrong[29]), (401, 429));
        assert_eq!(fetch(address, "GET /api/status", full).0, 200);
        tokens.push(read);
        server.signal(Signal::TERM);
        assert_eq!(server.wait(), Some(0));
    }
    assert_eq!(tokens[0], tokens[1]);
    for (listen, message) in [
        ("\"0.0.0.0:7625\"", "needs `password` and `cert`"),
        ("\"[::]:7625\"", "needs `password` and `cert`"),
        ("\"https://127.0.0.1:7625\"", "takes no scheme"),
        ("\"unix:/run/x\"", "takes no Unix socket"),
        ("0", "`listen`"),
    ] {
        dir.write("rocknet.toml", &format!("[admin]\nlisten = {listen}\n{SITE}"));
        let output = dir.run(&["check"]);
        assert_eq!(output.code, Some(78), "{listen}: {output:?}");
        assert!(
            output.err.contains(message) || output.out.contains(message),
            "{listen}: {output:?}"
        );
    }
}
