//! From what an upstream answers to a response: its head cleared of what is the connection's, its content passed on.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use rocknet_io::wheel::Deadline;
use rocknet_proto::fields::{Field, Known, KnownSet};
use rocknet_proto::h1::{ResponseContent, connection_options};
use rocknet_proto::method::Method;
use rocknet_proto::response;
use rocknet_proto::status::Status;

use crate::ahead::Ahead;
use crate::conversation::Conversation;
use crate::switch::{Joined, Wish};
use crate::trouble::Trouble;
use rocknet_handler::response::{Body, ErrorPage, FieldList, Response, Stream};

/// Fields that frame a message or rule its connection, and those that this server says of itself.
const NOT_PASSED: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::ContentLength,
    Known::Date,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Server,
    Known::Te,
    Known::Trailer,
    Known::TransferEncoding,
    Known::Upgrade,
]);

/// A head as it is passed on.
pub struct Head {
    status: Status,
    fields: FieldList,
    /// As it was told: to HEAD, of content that is not sent.
    length: Option<u64>,
}

impl Head {
    pub fn new(response: &response::Response<'_>, content: ResponseContent, wish: Option<&Wish>) -> Head {
        let nominates = response.fields.contains(Known::Connection);
        let is_passed = |field: &Field<'_>| {
            let is_own = field.known.is_some_and(|known| NOT_PASSED.contains(known))
                || wish.is_some_and(|wish| wish.is_own(field.name));
            let is_nominated =
                || nominates && connection_options(response.fields).any(|name| name.eq_ignore_ascii_case(field.name));
            !is_own && !is_nominated()
        };
        let passed = response.fields.lines().filter(is_passed);
        let fields = FieldList::copied(passed);
        let told = response.fields.get(Known::ContentLength);
        let length = match content {
            ResponseContent::Length(length) => Some(length),
            ResponseContent::None => told.and_then(|length| std::str::from_utf8(length).ok()?.parse().ok()),
            ResponseContent::Chunked | ResponseContent::UntilClose => None,
        };
        Head {
            status: response.status,
            fields,
            length,
        }
    }
}

impl Head {
    pub fn into_fields(self) -> FieldList {
        self.fields
    }
}

/// The response to a request whose head has come. `ahead`: bytes of it that are received ahead of the client.
pub fn response(mut conversation: Conversation, method: Method, ahead: usize) -> Result<Response, Trouble> {
    let Head { status, fields, length } = conversation.take_head().ok_or(Trouble::Silent)?;
    if let Some(protocol) = conversation.take_switched() {
        let protocol = String::from_utf8_lossy(&protocol).into_owned();
        let tunnel = Joined::new(conversation).ok_or(Trouble::Silent)?;
        return Ok(Response {
            fields,
            ..Response::tunnel(protocol, tunnel)
        });
    }
    let body = if method == Method::Head {
        conversation.finish();
        Body::Stream(Box::new(Unsent(length)))
    } else if conversation.is_over() && !conversation.has_trailers() {
        let content = conversation.take_pending();
        conversation.finish();
        if content.is_empty() {
            Body::Empty
        } else {
            Body::Bytes(content.into())
        }
    } else if ahead > 0 {
        let deadline = conversation.deadline();
        Body::Stream(Box::new(Ahead::new(conversation, deadline, length, ahead)))
    } else {
        Body::Stream(Box::new(Content {
            deadline: conversation.deadline(),
            conversation,
            length,
        }))
    };
    Ok(Response {
        status,
        fields,
        body,
        error_page: ErrorPage::Never,
        is_negotiated: false,
        upstream: None,
    })
}

/// The rest of an answer: read when there is room for it.
struct Content {
    conversation: Conversation,
    deadline: Deadline,
    length: Option<u64>,
}

impl Stream for Content {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        let Content {
            conversation, deadline, ..
        } = self;
        deadline.set(conversation.idle_ticks());
        Box::pin(poll_fn(move |context| {
            loop {
                let pending = conversation.take_pending();
                if !pending.is_empty() {
                    return Poll::Ready(Some(Ok(pending.into())));
                }
                if conversation.is_over() {
                    conversation.finish();
                    return Poll::Ready(None);
                }
                if let Err(trouble) = ready!(conversation.poll_on(context, deadline)) {
                    return Poll::Ready(Some(Err(trouble.into())));
                }
            }
        }))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.conversation.take_trailers()
    }
}

/// Content that is not sent: the answer to HEAD.
pub struct Unsent(pub Option<u64>);

impl Stream for Unsent {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(std::future::ready(None))
    }

    fn length(&self) -> Option<u64> {
        self.0
    }
}
