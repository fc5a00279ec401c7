//! Body of a request, received chunk by chunk or collected completely in the spool.
//!
//! The protocol puts chunks into a [`BodyChannel`], and the handler takes them from the [`RequestBody`] at its other
//! end.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::response::FieldList;
use crate::spool::{self, SpoolWriter, SpooledBody};

/// Reason why a request body ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// The client closed the connection or violated the framing.
    Incomplete,
    /// The body is larger than the site allows.
    TooLarge,
    /// The body arrived more slowly than the limits allow.
    TooSlow,
    /// The body could not be stored until it was complete. The log has the reason.
    Spool(spool::Error),
}

impl BodyError {
    /// Returns the status of the response: 400, 408, 413, 500, 503 or 507.
    pub fn status(self) -> Status {
        match self {
            BodyError::Incomplete => Status::BAD_REQUEST,
            BodyError::TooLarge => Status::CONTENT_TOO_LARGE,
            BodyError::TooSlow => Status::REQUEST_TIMEOUT,
            BodyError::Spool(spool::Error::Full) => Status::INSUFFICIENT_STORAGE,
            BodyError::Spool(spool::Error::Busy) => Status::SERVICE_UNAVAILABLE,
            BodyError::Spool(spool::Error::Failed) => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<spool::Error> for BodyError {
    fn from(error: spool::Error) -> BodyError {
        BodyError::Spool(error)
    }
}

/// Body of a request. The protocol receives a chunk only after the handler has requested it, so a slow handler slows
/// the client down.
pub struct RequestBody {
    /// `None` if the request has no body.
    channel: Option<Rc<BodyChannel>>,
    /// Boxed, because few requests need it and each `RequestBody` is moved.
    extras: Option<Box<BodyExtras>>,
}

/// State that few bodies need.
#[derive(Default)]
struct BodyExtras {
    /// Bytes that [`RequestBody::buffer`] took in advance.
    buffered: Option<Bytes>,
    tee: Option<Box<dyn BodyTee>>,
    /// The complete body, if it was received into the spool. The channel yields nothing more.
    spooled: Option<SpooledBody>,
}

/// Receives a copy of each chunk of a request body when the handler or the spool receives the chunk.
pub trait BodyTee {
    /// Called for each chunk.
    fn chunk(&mut self, chunk: &Bytes);

    /// Called at the end of a complete body. It is not called for a body that ends early.
    fn end(self: Box<Self>);
}

/// Channel from the protocol, which puts chunks in, to the [`RequestBody`] of the handler. Holds at most one chunk.
#[derive(Default)]
pub struct BodyChannel {
    chunk: RefCell<Option<Bytes>>,
    /// Boxed, because few requests have trailers.
    trailers: RefCell<Option<Box<FieldList>>>,
    /// Number of bytes that the handler may still receive; `None` if only the protocol limits the body.
    left: Cell<Option<u64>>,
    /// Result of the body; `None` until it has ended.
    end: Cell<Option<Result<(), BodyError>>>,
    /// True if the handler has requested a chunk that was not put in yet.
    is_requested: Cell<bool>,
    /// True if trailer fields are dropped; see [`RequestBody::discard_trailers`].
    discards_trailers: Cell<bool>,
    /// True if the client may pause; see [`RequestBody::allow_pauses`].
    may_pause: Cell<bool>,
    /// True if the handler has read from the spool since the last [`BodyChannel::take_progress`].
    has_progressed: Cell<bool>,
    /// Wakes the handler when a chunk or the end was put in.
    consumer_waker: RefCell<Option<Waker>>,
    /// Wakes the protocol when the handler requests a chunk. Needed because a handler whose response has begun may
    /// request chunks from another task than the task of the connection.
    producer_waker: RefCell<Option<Waker>>,
}

impl RequestBody {
    /// Creates a body, and the channel through which the protocol feeds it.
    pub fn channel() -> (RequestBody, Rc<BodyChannel>) {
        let channel = Rc::new(BodyChannel::default());
        let body = RequestBody {
            channel: Some(Rc::clone(&channel)),
            ..RequestBody::empty()
        };
        (body, channel)
    }

    /// Creates the body of a request that has none.
    pub const fn empty() -> RequestBody {
        RequestBody {
            channel: None,
            extras: None,
        }
    }

    /// Returns true if the body is known to have no more bytes. For a body in the spool, returns true only if its
    /// length is 0, and not after a longer body was read completely.
    pub fn is_empty(&self) -> bool {
        if let Some(length) = self.spooled_length() {
            return length == 0;
        }
        let is_over = |channel: &Rc<BodyChannel>| channel.chunk.borrow().is_none() && channel.end.get() == Some(Ok(()));
        let has_buffered = self.extras.as_ref().is_some_and(|extras| extras.buffered.is_some());
        !has_buffered && self.channel.as_ref().is_none_or(is_over)
    }

    /// Limits the bytes that are received from now on. A longer body ends with [`BodyError::TooLarge`]. Used if the
    /// limit of a route is known only after the protocol has opened the body with a higher one.
    pub fn limit(&self, bytes: u64) {
        if let Some(channel) = &self.channel {
            channel.left.set(Some(bytes));
        }
    }

    /// Drops trailer fields, also those that are received later.
    pub fn discard_trailers(&self) {
        if let Some(channel) = &self.channel {
            channel.discards_trailers.set(true);
            *channel.trailers.borrow_mut() = None;
        }
    }

    /// Waits for the next chunk. Returns `None` at the end of the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the body ended early, or could not be read from the spool.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Polls for the next chunk; see [`RequestBody::chunk`].
    ///
    /// # Errors
    ///
    /// Returns an error if the body ended early, or could not be read from the spool.
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

    /// Receives the whole body into the spool, and returns its length in bytes. Later calls of [`RequestBody::chunk`]
    /// read from the spool.
    ///
    /// # Errors
    ///
    /// Returns an error if the body ended early, or could not be stored.
    pub async fn spool(&mut self, mut spool: SpoolWriter) -> Result<u64, BodyError> {
        while let Some(chunk) = self.chunk().await? {
            spool.add(&chunk).await?;
        }
        let spooled = spool.finish().await?;
        let length = spooled.length();
        self.extras.get_or_insert_default().spooled = Some(spooled);
        Ok(length)
    }

    /// Returns the length of a body in the spool.
    fn spooled_length(&self) -> Option<u64> {
        let spooled = self.extras.as_ref()?.spooled.as_ref()?;
        Some(spooled.length())
    }

    /// Returns another reader of the same body, at its beginning. `None` unless the body is in the spool.
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

    /// Copies all chunks that are received later to `tee`. Chunks that are read from the spool are not copied.
    pub fn tee_to(&mut self, tee: Box<dyn BodyTee>) {
        self.extras.get_or_insert_default().tee = Some(tee);
    }

    /// Receives chunks until they have at least `size` bytes in total or the body has ended. The next call of
    /// [`RequestBody::chunk`] returns them as one chunk. Must not be called a second time before that call, because the
    /// bytes would be replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if the body ended early.
    pub async fn buffer(&mut self, size: usize) -> Result<(), BodyError> {
        let mut buffered = Vec::new();
        while buffered.len() < size {
            match poll_fn(|context| self.poll_channel(context)).await? {
                Some(chunk) => buffered.extend_from_slice(&chunk),
                None => break,
            }
        }
        if !buffered.is_empty() {
            self.extras.get_or_insert_default().buffered = Some(buffered.into());
        }
        Ok(())
    }

    /// Permits the client to pause for up to the handler's response timeout. Used for bodies that consist of occasional
    /// messages, such as gRPC streams.
    pub fn allow_pauses(&self) {
        if let Some(channel) = &self.channel {
            channel.may_pause.set(true);
        }
    }

    /// Returns true if there are trailers. Valid once the body has ended.
    pub fn has_trailers(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.has_trailers())
    }

    /// Returns the trailer fields (RFC 9110 §6.5) once the body has ended; `None` if there are no trailers. Only a body
    /// in the spool returns them more than once.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        let trailers = &self.channel.as_ref()?.trailers;
        let trailers = match self.spooled_length() {
            // The body may be sent again, so its trailers are kept.
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
            if let Some(left) = self.left.get() {
                let Some(left) = left.checked_sub(chunk.len() as u64) else {
                    self.end.set(Some(Err(BodyError::TooLarge)));
                    return Poll::Ready(Err(BodyError::TooLarge));
                };
                self.left.set(Some(left));
            }
            return Poll::Ready(Ok(Some(chunk)));
        }
        if let Some(end) = self.end.get() {
            return Poll::Ready(end.map(|()| None));
        }
        *self.consumer_waker.borrow_mut() = Some(context.waker().clone());
        if !self.is_requested.replace(true)
            && let Some(producer_waker) = self.producer_waker.take()
        {
            producer_waker.wake();
        }
        Poll::Pending
    }

    /// Returns true if the handler waits for a chunk.
    pub fn wants_chunk(&self) -> bool {
        self.is_requested.get() && self.chunk.borrow().is_none() && self.end.get().is_none()
    }

    /// Wakes `waker` when the handler requests a chunk.
    pub fn wake_when_wanted(&self, waker: &Waker) {
        *self.producer_waker.borrow_mut() = Some(waker.clone());
    }

    /// Returns true if the client may pause; see [`RequestBody::allow_pauses`].
    pub fn may_pause(&self) -> bool {
        self.may_pause.get()
    }

    /// Returns true if the handler has read from the spool since the last call. Such a handler may be slow, but it does
    /// not hang.
    pub fn take_progress(&self) -> bool {
        self.has_progressed.take()
    }

    /// Returns true if there are trailers.
    fn has_trailers(&self) -> bool {
        self.trailers.borrow().is_some()
    }

    /// Puts a chunk into the channel. May be called only while [`BodyChannel::wants_chunk`] is true, because a chunk
    /// that the handler has not received yet would be replaced.
    pub fn put(&self, chunk: Bytes) {
        self.is_requested.set(false);
        *self.chunk.borrow_mut() = Some(chunk);
        self.wake();
    }

    /// Sets the trailer fields. Must be called before [`BodyChannel::end`].
    pub fn put_trailers(&self, trailers: FieldList) {
        if !trailers.is_empty() && !self.discards_trailers.get() {
            *self.trailers.borrow_mut() = Some(Box::new(trailers));
        }
    }

    /// Marks the body as complete, or as ended by an error. Later calls have no effect.
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
