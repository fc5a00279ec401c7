//! The line between a driver and the kernel: operations go down, completions come up.

use std::ffi::c_char;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{BufRingEntry, CancelBuilder, Fd, OpenHow, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

#[cfg(test)]
use super::simulated::SimulatedKernel;
use crate::epoll;
use crate::pipe::Pipe;

/// The one group of buffers of a ring.
const GROUP: u16 = 0;
/// Operations handed over in one system call; more are handed over in between.
const SUBMISSIONS: u32 = 256;
/// Room for completions. They are taken after every call, and one call brings far fewer; what finds no room the kernel
/// keeps.
const COMPLETIONS: u32 = 4096;
/// Time for the kernel to end what it was doing when a ring is closed. It needs microseconds, if no disk hangs.
pub(super) const END_WITHIN: Duration = Duration::from_secs(2);
/// All of it at once or what there is room for, without waiting: the rest is told by a completion.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;

/// What is asked of the kernel. Its number comes back with each of its completions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// Into provided buffers, until it is told to end.
    Receive(RawFd),
    /// Until there is one of these events.
    Wait { descriptor: RawFd, events: u32 },
    /// Tried while it is handed over and never kept. It completes only if not all has left.
    Send {
        socket: RawFd,
        bytes: *const u8,
        length: u32,
    },
    Read {
        file: RawFd,
        into: *mut u8,
        length: u32,
        offset: u64,
    },
    /// Looks a name up below a directory and opens what is there.
    Open {
        directory: RawFd,
        path: *const c_char,
        how: *const OpenHow,
    },
    /// Ends the operation of this number. It completes only if there was none.
    Cancel(u64),
}

impl Operation {
    #[inline]
    fn entry(self) -> Entry {
        match self {
            Operation::Receive(socket) => opcode::RecvMulti::new(Fd(socket), GROUP).build(),
            Operation::Wait { descriptor, events } => opcode::PollAdd::new(Fd(descriptor), events).build(),
            Operation::Send { socket, bytes, length } => {
                let send = opcode::Send::new(Fd(socket), bytes, length).flags(SEND_FLAGS);
                send.build().flags(Flags::SKIP_SUCCESS)
            }
            Operation::Read {
                file,
                into,
                length,
                offset,
            } => opcode::Read::new(Fd(file), into, length).offset(offset).build(),
            Operation::Open { directory, path, how } => opcode::OpenAt2::new(Fd(directory), path, how).build(),
            Operation::Cancel(user_data) => opcode::AsyncCancel::new(user_data).build().flags(Flags::SKIP_SUCCESS),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub user_data: u64,
    /// As a system call tells it: negative is an error.
    pub result: i32,
    /// Others of this operation follow.
    pub more: bool,
    /// The provided buffer that was filled.
    pub buffer: Option<u16>,
}

#[allow(clippy::large_enum_variant)] // A thread has one of them.
pub(super) enum Kernel {
    Ring(IoUring),
    /// Nothing goes down and nothing comes up any more.
    Closed,
    #[cfg(test)]
    Simulated(Box<SimulatedKernel>),
}

#[allow(unsafe_code)]
impl Kernel {
    pub fn new() -> io::Result<Kernel> {
        let ring = IoUring::builder()
            .dontfork()
            .setup_clamp()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(SUBMISSIONS)?;
        Ok(Kernel::Ring(ring))
    }

    /// Lets the kernel choose from a queue of free buffers.
    ///
    /// # Safety
    ///
    /// `queue` is page-aligned, zeroed, of `count` entries, and lives until `cancel_all` was true.
    pub unsafe fn provide(&mut self, queue: *const BufRingEntry, count: u16) -> io::Result<()> {
        match self {
            // SAFETY: as promised above.
            Kernel::Ring(ring) => unsafe {
                ring.submitter()
                    .register_buf_ring_with_flags(queue as u64, count, GROUP, 0)
            },
            Kernel::Closed => Err(io::ErrorKind::NotConnected.into()),
            #[cfg(test)]
            Kernel::Simulated(simulated) => {
                simulated.provide(queue, count);
                Ok(())
            }
        }
    }

    #[inline]
    pub fn is_full(&mut self) -> bool {
        match self {
            Kernel::Ring(ring) => ring.submission().is_full(),
            Kernel::Closed => false,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.is_full(),
        }
    }

    /// Whether something has not been handed over yet.
    #[inline]
    pub fn has_queued(&mut self) -> bool {
        match self {
            Kernel::Ring(ring) => !ring.submission().is_empty(),
            Kernel::Closed => false,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.has_queued(),
        }
    }

    /// Whether the kernel has something to do that it leaves to the next call.
    #[inline]
    pub fn has_work(&mut self) -> bool {
        match self {
            Kernel::Ring(ring) => ring.submission().taskrun(),
            Kernel::Closed => false,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.has_work(),
        }
    }

    /// Whether the kernel keeps completions for which there was no room: they come after those there are were taken, with
    /// the next call.
    #[inline]
    pub fn has_overflow(&mut self) -> bool {
        match self {
            Kernel::Ring(ring) => ring.submission().cq_overflow(),
            Kernel::Closed => false,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.has_overflow(),
        }
    }

    /// Puts an operation into the queue, which is not full.
    ///
    /// # Safety
    ///
    /// Its descriptor stays open until it was handed over. What it names of memory lives, and nobody else writes to it,
    /// until its last completion; of a send and of a name, until it was handed over.
    #[inline]
    pub unsafe fn push(&mut self, operation: Operation, user_data: u64) {
        match self {
            Kernel::Ring(ring) => {
                // SAFETY: as promised above.
                let _ = unsafe { ring.submission().push(&operation.entry().user_data(user_data)) };
            }
            Kernel::Closed => {}
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.push(operation, user_data),
        }
    }

    /// The one system call: hands over, waits for so many completions, and lets the kernel do what it has to do.
    #[inline]
    pub fn enter(&mut self, wait: bool) -> io::Result<()> {
        match self {
            Kernel::Ring(ring) => ring.submit_and_wait(usize::from(wait)).map(drop),
            Kernel::Closed => Ok(()),
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.enter(wait),
        }
    }

    /// Receives by a call, without the ring. No operation may be receiving for this socket.
    pub fn receive(&mut self, socket: RawFd, buffer: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Kernel::Ring(_) | Kernel::Closed => {
                // SAFETY: the socket of a place is open until the place is left, and nobody else closes it in between.
                let socket = unsafe { BorrowedFd::borrow_raw(socket) };
                epoll::receive(socket, buffer)
            }
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.receive_directly(socket, buffer),
        }
    }

    /// Returns whether the other side of a Unix socket has ended and all its bytes were received. All completions must have
    /// been taken.
    ///
    /// On Linux 6.18 a multishot receive can miss the end of a Unix socket: it stays armed while its peer is closed and nothing is
    /// queued (seen in 2 of 400 runs of a test that writes many small pieces and closes). The likely cause is that such sockets
    /// tell their length since Linux 6.17: a receive that emptied one is not tried again, and the event of the end may have
    /// been used up by then. TCP counts an end as something that is queued, and no miss was seen there.
    pub fn has_ended(&self, socket: RawFd) -> bool {
        match self {
            Kernel::Ring(_) | Kernel::Closed => {
                // SAFETY: as in `receive`.
                let socket = unsafe { BorrowedFd::borrow_raw(socket) };
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                matches!(recv(socket, &mut [0_u8; 1][..], flags), Ok((_, 0)))
            }
            #[cfg(test)]
            Kernel::Simulated(_) => false,
        }
    }

    /// Moves what a socket has into a pipe, as it is received without the ring.
    pub fn fill_pipe(&mut self, socket: RawFd, pipe: &mut Pipe) -> io::Result<usize> {
        match self {
            // SAFETY: as in `receive`.
            Kernel::Ring(_) | Kernel::Closed => pipe.fill(unsafe { BorrowedFd::borrow_raw(socket) }),
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.fill_pipe(socket, pipe),
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Completion> {
        match self {
            Kernel::Ring(ring) => ring.completion().next().map(|entry| Completion {
                user_data: entry.user_data(),
                result: entry.result(),
                more: cqueue::more(entry.flags()),
                buffer: cqueue::buffer_select(entry.flags()),
            }),
            Kernel::Closed => None,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.next(),
        }
    }

    /// Waits for a completion, and not for long; errors are told as by `enter`, and there need not be one.
    pub fn enter_within(&mut self, most: Duration) -> io::Result<()> {
        match self {
            Kernel::Ring(ring) => {
                let most = Timespec::from(most);
                let waited = ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&most));
                match waited {
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::TIME) => Ok(()),
                    waited => waited.map(drop),
                }
            }
            Kernel::Closed => Err(io::ErrorKind::NotConnected.into()),
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.enter(true),
        }
    }

    /// Ends all that was handed over but what a thread of the kernel has in hand, or a disk: that is told when it ends. True
    /// if nothing else is left that would write to memory.
    pub fn cancel_all(&mut self) -> bool {
        match self {
            Kernel::Ring(ring) => {
                let submitter = ring.submitter();
                let within = Timespec::from(END_WITHIN);
                let nothing_left = match submitter.register_sync_cancel(Some(within), CancelBuilder::any()) {
                    Ok(()) => true,
                    Err(error) => error.kind() == io::ErrorKind::NotFound,
                };
                nothing_left && submitter.unregister_buf_ring(GROUP).is_ok()
            }
            Kernel::Closed => true,
            #[cfg(test)]
            Kernel::Simulated(simulated) => simulated.cancel_all(),
        }
    }
}
