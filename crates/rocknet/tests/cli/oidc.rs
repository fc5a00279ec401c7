//! Lines of the error log about logins by OpenID Connect.

#[allow(dead_code)] // other tests use the rest of this shared module
#[path = "../server/oidc/provider.rs"]
mod provider;

use std::io::{Read, Write};

use serde_json::{Value, json};

use self::provider::{CLIENT, Provider};
use crate::program::{ProgramFolder, Server};

/// Opens a page at the host that the provider knows, and returns the whole response.
fn open(server: &Server, target: &str, cookie: &str) -> String {
    let mut stream = server.connect();
    write!(
        stream,
        "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

/// Returns the value of the first field with a name.
fn field<'r>(response: &'r str, name: &str) -> &'r str {
    let start = format!("{name}: ");
    let found = response.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("no {name}: {response}"))
}

/// Logs in, and returns the response to the callback.
fn log_in(server: &Server, provider: &Provider) -> String {
    let begun = open(server, "/", "");
    let cookie = field(&begun, "Set-Cookie").split(';').next().unwrap();
    let callback = provider.log_in(field(&begun, "Location"));
    open(server, &callback, cookie)
}

#[test]
fn the_log_says_why_a_login_fails() {
    let provider = Provider::start();
    let (issuer, (id, secret)) = (provider.issuer(), CLIENT);
    let dir = ProgramFolder::new(&[
        ("www/index.html", "home"),
        (
            "rocknet.toml",
            &format!(
                "[server]\nstate = \"state\"\n[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
                 auth = {{ oidc = \"{issuer}\", client_id = \"{id}\", client_secret = \"{secret}\" }}\n"
            ),
        ),
    ]);
    let server = dir.serve(&["run"]);
    // The groups are missing in the ID token, so the userinfo endpoint is queried.
    provider.claim("groups", Value::Null);
    for (status, userinfo, reason) in [
        (
            500,
            json!({ "sub": "user-1" }),
            "its userinfo endpoint responds with status 500",
        ),
        (200, Value::Null, "its userinfo endpoint sends no JSON object"),
        (
            200,
            json!({ "sub": "user-2" }),
            "its userinfo endpoint names another user",
        ),
    ] {
        provider.state().userinfo_status = status;
        provider.state().userinfo = userinfo;
        // Further lines with the same cause within a second are only counted.
        let logged = loop {
            let response = log_in(&server, &provider);
            assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
            let lines = server.logged_until("does not work");
            if lines.contains(reason) {
                break lines;
            }
        };
        for part in [
            "WARN",
            "site=default",
            &issuer,
            "the provider of `oidc` does not work: ",
        ] {
            assert!(logged.contains(part), "{part}: {logged}");
        }
        for secret in [secret, "the+secret", "code-", "Bearer"] {
            assert!(!logged.contains(secret), "{secret}: {logged}");
        }
    }
    provider.state().userinfo = json!({ "sub": "user-1" });
    let response = log_in(&server, &provider);
    assert!(response.starts_with("HTTP/1.1 302 "), "{response}");
}
