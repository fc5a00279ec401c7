//! From what a script answers to a response: its head read and cleared of what is the connection's, its content passed on.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use rocknet_proto::fastcgi::Head;
use rocknet_proto::fields::is_framing;
use rocknet_proto::method::Method;

use super::conversation::Conversation;
use super::trouble::Trouble;
use crate::response::{Body, Response, Stream};

/// What applications say to nginx about its buffers and caches. The name of a file to send is heeded behind this.
fn is_for_others(name: &[u8]) -> bool {
    let starts = name
        .get(..ACCEL.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ACCEL));
    starts && !name.eq_ignore_ascii_case(b"x-accel-redirect")
}

const ACCEL: &[u8] = b"x-accel-";

/// The response to a request whose head has come.
pub fn response(mut conversation: Conversation, method: Method) -> Result<Response, Trouble> {
    let end = conversation.head();
    let answer = std::mem::take(conversation.answer());
    let head = Head::parse(&answer[..end]).map_err(Trouble::Head)?;
    let mut response = Response::new(head.status);
    for (name, value) in head.fields {
        // The length is told anew where it is known, and the date is the server's.
        if !is_framing(name) && !name.eq_ignore_ascii_case(b"date") && !is_for_others(name) {
            // Names are tokens, so this changes nothing.
            let name = String::from_utf8_lossy(name);
            response.fields.add(name.into_owned(), text(value).into_owned());
        }
    }
    let mut content = answer;
    content.drain(..end);
    let is_whole = conversation.is_over();
    response.body = match (is_whole, content.is_empty()) {
        (true, is_empty) => {
            conversation.finish();
            // To HEAD a script says nothing, or what it would say to GET: neither tells a length.
            match (method, is_empty) {
                (Method::Head, true) => Body::Stream(Box::new(Nothing)),
                _ => Body::Bytes(content.into()),
            }
        }
        (false, _) => {
            *conversation.answer() = content;
            Body::Stream(Box::new(Content(conversation)))
        }
    };
    Ok(response)
}

/// Values are UTF-8 mostly; what is not is taken for Latin-1, as HTTP once had it (RFC 9110 §5.5).
fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.iter().copied().map(char::from).collect()),
    }
}

/// The rest of an answer: read when there is room for it.
struct Content(Conversation);

impl Stream for Content {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        let conversation = &mut self.0;
        Box::pin(poll_fn(move |context| {
            loop {
                let answer = std::mem::take(conversation.answer());
                if !answer.is_empty() {
                    return Poll::Ready(Some(Ok(answer.into())));
                }
                if conversation.is_over() {
                    conversation.finish();
                    return Poll::Ready(None);
                }
                if let Err(trouble) = ready!(conversation.poll_more(context)) {
                    return Poll::Ready(Some(Err(trouble.into())));
                }
            }
        }))
    }
}

/// Content of unknown length that is never sent.
struct Nothing;

impl Stream for Nothing {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }
}
