//! Slow link: a TCP relay that carries 10 Mbit/s with a round trip of 50 ms and buffers little.
//!
//! The relay reads from the server no faster than the link sends, through a small receive buffer, so that the link
//! looks full to the server. It stores only the bytes in flight and a queue of the size that routers have.

use rustix::net::{AddressFamily, SocketType, sockopt};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Bytes per second towards the client.
const RATE: f64 = 10e6 / 8.0;
/// Delay in each direction.
const ONE_WAY: Duration = Duration::from_millis(25);
/// Maximum queueing delay in the relay: one round trip of the link.
const QUEUE: Duration = Duration::from_millis(50);
/// Requested receive buffer towards the server in bytes. Linux doubles it.
const RECEIVE: usize = 16 << 10;
/// Bytes read at a time: one packet.
const PACKET: usize = 1460;

/// A relay whose port leads to a server until the relay is dropped.
pub struct SlowLink {
    pub port: u16,
    ended: Arc<AtomicBool>,
}

/// Moment of arrival, and the bytes in flight.
type InFlight = (Instant, Vec<u8>);

impl SlowLink {
    pub fn to(server: u16) -> io::Result<SlowLink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&ended);
        thread::spawn(move || {
            for client in listener.incoming() {
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
                // If the server cannot be reached, the client's connection is closed, and the client reports an error.
                let _ = client.and_then(|client| join(client, server));
            }
        });
        Ok(SlowLink { port, ended })
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn join(client: TcpStream, server: u16) -> io::Result<()> {
    let server = connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(server.try_clone()?, client.try_clone()?, Some(RATE));
    carry(client, server, None);
    Ok(())
}

/// Connects with a small receive buffer, which must be set before the connection is made.
fn connect(port: u16) -> io::Result<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_recv_buffer_size(&socket, RECEIVE)?;
    rustix::net::connect(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket.into())
}

/// Carries one direction with a reading and a writing thread.
fn carry(from: TcpStream, to: TcpStream, rate: Option<f64>) {
    let (sender, receiver) = channel();
    thread::spawn(move || receive(from, &sender, rate));
    thread::spawn(move || deliver(to, &receiver));
}

/// Reads one direction, and passes each piece on with its moment of arrival. `rate`: `None` for a link without a limit.
fn receive(mut from: TcpStream, to: &Sender<InFlight>, rate: Option<f64>) {
    let mut free_at = Instant::now();
    let mut packet = [0; PACKET];
    while let Ok(length @ 1..) = from.read(&mut packet) {
        let now = Instant::now();
        free_at = free_at.max(now);
        if let Some(rate) = rate {
            free_at += Duration::from_secs_f64(length as f64 / rate);
        }
        if to.send((free_at + ONE_WAY, packet[..length].to_vec())).is_err() {
            break;
        }
        sleep(free_at.saturating_duration_since(now + QUEUE));
    }
    // One side has closed its connection. The other side must not wait for it.
    let _ = from.shutdown(Shutdown::Read);
}

fn deliver(mut to: TcpStream, from: &Receiver<InFlight>) {
    while let Ok((at, bytes)) = from.recv() {
        sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_delivers_all_bytes_at_its_rate() {
        const LENGTH: usize = 100_000;
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let link = SlowLink::to(server.local_addr().expect("an address").port()).expect("a link");
        let sent: Vec<u8> = (0..LENGTH).map(|at| at as u8).collect();
        let expected = sent.clone();
        let serving = thread::spawn(move || {
            let (mut connection, _) = server.accept().expect("a connection");
            let mut request = [0; 4];
            connection.read_exact(&mut request).expect("a request");
            connection.write_all(&sent).expect("sent");
            request
        });
        let begin = Instant::now();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).expect("connected");
        client.write_all(b"give").expect("sent");
        let mut received = Vec::new();
        client.read_to_end(&mut received).expect("received");
        assert_eq!(serving.join().expect("served"), *b"give");
        assert!(received == expected, "{} bytes", received.len());
        let least = 2 * ONE_WAY + Duration::from_secs_f64(LENGTH as f64 / RATE);
        assert!(begin.elapsed() >= least, "{:?}", begin.elapsed());
    }
}
