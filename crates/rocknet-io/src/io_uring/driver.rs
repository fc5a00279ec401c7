//! The ring of one thread: what its connections ask of the kernel, and what the kernel answers.

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

/// Steps of connections after which the ring is turned though tasks are still running: tasks that wake themselves or one
/// another must not keep everybody else waiting.
const STEPS_PER_TURN: u32 = 256;
/// What a send that bypasses the ring counts, of up to a megabyte of a file.
const SEND_STEPS: u32 = 8;

thread_local!(static CURRENT: RefCell<Option<Rc<Driver>>> = const { RefCell::new(None) });

/// The ring of this thread, if it has one that works.
pub fn current() -> Option<Rc<Driver>> {
    CURRENT.with_borrow(|driver| driver.clone().filter(|driver| !driver.failed.get()))
}

/// Makes a ring that of this thread, until the guard is dropped. To be called on the runtime it will serve.
pub(crate) fn install() -> io::Result<DriverGuard> {
    let driver = Driver::new()?;
    let watcher = Rc::clone(&driver);
    drop(tokio::task::spawn_local(std::future::poll_fn(
        move |context| -> Poll<()> {
            watcher.watch_epoll(context.waker());
            Poll::Pending
        },
    )));
    CURRENT.set(Some(driver));
    Ok(DriverGuard)
}

pub(crate) struct DriverGuard;

impl Drop for DriverGuard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// What the runtime does when it has nothing to do: sleeps in the ring until somebody is to be woken.
pub(crate) fn on_park() {
    let Some(driver) = current() else {
        write_batch::flush_current_thread();
        return;
    };
    while !driver.turn(true) && !driver.failed.get() {}
    driver.wake_epoll_task();
}

pub struct Driver {
    state: RefCell<RingState>,
    /// The kernel refused to go on.
    failed: Cell<bool>,
    /// Steps since the last turn.
    steps: Cell<u32>,
    /// Connections that have something unsent to take back, so that the others need not look.
    returned: Cell<usize>,
}

impl Driver {
    fn new() -> io::Result<Rc<Driver>> {
        Ok(Driver::from_state(RingState::new()?))
    }

    pub(super) fn from_state(state: RingState) -> Rc<Driver> {
        Rc::new(Driver {
            state: RefCell::new(state),
            failed: Cell::new(false),
            steps: Cell::new(0),
            returned: Cell::new(0),
        })
    }

    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Hands over what was asked for, waits for an answer if `wait`, and wakes whom it concerns: true if there was anybody.
    pub fn turn(&self, wait: bool) -> bool {
        self.steps.set(0);
        // Of sockets that the ring does not drive.
        let has_returned = write_batch::flush_current_thread();
        if self.failed.get() {
            return has_returned;
        }
        let mut state = self.state.borrow_mut();
        state.stash_filled();
        let mut entered = state.enter(wait && !has_returned);
        let mut returned = state.reap();
        while entered.is_ok() && state.kernel.has_overflow() {
            // Among them may be what is to be taken back, of letters that are cleared below.
            entered = state.enter(false);
            returned += state.reap();
        }
        if let Err(error) = entered {
            self.failed.set(true);
            tracing::error!("io_uring failed: {error}; connections go on with epoll");
            returned += state.fail();
        }
        self.returned.set(self.returned.get() + returned);
        state.clear_write_batch();
        state.rearm_starved();
        let mut wakers = std::mem::take(&mut state.wakers);
        drop(state);
        let any = has_returned || !wakers.is_empty();
        for waker in wakers.drain(..) {
            waker.wake();
        }
        self.state.borrow_mut().wakers = wakers;
        any
    }

    /// Has the runtime come back here. Without a task to run it would sleep in its epoll, where nobody hears the ring; and
    /// those who were woken may all have ended.
    fn wake_epoll_task(&self) {
        let epoll_waker = self.state.borrow_mut().epoll_waker.take();
        if let Some(waker) = epoll_waker {
            waker.wake();
        }
    }

    /// Takes all that the kernel has to tell at this moment.
    pub fn drain(&self) {
        while self.turn(false) || self.has_kernel_work() {}
    }

    /// Whether the kernel has work that it leaves to the next turn.
    fn has_kernel_work(&self) -> bool {
        !self.failed.get() && self.state.borrow_mut().kernel.has_work()
    }

    pub(super) fn with_state<T>(&self, act: impl FnOnce(&mut RingState) -> T) -> T {
        act(&mut self.state.borrow_mut())
    }

    /// A place for a socket, which is to stay open until it is given to `release`.
    pub(super) fn register(&self, socket: BorrowedFd<'_>) -> usize {
        let is_unix = matches!(sockopt::socket_domain(socket), Ok(AddressFamily::UNIX));
        let slot = ConnectionSlot::new(socket.as_raw_fd(), is_unix);
        self.state.borrow_mut().slots.insert(slot)
    }

    /// Nobody asks for this place any more. Its socket is closed as soon as no operation can mistake another for it; `None`
    /// if it lives on without this ring.
    pub(super) fn release(&self, index: usize, socket: Option<OwnedFd>) {
        self.flush(index);
        let mut state = self.state.borrow_mut();
        let RingState { slots, buffers, .. } = &mut *state;
        let Some(slot) = slots.get_mut(index) else { return };
        slot.is_released = true;
        slot.waker = None;
        if !slot.unsent.is_empty() {
            slot.unsent = Vec::new();
            self.returned.set(self.returned.get() - 1);
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

    /// Whether nothing that arrived is left to be taken, nor an end to be told.
    pub(super) fn is_empty(&self, index: usize) -> bool {
        let state = self.state.borrow();
        let slot = &state.slots[index];
        slot.stash.is_empty() && slot.filled.is_empty() && slot.end.is_none() && slot.send_error.is_none()
    }

    /// Takes bytes to be sent with all others of this turn; false if it does not.
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

    /// To be called before something is sent without this ring.
    pub(super) fn flush_before_direct_send(&self, index: usize) {
        self.flush(index);
        self.step(SEND_STEPS);
    }

    /// What was taken to be sent leaves now, or comes back.
    pub(super) fn flush(&self, index: usize) {
        let waits = |state: &RingState| state.slots.get(index).is_some_and(|slot| slot.pending_write.is_some());
        while waits(&self.state.borrow()) && !self.failed.get() {
            self.turn(false);
        }
    }

    #[inline]
    pub(super) fn take_unsent(&self, index: usize) -> Option<Vec<u8>> {
        if self.returned.get() == 0 {
            return None;
        }
        let unsent = std::mem::take(&mut self.state.borrow_mut().slots[index].unsent);
        if unsent.is_empty() {
            return None;
        }
        self.returned.set(self.returned.get() - 1);
        Some(unsent)
    }

    /// Why nothing more can be sent, if so; pending while something came back that has not been taken.
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

    #[inline]
    pub(super) fn poll_receive(
        &self,
        context: &Context<'_>,
        index: usize,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.step(1);
        let mut state = self.state.borrow_mut();
        let RingState {
            slots, buffers, kernel, ..
        } = &mut *state;
        let slot = &mut slots[index];
        if let Some(error) = slot.send_error {
            return Poll::Ready(Err(error.into()));
        }
        if !slot.unsent.is_empty() {
            // First it is to be taken back.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let got = slot.take(buffers, buffer);
        if got > 0 {
            return Poll::Ready(Ok(got));
        }
        if slot.end.is_some() && slot.pending_write.is_some() {
            // The end may be the last that is asked for: what was to be sent before must have left.
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
            // In this very step: who asks again finds the socket without the ring.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if slot.receive_mode.is_large() {
            drop(state);
            return self.receive_large(context, index, buffer);
        }
        if slot.may_have_ended && slot.receiving == ReceiveState::Armed {
            slot.may_have_ended = false;
            if kernel.has_ended(slot.socket) {
                slot.end = Some(ReceiveEnd::Closed);
                drop(state);
                return self.poll_receive(context, index, buffer);
            }
        }
        slot.wait(context.waker());
        if slot.receiving == ReceiveState::Idle {
            state.arm(index);
        }
        Poll::Pending
    }

    /// Wakes the task when there is room in the socket.
    pub(super) fn wake_when_writable(&self, context: &Context<'_>, index: usize) {
        if self.failed.get() {
            context.waker().wake_by_ref();
            return;
        }
        let mut state = self.state.borrow_mut();
        let slot = &mut state.slots[index];
        slot.wait(context.waker());
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

    /// Places in use, and operations of connections that have not ended.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.state.borrow();
        (
            state.slots.len(),
            state.operations - usize::from(state.is_watching_epoll),
        )
    }

    #[cfg(test)]
    pub(super) fn calls(&self) -> usize {
        self.state.borrow().calls
    }

    /// As if the kernel had refused to go on.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        self.failed.set(true);
        let returned = self.state.borrow_mut().fail();
        self.returned.set(self.returned.get() + returned);
        let wakers = std::mem::take(&mut self.state.borrow_mut().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The runtime turns the ring when it has nothing to do; this is for when it always has.
    #[inline]
    pub(super) fn step(&self, steps: u32) {
        self.steps.set(self.steps.get() + steps);
        if self.steps.get() >= STEPS_PER_TURN {
            self.turn(false);
        }
    }

    /// Waits for the runtime's epoll. Asked again after each of its events, when the runtime has looked at them.
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
