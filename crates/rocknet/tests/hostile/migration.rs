//! Clients that change their address many times.

use std::net::UdpSocket;

use crate::secure::SecureServer;

/// Number of address changes.
const MOVES: usize = 300;
/// Maximum growth of the server's memory in KiB.
const MEMORY_KIB: u64 = 8 * 1024;

/// Each change uses a new connection ID, and the client retires the old one, so that the server has to issue another.
#[test]
fn a_client_that_moves_all_the_time_is_served_and_uses_little_memory() {
    let server = SecureServer::start("keep_alive = \"1s\"");
    let target = &server.target;
    let before = server.warm();
    target.beside(|| {
        let client = target.connect();
        for number in 0..MOVES {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            client.block_on(async { client.endpoint.rebind(socket).expect("another address") });
            // After every third change, the next one follows without a wait.
            if number % 3 != 0 {
                assert_eq!(client.get("https://a.test/page.bin").status, 200, "{number}");
            }
        }
        assert!(client.connection.close_reason().is_none());
        assert_eq!(client.get("https://a.test/page.bin").body, vec![b'x'; 10_000]);
    });
    server.finish(before, MEMORY_KIB);
}
