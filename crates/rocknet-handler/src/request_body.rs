//! The content of a request, as it comes in.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::response::FieldList;
use crate::spool::{self, SpoolWriter, SpooledBody};

/// Why request content ended too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// The client left, or broke the framing.
    Incomplete,
    /// More than the site allows.
    TooLarge,
    /// Slower than the limits allow.
    TooSlow,
    /// It could not be kept until it was complete. The log says why.
    SpoolWriter(spool::Error),
}

impl BodyError {
    /// Returns the status of the response.
    pub fn status(self) -> Status {
        match self {
            BodyError::Incomplete => Status::BAD_REQUEST,
            BodyError::TooLarge => Status::CONTENT_TOO_LARGE,
            BodyError::TooSlow => Status::REQUEST_TIMEOUT,
            BodyError::SpoolWriter(spool::Error::Full) => Status::INSUFFICIENT_STORAGE,
            BodyError::SpoolWriter(spool::Error::Busy) => Status::SERVICE_UNAVAILABLE,
            BodyError::SpoolWriter(spool::Error::Failed) => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<spool::Error> for BodyError {
    fn from(error: spool::Error) -> BodyError {
        BodyError::SpoolWriter(error)
    }
}

/// The content of a request, as it comes in. Asking for a chunk is what lets the next one be received.
pub struct RequestBody {
    /// `None`: there is none, as is known from its beginning.
    channel: Option<Rc<BodyChannel>>,
    /// Boxed: few requests have any, and the content of each is moved.
    extras: Option<Box<BodyExtras>>,
}

/// What is beside the pipe.
#[derive(Default)]
struct BodyExtras {
    /// What was taken before anybody asked for it.
    buffered: Option<Bytes>,
    tee: Option<Box<dyn BodyTee>>,
    /// The complete body, which was received before; nothing more comes from the pipe.
    spooled: Option<SpooledBody>,
}

/// Sees all content that passes by.
pub trait BodyTee {
    fn chunk(&mut self, chunk: &Bytes);

    /// That was all of it. Whoever does not hear this has not seen it whole.
    fn end(self: Box<Self>);
}

/// Between the protocol, which puts chunks in, and the handler, which takes them out: one chunk at most.
#[derive(Default)]
pub struct BodyChannel {
    chunk: RefCell<Option<Bytes>>,
    /// Boxed: few requests have any.
    trailers: RefCell<Option<Box<FieldList>>>,
    end: Cell<Option<Result<(), BodyError>>>,
    is_wanted: Cell<bool>,
    may_pause: Cell<bool>,
    /// The handler has taken content that was received before.
    has_progressed: Cell<bool>,
    consumer_waker: RefCell<Option<Waker>>,
    /// The protocol's own: a handler that answers already may ask in a task of its own.
    producer_waker: RefCell<Option<Waker>>,
}

impl RequestBody {
    /// With the end that the protocol holds.
    pub fn channel() -> (RequestBody, Rc<BodyChannel>) {
        let channel = Rc::new(BodyChannel::default());
        let content = RequestBody {
            channel: Some(Rc::clone(&channel)),
            ..RequestBody::empty()
        };
        (content, channel)
    }

    pub const fn empty() -> RequestBody {
        RequestBody {
            channel: None,
            extras: None,
        }
    }

    /// There is none, as is known from its beginning.
    pub fn is_empty(&self) -> bool {
        if let Some(length) = self.spooled_length() {
            return length == 0;
        }
        let is_over = |channel: &Rc<BodyChannel>| channel.chunk.borrow().is_none() && channel.end.get() == Some(Ok(()));
        let has_buffered = self.extras.as_ref().is_some_and(|extras| extras.buffered.is_some());
        !has_buffered && self.channel.as_ref().is_none_or(is_over)
    }

    /// The next chunk; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// As [`RequestBody::chunk`], for those who do something else meanwhile.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(BodyExtras { spooled: Some(_), .. }) = self.extras.as_deref() {
            return self.poll_spooled(context);
        }
        let buffered = self.extras.as_mut().and_then(|extras| extras.buffered.take());
        let polled = match buffered {
            Some(chunk) => Poll::Ready(Ok(Some(chunk))),
            None => self.poll_channel(context),
        };
        if let Some(extras) = &mut self.extras
            && let Poll::Ready(Ok(chunk)) = &polled
        {
            extras.notify_tee(chunk.as_ref());
        }
        polled
    }

    fn poll_channel(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        match &self.channel {
            Some(channel) => channel.poll_chunk(context),
            None => Poll::Ready(Ok(None)),
        }
    }

    #[cold]
    fn poll_spooled(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        let Some(spooled) = self.extras.as_mut().and_then(|extras| extras.spooled.as_mut()) else {
            return Poll::Ready(Ok(None));
        };
        let polled = spooled.poll_piece(context);
        if let (Poll::Ready(_), Some(channel)) = (&polled, &self.channel) {
            channel.has_progressed.set(true);
        }
        polled.map_err(BodyError::from)
    }

    /// Receives the whole body into the spool and returns its length. From then on chunks come from the spool.
    pub async fn spool(&mut self, mut spool: SpoolWriter) -> Result<u64, BodyError> {
        while let Some(chunk) = self.chunk().await? {
            spool.add(&chunk).await?;
        }
        let spooled = spool.finish().await?;
        let length = spooled.length();
        self.extras.get_or_insert_default().spooled = Some(spooled);
        Ok(length)
    }

    /// Returns the length of a body that was received whole.
    fn spooled_length(&self) -> Option<u64> {
        let spooled = self.extras.as_ref()?.spooled.as_ref()?;
        Some(spooled.length())
    }

    /// Returns the same body again, from its beginning; `None` if it was not received whole.
    pub fn again(&self) -> Option<RequestBody> {
        let spooled = self.extras.as_ref()?.spooled.as_ref()?.again();
        Some(RequestBody {
            channel: self.channel.clone(),
            extras: Some(Box::new(BodyExtras {
                spooled: Some(spooled),
                ..BodyExtras::default()
            })),
        })
    }

    /// Shows all content from now on to somebody else as well.
    pub fn tee_to(&mut self, tee: Box<dyn BodyTee>) {
        self.extras.get_or_insert_default().tee = Some(tee);
    }

    /// Takes content, to be given later, until there are `most` bytes or somewhat more, or all of it.
    pub async fn buffer(&mut self, most: usize) -> Result<(), BodyError> {
        let mut held = Vec::new();
        while held.len() < most {
            match poll_fn(|context| self.poll_channel(context)).await? {
                Some(chunk) => held.extend_from_slice(&chunk),
                None => break,
            }
        }
        if !held.is_empty() {
            self.extras.get_or_insert_default().buffered = Some(held.into());
        }
        Ok(())
    }

    /// The client may be silent for as long as the handler is patient: what it sends is no file, but one message now and then.
    pub fn allow_pauses(&self) {
        if let Some(channel) = &self.channel {
            channel.may_pause.set(true);
        }
    }

    /// Returns whether there are trailers, once the body has ended.
    pub fn has_trailers(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.has_trailers())
    }

    /// Fields that came behind the content, once that has ended.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        let trailers = &self.channel.as_ref()?.trailers;
        let trailers = match self.spooled_length() {
            // It may be sent once more.
            Some(_) => trailers.borrow().clone(),
            None => trailers.borrow_mut().take(),
        };
        trailers.map(|trailers| *trailers)
    }
}

impl BodyExtras {
    #[cold]
    fn notify_tee(&mut self, chunk: Option<&Bytes>) {
        match (&mut self.tee, chunk) {
            (Some(tee), Some(chunk)) => tee.chunk(chunk),
            (tee, None) => drop(tee.take().map(BodyTee::end)),
            (None, _) => {}
        }
    }
}

impl BodyChannel {
    fn poll_chunk(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(chunk) = self.chunk.borrow_mut().take() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        if let Some(end) = self.end.get() {
            return Poll::Ready(end.map(|()| None));
        }
        *self.consumer_waker.borrow_mut() = Some(context.waker().clone());
        if !self.is_wanted.replace(true)
            && let Some(producer_waker) = self.producer_waker.take()
        {
            producer_waker.wake();
        }
        Poll::Pending
    }

    /// Whether the handler waits for content.
    pub fn wants_chunk(&self) -> bool {
        self.is_wanted.get() && self.chunk.borrow().is_none() && self.end.get().is_none()
    }

    /// Wakes `waker` when content is wanted.
    pub fn wake_when_wanted(&self, waker: &Waker) {
        *self.producer_waker.borrow_mut() = Some(waker.clone());
    }

    /// Whether the client may be silent for a while.
    pub fn may_pause(&self) -> bool {
        self.may_pause.get()
    }

    /// Returns whether the handler has taken content that was received before, since the last call: it may be slow, but does not
    /// hang.
    pub fn take_progress(&self) -> bool {
        self.has_progressed.take()
    }

    /// Returns whether there are trailers.
    fn has_trailers(&self) -> bool {
        self.trailers.borrow().is_some()
    }

    pub fn put(&self, chunk: Bytes) {
        self.is_wanted.set(false);
        *self.chunk.borrow_mut() = Some(chunk);
        self.wake();
    }

    /// Fields that came behind the content; the end follows.
    pub fn put_trailers(&self, trailers: FieldList) {
        if !trailers.is_empty() {
            *self.trailers.borrow_mut() = Some(Box::new(trailers));
        }
    }

    pub fn end(&self, result: Result<(), BodyError>) {
        if self.end.get().is_none() {
            self.end.set(Some(result));
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.consumer_waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
