//! The form of a website: its check, and saving a changed site, a copy and a new user.

use super::{CONFIG, Dashboard, FORM};

#[test]
fn a_website_is_edited_by_a_form() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("token");
    // Header fields of a request that a form of the dashboard itself sends.
    let own = format!(
        "{cookie}Origin: http://{}\r\nContent-Type: {FORM}\r\n",
        dashboard.address
    );
    let page = dashboard.send("GET", "/websites/edit?name=default", &cookie, "").body;
    let revision = &*revision_in(&page);
    assert!(
        page.contains("<code>*.php</code>") && page.contains("name=\"root\" value=\"www\""),
        "{page}"
    );
    let body = |more: &str| format!("revision={revision}&name=default&kind=files&enabled=on&compress=on&{more}");
    let send = |path: &str, body: &str| dashboard.send("POST", path, &own, body);

    // A check changes nothing, and its problems are beside the fields.
    let wrong = body("root=missing&fallback=nowhere&headers=X");
    let checked = send("/websites/edit?name=default", &format!("{wrong}&do=check"));
    assert_eq!(checked.status, 200);
    // Returns the problem beside the field `id`.
    let problem = |page: &str, id: &str| {
        let (_, rest) = page.split_once(&format!("id=\"{id}-problem\"")).unwrap();
        rest.split("</span>").next().unwrap().to_owned()
    };
    assert!(
        problem(&checked.body, "headers").contains("is not `name = value`"),
        "{}",
        checked.body
    );
    let wrong = body("root=missing&fallback=nowhere");
    let refused = send("/websites/edit?name=default", &format!("{wrong}&do=save"));
    assert_eq!(refused.status, 422);
    assert!(problem(&refused.body, "root").contains("missing"), "{}", refused.body);
    assert!(problem(&refused.body, "fallback").contains('✖'), "{}", refused.body);
    assert!(refused.body.contains("name=\"fallback\" value=\"nowhere\""));
    assert_eq!(dashboard.dir.read("rocknet.toml"), CONFIG);

    // The form sends the present value of `listen`, so the listener keeps the port that the system has chosen.
    let good = body("root=www&listen=127.0.0.1:0&index=home.html%0D%0Aindex.html&headers=X-New+%3D+1&do=save");
    let saved = send("/websites/edit?name=default", &good);
    assert_eq!(saved.status, 303, "{}", saved.body);
    assert!(
        saved.head.contains("\r\nLocation: /websites/edit?name=default&saved="),
        "{}",
        saved.head
    );
    let expected = format!("{CONFIG}index = [\"home.html\", \"index.html\"]\nheaders = {{ X-New = \"1\" }}\n");
    assert_eq!(dashboard.dir.read("rocknet.toml"), expected);
    let location = saved
        .head
        .split("\r\nLocation: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap();
    let page = dashboard.send("GET", location, &cookie, "").body;
    assert!(
        page.contains("default is saved") && page.contains("data-do=\"unsave\""),
        "{page}"
    );

    // The file has been changed since the form was loaded.
    let late = send("/websites/edit?name=default", &body("root=www&browse=on&do=save"));
    assert!(
        late.status == 422 && late.body.contains("was changed by another program in the meantime"),
        "{}",
        late.body
    );
    let copy = body("root=www&listen=127.0.0.1:0&do=save").replace("name=default", "name=copy.test");
    // A website with a host name uses TLS by default, but `default` listens at the same address without TLS.
    let copied = send(
        "/websites/copy?name=default",
        &copy.replace(revision, &revision_in(&late.body)),
    );
    assert!(copied.status == 422 && copied.body.contains("TLS"), "{}", copied.body);
    let copy = copy.replace("listen=127.0.0.1:0", "listen=http%3A%2F%2F127.0.0.1:0&tls=off");
    let copied = send(
        "/websites/copy?name=default",
        &copy.replace(revision, &revision_in(&late.body)),
    );
    assert_eq!(copied.status, 303, "{}", copied.body);
    assert!(dashboard.dir.read("rocknet.toml").contains("[site.\"copy.test\"]\n"));
    let page = dashboard.send("GET", "/websites/edit?name=default", &cookie, "").body;
    let user = body("new-user=ann&new-password=a+secret&do=save").replace(revision, &revision_in(&page));
    let added = send("/websites/edit?name=default", &user);
    assert_eq!(added.status, 303, "{}", added.body);
    let text = dashboard.dir.read("rocknet.toml");
    assert!(
        text.contains("auth = { ann = \"$argon2id$") && !text.contains("secret"),
        "{text}"
    );
    let missing = send("/websites/edit?name=none", &good);
    assert_eq!(missing.status, 404);
    let read = dashboard.cookie("read-token");
    let own = format!("{read}Origin: http://{}\r\nContent-Type: {FORM}\r\n", dashboard.address);
    assert_eq!(
        dashboard
            .send("POST", "/websites/edit?name=default", &own, &good)
            .status,
        403
    );
}

#[test]
fn another_kind_removes_a_proxy_with_more_settings() {
    let dashboard = Dashboard::start();
    let cookie = dashboard.cookie("token");
    let own = format!(
        "{cookie}Origin: http://{}\r\nContent-Type: {FORM}\r\n",
        dashboard.address
    );
    for to in [
        "[\"http://127.0.0.1:1\"]",
        "[{ url = \"http://127.0.0.1:1\", weight = 2 }]",
    ] {
        let text = format!("{CONFIG}proxy = {{ to = {to}, balance = \"random\" }}\n");
        dashboard.dir.write("rocknet.toml", &text);
        let path = "/websites/edit?name=default";
        let revision = revision_in(&dashboard.send("GET", path, &cookie, "").body);
        let body = format!("revision={revision}&name=default&kind=files&enabled=on&compress=on&do=save");
        let saved = dashboard.send("POST", path, &own, &body);
        assert_eq!(saved.status, 303, "{}", saved.body);
        assert_eq!(dashboard.dir.read("rocknet.toml"), CONFIG);
    }
}

/// Returns the revision of the configuration in a page with a form.
fn revision_in(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"revision\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}
