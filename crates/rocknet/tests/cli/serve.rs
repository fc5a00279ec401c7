//! Flags of `rocknet serve`: HTTPS, PHP, single-page apps, CORS, other machines, and the lines for requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rocknet_testing::{Need, skip};

use crate::program::{ProgramFolder, Server};

fn folder() -> ProgramFolder {
    ProgramFolder::new(&[
        ("www/index.html", "<p>app"),
        ("www/a.txt", "text"),
        ("php/index.php", "<?php echo 'php ', PHP_MAJOR_VERSION;"),
        ("empty/a.txt", "text"),
    ])
}

/// Sends a request with these lines after the request line, and returns the response.
fn send(server: &Server, request: &str) -> String {
    let mut stream: TcpStream = server.connect();
    write!(stream, "{request}\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("the request is sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

/// Returns true if a response has a field line, regardless of case.
fn has_field(response: &str, field: &str) -> bool {
    response.lines().any(|line| line.trim_end().eq_ignore_ascii_case(field))
}

#[test]
fn each_request_has_a_line_unless_it_is_quiet() {
    let dir = folder();
    let server = dir.serve(&["serve", "www", "--listen", "0"]);
    assert!(server.get("/a.txt").starts_with("HTTP/1.1 200 "));
    // The output is no terminal, so the line has no colours.
    let line = server.line_with("/a.txt");
    assert!(
        line.contains("  200  GET    /a.txt  ") && line.trim_end().ends_with("  4 B"),
        "{line:?}"
    );
    assert!(!line.contains('\u{1b}'), "{line:?}");
    assert!(server.get("/missing%20x").starts_with("HTTP/1.1 404 "));
    assert!(server.line_with("/missing").contains("  404  GET    /missing%20x  "));

    let server = dir.serve(&["serve", "www", "--listen", "0", "--quiet"]);
    assert!(server.get("/a.txt").starts_with("HTTP/1.1 200 "));
    let lines = server.printed_until_stop();
    assert!(!lines.iter().any(|line| line.contains("a.txt")), "{lines:?}");
}

#[test]
fn run_prints_requests_in_dev_mode_only() {
    let dir = folder();
    let site = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";
    let is_printed = |text: String| {
        dir.write("rocknet.toml", &text);
        let server = dir.serve(&["run"]);
        assert!(server.get("/a.txt").starts_with("HTTP/1.1 200 "));
        let lines = server.printed_until_stop();
        lines.iter().any(|line| line.contains("  200  GET    /a.txt  "))
    };
    let dev = "[server]\nmode = \"dev\"\n";
    assert!(is_printed(format!("{dev}{site}")));
    assert!(!is_printed(format!("{dev}[log]\naccess = \"off\"\n{site}")));
    assert!(!is_printed(site.to_owned()));
}

#[test]
fn a_single_page_app_gets_its_page_for_every_path() {
    let dir = folder();
    let server = dir.serve(&["serve", "www", "--listen", "0", "--spa"]);
    for (path, body) in [("/a.txt", "text"), ("/users/7", "<p>app"), ("/", "<p>app")] {
        let response = server.get(path);
        assert!(
            response.starts_with("HTTP/1.1 200 ") && response.ends_with(body),
            "{path}: {response}"
        );
    }
    let output = dir.run(&["serve", "empty", "--listen", "0", "--spa"]);
    assert!(
        output.code == Some(1) && output.err.contains("has no index.html"),
        "{output:?}"
    );
}

#[test]
fn pages_of_other_origins_read_responses_with_cors_only() {
    let dir = folder();
    let origin = "Origin: http://app.test:3000";
    let preflight = format!(
        "OPTIONS /a.txt HTTP/1.1\r\n{origin}\r\nAccess-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a, x-b"
    );
    let server = dir.serve(&["serve", "www", "--listen", "0", "--cors"]);
    // A file of the cache, an error page, and a listing or redirect have the fields.
    for (path, status) in [("/a.txt", 200), ("/a.txt", 200), ("/missing", 404), ("/", 200)] {
        let response = send(&server, &format!("GET {path} HTTP/1.1\r\n{origin}"));
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        for field in [
            "Access-Control-Allow-Origin: http://app.test:3000",
            "Access-Control-Allow-Credentials: true",
            "Vary: Origin",
        ] {
            assert!(has_field(&response, field), "{path}: {field}: {response}");
        }
    }
    // Requests of another origin get theirs, and requests without one get none.
    let other = send(&server, "GET /a.txt HTTP/1.1\r\nOrigin: null");
    assert!(has_field(&other, "Access-Control-Allow-Origin: null"), "{other}");
    assert!(!other.contains("Allow-Credentials"), "{other}");
    let none = send(&server, "GET /a.txt HTTP/1.1");
    assert!(has_field(&none, "Vary: Origin") && !none.contains("llow-"), "{none}");
    // A value that cannot be an origin is not repeated.
    let long = send(&server, &format!("GET /a.txt HTTP/1.1\r\nOrigin: {}", "x".repeat(600)));
    assert!(long.starts_with("HTTP/1.1 200 ") && !long.contains("llow-"), "{long}");

    let response = send(&server, &preflight);
    assert!(response.starts_with("HTTP/1.1 204 "), "{response}");
    for field in [
        "Access-Control-Allow-Origin: http://app.test:3000",
        "Access-Control-Allow-Methods: PUT",
        "Access-Control-Allow-Headers: x-a, x-b",
        "Access-Control-Max-Age: 600",
    ] {
        assert!(has_field(&response, field), "{field}: {response}");
    }
    // A request with OPTIONS that is no preflight request is answered as before.
    let options = send(&server, &format!("OPTIONS /a.txt HTTP/1.1\r\n{origin}"));
    assert!(!options.contains("Access-Control-Allow-Methods"), "{options}");

    let server = dir.serve(&["serve", "www", "--listen", "0"]);
    for request in [&preflight, &format!("GET /a.txt HTTP/1.1\r\n{origin}")] {
        let response = send(&server, request);
        assert!(
            !response.contains("Access-Control") && !has_field(&response, "Vary: Origin"),
            "{response}"
        );
    }
}

#[test]
fn https_serves_a_certificate_of_the_local_ca() {
    let dir = folder();
    let server = dir.serve(&["serve", "www", "--listen", "0", "--https"]);
    assert!(server.banner.contains("  https://127.0.0.1:"), "{}", server.banner);
    let url = server
        .banner
        .split_whitespace()
        .find(|word| word.starts_with("https://"));
    let url = url.expect("a URL");
    let curl = |url: &str| Command::new("curl").args(["--silent", "--insecure", url]).output();
    let Ok(output) = curl(&format!("{url}a.txt")) else {
        return skip(Need::Program("curl"), "curl cannot be started");
    };
    assert_eq!(output.stdout, b"text", "{output:?}");
    // A request without TLS is not served the folder.
    let clear = curl(&format!("{}a.txt", url.replace("https:", "http:"))).expect("curl runs again");
    assert_ne!(clear.stdout, b"text", "{clear:?}");
    let output = dir.run(&["serve", "www", "--listen", "unix:x.sock", "--https"]);
    assert!(
        output.code == Some(2) && output.err.contains("needs a port"),
        "{output:?}"
    );
}

#[test]
fn other_machines_get_urls_and_a_code_with_lan() {
    let dir = folder();
    let output = dir.run(&["serve", "www", "--listen", "0", "--lan"]);
    assert!(output.code == Some(2) && output.err.contains("--listen"), "{output:?}");
    let server = dir.serve(&["serve", "www", "--lan"]);
    if rocknet_io::machine::addresses().is_empty() {
        assert!(!server.banner.contains("Other machines"), "{}", server.banner);
        return;
    }
    assert!(
        server.banner.contains("Other machines reach it at:\n  http://"),
        "{}",
        server.banner
    );
    let code: Vec<_> = server
        .banner
        .lines()
        .filter(|line| line.contains('█') || line.contains('▄'))
        .collect();
    assert!(code.len() > 10, "{}", server.banner);
}

#[test]
fn php_runs_by_its_flag_without_scripts_at_the_top() {
    let dir = folder();
    let output = dir.run(&["serve", "php", "--listen", "0", "--php=1.0"]);
    assert!(
        output.code == Some(1) && output.err.contains("install it"),
        "{output:?}"
    );
    let output = dir.run(&["serve", "php", "--listen", "0", "--php=new"]);
    assert!(
        output.code == Some(2) && output.err.contains("such as 8.2"),
        "{output:?}"
    );
    if rocknet::gateway::php::installed().is_empty() {
        return skip(Need::Program("php-fpm"), "no PHP is installed");
    }
    let server = dir.serve(&["serve", ".", "--listen", "0", "--php"]);
    let response = server.get("/php/index.php");
    assert!(response.contains("php "), "{response}");
}
