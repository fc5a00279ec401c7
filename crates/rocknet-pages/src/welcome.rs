//! The welcome page of a new installation, which shows the address, the folder, the configuration file, and the next
//! commands.

use super::text::{push_html, push_template};

/// Data of the server that the page shows.
#[derive(Debug, Clone, Copy)]
pub struct Welcome<'a> {
    /// Listening address, as a URL (`http://127.0.0.1:8080`) or an address (`127.0.0.1:8080`).
    pub listen: &'a str,
    /// Path of the configuration file; `None` without a configuration file.
    pub config_path: Option<&'a str>,
    /// Folder whose `index.html` would replace this page; `None` if there is no such folder.
    pub root: Option<&'a str>,
    /// Version of RockNet.
    pub version: &'a str,
}

/// Returns the page as HTML.
pub fn html(welcome: &Welcome<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(PAGE.len() + STYLE.len() + 2 * LOGO.len() + RESERVE);
    push_template(&mut out, PAGE, |key, out| match key {
        "style" => out.extend_from_slice(STYLE.as_bytes()),
        "big" => push_logo(out, "big"),
        "mark" => push_logo(out, "mark"),
        "version" => push_html(out, welcome.version),
        "listen" => push_html(out, welcome.listen),
        "url" => push_url(out, welcome.listen),
        "root" => match welcome.root {
            Some(root) => push_code(out, "", root, ": an <code>index.html</code> in it replaces this page."),
            None => out.extend_from_slice(b"none yet. This page is part of the program."),
        },
        "config" => match welcome.config_path {
            Some(path) => push_code(out, "", path, ""),
            None => out.extend_from_slice(
                b"none yet. RockNet looks for <code>./rocknet.toml</code>, then \
                <code>/etc/rocknet/rocknet.toml</code>.",
            ),
        },
        "place" => match welcome.config_path {
            Some(path) => push_code(out, "Add this to ", path, ", then reload:"),
            None => out.extend_from_slice(
                b"Save this as <code>rocknet.toml</code> where you are, then stop the server and type \
                <code>rocknet</code>:",
            ),
        },
        _ => {}
    });
    out
}

/// Appends a path as code between two texts that are already HTML.
fn push_code(out: &mut Vec<u8>, before: &str, path: &str, after: &str) {
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(b"<code>");
    push_html(out, path);
    out.extend_from_slice(b"</code>");
    out.extend_from_slice(after.as_bytes());
}

/// Appends the listening address as a URL, for the command `rocknet explain`.
fn push_url(out: &mut Vec<u8>, listen: &str) {
    if !listen.contains("://") {
        out.extend_from_slice(b"http://");
    }
    push_html(out, listen.trim_end_matches('/'));
    out.push(b'/');
}

/// Appends the logo with a CSS class.
fn push_logo(out: &mut Vec<u8>, class: &str) {
    push_template(out, LOGO.trim_end(), |_, out| out.extend_from_slice(class.as_bytes()));
}

/// Number of bytes reserved for paths and addresses of ordinary length. Some of them appear twice.
const RESERVE: usize = 1024;

const PAGE: &str = include_str!("assets/welcome.html");
const LOGO: &str = include_str!("assets/logo.svg");
const STYLE: &str = concat!(include_str!("assets/base.css"), include_str!("assets/welcome.css"));

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the page in bytes. With its header section, the page fits into the ten segments that a new
    /// connection may send before the first acknowledgement.
    const PAGE_LIMIT: usize = 12 * 1024;

    const FRESH: Welcome<'_> = Welcome {
        listen: "http://127.0.0.1:8080",
        config_path: None,
        root: None,
        version: "0.1.0",
    };

    fn page(welcome: &Welcome<'_>) -> String {
        String::from_utf8(html(welcome)).unwrap()
    }

    #[test]
    fn the_page_shows_the_server_data() {
        let rows = [
            (FRESH, "<dd><code>http://127.0.0.1:8080</code></dd>"),
            (FRESH, "<small>0.1.0</small>"),
            (FRESH, "<dt>Folder</dt><dd>none yet."),
            (
                FRESH,
                "<dt>Settings</dt><dd>none yet. RockNet looks for <code>./rocknet.toml</code>",
            ),
            (FRESH, "<p>Save this as <code>rocknet.toml</code>"),
            (FRESH, "<dt>rocknet explain http://127.0.0.1:8080/</dt>"),
            (
                Welcome {
                    listen: "[::1]:8080",
                    ..FRESH
                },
                "<dt>rocknet explain http://[::1]:8080/</dt>",
            ),
            (
                Welcome {
                    listen: "http://localhost/",
                    ..FRESH
                },
                "<dt>rocknet explain http://localhost/</dt>",
            ),
            (
                Welcome {
                    root: Some("/srv/www"),
                    ..FRESH
                },
                "<dt>Folder</dt><dd><code>/srv/www</code>: an <code>index.html</code>",
            ),
            (
                Welcome {
                    config_path: Some("/etc/r.toml"),
                    ..FRESH
                },
                "<dt>Settings</dt><dd><code>/etc/r.toml</code></dd>",
            ),
            (
                Welcome {
                    config_path: Some("/etc/r.toml"),
                    ..FRESH
                },
                "<p>Add this to <code>/etc/r.toml</code>, then reload:</p>",
            ),
        ];
        for (welcome, expected) in rows {
            let page = page(&welcome);
            assert!(page.contains(expected), "{expected} not in {page}");
        }
    }

    #[test]
    fn the_page_names_the_next_commands() {
        let page = page(&FRESH);
        for expected in [
            "rocknet serve ./my-site</pre>",
            "[site.\":8081\"]\nroot = \"./my-site\"\n",
            "rocknet check",
            ">reload<",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }

    #[test]
    fn the_page_is_self_contained() {
        let page = page(&Welcome {
            root: Some("/srv/www"),
            config_path: Some("/etc/rocknet/rocknet.toml"),
            ..FRESH
        });
        assert!(page.len() < PAGE_LIMIT, "{} bytes", page.len());
        assert!(!page.contains("{{"), "a placeholder was not replaced");
        for forbidden in ["<script", "@import", "src=", "url(", "<a "] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert_eq!(page.matches("<main>").count(), 1);
    }

    /// The rules keep every element within the screen of a phone: long paths are broken, and the logo is clipped.
    #[test]
    fn the_style_has_the_rules_for_phones() {
        let page = page(&FRESH);
        for rule in ["html,body{overflow-x:clip}", "\ncode{overflow-wrap:anywhere}", "pre{"] {
            assert!(page.contains(rule), "{rule}");
        }
        assert!(page.contains("width=device-width"));
    }

    #[test]
    fn paths_are_escaped() {
        let evil = "/srv/<script>alert(1)</script>{{style}}";
        let page = page(&Welcome {
            listen: evil,
            config_path: Some(evil),
            root: Some(evil),
            version: evil,
        });
        assert!(!page.contains("<script"), "{page}");
        // The page shows the version and the root once, and the address and the path of the configuration twice.
        assert_eq!(
            page.matches("&lt;script&gt;alert(1)&lt;/script&gt;{{style}}").count(),
            6
        );
    }
}
