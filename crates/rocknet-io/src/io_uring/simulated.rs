//! A kernel for tests that does with real sockets what it is asked, but when and how well a seeded die decides: slow, in any
//! order, with faults. What a driver must never do with memory and descriptors, it sees.

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

/// A die whose throws follow from its seed alone.
#[derive(Clone, Debug)]
pub(super) struct Die(u64);

impl Die {
    pub fn new(seed: u64) -> Die {
        Die(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `sides`, which is not 0.
    pub fn throw(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    /// True so many times out of a hundred.
    pub fn falls(&mut self, percent: usize) -> bool {
        self.throw(100) < percent
    }
}

/// How bad it gets, in times out of a hundred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// A call does nothing of what it could do for an operation.
    pub slow: usize,
    /// An operation ends in a way that another try mends, or brings less than it could.
    pub faults: usize,
    /// A connection is lost.
    pub losses: usize,
    /// A call of the ring is refused for now.
    pub refusals: usize,
    /// A call of the ring fails for good. In thousandths.
    pub breaks: usize,
    pub submissions: usize,
    pub completions: usize,
}

pub(super) struct Simulated {
    pub weather: Weather,
    die: Die,
    queue: VecDeque<Queued>,
    in_flight: Vec<Started>,
    posted: VecDeque<Completion>,
    /// For which there is no room.
    kept: VecDeque<Completion>,
    stock: Option<Stock>,
    /// Sockets of connections that were lost, by inode.
    pub lost: Rc<RefCell<HashSet<u64>>>,
    pub broken: bool,
    /// Receives that went past the ring.
    pub calls_past: usize,
    /// What of that was moved into pipes.
    pub bytes_piped: usize,
}

struct Queued {
    operation: Operation,
    user_data: u64,
    inode: u64,
}

struct Started {
    operation: Operation,
    user_data: u64,
    /// The kernel's own hold on it, whatever happens to the number.
    file: OwnedFd,
    cancelled: bool,
}

impl Started {
    /// Something that a thread of the kernel may do.
    fn is_file_operation(&self) -> bool {
        matches!(self.operation, Operation::Read { .. } | Operation::Open { .. })
    }
}

/// The kernel does not stop what its threads have in hand when a ring is closed: it writes where it was told to.
impl Drop for Simulated {
    fn drop(&mut self) {
        for started in std::mem::take(&mut self.in_flight) {
            let file = started.file.as_fd();
            match started.operation {
                Operation::Read {
                    into, length, offset, ..
                } => {
                    files::read(file, into, length as usize, offset);
                }
                Operation::Open { path, how, .. } if !self.broken && !std::thread::panicking() => {
                    panic!("nobody closes what is opened: {}", files::open(file, path, how));
                }
                _ => {}
            }
        }
    }
}

/// The kernel's side of provided buffers.
struct Stock {
    queue: *const BufRingEntry,
    count: u16,
    head: u16,
    free: VecDeque<(u16, u64, u32)>,
    /// True: the driver's to read.
    lent: HashMap<u16, bool>,
}

fn inode(descriptor: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(descriptor).expect("it is open").st_ino
}

#[allow(unsafe_code)]
fn borrow<'a>(descriptor: RawFd) -> BorrowedFd<'a> {
    // SAFETY: used within the call that it is made for; that it is the right one is checked by its inode.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}

impl Simulated {
    pub fn new(seed: u64, weather: Weather) -> Simulated {
        Simulated {
            weather,
            die: Die::new(seed),
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            posted: VecDeque::new(),
            kept: VecDeque::new(),
            stock: None,
            lost: Rc::default(),
            broken: false,
            calls_past: 0,
            bytes_piped: 0,
        }
    }

    pub fn provide(&mut self, queue: *const BufRingEntry, count: u16) {
        self.stock = Some(Stock {
            queue,
            count,
            head: 0,
            free: VecDeque::new(),
            lent: HashMap::new(),
        });
    }

    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.weather.submissions
    }

    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub fn has_work(&mut self) -> bool {
        !self.in_flight.is_empty() && self.die.falls(50)
    }

    pub fn keeps_completions(&self) -> bool {
        !self.kept.is_empty()
    }

    pub fn push(&mut self, operation: Operation, user_data: u64) {
        assert!(!self.is_full(), "an operation is lost");
        let inode = match operation {
            Operation::Receive(file)
            | Operation::Send { socket: file, .. }
            | Operation::Read { file, .. }
            | Operation::Open { directory: file, .. }
            | Operation::Wait { descriptor: file, .. } => inode(borrow(file)),
            Operation::Cancel(_) => 0,
        };
        self.queue.push_back(Queued {
            operation,
            user_data,
            inode,
        });
    }

    pub fn enter(&mut self, wait: bool) -> io::Result<()> {
        if self.broken || self.die.throw(1000) < self.weather.breaks {
            self.broken = true;
            return Err(Errno::BADFD.into());
        }
        if self.die.falls(self.weather.refusals) {
            return Err([Errno::INTR, Errno::AGAIN, Errno::BUSY][self.die.throw(3)].into());
        }
        let room = self.weather.completions - self.posted.len().min(self.weather.completions);
        self.posted.extend(self.kept.drain(..room.min(self.kept.len())));
        let all = !self.die.falls(self.weather.faults);
        while (all || !self.die.falls(30)) && self.has_queued() {
            self.start();
        }
        self.work(self.weather.slow);
        if wait && self.posted.is_empty() {
            // As long as it takes; and if nothing comes, a signal ends the wait.
            self.work(0);
        }
        Ok(())
    }

    /// What a call brings that goes past the ring.
    pub fn receive_now(&mut self, socket: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.go_past(socket)?;
        let fault = self.die.falls(self.weather.faults);
        if fault && self.die.falls(50) {
            return Err([Errno::AGAIN, Errno::INTR][self.die.throw(2)]);
        }
        let most = match fault {
            true => self.die.throw(buffer.len()) + 1,
            false => buffer.len(),
        };
        recv(borrow(socket), &mut buffer[..most], RecvFlags::DONTWAIT).map(|(got, _)| got)
    }

    pub fn fill_pipe(&mut self, socket: RawFd, pipe: &mut Pipe) -> io::Result<usize> {
        self.go_past(socket)?;
        if self.die.falls(self.weather.faults) {
            return Ok(0);
        }
        let moved = pipe.fill(borrow(socket))?;
        self.bytes_piped += moved;
        Ok(moved)
    }

    /// Before a socket is received from without the ring.
    fn go_past(&mut self, socket: RawFd) -> Result<(), Errno> {
        let receives = |started: &Started| {
            matches!(started.operation, Operation::Receive(_)) && inode(started.file.as_fd()) == inode(borrow(socket))
        };
        assert!(
            !self.in_flight.iter().any(receives),
            "an operation receives the same bytes"
        );
        self.calls_past += 1;
        match self.die.falls(self.weather.losses) {
            true => Err(Errno::from_raw_os_error(-self.lose(borrow(socket)))),
            false => Ok(()),
        }
    }

    pub fn next(&mut self) -> Option<Completion> {
        self.posted.pop_front()
    }

    /// What a thread of the kernel has in hand goes on.
    pub fn cancel_all(&mut self) -> bool {
        for started in std::mem::take(&mut self.in_flight) {
            if started.is_file_operation() && self.die.falls(70) {
                self.in_flight.push(started);
            } else {
                self.post(started.user_data, -libc::ECANCELED, false, None);
            }
        }
        self.posted.extend(self.kept.drain(..));
        true
    }

    /// Operations that hold a file open.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.queue.len()
    }

    /// Buffers that the driver has and never gave back.
    pub fn buffers_missing(&mut self) -> usize {
        self.take_back_buffers();
        let stock = self.stock.as_ref().expect("buffers");
        stock.lent.values().filter(|lent| **lent).count()
    }

    fn post(&mut self, user_data: u64, result: i32, more: bool, buffer: Option<u16>) {
        let completion = Completion {
            user_data,
            result,
            more,
            buffer,
        };
        if self.posted.len() < self.weather.completions && self.kept.is_empty() {
            self.posted.push_back(completion);
        } else {
            self.kept.push_back(completion);
        }
    }

    /// Takes over what is in front of the queue.
    fn start(&mut self) {
        let Some(Queued {
            operation,
            user_data,
            inode: expected,
        }) = self.queue.pop_front()
        else {
            return;
        };
        let descriptor = match operation {
            Operation::Cancel(of) => return self.cancel(of, user_data),
            Operation::Receive(file)
            | Operation::Send { socket: file, .. }
            | Operation::Read { file, .. }
            | Operation::Open { directory: file, .. }
            | Operation::Wait { descriptor: file, .. } => borrow(file),
        };
        assert_eq!(
            inode(descriptor),
            expected,
            "{operation:?}: its descriptor has become another's"
        );
        if let Operation::Send { bytes, length, .. } = operation {
            return self.send(descriptor, user_data, bytes, length);
        }
        self.in_flight.push(Started {
            operation,
            user_data,
            file: descriptor.try_clone_to_owned().expect("a descriptor"),
            cancelled: false,
        });
    }

    fn cancel(&mut self, of: u64, user_data: u64) {
        let missed = self.die.falls(self.weather.faults);
        match self.in_flight.iter_mut().find(|started| started.user_data == of) {
            // Looked for in the moment in which it was out of sight.
            Some(_) if missed => self.post(user_data, -libc::EALREADY, false, None),
            Some(started) => started.cancelled = true,
            None => self.post(user_data, -libc::ENOENT, false, None),
        }
    }

    #[allow(unsafe_code)]
    fn send(&mut self, socket: BorrowedFd<'_>, user_data: u64, bytes: *const u8, length: u32) {
        if self.die.falls(self.weather.losses) {
            let error = self.lose(socket);
            return self.post(user_data, error, false, None);
        }
        let most = match self.die.falls(self.weather.faults) {
            true => self.die.throw(length as usize + 1),
            false => length as usize,
        };
        // SAFETY: whoever pushed it promised that these bytes live and stay as they are until now.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, most) };
        let result = match send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            _ if most == 0 => -libc::EAGAIN,
            Ok(sent) if sent == length as usize => return,
            Ok(sent) => sent as i32,
            Err(error) => -error.raw_os_error(),
        };
        self.post(user_data, result, false, None);
    }

    fn lose(&mut self, socket: BorrowedFd<'_>) -> i32 {
        self.lost.borrow_mut().insert(inode(socket));
        let _ = shutdown(socket, Shutdown::Both);
        -[libc::ECONNRESET, libc::EPIPE][self.die.throw(2)]
    }

    /// Gets on with what is under way, in any order.
    fn work(&mut self, slow: usize) {
        self.take_back_buffers();
        let mut waiting = std::mem::take(&mut self.in_flight);
        while !waiting.is_empty() {
            let started = waiting.swap_remove(self.die.throw(waiting.len()));
            if self.die.falls(slow) || self.go_on(&started) {
                self.in_flight.push(started);
            }
        }
    }

    /// False if the operation has ended.
    fn go_on(&mut self, started: &Started) -> bool {
        let user_data = started.user_data;
        if started.cancelled {
            self.post(user_data, -libc::ECANCELED, false, None);
            return false;
        }
        match started.operation {
            Operation::Wait { events, .. } => {
                let wanted = PollFlags::from_bits_truncate(events as u16);
                let mut asked = [PollFd::new(&started.file, wanted)];
                let _ = poll(&mut asked, Some(&rustix::event::Timespec::default()));
                match asked[0].revents().bits() {
                    0 if !self.die.falls(self.weather.faults) => true,
                    events => {
                        self.post(user_data, i32::from(events), false, None);
                        false
                    }
                }
            }
            Operation::Read {
                into, length, offset, ..
            } => {
                let fault = self.die.falls(self.weather.faults);
                let result = self.read(started, into, length, offset, fault);
                self.post(user_data, result, false, None);
                false
            }
            Operation::Open { path, how, .. } => {
                let result = match self.die.falls(self.weather.faults) {
                    true => -[libc::EAGAIN, libc::EMFILE, libc::EIO][self.die.throw(3)],
                    false => files::open(started.file.as_fd(), path, how),
                };
                self.post(user_data, result, false, None);
                false
            }
            Operation::Receive(_) => {
                let mut goes_on = self.receive(started);
                while goes_on && self.die.falls(80) {
                    goes_on = self.receive(started);
                }
                goes_on
            }
            Operation::Send { .. } | Operation::Cancel(_) => unreachable!("ended when handed over"),
        }
    }

    fn read(&mut self, started: &Started, into: *mut u8, length: u32, offset: u64, fault: bool) -> i32 {
        if fault && self.die.falls(50) {
            return -libc::EIO;
        }
        let length = match fault {
            true => self.die.throw(length as usize) + 1,
            false => length as usize,
        };
        files::read(started.file.as_fd(), into, length, offset)
    }

    /// One completion at most. False if the operation has ended.
    #[allow(unsafe_code)]
    fn receive(&mut self, started: &Started) -> bool {
        let user_data = started.user_data;
        if self.die.falls(self.weather.losses) && self.die.falls(20) {
            let error = self.lose(started.file.as_fd());
            self.post(user_data, error, false, None);
            return false;
        }
        let fault = self.die.falls(self.weather.faults);
        if fault && self.die.falls(30) {
            let error = [libc::EAGAIN, libc::EINTR, libc::ECANCELED, libc::ENOBUFS][self.die.throw(4)];
            self.post(user_data, -error, false, None);
            return false;
        }
        let mut nothing = [PollFd::new(&started.file, PollFlags::IN)];
        let _ = poll(&mut nothing, Some(&rustix::event::Timespec::default()));
        if nothing[0].revents().is_empty() {
            return true;
        }
        let stock = self.stock.as_mut().expect("buffers");
        let Some((id, address, length)) = stock.free.pop_front() else {
            self.post(user_data, -libc::ENOBUFS, false, None);
            return false;
        };
        let most = match fault {
            true => self.die.throw(length as usize) + 1,
            false => length as usize,
        };
        // SAFETY: a buffer in the queue is the kernel's, and of this length.
        let buffer = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, most) };
        let got = recv(&started.file, buffer, RecvFlags::DONTWAIT).map(|(got, _)| got);
        let lend = got.is_ok_and(|got| got > 0) || self.die.falls(50);
        if lend {
            stock.lent.insert(id, true);
        } else {
            stock.free.push_front((id, address, length));
        }
        let more = got.is_ok_and(|got| got > 0) && !(fault && self.die.falls(30));
        let result = got.map_or_else(|error| -error.raw_os_error(), |got| got as i32);
        self.post(user_data, result, more, lend.then_some(id));
        more
    }

    #[allow(unsafe_code)]
    fn take_back_buffers(&mut self) {
        let Some(stock) = &mut self.stock else { return };
        // SAFETY: the queue lives as long as the driver, and has so many entries; the tail lies in the first.
        let tail = unsafe { ptr::read_volatile(BufRingEntry::tail(stock.queue)) };
        while stock.head != tail {
            // SAFETY: as above; entries before the tail are written no more.
            let entry = unsafe { &*stock.queue.add(usize::from(stock.head % stock.count)) };
            stock.head = stock.head.wrapping_add(1);
            let before = stock.lent.insert(entry.bid(), false);
            assert_ne!(before, Some(false), "buffer {} was given back twice", entry.bid());
            stock.free.push_back((entry.bid(), entry.addr(), entry.len()));
        }
        assert!(stock.free.len() <= usize::from(stock.count));
    }
}
