//! Datagrams that belong to no connection, sent to a server beside a load.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Size of a datagram that could begin a connection (RFC 9000 §14.1).
const INITIAL_SIZE: usize = 1200;
/// Number of different datagrams. Each is sent again and again, with other bytes as its connection ID.
const VARIANTS: usize = 64;
/// Time between two bursts.
const BURST_INTERVAL: Duration = Duration::from_millis(1);
/// Range of the random bytes that are replaced in each datagram: the connection ID that the sender chooses.
const ID: std::ops::Range<usize> = 6..14;

/// Thread that sends garbage.
pub struct Garbage {
    is_ended: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Garbage {
    /// Starts to send `rate` datagrams per second to `server`.
    pub fn start(server: SocketAddr, rate: u32) -> io::Result<Garbage> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let is_ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_ended);
        let thread = thread::spawn(move || send(&socket, server, rate, &flag));
        Ok(Garbage { is_ended, thread })
    }

    /// Stops, and returns the number of datagrams that were sent.
    pub fn stop(self) -> io::Result<u64> {
        self.is_ended.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| io::Error::other("the sender of garbage panicked"))?
    }
}

fn send(socket: &UdpSocket, server: SocketAddr, rate: u32, is_ended: &AtomicBool) -> io::Result<u64> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut datagrams = datagrams(&mut random);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while !is_ended.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        for number in sent..due {
            let datagram = &mut datagrams[number as usize % VARIANTS];
            if datagram.len() >= ID.end {
                datagram[ID].copy_from_slice(&random.next().to_be_bytes());
            }
            // A full buffer drops the datagram, as a network would.
            match socket.send_to(datagram, server) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        sent = due;
        sleep(BURST_INTERVAL);
    }
    Ok(sent)
}

/// Returns datagrams of all kinds that a server has to examine: Initial packets whose payload cannot be decrypted,
/// packets of an unknown version, packets of unknown connections, and random bytes.
fn datagrams(random: &mut Random) -> Vec<Vec<u8>> {
    let long_header = |version: u32| {
        let mut header = vec![0xc3];
        header.extend_from_slice(&version.to_be_bytes());
        // The connection ID of the server, with its length; an empty one of the client; no token; and a length.
        header.push(8);
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&[0, 0, 0x44, 0x9c]);
        header
    };
    (0..VARIANTS)
        .map(|number| {
            let (mut datagram, size) = match number % 4 {
                0 => (long_header(1), INITIAL_SIZE),
                1 => (long_header(0x1a2a_3a4a), INITIAL_SIZE),
                // 0x43 begins a packet with a short header.
                2 => (vec![0x43], 40 + random.next() as usize % 1000),
                _ => (Vec::new(), random.next() as usize % 60),
            };
            while datagram.len() < size {
                datagram.push(random.next() as u8);
            }
            datagram
        })
        .collect()
}

/// Random generator with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_at_about_the_rate() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let garbage = Garbage::start(server.local_addr().expect("an address"), 10_000).expect("a thread");
        let (mut kinds, mut buffer) = ([0; 3], [0; 2048]);
        for _ in 0..200 {
            let size = server.recv(&mut buffer).expect("a datagram");
            // Index 2: Initial packets. Index 1: packets of an unknown version. Index 0: all others.
            kinds[usize::from(size == INITIAL_SIZE && buffer[0] == 0xc3)
                + usize::from(buffer[..5] == [0xc3, 0, 0, 0, 1])] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 10), "{kinds:?}");
        assert!(garbage.stop().expect("a count") >= 200);
    }
}
