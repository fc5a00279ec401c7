//! Prepared answers on their way into the send queue.

use std::rc::Rc;

use rocknet_io::queue::SendQueue;
use rocknet_proto::h1::{Length, Next, Refusal, ServerConnection};

use super::feed::Feed;
use crate::exchange::{Pipe, RequestContent};
use crate::files::cache::front::Known;
use crate::files::entry::{Content, Variant};
use crate::files::prepared::Prepared;
use crate::pipeline::Reply;
use crate::worker::Worker;

/// Writes one answer.
pub struct H1Reply<'a> {
    pub engine: &'a mut ServerConnection,
    pub output: &'a mut SendQueue,
    pub date: [u8; 29],
    pub now_ms: u64,
    /// Whether the connection ends with this answer.
    pub close: bool,
    pub written: Written,
}

/// What became of it.
#[derive(Default)]
pub struct Written {
    /// Set once the answer is written whole.
    pub next: Option<Next>,
    /// Content that has to be waited for.
    pub feed: Option<Feed>,
    pub content_bytes: u64,
    /// The protocol's end of the request body, if it is received.
    pub pipe: Option<Rc<Pipe>>,
}

impl<'a> H1Reply<'a> {
    pub fn new(
        engine: &'a mut ServerConnection,
        output: &'a mut SendQueue,
        worker: &Worker,
        close: bool,
    ) -> H1Reply<'a> {
        let (date, now_ms) = (worker.clock.date(), worker.clock.uptime_ms());
        H1Reply {
            engine,
            output,
            date,
            now_ms,
            close,
            written: Written::default(),
        }
    }
}

impl Reply for H1Reply<'_> {
    #[inline]
    fn send(&mut self, head: &Prepared, content: Option<(&Known, &Variant)>) {
        let length = Length::Exact(head.length);
        let Some((known, variant)) = content else {
            let (framing, next) = self.engine.respond_complete(head.status, length, self.close);
            head.h1.write(&self.date, framing.connection, self.output.buffer());
            self.written.next = Some(next);
            return;
        };
        match (&variant.content, known.content(variant)) {
            (Content::Memory(_), Some(bytes)) => {
                let (framing, next) = self.engine.respond_complete(head.status, length, self.close);
                head.h1.write(&self.date, framing.connection, self.output.buffer());
                if framing.content {
                    self.output.push_shared(bytes, 0, head.length as usize);
                    self.written.content_bytes = head.length;
                }
                self.written.next = Some(next);
            }
            (Content::File(file), _) => {
                let framing = self.engine.respond(head.status, length, self.close);
                head.h1.write(&self.date, framing.connection, self.output.buffer());
                if framing.content
                    && file.length > 0
                    && self.engine.begin_data(file.length, self.output.buffer()).is_ok()
                {
                    self.written.feed = Some(Feed::file(file, self.now_ms));
                    self.written.content_bytes = file.length;
                } else {
                    self.written.next = Some(self.engine.finish(self.output.buffer()));
                }
            }
            (Content::Memory(_), None) => {}
        }
    }

    fn limit_body(&mut self, limit: u64) -> Result<(), Refusal> {
        self.engine.set_content_limit(limit)
    }

    fn open_body(&mut self) -> RequestContent {
        let (content, pipe) = RequestContent::piped();
        self.written.pipe = Some(pipe);
        content
    }
}
