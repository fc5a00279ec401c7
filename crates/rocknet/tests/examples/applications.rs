//! The rules of the examples for WordPress, Laravel, Symfony, Drupal and Nextcloud, with files and scripts in the
//! places of those of the applications. `docs/php-applications.md` lists the rules.

use std::fs;

use super::{Example, client::Client, repository, text};

/// Prints what a script gets. Missing pages are 404, and caches may not keep responses.
const SCRIPT: &str = "<?php $uri = $_SERVER['REQUEST_URI'];
header('Cache-Control: no-store');
header('X-Powered-By: PHP');
header('X-Seen: ' . implode('|', array_map(fn ($name) => $_SERVER[\"HTTP_$name\"] ?? '-',
    ['AUTHORIZATION', 'X_XSRF_TOKEN', 'PROXY'])));
if (strpos($uri, 'missing') !== false) http_response_code(404);
echo \"$uri by \", $_SERVER['SCRIPT_NAME'], ' with ', $_SERVER['PATH_INFO'] ?? 'nothing', ' and ', $_SERVER['QUERY_STRING'];";
const YEAR: &str = "Cache-Control: public, max-age=31536000";

/// A path with its query, and the expected status, header fields and beginning of the body.
type Row = (&'static str, u16, &'static [&'static str], &'static str);

/// Writes files below the root of an example. Those that end in `.php` are scripts; the others contain their name.
fn place(running: &Example, root: &str, names: &[&str]) {
    for name in names {
        let file = running.folder.path().join(root).join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let content = if name.ends_with(".php") { SCRIPT } else { name };
        fs::write(file, content).expect("a file");
    }
}

#[track_caller]
fn check(running: &Example, fields: &[&str], rows: &[Row]) {
    let mut client = Client::to(running.ports[&8080]);
    for (path, status, expected, body) in rows {
        let response = client.fetch(&format!("GET {path}"), fields);
        response.expect(path, *status, expected);
        assert!(response.text().starts_with(body), "{path}: {}", response.text());
    }
}

/// Returns the block of the page about these applications that follows a line with `before`, for the port of the
/// examples and their root.
fn block(before: &str, root: &str) -> String {
    let page = text(&repository().join("docs/php-applications.md"));
    let (_, rest) = page
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before:?} in the page"));
    let block = rest.split("```toml\n").nth(1).expect("a block").split("```").next();
    let block = block.expect("an end").replace("\"example.com\"", "\":8080\"");
    block.replace("/var/www/example", root)
}

#[test]
fn wordpress_runs_no_script_that_is_not_for_clients() {
    let running = Example::start("wordpress");
    place(
        &running,
        "wordpress/www",
        &[
            "index.php",
            "wp-config.php",
            "wp-login.php",
            "wp-admin/index.php",
            "wp-admin/includes/file.php",
            "wp-admin/load-styles.php",
            "wp-includes/a.css",
            "wp-includes/functions.php",
            "wp-includes/js/tinymce/wp-tinymce.php",
            "wp-includes/js/tinymce/langs/de.php",
            "wp-includes/theme-compat/header.php",
            "wp-content/debug.log",
            "wp-content/uploads/2026/a.jpg",
            "wp-content/uploads/2026/x.php",
            "files/x/index.php",
            "readme.txt",
        ],
    );
    check(
        &running,
        &["Authorization: Basic YTpi", "Proxy: evil"],
        &[
            (
                "/hello-world/?a=b",
                200,
                &["Cache-Control: no-store", "X-Seen: Basic YTpi|-|-"],
                "/hello-world/?a=b by /index.php with nothing and a=b",
            ),
            (
                "/index.php/hello",
                200,
                &[],
                "/index.php/hello by /index.php with /hello",
            ),
            ("/wp-admin", 308, &[], ""),
            ("/wp-admin/", 200, &[], "/wp-admin/ by /wp-admin/index.php"),
            (
                "/wp-admin/load-styles.php?c=0",
                200,
                &[],
                "/wp-admin/load-styles.php?c=0 by",
            ),
            ("/wp-login.php", 200, &[], "/wp-login.php by"),
            ("/wp-includes/js/tinymce/wp-tinymce.php", 200, &[], "/wp-includes/js"),
            ("/wp-config.php", 403, &["!X-Seen"], ""),
            ("/wp-config.php/x", 403, &["!X-Seen"], ""),
            ("/wp-content/debug.log", 403, &[], ""),
            ("/wp-admin/includes/file.php", 403, &["!X-Seen"], ""),
            ("/wp-includes/functions.php", 403, &["!X-Seen"], ""),
            ("/wp-includes/js/tinymce/langs/de.php", 403, &["!X-Seen"], ""),
            ("/wp-includes/theme-compat/header.php", 403, &["!X-Seen"], ""),
            ("/wp-content/uploads/2026/x.php", 403, &["!X-Seen"], ""),
            ("/.htaccess", 404, &[], ""),
            ("/xmlrpc.php/x", 403, &["!X-Seen"], ""),
            ("/wp-login.php/x.css", 404, &["!X-Seen", "!Cache-Control"], ""),
            ("/files/x/", 403, &["!X-Seen"], ""),
            ("/wp-includes/a.css?ver=6", 200, &[YEAR], "wp-includes/a.css"),
            ("/wp-content/uploads/2026/a.jpg", 200, &[YEAR], "wp-content"),
            ("/wp-content/none.css", 404, &["!Cache-Control", "!X-Seen"], ""),
            ("/readme.txt", 200, &["!Cache-Control"], "readme.txt"),
        ],
    );
    let mut client = Client::to(running.ports[&8080]);
    let login = (0..40).find(|_| client.get("/wp-login.php").status == 429);
    assert!(login.is_some_and(|count| count >= 19), "{login:?}");
    client.get("/hello").expect("another page", 200, &[]);
}

#[test]
fn old_networks_of_wordpress_send_uploads_by_their_script_or_as_files() {
    // The site of the example has every name, and the folder of uploads does not exist before the start.
    let settings = block("A network older than 3.5", "www").replace("aliases = [\"*.example.com\"]\n", "");
    let running = Example::of("wordpress", &settings.replace("www/wp-content\"", "www\""));
    place(
        &running,
        "wordpress/www",
        &[
            "index.php",
            "wp-includes/ms-files.php",
            "wp-content/blogs.dir/2/files/2026/a.png",
        ],
    );
    let script = "/files/2026/b.png by /wp-includes/ms-files.php with nothing and file=2026/b.png";
    check(
        &running,
        &["Host: two.example.com"],
        &[
            ("/files/2026/a.png", 200, &[], "wp-content/blogs.dir/2"),
            ("/files/2026/b.png", 200, &[], script),
            ("/blogs.dir/index.php", 404, &[], ""),
            ("/page", 200, &[], "/page by /index.php"),
        ],
    );
    check(
        &running,
        &["Host: one.example.com"],
        &[(
            "/files/2026/a.png",
            200,
            &[],
            "/files/2026/a.png by /wp-includes/ms-files.php",
        )],
    );
}

#[test]
fn pages_that_a_plugin_has_written_are_sent_to_visitors_only() {
    let running = Example::of("wordpress", &block("WP Super Cache", "www"));
    let cache = "wp-content/cache/supercache/www.example.com";
    let pages = [format!("{cache}/index.html"), format!("{cache}/about/index.html")];
    place(&running, "wordpress/www", &["index.php", &pages[0], &pages[1]]);
    check(
        &running,
        &[],
        &[
            ("/about/", 200, &[], "wp-content/cache"),
            ("/about", 200, &[], "wp-content/cache"),
            ("/", 200, &[], "wp-content/cache"),
            ("/about/?page=2", 200, &[], "/about/?page=2 by /index.php"),
            ("/other/", 200, &[], "/other/ by /index.php"),
        ],
    );
    for cookie in [
        "wordpress_logged_in_0a1b=x",
        "a=b; comment_author_1=x",
        "wp-postpass_1=x",
    ] {
        let field = format!("Cookie: {cookie}");
        check(&running, &[&field], &[("/about/", 200, &[], "/about/ by /index.php")]);
    }
    let response = Client::to(running.ports[&8080]).fetch("POST /about/", &["Content-Length: 0"]);
    assert!(
        response.text().starts_with("/about/ by /index.php"),
        "{}",
        response.text()
    );
}

#[test]
fn laravel_runs_its_front_controller_only() {
    let running = Example::start("laravel");
    place(
        &running,
        "laravel/app",
        &[
            ".env",
            "public/index.php",
            "public/info.php",
            "public/.env",
            "public/.well-known/security.txt",
            "public/app.css",
            "public/files/a.txt",
            "storage/app/public/a.png",
            "storage/app/public/x/index.php",
        ],
    );
    let safe = &[
        "X-Frame-Options: SAMEORIGIN",
        "X-Content-Type-Options: nosniff",
        "!X-Powered-By",
    ];
    check(
        &running,
        &["Authorization: Bearer t", "X-XSRF-Token: x"],
        &[
            (
                "/users?page=2",
                200,
                safe,
                "/users?page=2 by /index.php with nothing and page=2",
            ),
            ("/users", 200, &["X-Seen: Bearer t|x|-"], ""),
            (
                "/index.php/users",
                200,
                &[],
                "/index.php/users by /index.php with /users",
            ),
            ("/users/7/?page=2", 301, &["Location: /users/7?page=2"], ""),
            ("//example.org/", 301, &["Location: /example.org"], ""),
            ("/files", 308, &[], ""),
            ("/files/a.txt", 200, &[], "public/files"),
            (
                "/missing.css",
                404,
                &["X-Seen: Bearer t|x|-"],
                "/missing.css by /index.php",
            ),
            ("/app.css", 200, safe, "public/app.css"),
            ("/info.php", 404, &["!X-Seen"], ""),
            ("/.env", 404, &["!X-Seen"], ""),
            ("/../.env", 400, &["!X-Seen"], ""),
            ("/.well-known/security.txt", 200, &[], "public/.well-known"),
            ("/storage/a.png", 200, &[], "storage/app"),
            ("/storage/x/", 404, &["!X-Seen"], ""),
            (
                "/storage/private.pdf?signature=s",
                200,
                &[],
                "/storage/private.pdf?signature=s by /index.php",
            ),
        ],
    );
}

#[test]
fn symfony_has_addresses_without_front_controller_and_in_place_of_folders() {
    let running = Example::start("symfony");
    place(
        &running,
        "symfony/app",
        &[
            "public/index.php",
            "public/info.php",
            "public/admin/a.css",
            "vendor/bundle/b.css",
        ],
    );
    let bundles = running.folder.path().join("symfony/app/public/bundles");
    fs::create_dir(&bundles).expect("a folder");
    std::os::unix::fs::symlink("../../vendor/bundle", bundles.join("own")).expect("a link");
    check(
        &running,
        &["Authorization: Basic YTpi"],
        &[
            (
                "/about?a=b",
                200,
                &["X-Seen: Basic YTpi|-|-"],
                "/about?a=b by /index.php with nothing and a=b",
            ),
            ("/", 200, &[], "/ by /index.php"),
            ("/index.php", 308, &["Location: /"], ""),
            ("/index.php/about?a=b", 308, &["Location: /about?a=b"], ""),
            ("/info.php", 404, &["!X-Seen"], ""),
            ("/none.php", 404, &["!X-Seen"], ""),
            ("/admin", 200, &[], "/admin by /index.php with nothing"),
            ("/admin/", 200, &[], "/admin/ by /index.php with nothing"),
            ("/admin/a.css", 200, &[], "public/admin"),
            ("/bundles/own/b.css", 200, &[], "vendor/bundle"),
            ("/bundles/none.css", 200, &[], "/bundles/none.css by /index.php"),
        ],
    );
}

#[test]
fn drupal_keeps_its_parts_private_and_its_files_in_browsers() {
    let running = Example::start("drupal");
    let root = "drupal/app/web";
    place(
        &running,
        root,
        &[
            "index.php",
            "update.php",
            "autoload.php",
            "core/install.php",
            "core/lib/x.php",
            "core/modules/statistics/statistics.php",
            "core/core.services.yml",
            "core/node.module",
            "core/package.json",
            "core/CHANGELOG.txt",
            "core/a.svgz",
            "yarn.lock",
            "sites/default/settings.php",
            "sites/default/settings.php.bak",
            "sites/default/private/a.pdf",
            "sites/default/files/a.txt",
            "sites/default/files/x.php",
            "sites/default/files/y/index.php",
            "sites/default/files/css/css_a.css",
            "sites/default/files/css/css_a.css.gz",
            "vendor/x.php",
            ".well-known/a.json",
        ],
    );
    check(
        &running,
        &["Authorization: Basic YTpi", "Proxy: evil", "Accept-Encoding: gzip"],
        &[
            (
                "/node/1?a=b",
                200,
                &[
                    "Cache-Control: no-store",
                    "X-Content-Type-Options: nosniff",
                    "X-Seen: Basic YTpi|-|-",
                ],
                "/node/1?a=b by /index.php with nothing and a=b",
            ),
            (
                "/update.php/selection",
                200,
                &[],
                "/update.php/selection by /update.php with /selection",
            ),
            ("/core/install.php", 200, &[], "/core/install.php by"),
            ("/core/modules/statistics/statistics.php", 200, &[], "/core/modules"),
            ("/install.php?a=b", 301, &["Location: /core/install.php?a=b"], ""),
            ("/index.php/node/1", 307, &["Location: /node/1"], ""),
            ("/blog/index.php/node/1", 307, &["Location: /blog/node/1"], ""),
            ("/core/lib/x.php", 403, &["!X-Seen"], ""),
            ("/autoload.php", 403, &["!X-Seen"], ""),
            ("/sites/default/settings.php", 403, &["!X-Seen"], ""),
            ("/sites/default/settings.php.bak", 403, &[], ""),
            ("/sites/default/private/a.pdf", 403, &[], ""),
            ("/sites/default/files/x.php", 403, &["!X-Seen"], ""),
            (
                "/sites/default/files/y/",
                200,
                &[],
                "/sites/default/files/y/ by /index.php",
            ),
            ("/vendor/x.php", 404, &["!X-Seen"], ""),
            ("/core/core.services.yml", 403, &[], ""),
            ("/core/CORE.SERVICES.YML", 403, &[], ""),
            ("/core/node.module", 403, &[], ""),
            ("/core/package.json", 403, &[], ""),
            ("/yarn.lock", 403, &[], ""),
            ("/Entries/42", 200, &[], "/Entries/42 by /index.php"),
            ("/sites/default/files/a.txt", 200, &[], "sites/default"),
            ("/system/files/a.txt", 200, &[], "/system/files/a.txt by /index.php"),
            (
                "/de/system/files/a.pdf",
                200,
                &[],
                "/de/system/files/a.pdf by /index.php",
            ),
            (
                "/sites/default/files/styles/large/a.png?itok=1",
                200,
                &["Cache-Control: no-store"],
                "/sites/default/files/styles/large/a.png?itok=1 by /index.php",
            ),
            (
                "/sites/default/files/css/css_a.css",
                200,
                &[
                    YEAR,
                    "Content-Encoding: gzip",
                    "Content-Type: text/css; charset=utf-8",
                    "Vary: Accept-Encoding",
                ],
                "sites/default/files/css/css_a.css.gz",
            ),
            (
                "/core/a.svgz",
                200,
                &["Content-Type: image/svg+xml", "Content-Encoding: gzip"],
                "core/a.svgz",
            ),
            ("/favicon.ico", 404, &["!X-Seen"], ""),
            ("/.well-known/a.json", 200, &[], ".well-known"),
            ("/.git/config", 404, &["!X-Seen"], ""),
        ],
    );
    // The response of the worker cache depends on the field as well.
    let plain: Row = (
        "/sites/default/files/css/css_a.css",
        200,
        &["!Content-Encoding"],
        "sites/default",
    );
    check(&running, &[], &[plain, plain]);
    // A client outside of the local network gets no texts: the tests run on loopback, which is `private`.
    check(
        &running,
        &[],
        &[("/core/CHANGELOG.txt", 200, &[], "core/CHANGELOG.txt")],
    );
}

#[test]
fn nextcloud_below_a_path_has_the_same_rules() {
    let running = Example::of("nextcloud", &block("Nextcloud in a subfolder", "www"));
    place(
        &running,
        "nextcloud/www",
        &[
            "nextcloud/index.php",
            "nextcloud/remote.php",
            "nextcloud/core/a.css",
            "nextcloud/config/config.php",
        ],
    );
    check(
        &running,
        &[],
        &[
            (
                "/nextcloud/login",
                200,
                &["Referrer-Policy: same-origin"],
                "/nextcloud/login by /nextcloud/index.php",
            ),
            (
                "/nextcloud/apps",
                200,
                &["Referrer-Policy: no-referrer"],
                "/nextcloud/apps by /nextcloud/index.php",
            ),
            (
                "/nextcloud/remote.php/dav/a",
                200,
                &[],
                "/nextcloud/remote.php/dav/a by /nextcloud/remote.php with /dav/a",
            ),
            (
                "/.well-known/caldav",
                301,
                &["Location: /nextcloud/remote.php/dav/"],
                "",
            ),
            (
                "/.well-known/webfinger?a=b",
                301,
                &["Location: /nextcloud/index.php/.well-known/webfinger?a=b"],
                "",
            ),
            ("/nextcloud/config/config.php", 404, &["!X-Seen"], ""),
            ("/nextcloud/core/a.css", 200, &[], "nextcloud/core"),
        ],
    );
}
