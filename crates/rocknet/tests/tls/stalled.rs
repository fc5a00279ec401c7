//! TLS clients that do not read their responses: their connections are reset.

use std::io::Write;
use std::thread;

use super::certs::{Authority, Kind};
use super::client::TlsClient;
use super::support::client::request;
use super::support::reset::{assert_reset, wait_for_queue};
use super::support::{Folder, Running};
use super::wire;

const LIMITS: &str = "[limits]\nsend_stall = \"1500ms\"\nkeep_alive = \"1500ms\"\n";
/// Size of a file that exceeds the kernel buffers of both sides.
const LARGE: u64 = 64 << 20;
/// Size of a file that exceeds the receive buffer of the client, but fits into the kernel buffers of both sides.
const MEDIUM: u64 = 600 << 10;

/// Name of a case, offered protocols, bytes sent, and true if bytes follow that are not a valid record. In the names,
/// `all in the kernel` means that the whole response fits into the kernel buffers, and `the last` means that the
/// server closes the connection after the response.
type Row<'r> = (&'r str, &'r [&'r [u8]], Vec<u8>, bool);

#[test]
fn a_client_that_does_not_read_is_reset() {
    let authority = Authority::new("root");
    let folder = Folder::with(&[("www/index.html", "root")]);
    folder.sparse("www/large.bin", LARGE);
    folder.sparse("www/medium.bin", MEDIUM);
    authority.leaf(Kind::Ecdsa, &["a.test"]).write(&folder, "a");
    let server = Running::start(
        folder,
        &format!(
            "{LIMITS}[site.default]\nlisten = \"127.0.0.1:0\"\nroot = \"www\"\n\
             tls = {{ cert = \"a.pem\", key = \"a.key\" }}"
        ),
    );
    let http2 = |path: &str| [wire::open_beginning(), wire::get(1, path)].concat();
    let http1: &[&[u8]] = &[b"http/1.1"];
    let rows: &[Row<'_>] = &[
        ("HTTP/1.1", http1, request("GET /large.bin", &[]).into(), false),
        (
            "HTTP/1.1, all in the kernel",
            http1,
            request("GET /medium.bin", &[]).into(),
            false,
        ),
        (
            "HTTP/1.1, all in the kernel, and a record that cannot be opened",
            http1,
            request("GET /medium.bin", &[]).into(),
            true,
        ),
        (
            "HTTP/1.1, all in the kernel, and the last",
            http1,
            request("GET /medium.bin", &["Connection: close"]).into(),
            false,
        ),
        ("HTTP/2", &[b"h2"], http2("/large.bin"), false),
        ("HTTP/2, all in the kernel", &[b"h2"], http2("/medium.bin"), false),
        (
            "HTTP/2, all in the kernel, and a record that cannot be opened",
            &[b"h2"],
            http2("/medium.bin"),
            true,
        ),
    ];
    let (address, authority) = (server.address(), &authority);
    thread::scope(|scope| {
        for (what, alpn, bytes, broken) in rows {
            scope.spawn(move || {
                let client_config = TlsClient {
                    alpn,
                    ..TlsClient::new(authority.roots(), "a.test")
                };
                let mut tls = client_config.open(address).expect("a handshake");
                tls.write_all(bytes).expect("room");
                tls.flush().expect("room");
                if *broken {
                    // The response is queued first, so that the server reads the invalid record while it waits for the
                    // client.
                    wait_for_queue(what, &tls.0.sock);
                    tls.0.sock.write_all(&[0xff; 100]).expect("room");
                }
                assert_reset(what, &mut tls.0.sock);
            });
        }
    });
}
