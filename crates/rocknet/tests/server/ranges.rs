//! Range requests (RFC 9110 §14): single, multiple and unsatisfiable ranges, and large files.

use super::files::{BEFORE, CHANGED_TEXT, check, digits, etag};
use super::support::Running;
use super::support::client::request;

#[test]
fn single_ranges_are_served() {
    let server = Running::site(digits(), "");
    let etag = etag();
    let (if_range, weak) = (format!("If-Range: {etag}"), format!("If-Range: W/{etag}"));
    let (dated, before) = (format!("If-Range: {CHANGED_TEXT}"), format!("If-Range: {BEFORE}"));
    let tag = format!("ETag: {etag}");
    // More ranges than the server accepts.
    let many = format!("Range: bytes={}", vec!["0-0"; 17].join(","));
    let whole = Some("0123456789");
    let part = |range: &'static str| [range, "Accept-Ranges: bytes", "Content-Type: text/plain; charset=utf-8"];
    check(
        &mut server.connect(),
        &[
            (
                "GET /digits.txt",
                &["Range: bytes=0-3"],
                206,
                &part("Content-Range: bytes 0-3/10"),
                Some("0123"),
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=4-"],
                206,
                &part("Content-Range: bytes 4-9/10"),
                Some("456789"),
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=-3"],
                206,
                &part("Content-Range: bytes 7-9/10"),
                Some("789"),
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=-30"],
                206,
                &part("Content-Range: bytes 0-9/10"),
                whole,
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=9-99"],
                206,
                &[&tag, "Content-Length: 1"],
                Some("9"),
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=10-"],
                416,
                &["Content-Range: bytes */10"],
                None,
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=-0"],
                416,
                &["Content-Range: bytes */10"],
                None,
            ),
            (
                "GET /empty.txt",
                &["Range: bytes=0-"],
                416,
                &["Content-Range: bytes */0"],
                None,
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=3-1"],
                200,
                &["!Content-Range"],
                whole,
            ),
            (
                "GET /digits.txt",
                &["Range: lines=0-1"],
                200,
                &["!Content-Range"],
                whole,
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=a-b"],
                200,
                &["!Content-Range"],
                whole,
            ),
            // Overlapping ranges, too many ranges, and two fields are ignored.
            (
                "GET /digits.txt",
                &["Range: bytes=0-5,3-9"],
                200,
                &["!Content-Range"],
                whole,
            ),
            ("GET /digits.txt", &[&many], 200, &["!Content-Range"], whole),
            (
                "GET /digits.txt",
                &["Range: bytes=0-1", "Range: bytes=2-3"],
                200,
                &["!Content-Range"],
                whole,
            ),
            // Ranges are defined only for GET (RFC 9110 §14.2).
            (
                "HEAD /digits.txt",
                &["Range: bytes=0-3"],
                200,
                &["Content-Length: 10"],
                Some(""),
            ),
            (
                "GET /digits.txt",
                &["Range: bytes=0-3", &if_range],
                206,
                &[],
                Some("0123"),
            ),
            ("GET /digits.txt", &["Range: bytes=0-3", &dated], 206, &[], Some("0123")),
            ("GET /digits.txt", &["Range: bytes=0-3", &weak], 200, &[], whole),
            ("GET /digits.txt", &["Range: bytes=0-3", &before], 200, &[], whole),
            (
                "GET /digits.txt",
                &["Range: bytes=0-3", "If-Range: \"x\""],
                200,
                &[],
                whole,
            ),
        ],
    );
}

#[test]
fn multiple_ranges_are_sent_as_parts() {
    let folder = digits();
    // The file is too large for the cache, so its ranges are sent from the open file.
    folder.write("www/large.txt", "0123456789".repeat(10_000));
    let server = Running::site(folder, "");
    let mut client = server.connect();
    for (path, size) in [("/digits.txt", 10), ("/large.txt", 100_000)] {
        let response = client.fetch(&format!("GET {path}"), &["Range: bytes=0-1,5-6"]);
        response.expect(path, 206, &["ETag", "!Content-Range"]);
        let kind = response.field("Content-Type").unwrap_or_default();
        let boundary = kind
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap_or_else(|| panic!("{path}: {kind}"));
        let part = |range: &str, content: &str| {
            let range = format!("Content-Range: bytes {range}/{size}");
            format!("--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n{range}\r\n\r\n{content}\r\n")
        };
        let expected = format!("{}{}--{boundary}--", part("0-1", "01"), part("5-6", "56"));
        assert_eq!(
            response.text().trim_start_matches("\r\n").trim_end_matches("\r\n"),
            expected,
            "{path}"
        );
        assert_eq!(
            client.get("/digits.txt").text(),
            "0123456789",
            "the connection must be kept"
        );
    }
}

#[test]
fn large_files_arrive_complete() {
    let folder = digits();
    let content: Vec<u8> = (0..3_000_001_u32).map(|number| (number % 251) as u8).collect();
    folder.write("www/large.bin", &content);
    let server = Running::site(folder, "");
    let mut client = server.connect();
    for (fields, status, from, to) in [
        (&[][..], 200, 0, content.len()),
        (&["Range: bytes=1048575-2097153"], 206, 1_048_575, 2_097_154),
        (&["Range: bytes=-1"], 206, 3_000_000, 3_000_001),
    ] {
        let response = client.fetch("GET /large.bin", fields);
        assert_eq!(response.status, status);
        assert!(
            response.body == content[from..to],
            "{fields:?}: {} bytes that differ",
            response.body.len()
        );
    }
    client
        .fetch("HEAD /large.bin", &[])
        .expect("HEAD", 200, &["Content-Length: 3000001"]);
    assert_eq!(client.get("/empty.txt").text(), "");
}

#[test]
fn a_file_can_be_replaced_or_truncated_while_it_is_sent() {
    const SIZE: usize = 24 << 20;
    for replaced in [true, false] {
        let folder = digits();
        folder.sparse("www/large.bin", SIZE as u64);
        let server = Running::site(folder, "");
        let mut client = server.connect();
        client.send(request("GET /large.bin", &[]));
        client.head();
        if replaced {
            server.folder.write("new", "another");
            server.folder.rename("new", "www/large.bin");
            let content = client.bytes(SIZE);
            assert!(
                content.iter().all(|&byte| byte == 0),
                "the response must be completed from the file with which it began"
            );
            assert_eq!(client.get("/digits.txt").text(), "0123456789");
        } else {
            server.folder.write("www/large.bin", "cut short");
            assert!(client.rest().len() < SIZE, "more bytes were sent than the file has");
        }
        assert_eq!(
            server.get("/digits.txt").text(),
            "0123456789",
            "the server must continue to work"
        );
    }
}

over_http3! {
    single_ranges_are_served,
    multiple_ranges_are_sent_as_parts,
    large_files_arrive_complete,
    a_file_can_be_replaced_or_truncated_while_it_is_sent,
}
