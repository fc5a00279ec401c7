//! Directory listings as a page and as JSON, and their order.

use serde_json::Value;

use super::support::{Client, Folder, Running};

const JSON: &str = "Accept: application/json";

/// Requests the listing as JSON and asserts its names, in this order.
#[track_caller]
fn check(client: &mut Client, target: &str, names: &[&str]) -> Value {
    let response = client.fetch(&format!("GET {target}"), &[JSON]);
    response.expect(
        target,
        200,
        &[
            "Content-Type: application/json",
            "Vary: Accept",
            "Cache-Control: no-cache",
            "!ETag",
        ],
    );
    let entries: Value = serde_json::from_slice(&response.body).expect("JSON");
    let found: Vec<&str> = entries
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["name"].as_str())
        .collect();
    assert_eq!(found, names, "{target}");
    entries
}

fn server(keys: &str) -> Running {
    let folder = Folder::with(&[
        ("secret.txt", "secret"),
        ("www/10.txt", "ten"),
        ("www/9.txt", "nine nine"),
        ("www/<b>&\".txt", "marked up"),
        ("www/a b#?.txt", "spaced"),
        ("www/.hidden", "secret"),
        ("www/folder/x.txt", "x"),
        ("www/Folder2/y.txt", "y"),
        ("www/indexed/index.html", "the index"),
        ("www/empty/.keep", ""),
        ("www/dated/a.txt", "a"),
        ("www/dated/b.txt", "b"),
        ("www/dated/c.txt", "c"),
    ]);
    for (name, unix) in [
        ("9.txt", 1_000),
        ("dated/a.txt", 4_000),
        ("dated/b.txt", 2_000),
        ("dated/c.txt", 3_000),
    ] {
        folder.date(&format!("www/{name}"), unix);
    }
    folder.link("www/outside.txt", "../secret.txt");
    Running::site(folder, keys)
}

#[test]
fn programs_get_json_listings() {
    let server = server("browse = true");
    let mut client = server.connect();
    let folders = ["dated", "empty", "folder", "Folder2", "indexed"];
    let all = |files: &[&'static str]| folders.iter().copied().chain(files.iter().copied()).collect::<Vec<_>>();
    let descending: Vec<&str> = [
        "indexed",
        "Folder2",
        "folder",
        "empty",
        "dated",
        "a b#?.txt",
        "<b>&\".txt",
        "10.txt",
        "9.txt",
    ]
    .to_vec();
    let by_name = all(&["9.txt", "10.txt", "<b>&\".txt", "a b#?.txt"]);
    for target in ["/", "/?", "/?sort=name", "/?sort=nonsense", "/?order=asc&sort=name"] {
        check(&mut client, target, &by_name);
    }
    check(&mut client, "/?sort=name&order=desc", &descending);
    check(
        &mut client,
        "/?sort=size",
        &all(&["10.txt", "a b#?.txt", "9.txt", "<b>&\".txt"]),
    );
    check(
        &mut client,
        "/?sort=size&order=desc",
        &all(&["9.txt", "<b>&\".txt", "a b#?.txt", "10.txt"]),
    );
    check(&mut client, "/folder/", &["x.txt"]);
    check(&mut client, "/empty/", &[]);
    check(&mut client, "/dated/?sort=time", &["b.txt", "c.txt", "a.txt"]);
    check(
        &mut client,
        "/dated/?sort=time&order=desc",
        &["a.txt", "c.txt", "b.txt"],
    );

    let entries = check(&mut client, "/", &by_name);
    let entry = |name: &str| {
        entries
            .as_array()
            .and_then(|all| all.iter().find(|entry| entry["name"] == name))
            .cloned()
    };
    let file = entry("9.txt").expect("the file");
    assert_eq!(
        (&file["type"], &file["size"], &file["url"]),
        (&"file".into(), &9.into(), &"./9.txt".into())
    );
    assert_eq!(file["modified"], "1970-01-01T00:16:40Z");
    let folder = entry("folder").expect("the folder");
    assert_eq!(
        (&folder["type"], &folder["size"], &folder["url"]),
        (&"directory".into(), &Value::Null, &"./folder/".into())
    );
    // The URLs in the listing lead to the files.
    for name in ["<b>&\".txt", "a b#?.txt"] {
        let url = entry(name).expect("the entry")["url"]
            .as_str()
            .expect("a URL")
            .to_owned();
        client.get(url.trim_start_matches('.')).expect(name, 200, &[]);
    }
}

#[test]
fn browsers_get_a_page() {
    let server = server("browse = true");
    let mut client = server.connect();
    for accept in [
        &["Accept: text/html,*/*;q=0.8"][..],
        &["Accept: */*"],
        &[],
        &["Accept: text/html, application/json;q=0.9"],
    ] {
        let page = client.fetch("GET /", accept);
        page.expect(
            "a page",
            200,
            &[
                "Content-Type: text/html; charset=utf-8",
                "Vary: Accept, Accept-Encoding",
                "Content-Security-Policy",
            ],
        );
        let text = page.text();
        assert!(
            text.contains("9.txt") && text.contains("./folder/") && text.contains("&lt;b&gt;"),
            "{text}"
        );
        assert!(!text.contains("<b>&") && !text.contains("/.hidden"), "{text}");
        let head = client.fetch("HEAD /", accept);
        head.expect("its head", 200, &[&format!("Content-Length: {}", page.body.len())]);
    }
}

#[test]
fn only_folders_without_an_index_are_listed() {
    let allowed = server("browse = true");
    let mut client = allowed.connect();
    for (target, status, content) in [
        ("/indexed/", 200, Some("the index")),
        ("/folder", 308, None),
        ("/none/", 404, None),
        ("/9.txt/", 404, None),
        ("/.hidden/", 404, None),
    ] {
        let response = client.fetch(&format!("GET {target}"), &[JSON]);
        response.expect(target, status, &[]);
        assert!(content.is_none_or(|content| response.text() == content), "{target}");
    }
    client
        .fetch("POST /", &[])
        .expect("another method", 405, &["Allow: GET, HEAD, OPTIONS"]);
    let refused = server("");
    refused.get("/").expect("no listing wanted", 404, &[]);
    refused.get("/folder/").expect("no listing wanted", 404, &[]);
    let below = server("route.\"/folder/*\" = { browse = true }");
    check(&mut below.connect(), "/folder/", &["x.txt"]);
    below.get("/Folder2/").expect("another folder", 404, &[]);
}

#[test]
fn a_listing_is_up_to_date() {
    let server = server("browse = true");
    let mut client = server.connect();
    check(&mut client, "/folder/", &["x.txt"]);
    server.folder.write("www/folder/y.txt", "y");
    check(&mut client, "/folder/", &["x.txt", "y.txt"]);
    server.folder.remove("www/folder/x.txt");
    check(&mut client, "/folder/", &["y.txt"]);
}

#[test]
fn names_are_filtered_and_pictures_are_shown_without_scripts() {
    let folder = Folder::with(&[("www/cat.png", "png"), ("www/Cats/x", "x"), ("www/dog.jpg", "jpg")]);
    let server = Running::site(folder, "browse = { view = \"grid\" }");
    let mut client = server.connect();
    check(&mut client, "/?filter=cat", &["Cats", "cat.png"]);
    check(&mut client, "/?filter=CAT.&order=desc", &["cat.png"]);
    check(&mut client, "/?filter=%3Cb%3E", &[]);
    let page = client.get("/?filter=%3Cb%3E").text();
    assert!(page.contains("No name contains “<bdi>&lt;b&gt;</bdi>”"), "{page}");
    let page = client.get("/");
    page.expect("the grid", 200, &["Cache-Control: no-cache", "!ETag"]);
    let policy = page.field("Content-Security-Policy").expect("a policy");
    for directive in [
        "default-src 'none'",
        "img-src 'self' data:",
        "form-action 'self'",
        "script-src 'sha256-",
    ] {
        assert!(policy.contains(directive), "{policy}");
    }
    let text = page.text();
    assert!(
        text.contains("<img alt=\"\" loading=\"lazy\" decoding=\"async\" src=\"./cat.png\">"),
        "{text}"
    );
    assert!(client.get("/?view=list").text().contains("<table class=\"list\">"));
    client
        .get("/cat.png")
        .expect("a picture of the grid", 200, &["Content-Type: image/png"]);
}

#[test]
fn readme_files_are_shown_if_a_request_would_get_them() {
    let folder = || {
        let folder = Folder::with(&[
            ("www/README.txt", "plain <b>"),
            ("www/readme.md", "# Hello\n<script>x</script>"),
            ("www/long/README", ""),
            ("www/binary/README.md", ""),
            ("secret.md", "secret"),
            ("www/linked/x", ""),
        ]);
        folder.write("www/long/README", "é".repeat(40_000));
        folder.write("www/binary/README.md", [0xff, 0, b'a']);
        folder.link("www/linked/README.md", "../../secret.md");
        folder
    };
    let server = Running::site(folder(), "browse = true");
    let mut client = server.connect();
    let page = client.get("/").text();
    assert!(page.contains("<h3>Hello</h3>") && !page.contains("plain"), "{page}");
    assert!(page.contains("&lt;script&gt;x"), "{page}");
    let page = client.get("/long/").text();
    assert_eq!(page.matches('é').count(), 32 * 1024);
    assert!(!page.contains('\u{FFFD}') && page.contains("The text stops here."));
    assert!(client.get("/binary/").text().contains('\u{FFFD}'));
    let page = client.get("/linked/").text();
    assert!(!page.contains("secret") && !page.contains("<section"), "{page}");
    for keys in [
        "browse = { readme = false }",
        "browse = true\nroute.\"/readme.md\" = { deny = \"all\" }",
        "browse = true\n[[site.default.rule]]\npath = \"*.md\"\nrespond = 403",
    ] {
        let page = Running::site(folder(), keys).get("/").text();
        assert!(page.contains("readme.md") && !page.contains("Hello"), "{keys}: {page}");
    }
}

over_http3! {
    names_are_filtered_and_pictures_are_shown_without_scripts,
    readme_files_are_shown_if_a_request_would_get_them,
    programs_get_json_listings,
    browsers_get_a_page,
    only_folders_without_an_index_are_listed,
    a_listing_is_up_to_date,
}
