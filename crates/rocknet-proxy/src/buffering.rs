//! An answer that is received ahead of a client that takes it slowly, so that its server is free sooner.

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

/// The client's side: gives what there is, and waits for more where there is nothing.
pub struct BufferedBody {
    store: Rc<BufferQueue>,
    length: Option<u64>,
}

/// Between the task that receives and the stream that is sent.
#[derive(Default)]
struct BufferQueue {
    pieces: RefCell<VecDeque<Bytes>>,
    /// Bytes of them.
    held: Cell<usize>,
    /// Fields behind them.
    trailers: RefCell<Option<FieldList>>,
    /// No more pieces come; an error cuts the answer.
    end: RefCell<Option<io::Result<()>>>,
    /// Nobody wants them any more.
    is_left: Cell<bool>,
    /// Whoever waits for a piece.
    taker: Cell<Option<Waker>>,
    /// Whoever waits for room.
    giver: Cell<Option<Waker>>,
}

impl BufferedBody {
    /// Receives the rest of an answer in a task of its own. No more is received while `most` bytes wait to be taken; what is
    /// received at once may make them somewhat more.
    pub fn new(mut conversation: H1Exchange, deadline: Deadline, length: Option<u64>, most: usize) -> BufferedBody {
        // Whoever put something together with others is woken if it comes back: that would be the task which gives this away.
        conversation.flush();
        let store = Rc::new(BufferQueue::default());
        let mut giving = BufferFill {
            store: Rc::clone(&store),
            conversation,
            deadline,
            most,
        };
        giving.deadline.set(giving.conversation.idle_ticks());
        spawn(poll_fn(move |context| giving.poll(context)));
        BufferedBody { store, length }
    }
}

impl Drop for BufferedBody {
    fn drop(&mut self) {
        self.store.is_left.set(true);
        self.store.wake_giver();
    }
}

impl Stream for BufferedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(poll_fn(|context| self.store.poll_take(context)))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.store.trailers.borrow_mut().take()
    }
}

impl BufferQueue {
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(piece) = self.pieces.borrow_mut().pop_front() {
            self.held.set(self.held.get() - piece.len());
            self.wake_giver();
            return Poll::Ready(Some(Ok(piece)));
        }
        // Whoever asks again hears that it is over.
        let end = self.end.borrow_mut().as_mut().map(|end| std::mem::replace(end, Ok(())));
        match end {
            Some(end) => Poll::Ready(end.err().map(Err)),
            None => {
                self.taker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn put(&self, piece: Vec<u8>) {
        self.held.set(self.held.get() + piece.len());
        self.pieces.borrow_mut().push_back(piece.into());
        self.wake_taker();
    }

    fn end(&self, how: Result<(), ProxyError>) {
        *self.end.borrow_mut() = Some(how.map_err(io::Error::from));
        self.wake_taker();
    }

    fn wake_taker(&self) {
        if let Some(waker) = self.taker.take() {
            waker.wake();
        }
    }

    fn wake_giver(&self) {
        if let Some(waker) = self.giver.take() {
            waker.wake();
        }
    }
}

/// The server's side.
struct BufferFill {
    store: Rc<BufferQueue>,
    conversation: H1Exchange,
    deadline: Deadline,
    most: usize,
}

impl BufferFill {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.store.is_left.get() {
                return Poll::Ready(());
            }
            let pending = self.conversation.take_pending();
            if !pending.is_empty() {
                self.store.put(pending);
                self.deadline.set(self.conversation.idle_ticks());
            }
            if self.conversation.is_over() {
                *self.store.trailers.borrow_mut() = self.conversation.take_trailers();
                self.conversation.finish();
                self.store.end(Ok(()));
                return Poll::Ready(());
            }
            // Left in any case while there is room, so that a client that leaves ends this.
            self.store.giver.set(Some(context.waker().clone()));
            if self.store.held.get() >= self.most {
                // What it takes till then is the client's time.
                self.deadline.set(self.conversation.idle_ticks());
                return Poll::Pending;
            }
            match self.conversation.poll_on(context, &self.deadline) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(trouble)) => {
                    self.store.end(Err(trouble));
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
