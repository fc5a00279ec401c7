//! Simulated kernel for tests. It runs the operations on real sockets: slowly, in any order and with faults. A seeded
//! generator makes these choices. The simulated kernel asserts that the driver never misuses memory and descriptors.

mod files;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::rc::Rc;

use io_uring::types::BufRingEntry;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::kernel::{Completion, Operation};
use crate::pipe::Pipe;

/// Pseudo-random number generator whose output depends only on the seed.
#[derive(Clone, Debug)]
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub fn new(seed: u64) -> SeededRng {
        // Multiplying by an odd constant (2^64 divided by the golden ratio) gives similar seeds different states. The
        // state must not be 0, because `below` would then always return 0.
        SeededRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // Marsaglia's xorshift generator. The lowest bits are the least random, so they are dropped.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Probabilities of faults, in percent, and the sizes of the queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultProfile {
    /// Probability that a call of `enter` makes no progress on an operation.
    pub slow: usize,
    /// Probability of another fault: an operation fails, handles fewer bytes than possible or reports readiness without
    /// cause, a cancellation comes too late, or `enter` leaves operations in the queue.
    pub faults: usize,
    /// Probability that a send, or a receive without the ring, breaks its connection. A receive by the ring does so
    /// with a fifth of this probability.
    pub losses: usize,
    /// Probability that `enter` fails temporarily.
    pub refusals: usize,
    /// Probability that `enter` fails permanently, in thousandths instead of percent.
    pub breaks: usize,
    /// Size of the submission queue.
    pub submissions: usize,
    /// Size of the completion queue.
    pub completions: usize,
}

/// Kernel side of a simulated ring. The percentages in its code that are not part of the profile are arbitrary: each
/// only has to make its case frequent.
pub(super) struct SimulatedKernel {
    pub profile: FaultProfile,
    rng: SeededRng,
    /// Submission queue.
    queue: VecDeque<QueuedOperation>,
    /// Operations that were submitted and have not ended.
    in_flight: Vec<StartedOperation>,
    /// Completion queue, from which the driver takes its completions.
    ready: VecDeque<Completion>,
    /// Completions for which `ready` has no room.
    overflow: VecDeque<Completion>,
    /// Provided buffers; `None` until they are registered.
    stock: Option<BufferStock>,
    /// Inodes of the sockets whose connections were lost.
    pub lost: Rc<RefCell<HashSet<u64>>>,
    /// True once `enter` has failed permanently.
    pub broken: bool,
    /// Number of receives without the ring.
    pub direct_calls: usize,
    /// Number of bytes that receives without the ring moved into pipes.
    pub bytes_piped: usize,
}

/// Operation in the submission queue.
struct QueuedOperation {
    operation: Operation,
    user_data: u64,
    /// Inode of the operation's file when the operation was pushed; 0 for a cancellation.
    inode: u64,
}

/// Operation that was submitted and has not ended.
struct StartedOperation {
    operation: Operation,
    user_data: u64,
    /// Duplicate of the descriptor, which remains open like the kernel's own reference.
    file: OwnedFd,
    /// True once the operation was cancelled. It then ends with an error when it is next processed.
    cancelled: bool,
}

impl StartedOperation {
    /// Returns whether a kernel thread may run the operation.
    fn is_file_operation(&self) -> bool {
        matches!(self.operation, Operation::Read { .. } | Operation::Open { .. })
    }
}

/// Completes file operations late, because the kernel does not stop its threads when a ring is closed, and these
/// threads still write to memory.
impl Drop for SimulatedKernel {
    fn drop(&mut self) {
        for started in std::mem::take(&mut self.in_flight) {
            let file = started.file.as_fd();
            match started.operation {
                Operation::Read {
                    into, length, offset, ..
                } => {
                    files::read(file, into, length as usize, offset);
                }
                // A driver must wait for this completion, so that it can close the descriptor. With a broken ring it
                // cannot wait.
                Operation::Open { path, how, .. } if !self.broken && !std::thread::panicking() => {
                    panic!("an opened descriptor is never closed: {}", files::open(file, path, how));
                }
                _ => {}
            }
        }
    }
}

/// Kernel side of the provided buffers.
struct BufferStock {
    /// Queue of free buffers, which the driver owns.
    queue: *const BufRingEntry,
    /// Number of entries of the queue.
    count: u16,
    /// Number of entries taken from the queue so far, modulo 2^16.
    head: u16,
    /// Free buffers taken from the queue: id, address and length in bytes.
    free: VecDeque<(u16, u64, u32)>,
    /// For each buffer by its id: true while the driver may read it.
    lent: HashMap<u16, bool>,
}

/// Returns the inode of an open file.
fn inode(descriptor: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(descriptor).expect("it is open").st_ino
}

/// Borrows the descriptor of an operation.
#[allow(unsafe_code)]
fn borrow<'a>(descriptor: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the result is used only within the current call, during which the driver has to keep the descriptor open.
    // `start` checks by the inode that the descriptor of an operation has not been reused.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

impl SimulatedKernel {
    pub fn new(seed: u64, profile: FaultProfile) -> SimulatedKernel {
        SimulatedKernel {
            profile,
            rng: SeededRng::new(seed),
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            ready: VecDeque::new(),
            overflow: VecDeque::new(),
            stock: None,
            lost: Rc::default(),
            broken: false,
            direct_calls: 0,
            bytes_piped: 0,
        }
    }

    /// Registers the queue of provided buffers.
    pub fn provide(&mut self, queue: *const BufRingEntry, count: u16) {
        self.stock = Some(BufferStock {
            queue,
            count,
            head: 0,
            free: VecDeque::new(),
            lent: HashMap::new(),
        });
    }

    /// Returns whether the submission queue is full.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.profile.submissions
    }

    /// Returns whether operations were pushed but not submitted.
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns true if the kernel asks for a call of `enter`, to continue operations in flight. Random, because they
    /// may progress at any time.
    pub fn has_work(&mut self) -> bool {
        !self.in_flight.is_empty() && self.rng.chance(50)
    }

    /// Returns whether the completion queue has overflowed.
    pub fn has_overflow(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// Pushes an operation into the submission queue, which must not be full.
    pub fn push(&mut self, operation: Operation, user_data: u64) {
        assert!(!self.is_full(), "the queue is full and the operation is lost");
        let inode = match operation {
            Operation::Receive(file)
            | Operation::Send { socket: file, .. }
            | Operation::Read { file, .. }
            | Operation::Open { directory: file, .. }
            | Operation::Wait { descriptor: file, .. } => inode(borrow(file)),
            Operation::Cancel(_) => 0,
        };
        self.queue.push_back(QueuedOperation {
            operation,
            user_data,
            inode,
        });
    }

    /// Starts queued operations, and advances operations in flight. Fails or leaves work undone at random. If `wait`
    /// is true and nothing has completed, completes every operation that can complete.
    pub fn enter(&mut self, wait: bool) -> io::Result<()> {
        if self.broken || self.rng.below(1000) < self.profile.breaks {
            self.broken = true;
            return Err(Errno::BADFD.into());
        }
        if self.rng.chance(self.profile.refusals) {
            return Err([Errno::INTR, Errno::AGAIN, Errno::BUSY][self.rng.below(3)].into());
        }
        let room = self.profile.completions - self.ready.len().min(self.profile.completions);
        self.ready.extend(self.overflow.drain(..room.min(self.overflow.len())));
        // A fault may leave operations in the queue.
        let all = !self.rng.chance(self.profile.faults);
        while (all || !self.rng.chance(30)) && self.has_queued() {
            self.start();
        }
        self.work(self.profile.slow);
        if wait && self.ready.is_empty() {
            // Completes every operation that can complete. If there is no such operation, this call returns without a
            // completion, because the test has a single thread.
            self.work(0);
        }
        Ok(())
    }

    /// Receives without the ring.
    pub fn receive_directly(&mut self, socket: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.before_direct_call(socket)?;
        let fault = self.rng.chance(self.profile.faults);
        if fault && self.rng.chance(50) {
            return Err([Errno::AGAIN, Errno::INTR][self.rng.below(2)]);
        }
        let max_bytes = match fault {
            true => self.rng.below(buffer.len()) + 1,
            false => buffer.len(),
        };
        recv(borrow(socket), &mut buffer[..max_bytes], RecvFlags::DONTWAIT).map(|(got, _)| got)
    }

    /// Moves bytes from a socket into a pipe, without the ring. Returns the number of bytes moved; 0 if there is no
    /// data, at the end of the stream, or after a simulated fault.
    pub fn fill_pipe(&mut self, socket: RawFd, pipe: &mut Pipe) -> io::Result<usize> {
        self.before_direct_call(socket)?;
        if self.rng.chance(self.profile.faults) {
            return Ok(0);
        }
        let moved = pipe.fill(borrow(socket))?;
        self.bytes_piped += moved;
        Ok(moved)
    }

    /// Asserts that no receive operation of the socket is in flight. Fails at random, after breaking the connection.
    fn before_direct_call(&mut self, socket: RawFd) -> Result<(), Errno> {
        let receives = |started: &StartedOperation| {
            matches!(started.operation, Operation::Receive(_)) && inode(started.file.as_fd()) == inode(borrow(socket))
        };
        assert!(
            !self.in_flight.iter().any(receives),
            "a receive operation of the same socket is in flight"
        );
        self.direct_calls += 1;
        match self.rng.chance(self.profile.losses) {
            true => Err(Errno::from_raw_os_error(-self.lose(borrow(socket)))),
            false => Ok(()),
        }
    }

    /// Returns the next completion.
    pub fn next(&mut self) -> Option<Completion> {
        self.ready.pop_front()
    }

    /// Cancels all submitted operations except some file operations, which a kernel thread may already run. Returns
    /// true, because all operations other than file operations have ended.
    pub fn cancel_all(&mut self) -> bool {
        for started in std::mem::take(&mut self.in_flight) {
            if started.is_file_operation() && self.rng.chance(70) {
                self.in_flight.push(started);
            } else {
                self.complete(started.user_data, -libc::ECANCELED);
            }
        }
        self.ready.extend(self.overflow.drain(..));
        true
    }

    /// Returns the number of operations that were pushed and have not ended.
    pub fn unfinished(&self) -> usize {
        self.in_flight.len() + self.queue.len()
    }

    /// Returns the number of buffers that the driver has not given back.
    pub fn buffers_missing(&mut self) -> usize {
        self.take_back_buffers();
        let stock = self.stock.as_ref().expect("buffers");
        stock.lent.values().filter(|lent| **lent).count()
    }

    /// Posts the last completion of an operation, without a provided buffer.
    fn complete(&mut self, user_data: u64, result: i32) {
        self.post(Completion {
            user_data,
            result,
            more: false,
            buffer: None,
        });
    }

    /// Posts a completion to the completion queue, or to the overflow if the queue is full.
    fn post(&mut self, completion: Completion) {
        if self.ready.len() < self.profile.completions && self.overflow.is_empty() {
            self.ready.push_back(completion);
        } else {
            self.overflow.push_back(completion);
        }
    }

    /// Starts the operation at the front of the queue.
    fn start(&mut self) {
        let Some(QueuedOperation {
            operation,
            user_data,
            inode: expected,
        }) = self.queue.pop_front()
        else {
            return;
        };
        let descriptor = match operation {
            Operation::Cancel(target) => return self.cancel(target, user_data),
            Operation::Receive(file)
            | Operation::Send { socket: file, .. }
            | Operation::Read { file, .. }
            | Operation::Open { directory: file, .. }
            | Operation::Wait { descriptor: file, .. } => borrow(file),
        };
        assert_eq!(inode(descriptor), expected, "{operation:?}: its descriptor was reused");
        if let Operation::Send { bytes, length, .. } = operation {
            return self.send(descriptor, user_data, bytes, length);
        }
        self.in_flight.push(StartedOperation {
            operation,
            user_data,
            file: descriptor.try_clone_to_owned().expect("a descriptor"),
            cancelled: false,
        });
    }

    /// Marks the operation whose `user_data` is `target` as cancelled. `user_data` is that of the cancellation. Posts a
    /// completion only if the cancellation failed, as `IOSQE_CQE_SKIP_SUCCESS` requests.
    fn cancel(&mut self, target: u64, user_data: u64) {
        let missed = self.rng.chance(self.profile.faults);
        match self.in_flight.iter_mut().find(|started| started.user_data == target) {
            // Behaves as if the kernel were handling the operation at that moment, so the operation is not cancelled.
            Some(_) if missed => self.complete(user_data, -libc::EALREADY),
            Some(started) => started.cancelled = true,
            None => self.complete(user_data, -libc::ENOENT),
        }
    }

    /// Sends bytes. Posts a completion only if not all bytes were sent, because every send has two flags.
    /// `IOSQE_CQE_SKIP_SUCCESS` suppresses the completion of a success, and `MSG_WAITALL` makes a short send a
    /// failure.
    #[allow(unsafe_code)]
    fn send(&mut self, socket: BorrowedFd<'_>, user_data: u64, bytes: *const u8, length: u32) {
        if self.rng.chance(self.profile.losses) {
            let error = self.lose(socket);
            return self.complete(user_data, error);
        }
        let max_bytes = match self.rng.chance(self.profile.faults) {
            true => self.rng.below(length as usize + 1),
            false => length as usize,
        };
        // SAFETY: `Kernel::push` requires that these bytes live and stay unchanged until the operation is submitted,
        // which happens now.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, max_bytes) };
        let result = match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            _ if max_bytes == 0 => -libc::EAGAIN,
            Ok(sent) if sent == length as usize => return,
            Ok(sent) => sent as i32,
            Err(error) => -error.raw_os_error(),
        };
        self.complete(user_data, result);
    }

    /// Breaks the connection of a socket. Returns the negative error number for the current operation.
    fn lose(&mut self, socket: BorrowedFd<'_>) -> i32 {
        self.lost.borrow_mut().insert(inode(socket));
        let _ = shutdown(socket, Shutdown::Both);
        -[libc::ECONNRESET, libc::EPIPE][self.rng.below(2)]
    }

    /// Makes progress on the operations in flight, in random order. Skips each with a probability of `slow` percent.
    fn work(&mut self, slow: usize) {
        self.take_back_buffers();
        let mut waiting = std::mem::take(&mut self.in_flight);
        while !waiting.is_empty() {
            let started = waiting.swap_remove(self.rng.below(waiting.len()));
            if self.rng.chance(slow) || self.advance(&started) {
                self.in_flight.push(started);
            }
        }
    }

    /// Makes progress on one operation. Returns false if the operation has ended.
    fn advance(&mut self, started: &StartedOperation) -> bool {
        let user_data = started.user_data;
        if started.cancelled {
            self.complete(user_data, -libc::ECANCELED);
            return false;
        }
        match started.operation {
            Operation::Wait { events, .. } => {
                let wanted = PollFlags::from_bits_truncate(events as u16);
                let mut polled = [PollFd::new(&started.file, wanted)];
                let _ = poll(&mut polled, Some(&rustix::event::Timespec::default()));
                match polled[0].revents().bits() {
                    0 if !self.rng.chance(self.profile.faults) => true,
                    events => {
                        self.complete(user_data, i32::from(events));
                        false
                    }
                }
            }
            Operation::Read {
                into, length, offset, ..
            } => {
                let fault = self.rng.chance(self.profile.faults);
                let result = self.read(started, into, length, offset, fault);
                self.complete(user_data, result);
                false
            }
            Operation::Open { path, how, .. } => {
                let result = match self.rng.chance(self.profile.faults) {
                    true => -[libc::EAGAIN, libc::EMFILE, libc::EIO][self.rng.below(3)],
                    false => files::open(started.file.as_fd(), path, how),
                };
                self.complete(user_data, result);
                false
            }
            Operation::Receive(_) => {
                let mut in_progress = self.receive(started);
                while in_progress && self.rng.chance(80) {
                    in_progress = self.receive(started);
                }
                in_progress
            }
            Operation::Send { .. } | Operation::Cancel(_) => unreachable!("these operations end when they are started"),
        }
    }

    /// Reads from a file. A fault makes the read fail or return fewer bytes.
    fn read(&mut self, started: &StartedOperation, into: *mut u8, length: u32, offset: u64, fault: bool) -> i32 {
        if fault && self.rng.chance(50) {
            return -libc::EIO;
        }
        let length = match fault {
            true => self.rng.below(length as usize) + 1,
            false => length as usize,
        };
        files::read(started.file.as_fd(), into, length, offset)
    }

    /// Receives into one provided buffer, and posts at most one completion. Returns false if the operation has ended.
    #[allow(unsafe_code)]
    fn receive(&mut self, started: &StartedOperation) -> bool {
        let user_data = started.user_data;
        if self.rng.chance(self.profile.losses) && self.rng.chance(20) {
            let error = self.lose(started.file.as_fd());
            self.complete(user_data, error);
            return false;
        }
        let fault = self.rng.chance(self.profile.faults);
        if fault && self.rng.chance(30) {
            let error = [libc::EAGAIN, libc::EINTR, libc::ECANCELED, libc::ENOBUFS][self.rng.below(4)];
            self.complete(user_data, -error);
            return false;
        }
        let mut polled = [PollFd::new(&started.file, PollFlags::IN)];
        let _ = poll(&mut polled, Some(&rustix::event::Timespec::default()));
        if polled[0].revents().is_empty() {
            return true;
        }
        let stock = self.stock.as_mut().expect("buffers");
        let Some((id, address, length)) = stock.free.pop_front() else {
            self.complete(user_data, -libc::ENOBUFS);
            return false;
        };
        let max_bytes = match fault {
            true => self.rng.below(length as usize) + 1,
            false => length as usize,
        };
        // SAFETY: a buffer in the queue belongs to the kernel and has this length.
        let buffer = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, max_bytes) };
        let got = recv(&started.file, buffer, RecvFlags::DONTWAIT).map(|(got, _)| got);
        // The kernel may select a buffer even if nothing is received into it.
        let lend = got.is_ok_and(|got| got > 0) || self.rng.chance(50);
        if lend {
            stock.lent.insert(id, true);
        } else {
            stock.free.push_front((id, address, length));
        }
        let more = got.is_ok_and(|got| got > 0) && !(fault && self.rng.chance(30));
        let result = got.map_or_else(|error| -error.raw_os_error(), |got| got as i32);
        self.post(Completion {
            user_data,
            result,
            more,
            buffer: lend.then_some(id),
        });
        more
    }

    /// Takes the buffers that the driver has added to the queue of free ones since the last call.
    #[allow(unsafe_code)]
    fn take_back_buffers(&mut self) {
        let Some(stock) = &mut self.stock else { return };
        // SAFETY: the queue lives as long as the driver and has `stock.count` entries. The tail is part of the first
        // entry.
        let tail = unsafe { ptr::read_volatile(BufRingEntry::tail(stock.queue)) };
        while stock.head != tail {
            // SAFETY: as above; entries before the tail are not written any more.
            let entry = unsafe { &*stock.queue.add(usize::from(stock.head % stock.count)) };
            stock.head = stock.head.wrapping_add(1);
            let before = stock.lent.insert(entry.bid(), false);
            assert_ne!(before, Some(false), "buffer {} was given back twice", entry.bid());
            stock.free.push_back((entry.bid(), entry.addr(), entry.len()));
        }
        assert!(stock.free.len() <= usize::from(stock.count));
    }
}
