//! The content of a request on its way to a server: taken from the client as fast as the server's windows let go.

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

pub struct Upload {
    stream: SendStream<Bytes>,
    body: RequestBody,
    /// Taken from the client, and not framed yet.
    chunk: Bytes,
    /// Fields that the proxy sets, in trailers as in heads.
    proxy_headers: Arc<[(String, String)]>,
    /// Bytes that were framed.
    sent_bytes: Rc<Cell<u64>>,
}

/// An upload that goes on beside its answer; dropped, it ends.
pub struct BackgroundUpload {
    _stop: Sender<()>,
    pub sent_bytes: Rc<Cell<u64>>,
}

impl Upload {
    pub fn new(stream: SendStream<Bytes>, body: RequestBody, proxy_headers: &Arc<[(String, String)]>) -> Upload {
        Upload {
            stream,
            body,
            chunk: Bytes::new(),
            proxy_headers: Arc::clone(proxy_headers),
            sent_bytes: Rc::default(),
        }
    }

    /// Whether it is the client that is waited for, rather than the server.
    pub fn waits_for_client(&self) -> bool {
        self.chunk.is_empty()
    }

    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.get()
    }

    /// Nothing of the content was taken, so that it can be given to another server.
    pub fn into_untouched(self) -> Option<RequestBody> {
        (self.sent_bytes.get() == 0 && self.chunk.is_empty()).then_some(self.body)
    }

    /// Ready when all has been framed, or the server wants no more of it; an error is the client's.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        loop {
            while !self.chunk.is_empty() {
                // Asked for first: what was left over by the last piece is none of this one's.
                self.stream.reserve_capacity(self.chunk.len());
                let room = self.stream.capacity();
                if room == 0 {
                    match ready!(self.stream.poll_capacity(context)) {
                        Some(Ok(_)) => continue,
                        // Why, the answer tells.
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
                    // One that has gone needs no end.
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

    /// Goes on by itself: an answer that its client does not take must not keep the request from being sent.
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
