//! Driver of one thread's ring, through which the connections of the thread send, receive and wait. A turn of the ring
//! submits the queued operations, processes completions and wakes tasks.
//!
//! Each connection has a slot in the state of the ring, and a [`Link`](crate::link::Link) that calls the driver with
//! the index of this slot (`stream.rs`).

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::net::{AddressFamily, sockopt};

use super::kernel::Operation;
use super::slot::{ConnectionSlot, ReceiveEnd, ReceiveState};
use super::state::RingState;
use super::user_data::{OperationKind, encode};
use super::write_batch::MAX_WRITE_BYTES;
use crate::epoll::write_batch;

/// Number of steps after which the ring makes a turn although tasks are still running. Tasks that keep waking each
/// other must not delay all others. Each poll of a receive is one step; a send without the ring or a large receive adds
/// more.
const STEPS_PER_TURN: u32 = 256;
/// Number of steps that a send without the ring adds, because it may send half a megabyte of a file.
const SEND_STEPS: u32 = 8;

// The driver of this thread, while a ring is installed on it.
thread_local!(static CURRENT: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) });

/// Returns the driver of this thread; `None` if the thread has no ring, or if its ring has failed.
pub fn current() -> Option<Rc<Driver>> {
    CURRENT.with_borrow(|driver| driver.clone().filter(|driver| !driver.failed.get()))
}

/// Installs a ring for this thread until the guard is dropped. Must be called on the runtime that the ring will serve.
pub(crate) fn install() -> io::Result<DriverGuard> {
    let driver = Driver::new()?;
    let watcher = Rc::clone(&driver);
    // Whenever this task is woken, it makes the ring watch the runtime's epoll instance again. Dropping the handle
    // detaches the task, which runs as long as the runtime.
    drop(tokio::task::spawn_local(std::future::poll_fn(
        move |context| -> Poll<()> {
            watcher.watch_epoll(context.waker());
            Poll::Pending
        },
    )));
    CURRENT.set(Some(driver));
    Ok(DriverGuard)
}

/// Removes the ring of this thread when dropped.
pub(crate) struct DriverGuard;

impl Drop for DriverGuard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Waits in the ring until a task is woken. If there is no ring, or it has failed, only sends the batched writes. The
/// runtime calls this function before it parks its thread.
pub(crate) fn on_park() {
    let Some(driver) = current() else {
        write_batch::flush_current_thread();
        return;
    };
    while !driver.turn_and_wait() && !driver.failed.get() {}
    driver.wake_epoll_task();
}

/// Ring of one thread, shared by its connections.
pub struct Driver {
    state: RefCell<RingState>,
    /// True once the kernel has permanently refused a system call of the ring.
    failed: Cell<bool>,
    /// Steps since the last turn.
    steps: Cell<u32>,
    /// Number of connections with unsent bytes to take back. While it is 0, no connection needs to examine its slot.
    unsent_count: Cell<usize>,
}

impl Driver {
    /// Creates a driver with a new ring. Must be called on the runtime of this thread.
    fn new() -> io::Result<Rc<Driver>> {
        Ok(Driver::from_state(RingState::new()?))
    }

    /// Creates a driver for the given ring.
    pub(super) fn from_state(state: RingState) -> Rc<Driver> {
        Rc::new(Driver {
            state: RefCell::new(state),
            failed: Cell::new(false),
            steps: Cell::new(0),
            unsent_count: Cell::new(0),
        })
    }

    /// Returns whether the kernel has permanently refused a system call of the ring.
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Submits the queued operations, processes the completions that have arrived, and wakes the tasks concerned.
    /// Returns whether any task was woken. First sends the batched writes of sockets that the ring does not drive.
    pub fn turn(&self) -> bool {
        self.turn_with(false)
    }

    /// Makes a turn that waits for a completion, unless sending the batched writes has woken a task.
    fn turn_and_wait(&self) -> bool {
        self.turn_with(true)
    }

    /// Implements [`Driver::turn`], and [`Driver::turn_and_wait`] if `wait` is true.
    pub(super) fn turn_with(&self, wait: bool) -> bool {
        self.steps.set(0);
        // True if sockets did not accept all bytes. The tasks that take the rest back were then woken.
        let has_unsent = write_batch::flush_current_thread();
        if self.failed.get() {
            return has_unsent;
        }
        let mut state = self.state.borrow_mut();
        // Empties buffers of the ring whose data no task has received since the last turn, so that the kernel can fill
        // them again.
        state.stash_filled();
        let mut entered = state.enter(wait && !has_unsent);
        let mut unsent = state.reap();
        while entered.is_ok() && state.kernel.has_overflow() {
            // The completion queue has overflowed. Sends end within `enter`, so the overflow may contain completions of
            // failed sends, which must be processed before the writes are cleared below. `false`: does not wait.
            entered = state.enter(false);
            unsent += state.reap();
        }
        if let Err(error) = entered {
            self.failed.set(true);
            tracing::error!("io_uring failed: {error}; this worker continues with epoll");
            unsent += state.fail();
        }
        self.unsent_count.set(self.unsent_count.get() + unsent);
        state.clear_write_batch();
        state.rearm_starved();
        let mut wakers = std::mem::take(&mut state.wakers);
        drop(state);
        let any = has_unsent || !wakers.is_empty();
        for waker in wakers.drain(..) {
            waker.wake();
        }
        // Keeps the memory of the list for the next turn.
        self.state.borrow_mut().wakers = wakers;
        any
    }

    /// Wakes the task that watches epoll, so that the runtime runs a task and calls `on_park` again before it sleeps.
    /// The turn may have woken only tasks that had ended before. The runtime would then have no task to run, and would
    /// sleep in its own epoll at once, where completions do not wake it.
    fn wake_epoll_task(&self) {
        let epoll_waker = self.state.borrow_mut().epoll_waker.take();
        if let Some(waker) = epoll_waker {
            waker.wake();
        }
    }

    /// Delivers every completion that the kernel has at this moment.
    pub fn drain(&self) {
        while self.turn() || self.has_kernel_work() {}
    }

    /// Returns whether the kernel has pending task work, which it performs in the next call.
    fn has_kernel_work(&self) -> bool {
        !self.failed.get() && self.state.borrow_mut().kernel.has_work()
    }

    /// Calls `act` with the state of the ring. `act` must not call the driver, because the state is borrowed.
    pub(super) fn with_state<T>(&self, act: impl FnOnce(&mut RingState) -> T) -> T {
        act(&mut self.state.borrow_mut())
    }

    /// Adds a slot for a socket, and returns the index of the slot. The socket must remain open until it is passed to
    /// `release`.
    pub(super) fn register(&self, socket: BorrowedFd<'_>) -> usize {
        let is_unix = matches!(sockopt::socket_domain(socket), Ok(AddressFamily::UNIX));
        let slot = ConnectionSlot::new(socket.as_raw_fd(), is_unix);
        self.state.borrow_mut().slots.insert(slot)
    }

    /// Releases a slot, after sending its batched write. Unsent bytes and received data are discarded. The socket is
    /// closed once no queued operation refers to its descriptor number, because a socket that is opened after the close
    /// may get the same number. `socket` is `None` if epoll has taken it over after a failure of the ring.
    pub(super) fn release(&self, index: usize, socket: Option<OwnedFd>) {
        self.flush(index);
        let mut state = self.state.borrow_mut();
        let RingState { slots, buffers, .. } = &mut *state;
        let Some(slot) = slots.get_mut(index) else { return };
        slot.is_released = true;
        slot.waker = None;
        if !slot.unsent.is_empty() {
            slot.unsent = Vec::new();
            self.unsent_count.set(self.unsent_count.get() - 1);
        }
        for filled in slot.filled.drain(..) {
            buffers.give_back(filled);
        }
        slot.stash = Vec::new();
        let (receiving, awaits_writable) = (slot.receiving, slot.awaits_writable);
        if slot.can_be_removed() || self.failed.get() {
            slots.remove(index);
            return;
        }
        if receiving == ReceiveState::Armed {
            state.cancel_receiving(index);
        }
        if awaits_writable {
            state.cancel_writable(index);
        }
        state.closing.extend(socket);
    }

    /// Returns true if the connection has taken everything that the ring has received for it: data, the end, and
    /// errors. After a failure of the ring, only then may the socket be read directly.
    pub(super) fn has_delivered_all(&self, index: usize) -> bool {
        let state = self.state.borrow();
        let slot = &state.slots[index];
        slot.stash.is_empty() && slot.filled.is_empty() && slot.end.is_none() && slot.send_error.is_none()
    }

    /// Adds a write to the batch of this turn. Returns false, and adds nothing, if the write is too large, the batch
    /// has to be sent first, or the ring or an earlier send of this connection has failed. The same holds while unsent
    /// bytes have not been taken back.
    #[inline]
    pub(super) fn send(&self, index: usize, bytes: &[u8]) -> bool {
        if bytes.len() > MAX_WRITE_BYTES || self.failed.get() {
            return false;
        }
        let mut state = self.state.borrow_mut();
        let RingState { slots, write_batch, .. } = &mut *state;
        let slot = &mut slots[index];
        if !slot.unsent.is_empty() || slot.send_error.is_some() {
            return false;
        }
        match write_batch.push(index, slot.pending_write, bytes) {
            Some(write) => {
                slot.pending_write = Some(write);
                true
            }
            None => false,
        }
    }

    /// Sends the batched write of a connection before a send without the ring, to keep the order.
    pub(super) fn flush_before_direct_send(&self, index: usize) {
        self.flush(index);
        self.count_steps(SEND_STEPS);
    }

    /// Sends the batched write of this connection now. Bytes that the socket does not accept remain in the slot until
    /// the link takes them back.
    pub(super) fn flush(&self, index: usize) {
        let is_pending = |state: &RingState| state.slots.get(index).is_some_and(|slot| slot.pending_write.is_some());
        while is_pending(&self.state.borrow()) && !self.failed.get() {
            self.turn();
        }
    }

    /// Removes and returns the bytes that the socket of a slot did not accept; `None` if it has no unsent bytes.
    #[inline]
    pub(super) fn take_unsent(&self, index: usize) -> Option<Vec<u8>> {
        if self.unsent_count.get() == 0 {
            return None;
        }
        let unsent = std::mem::take(&mut self.state.borrow_mut().slots[index].unsent);
        if unsent.is_empty() {
            return None;
        }
        self.unsent_count.set(self.unsent_count.get() - 1);
        Some(unsent)
    }

    /// Returns the error that prevents sending, if any. Pending while unsent bytes have not been taken back.
    pub(super) fn poll_sendable(&self, context: &Context<'_>, index: usize) -> Poll<io::Result<()>> {
        let state = self.state.borrow();
        let slot = &state.slots[index];
        if let Some(error) = slot.send_error {
            return Poll::Ready(Err(error.into()));
        }
        if slot.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Receives into `buffer`, and returns the number of bytes, 0 at the end of the stream. Pending also while unsent
    /// bytes have not been taken back.
    #[inline]
    pub(super) fn poll_receive(
        &self,
        context: &Context<'_>,
        index: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.count_steps(1);
        let mut state = self.state.borrow_mut();
        let RingState {
            slots, buffers, kernel, ..
        } = &mut *state;
        let slot = &mut slots[index];
        if let Some(error) = slot.send_error {
            return Poll::Ready(Err(error.into()));
        }
        if !slot.unsent.is_empty() {
            // Unsent bytes must be taken back first.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let got = slot.take(buffers, buffer);
        if got > 0 {
            return Poll::Ready(Ok(got));
        }
        if slot.end.is_some() && slot.pending_write.is_some() {
            // The caller may drop the link after the end of the stream, and `release` discards bytes that the socket
            // does not accept. Therefore, the batched write is sent first, so that the caller takes such bytes back.
            drop(state);
            self.flush(index);
            return self.poll_receive(context, index, buffer);
        }
        match slot.end {
            Some(ReceiveEnd::Closed) => return Poll::Ready(Ok(0)),
            Some(ReceiveEnd::Failed(error)) => return Poll::Ready(Err(error.into())),
            None => {}
        }
        if self.failed.get() {
            // Polls again immediately, because the link then finds that its ring has failed and continues with epoll.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if slot.receive_mode.is_large() {
            drop(state);
            return self.receive_large(context, index, buffer);
        }
        // The receive operation may miss the end of a Unix socket (see `Kernel::has_ended`).
        if slot.may_have_ended && slot.receiving == ReceiveState::Armed {
            slot.may_have_ended = false;
            if kernel.has_ended(slot.socket) {
                slot.end = Some(ReceiveEnd::Closed);
                drop(state);
                return self.poll_receive(context, index, buffer);
            }
        }
        slot.set_waker(context.waker());
        if slot.receiving == ReceiveState::Idle {
            state.arm(index);
        }
        Poll::Pending
    }

    /// Wakes the task once the socket has room; immediately if the ring has failed, so that the link continues with
    /// epoll.
    pub(super) fn wake_when_writable(&self, context: &Context<'_>, index: usize) {
        if self.failed.get() {
            context.waker().wake_by_ref();
            return;
        }
        let mut state = self.state.borrow_mut();
        let slot = &mut state.slots[index];
        slot.set_waker(context.waker());
        if !slot.awaits_writable {
            slot.awaits_writable = true;
            let wanted = (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as u32;
            let operation = Operation::Wait {
                descriptor: slot.socket,
                events: wanted,
            };
            state.operations += 1;
            state.push(operation, encode(OperationKind::Writable, index));
        }
    }

    /// Returns the number of slots in use, and the number of unfinished operations except the one that watches epoll.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.state.borrow();
        (
            state.slots.len(),
            state.operations - usize::from(state.is_watching_epoll),
        )
    }

    /// Returns the number of system calls that the ring has made.
    #[cfg(test)]
    pub(super) fn calls(&self) -> usize {
        self.state.borrow().calls
    }

    /// Simulates a permanent failure of the ring.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        self.failed.set(true);
        let unsent = self.state.borrow_mut().fail();
        self.unsent_count.set(self.unsent_count.get() + unsent);
        let wakers = std::mem::take(&mut self.state.borrow_mut().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Counts steps of work, and makes a turn after [`STEPS_PER_TURN`] of them, for a runtime that always has tasks to
    /// run and so never parks.
    #[inline]
    pub(super) fn count_steps(&self, steps: u32) {
        self.steps.set(self.steps.get() + steps);
        if self.steps.get() >= STEPS_PER_TURN {
            self.turn();
        }
    }

    /// Polls the runtime's epoll instance through the ring. Called again after each of its events, once the runtime has
    /// handled the event.
    pub(super) fn watch_epoll(&self, waker: &Waker) {
        let mut state = self.state.borrow_mut();
        state.epoll_waker = Some(waker.clone());
        if !state.is_watching_epoll && !self.failed.get() {
            state.is_watching_epoll = true;
            state.operations += 1;
            let operation = Operation::Wait {
                descriptor: state.epoll,
                events: libc::POLLIN as u32,
            };
            state.push(operation, encode(OperationKind::Epoll, 0));
        }
    }
}
