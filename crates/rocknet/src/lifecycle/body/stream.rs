//! Response body that a handler produces piece by piece.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::response::{FieldList, Stream};

/// Source of the pieces of a [`Stream`]. [`Stream::next`] borrows the stream. The boxed future therefore owns the
/// stream, and returns it with the piece.
pub struct StreamSource {
    /// `None` while `next` owns the stream, and after the end or an error.
    stream: Option<Box<dyn Stream>>,
    /// Call of [`Stream::next`] in progress, if any.
    next: Option<Next>,
    /// Trailer fields; `None` before the end, or if the stream has none.
    trailers: Option<FieldList>,
}

/// Future that owns the stream. Its output is the stream and the next piece.
type Next = Pin<Box<dyn Future<Output = (Box<dyn Stream>, Option<io::Result<Bytes>>)>>>;

impl StreamSource {
    /// Creates the source of a streamed body.
    pub fn new(stream: Box<dyn Stream>) -> StreamSource {
        StreamSource {
            stream: Some(stream),
            next: None,
            trailers: None,
        }
    }

    /// Returns the trailer fields once [`StreamSource::poll`] has returned the end; `None` if the stream has none.
    pub fn take_trailers(&mut self) -> Option<FieldList> {
        self.trailers.take()
    }

    /// Returns the next piece, which has at least one byte; `None` at the end. Must not be called again after an error,
    /// because it would return `None`, as at the end of a complete stream.
    pub fn poll(&mut self, task: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.next.is_none() {
                let Some(mut stream) = self.stream.take() else {
                    return Poll::Ready(None);
                };
                self.next = Some(Box::pin(async move {
                    let piece = stream.next().await;
                    (stream, piece)
                }));
            }
            let Some(next) = &mut self.next else {
                return Poll::Ready(None);
            };
            let (mut stream, piece) = ready!(next.as_mut().poll(task));
            self.next = None;
            match piece {
                // An empty piece does not end the body.
                Some(Ok(bytes)) if bytes.is_empty() => self.stream = Some(stream),
                Some(Ok(bytes)) => {
                    self.stream = Some(stream);
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Some(error) => return Poll::Ready(Some(error)),
                None => {
                    self.trailers = stream.trailers();
                    return Poll::Ready(None);
                }
            }
        }
    }
}
