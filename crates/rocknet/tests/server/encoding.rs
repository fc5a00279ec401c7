//! Content codings: precompressed files, and responses that the server compresses.

use std::io::Read;

use super::support::{Client, Folder, ReceivedResponse, Running};

/// Returns a text of `size` bytes that compresses well.
fn text(size: usize) -> String {
    let mut text = String::new();
    while text.len() < size {
        text.push_str(&format!("line {} of a text that repeats itself\n", text.len()));
    }
    text.truncate(size);
    text
}

fn decode(response: &ReceivedResponse, what: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    match response.field("Content-Encoding") {
        None => decoded = response.body.clone(),
        Some("br") => drop(
            brotli::Decompressor::new(&*response.body, 4096)
                .read_to_end(&mut decoded)
                .expect(what),
        ),
        Some("zstd") => decoded = zstd::stream::decode_all(&*response.body).expect(what),
        Some("gzip") => drop(
            flate2::read::GzDecoder::new(&*response.body)
                .read_to_end(&mut decoded)
                .expect(what),
        ),
        Some(other) => panic!("{what}: {other}"),
    }
    decoded
}

/// Requests `path` with an `Accept-Encoding`, and asserts the coding, the entity tag and the decoded body of the
/// response. An empty `coding` stands for a response without a content coding.
#[track_caller]
fn check(client: &mut Client, path: &str, accept: Option<&str>, coding: &str, content: &str) {
    let what = format!("{path} {accept:?}");
    let accept: Vec<String> = accept
        .iter()
        .map(|accept| format!("Accept-Encoding: {accept}"))
        .collect();
    let fields: Vec<&str> = accept.iter().map(String::as_str).collect();
    let response = client.fetch(&format!("GET {path}"), &fields);
    response.expect(
        &what,
        200,
        &["Vary: Accept-Encoding", "Content-Type: text/plain; charset=utf-8"],
    );
    assert_eq!(response.field("Content-Encoding").unwrap_or_default(), coding, "{what}");
    assert!(
        decode(&response, &what) == content.as_bytes(),
        "{what}: the decoded body differs"
    );
    let etag = response.field("ETag").expect("a tag").to_owned();
    let suffix = match coding {
        "" => "",
        "gzip" => "-gz\"",
        "zstd" => "-zst\"",
        _ => "-br\"",
    };
    assert!(etag.starts_with('"') && etag.ends_with(suffix), "{what}: {etag}");
    // The tag of the file itself has one hyphen and no suffix for a coding.
    assert!(!coding.is_empty() || etag.matches('-').count() == 1, "{what}: {etag}");
    if !coding.is_empty() {
        assert!(
            response.body.len() < content.len(),
            "{what}: {} bytes",
            response.body.len()
        );
    }

    // Responses to HEAD and with status 304 have the same validators.
    let tag = format!("ETag: {etag}");
    let head = client.fetch(&format!("HEAD {path}"), &fields);
    head.expect(&what, 200, &[&tag, "Vary: Accept-Encoding"]);
    assert_eq!(
        head.field("Content-Encoding").unwrap_or_default(),
        coding,
        "HEAD {what}"
    );
    let condition = format!("If-None-Match: {etag}");
    let again: Vec<&str> = fields.iter().copied().chain([&*condition]).collect();
    client.fetch(&format!("GET {path}"), &again).expect(
        &what,
        304,
        &[&tag, "Vary: Accept-Encoding", "!Content-Encoding"],
    );
}

#[test]
fn the_coding_is_chosen_by_accept_encoding() {
    // The small file is cached in memory, and the large one is read while it is sent.
    let (small, large) = (text(10_000), text(300_000));
    let server = Running::site(
        Folder::with(&[("www/small.txt", &small), ("www/large.txt", &large)]),
        "",
    );
    let mut client = server.connect();
    for (accept, coding) in [
        (Some("br"), "br"),
        (Some("zstd"), "zstd"),
        (Some("gzip"), "gzip"),
        (Some("x-gzip"), "gzip"),
        (Some("gzip, deflate, br, zstd"), "br"),
        (Some("gzip, zstd"), "zstd"),
        (Some("GZip;Q=1.0"), "gzip"),
        (Some("br;q=0.5, gzip;q=0.9"), "gzip"),
        (Some("br;q=0, gzip"), "gzip"),
        (Some("br;q=0,zstd;q=0,gzip;q=0"), ""),
        (Some("*"), "br"),
        (Some("identity"), ""),
        (Some("deflate"), ""),
        (Some(""), ""),
        (None, ""),
    ] {
        for (path, content) in [("/small.txt", &small), ("/large.txt", &large)] {
            check(&mut client, path, accept, coding, content);
        }
    }
}

#[test]
fn each_coding_has_its_own_entity_tag() {
    let (small, large) = (text(10_000), text(300_000));
    let server = Running::site(
        Folder::with(&[("www/small.txt", &small), ("www/large.txt", &large)]),
        "",
    );
    let mut client = server.connect();
    for path in ["/small.txt", "/large.txt"] {
        let line = format!("GET {path}");
        let plain = client.fetch(&line, &[]).field("ETag").expect("a tag").to_owned();
        let br = client
            .fetch(&line, &["Accept-Encoding: br"])
            .field("ETag")
            .expect("a tag")
            .to_owned();
        assert_ne!(plain, br, "{path}");
        let (plain, br) = (format!("If-None-Match: {plain}"), format!("If-None-Match: {br}"));
        for (condition, accept, status) in [
            (&plain, "Accept-Encoding: identity", 304),
            (&br, "Accept-Encoding: br", 304),
            (&plain, "Accept-Encoding: br", 200),
            (&br, "Accept-Encoding: identity", 200),
            (&br, "Accept-Encoding: gzip", 200),
        ] {
            client
                .fetch(&line, &[condition, accept])
                .expect(&format!("{path} {condition} {accept}"), status, &[]);
        }
    }
}

#[test]
fn some_responses_are_never_compressed() {
    let folder = Folder::with(&[
        ("www/1023.txt", &text(1023)),
        ("www/1024.txt", &text(1024)),
        ("www/image.png", &text(10_000)),
        ("www/none", &text(10_000)),
        ("www/off/a.txt", &text(10_000)),
        ("www/as-is/a.txt", &text(10_000)),
        ("www/as-is/large.txt", &text(300_000)),
    ]);
    // Random bytes do not compress.
    let mut state = 1_u64;
    let noise: Vec<u8> = (0..5000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    folder.write("www/noise.txt", &noise);
    let keys = "route.\"/off/*\" = { compress = false }\nroute.\"/as-is/*\" = { headers = { \"Cache-Control\" = \"max-age=1, no-transform\" } }";
    let server = Running::site(folder, keys);
    let mut client = server.connect();
    // The server compresses responses of at least 1,024 bytes. `varies`: true if the response has the field `Vary`.
    for (path, coding, varies) in [
        ("/1023.txt", None, false),
        ("/1024.txt", Some("br"), true),
        ("/image.png", None, false),
        ("/none", None, false),
        ("/off/a.txt", None, false),
        ("/as-is/a.txt", None, false),
        ("/as-is/large.txt", None, false),
        ("/noise.txt", None, true),
    ] {
        for _ in 0..2 {
            let response = client.fetch(&format!("GET {path}"), &["Accept-Encoding: br, gzip, zstd"]);
            response.expect(path, 200, &[if varies { "Vary: Accept-Encoding" } else { "!Vary" }]);
            assert_eq!(response.field("Content-Encoding"), coding, "{path}");
        }
    }
    assert!(client.fetch("GET /noise.txt", &["Accept-Encoding: br"]).body == noise);
}

#[test]
fn ranges_apply_to_the_identity_coding() {
    let (small, large) = (text(10_000), text(300_000));
    let folder = Folder::with(&[
        ("www/small.txt", &small),
        ("www/large.txt", &large),
        ("www/beside.txt", &small),
    ]);
    folder.write("www/beside.txt.br", "encoded");
    let server = Running::site(folder, "");
    let mut client = server.connect();
    for (path, content) in [("/small.txt", &small), ("/large.txt", &large), ("/beside.txt", &small)] {
        let line = format!("GET {path}");
        let plain = client.fetch(&line, &[]).field("ETag").expect("a tag").to_owned();
        let response = client.fetch(&line, &["Accept-Encoding: br, gzip", "Range: bytes=100-199"]);
        response.expect(
            path,
            206,
            &["!Content-Encoding", &format!("ETag: {plain}"), "Vary: Accept-Encoding"],
        );
        assert_eq!(response.text(), content[100..200], "{path}");
        let encoded = client.fetch(&line, &["Accept-Encoding: br"]);
        let br = format!(
            "If-Range: {}",
            encoded
                .expect(path, 200, &["!Accept-Ranges"])
                .field("ETag")
                .expect("a tag")
        );
        // A range of another coding would corrupt the copy of the client, so the whole response is sent.
        let response = client.fetch(&line, &["Accept-Encoding: br", "Range: bytes=100-199", &br]);
        response.expect(path, 200, &["!Content-Range"]);
    }
}

#[test]
fn precompressed_files_are_used() {
    let plain = text(5000);
    let folder = Folder::with(&[
        ("www/all.txt", &plain),
        ("www/all.txt.br", "br beside"),
        ("www/all.txt.zst", "zstd beside"),
        ("www/all.txt.gz", "gzip beside"),
        ("www/gzip.txt", &plain),
        ("www/gzip.txt.gz", "gzip beside"),
        ("www/tiny.txt", "tiny"),
        ("www/tiny.txt.br", "br beside"),
        ("www/old.txt.br", "left over"),
        ("www/old.txt", &plain),
        ("www/large.txt", &text(100_000)),
        ("www/large.txt.br", &text(60_000)),
        ("www/folder.txt", &plain),
        ("www/folder.txt.br/x", "a folder"),
    ]);
    // A precompressed file that is older than the file itself is not used.
    folder.date("www/old.txt.br", 1_000_000_000);
    let server = Running::site(folder, "");
    let mut client = server.connect();
    // A row without a body is for a file that the server compresses itself.
    for (path, accept, coding, content) in [
        ("/all.txt", "br, zstd, gzip", Some("br"), Some("br beside")),
        ("/all.txt", "zstd, gzip", Some("zstd"), Some("zstd beside")),
        ("/all.txt", "gzip", Some("gzip"), Some("gzip beside")),
        ("/all.txt", "identity", None, Some(&*plain)),
        // Precompressed files take precedence over compression by the server.
        ("/gzip.txt", "br, gzip", Some("gzip"), Some("gzip beside")),
        ("/gzip.txt", "br", Some("br"), None),
        ("/tiny.txt", "br", Some("br"), Some("br beside")),
        ("/tiny.txt", "gzip", None, Some("tiny")),
        ("/old.txt", "br", Some("br"), None),
        ("/large.txt", "br", Some("br"), Some(&text(60_000))),
        ("/folder.txt", "br", Some("br"), None),
    ] {
        for _ in 0..2 {
            let what = format!("{path} {accept}");
            let response = client.fetch(&format!("GET {path}"), &[&format!("Accept-Encoding: {accept}")]);
            response.expect(&what, 200, &["Vary: Accept-Encoding"]);
            assert_eq!(response.field("Content-Encoding"), coding, "{what}");
            match content {
                Some(content) => assert_eq!(response.text(), content, "{what}"),
                None => assert!(decode(&response, &what) == plain.as_bytes(), "{what}: compressed again"),
            }
        }
    }
}

over_http3! {
    the_coding_is_chosen_by_accept_encoding,
    each_coding_has_its_own_entity_tag,
    some_responses_are_never_compressed,
    ranges_apply_to_the_identity_coding,
    precompressed_files_are_used,
}
