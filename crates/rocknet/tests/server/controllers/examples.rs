//! Builds each example controller with the command in the comments of its configuration, and sends it requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rocknet_testing::{Need, skip};

use crate::support::client::request;
use crate::support::http2::Http2;
use crate::support::{Folder, Running};

/// Builds an example and sends it requests. Skipped if its compiler is missing.
fn check(language: &str, greeting: &str) {
    let example = repository().join("examples/controllers").join(language);
    let text = fs::read_to_string(example.join("rocknet.toml")).expect("its configuration");
    let build = text
        .lines()
        .filter_map(|line| line.strip_prefix("#     "))
        .find(|line| line.contains("hello") || line.contains("build"))
        .expect("the line that builds it");
    let program = build.split(' ').next().expect("a program");
    if Command::new(program).arg("--help").output().is_err() {
        skip(Need::Program(program), &format!("it builds the example in {language}"));
        return;
    }
    // Build output is written to the folder of the test instead of the sources.
    let folder = Folder::with(&[]);
    let path = |name: &str| folder.path(name).display().to_string();
    let line = build
        .replace("-o hello.so", &format!("-o {}", path("hello.so")))
        .replace("cargo build", &format!("cargo build --target-dir {}", path("target")));
    let built = Command::new("sh")
        .current_dir(&example)
        .args(["-c", &line])
        .output()
        .expect("a shell");
    assert!(
        built.status.success(),
        "{line}:\n{}",
        String::from_utf8_lossy(&built.stderr)
    );

    assert!(text.contains("\nlisten = 8080\n"), "{language} has no port");
    let text = text.replace("listen = 8080", "listen = \"127.0.0.1:0\"");
    let server = Running::start(
        folder,
        &format!("[server]\nworkers = 1\nblocking_threads = 2\nh2c = true\n{text}"),
    );
    let mut client = server.connect();
    let mut http2 = Http2::to(server.address());
    for content in ["", "something", &"much of it ".repeat(20_000)] {
        let length = format!("Content-Length: {}", content.len());
        client.send(request("POST /echo", &[&length]) + content);
        client
            .response()
            .expect(language, 200, &["Content-Type: text/plain; charset=utf-8"]);
        client.send(request("POST /echo", &[&length]) + content);
        assert_eq!(client.response().text(), content, "{language}");
        let response = http2
            .send(http2.request("POST", "/echo"), content.as_bytes())
            .expect("a response");
        assert_eq!(
            String::from_utf8_lossy(&response.content),
            content,
            "{language} over HTTP/2"
        );
    }
    let text = client.get("/hello").text();
    assert!(text.starts_with(greeting), "{language}: {text}");
    let text = String::from_utf8_lossy(&http2.get("/hello").content).into_owned();
    assert!(text.starts_with(greeting), "{language} over HTTP/2: {text}");
}

fn repository() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("a crate below the repository").to_owned()
}

#[test]
fn c() {
    check("c", "Hello from C, to a GET\n");
}

#[test]
fn cpp() {
    check("cpp", "Hello from C++, number ");
}

#[test]
fn rust() {
    check("rust", "Hello from Rust, ");
}

#[test]
fn go() {
    check("go", "Hello from Go, to a GET\n");
}
