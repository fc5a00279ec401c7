//! `floor-uring PORT`: the same 13 bytes by io_uring: one ring, multishot accepts and receives into provided buffers, and
//! all sends of a turn handed over by the call that waits for the next.
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
/// Operations handed over at once, and room for as many answers of the kernel as a turn can bring.
const SUBMISSIONS: u32 = 4096;
const COMPLETIONS: u32 = 32 << 10;
/// Provided buffers, all of one group; a power of two.
const BUFFERS: u16 = 4096;
const BUFFER: usize = 4096;
const GROUP: u16 = 0;
/// Answers that one send takes from the constant memory.
const MAX_RESPONSES: usize = 64;
/// What completes is told by the number that comes back: all ones for the listener, else the socket.
const LISTENER: u64 = u64::MAX;
/// All of it, and no signal for a client that has gone.
const SEND: i32 = 0x4000 | 0x100;

#[derive(Clone)]
#[repr(align(4096))]
struct BufferPage([u8; BUFFER]);

struct FloorServer {
    ring: IoUring,
    queue: Vec<BufferPage>,
    memory: Vec<BufferPage>,
    tail: u16,
    replies: Vec<u8>,
    reply: usize,
    /// Heads that have not come whole, by socket; nearly always empty.
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
        // SAFETY: both stretches are page-aligned, as long as is said, and live as long as the ring: to the end.
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
        // SAFETY: the index is below the number of entries, which `queue` holds; each buffer is in it once at most.
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
        // SAFETY: sends name the constant replies, receives the provided buffers: both live to the end.
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

    /// What one receive brought; whether the connection goes on.
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
                        // SAFETY: a descriptor that the kernel has just opened for us.
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
                    // A send that failed: the receive tells of it as well.
                    continue;
                }
                let is_open = match cqueue::buffer_select(flags) {
                    Some(id) if result > 0 => self.received(socket, id, result as usize).unwrap_or(false),
                    Some(id) => {
                        self.return_buffer(id);
                        false
                    }
                    // ENOBUFS: asked again below.
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

    /// The end of a connection: what is to be sent leaves first. With its receive still waiting it is only shut down,
    /// and the receive tells the end.
    fn end(&mut self, socket: RawFd, waits: bool) -> io::Result<()> {
        self.ring.submit()?;
        // SAFETY: ours since it was accepted, and closed here alone: no completion comes for it after the last receive.
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
