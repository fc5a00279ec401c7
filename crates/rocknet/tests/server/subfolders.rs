//! Several applications in subfolders of one root, each with its own front controller.

use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::{Folder, Running};

#[test]
fn each_application_in_a_subfolder_has_its_own_front_controller() {
    let folder = Folder::with(&[
        ("www/index.php", "<?php"),
        // WordPress, whose folders below have empty index files.
        ("www/blog/index.php", "<?php"),
        ("www/blog/wp-load.php", "<?php"),
        ("www/blog/wp-content/index.php", "<?php // Silence is golden."),
        ("www/blog/wp-content/plugins/akismet/index.php", "<?php"),
        ("www/blog/wp-content/plugins/akismet/.htaccess", "Deny from all"),
        // A project with a public folder.
        ("www/shop/composer.json", "{}"),
        ("www/shop/public/index.php", "<?php"),
        ("www/shop/public/a.css", "a style"),
        // An application that names its front controller itself.
        ("www/forum/index.php", "<?php"),
        (
            "www/forum/.htaccess",
            "RewriteEngine On\nRewriteRule ^(.*)$ index.php/$1 [L]",
        ),
        ("www/forum/inner/wp-load.php", "<?php"),
        ("www/forum/inner/index.php", "<?php"),
        // No application.
        ("www/plain/index.php", "<?php"),
        ("www/plain/a/b/c/d/e/index.php", "<?php"),
        ("www/plain/a/b/c/d/e/wp-load.php", "<?php"),
        ("www/.hidden/index.php", "<?php"),
        ("www/.hidden/wp-load.php", "<?php"),
    ]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let script = incoming.variable("SCRIPT_NAME");
        write_to(
            stream,
            response(format!("Content-Type: text/plain\r\n\r\n{script}").as_bytes()),
        );
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\nroute.\"/closed/*\" = { fallback = false }\n";
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    for _ in 0..2 {
        for (path, expected) in [
            ("/", "/index.php"),
            ("/hello", "/index.php"),
            ("/2026/11/29/hello", "/index.php"),
            ("/blog/", "/blog/index.php"),
            ("/blog/2026/hello", "/blog/index.php"),
            ("/blog/wp-content/missing.css", "/blog/index.php"),
            ("/blog/wp-content/plugins/akismet/missing", "/blog/index.php"),
            ("/blog/Special:Search", "/blog/index.php"),
            ("/blog/wp-content/", "/blog/wp-content/index.php"),
            ("/shop/public/products/1", "/shop/public/index.php"),
            ("/shop/public/a.css", "a style"),
            ("/shop/missing", "/index.php"),
            ("/forum/topic", "/forum/index.php"),
            ("/forum/inner/topic", "/forum/inner/index.php"),
            ("/plain/missing", "/index.php"),
            // Deeper than applications are searched for.
            ("/plain/a/b/c/d/e/missing", "/index.php"),
            ("/blogs/x", "/index.php"),
        ] {
            assert_eq!(client.get(path).text(), expected, "{path}");
        }
        client.get("/.hidden/x").expect("a hidden folder", 404, &[]);
        client.get("/closed/x").expect("a route without a fallback", 404, &[]);
    }
}
