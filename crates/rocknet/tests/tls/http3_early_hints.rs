//! 103 (Early Hints) over HTTP/3, for the files that a page needs (`push`).

use quinn::Connection;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::{connect, get_frame};
use super::support::running::mount;
use super::support::{Folder, Running};
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;

/// Field line of QPACK for `:status` 103 (RFC 9204 appendix A).
const EARLY_HINTS: u8 = 0xc0 | 24;
/// Field line of QPACK for `:status` 200.
const OK: u8 = 0xc0 | 25;

/// Responds after it has yielded once, so that the response is not immediate.
struct Later;

impl Handler for Later {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        respond_with(async {
            tokio::task::yield_now().await;
            Response::new(Status::OK).body("made")
        })
    }
}

/// Reads a variable-length integer (RFC 9000 §16). Returns its value and the bytes after it.
fn integer(bytes: &[u8]) -> (usize, &[u8]) {
    let size = 1 << (bytes[0] >> 6);
    let value = bytes[1..size].iter().fold(usize::from(bytes[0] & 0x3f), |value, byte| {
        value << 8 | usize::from(*byte)
    });
    (value, &bytes[size..])
}

/// Requests a path. Returns the first field line of each field section, and all sections as text.
async fn statuses(connection: &Connection, path: &str) -> (Vec<u8>, String) {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(&get_frame("a.test", path)).await.expect("written");
    send.finish().expect("an open stream");
    let all = receive.read_to_end(1 << 20).await.expect("a response");
    let (mut rest, mut found, mut text) = (&all[..], Vec::new(), String::new());
    while !rest.is_empty() {
        let (kind, after) = integer(rest);
        let (length, after) = integer(after);
        let (payload, after) = after.split_at(length);
        if kind == 1 {
            // Type 1 is HEADERS. The prefix has two bytes, because the section uses no dynamic table.
            found.push(payload[2]);
            text += &String::from_utf8_lossy(payload);
        }
        rest = after;
    }
    (found, text)
}

#[test]
fn files_of_a_page_are_announced_once() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[
        ("www/index.html", "page"),
        ("www/other.html", "other"),
        ("www/style.css", "style"),
    ]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = "[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
                tls = { cert = \"a.pem\", key = \"a.key\" }\n\
                push = { \"/\" = \"/style.css\", \"/other.html\" = \"/style.css\", \"/later/\" = \"/more.js\" }\n";
    let server = Running::start_with(folder, text, vec![mount("/later/", Later)]);
    let client = TlsClient::new(authority.roots(), "a.test");
    // The second connection is served from the worker cache.
    for _ in 0..2 {
        let (runtime, _endpoint, connection) = connect(&client, server.address()).expect("a connection");
        runtime.block_on(async {
            for (path, expected) in [
                ("/", &[EARLY_HINTS, OK][..]),
                ("/", &[OK]),
                // The client already knows the file of this page.
                ("/other.html", &[OK]),
                ("/later/", &[EARLY_HINTS, OK]),
                ("/later/", &[OK]),
            ] {
                let (found, _) = statuses(&connection, path).await;
                assert_eq!(found, expected, "{path}");
            }
        });
        drop(connection);
    }
}
