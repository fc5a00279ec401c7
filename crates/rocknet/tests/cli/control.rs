//! Commands that control a running server, and the control API behind them.

mod bans;
mod queries;
mod socket;
mod tcp;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::program::{ProgramFolder, ProgramOutput};

const SITE: &str = "[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n";

pub fn home() -> ProgramFolder {
    ProgramFolder::new(&[("www/index.html", "home"), ("rocknet.toml", SITE)])
}

/// Asserts that the program succeeded without messages, and returns its output.
#[track_caller]
fn success(output: ProgramOutput) -> String {
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{output:?}");
    output.out
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_running_server_is_queried_and_controlled() {
    let dir = home();
    let server = dir.serve(&["run"]);
    server.get("/");
    let status = success(dir.run(&["status"]));
    assert!(
        status.contains(&format!("process {}\n", server.id())) && status.contains("\nrequests     1\n"),
        "{status}"
    );
    // Requests to the control API are not counted.
    let status = json(&success(dir.run(&["status", "--json"])));
    assert_eq!(status["requests"], 1);
    assert_eq!(status["connections_total"], 1);
    assert_eq!(status["protocols"]["http1"]["total"], 1, "{status}");
    assert_eq!(status["protocols"]["http2"]["total"], 0, "{status}");
    let load = &status["load"][0];
    assert!(
        load["requests_per_second"].as_f64().unwrap() > 0.0 && load["p99_us"].as_u64().is_some(),
        "{status}"
    );

    let sites = success(dir.run(&["sites"]));
    assert!(sites.starts_with("default  files  http://127.0.0.1:"), "{sites}");
    let sites = json(&success(dir.run(&["sites", "--json"])));
    assert_eq!(
        (sites[0]["name"].as_str(), sites.as_array().map(Vec::len)),
        (Some("default"), Some(1))
    );

    assert_eq!(success(dir.run(&["log-level"])), "info\n");
    assert_eq!(success(dir.run(&["log-level", "debug"])), "debug\n");
    assert_eq!(success(dir.run(&["log-level"])), "debug\n");
    let module = dir.run(&["log-level", "trace", "--module", "rocknet_proxy::background"]);
    assert_eq!(success(module), "debug\nrocknet_proxy::background trace\n");
    let json = success(dir.run(&["log-level", "--json"]));
    assert!(json.contains("\"rocknet_proxy::background\": \"trace\""), "{json}");
    let removed = dir.run(&["log-level", "default", "--module", "rocknet_proxy::background"]);
    assert_eq!(success(removed), "debug\n");
    for (arguments, code, message) in [
        (
            &["default", "--module", "rocknet_proxy"][..],
            1,
            "rocknet_proxy has no level of its own",
        ),
        (
            &["trace", "--module", "rocknet_nope"],
            1,
            "there is no module rocknet_nope: the path must begin with one of rocknet, ",
        ),
        (&["default"], 2, "`default` needs --module"),
    ] {
        let refused = dir.run(&[&["log-level"], arguments].concat());
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.err.contains(message), "{refused:?}");
    }
    let invalid = dir.run(&["log-level", "trace", "--module", "a b"]);
    assert!(invalid.err.contains("must be a path"), "{}", invalid.err);
    let loud = dir.run(&["log-level", "loud"]);
    assert_eq!(loud.code, Some(2));
    assert!(
        loud.err.contains("the levels are error, warn, info, debug, trace"),
        "{}",
        loud.err
    );

    dir.write("rocknet.toml", &format!("{SITE}headers = {{ \"X-New\" = \"1\" }}\n"));
    let done = success(dir.run(&["reload"]));
    assert!(done.ends_with("rocknet.toml is reloaded, sites: 1\n"), "{done}");
    assert!(server.get("/").contains("X-New: 1"));
    assert_eq!(success(dir.run(&["log-level"])), "info\n");

    assert_eq!(
        success(dir.run(&["stop"])),
        "stopping after the responses in progress\nstopped\n"
    );
    assert_eq!(server.wait(), Some(0));
    assert!(!dir.path().join("control.sock").exists());
}

#[test]
fn an_invalid_configuration_is_refused_and_does_not_hinder_other_commands() {
    let dir = home();
    let server = dir.serve(&["run"]);
    dir.write("rocknet.toml", &format!("{SITE}rot = 1\n"));
    let refused = dir.run(&["reload"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    assert!(
        refused.err.starts_with("error: unknown key `rot` in ") && refused.err.contains("rocknet.toml:4:1\n"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("is not reloaded, nothing has changed: 1 error"),
        "{}",
        refused.err
    );
    let status = success(dir.run(&["status"]));
    assert!(status.contains("the last reload changed nothing:\n"), "{status}");
    assert!(server.get("/").contains("home"));
}

/// Sends a request to the control socket, and returns the whole response.
pub fn exchange(dir: &ProgramFolder, request: &str) -> String {
    let mut stream = UnixStream::connect(dir.path().join("control.sock")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn every_endpoint_rejects_what_is_not_for_it() {
    use rocknet_control::api::{ENDPOINTS, MAX_REQUEST_BODY};

    let dir = home();
    let _server = dir.serve(&["run"]);
    let send = |method: &str, path: &str, host: &str, fields: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
        );
        let response = exchange(&dir, &request);
        let status: u16 = response[9..12].parse().unwrap();
        (status, response)
    };
    for endpoint in ENDPOINTS {
        let (method, path) = (endpoint.method.name(), endpoint.path);
        for (host, fields, body, expected) in [
            ("a.test", "", "", 403),
            ("localhost.a.test:7625", "", "", 403),
            ("localhost", "Origin: http://a.test\r\n", "", 403),
            ("localhost", "Sec-Fetch-Site: cross-site\r\n", "", 403),
            ("localhost", "Content-Type: text/plain\r\n", "{}", 415),
            ("localhost", "Content-Type: application/json\r\n", "no JSON", 400),
        ] {
            let (status, response) = send(method, path, host, fields, body);
            assert_eq!(status, expected, "{method} {path} {host} {fields}: {response}");
            assert!(
                response.contains("\r\nContent-Type: application/json\r\n"),
                "{response}"
            );
            let (_, text) = response.split_once("\r\n\r\n").unwrap();
            assert!(json(text)["error"].is_string(), "{text}");
        }
        let (status, response) = send("DELETE", path, "localhost", "", "");
        assert_eq!(status, 405, "{path}: {response}");
        assert!(
            response.contains("\r\nAllow: ") && response.contains(method),
            "{response}"
        );
    }
    for path in ["/", "/api", "/api/", "/api/status/", "/api/STATUS", "/metrics/"] {
        assert_eq!(send("GET", path, "localhost", "", "").0, 404, "{path}");
    }
    let large = "1".repeat(MAX_REQUEST_BODY + 1);
    let (status, _) = send(
        "PUT",
        "/api/log-level",
        "localhost",
        "Content-Type: application/json\r\n",
        &large,
    );
    assert_eq!(status, 413);
    // The server has not been stopped by any of these requests.
    assert!(success(dir.run(&["status"])).contains("RockNet"));
}
