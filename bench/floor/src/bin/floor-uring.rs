//! `floor-uring PORT`: sends the same 13 bytes for every request, with io_uring.
//!
//! It uses one ring, multishot accepts, and receives into provided buffers. The call that waits for the next
//! completions also submits all sends of an iteration.
#![allow(unsafe_code)]

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};

use floor::{BACKLOG, Requests};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode};

const BODY: &[u8] = b"Hello, world!";
/// Entries of the submission queue.
const SUBMISSIONS: u32 = 4096;
/// Entries of the completion queue: enough for all completions of one iteration.
const COMPLETIONS: u32 = 32 << 10;
/// Number of provided buffers, all in one group. The kernel requires a power of two.
const BUFFERS: u16 = 4096;
/// Bytes of one provided buffer.
const BUFFER: usize = 4096;
const GROUP: u16 = 0;
/// Maximum number of responses per send. `FloorServer::replies` contains this number of copies of the response.
const MAX_RESPONSES: usize = 64;
/// User data of the accept. The user data of a receive is the number of its socket; a send sets bit 32 in addition.
const LISTENER: u64 = u64::MAX;
/// Flags of a send: MSG_NOSIGNAL, because the client may have closed the connection, and MSG_WAITALL.
const SEND: i32 = 0x4000 | 0x100;

#[derive(Clone)]
#[repr(align(4096))]
struct BufferPage([u8; BUFFER]);

struct FloorServer {
    ring: IoUring,
    /// Ring of provided buffers, shared with the kernel.
    queue: Vec<BufferPage>,
    /// The buffers, by their number.
    memory: Vec<BufferPage>,
    /// Number of buffers that have been added to `queue`, modulo 2^16.
    tail: u16,
    /// Copies of the response, one after another.
    replies: Vec<u8>,
    /// Bytes of one response.
    reply: usize,
    /// Incomplete heads by socket; nearly always empty.
    partial: Vec<Vec<u8>>,
}

impl FloorServer {
    fn new() -> io::Result<FloorServer> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(SUBMISSIONS)?;
        let mut reply = floor::head("text/html; charset=utf-8", BODY.len() as u64);
        reply.extend_from_slice(BODY);
        let page = BufferPage([0; BUFFER]);
        let mut floor = FloorServer {
            ring,
            queue: vec![page.clone(); usize::from(BUFFERS) * size_of::<BufRingEntry>() / BUFFER],
            memory: vec![page; usize::from(BUFFERS)],
            tail: 0,
            replies: reply.repeat(MAX_RESPONSES),
            reply: reply.len(),
            partial: Vec::new(),
        };
        // SAFETY: both memory areas are page-aligned, have the stated length, and live as long as the ring.
        unsafe {
            floor
                .ring
                .submitter()
                .register_buf_ring_with_flags(floor.queue.as_ptr() as u64, BUFFERS, GROUP, 0)?;
        }
        (0..BUFFERS).for_each(|id| floor.return_buffer(id));
        Ok(floor)
    }

    fn return_buffer(&mut self, id: u16) {
        let address = self.memory[usize::from(id)].0.as_mut_ptr() as u64;
        let entries = self.queue.as_mut_ptr().cast::<BufRingEntry>();
        // SAFETY: the index is below the number of entries in `queue`, and each buffer is in the queue at most once.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.tail % BUFFERS));
            entry.set_addr(address);
            entry.set_len(BUFFER as u32);
            entry.set_bid(id);
            self.tail = self.tail.wrapping_add(1);
            AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()).store(self.tail, Ordering::Release);
        }
    }

    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        while self.ring.submission().is_full() {
            self.ring.submit()?;
        }
        // SAFETY: sends refer to the constant replies and receives to the provided buffers; both live as long as the
        // ring.
        let _ = unsafe { self.ring.submission().push(entry) };
        Ok(())
    }

    fn receive(&mut self, socket: RawFd) -> io::Result<()> {
        self.push(
            &opcode::RecvMulti::new(Fd(socket), GROUP)
                .build()
                .user_data(socket as u64),
        )
    }

    /// Handles received bytes; returns true if the connection stays open.
    fn received(&mut self, socket: RawFd, id: u16, length: usize) -> io::Result<bool> {
        let index = socket as usize;
        if self.partial.len() <= index {
            self.partial.resize_with(index + 1, Vec::new);
        }
        let bytes = &self.memory[usize::from(id)].0[..length];
        let partial = &mut self.partial[index];
        let heads = if partial.is_empty() {
            let heads = Requests::heads(bytes)?;
            partial.extend_from_slice(&bytes[heads.bytes..]);
            heads
        } else {
            partial.extend_from_slice(bytes);
            let heads = Requests::heads(partial)?;
            partial.drain(..heads.bytes);
            heads
        };
        self.return_buffer(id);
        let mut left = heads.count;
        while left > 0 {
            let responses = left.min(MAX_RESPONSES);
            left -= responses;
            let send =
                opcode::Send::new(Fd(socket), self.replies.as_ptr(), (responses * self.reply) as u32).flags(SEND);
            self.push(
                &send
                    .build()
                    .flags(Flags::SKIP_SUCCESS)
                    .user_data(socket as u64 | 1 << 32),
            )?;
        }
        Ok(!heads.last)
    }

    fn serve(&mut self, listener: &TcpListener) -> io::Result<()> {
        let accept = opcode::AcceptMulti::new(Fd(listener.as_raw_fd()))
            .build()
            .user_data(LISTENER);
        self.push(&accept)?;
        loop {
            match self.ring.submit_and_wait(1) {
                // EBUSY (16): the completion queue has overflowed, and the loop below empties it.
                Err(error) if error.kind() != io::ErrorKind::Interrupted && error.raw_os_error() != Some(16) => {
                    return Err(error);
                }
                _ => {}
            }
            loop {
                let next = self.ring.completion().next();
                let Some(completion) = next else { break };
                let (number, result, flags) = (completion.user_data(), completion.result(), completion.flags());
                if number == LISTENER {
                    if result >= 0 {
                        // SAFETY: the kernel has just returned this descriptor, and we own it.
                        let socket = unsafe { OwnedFd::from_raw_fd(result) };
                        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
                        std::mem::forget(socket);
                        self.receive(result)?;
                    }
                    if !cqueue::more(flags) {
                        self.push(&accept)?;
                    }
                    continue;
                }
                let socket = number as u32 as RawFd;
                if number >> 32 == 1 {
                    // The send failed, and the receive reports that as well.
                    continue;
                }
                let is_open = match cqueue::buffer_select(flags) {
                    Some(id) if result > 0 => self.received(socket, id, result as usize).unwrap_or(false),
                    Some(id) => {
                        self.return_buffer(id);
                        false
                    }
                    // -ENOBUFS: the receive is submitted again below.
                    None => result == -105,
                };
                if !is_open {
                    self.end(socket, cqueue::more(flags))?;
                } else if !cqueue::more(flags) {
                    self.receive(socket)?;
                }
            }
        }
    }

    /// Submits the queued sends and closes the connection. If a receive is pending (`waits`), the socket is only shut
    /// down; the completion of the receive then closes it.
    fn end(&mut self, socket: RawFd, waits: bool) -> io::Result<()> {
        self.ring.submit()?;
        // SAFETY: we own the descriptor since the accept and close it only here; no completion follows the last
        // receive.
        let owned = unsafe { OwnedFd::from_raw_fd(socket) };
        if waits {
            let _ = rustix::net::shutdown(&owned, rustix::net::Shutdown::Both);
            std::mem::forget(owned);
        } else if let Some(partial) = self.partial.get_mut(socket as usize) {
            partial.clear();
        }
        Ok(())
    }
}

fn main() {
    let Some(port) = std::env::args().nth(1).and_then(|port| port.parse().ok()) else {
        eprintln!("usage: floor-uring PORT");
        std::process::exit(2);
    };
    if let Err(error) = serve(port) {
        eprintln!("floor-uring: {error}");
        std::process::exit(1);
    }
}

fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    rustix::net::listen(&listener, BACKLOG)?;
    FloorServer::new()?.serve(&listener)
}
