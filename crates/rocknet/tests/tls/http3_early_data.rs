//! Early data (0-RTT) over HTTP/3: which requests are served before the handshake is complete (RFC 8470).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use rocknet::exchange::Exchange;
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::running::mount;
use super::support::upstream::{Next, Upstream, ok, write_to};
use super::support::{DEADLINE, Folder, Running};

/// Responds with the method and the field `Early-Data` of each request, and counts the requests.
struct ShowsEarlyData(Arc<AtomicUsize>);

impl Handler for ShowsEarlyData {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
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

struct Fixture {
    authority: Authority,
    server: Running,
    /// Number of requests that have reached the handler.
    handled: Arc<AtomicUsize>,
}

/// Starts a server with the handler below `/early/`. `keys`: further keys of `tls`. `site`: further keys of the site.
fn start(keys: &str, site: &str) -> Fixture {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "root")]);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let text = format!(
        "[server]\nworkers = 1\n[site.default]\nlisten = \"https://127.0.0.1:0\"\nroot = \"www\"\n\
         tls = {{ cert = \"a.pem\", key = \"a.key\"{keys} }}\n{site}"
    );
    let handled = Arc::<AtomicUsize>::default();
    let handler = ShowsEarlyData(Arc::clone(&handled));
    Fixture {
        server: Running::start_with(folder, &text, vec![mount("/early/", handler)]),
        authority,
        handled,
    }
}

/// Field lines for `:method`: indices of the static table, and TRACE as a literal (RFC 9204 §4.5).
const GET: &[u8] = &[0xc0 | 17];
const HEAD: &[u8] = &[0xc0 | 18];
const OPTIONS: &[u8] = &[0xc0 | 19];
const POST: &[u8] = &[0xc0 | 20];
const DELETE: &[u8] = &[0xc0 | 16];
const TRACE: &[u8] = b"\x5f\0\x05TRACE";

/// Sends a request and returns the bytes of the response. The request is written before the runtime sends anything, so
/// that it leaves with the first flight.
async fn exchange(connection: &quinn::Connection, request: &Request<'_>) -> Vec<u8> {
    let Request { method, path, more } = *request;
    // The prefix of the section, `:method`, `:scheme` and `:authority`, `:path`, and further fields. The section must
    // be shorter than 64 bytes, so that its length has one byte.
    let section = [
        &[0, 0],
        method,
        b"\xd7\x50\x06a.test",
        &[0x51, path.len() as u8],
        path.as_bytes(),
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

/// Request of a visit.
struct Request<'a> {
    method: &'a [u8],
    path: &'a str,
    /// Further field lines.
    more: &'a [u8],
}

fn request(method: &[u8]) -> Request<'_> {
    Request {
        method,
        path: "/early/x",
        more: b"",
    }
}

/// Use of the token that proves the address of the client in later visits.
#[derive(Clone, Copy)]
enum TokenUse {
    /// The client presents no token.
    Never,
    /// The client presents each token once.
    Once,
    /// The client presents the same token again, which a server should not accept (RFC 9000 §8.1.4).
    Always,
}

/// Keeps the first token of a server and presents it in every later visit.
struct OneToken(Mutex<Option<Bytes>>);

impl quinn_proto::TokenStore for OneToken {
    fn insert(&self, _: &str, token: Bytes) {
        self.0.lock().expect("no panic").get_or_insert(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.0.lock().expect("no panic").clone()
    }
}

/// Returns true if a response has this text in its body.
fn has(response: &[u8], text: &str) -> bool {
    response.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns true if a response has the status 425: index 70 of the static table of QPACK, with 63 in the prefix and 7 in
/// the next byte.
fn is_too_early(response: &[u8]) -> bool {
    response.windows(2).any(|pair| pair == [0xff, 7])
}

impl Fixture {
    /// Visits the server once without early data, and then once with early data for each of `requests`. Returns for
    /// each visit with early data true if the data was accepted, and the response.
    fn visit(&self, token: TokenUse, requests: &[Request<'_>]) -> Vec<(bool, Vec<u8>)> {
        let mut tls = TlsClient::new(self.authority.roots(), "a.test").config();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")));
        match token {
            TokenUse::Never => drop(config.token_store(Arc::new(quinn_proto::NoneTokenStore))),
            // The default store of `quinn` presents each token once.
            TokenUse::Once => {}
            TokenUse::Always => drop(config.token_store(Arc::new(OneToken(Mutex::default())))),
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let visits = async {
            let mut endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).expect("a socket");
            endpoint.set_default_client_config(config);
            let connect = || endpoint.connect(self.server.address(), "a.test").expect("a valid name");
            let first = connect().await.expect("a connection");
            assert!(has(&exchange(&first, &request(GET)).await, "GET None"));
            first.close(0_u32.into(), b"");
            let mut responses = Vec::new();
            for request in requests {
                let (connection, accepted) = match connect().into_0rtt() {
                    Ok((connection, accepted)) => (connection, Some(accepted)),
                    Err(connecting) => (connecting.await.expect("a connection"), None),
                };
                let response = exchange(&connection, request).await;
                let is_accepted = match accepted {
                    Some(accepted) => accepted.await,
                    None => false,
                };
                responses.push((is_accepted, response));
                connection.close(0_u32.into(), b"");
            }
            responses
        };
        runtime
            .block_on(async { tokio::time::timeout(DEADLINE, visits).await })
            .expect("the server responds in time")
    }
}

#[test]
fn requests_that_may_be_repeated_are_served_in_early_data() {
    let fixture = start(", early_data = true", "");
    // The field `Early-Data: 1`, as sent by a client that is itself a proxy. The server keeps this field.
    let from_proxy = Request {
        more: b"\x27\x03early-data\x011",
        ..request(GET)
    };
    for (request, text) in [
        (request(GET), "GET Some(\"1\")"),
        (request(OPTIONS), "OPTIONS Some(\"1\")"),
        (from_proxy, "GET Some(\"1\")"),
    ] {
        let (is_accepted, response) = fixture.visit(TokenUse::Once, &[request]).remove(0);
        assert!(is_accepted && has(&response, text), "{text}: {response:?}");
    }
    let before = fixture.handled.load(Ordering::SeqCst);
    let (is_accepted, response) = fixture.visit(TokenUse::Once, &[request(HEAD)]).remove(0);
    assert!(is_accepted && !is_too_early(&response), "HEAD: {response:?}");
    // The visit without early data also sends a request to the handler.
    assert_eq!(fixture.handled.load(Ordering::SeqCst), before + 2);
}

#[test]
fn other_requests_get_425_and_reach_no_handler() {
    let fixture = start(", early_data = true", "");
    for (name, method, token) in [
        ("POST", POST, TokenUse::Once),
        ("DELETE", DELETE, TokenUse::Once),
        ("TRACE", TRACE, TokenUse::Once),
        ("GET without a token", GET, TokenUse::Never),
    ] {
        let before = fixture.handled.load(Ordering::SeqCst);
        let (is_accepted, response) = fixture.visit(token, &[request(method)]).remove(0);
        assert!(is_accepted && is_too_early(&response), "{name}: {response:?}");
        assert_eq!(fixture.handled.load(Ordering::SeqCst), before + 1, "{name}");
    }
}

#[test]
fn a_token_proves_an_address_once() {
    let fixture = start(", early_data = true", "");
    let responses = fixture.visit(TokenUse::Always, &[request(GET), request(GET)]);
    let found: Vec<_> = responses
        .iter()
        .map(|(is_accepted, response)| (*is_accepted, is_too_early(response)))
        .collect();
    assert_eq!(found, [(true, false), (true, true)]);
}

#[test]
fn upstreams_see_the_field_and_may_respond_425() {
    let upstream = Upstream::start(|request, stream| {
        match request.field("early-data") {
            Some("1") => write_to(stream, "HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n"),
            _ => write_to(stream, ok("late enough")),
        }
        Next::Keep
    });
    let route = format!("[site.default.route.\"/up/*\"]\n{}\n", upstream.key());
    let fixture = start(", early_data = true", &route);
    let request = Request {
        path: "/up/x",
        ..request(GET)
    };
    let (is_accepted, response) = fixture.visit(TokenUse::Once, &[request]).remove(0);
    assert!(is_accepted && is_too_early(&response), "{response:?}");
    assert_eq!(upstream.last().field("early-data"), Some("1"));
}

#[test]
fn early_data_is_off_by_default() {
    let fixture = start("", "");
    let (is_accepted, response) = fixture.visit(TokenUse::Once, &[request(POST)]).remove(0);
    assert!(!is_accepted && has(&response, "POST None"), "{response:?}");
}
