//! Early data (0-RTT) over HTTP/3: which requests are served before the handshake is complete (RFC 8470).

use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::running::mount;
use super::support::{DEADLINE, Folder, Running};

/// Responds with the method and the field `Early-Data` of each request.
struct ShowsEarlyData;

impl Handler for ShowsEarlyData {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let request = exchange.request.view();
        let early = request
            .fields
            .by_name(b"early-data")
            .next()
            .map(String::from_utf8_lossy);
        let method = String::from_utf8_lossy(request.method_name);
        let text = format!("{method} {early:?}").into_bytes();
        respond_with(async move { Response::new(Status::OK).body(text) })
    }
}

fn start(authority: &Authority, keys: &str) -> Running {
    let folder = Folder::with(&[("www/index.html", "root")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = format!(
        "[server]\nworkers = 1\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\"{keys} }}\n"
    );
    Running::start_with(folder, &text, vec![mount("/early/", ShowsEarlyData)])
}

/// Indices of methods in the static table of QPACK (RFC 9204, Appendix A).
const GET: u8 = 17;
const OPTIONS: u8 = 19;
const POST: u8 = 20;
const DELETE: u8 = 16;

/// Sends a request and returns the bytes of the response. The request is written before the runtime sends anything, so
/// that it leaves with the first flight.
async fn exchange(connection: &quinn::Connection, method: u8, more: &[u8]) -> Vec<u8> {
    let path = b"/early/x";
    let section = [
        &[0, 0, 0xc0 | method, 0xd7, 0x50, 6][..],
        b"a.test",
        &[0x51, path.len() as u8],
        path,
        more,
    ]
    .concat();
    let (mut to, mut from) = connection.open_bi().await.expect("a stream");
    to.write_all(&[&[1, section.len() as u8], &section[..]].concat())
        .await
        .expect("an open stream");
    to.finish().expect("an open stream");
    from.read_to_end(64 * 1024).await.expect("a response")
}

/// Returns whether a response has this text in its body.
fn has(response: &[u8], text: &str) -> bool {
    response.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Visits a server twice. Returns whether the early data of the second visit was accepted, and the response to it.
/// `keeps_token`: true if the client keeps the token that proves its address.
fn second_visit(
    authority: &Authority,
    server: &Running,
    method: u8,
    more: &[u8],
    keeps_token: bool,
) -> (bool, Vec<u8>) {
    let mut tls = TlsClient::new(authority.roots(), "a.test").config();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.enable_early_data = true;
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")));
    if !keeps_token {
        config.token_store(Arc::new(quinn_proto::NoneTokenStore));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let visits = async {
        let mut endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
        endpoint.set_default_client_config(config);
        let connect = || endpoint.connect(server.address(), "a.test").expect("a valid name");
        let first = connect().await.expect("a connection");
        assert!(has(&exchange(&first, GET, b"").await, "GET None"));
        first.close(0_u32.into(), b"");

        match connect().into_0rtt() {
            Ok((connection, accepted)) => {
                let response = exchange(&connection, method, more).await;
                (accepted.await, response)
            }
            Err(connecting) => {
                let connection = connecting.await.expect("a connection");
                (false, exchange(&connection, method, more).await)
            }
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(DEADLINE, visits).await })
        .expect("the server responds in time")
}

#[test]
fn only_safe_requests_are_served_in_early_data() {
    let authority = Authority::new("root");
    let server = start(&authority, ", early_data = true");
    // A literal field line, as sent by a client that is itself a proxy. Its own field is kept.
    let own = b"\x27\x03early-data\x011";
    for (method, more, text) in [
        (GET, &b""[..], "GET Some(\"1\")"),
        (OPTIONS, b"", "OPTIONS Some(\"1\")"),
        (GET, own, "GET Some(\"1\")"),
    ] {
        let (is_accepted, response) = second_visit(&authority, &server, method, more, true);
        assert!(is_accepted && has(&response, text), "{text}: {response:?}");
    }
    for (method, name, keeps_token) in [(POST, "POST", true), (DELETE, "DELETE", true), (GET, "GET", false)] {
        let (is_accepted, response) = second_visit(&authority, &server, method, b"", keeps_token);
        assert!(is_accepted && !has(&response, name), "{name}: {response:?}");
        // :status 425 has the index 70 of the static table.
        assert!(
            response.windows(2).any(|pair| pair == [0xff, 7]),
            "{name}: {response:?}"
        );
    }
}

#[test]
fn early_data_is_off_by_default() {
    let authority = Authority::new("root");
    let server = start(&authority, "");
    let (is_accepted, response) = second_visit(&authority, &server, POST, b"", true);
    assert!(!is_accepted && has(&response, "POST None"), "{response:?}");
}
