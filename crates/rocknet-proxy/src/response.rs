//! From what an upstream answers to a response: its head cleared of what is the connection's, its content passed on.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;
use rocknet_io::wheel::Deadline;
use rocknet_proto::method::Method;

use crate::buffering::BufferedBody;
use crate::error::ProxyError;
use crate::h1_exchange::H1Exchange;
use crate::head::{OmittedBody, ResponseHead};
use crate::upgrade::UpgradedTunnel;
use rocknet_handler::response::{Body, ErrorPage, FieldList, Response, Stream};

/// The response to a request whose head has come. `ahead`: bytes of it that are received ahead of the client.
pub fn response(mut conversation: H1Exchange, method: Method, ahead: usize) -> Result<Response, ProxyError> {
    let ResponseHead { status, fields, length } = conversation.take_head().ok_or(ProxyError::NoResponse)?;
    if let Some(protocol) = conversation.take_switched() {
        let protocol = String::from_utf8_lossy(&protocol).into_owned();
        let tunnel = UpgradedTunnel::new(conversation).ok_or(ProxyError::NoResponse)?;
        return Ok(Response {
            fields,
            ..Response::tunnel(protocol, tunnel)
        });
    }
    let body = if method == Method::Head {
        conversation.finish();
        Body::Stream(Box::new(OmittedBody(length)))
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
        Body::Stream(Box::new(BufferedBody::new(conversation, deadline, length, ahead)))
    } else {
        Body::Stream(Box::new(H1Body {
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
struct H1Body {
    conversation: H1Exchange,
    deadline: Deadline,
    length: Option<u64>,
}

impl Stream for H1Body {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        let H1Body {
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
