//! The rules of `examples/nextcloud` with files and scripts in the places of those of Nextcloud.

use std::fs;

use super::{Example, client::Client};

/// Prints what a script gets, and forbids caches.
const SCRIPT: &str = "<?php header('Cache-Control: no-store');
echo $_SERVER['REQUEST_URI'], ' by ', $_SERVER['SCRIPT_NAME'], ' with ', $_SERVER['PATH_INFO'] ?? 'nothing', ', ',
    getenv('front_controller_active');";
const DAY: u32 = 86_400;

fn start() -> Example {
    let running = Example::start("nextcloud");
    let www = running.folder.path().join("nextcloud/www");
    for (name, content) in [
        ("index.php", SCRIPT),
        ("remote.php", SCRIPT),
        ("version.php", "<?php echo 'the version';"),
        ("core/a.css", "a{}"),
        ("core/a.woff2", "a font"),
        ("core/a.txt", "a text"),
        ("core/a.mjs", "a module"),
        ("core/a.wasm", "a program"),
        ("core/shipped.json", "secret"),
        ("composer.json", "secret"),
        ("robots.txt", "for robots"),
        (".well-known/acme-challenge/token", "a token"),
        ("config/config.css", "secret"),
        ("data/picture.png", "secret"),
    ] {
        let file = www.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, content).expect("a file");
    }
    running
}

#[test]
fn browsers_keep_files_and_no_responses_of_scripts() {
    let running = start();
    let mut client = Client::to(running.ports[&8080]);
    let long = 15_778_463;
    for (path, status, fields) in [
        (
            "/core/a.css",
            200,
            &[&*format!("Cache-Control: public, max-age={long}")][..],
        ),
        (
            "/core/a.css?v=",
            200,
            &[&format!("Cache-Control: public, max-age={long}")],
        ),
        (
            "/core/a.css?v=7",
            200,
            &[&format!("Cache-Control: public, max-age={long}, immutable")],
        ),
        (
            "/core/a.woff2",
            200,
            &[&format!("Cache-Control: public, max-age={}", 7 * DAY)],
        ),
        ("/core/a.txt", 200, &["!Cache-Control"]),
        (
            "/core/a.mjs",
            200,
            &[
                &format!("Cache-Control: public, max-age={long}"),
                "Content-Type: text/javascript; charset=utf-8",
            ],
        ),
        ("/core/a.wasm", 200, &["Content-Type: application/wasm"]),
        ("/core/a.woff2", 200, &["Content-Type: font/woff2"]),
        ("/robots.txt", 200, &["!Cache-Control"]),
        ("/apps/theming/theme/light.css?v=7", 200, &["Cache-Control: no-store"]),
        // The other name of the folder is not for clients.
        ("/@files/core/a.css", 404, &["!Cache-Control"]),
        ("/@files/versions/config/config.css", 404, &[]),
        ("/config/config.css?v=7", 404, &[]),
        ("/data/picture.png", 404, &[]),
        ("/core/shipped.json", 404, &["!Cache-Control"]),
        ("/composer.json", 404, &["!Cache-Control"]),
        // Certificate authorities get a file or 404, and never a page.
        ("/.well-known/acme-challenge/token", 200, &[]),
        ("/.well-known/acme-challenge/none", 404, &["!Cache-Control"]),
        ("/.well-known/pki-validation/none", 404, &["!Cache-Control"]),
        ("/login", 200, &["Referrer-Policy: same-origin"]),
        ("/index.php/login", 200, &["Referrer-Policy: same-origin"]),
        ("/apps/files", 200, &["Referrer-Policy: no-referrer"]),
    ] {
        client.get(path).expect(path, status, fields);
    }
}

#[test]
fn paths_after_a_script_belong_to_nextcloud() {
    let running = start();
    let mut client = Client::to(running.ports[&8080]);
    for (path, script, info) in [
        ("/login", "/index.php", "nothing"),
        (
            "/index.php/.well-known/webfinger",
            "/index.php",
            "/.well-known/webfinger",
        ),
        (
            "/remote.php/dav/files/ada/.bashrc",
            "/remote.php",
            "/dav/files/ada/.bashrc",
        ),
        ("/version.php", "/index.php", "/version.php"),
    ] {
        let response = client.get(path);
        response.expect(path, 200, &["Cache-Control: no-store", "X-Frame-Options: SAMEORIGIN"]);
        assert_eq!(response.text(), format!("{path} by {script} with {info}, true"));
    }
    client.get("/.htaccess").expect("a hidden name", 404, &[]);
}
