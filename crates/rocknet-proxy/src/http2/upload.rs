//! Sends a request body to an HTTP/2 upstream, as fast as the flow-control windows of the upstream allow.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, SendStream};
use rocknet_io::runtime::spawn;
use tokio::sync::oneshot::{Receiver, Sender, channel};

use super::head;
use crate::trailers;
use rocknet_handler::exchange::{BodyError, RequestBody};

/// Request body that is being sent.
pub struct Upload {
    stream: SendStream<Bytes>,
    body: RequestBody,
    /// Bytes from the client that are not framed yet.
    chunk: Bytes,
    /// Fields that the proxy sets, which trailers must not override.
    proxy_headers: Arc<[(String, String)]>,
    /// Number of bytes that were framed so far.
    sent_bytes: Rc<Cell<u64>>,
}

/// Upload that continues while the response is received. Dropping it cancels the upload.
pub struct BackgroundUpload {
    _stop: Sender<()>,
    /// Number of bytes framed so far.
    pub sent_bytes: Rc<Cell<u64>>,
}

impl Upload {
    /// Returns an upload on a stream; nothing is sent yet.
    pub fn new(stream: SendStream<Bytes>, body: RequestBody, proxy_headers: &Arc<[(String, String)]>) -> Upload {
        Upload {
            stream,
            body,
            chunk: Bytes::new(),
            proxy_headers: Arc::clone(proxy_headers),
            sent_bytes: Rc::default(),
        }
    }

    /// Returns true if the upload waits for data of the client, and false if it waits for the upstream.
    pub fn waits_for_client(&self) -> bool {
        self.chunk.is_empty()
    }

    /// Returns the number of bytes framed so far.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.get()
    }

    /// Returns the request body if nothing of it was consumed, so that it can be sent to another upstream.
    pub fn into_untouched(self) -> Option<RequestBody> {
        (self.sent_bytes.get() == 0 && self.chunk.is_empty()).then_some(self.body)
    }

    /// Returns ready when the whole body is framed, or when the upstream has closed the stream.
    ///
    /// # Errors
    ///
    /// Returns the error of receiving from the client.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        loop {
            while !self.chunk.is_empty() {
                // Capacity is reserved again for each piece, because sending a piece uses its reservation up.
                self.stream.reserve_capacity(self.chunk.len());
                let room = self.stream.capacity();
                if room == 0 {
                    match ready!(self.stream.poll_capacity(context)) {
                        Some(Ok(_)) => continue,
                        // The stream was closed. The response or its error explains the reason.
                        _ => return Poll::Ready(Ok(())),
                    }
                }
                let piece = self.chunk.split_to(room.min(self.chunk.len()));
                self.sent_bytes.set(self.sent_bytes.get() + piece.remaining() as u64);
                if self.stream.send_data(piece, false).is_err() {
                    return Poll::Ready(Ok(()));
                }
            }
            match ready!(self.body.poll_chunk(context)) {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => {
                    let trailers = self.body.take_trailers().unwrap_or_default();
                    let trailers = trailers::for_request(&trailers, &self.proxy_headers);
                    // An error is ignored, because it means that the stream is closed already.
                    let _ = match trailers.is_empty() {
                        true => self.stream.send_data(Bytes::new(), true),
                        false => self.stream.send_trailers(head::to_header_map(&trailers)),
                    };
                    return Poll::Ready(Ok(()));
                }
                Err(error) => {
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Continues the upload in a separate task, so that it does not stall if the client does not read the response.
    pub fn into_background(mut self) -> BackgroundUpload {
        let (stop, mut stopped): (Sender<()>, Receiver<()>) = channel();
        let sent_bytes = Rc::clone(&self.sent_bytes);
        spawn(poll_fn(move |context| {
            if Pin::new(&mut stopped).poll(context).is_ready() {
                return Poll::Ready(());
            }
            self.poll(context).map(drop)
        }));
        BackgroundUpload {
            _stop: stop,
            sent_bytes,
        }
    }
}
