//! The rules of `docs/php.md` for a network of sites in subfolders, with files in the places of those of WordPress.

use std::fs;

use super::{Example, client::Client, repository, text};

/// Beginning of the paragraph before the rules.
const PARAGRAPH: &str = "A network of sites in subfolders";
const SCRIPT: &str = "<?php echo $_SERVER['REQUEST_URI'], ' by ', $_SERVER['SCRIPT_NAME'];";

/// Returns the configuration in the documentation, for the port of the example.
fn settings() -> String {
    let page = text(&repository().join("docs/php.md"));
    let (_, rest) = page.split_once(PARAGRAPH).expect("the paragraph");
    let block = rest.split("```").nth(1).expect("a block");
    let block = block.trim_start_matches("toml").replace("\"example.com\"", "\":8080\"");
    block.replace("/var/www/example", "www")
}

#[test]
fn sites_of_a_network_share_the_files_of_one_wordpress() {
    let running = Example::of("wordpress", &settings());
    let www = running.folder.path().join("wordpress/www");
    for (name, content) in [
        ("index.php", SCRIPT),
        ("wp-login.php", SCRIPT),
        ("wp-admin/index.php", SCRIPT),
        ("wp-admin/post.php", SCRIPT),
        ("wp-includes/a.css", "a{}"),
        ("wp-content/uploads/x.php", SCRIPT),
    ] {
        let file = www.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, content).expect("a file");
    }
    let mut client = Client::to(running.ports[&8080]);
    for (path, script) in [
        ("/blog/hello-world/", "/index.php"),
        ("/blog/wp-login.php?a=b", "/wp-login.php"),
        ("/blog/wp-admin/", "/wp-admin/index.php"),
        ("/blog/wp-admin/post.php", "/wp-admin/post.php"),
        ("/wp-admin/post.php", "/wp-admin/post.php"),
    ] {
        let response = client.get(path);
        response.expect(path, 200, &[]);
        assert_eq!(response.text(), format!("{path} by {script}"));
    }
    for (path, status, fields) in [
        ("/blog/wp-admin", 308, "Location: /blog/wp-admin/"),
        ("/blog/wp-includes/a.css", 200, "Content-Type: text/css; charset=utf-8"),
        ("/blog/wp-content/uploads/x.php", 403, "!Location"),
    ] {
        client.get(path).expect(path, status, &[fields]);
    }
}
