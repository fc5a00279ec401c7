//! Queries of a running server: metrics, load, sites, certificates, upstreams and PHP.

use std::net::TcpListener;

use super::{SITE, exchange, home, json, success};
use crate::program::ProgramFolder;

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
    // Another scheme, no URL at all, and a URL with a port at which no site listens.
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
    // `SITE` has three lines, so the first route begins in line 4.
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
    // The upstream is still drained after a reload.
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
    server.get("/missing");
    let samples = success(dir.run(&["top", "--json", "--count", "1"]));
    let sample = json(&samples);
    assert_eq!(samples.lines().count(), 1);
    assert!(sample["memory_bytes"].as_u64().unwrap() > 1_000_000, "{sample}");
    let worst = &sample["worst_clients"][0];
    assert!(worst["address"] == "127.0.0.1" && worst["not_found"] == 1, "{sample}");
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

#[test]
fn a_visit_returns_the_status_of_the_page_behind_https() {
    let dir = ProgramFolder::new(&[("www/index.html", "home"), ("empty/other.html", "other")]);
    let listen = "listen = \"https://127.0.0.1:0\"";
    let text = format!(
        "[server]\nstate = \"state\"\n[site.\"a.test\"]\nroot = \"www\"\n{listen}\n[site.\"b.test\"]\nroot = \
         \"empty\"\n{listen}\n"
    );
    dir.write("rocknet.toml", &text);
    let _server = dir.serve(&["run"]);
    let visit = |name: &str| {
        let path = format!("/api/site/visit?name={name}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        exchange(&dir, &request)
    };
    for (name, status) in [("a.test", 200), ("b.test", 404)] {
        let response = visit(name);
        let visited = json(response.split_once("\r\n\r\n").unwrap().1);
        assert_eq!(visited["status"], status, "{visited}");
        let url = visited["url"].as_str().unwrap();
        assert!(url.starts_with(&format!("https://{name}:")), "{url}");
    }
    let missing = visit("c.test");
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
}
