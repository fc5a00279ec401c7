//! What one thread's ring is made of: the kernel's queues, and what is known of all that was asked for.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::task::Waker;
use std::time::Instant;

use rustix::io::Errno;
use slab::Slab;
use tokio::io::unix::AsyncFd;

use super::file_operations::FileOperations;
use super::kernel::{END_WITHIN, Kernel, Operation};
use super::provided_buffers::ProvidedBuffers;
use super::runtime_epoll;
use super::sink::Sink;
use super::slot::{ConnectionSlot, ReceiveState};
use super::user_data::{OperationKind, encode};
use super::write_batch::WriteBatch;

pub(super) struct RingState {
    pub kernel: Kernel,
    /// Given up instead of dropped if the kernel may still write to them.
    pub buffers: ManuallyDrop<ProvidedBuffers>,
    pub slots: Slab<ConnectionSlot>,
    pub write_batch: WriteBatch,
    pub file_operations: FileOperations,
    /// Given up like the buffers.
    pub sink: ManuallyDrop<Sink>,
    /// Places to which something came in this turn.
    pub unread: Vec<usize>,
    /// Places whose receiving ended for want of buffers.
    pub starved: Vec<usize>,
    /// Sockets whose operations may not have been handed over yet: their numbers must not be given to others.
    pub closing: Vec<OwnedFd>,
    pub wakers: Vec<Waker>,
    /// Operations that the kernel has, or is about to have.
    pub operations: usize,
    pub epoll: RawFd,
    /// By this the runtime's epoll was found; and as long as it is registered there, the epoll is open.
    _marker: Option<AsyncFd<OwnedFd>>,
    pub epoll_waker: Option<Waker>,
    pub is_watching_epoll: bool,
    /// Why an operation could not be handed over: the next turn tells it.
    submit_error: Option<io::Error>,
    /// Whether the kernel has ended everything, before the ring is dropped.
    has_quiesced: bool,
    /// System calls of the ring.
    #[cfg(test)]
    pub calls: usize,
}

impl RingState {
    /// To be called on the runtime whose thread it is for.
    pub fn new() -> io::Result<RingState> {
        let marker = crate::epoll::register(runtime_epoll::marker_socket()?)?;
        let epoll = runtime_epoll::find_watcher(marker.get_ref().as_fd())?;
        RingState::with_kernel(Kernel::new()?, epoll, Some(marker))
    }

    pub fn with_kernel(mut kernel: Kernel, epoll: RawFd, marker: Option<AsyncFd<OwnedFd>>) -> io::Result<RingState> {
        let buffers = ManuallyDrop::new(ProvidedBuffers::new(&mut kernel)?);
        Ok(RingState {
            kernel,
            buffers,
            slots: Slab::new(),
            write_batch: WriteBatch::new(),
            file_operations: FileOperations::default(),
            sink: ManuallyDrop::new(Sink::new()?),
            unread: Vec::new(),
            starved: Vec::new(),
            closing: Vec::new(),
            wakers: Vec::new(),
            operations: 0,
            epoll,
            _marker: marker,
            submit_error: None,
            has_quiesced: false,
            epoll_waker: None,
            is_watching_epoll: false,
            #[cfg(test)]
            calls: 0,
        })
    }

    /// False: the ring has failed, and it will never complete.
    #[allow(unsafe_code)]
    pub fn push(&mut self, operation: Operation, user_data: u64) -> bool {
        while self.kernel.is_full() {
            if let Err(error) = self.enter(false) {
                self.submit_error = Some(error);
                return false;
            }
        }
        // SAFETY: no operation that comes here names memory but that of the provided buffers and of the sink, which live until
        // the kernel has ended all of them, and of errands. These, like sockets and files, are kept until the operation was
        // handed over, or can be no more.
        unsafe { self.kernel.push(operation, user_data) };
        true
    }

    /// One system call, unless there is nothing to hand over and nothing to hear.
    pub fn enter(&mut self, wait: bool) -> io::Result<()> {
        if let Some(error) = self.submit_error.take() {
            return Err(error);
        }
        loop {
            self.queue_sends();
            let all = self.write_batch.all_queued();
            let kernel = &mut self.kernel;
            if !wait && !kernel.has_queued() && !kernel.has_work() && !kernel.has_overflow() {
                break;
            }
            #[cfg(test)]
            {
                self.calls += 1;
            }
            match self.kernel.enter(wait && all) {
                Ok(()) if all => break,
                Ok(()) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) if wait => {}
                    // Completions must be taken first, or memory is short for now.
                    Some(Errno::INTR | Errno::BUSY | Errno::AGAIN) => break,
                    _ => return Err(error),
                },
            }
        }
        if !self.kernel.has_queued() {
            self.closing.clear();
        }
        Ok(())
    }

    /// Puts what is to be sent into the queue; if it does not take all, the rest follows with the next call.
    #[allow(unsafe_code)]
    fn queue_sends(&mut self) {
        let RingState {
            kernel,
            write_batch,
            slots,
            ..
        } = self;
        while !write_batch.all_queued() && !kernel.is_full() {
            let Some((send, index)) = write_batch.next_send(|index| slots[index].socket) else {
                return;
            };
            // SAFETY: the outbox never moves its memory, and does not change or free what it has posted until the kernel
            // has taken it over and is done with it: it is asked not to wait, so a send ends within that call. The
            // socket is open: a place with a letter is left only after the letter.
            unsafe { kernel.push(send, encode(OperationKind::Send, index)) };
        }
    }

    pub fn clear_write_batch(&mut self) {
        let RingState {
            kernel,
            write_batch,
            slots,
            ..
        } = self;
        if write_batch.all_queued() && !kernel.has_queued() {
            write_batch.clear(|index| {
                if let Some(slot) = slots.get_mut(index) {
                    slot.pending_write = None;
                }
            });
        }
    }

    pub fn arm(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.receiving = ReceiveState::Armed;
        slot.poll_only = slot.receive_mode.is_large();
        let socket = slot.socket;
        let operation = match slot.poll_only {
            true => Operation::Wait {
                descriptor: socket,
                events: (libc::POLLIN | libc::POLLRDHUP) as u32,
            },
            false => Operation::Receive(socket),
        };
        self.operations += 1;
        self.push(operation, encode(OperationKind::Receive, index));
    }

    pub fn cancel_receiving(&mut self, index: usize) {
        self.slots[index].receiving = ReceiveState::Cancelled;
        self.cancel(OperationKind::Receive, OperationKind::CancelReceive, index);
    }

    pub fn cancel_writable(&mut self, index: usize) {
        self.cancel(OperationKind::Writable, OperationKind::CancelWritable, index);
    }

    fn cancel(&mut self, kind: OperationKind, by: OperationKind, index: usize) {
        self.push(Operation::Cancel(encode(kind, index)), encode(by, index));
    }

    /// Who has not taken what came in the last turn is not interested now: buffers are for those who are, and what else
    /// comes may wait in the socket.
    pub fn stash_filled(&mut self) {
        while let Some(index) = self.unread.pop() {
            let Some(slot) = self.slots.get_mut(index) else {
                continue;
            };
            if slot.stash_filled(&mut self.buffers) && slot.receiving == ReceiveState::Armed {
                self.cancel_receiving(index);
            }
        }
    }

    /// Buffers ran out: in the next turn there are more, or those that were filled are free again.
    pub fn rearm_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        self.buffers.grow();
        while let Some(index) = self.starved.pop() {
            if let Some(slot) = self.slots.get(index)
                && slot.receiving == ReceiveState::Idle
                && !slot.is_released
            {
                self.arm(index);
            }
        }
    }

    /// The ring goes no further: everybody has to look for himself. What was to be sent may have left or not; what has
    /// been received is there. The kernel lets go of all sockets, or they would live on when they are closed.
    pub fn fail(&mut self) -> usize {
        let returned = self.cancel_and_drain();
        self.kernel = Kernel::Closed;
        (self.operations, self.is_watching_epoll) = (0, false);
        self.closing.clear();
        self.write_batch.clear(|_| {});
        // What was not handed over does not complete: nobody else lets go of these.
        self.slots.retain(|_, slot| !slot.is_released);
        for (_, slot) in &mut self.slots {
            if slot.pending_write.take().is_some() {
                slot.send_error = Some(Errno::CONNABORTED);
            }
        }
        let wakers = self.slots.iter_mut().filter_map(|(_, slot)| slot.waker.take());
        self.wakers.extend(wakers);
        self.wakers.extend(self.file_operations.cancel_all());
        self.wakers.extend(self.epoll_waker.take());
        returned
    }
}

impl RingState {
    /// All that was handed over ends, and what it came to is heard: what a thread of the kernel or a disk has in hand cannot
    /// be called back. It would write to memory, or leave a descriptor that nobody knows of. Tells how many connections have
    /// something to take back.
    fn cancel_and_drain(&mut self) -> usize {
        // Else what still lies in the queue would be handed over behind the end, and live on.
        let _ = self.kernel.enter(false);
        self.has_quiesced = self.kernel.cancel_all();
        let mut returned = self.reap();
        let begun = Instant::now();
        while self.file_operations.any_in_flight() {
            let left = END_WITHIN.saturating_sub(begun.elapsed());
            let heard = self
                .kernel
                .enter_within(left)
                .map_err(|error| Errno::from_io_error(&error));
            returned += self.reap();
            if left.is_zero() || !matches!(heard, Ok(()) | Err(Some(Errno::INTR | Errno::BUSY | Errno::AGAIN))) {
                self.has_quiesced &= !self.file_operations.any_in_flight();
                break;
            }
        }
        returned
    }
}

impl Drop for RingState {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !matches!(self.kernel, Kernel::Closed) {
            let _ = self.enter(false);
            self.cancel_and_drain();
        }
        if self.has_quiesced {
            // SAFETY: this is the only place that drops them, and nothing uses them afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.sink);
            }
        }
    }
}
