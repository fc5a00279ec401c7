//! Prepared answers on their way into the send queue, as frames.

use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::Refusal;
use rocknet_proto::h2::{ErrorCode, SendError, Sending, ServerConnection, StreamId};
use rocknet_proto::request::Request;

use super::answer::Incoming;
use super::pushing::{Promised, Pushes};
use super::supply::Supply;
use crate::exchange::RequestContent;
use crate::files::cache::front::Known;
use crate::files::entry::{Content, Variant};
use crate::files::prepared::Prepared;
use crate::pipeline::Reply;
use crate::preload::Preloads;
use crate::response::{Body, FilePart};
use crate::worker::Worker;

/// Writes one answer.
pub struct H2Reply<'a> {
    pub engine: &'a mut ServerConnection,
    pub pushes: &'a mut Pushes,
    pub scheme: &'static [u8],
    pub output: &'a mut SendQueue,
    pub id: StreamId,
    pub date: [u8; 29],
    /// The request was HEAD.
    pub head_only: bool,
    /// Queued bytes from which on content waits for its turn by priority.
    bound: u64,
    pub body: RequestBody,
    pub written: Written,
}

/// How the body of a request is received.
pub enum RequestBody {
    None,
    /// On its stream.
    Stream {
        expects_continue: bool,
    },
    /// What follows an extended CONNECT is no body, but data for the tunnel.
    Tunnel,
    /// The request was held, and its body has been received since.
    Held(Option<RequestContent>),
}

/// What became of it.
#[derive(Default)]
pub struct Written {
    /// Content that could not leave at once.
    pub supply: Option<Supply>,
    pub content_bytes: u64,
    /// What was promised with it.
    pub promised: Vec<Promised>,
    /// The body of the request on its way to the handler.
    pub incoming: Option<Incoming>,
}

impl<'a> H2Reply<'a> {
    pub fn new(
        engine: &'a mut ServerConnection,
        pushes: &'a mut Pushes,
        scheme: &'static [u8],
        output: &'a mut SendQueue,
        worker: &Worker,
        id: StreamId,
        head_only: bool,
        bound: u64,
        body: RequestBody,
    ) -> H2Reply<'a> {
        H2Reply {
            engine,
            pushes,
            scheme,
            output,
            id,
            date: worker.clock.date(),
            head_only,
            bound,
            body,
            written: Written::default(),
        }
    }

    #[inline]
    fn prepared(&mut self, head: &Prepared, content: u64) -> Result<Sending, SendError> {
        if content > 0 && self.output.len() >= self.bound {
            return self.prepared_later(head, content);
        }
        self.engine
            .respond_prepared(self.id, &head.h2, &self.date, content, self.output.buffer())
    }

    fn prepared_later(&mut self, head: &Prepared, content: u64) -> Result<Sending, SendError> {
        let out = self.output.buffer();
        self.engine
            .respond_prepared_head(self.id, &head.h2, &self.date, false, out)?;
        self.engine.offer(self.id, content, true, out)?;
        Ok(Sending::Later)
    }
}

impl Reply for H2Reply<'_> {
    #[inline]
    fn send(&mut self, head: &Prepared, content: Option<(&Known, &Variant)>) {
        if self.id.is_promised() && !self.pushes.takes(head.status, Some(head.length)) {
            return self.engine.reset(self.id, ErrorCode::Cancel, self.output.buffer());
        }
        let Some((known, variant)) = content.filter(|_| !self.head_only && head.length > 0) else {
            // A stream that has gone needs no answer.
            let _ = self.prepared(head, 0);
            return;
        };
        match (&variant.content, known.content(variant)) {
            (Content::Memory(_), Some(bytes)) => {
                let length = head.length as usize;
                match self.prepared(head, head.length) {
                    Ok(Sending::Now) => self.output.push_shared(bytes, 0, length),
                    Ok(Sending::Later) => self.written.supply = Some(Supply::shared(bytes, length)),
                    Ok(Sending::Done) | Err(_) => return,
                }
                self.written.content_bytes = head.length;
            }
            (Content::File(file), _) => {
                let begun =
                    self.engine
                        .respond_prepared_head(self.id, &head.h2, &self.date, false, self.output.buffer());
                if begun.is_ok() {
                    self.written.supply = Some(Supply::new(Body::File(FilePart {
                        file: file.clone(),
                        offset: 0,
                        length: file.length,
                    })));
                    self.written.content_bytes = file.length;
                }
            }
            (Content::Memory(_), None) => {}
        }
    }

    #[cold]
    fn lead(&mut self, request: &Request<'_>, preloads: &Preloads) {
        let out = self.output.buffer();
        if self.engine.may_push(self.id) {
            let targets = preloads.targets.iter().map(|target| &**target);
            self.pushes.promise(
                self.engine,
                self.id,
                request,
                self.scheme,
                targets,
                &mut self.written.promised,
                out,
            );
        } else if !self.id.is_promised() {
            self.pushes.hint(self.engine, self.id, request, preloads, out);
        }
    }

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        match self.body {
            RequestBody::Stream { .. } => self.engine.set_content_limit(self.id, limit),
            // Of a request that was held, the body was bounded when it came.
            RequestBody::None | RequestBody::Tunnel | RequestBody::Held(_) => Ok(()),
        }
    }

    fn open_body(&mut self) -> RequestContent {
        let expects_continue = match &mut self.body {
            RequestBody::None => return RequestContent::none(),
            RequestBody::Held(content) => return content.take().unwrap_or(RequestContent::none()),
            RequestBody::Stream { expects_continue } => Some(*expects_continue),
            RequestBody::Tunnel => None,
        };
        let (content, pipe) = RequestContent::piped();
        if expects_continue.is_none() {
            pipe.end(Ok(()));
        }
        self.written.incoming = Some(Incoming::new(pipe, expects_continue.unwrap_or(false)));
        content
    }
}
