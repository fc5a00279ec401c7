//! The access log of a site: one line an answer, true to what went out, whatever the client put into its request.

use std::fs;

use super::support::folder::Folder;
use super::support::running::Running;

const LARGE: u64 = 64 << 20;

/// Starts, lets `talk` have its way, stops; gives the log's lines.
fn lines(format: &str, talk: impl FnOnce(&Running)) -> Vec<String> {
    let folder = Folder::with(&[("www/a.txt", "hello"), ("www/index.html", "<p>home")]);
    folder.sparse("www/large.bin", LARGE);
    let log = folder.path("access.log");
    let keys = format!("log = {{ access = \"{}\", format = \"{format}\" }}", log.display());
    let server = Running::site(folder, &keys);
    talk(&server);
    let (server, _folder) = server.take();
    server.stop();
    fs::read_to_string(&log)
        .expect("an access log")
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_answer_has_its_line() {
    let told = lines("combined", |server| {
        let mut client = server.connect();
        client.get("/a.txt").expect("from the disk", 200, &[]);
        client.get("/a.txt").expect("from memory", 200, &[]);
        client.ask("HEAD /a.txt", &[]).expect("no content", 200, &[]);
        client.get("/none?x=1").expect("missing", 404, &[]);
        client
            .ask("GET /a.txt", &["Referer: http://r/", "User-Agent: Me \"x\""])
            .expect("fields", 200, &[]);
        client
            .ask("GET /a.txt", &["Range: bytes=1-2"])
            .expect("a part", 206, &[]);
        assert_eq!(client.get("/large.bin").body.len() as u64, LARGE);
    });
    let rest: Vec<&str> = told
        .iter()
        .map(|line| line.split_once("] ").expect("a time").1)
        .collect();
    assert!(told.iter().all(|line| line.starts_with("127.0.0.1 - - [")), "{told:?}");
    let missing = rest[3].split(' ').nth(4).and_then(|bytes| bytes.parse::<u64>().ok());
    assert!(
        rest[3].starts_with("\"GET /none?x=1 HTTP/1.1\" 404 ") && missing > Some(100),
        "{}",
        rest[3]
    );
    let expected = [
        "\"GET /a.txt HTTP/1.1\" 200 5 \"-\" \"-\"",
        "\"GET /a.txt HTTP/1.1\" 200 5 \"-\" \"-\"",
        "\"HEAD /a.txt HTTP/1.1\" 200 - \"-\" \"-\"",
        rest[3],
        "\"GET /a.txt HTTP/1.1\" 200 5 \"http://r/\" \"Me \\x22x\\x22\"",
        "\"GET /a.txt HTTP/1.1\" 206 2 \"-\" \"-\"",
        "\"GET /large.bin HTTP/1.1\" 200 67108864 \"-\" \"-\"",
    ];
    assert_eq!(rest.len(), expected.len(), "{rest:#?}");
    for (line, expected) in rest.iter().zip(expected) {
        assert_eq!(line.replace("\\\"", "\\x22"), expected.replace("\\\"", "\\x22"));
    }
}

#[test]
fn an_answer_that_was_cut_tells_how_much_went_out() {
    let told = lines("common", |server| {
        let mut client = server.connect();
        client.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        client.bytes(1000);
        drop(client);
        // Until the server has noticed, it counts the connection.
        while server.server().status().connections_open > 0 {
            std::thread::yield_now();
        }
    });
    assert_eq!(told.len(), 1, "{told:?}");
    let bytes = told[0].rsplit(' ').next().and_then(|bytes| bytes.parse::<u64>().ok());
    assert!(
        told[0].contains("\" 200 ") && bytes >= Some(700) && bytes < Some(LARGE),
        "{told:?}"
    );
}
