//! From what an application answers to a response: its head read and cleared of what is the connection's, its content passed on.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use rocknet_proto::cgi::{CgiHead, StatusLine};
use rocknet_proto::fields::{Field, is_framing};
use rocknet_proto::method::Method;

use super::conversation::Conversation;
use super::trouble::Trouble;
use rocknet_handler::response::{Body, Response, Stream};

/// What applications say to nginx about its buffers and caches. The name of a file to send is heeded behind this.
fn is_for_others(name: &[u8]) -> bool {
    let starts = name
        .get(..ACCEL.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    starts && !name.eq_ignore_ascii_case(b"x-accel-redirect")
}

const ACCEL: &[u8] = b"x-accel-";

/// The response to a request whose head has come.
pub fn response(mut conversation: Conversation, method: Method, line: StatusLine) -> Result<Response, Trouble> {
    let end = conversation.head();
    let answer = std::mem::take(conversation.answer());
    let head = CgiHead::parse(&answer[..end], line).map_err(Trouble::Head)?;
    let mut response = Response::new(head.status);
    response.upstream = conversation.timing();
    let length = head.length;
    for (name, value) in head.fields {
        // The length is told anew where it is known, and the date is the server's.
        if !is_framing(name) && !name.eq_ignore_ascii_case(b"date") && !is_for_others(name) {
            response.fields.add_field(Field::new(name, value));
        }
    }
    let mut content = answer;
    content.drain(..end);
    // All of it is here, and the end of the connection would say nothing new.
    let is_all = conversation.ends_by_closing() && length.is_some_and(|length| content.len() as u64 >= length);
    if !conversation.is_over() && !is_all {
        *conversation.answer() = content;
        let left = length;
        response.body = Body::Stream(Box::new(Content {
            conversation,
            length,
            left,
        }));
        return Ok(response);
    }
    if conversation.ends_by_closing()
        && method != Method::Head
        && let Some(length) = length
    {
        // Nothing else tells an answer that was cut from one that is whole.
        if (content.len() as u64) < length && !matches!(response.status.code(), 204 | 304) {
            return Err(Trouble::Cut);
        }
        content.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    }
    conversation.finish();
    response.body = match (method, content.is_empty()) {
        // An application says nothing to HEAD, or what it would say to GET.
        (Method::Head, true) => Body::Stream(Box::new(Nothing(length))),
        _ => Body::Bytes(content.into()),
    };
    Ok(response)
}

/// The rest of an answer: read when there is room for it.
struct Content {
    conversation: Conversation,
    /// As the application told it: clients are told the same, so it is so long or cut.
    length: Option<u64>,
    /// Of that what is still to come.
    left: Option<u64>,
}

impl Content {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let mut answer = std::mem::take(self.conversation.answer());
            if let Some(left) = &mut self.left {
                answer.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= answer.len() as u64;
            }
            if !answer.is_empty() {
                return Poll::Ready(Some(Ok(answer.into())));
            }
            let is_over = self.conversation.is_over();
            if is_over && self.left.is_some_and(|left| left > 0) {
                return Poll::Ready(Some(Err(Trouble::Cut.into())));
            }
            // What the application does behind the last byte is nothing to wait for.
            if is_over || self.left == Some(0) && self.conversation.poll_more(context).is_pending() {
                self.conversation.finish();
                return Poll::Ready(None);
            }
            if self.left == Some(0) {
                if !self.conversation.is_over() {
                    return Poll::Ready(None);
                }
                continue;
            }
            if let Err(trouble) = ready!(self.conversation.poll_more(context)) {
                return Poll::Ready(Some(Err(trouble.into())));
            }
        }
    }
}

impl Stream for Content {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(poll_fn(|context| self.poll_next(context)))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// Content that is never sent, and how long it would be where that is known.
struct Nothing(Option<u64>);

impl Stream for Nothing {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
