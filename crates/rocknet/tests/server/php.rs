//! PHP over FastCGI, simulated by a scripted peer: which paths run a script, and the settings of routes.

mod requests;
mod responses;

use super::support::fastcgi::{Next, Peer, ReceivedRequest, SOCKET, response, write_to};
use super::support::http2::Http2;
use super::support::{Folder, Running};

over_http3! {
    paths_lead_to_scripts_files_and_the_front_controller,
    routes_and_other_keys_apply,
}

const PHP: &str = "php = \"unix:php.sock\"";

fn folder() -> Folder {
    Folder::with(&[
        ("www/index.php", "<?php secret"),
        ("www/a.php", "<?php secret"),
        ("www/b/index.php", "<?php secret"),
        ("www/c/index.html", "a page"),
        ("www/pic.jpg", "a picture"),
        ("www/code.phtml", "<?php secret"),
        ("www/UPPER.PHP", "<?php secret"),
        ("www/uploads/x.php", "<?php secret"),
        ("www/uploads/x.jpg", "a picture"),
        ("www/.hidden/x.php", "<?php secret"),
    ])
}

/// Returns a response with the variables, one per line, followed by the request body.
fn mirror(incoming: &ReceivedRequest) -> Vec<u8> {
    let mut text = String::from("Content-Type: text/plain\r\n\r\n");
    for (name, value) in &incoming.variables {
        text.push_str(&format!("{name}={value}\n"));
    }
    let mut text = text.into_bytes();
    text.extend_from_slice(&incoming.content);
    text
}

/// Starts a server whose scripts respond with their variables and the request body.
fn mirrored() -> (Running, Peer) {
    let folder = folder();
    let peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    (Running::site(folder, PHP), peer)
}

#[test]
fn paths_lead_to_scripts_files_and_the_front_controller() {
    let (server, _peer) = mirrored();
    let mut client = server.connect();
    // The second responses come from the worker cache.
    for _ in 0..2 {
        for (path, script, path_info) in [
            ("/", "/index.php", None),
            ("/index.php", "/index.php", None),
            ("/a.php", "/a.php", None),
            ("/a.php?x=1&y=%20", "/a.php", None),
            ("/a.php/", "/a.php", Some("/")),
            ("/a.php/b/c", "/a.php", Some("/b/c")),
            ("/a.php/x.php/y", "/a.php", Some("/x.php/y")),
            ("/a.php/Special:Search", "/a.php", Some("/Special:Search")),
            // After a script, names with a leading dot are not names of files.
            ("/a.php/dav/.bashrc", "/a.php", Some("/dav/.bashrc")),
            (
                "/index.php/.well-known/webfinger",
                "/index.php",
                Some("/.well-known/webfinger"),
            ),
            ("/b/", "/b/index.php", None),
            ("/nothing/here", "/index.php", None),
            ("/wiki/Special:Search", "/index.php", None),
            ("/missing.php", "/index.php", None),
            ("/missing.php/a", "/index.php", None),
            ("/pic.jpg/x.php", "/index.php", None),
            ("/pic.jpg%2Fx.php", "/index.php", None),
            ("/c/x/../../a.php", "/a.php", None),
            ("//a.php", "/a.php", None),
        ] {
            let text = client.get(path).text();
            let has = |line: String| text.lines().any(|found| found == line);
            assert!(has(format!("SCRIPT_NAME={script}")), "{path}: {text}");
            let root = server.folder.path("www").canonicalize().expect("the root");
            assert!(
                has(format!("SCRIPT_FILENAME={}{script}", root.display())),
                "{path}: {text}"
            );
            assert!(has(format!("DOCUMENT_ROOT={}", root.display())), "{path}: {text}");
            assert!(has(format!("REQUEST_URI={path}")), "{path}: {text}");
            assert!(has(format!(
                "QUERY_STRING={}",
                path.split_once('?').map_or("", |(_, query)| query)
            )));
            match path_info {
                Some(info) => assert!(has(format!("PATH_INFO={info}")), "{path}: {text}"),
                None => assert!(!text.contains("PATH_INFO="), "{path}: {text}"),
            }
        }
        for (path, status, content) in [
            ("/pic.jpg", 200, "a picture"),
            ("/uploads/x.jpg", 200, "a picture"),
            ("/c/", 200, "a page"),
            ("/c", 308, ""),
            ("/uploads/x.php", 403, ""),
            ("/uploads/x.php/y", 403, ""),
            ("/code.phtml", 403, ""),
            ("/UPPER.PHP", 403, ""),
            ("/.hidden/x.php", 404, ""),
            ("/.hidden/x.php/.y", 404, ""),
            ("/missing.php/.y", 404, ""),
            ("/c/.hidden/a.php/.y", 404, ""),
            ("/.hidden/x.php/Special:y", 404, ""),
        ] {
            let response = client.get(path);
            // A path below a script may get any status, as long as the script is neither run nor sent.
            let status = if path.contains("x.php/") {
                response.status
            } else {
                status
            };
            assert_eq!(response.status, status, "{path}: {response:?}");
            assert!(content.is_empty() || response.text() == content, "{path}: {response:?}");
            assert!(!response.text().contains("<?php"), "{path}: the source was sent");
            assert!(
                !response.text().contains("SCRIPT_NAME=/uploads"),
                "{path}: the script was run"
            );
            assert!(
                !response.text().contains("SCRIPT_NAME=/.hidden"),
                "{path}: the script was run"
            );
        }
    }
    for (line, status) in [
        ("POST /a.php", 200),
        ("PUT /a.php/x", 200),
        ("PUT /a.php/.x", 200),
        ("OPTIONS /a.php", 200),
        ("BREW /nothing", 200),
        ("POST /pic.jpg", 405),
        ("OPTIONS /pic.jpg", 204),
        ("TRACE /a.php", 405),
    ] {
        assert_eq!(client.fetch(line, &[]).status, status, "{line}");
    }
}

#[test]
fn routes_and_other_keys_apply() {
    let folder = folder();
    folder.write("www/app.php", "<?php secret");
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    let keys = format!(
        "{PHP}\nfallback = \"/app.php\"\nindex = [\"a.php\"]\nerrors = {{ 403 = \"/a.php\" }}\n\
         [site.default.route.\"/b/*\"]\nphp = false\n[site.default.route.\"/none/*\"]\ntry = [\"{{path}}\"]\nroot = \"www/c\"\n"
    );
    let server = Running::site(folder, &keys);
    for (path, status, content) in [
        ("/", 200, "SCRIPT_NAME=/a.php\n"),
        ("/nothing", 200, "SCRIPT_NAME=/app.php\n"),
        // Scripts are served as files if their route does not run PHP.
        ("/b/index.php", 200, "<?php secret"),
        // If an error page is a script, the built-in page is sent instead of its source.
        ("/UPPER.PHP", 403, "<h1>"),
        ("/none/x", 404, "<h1>"),
    ] {
        let response = server.get(path);
        assert_eq!(response.status, status, "{path}: {response:?}");
        assert!(response.text().contains(content), "{path}: {}", response.text());
    }
    // A replaced script is run, and is served as a file after a reload that turns PHP off.
    server.folder.remove("www/a.php");
    server.folder.write("www/a.php", "<?php other");
    assert_eq!(server.get("/a.php").status, 200);
    server
        .reload(&super::support::running::site("php = false"))
        .expect("a reload");
    assert_eq!(server.get("/a.php").text(), "<?php other");
}

#[test]
fn scripts_are_served_over_http2() {
    let folder = folder();
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        write_to(stream, response(&mirror(incoming)));
        Next::Keep
    });
    let text = format!(
        "[server]\nh2c = true\nworkers = 1\n{}",
        super::support::running::site(PHP)
    );
    let server = Running::start(folder, &text);
    let mut client = Http2::to(server.address());
    let page = String::from_utf8(client.get("/nothing/here").content).expect("text");
    assert!(
        page.contains("SERVER_PROTOCOL=HTTP/2.0\n") && page.contains("SCRIPT_NAME=/index.php\n"),
        "{page}"
    );
    assert!(page.contains(&format!("HTTP_HOST={}\n", server.address())), "{page}");
    let content = vec![b'x'; 1 << 20];
    let builder = client.request("POST", "/a.php").header("content-length", content.len());
    let response = client.send(builder, &content).expect("a response");
    assert!(
        response.status == 200 && response.content.ends_with(&content),
        "{}",
        response.content.len()
    );
}
