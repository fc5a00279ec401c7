//! The form of the dashboard that adds a website, sent by a browser without scripts.

use crate::dashboard_client::{DASHBOARD_CONFIG, DashboardClient};

const ADD: &str = "/websites/add";

fn start() -> DashboardClient {
    DashboardClient::start(
        DASHBOARD_CONFIG,
        &[("garden/index.html", "garden"), ("shop/index.php", "<?php")],
    )
}

/// Returns the problems beside a field.
fn problem(page: &str, field: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"{field}-problem\"")).unwrap();
    rest.split("</span>")
        .next()
        .unwrap()
        .split_once('>')
        .unwrap()
        .1
        .to_owned()
}

/// Returns the fields that the form sends for a new website if the button to save is pressed.
fn fields<'f>(kind: &'f str, root: &'f str, proxy: &'f str, name: &'f str) -> [(&'f str, &'f str); 5] {
    [
        ("kind", kind),
        ("root", root),
        ("proxy", proxy),
        ("name", name),
        ("do", "save"),
    ]
}

#[test]
fn the_form_is_sent_by_the_browser() {
    let client = start();
    let page = client.page(ADD);
    let form = page.body.split_once("<form").unwrap().1;
    assert!(
        form.starts_with(" method=\"post\"") && form.contains("<button name=\"do\" value=\"save\">"),
        "{form}"
    );
    for name in ["kind", "root", "proxy", "name"] {
        assert!(form.contains(&format!(" name=\"{name}\"")), "{name}: {form}");
    }
    assert!(form.contains("value=\"files\" checked"), "{form}");

    for (sent, key) in [
        (fields("files", "garden", "", ":0"), "root = \"garden\"\n"),
        (
            fields("proxy", "", "http://127.0.0.1:9", "127.0.0.2:0"),
            "proxy = \"http://127.0.0.1:9\"\n",
        ),
    ] {
        let before = client.dir.read("rocknet.toml");
        let saved = client.post(ADD, &sent);
        assert_eq!(saved.status, 303, "{}", saved.body);
        let name = sent[3].1;
        let added = format!("{before}\n[site.\"{name}\"]\n{key}");
        assert_eq!(client.dir.read("rocknet.toml"), added);
        let report = client.page(saved.location()).body;
        assert!(
            report.contains(&format!("{name} is saved")) && report.contains("data-do=\"unsave\""),
            "{report}"
        );
    }
    let history = client.dir.run(&["config", "history"]).out;
    assert!(history.contains("add site :0"), "{history}");
}

#[test]
fn problems_are_beside_their_fields_and_the_input_stays() {
    let client = start();
    let refused = |sent: &[(&str, &str)]| {
        let reply = client.post(ADD, sent);
        assert_eq!(reply.status, 422, "{}", reply.body);
        assert_eq!(client.dir.read("rocknet.toml"), DASHBOARD_CONFIG);
        reply.body
    };
    let empty = refused(&fields("files", " ", "", ""));
    for field in ["root", "name"] {
        assert!(problem(&empty, field).contains("Fill in this field."), "{empty}");
    }
    assert_eq!(problem(&empty, "proxy"), "");
    assert_eq!(empty.matches("aria-invalid=\"true\"").count(), 2, "{empty}");

    let missing = refused(&fields("php", "no<where>", "http://typed", "a.localhost"));
    assert!(problem(&missing, "root").contains("✖ "), "{missing}");
    assert_eq!(problem(&missing, "name"), "");
    for kept in [
        "value=\"php\" checked",
        "name=\"root\" value=\"no&#60;where&#62;\"",
        "name=\"proxy\" value=\"http://typed\"",
        "name=\"name\" value=\"a.localhost\"",
    ] {
        assert!(missing.contains(kept), "{kept}: {missing}");
    }
    let address = refused(&fields("proxy", "", "no address", ":8081"));
    assert!(problem(&address, "proxy").contains("✖ "), "{address}");
    for kind in ["files", "proxy"] {
        let known = refused(&fields(kind, "garden", "http://127.0.0.1:9", "default"));
        assert!(problem(&known, "name").contains("a website with this name"), "{known}");
    }
    let name = refused(&fields("files", "garden", "", "a b"));
    assert!(problem(&name, "name").contains("✖ "), "{name}");

    // The script of the page has the form checked while it is being filled in, so empty fields are no problem.
    let begun = client.post(
        ADD,
        &[("kind", "files"), ("root", "garden"), ("name", ""), ("do", "check")],
    );
    assert!(begun.status == 200 && !begun.body.contains('✖'), "{}", begun.body);
    let checked = client.post(
        ADD,
        &[("kind", "files"), ("root", "nowhere"), ("name", ":0"), ("do", "check")],
    );
    assert!(
        checked.status == 200 && problem(&checked.body, "root").contains('✖'),
        "{}",
        checked.body
    );
    assert_eq!(client.dir.read("rocknet.toml"), DASHBOARD_CONFIG);
}

/// Forms are accepted only from pages of the dashboard itself, in a session of the token that permits changes.
#[test]
fn the_form_needs_the_full_token_and_the_origin_of_the_dashboard() {
    let mut client = start();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let body = "kind=files&root=garden&name=:0&do=save";
    for origin in [
        "",
        "Origin: null\r\n",
        "Origin: http://a.test\r\n",
        "Sec-Fetch-Site: none\r\n",
    ] {
        let fields = format!("{}{origin}{form}", client.cookie);
        assert_eq!(client.send("POST", ADD, &fields, body).status, 403, "{origin}");
    }
    client.cookie = client.session("read-token");
    assert_eq!(client.post(ADD, &fields("files", "garden", "", ":0")).status, 403);
    client.cookie = String::new();
    let signed_out = client.post(ADD, &fields("files", "garden", "", ":0"));
    assert_eq!((signed_out.status, signed_out.location()), (303, "/login"));
    assert_eq!(client.dir.read("rocknet.toml"), DASHBOARD_CONFIG);
}
