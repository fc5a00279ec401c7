//! What one thread's ring is made of: the kernel's queues, and what is known of all that was asked for.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::ptr;
use std::task::Waker;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, Timespec};
use io_uring::{IoUring, opcode};
use rustix::io::Errno;
use slab::Slab;
use tokio::io::unix::AsyncFd;

use super::buffers::{BUFFER, Buffers, GROUP};
use super::epoll;
use super::operation::{Kind, tag};
use super::outbox::Outbox;
use super::place::{Place, Receiving};
use super::reads::Reads;

/// Operations handed over in one system call; more are handed over in between.
const SUBMISSIONS: u32 = 256;
/// Room for completions. They are taken after every call, and one call brings far fewer.
const COMPLETIONS: u32 = 4096;
/// Bytes that nobody took in a turn beyond which a client is not read for in one go any more.
const PRESSING: usize = 64 * 1024;
/// Time for the kernel to end what it was doing when a ring is closed. It needs microseconds.
const END_WITHIN: Timespec = Timespec::new().sec(2);

pub(super) struct State {
    pub ring: IoUring,
    /// Given up instead of dropped if the kernel may still write to them.
    pub buffers: ManuallyDrop<Buffers>,
    pub places: Slab<Place>,
    pub outbox: Outbox,
    /// Given up like the buffers.
    pub reads: ManuallyDrop<Reads>,
    /// Places to which something came in this turn.
    pub held: Vec<usize>,
    /// Places whose receiving ended for want of buffers.
    pub starved: Vec<usize>,
    /// Sockets whose operations may not have been handed over yet: their numbers must not be given to others.
    pub closing: Vec<OwnedFd>,
    pub wakers: Vec<Waker>,
    /// Operations that the kernel has, or is about to have.
    pub operations: usize,
    pub epoll: RawFd,
    /// By this the runtime's epoll was found; and as long as it is registered there, the epoll is open.
    _witness: AsyncFd<OwnedFd>,
    pub keeper: Option<Waker>,
    pub watching: bool,
    /// System calls of the ring.
    #[cfg(test)]
    pub calls: usize,
}

impl State {
    /// To be called on the runtime whose thread it is for.
    pub fn new() -> io::Result<State> {
        let witness = crate::tcp::register(epoll::witness()?)?;
        let epoll = epoll::watching(witness.get_ref().as_fd())?;
        let ring = IoUring::builder()
            .dontfork()
            .setup_clamp()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(SUBMISSIONS)?;
        let buffers = ManuallyDrop::new(Buffers::new(&ring.submitter())?);
        Ok(State {
            ring,
            buffers,
            places: Slab::new(),
            outbox: Outbox::new(),
            reads: ManuallyDrop::new(Reads::new()?),
            held: Vec::new(),
            starved: Vec::new(),
            closing: Vec::new(),
            wakers: Vec::new(),
            operations: 0,
            epoll,
            _witness: witness,
            keeper: None,
            watching: false,
            #[cfg(test)]
            calls: 0,
        })
    }

    #[allow(unsafe_code)]
    pub fn push(&mut self, entry: &Entry) {
        while self.ring.submission().is_full() {
            if self.enter(false).is_err() {
                // The next turn meets the same error and tells it.
                return;
            }
        }
        // SAFETY: no operation that comes here names memory but that of the provided buffers and of the reads, which live
        // until the kernel has ended all of them. Descriptors are those of sockets and files that are kept open until the
        // operation was handed over.
        let _ = unsafe { self.ring.submission().push(entry) };
    }

    /// One system call, unless there is nothing to hand over and nothing to hear.
    pub fn enter(&mut self, wait: bool) -> io::Result<()> {
        loop {
            self.post();
            let all = self.outbox.is_posted();
            let queue = self.ring.submission();
            if !wait && queue.is_empty() && !queue.taskrun() {
                break;
            }
            drop(queue);
            #[cfg(test)]
            {
                self.calls += 1;
            }
            match self.ring.submit_and_wait(usize::from(wait && all)) {
                Ok(_) if all => break,
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) if wait => {}
                    // Completions must be taken first, or memory is short for now.
                    Some(Errno::INTR | Errno::BUSY | Errno::AGAIN) => break,
                    _ => return Err(error),
                },
            }
        }
        if self.ring.submission().is_empty() {
            self.closing.clear();
        }
        Ok(())
    }

    /// Puts what is to be sent into the queue; if it does not take all, the rest follows with the next call.
    #[allow(unsafe_code)]
    fn post(&mut self) {
        let State {
            ring, outbox, places, ..
        } = self;
        let mut queue = ring.submission();
        while !outbox.is_posted() && !queue.is_full() {
            let Some((entry, place)) = outbox.post(|place| places[place].socket) else {
                return;
            };
            // SAFETY: the outbox never moves its memory, and does not change or free what it has posted until the kernel
            // has taken it over and is done with it: it is asked not to wait, so a send ends within that call. The
            // socket is open: a place with a letter is left only after the letter.
            let _ = unsafe { queue.push(&entry.user_data(tag(Kind::Send, place))) };
        }
    }

    pub fn clear_outbox(&mut self) {
        let State {
            ring, outbox, places, ..
        } = self;
        if outbox.is_posted() && ring.submission().is_empty() {
            outbox.clear(|place| {
                if let Some(known) = places.get_mut(place) {
                    known.letter = None;
                }
            });
        }
    }

    pub fn arm(&mut self, place: usize) {
        let known = &mut self.places[place];
        known.receiving = Receiving::Armed;
        let socket = known.socket;
        self.operations += 1;
        let entry = if known.pressing {
            let once = opcode::Recv::new(Fd(socket), ptr::null_mut(), BUFFER as u32).buf_group(GROUP);
            once.build().flags(Flags::BUFFER_SELECT)
        } else {
            opcode::RecvMulti::new(Fd(socket), GROUP).build()
        };
        self.push(&entry.user_data(tag(Kind::Receive, place)));
    }

    pub fn cancel_receiving(&mut self, place: usize) {
        self.places[place].receiving = Receiving::Cancelled;
        self.cancel(Kind::Receive, Kind::CancelReceive, place);
    }

    pub fn cancel_writing(&mut self, place: usize) {
        self.cancel(Kind::Write, Kind::CancelWrite, place);
    }

    fn cancel(&mut self, kind: Kind, by: Kind, place: usize) {
        let entry = opcode::AsyncCancel::new(tag(kind, place)).build();
        self.push(&entry.flags(Flags::SKIP_SUCCESS).user_data(tag(by, place)));
    }

    /// Who has not taken what came in the last turn is not interested now: buffers are for those who are, and what else
    /// comes may wait in the socket.
    pub fn put_by(&mut self) {
        while let Some(place) = self.held.pop() {
            let Some(known) = self.places.get_mut(place) else {
                continue;
            };
            if known.put_by(&mut self.buffers) {
                known.pressing |= known.stash.len() > PRESSING;
                if known.receiving == Receiving::Armed {
                    self.cancel_receiving(place);
                }
            }
        }
    }

    /// Buffers ran out: in the next turn there are more, or those that were filled are free again.
    pub fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        self.buffers.grow();
        while let Some(place) = self.starved.pop() {
            if let Some(known) = self.places.get(place)
                && known.receiving == Receiving::Idle
                && !known.gone
            {
                self.arm(place);
            }
        }
    }

    /// The ring goes no further: everybody has to look for himself. What was to be sent may have left or not.
    pub fn fail(&mut self) {
        for (_, place) in &mut self.places {
            if place.letter.take().is_some() {
                place.refused = Some(Errno::CONNABORTED);
            }
        }
        let wakers = self.places.iter_mut().filter_map(|(_, place)| place.waker.take());
        self.wakers.extend(wakers);
        self.wakers.extend(self.reads.give_up());
        self.wakers.extend(self.keeper.take());
    }
}

impl Drop for State {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // All that was handed over ends before the memory it may write to is freed.
        let _ = self.enter(false);
        let cancelled = self
            .ring
            .submitter()
            .register_sync_cancel(Some(END_WITHIN), CancelBuilder::any());
        let nothing_left = match cancelled {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if nothing_left && self.ring.submitter().unregister_buf_ring(GROUP).is_ok() {
            // SAFETY: this is the only place that drops them, and nothing uses them afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.reads);
            }
        }
    }
}
