//! A stream that is encoded while it is sent, and flushed whenever its source pauses.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::byte_budget::ByteBudget;
use rocknet_proto::semantics::negotiation::Coding;

use super::fields;
use crate::blocking::{Job, JobError, Pool};
use crate::files::coding::{Encoder, Window};
use crate::files::encode::EncoderLimit;
use crate::response::{FieldList, Stream};

/// Maximum bytes of input that are encoded on the event loop: Brotli needs about 0.2 ms for them. More input is encoded
/// in the pool.
pub const MAX_INLINE: usize = 8 * 1024;

/// Maximum bytes of input encoded in one step: enough to be worth a job, and few enough that other jobs get their turn.
/// The source is not read during a step, so even a fast source cannot fill memory.
const BATCH: usize = 64 * 1024;

/// Maximum pieces taken from the source for one step. If the batch is still empty after them, the stream yields, so
/// that a source of empty pieces does not block the event loop.
const MAX_PIECES: usize = 64;

/// Maximum memory of the encoders of all streams of a server. An encoder lives until its client has received the body,
/// and an attacker may receive slowly. The limit is enough for 128 encoders of Brotli or Zstandard; further streams
/// remain uncoded.
const MAX_ENCODER_BYTES: u64 = 256 * 1024 * 1024;

/// Limits the encoders of the streams and files of a server. Clones share the limits.
#[derive(Clone)]
pub struct Encoders {
    /// Memory of the encoders of all streams.
    budget: ByteBudget,
    /// Limit on the number of files that are encoded at the same time while they are sent.
    pub files: EncoderLimit,
}

/// The reserved memory of one encoder.
struct Reservation {
    budget: ByteBudget,
    bytes: u64,
}

/// Encodes the pieces of another stream.
pub struct CodedStream {
    source: SourceState,
    /// Length that the source announced, if any.
    length: Option<u64>,
    /// Number of bytes received from the source.
    received: u64,
    /// Bytes that were received and are not in a batch yet.
    piece: Bytes,
    coder: Arc<Mutex<Coder>>,
    /// The step that runs in the pool, if any. The job locks the coder until it ends.
    job: Option<(Job<io::Result<Vec<u8>>>, CoderStep)>,
    /// Bytes of input since the last flush.
    unflushed: u64,
    /// Bytes of input since the last output. The encoder may have deferred the work for all of them to the next step.
    unencoded: usize,
    /// Error of the source, kept until the data before it has been sent.
    failure: Option<io::Error>,
    /// True once the end of the stream, or its error, has been returned.
    is_over: bool,
    pool: Pool,
    priority: Priority,
}

/// The input and its encoder. Shared with the job, so that the event loop can run a step that the pool rejects.
struct Coder {
    /// `None` once the encoder has finished.
    encoder: Option<Encoder>,
    /// Input of the next step.
    batch: Vec<u8>,
    _reserved: Reservation,
}

/// Operation of the encoder. Each first encodes the batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CoderStep {
    /// Returns only the output that the encoder has at hand.
    Write,
    /// Returns all output, so that the client can decode all input so far.
    Flush,
    /// Ends the coded data.
    Finish,
}

/// A call of `next` on the source. Its output is the source and the result of the call.
type NextPiece = Pin<Box<dyn Future<Output = (Box<dyn Stream>, Option<io::Result<Bytes>>)>>>;

/// The source stream. A pending call of `next` is kept across flushes, because some streams lose data if the call is
/// dropped.
enum SourceState {
    /// No call of `next` is pending.
    Idle(Box<dyn Stream>),
    /// A call of `next` is pending, and owns the stream.
    Pending(NextPiece),
    /// Placeholder while [`SourceState::poll`] runs. It remains only if the source panics.
    Taken,
}

impl Default for Encoders {
    fn default() -> Encoders {
        Encoders::new(MAX_ENCODER_BYTES)
    }
}

impl Encoders {
    /// Creates limits: `max_bytes` for the encoders of streams, and the default for files.
    pub fn new(max_bytes: u64) -> Encoders {
        Encoders {
            budget: ByteBudget::new(max_bytes),
            files: EncoderLimit::default(),
        }
    }

    /// Reserves the memory of one encoder; `None` if the limit is reached.
    fn reserve(&self, coding: Coding) -> Option<Reservation> {
        let bytes = size_of_encoder(coding);
        self.budget.try_reserve(bytes).then(|| Reservation {
            budget: self.budget.clone(),
            bytes,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}

/// Returns the bytes reserved for an encoder with a small window. The encoder alone used at most 1.9 MiB for Brotli and
/// 0.45 MiB for gzip (measured); a Zstandard encoder counts like a Brotli encoder. The rest of the reservation covers
/// most of the batch of up to 64 KiB.
fn size_of_encoder(coding: Coding) -> u64 {
    1024 * match coding {
        Coding::Br => 2048,
        Coding::Zstd => 2048,
        Coding::Gzip => 512,
        Coding::Identity => 0,
    }
}

impl CodedStream {
    /// Encodes `source` with `coding`. Returns `source` as the error if it cannot be encoded now.
    pub fn new(
        coding: Coding,
        source: Box<dyn Stream>,
        encoders: &Encoders,
        pool: Pool,
        priority: Priority,
    ) -> Result<CodedStream, Box<dyn Stream>> {
        let Some(reserved) = encoders.reserve(coding) else {
            return Err(source);
        };
        let encoder = match Encoder::new(coding, Window::Small) {
            Ok(Some(encoder)) => encoder,
            Ok(None) => return Err(source),
            Err(error) => {
                tracing::warn!("cannot compress a response: {error}");
                return Err(source);
            }
        };
        let coder = Coder {
            encoder: Some(encoder),
            batch: Vec::new(),
            _reserved: reserved,
        };
        Ok(CodedStream {
            length: source.length(),
            received: 0,
            source: SourceState::Idle(source),
            piece: Bytes::new(),
            coder: Arc::new(Mutex::new(coder)),
            job: None,
            unflushed: 0,
            unencoded: 0,
            failure: None,
            is_over: false,
            pool,
            priority,
        })
    }

    /// Returns the next coded piece; `None` at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.is_over {
                return Poll::Ready(None);
            }
            let polled = match &mut self.job {
                Some((job, step)) => {
                    let (done, step) = (ready!(Pin::new(job).poll(context)), *step);
                    self.job = None;
                    let encoded = match done {
                        Ok(encoded) => encoded,
                        Err(error @ JobError::Panicked) => Err(io::Error::other(error)),
                        // If the queue of the pool is full or the pool has stopped, the step runs here, so that the
                        // response is neither delayed nor cut.
                        Err(JobError::Rejected | JobError::Stopped) => lock(&self.coder).step(step),
                    };
                    Some((encoded, step))
                }
                None => match ready!(self.poll_fill(context)) {
                    Ok(step) => self.begin(step).map(|encoded| (encoded, step)),
                    // After an error, the step does not matter.
                    Err(error) => Some((Err(error), CoderStep::Finish)),
                },
            };
            let Some((encoded, step)) = polled else { continue };
            let encoded = match encoded {
                Ok(encoded) => encoded,
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Some(Err(error)));
                }
            };
            if step != CoderStep::Write {
                self.unflushed = 0;
            }
            if step != CoderStep::Write || !encoded.is_empty() {
                self.unencoded = 0;
            }
            self.is_over = step == CoderStep::Finish;
            if !encoded.is_empty() {
                return Poll::Ready(Some(Ok(encoded.into())));
            }
        }
    }

    /// Runs a short step, with at most [`MAX_INLINE`] bytes to encode, and returns its output. Starts a longer step in
    /// the pool, and returns `None`.
    fn begin(&mut self, step: CoderStep) -> Option<io::Result<Vec<u8>>> {
        if self.unencoded <= MAX_INLINE {
            return Some(lock(&self.coder).step(step));
        }
        let coder = Arc::clone(&self.coder);
        let job = self.pool.spawn(self.priority, move || lock(&coder).step(step));
        self.job = Some((job, step));
        None
    }

    /// Fills the batch and returns the step to run. Stops when the batch is full, when the source pauses, ends or
    /// fails, or after [`MAX_PIECES`] pieces. If the batch is still empty after these pieces, the task is woken again
    /// and the result is pending. Otherwise the result is pending only if the source pauses and no data has to be
    /// flushed.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<CoderStep>> {
        if let Some(error) = self.failure.take() {
            return Poll::Ready(Err(error));
        }
        let coder = Arc::clone(&self.coder);
        let batch = &mut lock(&coder).batch;
        for _ in 0..MAX_PIECES {
            let room = BATCH - batch.len();
            let taken = self.piece.split_to(self.piece.len().min(room));
            batch.extend_from_slice(&taken);
            self.unflushed += taken.len() as u64;
            self.unencoded += taken.len();
            if batch.len() == BATCH {
                return Poll::Ready(Ok(CoderStep::Write));
            }
            match self.source.poll(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    self.received += piece.len() as u64;
                    self.piece = piece;
                }
                Poll::Ready(Some(Err(error))) => return self.fail(error),
                Poll::Ready(None) if self.length.is_some_and(|length| length != self.received) => {
                    // The coded body has no length, so the client could not notice missing or additional bytes.
                    return self.fail(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the response body does not have its announced length",
                    ));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(CoderStep::Finish)),
                Poll::Pending if self.unflushed > 0 => return Poll::Ready(Ok(CoderStep::Flush)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if !batch.is_empty() {
            return Poll::Ready(Ok(CoderStep::Write));
        }
        // The pieces were empty. Other tasks run before more of them are taken.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Flushes the data received before the error, so that the client can decode it.
    fn fail(&mut self, error: io::Error) -> Poll<io::Result<CoderStep>> {
        if self.unflushed == 0 {
            return Poll::Ready(Err(error));
        }
        self.failure = Some(error);
        Poll::Ready(Ok(CoderStep::Flush))
    }
}

impl Stream for CodedStream {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(poll_fn(|context| self.poll_next(context)))
    }

    fn trailers(&mut self) -> Option<FieldList> {
        let SourceState::Idle(source) = &mut self.source else {
            return None;
        };
        let mut trailers = source.trailers()?;
        fields::clean_trailers(&mut trailers);
        (!trailers.is_empty()).then_some(trailers)
    }
}

impl Coder {
    /// Encodes the batch and returns the output of the encoder.
    fn step(&mut self, step: CoderStep) -> io::Result<Vec<u8>> {
        let Some(encoder) = &mut self.encoder else {
            return Ok(Vec::new());
        };
        encoder.write(&self.batch)?;
        self.batch.clear();
        match step {
            CoderStep::Write => {}
            CoderStep::Flush => encoder.flush()?,
            CoderStep::Finish => {
                self.batch = Vec::new();
                return self.encoder.take().map_or(Ok(Vec::new()), Encoder::finish);
            }
        }
        Ok(encoder.take())
    }
}

/// Locks the coder. Poisoning is ignored: after a job that panicked, the stream ends with an error and does not use the
/// coder again.
fn lock(coder: &Mutex<Coder>) -> MutexGuard<'_, Coder> {
    coder.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SourceState {
    /// Polls the pending call of `next`, or makes a new one; `None` at the end of the source.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut next = match std::mem::replace(self, SourceState::Taken) {
            SourceState::Idle(mut stream) => Box::pin(async move {
                let piece = stream.next().await;
                (stream, piece)
            }),
            SourceState::Pending(next) => next,
            SourceState::Taken => return Poll::Ready(None),
        };
        match next.as_mut().poll(context) {
            Poll::Ready((stream, piece)) => {
                *self = SourceState::Idle(stream);
                Poll::Ready(piece)
            }
            Poll::Pending => {
                *self = SourceState::Pending(next);
                Poll::Pending
            }
        }
    }
}

/// A body in memory as a stream of one piece, which the coder splits.
pub struct SinglePiece(Option<Bytes>);

impl SinglePiece {
    pub fn new(content: Bytes) -> SinglePiece {
        SinglePiece(Some(content))
    }
}

impl Stream for SinglePiece {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(self.0.take().map(Ok)))
    }
}

/// A body of unknown length that is not sent, for the response to HEAD.
pub struct UnsentBody;

impl Stream for UnsentBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }
}
