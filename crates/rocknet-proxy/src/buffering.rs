//! Response buffering: receives a response ahead of a slow client, so that the upstream finishes sooner.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rocknet_io::runtime::spawn;
use rocknet_io::wheel::Deadline;

use crate::error::ProxyError;
use crate::h1_exchange::H1Exchange;
use rocknet_handler::response::{FieldList, Stream};

/// Reading side of the buffer: the response body that is sent to the client.
pub struct BufferedBody {
    queue: Rc<BufferQueue>,
    /// Length of the response body in bytes, if it is known.
    length: Option<u64>,
}

/// Queue between the task that receives from the upstream and the body that is sent to the client.
#[derive(Default)]
struct BufferQueue {
    pieces: RefCell<VecDeque<Bytes>>,
    /// Total bytes of `pieces`.
    buffered: Cell<usize>,
    /// Trailer fields, once the body has ended.
    trailers: RefCell<Option<FieldList>>,
    /// Set when no more pieces follow. An error means that the response is truncated.
    end: RefCell<Option<io::Result<()>>>,
    /// True if the reading side was dropped.
    is_abandoned: Cell<bool>,
    /// Waker of the reading side, which waits for a piece.
    reader: Cell<Option<Waker>>,
    /// Waker of the writing side, which waits for free space or for data of the upstream.
    filler: Cell<Option<Waker>>,
}

impl BufferedBody {
    /// Starts a task that receives the rest of a response. `deadline` limits how long the upstream may send nothing.
    /// `length` is the length of the response body in bytes, if it is known.
    ///
    /// Receiving pauses while at least `max_buffered` bytes are buffered. The last read may exceed this number.
    pub fn new(mut exchange: H1Exchange, deadline: Deadline, length: Option<u64>, max_buffered: usize) -> BufferedBody {
        // If a batched write is not accepted, the task that queued it is woken. Therefore the write is sent before the
        // exchange moves to another task.
        exchange.flush();
        let queue = Rc::new(BufferQueue::default());
        let mut fill = BufferFill {
            queue: Rc::clone(&queue),
            exchange,
            deadline,
            max_buffered,
        };
        fill.deadline.set(fill.exchange.idle_ticks());
        spawn(poll_fn(move |context| fill.poll(context)));
        BufferedBody { queue, length }
    }
}

impl Drop for BufferedBody {
    fn drop(&mut self) {
        self.queue.is_abandoned.set(true);
        self.queue.wake_filler();
    }
}

impl Stream for BufferedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(poll_fn(|context| self.queue.poll_next(context)))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.queue.trailers.borrow_mut().take()
    }
}

impl BufferQueue {
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(piece) = self.pieces.borrow_mut().pop_front() {
            self.buffered.set(self.buffered.get() - piece.len());
            self.wake_filler();
            return Poll::Ready(Some(Ok(piece)));
        }
        // The error is returned only once. Further calls return a normal end.
        let end = self.end.borrow_mut().as_mut().map(|end| std::mem::replace(end, Ok(())));
        match end {
            Some(end) => Poll::Ready(end.err().map(Err)),
            None => {
                self.reader.set(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn push(&self, piece: Vec<u8>) {
        self.buffered.set(self.buffered.get() + piece.len());
        self.pieces.borrow_mut().push_back(piece.into());
        self.wake_reader();
    }

    fn end(&self, result: Result<(), ProxyError>) {
        *self.end.borrow_mut() = Some(result.map_err(io::Error::from));
        self.wake_reader();
    }

    fn wake_reader(&self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }

    fn wake_filler(&self) {
        if let Some(waker) = self.filler.take() {
            waker.wake();
        }
    }
}

/// Writing side of the buffer: receives from the upstream.
struct BufferFill {
    queue: Rc<BufferQueue>,
    exchange: H1Exchange,
    deadline: Deadline,
    max_buffered: usize,
}

impl BufferFill {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.queue.is_abandoned.get() {
                return Poll::Ready(());
            }
            let pending = self.exchange.take_pending();
            if !pending.is_empty() {
                self.queue.push(pending);
                self.deadline.set(self.exchange.idle_ticks());
            }
            if self.exchange.is_complete() {
                *self.queue.trailers.borrow_mut() = self.exchange.take_trailers();
                self.exchange.finish();
                self.queue.end(Ok(()));
                return Poll::Ready(());
            }
            // Registered even while there is free space, so that dropping the reading side ends this task.
            self.queue.filler.set(Some(context.waker().clone()));
            if self.queue.buffered.get() >= self.max_buffered {
                // While the buffer is full, nothing is received, so the time must not count against the upstream.
                self.deadline.set(self.exchange.idle_ticks());
                return Poll::Pending;
            }
            match self.exchange.poll_progress(context, &self.deadline) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    self.queue.end(Err(error));
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
