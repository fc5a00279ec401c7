//! The content of a request, as it comes in.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rocknet_proto::status::Status;

use crate::response::FieldList;
use crate::spool::{self, Spool, Spooled};

/// Why request content ended too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// The client left, or broke the framing.
    Cut,
    /// More than the site allows.
    TooLarge,
    /// Slower than the limits allow.
    TooSlow,
    /// It could not be kept until it was complete. The log says why.
    Spool(spool::Error),
}

impl ContentError {
    /// Returns the status of the response.
    pub fn status(self) -> Status {
        match self {
            ContentError::Cut => Status::BAD_REQUEST,
            ContentError::TooLarge => Status::CONTENT_TOO_LARGE,
            ContentError::TooSlow => Status::REQUEST_TIMEOUT,
            ContentError::Spool(spool::Error::Full) => Status::INSUFFICIENT_STORAGE,
            ContentError::Spool(spool::Error::Busy) => Status::SERVICE_UNAVAILABLE,
            ContentError::Spool(spool::Error::Failed) => Status::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<spool::Error> for ContentError {
    fn from(error: spool::Error) -> ContentError {
        ContentError::Spool(error)
    }
}

/// The content of a request, as it comes in. Asking for a chunk is what lets the next one be received.
pub struct RequestContent {
    /// `None`: there is none, as is known from its beginning.
    pipe: Option<Rc<Pipe>>,
    /// Boxed: few requests have any, and the content of each is moved.
    beside: Option<Box<Beside>>,
}

/// What is beside the pipe.
#[derive(Default)]
struct Beside {
    /// What was taken before anybody asked for it.
    gathered: Option<Bytes>,
    witness: Option<Box<dyn Witness>>,
    /// The complete body, which was received before; nothing more comes from the pipe.
    spooled: Option<Spooled>,
}

/// Sees all content that passes by.
pub trait Witness {
    fn chunk(&mut self, chunk: &Bytes);

    /// That was all of it. Whoever does not hear this has not seen it whole.
    fn end(self: Box<Self>);
}

/// Between the protocol, which puts chunks in, and the handler, which takes them out: one chunk at most.
#[derive(Default)]
pub struct Pipe {
    chunk: RefCell<Option<Bytes>>,
    /// Boxed: few requests have any.
    trailers: RefCell<Option<Box<FieldList>>>,
    end: Cell<Option<Result<(), ContentError>>>,
    wanted: Cell<bool>,
    may_pause: Cell<bool>,
    /// The handler has taken content that was received before.
    has_moved: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// The protocol's own: a handler that answers already may ask in a task of its own.
    giver: RefCell<Option<Waker>>,
}

impl RequestContent {
    /// With the end that the protocol holds.
    pub fn piped() -> (RequestContent, Rc<Pipe>) {
        let pipe = Rc::new(Pipe::default());
        let content = RequestContent {
            pipe: Some(Rc::clone(&pipe)),
            ..RequestContent::none()
        };
        (content, pipe)
    }

    pub const fn none() -> RequestContent {
        RequestContent {
            pipe: None,
            beside: None,
        }
    }

    /// There is none, as is known from its beginning.
    pub fn is_empty(&self) -> bool {
        if let Some(length) = self.spooled_length() {
            return length == 0;
        }
        let is_over = |pipe: &Rc<Pipe>| pipe.chunk.borrow().is_none() && pipe.end.get() == Some(Ok(()));
        let has_gathered = self.beside.as_ref().is_some_and(|beside| beside.gathered.is_some());
        !has_gathered && self.pipe.as_ref().is_none_or(is_over)
    }

    /// The next chunk; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ContentError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// As [`RequestContent::chunk`], for those who do something else meanwhile.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        if let Some(Beside { spooled: Some(_), .. }) = self.beside.as_deref() {
            return self.poll_spooled(context);
        }
        let gathered = self.beside.as_mut().and_then(|beside| beside.gathered.take());
        let polled = match gathered {
            Some(chunk) => Poll::Ready(Ok(Some(chunk))),
            None => self.poll_pipe(context),
        };
        if let Some(beside) = &mut self.beside
            && let Poll::Ready(Ok(chunk)) = &polled
        {
            beside.tell_witness(chunk.as_ref());
        }
        polled
    }

    fn poll_pipe(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        match &self.pipe {
            Some(pipe) => pipe.poll_chunk(context),
            None => Poll::Ready(Ok(None)),
        }
    }

    #[cold]
    fn poll_spooled(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        let Some(spooled) = self.beside.as_mut().and_then(|beside| beside.spooled.as_mut()) else {
            return Poll::Ready(Ok(None));
        };
        let polled = spooled.poll_piece(context);
        if let (Poll::Ready(_), Some(pipe)) = (&polled, &self.pipe) {
            pipe.has_moved.set(true);
        }
        polled.map_err(ContentError::from)
    }

    /// Receives the whole body into the spool and returns its length. From then on chunks come from the spool.
    pub async fn spool(&mut self, mut spool: Spool) -> Result<u64, ContentError> {
        while let Some(chunk) = self.chunk().await? {
            spool.add(&chunk).await?;
        }
        let spooled = spool.finish().await?;
        let length = spooled.length();
        self.beside.get_or_insert_default().spooled = Some(spooled);
        Ok(length)
    }

    /// Returns the length of a body that was received whole.
    fn spooled_length(&self) -> Option<u64> {
        let spooled = self.beside.as_ref()?.spooled.as_ref()?;
        Some(spooled.length())
    }

    /// Returns the same body again, from its beginning; `None` if it was not received whole.
    pub fn again(&self) -> Option<RequestContent> {
        let spooled = self.beside.as_ref()?.spooled.as_ref()?.again();
        Some(RequestContent {
            pipe: self.pipe.clone(),
            beside: Some(Box::new(Beside {
                spooled: Some(spooled),
                ..Beside::default()
            })),
        })
    }

    /// Shows all content from now on to somebody else as well.
    pub fn show(&mut self, witness: Box<dyn Witness>) {
        self.beside.get_or_insert_default().witness = Some(witness);
    }

    /// Takes content, to be given later, until there are `most` bytes or somewhat more, or all of it.
    pub async fn gather(&mut self, most: usize) -> Result<(), ContentError> {
        let mut held = Vec::new();
        while held.len() < most {
            match poll_fn(|context| self.poll_pipe(context)).await? {
                Some(chunk) => held.extend_from_slice(&chunk),
                None => break,
            }
        }
        if !held.is_empty() {
            self.beside.get_or_insert_default().gathered = Some(held.into());
        }
        Ok(())
    }

    /// The client may be silent for as long as the handler is patient: what it sends is no file, but one message now and then.
    pub fn let_pause(&self) {
        if let Some(pipe) = &self.pipe {
            pipe.may_pause.set(true);
        }
    }

    /// Returns whether there are trailers, once the body has ended.
    pub fn has_trailers(&self) -> bool {
        self.pipe.as_ref().is_some_and(|pipe| pipe.has_trailers())
    }

    /// Fields that came behind the content, once that has ended.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        let trailers = &self.pipe.as_ref()?.trailers;
        let trailers = match self.spooled_length() {
            // It may be sent once more.
            Some(_) => trailers.borrow().clone(),
            None => trailers.borrow_mut().take(),
        };
        trailers.map(|trailers| *trailers)
    }
}

impl Beside {
    #[cold]
    fn tell_witness(&mut self, chunk: Option<&Bytes>) {
        match (&mut self.witness, chunk) {
            (Some(witness), Some(chunk)) => witness.chunk(chunk),
            (witness, None) => drop(witness.take().map(Witness::end)),
            (None, _) => {}
        }
    }
}

impl Pipe {
    fn poll_chunk(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ContentError>> {
        if let Some(chunk) = self.chunk.borrow_mut().take() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        if let Some(end) = self.end.get() {
            return Poll::Ready(end.map(|()| None));
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        if !self.wanted.replace(true)
            && let Some(giver) = self.giver.take()
        {
            giver.wake();
        }
        Poll::Pending
    }

    /// Whether the handler waits for content.
    pub fn is_wanted(&self) -> bool {
        self.wanted.get() && self.chunk.borrow().is_none() && self.end.get().is_none()
    }

    /// Wakes `waker` when content is wanted.
    pub fn on_wanted(&self, waker: &Waker) {
        *self.giver.borrow_mut() = Some(waker.clone());
    }

    /// Whether the client may be silent for a while.
    pub fn may_pause(&self) -> bool {
        self.may_pause.get()
    }

    /// Returns whether the handler has taken content that was received before, since the last call: it may be slow, but does not
    /// hang.
    pub fn take_moved(&self) -> bool {
        self.has_moved.take()
    }

    /// Returns whether there are trailers.
    fn has_trailers(&self) -> bool {
        self.trailers.borrow().is_some()
    }

    pub fn put(&self, chunk: Bytes) {
        self.wanted.set(false);
        *self.chunk.borrow_mut() = Some(chunk);
        self.wake();
    }

    /// Fields that came behind the content; the end follows.
    pub fn put_trailers(&self, trailers: FieldList) {
        if !trailers.is_empty() {
            *self.trailers.borrow_mut() = Some(Box::new(trailers));
        }
    }

    pub fn end(&self, how: Result<(), ContentError>) {
        if self.end.get().is_none() {
            self.end.set(Some(how));
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}
