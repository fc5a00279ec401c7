//! Accel redirects: files that a script names in its response are sent like other files, and only from the roots of the
//! site.

use std::time::{Duration, Instant};

use super::support::fastcgi::{Next, Peer, SOCKET, response, write_to};
use super::support::{Folder, Running};

const TEXT: &str = "0123456789";

/// Starts a server whose script responds with the header fields in its query. They are separated by `|`, and `+` stands
/// for a space.
fn started() -> (Running, Peer) {
    let folder = Folder::with(&[
        ("www/index.php", ""),
        ("www/plain.txt", TEXT),
        ("www/sub folder/a%b.txt", TEXT),
        ("www/.secret", "hidden"),
        ("private/inside/report.txt", TEXT),
        ("secret.txt", "outside"),
        ("wwwx/beside.txt", "outside"),
    ]);
    folder.link("www/out.txt", folder.path("secret.txt"));
    folder.link("through", folder.path("www"));
    let peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let fields = incoming.variable("QUERY_STRING").replace('|', "\r\n").replace('+', " ");
        write_to(stream, response(format!("{fields}\r\n\r\nnot this").as_bytes()));
        Next::Keep
    });
    let keys = "php = \"unix:php.sock\"\nerrors = { 404 = \"/plain.txt\" }\n[site.default.route.\"/inside/*\"]\nroot = \"private\"\ninternal = true\n";
    (Running::site(folder, keys), peer)
}

#[test]
fn files_are_sent_with_conditions_ranges_and_the_fields_of_the_script() {
    let (server, _peer) = started();
    let root = server.folder.path("www").canonicalize().expect("a root");
    let (root, folder) = (root.display().to_string(), server.folder.path("").display().to_string());
    let etag = server
        .get("/plain.txt")
        .field("ETag")
        .map(str::to_owned)
        .expect("a tag");
    let mut client = server.connect();
    // `ROOT` stands for the folder `www`, `FOLDER` for the folder that contains it, with a final slash, and `TAG` for
    // the tag of `plain.txt`. The columns: query, request fields, status, response fields, and a part of the body.
    // An expected field with `!` must be absent.
    for (query, fields, status, expected, content) in [
        (
            "Content-Type:text/csv|X-Accel-Redirect:/plain.txt",
            &[][..],
            200,
            &[
                "Content-Type: text/csv",
                "!X-Accel-Redirect",
                "Accept-Ranges: bytes",
                "Content-Length: 10",
            ][..],
            TEXT,
        ),
        (
            "X-Accel-Redirect:/plain.txt",
            &[],
            200,
            &["Content-Type: text/plain; charset=utf-8"],
            TEXT,
        ),
        (
            "Content-Disposition:attachment|Set-Cookie:a|X-Accel-Redirect:/plain.txt?x",
            &["Range: bytes=2-4"],
            206,
            &[
                "Content-Disposition: attachment",
                "Content-Range: bytes 2-4/10",
                "Set-Cookie: a",
            ],
            "234",
        ),
        (
            "X-Accel-Redirect:/plain.txt",
            &["Range: bytes=20-"],
            416,
            &["Content-Range: bytes */10"],
            "",
        ),
        (
            "Content-Type:a/b|X-Accel-Redirect:/plain.txt",
            &["Range: bytes=0-1,5-6"],
            206,
            &[],
            "\r\n56\r\n",
        ),
        (
            "X-Accel-Redirect:/plain.txt",
            &["If-None-Match: TAG"],
            304,
            &["ETag: TAG", "!Content-Type"],
            "",
        ),
        ("X-Accel-Redirect:/plain.txt", &["If-Match: \"other\""], 412, &[], ""),
        // A range applies only to a response with status 200.
        (
            "Status:203|X-Accel-Redirect:/plain.txt",
            &["Range: bytes=2-4"],
            203,
            &[],
            TEXT,
        ),
        ("X-Accel-Redirect:/sub%20folder/a%25b.txt", &[], 200, &[], TEXT),
        ("X-Accel-Redirect:/inside/report.txt", &[], 200, &[], TEXT),
        (
            "X-Accel-Buffering:no|x-accel-redirect:/plain.txt|X-Accel-Expires:1",
            &[],
            200,
            &["!X-Accel-Buffering", "!X-Accel-Expires"],
            TEXT,
        ),
        (
            "X-Sendfile:ROOT/plain.txt",
            &[],
            200,
            &["!X-Sendfile", "ETag: TAG"],
            TEXT,
        ),
        ("X-Sendfile:FOLDERwww/plain.txt", &[], 200, &[], TEXT),
        ("X-Sendfile:FOLDERwww/sub+folder/a%b.txt", &[], 200, &[], TEXT),
        ("X-Sendfile:FOLDERprivate/inside/report.txt", &[], 200, &[], TEXT),
        // Hidden and missing files, files outside the roots, scripts, and names in the wrong form are refused. The body
        // is the error page of the site, which is `plain.txt`.
        ("X-Accel-Redirect:/.secret", &[], 404, &[], TEXT),
        ("X-Accel-Redirect:/out.txt", &[], 404, &[], TEXT),
        ("X-Accel-Redirect:/../secret.txt", &[], 404, &[], TEXT),
        ("X-Accel-Redirect:/%2e%2e/secret.txt", &[], 404, &[], TEXT),
        ("X-Accel-Redirect:plain.txt", &[], 404, &[], TEXT),
        ("X-Accel-Redirect:http://a/plain.txt", &[], 404, &[], TEXT),
        (
            "X-Accel-Redirect:/index.php?X-Accel-Redirect:/plain.txt",
            &[],
            404,
            &[],
            TEXT,
        ),
        ("X-Accel-Redirect:/nothing", &[], 404, &[], TEXT),
        ("X-Sendfile:FOLDERsecret.txt", &[], 404, &[], TEXT),
        ("X-Sendfile:FOLDERwww/../secret.txt", &[], 404, &[], TEXT),
        ("X-Sendfile:FOLDERwwwx/beside.txt", &[], 404, &[], TEXT),
        ("X-Sendfile:ROOT/out.txt", &[], 404, &[], TEXT),
        ("X-Sendfile:/etc/passwd", &[], 404, &[], TEXT),
        ("X-Sendfile:plain.txt", &[], 404, &[], TEXT),
    ] {
        let query = query.replace("ROOT", &root).replace("FOLDER", &folder);
        let expected: Vec<String> = expected.iter().map(|field| field.replace("TAG", &etag)).collect();
        let fields: Vec<String> = fields.iter().map(|field| field.replace("TAG", &etag)).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let response = client.fetch(&format!("GET /?{query}"), &fields);
        response.expect(&query, status, &expected);
        assert!(response.text().contains(content), "{query}: {response:?}");
        assert!(
            !response.text().contains("not this") && !response.text().contains("outside"),
            "{query}: {response:?}"
        );
    }
    // The file is sent regardless of the method of the request, without a body for HEAD.
    for (line, content) in [
        ("POST /?X-Accel-Redirect:/plain.txt", TEXT),
        ("HEAD /?X-Accel-Redirect:/plain.txt", ""),
    ] {
        let response = client.fetch(line, &["Content-Length: 0"]);
        response.expect(line, 200, &["Content-Length: 10"]);
        assert_eq!(response.text(), content, "{line}");
    }
    // Requests of clients for internal paths are refused.
    for path in ["/inside/report.txt", "/inside/", "/inside/none"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

over_http3! {
    files_are_sent_with_conditions_ranges_and_the_fields_of_the_script,
}

#[test]
fn the_bandwidth_of_the_route_of_the_file_applies() {
    let folder = Folder::with(&[("www/index.php", ""), ("www/slow/index.php", "")]);
    folder.write("private/inside/file.bin", vec![b'x'; 30_000]);
    folder.write("private/free/file.bin", vec![b'x'; 30_000]);
    folder.write("private/fast/file.bin", vec![b'x'; 30_000]);
    let _peer = Peer::start(&folder.path(SOCKET), |incoming, stream| {
        let fields = format!("X-Accel-Redirect: {}", incoming.variable("QUERY_STRING"));
        write_to(stream, response(format!("{fields}\r\n\r\nnot this").as_bytes()));
        Next::Keep
    });
    // The first 20,000 bytes leave at once, and the others take 250 ms.
    let limit = "limit = { bandwidth = \"40000B/s\", after = \"10000B\" }\n";
    let fast = "limit = { bandwidth = \"1GiB/s\", key = \"{request.header.X-Key}\" }\n";
    let keys = format!(
        "php = \"unix:php.sock\"\n[site.default.route.\"/slow/*\"]\n{limit}\
         [site.default.route.\"/inside/*\"]\nroot = \"private\"\ninternal = true\n{limit}\
         [site.default.route.\"/fast/*\"]\nroot = \"private\"\ninternal = true\n{fast}\
         [site.default.route.\"/free/*\"]\nroot = \"private\"\ninternal = true\n"
    );
    let server = Running::site(folder, &keys);
    for (path, is_limited) in [
        ("/index.php?/inside/file.bin", true),
        ("/index.php?/free/file.bin", false),
        ("/slow/index.php?/free/file.bin", true),
        ("/slow/index.php?/fast/file.bin", false),
    ] {
        let started = Instant::now();
        let got = server.get(path);
        let elapsed = started.elapsed();
        assert_eq!((got.status, got.text().len()), (200, 30_000), "{path}");
        // Without a limit, only a machine that is very busy takes as long.
        let bound = Duration::from_millis(if is_limited { 200 } else { 10_000 });
        assert_eq!(elapsed >= bound, is_limited, "{path}: {elapsed:?}");
    }
}
