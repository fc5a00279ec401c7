//! `hq-interop`: requests of one line over QUIC, which test clients of other implementations send.

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::http3_client::{Http3Client, connect_as};
use super::support::background::Background;
use super::support::{Folder, Running};

/// `H3_MESSAGE_ERROR` of RFC 9114 §8.1.
const MESSAGE_ERROR: u32 = 0x10e;
/// Alert `no_application_protocol` as an error code of QUIC (RFC 9001 §4.8).
const NO_APPLICATION_PROTOCOL: u64 = 0x178;

struct Fixture {
    authority: Authority,
    server: Running,
    /// Content of `large.bin`.
    large: Vec<u8>,
}

fn start(keys: &str) -> Fixture {
    let authority = Authority::new("root");
    let large: Vec<u8> = (0..300_000u32).map(|number| ((number * 7) >> 3) as u8).collect();
    let folder = Folder::with(&[("www/index.html", "home"), ("www/404.html", "no such file")]);
    std::fs::write(folder.path("www/large.bin"), &large).expect("a file");
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = format!(
        "[server]\nworkers = 1\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         errors = {{ 404 = \"/404.html\" }}\ntls = {{ cert = \"a.pem\", key = \"a.key\" }}\n{keys}"
    );
    Fixture {
        server: Running::start(folder, &text),
        authority,
        large,
    }
}

fn connect(fixture: &Fixture) -> Result<(Background, quinn::Endpoint, quinn::Connection), quinn::ConnectionError> {
    let client = TlsClient::new(fixture.authority.roots(), "a.test");
    connect_as(
        &client,
        fixture.server.address(),
        quinn::TransportConfig::default(),
        b"hq-interop",
    )
}

/// Sends the pieces of a request line, then ends the stream, and returns all bytes of the response.
async fn fetch(connection: &quinn::Connection, pieces: &[&[u8]]) -> Result<Vec<u8>, quinn::ReadToEndError> {
    let (mut to, mut from) = connection.open_bi().await.expect("a stream");
    for piece in pieces {
        to.write_all(piece).await.expect("an open stream");
        tokio::task::yield_now().await;
    }
    // This fails if the server has already responded and stopped the stream.
    let _ = to.finish();
    from.read_to_end(1 << 20).await
}

#[test]
fn a_request_line_gets_a_body_without_a_head() {
    let fixture = start("http3 = { hq_interop = true }\n");
    let (runtime, _endpoint, connection) = connect(&fixture).expect("a connection");
    runtime.block_on(async {
        assert_eq!(fetch(&connection, &[b"GET /\r\n"]).await.expect("content"), b"home");
        assert_eq!(
            fetch(&connection, &[b"GET", b" /ind", b"ex.html\r", b"\n"])
                .await
                .expect("content"),
            b"home"
        );
        assert_eq!(
            fetch(&connection, &[b"GET /index.html"]).await.expect("content"),
            b"home"
        );
        assert_eq!(
            fetch(&connection, &[b"GET /missing\r\n"]).await.expect("content"),
            b"no such file"
        );
        let (first, second) = tokio::join!(
            fetch(&connection, &[b"GET /large.bin\r\n"]),
            fetch(&connection, &[b"GET /large.bin\r\n"])
        );
        assert!(first.expect("content") == fixture.large && second.expect("content") == fixture.large);
        for malformed in [&b"POST /\r\n"[..], b"\r\n"] {
            let error = fetch(&connection, &[malformed]).await.expect_err("a malformed line");
            let quinn::ReadToEndError::Read(quinn::ReadError::Reset(code)) = error else {
                panic!("{error:?}");
            };
            assert_eq!(code, MESSAGE_ERROR.into());
        }
        // The connection serves further requests.
        assert_eq!(fetch(&connection, &[b"GET /\r\n"]).await.expect("content"), b"home");
    });
    let client = TlsClient::new(fixture.authority.roots(), "a.test");
    let http3 = Http3Client::open(&client, fixture.server.address()).expect("a connection");
    assert_eq!(http3.get("https://a.test/").body, b"home");
}

#[test]
fn hq_interop_is_off_by_default() {
    let fixture = start("");
    match connect(&fixture) {
        Err(quinn::ConnectionError::ConnectionClosed(close)) => {
            assert_eq!(u64::from(close.error_code), NO_APPLICATION_PROTOCOL);
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the server has accepted hq-interop"),
    }
}
