//! Asserts that the server resets a connection. The state of the connection is read from the kernel's connection table.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::DEADLINE;

/// Pause between two reads of the connection table.
const PAUSE: Duration = Duration::from_millis(20);

/// Number of unacknowledged bytes that shows a full receive buffer of the client: too many for a delayed
/// acknowledgement.
const QUEUE: u64 = 16 * 1024;

/// Waits without reading until the server's end of a connection has disappeared, and asserts that the client then gets
/// a reset. A connection that is closed in an orderly way would remain in FIN-WAIT-1, with all the data that the client
/// has not read.
#[track_caller]
pub fn assert_reset(what: &str, client: &mut TcpStream) {
    let begun = Instant::now();
    let own = client.local_addr().expect("an address");
    // After the reset the socket has no peer address.
    while let Ok(server) = client.peer_addr()
        && let Some((state, queue)) = in_kernel(server, own)
    {
        assert!(
            begun.elapsed() < DEADLINE,
            "{what}: still in state {state} with {queue} bytes to send"
        );
        thread::sleep(PAUSE);
    }
    client.set_read_timeout(Some(DEADLINE)).expect("an option");
    let error = client.read_to_end(&mut Vec::new()).expect_err(what);
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}");
}

/// Waits until the server's end of a connection has data that does not fit into the receive buffer of the client.
#[track_caller]
#[allow(dead_code, reason = "only some tests need this function")]
pub fn wait_for_queue(what: &str, client: &TcpStream) {
    let (server, own) = (
        client.peer_addr().expect("a peer"),
        client.local_addr().expect("an address"),
    );
    let begun = Instant::now();
    let mut last = 0;
    loop {
        let queue = in_kernel(server, own).map_or(0, |(_, queue)| queue);
        // A queue that did not change since the last read shows that the client's receive buffer is full.
        if queue >= QUEUE && queue == last {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "{what}: nothing is queued to be sent");
        last = queue;
        thread::sleep(PAUSE);
    }
}

/// Returns the state of the server's end of a connection and the number of bytes in its send queue; `None` if the
/// connection is not in the table.
fn in_kernel(server: SocketAddr, client: SocketAddr) -> Option<(String, u64)> {
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel's table of connections");
    let (server, client) = (port(server), port(client));
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote, state, queues) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
        if !local.ends_with(&server) || !remote.ends_with(&client) {
            return None;
        }
        let queue = u64::from_str_radix(queues.split(':').next()?, 16).ok()?;
        Some((state.to_owned(), queue))
    })
}

/// Returns a port in the format of the table.
fn port(address: SocketAddr) -> String {
    format!(":{:04X}", address.port())
}
