//! Commands that control a running server, and the control API behind them.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Signal;

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
            "there is no module rocknet_nope: the path begins with one of rocknet, ",
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

#[test]
fn the_socket_is_found_by_the_configuration_and_by_the_option() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let socket = dir.path().join("run/other.sock");
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"run/other.sock\"\n{SITE}"));
    let server = dir.serve_by(&["env", "-u", "ROCKNET_SOCKET"], &["run"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o660, 0o750));
    let id = server.id();
    let shows = |output: ProgramOutput| assert!(success(output).contains(&format!("process {id}\n")));
    shows(dir.run(&["status", "--socket", socket.to_str().unwrap()]));
    shows(dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status"]));
    shows(dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status", "-c", "rocknet.toml"]));
    // `dir.run` sets the variable `ROCKNET_SOCKET`, which takes precedence, to a path where nothing listens.
    let missing = dir.run(&["status"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.err.contains("no server is running: nothing listens at "),
        "{}",
        missing.err
    );
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"off\"\n{SITE}"));
    let off = dir.run_by(&["env", "-u", "ROCKNET_SOCKET"], &["status"]);
    assert!(off.err.contains("the control socket is switched off"), "{}", off.err);
}

#[test]
fn a_second_server_with_the_same_socket_serves_without_it() {
    let dir = home();
    let first = dir.serve(&["run"]);
    let second = dir.serve(&["run"]);
    second.logged("the control API is not available at ");
    assert!(second.get("/").contains("home"));
    let status = success(dir.run(&["status"]));
    assert!(status.contains(&format!("process {}\n", first.id())), "{status}");
    second.signal(Signal::TERM);
    assert_eq!(second.wait(), Some(0));
    success(dir.run(&["status"]));
}

#[test]
fn a_command_does_not_address_another_server() {
    let dir = home();
    dir.write("other.toml", SITE);
    let server = dir.serve(&["run"]);
    for command in ["stop", "reload", "status"] {
        let refused = dir.run(&[command, "-c", "other.toml"]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.err.contains("rocknet.toml, not /"), "{}", refused.err);
        let missing = dir.run(&[command, "-c", "missing.toml"]);
        assert_eq!(missing.code, Some(78), "{missing:?}");
        assert!(missing.err.contains("missing.toml"), "{}", missing.err);
    }
    let status = json(&success(dir.run(&["status", "--json"])));
    let file = dir.path().canonicalize().unwrap().join("rocknet.toml");
    assert_eq!(status["config_file"], file.to_str().unwrap());
    assert!(server.get("/").contains("home"));
}

#[test]
fn a_reload_reports_that_the_addresses_of_the_api_stay() {
    let dir = home();
    let server = dir.serve(&["run"]);
    dir.write("rocknet.toml", &format!("[admin]\nsocket = \"off\"\n{SITE}"));
    let reload = dir.run(&["reload"]);
    let message = "`admin.socket`: the new value takes effect after a restart";
    assert!(reload.code == Some(0) && reload.err.contains(message), "{reload:?}");
    server.logged(message);
}

#[test]
fn an_address_that_is_in_use_does_not_affect_the_socket() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = format!("[server]\nstate = \"state\"\n[admin]\nlisten = \"{address}\"\n{SITE}");
    dir.write("rocknet.toml", &text);
    let server = dir.serve(&["run"]);
    server.logged(&format!("the control API is not available at {address}: "));
    success(dir.run(&["status"]));
}

#[test]
fn the_socket_of_a_killed_server_is_replaced() {
    let dir = home();
    let first = dir.serve(&["run"]);
    first.signal(Signal::KILL);
    first.wait();
    assert!(dir.path().join("control.sock").exists());
    assert!(dir.run(&["status"]).err.contains("no server is running"));
    let second = dir.serve(&["run"]);
    assert!(success(dir.run(&["status"])).contains(&format!("process {}\n", second.id())));
}

/// Sends a request to the control socket, and returns the whole response.
pub fn exchange(dir: &ProgramFolder, request: &str) -> String {
    let mut stream = UnixStream::connect(dir.path().join("control.sock")).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Sends a request to an address, and returns the status and the whole response.
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
    // The hash of `pass word`.
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
    assert_eq!(status(&["-u", "admin:pass word", "-H", "Host: evil.test"]), 403);
    assert_eq!(status(&["-u", "admin:pass word", "-H", "Host: 10.0.0.1"]), 200);
    assert_eq!(
        status(&["-u", "admin:pass word", "-H", "Origin: http://admin.test"]),
        403
    );
    let token = format!("Authorization: Bearer {}", dir.read("state/admin/read-token").trim());
    assert_eq!(status(&["-H", &token]), 200);
    // Without TLS nothing is served.
    let in_clear = format!("http://127.0.0.1:{port}/api/status");
    assert_ne!(curl(&["-u", "admin:pass word", &in_clear]), 200);
    // The password signs in to the dashboard, and the cookie is for TLS only.
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

#[test]
fn metrics_are_text() {
    let dir = home();
    let server = dir.serve(&["run"]);
    server.get("/");
    server.get("/missing");
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let response = exchange(&dir, request);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    for line in [
        "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n",
        "\nrocknet_requests_total 2\n",
        "\nrocknet_responses_total{class=\"4xx\"} 1\n",
        "\nrocknet_response_duration_seconds_bucket{site=\"default\",route=\"/*\",le=\"+Inf\"} 2\n",
        "\n# EOF\n",
    ] {
        assert!(response.contains(line), "{line:?} in {response}");
    }
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

#[test]
fn php_is_listed_and_urls_are_explained() {
    let dir = home();
    let _server = dir.serve(&["run"]);
    assert_eq!(success(dir.run(&["php"])), "the server runs no PHP\n");
    assert_eq!(json(&success(dir.run(&["php", "--json"]))), serde_json::json!([]));
    let refused = dir.run(&["php", "--restart", "8.2"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("there is no pool of PHP with this name"),
        "{refused:?}"
    );
    // The command and the API give the same explanation.
    let printed = json(&success(dir.run(&["explain", "--json", "/index.html"])));
    let request = "GET /api/explain?url=%2Findex.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let response = exchange(&dir, request);
    let explained = json(response.split_once("\r\n\r\n").unwrap().1);
    // Only keys and values are compared, because the command may name the configuration file by a relative path.
    let settings = |explanation: &serde_json::Value| -> Vec<(String, String)> {
        let all = explanation["settings"].as_array().unwrap().iter();
        all.map(|setting| (setting["key"].to_string(), setting["value"].to_string()))
            .collect()
    };
    assert_eq!(settings(&printed), settings(&explained));
    assert!(settings(&explained).len() > 10, "{explained}");
    assert_eq!(printed["leads_to"], explained["leads_to"]);
    assert_eq!(explained["site"], "default");
    let leads_to = explained["leads_to"].as_str().unwrap();
    assert!(
        leads_to.starts_with("the file ") && leads_to.ends_with("www/index.html"),
        "{leads_to}"
    );
    for (query, status) in [
        ("url=ftp%3A%2F%2Fa", 400),
        ("", 400),
        ("url=http%3A%2F%2Fa.test%3A1%2F", 404),
    ] {
        let response = exchange(&dir, &request.replace("url=%2Findex.html", query));
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{query}: {response}"
        );
    }
}

#[test]
fn a_site_is_shown_with_the_settings_of_its_routes() {
    let dir = home();
    let routes = "[site.default.route.\"/api/*\"]\nproxy = \"http://127.0.0.1:9\"\nheaders = { \"X-Secret\" = \"s\" }\n\
                  [site.default.route.\"/old\"]\nredirects = { \"/old\" = \"/\" }\n";
    dir.write("rocknet.toml", &format!("{SITE}{routes}"));
    let server = dir.serve(&["run"]);
    let sites = json(&success(dir.run(&["sites", "--json"])));
    let summaries: Vec<_> = (sites[0]["route_list"].as_array().unwrap().iter())
        .map(|route| (route["pattern"].as_str().unwrap(), route["kind"].as_str().unwrap()))
        .collect();
    assert!(
        summaries.contains(&("/api/*", "proxy")) && summaries.len() == 2,
        "{sites}"
    );
    assert_eq!(sites[0]["route_list"][1]["position"]["line"], 4, "{sites}");
    assert!(!sites.to_string().contains("X-Secret"), "{sites}");

    let site = json(&success(dir.run(&["sites", "default", "--json"])));
    let route = &site["routes"][1];
    assert_eq!(
        (&route["summary"]["pattern"], &route["leads_to"]),
        (&"/api/*".into(), &"passed on to http://127.0.0.1:9".into()),
        "{site}"
    );
    let setting = |settings: &serde_json::Value, key: &str| {
        let mut all = settings.as_array().unwrap().iter();
        all.find(|setting| setting["key"] == key).cloned()
    };
    assert_eq!(
        setting(&route["settings"], "headers.X-Secret").unwrap()["position"]["line"],
        6
    );
    assert!(setting(&site["settings"], "root").is_some() && setting(&route["settings"], "root").is_none());
    // The settings are those that `explain` shows.
    let explained = json(&success(dir.run(&["explain", "--json", "/api/x"])));
    for setting in route["settings"].as_array().unwrap() {
        assert!(explained["settings"].as_array().unwrap().contains(setting), "{setting}");
    }
    let shown = success(dir.run(&["sites", "default"]));
    assert!(
        shown.contains("\n/api/*  proxy  /") && shown.contains("  headers.X-Secret = \"s\"  /"),
        "{shown}"
    );
    let missing = dir.run(&["sites", "other"]);
    assert!(missing.err.contains("there is no site with this name"), "{missing:?}");

    server.get("/api/x");
    server.get("/");
    let request = "GET /api/routes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let response = exchange(&dir, request);
    let routes = json(response.split_once("\r\n\r\n").unwrap().1);
    let counted: Vec<_> = (routes.as_array().unwrap().iter())
        .map(|route| {
            let counts = route["duration_counts"].as_array().unwrap();
            let last = counts.last().unwrap().as_u64();
            (
                route["route"].as_str().unwrap(),
                route["responses"].as_u64(),
                route["server_errors"].as_u64(),
                last,
            )
        })
        .collect();
    assert_eq!(
        counted,
        [("/*", Some(1), Some(0), Some(1)), ("/api/*", Some(1), Some(1), Some(1))],
        "{routes}"
    );
}

#[test]
fn certificates_and_upstreams_are_listed() {
    let dir = ProgramFolder::new(&[("www/index.html", "home")]);
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", upstream.local_addr().unwrap());
    let text = format!(
        "[server]\nstate = \"state\"\n[site.\"a.test\"]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         [site.\"b.test\"]\nlisten = \"127.0.0.1:0\"\nproxy = \"{url}\"\n"
    );
    dir.write("rocknet.toml", &text);
    let _server = dir.serve(&["run"]);
    let certificates = json(&success(dir.run(&["certs", "--json"])));
    let certificate = &certificates[0];
    assert_eq!(
        (
            certificate["site"].as_str(),
            certificate["source"].as_str(),
            certificate["names"][0].as_str()
        ),
        (Some("a.test"), Some("local"), Some("a.test")),
        "{certificates}"
    );
    assert!(
        certificate["issuer"].as_str().unwrap().contains("RockNet"),
        "{certificates}"
    );
    assert!(certificate["days_left"].as_i64().unwrap() > 1, "{certificates}");
    assert!(success(dir.run(&["certs"])).starts_with("a.test  local  a.test  "));

    assert_eq!(success(dir.run(&["upstreams"])), format!("{url}  up  0 in progress\n"));
    assert_eq!(
        success(dir.run(&["upstreams", "--drain", &url])),
        format!("{url} is drained\n")
    );
    // The state survives a reload.
    success(dir.run(&["reload"]));
    assert_eq!(
        success(dir.run(&["upstreams"])),
        format!("{url}  drained  0 in progress\n")
    );
    assert_eq!(
        success(dir.run(&["upstreams", "--enable", &url])),
        format!("{url} gets requests\n")
    );
    let without_scheme = url.strip_prefix("http://").unwrap();
    assert_eq!(
        success(dir.run(&["upstreams", "--drain", without_scheme])),
        format!("{url} is drained\n")
    );
    let unknown = dir.run(&["upstreams", "--drain", "http://a.test"]);
    assert_eq!(unknown.code, Some(1));
    let message = format!("there is no upstream with this address; there are {url}\n");
    assert!(unknown.err.contains(&message), "{}", unknown.err);
    assert_eq!(success(dir.run(&["purge"])), "the file cache is empty\n");
    for command in ["purge", "reload", "stop"] {
        let done = json(&success(dir.run(&[command, "--json"])));
        assert!(done["message"].is_string(), "{done}");
    }
}

#[test]
fn the_load_is_printed_for_programs() {
    let dir = home();
    let server = dir.serve(&["run"]);
    server.get("/");
    let samples = success(dir.run(&["top", "--json", "--count", "1"]));
    let sample = json(&samples);
    assert_eq!(samples.lines().count(), 1);
    assert!(sample["memory_bytes"].as_u64().unwrap() > 1_000_000, "{sample}");
    assert_eq!(sample["sites"][0]["site"], "default");
    assert_eq!(
        (&sample["routes"][0]["site"], &sample["routes"][0]["route"]),
        (&"default".into(), &"/*".into()),
        "{sample}"
    );
    assert!(
        sample["latency"]["p50_us"].is_null(),
        "no response in the interval: {sample}"
    );
    let no_terminal = dir.run(&["top"]);
    assert_eq!(no_terminal.code, Some(1));
    assert!(
        no_terminal.err.contains("`rocknet top` needs a terminal"),
        "{}",
        no_terminal.err
    );
    let status = json(&success(dir.run(&["status", "--json"])));
    assert!(status["memory_bytes"].as_u64().unwrap() > 1_000_000, "{status}");
}
