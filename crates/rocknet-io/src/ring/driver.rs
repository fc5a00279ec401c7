//! The ring of one thread: what its connections ask of the kernel, and what the kernel answers.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use rustix::io::Errno;
use slab::Slab;
use tokio::io::unix::AsyncFd;

use super::buffers::{Buffers, GROUP};
use super::epoll;
use super::outbox::{LARGEST, Outbox};
use super::place::{End, Place, Receiving};

/// Operations handed over in one system call; more are handed over in between.
const SUBMISSIONS: u32 = 256;
/// Room for completions. They are taken after every call, and one call brings far fewer.
const COMPLETIONS: u32 = 4096;
/// Looks of connections at the ring after which it is turned though tasks are still running: tasks that wake one another
/// must not keep everybody else waiting.
const LOOKS_PER_TURN: u32 = 256;
/// Time for the kernel to end what it was doing when a ring is closed. It needs microseconds.
const END_WITHIN: Timespec = Timespec::new().sec(2);

thread_local!(static CURRENT: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) });

/// The ring of this thread, if it has one that works.
pub fn current() -> Option<Rc<Driver>> {
    CURRENT.with_borrow(|driver| driver.clone().filter(|driver| !driver.failed.get()))
}

/// Makes a ring that of this thread, until the guard is dropped. To be called on the runtime it will serve.
pub(crate) fn install() -> io::Result<Installed> {
    let driver = Driver::new()?;
    let keeper = Rc::clone(&driver);
    crate::runtime::spawn(std::future::poll_fn(move |context| {
        keeper.watch_epoll(context.waker());
        Poll::Pending
    }));
    CURRENT.set(Some(driver));
    Ok(Installed)
}

pub(crate) struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// What the runtime does when it has nothing to do: sleeps in the ring until somebody is to be woken.
pub(crate) fn park() {
    if let Some(driver) = current() {
        while !driver.turn(true) && !driver.failed.get() {}
    }
}

pub struct Driver {
    inner: RefCell<Inner>,
    /// The kernel refused to go on.
    failed: Cell<bool>,
    /// Looks since the last turn.
    looks: Cell<u32>,
    /// Connections that have something unsent to take back, so that the others need not look.
    returned: Cell<usize>,
}

struct Inner {
    ring: IoUring,
    /// Given up instead of dropped if the kernel may still write to them.
    buffers: ManuallyDrop<Buffers>,
    places: Slab<Place>,
    outbox: Outbox,
    /// Places to which something came in this turn.
    held: Vec<usize>,
    /// Places whose receiving ended for want of buffers.
    starved: Vec<usize>,
    /// Sockets whose operations may not have been handed over yet: their numbers must not be given to others.
    closing: Vec<OwnedFd>,
    wakers: Vec<Waker>,
    /// Operations that the kernel has, or is about to have.
    operations: usize,
    epoll: RawFd,
    /// By this the runtime's epoll was found; and as long as it is registered there, the epoll is open.
    _witness: AsyncFd<OwnedFd>,
    keeper: Option<Waker>,
    watching: bool,
    /// System calls of the ring.
    #[cfg(test)]
    calls: usize,
}

/// What an operation is, in the lower bits of what comes back with its completion; above them the place.
#[derive(Clone, Copy)]
enum Kind {
    Receive = 0,
    Write = 1,
    Epoll = 2,
    Cancel = 3,
    Send = 4,
}

const KIND_BITS: u32 = 3;

fn tag(kind: Kind, place: usize) -> u64 {
    (place as u64) << KIND_BITS | kind as u64
}

impl Driver {
    fn new() -> io::Result<Rc<Driver>> {
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
        Ok(Rc::new(Driver {
            inner: RefCell::new(Inner {
                ring,
                buffers,
                places: Slab::new(),
                outbox: Outbox::new(),
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
            }),
            failed: Cell::new(false),
            looks: Cell::new(0),
            returned: Cell::new(0),
        }))
    }

    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Hands over what was asked for, waits for an answer if `wait`, and wakes whom it concerns: true if there was anybody.
    pub fn turn(&self, wait: bool) -> bool {
        self.looks.set(0);
        let mut inner = self.inner.borrow_mut();
        inner.put_by();
        if let Err(error) = inner.enter(wait) {
            self.failed.set(true);
            tracing::error!("io_uring failed: {error}; connections go on with epoll");
            inner.fail();
        }
        let returned = inner.reap();
        self.returned.set(self.returned.get() + returned);
        inner.clear_outbox();
        inner.feed_starved();
        let mut wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        let any = !wakers.is_empty();
        for waker in wakers.drain(..) {
            waker.wake();
        }
        self.inner.borrow_mut().wakers = wakers;
        any
    }

    /// Takes all that the kernel has to tell at this moment.
    pub fn hear(&self) {
        while self.turn(false) || self.has_more() {}
    }

    /// Whether the kernel has work that it leaves to the next turn.
    fn has_more(&self) -> bool {
        !self.failed.get() && self.inner.borrow_mut().ring.submission().taskrun()
    }

    /// A place for a socket, which is to stay open until it is given to `leave`.
    pub(super) fn enter(&self, socket: BorrowedFd<'_>) -> usize {
        self.inner.borrow_mut().places.insert(Place::new(socket.as_raw_fd()))
    }

    /// Nobody asks for this place any more. Its socket is closed as soon as no operation can mistake another for it.
    pub(super) fn leave(&self, place: usize, socket: OwnedFd) {
        self.flush(place);
        let mut inner = self.inner.borrow_mut();
        let Inner { places, buffers, .. } = &mut *inner;
        let Some(known) = places.get_mut(place) else { return };
        known.gone = true;
        known.waker = None;
        if !known.unsent.is_empty() {
            known.unsent = Vec::new();
            self.returned.set(self.returned.get() - 1);
        }
        for filled in known.filled.drain(..) {
            buffers.give_back(filled);
        }
        known.stash = Vec::new();
        let (receiving, writing) = (known.receiving, known.writing);
        if known.is_free() {
            places.remove(place);
            return;
        }
        if receiving == Receiving::Armed {
            inner.cancel(Kind::Receive, place);
        }
        if writing {
            inner.cancel(Kind::Write, place);
        }
        inner.closing.push(socket);
    }

    /// Whether nothing that arrived is left to be taken, nor an end to be told.
    pub(super) fn is_empty(&self, place: usize) -> bool {
        let inner = self.inner.borrow();
        let known = &inner.places[place];
        known.stash.is_empty() && known.filled.is_empty() && known.end.is_none() && known.refused.is_none()
    }

    /// Takes bytes to be sent with all others of this turn; false if it does not.
    #[inline]
    pub(super) fn send(&self, place: usize, bytes: &[u8]) -> bool {
        if bytes.len() > LARGEST || self.failed.get() {
            return false;
        }
        let mut inner = self.inner.borrow_mut();
        let Inner { places, outbox, .. } = &mut *inner;
        let known = &mut places[place];
        if !known.unsent.is_empty() || known.refused.is_some() {
            return false;
        }
        match outbox.put(place, known.letter, bytes) {
            Some(number) => {
                known.letter = Some(number);
                true
            }
            None => false,
        }
    }

    /// What was taken to be sent leaves now, or comes back.
    pub(super) fn flush(&self, place: usize) {
        let waits = |inner: &Inner| inner.places.get(place).is_some_and(|known| known.letter.is_some());
        while waits(&self.inner.borrow()) && !self.failed.get() {
            self.turn(false);
        }
    }

    #[inline]
    pub(super) fn take_unsent(&self, place: usize) -> Option<Vec<u8>> {
        if self.returned.get() == 0 {
            return None;
        }
        let unsent = std::mem::take(&mut self.inner.borrow_mut().places[place].unsent);
        if unsent.is_empty() {
            return None;
        }
        self.returned.set(self.returned.get() - 1);
        Some(unsent)
    }

    /// Why nothing more can be sent, if so; pending while something came back that has not been taken.
    pub(super) fn poll_sendable(&self, context: &Context<'_>, place: usize) -> Poll<io::Result<()>> {
        let inner = self.inner.borrow();
        let known = &inner.places[place];
        if let Some(error) = known.refused {
            return Poll::Ready(Err(error.into()));
        }
        if known.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Gives a place up whose socket lives on without this ring, which will never end its operations.
    pub(super) fn forget(&self, place: usize) {
        if let Some(known) = self.inner.borrow_mut().places.get_mut(place) {
            known.gone = true;
        }
    }

    #[inline]
    pub(super) fn poll_receive(
        &self,
        context: &Context<'_>,
        place: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.look();
        let mut inner = self.inner.borrow_mut();
        let Inner { places, buffers, .. } = &mut *inner;
        let known = &mut places[place];
        if let Some(error) = known.refused {
            return Poll::Ready(Err(error.into()));
        }
        if !known.unsent.is_empty() {
            // First it is to be taken back.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let got = known.take(buffers, buffer);
        if got > 0 {
            return Poll::Ready(Ok(got));
        }
        if known.end.is_some() && known.letter.is_some() {
            // The end may be the last that is asked for: what was to be sent before must have left.
            drop(inner);
            self.flush(place);
            return self.poll_receive(context, place, buffer);
        }
        match known.end {
            Some(End::Closed) => return Poll::Ready(Ok(0)),
            Some(End::Failed(error)) => return Poll::Ready(Err(error.into())),
            None => {}
        }
        known.wait(context.waker());
        if known.receiving == Receiving::Idle {
            inner.arm(place);
        }
        Poll::Pending
    }

    /// Wakes the task when there is room in the socket.
    pub(super) fn wake_when_writable(&self, context: &Context<'_>, place: usize) {
        let mut inner = self.inner.borrow_mut();
        let known = &mut inner.places[place];
        known.wait(context.waker());
        if !known.writing {
            known.writing = true;
            let wanted = (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as u32;
            let entry = opcode::PollAdd::new(Fd(known.socket), wanted).build();
            inner.operations += 1;
            inner.push(&entry.user_data(tag(Kind::Write, place)));
        }
    }

    /// Places in use, and operations of connections that have not ended.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let inner = self.inner.borrow();
        (inner.places.len(), inner.operations - usize::from(inner.watching))
    }

    #[cfg(test)]
    pub(super) fn calls(&self) -> usize {
        self.inner.borrow().calls
    }

    /// As if the kernel had refused to go on.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        self.failed.set(true);
        self.inner.borrow_mut().fail();
        let wakers = std::mem::take(&mut self.inner.borrow_mut().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    #[inline]
    fn look(&self) {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() >= LOOKS_PER_TURN {
            self.turn(false);
        }
    }

    /// Waits for the runtime's epoll. Asked again after each of its events, when the runtime has looked at them.
    fn watch_epoll(&self, waker: &Waker) {
        let mut inner = self.inner.borrow_mut();
        inner.keeper = Some(waker.clone());
        if !inner.watching {
            inner.watching = true;
            inner.operations += 1;
            let entry = opcode::PollAdd::new(Fd(inner.epoll), libc::POLLIN as u32).build();
            inner.push(&entry.user_data(tag(Kind::Epoll, 0)));
        }
    }
}

impl Inner {
    #[allow(unsafe_code)]
    fn push(&mut self, entry: &Entry) {
        while self.ring.submission().is_full() {
            if self.enter(false).is_err() {
                // The next turn meets the same error and tells it.
                return;
            }
        }
        // SAFETY: no operation of this driver names memory but that of the provided buffers, which live until the kernel
        // has ended all of them. Descriptors are those of sockets kept open until the operation was handed over.
        let _ = unsafe { self.ring.submission().push(entry) };
    }

    /// One system call, unless there is nothing to hand over and nothing to hear.
    fn enter(&mut self, wait: bool) -> io::Result<()> {
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
        let Inner {
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

    fn clear_outbox(&mut self) {
        let Inner {
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

    fn arm(&mut self, place: usize) {
        let known = &mut self.places[place];
        known.receiving = Receiving::Armed;
        let socket = known.socket;
        self.operations += 1;
        let entry = opcode::RecvMulti::new(Fd(socket), GROUP).build();
        self.push(&entry.user_data(tag(Kind::Receive, place)));
    }

    fn cancel(&mut self, kind: Kind, place: usize) {
        if matches!(kind, Kind::Receive) {
            self.places[place].receiving = Receiving::Cancelled;
        }
        let entry = opcode::AsyncCancel::new(tag(kind, place)).build();
        self.push(&entry.flags(Flags::SKIP_SUCCESS).user_data(tag(Kind::Cancel, place)));
    }

    /// Who has not taken what came in the last turn is not interested now: buffers are for those who are, and what else
    /// comes may wait in the socket.
    fn put_by(&mut self) {
        while let Some(place) = self.held.pop() {
            let Some(known) = self.places.get_mut(place) else {
                continue;
            };
            if known.put_by(&mut self.buffers) && known.receiving == Receiving::Armed {
                self.cancel(Kind::Receive, place);
            }
        }
    }

    /// Takes the completions; tells how many connections have something to take back.
    fn reap(&mut self) -> usize {
        let mut returned = 0;
        let Inner {
            ring,
            buffers,
            places,
            outbox,
            held,
            starved,
            wakers,
            operations,
            keeper,
            watching,
            ..
        } = self;
        for completion in ring.completion() {
            let (data, result, flags) = (completion.user_data(), completion.result(), completion.flags());
            let more = cqueue::more(flags);
            let place = (data >> KIND_BITS) as usize;
            let kind = data & ((1 << KIND_BITS) - 1);
            if kind == Kind::Cancel as u64 {
                continue;
            }
            if kind == Kind::Send as u64 {
                let Some(known) = places.get_mut(place) else { continue };
                match usize::try_from(result) {
                    Err(_) if Errno::from_raw_os_error(-result) != Errno::AGAIN => {
                        known.refused = Some(Errno::from_raw_os_error(-result));
                    }
                    sent => {
                        known.unsent = outbox.rest(known.letter, sent.unwrap_or(0)).to_vec();
                        returned += usize::from(!known.unsent.is_empty());
                    }
                }
                wakers.extend(known.waker.take());
                continue;
            }
            if !more {
                *operations -= 1;
            }
            if kind == Kind::Epoll as u64 {
                *watching = false;
                wakers.extend(keeper.take());
                continue;
            }
            let Some(known) = places.get_mut(place) else { continue };
            if kind == Kind::Write as u64 {
                known.writing = false;
            } else {
                if !more {
                    known.receiving = Receiving::Idle;
                }
                let buffer = cqueue::buffer_select(flags);
                match (buffer, usize::try_from(result)) {
                    (Some(id), Ok(length)) if length > 0 && !known.gone => {
                        if known.filled.is_empty() {
                            held.push(place);
                        }
                        known.filled.extend(buffers.filled(id, length));
                    }
                    (Some(id), _) => buffers.give_back_empty(id),
                    (None, Ok(_)) => known.end = Some(End::Closed),
                    (None, Err(_)) => match Errno::from_raw_os_error(-result) {
                        Errno::NOBUFS => {
                            if !known.gone {
                                starved.push(place);
                                continue;
                            }
                        }
                        // Ours, or nothing that another try does not mend.
                        Errno::CANCELED | Errno::AGAIN | Errno::INTR => {}
                        error => known.end = Some(End::Failed(error)),
                    },
                }
                // With nothing in it, the end is told by a buffer of no length.
                if buffer.is_some() && result == 0 {
                    known.end = Some(End::Closed);
                }
            }
            if known.is_free() {
                places.remove(place);
            } else {
                wakers.extend(known.waker.take());
            }
        }
        returned
    }

    /// Buffers ran out: in the next turn there are more, or those that were filled are free again.
    fn feed_starved(&mut self) {
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
    fn fail(&mut self) {
        for (_, place) in &mut self.places {
            if place.letter.take().is_some() {
                place.refused = Some(Errno::CONNABORTED);
            }
        }
        let wakers = self.places.iter_mut().filter_map(|(_, place)| place.waker.take());
        self.wakers.extend(wakers);
        self.wakers.extend(self.keeper.take());
    }
}

impl Drop for Inner {
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
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}
