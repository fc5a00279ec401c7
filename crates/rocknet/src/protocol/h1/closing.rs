//! Closes HTTP/1 connections in an orderly way, so that the client can read the last response, and acts on passed
//! deadlines.

use std::io;
use std::rc::Rc;
use std::task::Poll;

use rocknet_io::link::Link;
use rocknet_io::queue::SendQueue;

use super::connection::{Connection, CurrentExchange, State};
use super::responder::H1Responder;
use crate::lifecycle::connection::End;
use crate::lifecycle::deadlines::{MAX_UNACKNOWLEDGED, Wait};
use crate::lifecycle::drive::Version;
use crate::lifecycle::exchange::{ActiveExchange, Stage};
use crate::lifecycle::expiry::Expiry;
use crate::lifecycle::flow;
use crate::pipeline::RequestContext;

impl<L: Link> Connection<L> {
    /// Ends the connection once its last response has been sent. `linger`: true if the client may still send, so that
    /// input must be discarded until the client closes.
    pub(super) fn end(&mut self, linger: bool) -> Poll<io::Result<()>> {
        if !self.core.has_sent_all() {
            // `has_sent_all` has put the unsent bytes back into the backlog, which is sent before the next call.
            return Poll::Ready(Ok(()));
        }
        // The whole response was sent, so the connection may end by an orderly close in place of a reset.
        self.core.ends_with_connection = false;
        let worker = self.core.worker();
        // If the server decided to close, the client may have sent more requests. Closing with unread bytes sends a
        // reset, which discards response bytes that the client has not read yet.
        let is_server_close = self.core.should_close(&worker, &worker.config());
        // The client may also have sent more while a response did not fit into the socket.
        let was_blocked = self.core.deadlines.wait() == Wait::Send;
        let linger = linger || is_server_close || was_blocked || !self.core.unread.is_empty();
        // The unacknowledged bytes cannot exceed the sent bytes, so for small responses the kernel is not queried.
        let is_small = u64::from(self.sent) <= MAX_UNACKNOWLEDGED;
        if linger || !is_small && self.core.link.in_flight() > MAX_UNACKNOWLEDGED {
            return Poll::Ready(self.core.begin_linger());
        }
        self.core.link.finish();
        self.core.end = End::Closed;
        Poll::Ready(Ok(()))
    }

    /// Acts on the passed deadline of an open connection.
    #[cold]
    pub(super) fn expire_open(&mut self) {
        let wait = self.core.deadlines.wait();
        tracing::debug!(client = %self.core.info.client, ?wait, "a deadline passed");
        match std::mem::replace(&mut self.state, State::Reading) {
            State::Serving(serving) => self.expire_exchange(serving, wait),
            // The client has not acknowledged the whole last response. The connection lingers, so that the client can
            // still take the rest.
            State::Reading if wait == Wait::KeepAlive && self.core.link.in_flight() > 0 => {
                self.state = State::Closing { linger: true };
            }
            // A late head gets 408. So does a late body that is being discarded, unless the response was already
            // sent.
            State::Reading if wait == Wait::Header || wait == Wait::RequestBody && self.engine.may_respond() => {
                let context = RequestContext::unparsed(&self.core.open.worker().config(), self.core.info.local());
                self.respond_timeout(context, None, wait);
            }
            State::Reading | State::Closing { .. } => self.cut(wait),
        }
    }

    /// Acts on the passed deadline of the exchange in progress.
    fn expire_exchange(&mut self, serving: Box<CurrentExchange>, wait: Wait) {
        let (worker, channel) = (self.core.worker(), serving.channel.as_deref());
        match serving
            .exchange
            .expire(&worker, &self.core.deadlines, channel, self.client_has_closed)
        {
            Expiry::Respond if self.engine.may_respond() => {
                let ActiveExchange { context, stage, .. } = serving.exchange;
                self.respond_timeout(context, Some(&stage), wait);
            }
            Expiry::EndTunnel => {
                self.state = State::Serving(serving);
                self.record_cut();
                self.state = State::Closing { linger: true };
            }
            Expiry::Respond | Expiry::Cut => {
                self.state = State::Serving(serving);
                self.cut(wait);
            }
        }
    }

    /// Closes the connection without a response.
    fn cut(&mut self, wait: Wait) {
        self.record_cut();
        if wait == Wait::Send {
            // After an orderly close the kernel would keep the send buffer without a time limit.
            self.core.link.reset();
        }
        // Discards the backlog. The client has not taken it in time, and the connection cannot continue before the
        // backlog is sent.
        self.core.abandon();
    }

    /// Responds to a request whose deadline has passed. `stage`: `None` if the request is incomplete.
    fn respond_timeout(&mut self, context: Rc<RequestContext>, stage: Option<&Stage>, wait: Wait) {
        let worker = self.core.worker();
        let mut output = SendQueue::default();
        let close = true;
        let mut responder = H1Responder::new(&mut self.engine, &mut output, &worker, close);
        let flow = flow::respond_timeout(&worker, &mut self.core.info, context, stage, wait, &mut responder);
        let written = responder.written;
        self.advance(&worker.config(), flow, written);
        if !output.is_empty() {
            self.core.begin_send();
            self.core.backlog = Some(Box::new(output));
        }
    }
}
