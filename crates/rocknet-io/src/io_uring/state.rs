//! State of one thread's ring: the kernel's queues, connection slots, and operations.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::task::Waker;
use std::time::Instant;

use rustix::io::Errno;
use slab::Slab;
use tokio::io::unix::AsyncFd;

use super::file_operations::FileOperations;
use super::kernel::{Kernel, Operation, SHUTDOWN_TIMEOUT};
use super::provided_buffers::ProvidedBuffers;
use super::runtime_epoll;
use super::sink::Sink;
use super::slot::{ConnectionSlot, ReceiveState};
use super::user_data::{OperationKind, encode};
use super::write_batch::WriteBatch;

/// State of one thread's ring.
pub(super) struct RingState {
    pub kernel: Kernel,
    /// Provided buffers. Leaked instead of dropped if the kernel may still write to them.
    pub buffers: ManuallyDrop<ProvidedBuffers>,
    pub slots: Slab<ConnectionSlot>,
    pub write_batch: WriteBatch,
    pub file_operations: FileOperations,
    /// Discard buffer for read-ahead. Leaked instead of dropped if the kernel may still write to it.
    pub sink: ManuallyDrop<Sink>,
    /// Indexes of the slots that received data in this turn.
    pub unread: Vec<usize>,
    /// Indexes of the slots whose receive operation ended for lack of buffers.
    pub starved: Vec<usize>,
    /// Released sockets whose operations may not have been submitted yet. They stay open until then, because
    /// otherwise a new file could get the descriptor number that such an operation refers to.
    pub closing: Vec<OwnedFd>,
    /// Tasks to wake at the end of the turn.
    pub wakers: Vec<Waker>,
    /// Number of operations that are in flight or about to be submitted, without sends and cancellations. Read only by
    /// tests, which check that no operation remains.
    pub operations: usize,
    /// Descriptor of the runtime's epoll instance.
    pub epoll: RawFd,
    /// Socket by which the runtime's epoll instance was found. While the socket is registered there, the instance
    /// remains open.
    _marker: Option<AsyncFd<OwnedFd>>,
    /// Wakes the task that watches the runtime's epoll instance.
    pub epoll_waker: Option<Waker>,
    /// True while an operation of the ring polls the runtime's epoll instance.
    pub is_watching_epoll: bool,
    /// Error of a submission, which the next `enter` returns.
    submit_error: Option<io::Error>,
    /// True once the kernel has ended all operations, so that the memory may be freed.
    has_quiesced: bool,
    /// Number of system calls that the ring has made.
    #[cfg(test)]
    pub calls: usize,
}

impl RingState {
    /// Creates the ring of this thread. Must be called on its runtime.
    pub fn new() -> io::Result<RingState> {
        let marker = crate::epoll::register(runtime_epoll::marker_socket()?)?;
        let epoll = runtime_epoll::find_watcher(marker.get_ref().as_fd())?;
        RingState::with_kernel(Kernel::new()?, epoll, Some(marker))
    }

    /// Creates the state for a given kernel side. `epoll` must remain open as long as the state exists.
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

    /// Pushes an operation. Returns false if the queue is full and cannot be submitted. The operation is then not
    /// pushed and will not complete, and the next turn fails the ring. After [`RingState::fail`], every operation is
    /// discarded although the result is true, so a caller that needs a completion checks for that failure first.
    #[allow(unsafe_code)]
    pub fn push(&mut self, operation: Operation, user_data: u64) -> bool {
        while self.kernel.is_full() {
            if let Err(error) = self.enter(false) {
                self.submit_error = Some(error);
                return false;
            }
        }
        // SAFETY: operations pushed here write only to the provided buffers and the sink. Both live until the kernel
        // has ended all operations. Paths and descriptors live until their operation has been submitted, or can no
        // longer be submitted. The kernel does not need them after submission.
        unsafe { self.kernel.push(operation, user_data) };
        true
    }

    /// Submits all queued operations and batched writes, and waits for a completion if `wait` is true. Makes one system
    /// call, or several if the writes do not fit into the submission queue or a signal interrupts the wait. Without
    /// `wait`, makes no system call if there is nothing to submit and nothing to process. Errors that the next turn can
    /// overcome are not returned.
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
                    // A signal has arrived (EINTR), completions must be processed first (EBUSY), or memory is short
                    // for now (EAGAIN).
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

    /// Moves the batched writes into the submission queue. Writes that do not fit follow with the next call.
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
            // SAFETY: the batch never moves its memory. It does not change or free queued writes until the kernel has
            // submitted them and is done with them: a send does not wait, so it ends within that call. The socket is
            // open, because a slot with a batched write is released only after the write.
            unsafe { kernel.push(send, encode(OperationKind::Send, index)) };
        }
    }

    /// Empties the batch once all its writes were submitted.
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

    /// Starts the receive operation of a slot.
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

    /// Cancels the receive operation of a slot.
    pub fn cancel_receiving(&mut self, index: usize) {
        self.slots[index].receiving = ReceiveState::Cancelled;
        self.cancel(OperationKind::Receive, OperationKind::CancelReceive, index);
    }

    /// Cancels the wait of a slot for room in its socket.
    pub fn cancel_writable(&mut self, index: usize) {
        self.cancel(OperationKind::Writable, OperationKind::CancelWritable, index);
    }

    /// Cancels the operation of a slot that has the kind `kind`. The cancellation itself is an operation of kind `by`.
    fn cancel(&mut self, kind: OperationKind, by: OperationKind, index: usize) {
        self.push(Operation::Cancel(encode(kind, index)), encode(by, index));
    }

    /// Copies data that tasks have not received since the last turn, and cancels the receive operations of these
    /// connections. The buffers are reserved for tasks that receive immediately; further data waits in the sockets.
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

    /// Restarts receive operations that ended for lack of buffers. In the next turn there are more buffers, or the
    /// filled ones are free again.
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

    /// Abandons the ring: every task is woken and continues with epoll. It is unknown whether pending writes were sent,
    /// so they fail. Received data is kept. The kernel drops its references to all sockets, which would otherwise
    /// remain open after this process has closed them. Returns the number of connections whose sends were reported as
    /// short during this call. The unsent bytes are in their slots, and the caller counts these connections until
    /// their tasks have taken the bytes.
    pub fn fail(&mut self) -> usize {
        let unsent = self.cancel_and_drain();
        self.kernel = Kernel::Closed;
        (self.operations, self.is_watching_epoll) = (0, false);
        self.closing.clear();
        self.write_batch.clear(|_| {});
        // Operations that were not submitted never complete, so no completion would remove the released slots.
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
        unsent
    }

    /// Cancels all operations and processes their completions. File operations that a kernel thread or the disk has
    /// already begun cannot be cancelled. This call waits up to [`SHUTDOWN_TIMEOUT`] for them, so that the sink to
    /// which they write can be freed, and the descriptors that they open are closed. Returns the number of connections
    /// whose sends were reported as short; the unsent bytes are in their slots.
    fn cancel_and_drain(&mut self) -> usize {
        // Operations still in the queue would otherwise be submitted after the cancellation and remain in flight.
        let _ = self.kernel.enter(false);
        self.has_quiesced = self.kernel.cancel_all();
        let mut unsent = self.reap();
        let begun = Instant::now();
        while self.file_operations.any_in_flight() {
            let remaining = SHUTDOWN_TIMEOUT.saturating_sub(begun.elapsed());
            let entered = self
                .kernel
                .enter_within(remaining)
                .map_err(|error| Errno::from_io_error(&error));
            unsent += self.reap();
            if remaining.is_zero() || !matches!(entered, Ok(()) | Err(Some(Errno::INTR | Errno::BUSY | Errno::AGAIN))) {
                self.has_quiesced &= !self.file_operations.any_in_flight();
                break;
            }
        }
        unsent
    }
}

impl Drop for RingState {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if !matches!(self.kernel, Kernel::Closed) {
            // Submits everything that is still queued or batched.
            let _ = self.enter(false);
            self.cancel_and_drain();
        }
        if self.has_quiesced {
            // SAFETY: this is the only place that drops the buffers and the sink, and nothing uses them afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.sink);
            }
        }
    }
}
