//! Dashboard forms for instructions in a browser without scripts, and the view that explains an address.

use std::path::Path;

use rocknet_testing::{Need, skip};

use crate::dashboard_client::{DASHBOARD_CONFIG, DashboardClient};
use crate::failures::wait_until;
use crate::upgrade::KillAtEnd;

const MAINTENANCE: &str = "/maintenance";

/// Form that bans a client.
const BAN: [(&str, &str); 2] = [("address", "192.0.2.7"), ("do", "ban")];

#[test]
fn the_file_cache_is_emptied() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let files = |page: &str| {
        let (_, rest) = page.split_once("Files in memory</dt><dd>").unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    assert!(client.server.get("/").contains("home"));
    // Workers hand files to the cache after the response.
    wait_until("no file in memory", || files(&client.page(MAINTENANCE).body) == "1");
    let purged = client.instruct(MAINTENANCE, &[("do", "purge")]);
    assert!(purged.starts_with(" class=\"notice good\"><p>● "), "{purged}");
    assert_eq!(files(&purged), "0");
}

#[test]
fn the_level_of_a_module_is_set_and_reset() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let levels = || client.dir.run(&["log-level"]).out;
    let set = |module: &str, level: &str| {
        let fields = [("module", module), ("level", level), ("do", "log-level")];
        client.instruct(MAINTENANCE, &fields)
    };
    let page = set("rocknet_proxy", "debug");
    assert!(page.contains("<dt><code>rocknet_proxy</code></dt><dd>debug"), "{page}");
    assert_eq!(levels(), "info\nrocknet_proxy debug\n");
    set("", "warn");
    assert_eq!(levels(), "warn\nrocknet_proxy debug\n");
    let page = set("rocknet_proxy", "default");
    assert!(!page.contains("<dt><code>rocknet_proxy"), "{page}");
    assert_eq!(levels(), "warn\n");
    for (module, level) in [
        ("no_crate", "debug"),
        ("a<b>", "debug"),
        ("rocknet", "loud"),
        ("", "default"),
    ] {
        let page = set(module, level);
        assert!(page.starts_with(" class=\"notice bad\"><p>✖ "), "{module}: {page}");
        // The input stays.
        let shown = module.replace('<', "&#60;").replace('>', "&#62;");
        assert!(
            page.contains(&format!("name=\"module\" value=\"{shown}\"")),
            "{module}: {page}"
        );
    }
    assert_eq!(levels(), "warn\n");
}

#[test]
fn an_upgrade_is_reported() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let failed = client.instruct(MAINTENANCE, &[("binary", "/no/such/program"), ("do", "upgrade")]);
    assert!(
        failed.starts_with(" class=\"notice bad\"><p>✖ ") && failed.contains("/no/such/program"),
        "{failed}"
    );
    assert!(
        failed.contains("name=\"binary\" value=\"/no/such/program\""),
        "{failed}"
    );
    // Only the session has the input: a link of another site does not fill in a program.
    for link in [
        "?binary=%2Fevil",
        "?result=0&binary=%2Fevil",
        "?result=1&binary=%2Fevil",
    ] {
        let page = client.page(&format!("{MAINTENANCE}{link}")).body;
        assert!(
            page.contains("name=\"binary\" value=\"") && !page.contains("evil"),
            "{link}: {page}"
        );
    }
    let long = format!("/{}", "x".repeat(12 * 1024));
    let failed = client.instruct(MAINTENANCE, &[("binary", &long), ("do", "upgrade")]);
    assert!(
        failed.contains(&format!("name=\"binary\" value=\"{long}\"")),
        "{failed}"
    );
    assert!(client.server.get("/").contains("home"));
    let _end = KillAtEnd(&client.dir);
    let upgraded = client.post(MAINTENANCE, &[("binary", ""), ("do", "upgrade")]);
    let before = client.server.id();
    assert!(
        upgraded.status == 200
            && upgraded
                .body
                .contains(&format!(" has taken over from process {before}</p>"))
            && upgraded.body.contains("href=\"/login\""),
        "{}",
        upgraded.body
    );
    // A script of the page would find no session, and replace the report.
    assert!(!upgraded.body.contains("<script"), "{}", upgraded.body);
}

#[test]
fn the_limits_of_the_process_are_shown() {
    let client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let status = client.dir.run(&["status", "--json"]).out;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let page = client.page(MAINTENANCE).body;
    for (label, member) in [("Sandbox", "sandbox"), ("Capabilities", "capabilities")] {
        let value = status[member].as_str().unwrap();
        assert!(!value.is_empty(), "{member}");
        assert!(
            page.contains(&format!("<dt>{label}</dt><dd>{value}</dd>")),
            "{value}: {page}"
        );
    }
}

#[test]
fn an_address_is_explained() {
    // `DASHBOARD_CONFIG` has seven lines, so the route begins in line 8.
    let mut client = DashboardClient::start(
        &format!("{DASHBOARD_CONFIG}[site.default.route.\"/api/*\"]\nproxy = \"http://127.0.0.1:9\"\n"),
        &[],
    );
    assert!(client.page("/websites").body.contains("href=\"/explain\""));
    let form = client.page("/explain");
    assert!(
        form.status == 200 && form.body.contains("<form method=\"get\""),
        "{}",
        form.body
    );
    assert!(!form.body.contains("Leads to"), "{}", form.body);
    let found = client.page("/explain?url=%2Fapi%2Fone").body;
    for text in [
        "value=\"/api/one\"",
        "<dt>Website</dt><dd>default (<a href=\"/settings?file=",
        "<code>/api/*</code> (<a",
        "rocknet.toml, line 8</a>",
        "<th scope=\"row\"><code>proxy",
        "http://127.0.0.1:9",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
    let file = client.page("/explain?url=%2Findex.html").body;
    assert!(file.contains("www/index.html"), "{file}");
    for url in ["ftp%3A%2F%2Fa%2F", "http%3A%2F%2F%3Cb%3E%2F"] {
        let refused = client.page(&format!("/explain?url={url}"));
        assert!(
            (400..500).contains(&refused.status)
                && refused
                    .body
                    .contains("id=\"url-problem\" role=\"status\"><span class=\"bad\">✖ "),
            "{url}: {}",
            refused.body
        );
        assert!(!refused.body.contains("<b>"), "{}", refused.body);
    }
    client.cookie = client.session("read-token");
    assert_eq!(client.page("/explain?url=%2F").status, 403);
}

#[test]
fn php_is_restarted() {
    if !Path::new("/usr/sbin/php-fpm8.2").is_file() {
        return skip(Need::Program("php-fpm8.2"), "it is not in /usr/sbin");
    }
    let config = format!("{DASHBOARD_CONFIG}php = \"8.2\"\n");
    let client = DashboardClient::start(&config, &[("www/index.php", "<?php echo 'script';")]);
    assert!(client.server.get("/").contains("script"));
    assert!(
        client
            .page("/php")
            .body
            .contains("<button name=\"do\" value=\"restart\"")
    );
    let pools = client.dir.run(&["php", "--json"]).out;
    let pools: serde_json::Value = serde_json::from_str(&pools).unwrap();
    let name = pools[0]["name"].as_str().unwrap();
    let restarted = client.instruct("/php", &[("name", name), ("do", "restart")]);
    assert!(restarted.starts_with(" class=\"notice good\"><p>● "), "{restarted}");
    assert!(client.server.get("/").contains("script"));
    let missing = client.instruct("/php", &[("name", "1.0"), ("do", "restart")]);
    assert!(missing.starts_with(" class=\"notice bad\"><p>✖ "), "{missing}");
}

/// Forms are accepted only from pages of the dashboard itself, in a session of the token that permits changes.
#[test]
fn instructions_need_the_full_token_and_the_origin_of_the_dashboard() {
    let mut client = DashboardClient::start(DASHBOARD_CONFIG, &[]);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let level = "level=trace&do=log-level";
    for page in [MAINTENANCE, "/php", "/traffic"] {
        for origin in [
            "",
            "Origin: null\r\n",
            "Origin: http://a.test\r\n",
            "Sec-Fetch-Site: same-site\r\n",
        ] {
            let fields = format!("{}{origin}{form}", client.cookie);
            assert_eq!(client.send("POST", page, &fields, level).status, 403, "{page} {origin}");
        }
        let text = format!("{}Content-Type: text/plain\r\n", client.own());
        assert_eq!(client.send("POST", page, &text, level).status, 415, "{page}");
    }
    let fields = [("level", "trace"), ("do", "log-level")];
    client.cookie = client.session("read-token");
    assert_eq!(client.post(MAINTENANCE, &fields).status, 403);
    assert_eq!(client.post("/traffic", &BAN).status, 403);
    for view in [MAINTENANCE, "/traffic"] {
        let page = client.page(view);
        assert!(
            page.status == 200 && !page.body.contains("method=\"post\""),
            "{view}: {}",
            page.body
        );
    }
    client.cookie = String::new();
    for (view, fields) in [(MAINTENANCE, &fields[..]), ("/traffic", &BAN)] {
        assert_eq!(client.post(view, fields).location(), "/login");
    }
    assert_eq!(client.dir.run(&["log-level"]).out, "info\n");
    assert_eq!(client.dir.run(&["ban"]).out, "no client is banned\n");
}
