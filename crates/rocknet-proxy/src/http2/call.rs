//! One request and its answer on a stream of its own: both flow as the windows of either side let them.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::HeaderMap;
use rocknet_io::wheel::Deadline;
use rocknet_proto::h1::MAX_INTERIM;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use super::head;
use super::sessions::Lease;
use super::upload::{Beside, Upload};
use crate::head::Unsent;
use crate::place::Place;
use crate::trouble::{self, Trouble};
use crate::{Times, trailers};
use rocknet_handler::interim::{InterimResponse, InterimSender};
use rocknet_handler::response::{Body, ErrorPage, FieldList, Response, Stream};
use rocknet_handler::services::Services;

/// A request that has been sent, or is being sent.
pub struct Call {
    services: Rc<Services>,
    lease: Lease,
    times: Times,
    answer: ResponseFuture,
    upload: Option<Upload>,
    early: Option<Box<InterimResponse>>,
    interim: u8,
}

/// A request whose answer has begun.
pub struct Begun {
    services: Rc<Services>,
    lease: Lease,
    times: Times,
    head: http::Response<RecvStream>,
    beside: Option<Beside>,
}

impl Call {
    pub fn new(
        services: &Rc<Services>,
        lease: Lease,
        times: Times,
        answer: ResponseFuture,
        upload: Option<Upload>,
    ) -> Call {
        Call {
            services: Rc::clone(services),
            lease,
            times,
            answer,
            upload,
            early: None,
            interim: 0,
        }
    }

    /// Goes on until the head of the answer is there. The time the client takes is the client's. With an error comes the
    /// upload of which nothing may have been sent.
    pub async fn hold(
        mut self,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Result<Begun, (Trouble, Option<Upload>)> {
        deadline.set(self.times.first_byte);
        match poll_fn(|context| self.poll_head(context, interim, deadline)).await {
            Ok(head) => Ok(Begun {
                services: self.services,
                lease: self.lease,
                times: self.times,
                head,
                beside: self.upload.map(Upload::go_beside),
            }),
            Err(trouble) => {
                if matches!(trouble, Trouble::Slow) {
                    // Who says nothing to this may have gone, and would keep the others waiting as well.
                    self.lease.retire();
                }
                Err((trouble, self.upload))
            }
        }
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Poll<Result<http::Response<RecvStream>, Trouble>> {
        let mut waits_for_client = false;
        if let Some(upload) = &mut self.upload {
            let before = upload.moved();
            match upload.poll(context) {
                Poll::Ready(Ok(())) => {
                    self.upload = None;
                    deadline.set(self.times.first_byte);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Trouble::Content(error))),
                Poll::Pending => {
                    if upload.moved() != before {
                        deadline.set(self.times.first_byte);
                    }
                    waits_for_client = upload.waits_for_client();
                }
            }
        }
        while let Poll::Ready(Some(Ok(told))) = self.answer.poll_informational(context) {
            if self.lease.is_malformed(self.answer.stream_id()) {
                return Poll::Ready(Err(malformed()));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                let why = "it gives too many interim answers".to_owned();
                return Poll::Ready(Err(Trouble::NoHttp2(why)));
            }
            if let Some(status) = Status::new(told.status().as_u16()) {
                InterimResponse::merge(&mut self.early, status, head::passed(told.headers()));
            }
        }
        match Pin::new(&mut self.answer).poll(context) {
            Poll::Ready(answer) => {
                let may_repeat = !self.lease.is_first();
                let answer = answer.map_err(|error| trouble::of_http2(error, may_repeat));
                let stream = self.answer.stream_id();
                Poll::Ready(answer.and_then(|answer| match self.lease.is_malformed(stream) {
                    true => Err(malformed()),
                    false => Ok(answer),
                }))
            }
            Poll::Pending if !waits_for_client && deadline.poll_past(context.waker()) => {
                Poll::Ready(Err(Trouble::Slow))
            }
            Poll::Pending => {
                if self.early.is_some() {
                    // Nobody waits until they are taken: this is polled again when they are.
                    let _ = interim.poll_send(context, &mut self.early);
                }
                Poll::Pending
            }
        }
    }
}

impl Begun {
    /// The response; `place`: what is left at the server when the answer is over.
    pub fn response(self, method: Method, place: Place) -> Result<Response, Trouble> {
        let (head, body) = self.head.into_parts();
        let status = Status::new(head.status.as_u16()).ok_or_else(|| {
            let why = format!("its status is {}", head.status.as_u16());
            Trouble::NoHttp2(why)
        })?;
        let fields = head::passed(&head.headers);
        let length = head::length(&head.headers);
        let body = if method == Method::Head {
            Body::Stream(Box::new(Unsent(length)))
        } else if body.is_end_stream() {
            Body::Empty
        } else {
            Body::Stream(Box::new(Content {
                deadline: self.services.wheel.deadline(),
                idle: self.times.idle,
                body,
                unreleased: 0,
                length,
                trailers: None,
                beside: self.beside,
                seen: 0,
                lease: self.lease,
                _place: place,
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
}

/// The rest of an answer: the server may send more when the last piece has been asked for.
struct Content {
    body: RecvStream,
    deadline: Deadline,
    idle: u32,
    /// Bytes that were given on, and that the server may send again.
    unreleased: usize,
    length: Option<u64>,
    trailers: Option<FieldList>,
    beside: Option<Beside>,
    /// How far the request beside it had come.
    seen: u64,
    lease: Lease,
    _place: Place,
}

impl Content {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Trouble>>> {
        loop {
            if self.unreleased > 0 {
                let _ = self
                    .body
                    .flow_control()
                    .release_capacity(std::mem::take(&mut self.unreleased));
            }
            match ready!(self.body.poll_data(context)) {
                Some(Ok(piece)) => {
                    self.unreleased = piece.len();
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(trouble::of_http2(error, false)))),
                None => {
                    return Poll::Ready(match ready!(self.body.poll_trailers(context)) {
                        // The client is not told of an end, so that no part passes for the whole.
                        Ok(_) if self.lease.is_malformed(self.body.stream_id()) => Some(Err(malformed())),
                        Ok(trailers) => {
                            self.trailers = trailers.as_ref().map(passed_trailers);
                            None
                        }
                        Err(error) => Some(Err(trouble::of_http2(error, false))),
                    });
                }
            }
        }
    }

    /// Silent is who neither speaks nor listens.
    fn is_silent(&mut self, context: &Context<'_>) -> bool {
        while self.deadline.poll_past(context.waker()) {
            let moved = self.beside.as_ref().map_or(0, |beside| beside.moved.get());
            if moved == self.seen {
                return true;
            }
            self.seen = moved;
            self.deadline.set(self.idle);
        }
        false
    }
}

fn malformed() -> Trouble {
    Trouble::NoHttp2("its head or trailers are malformed".to_owned())
}

fn passed_trailers(map: &HeaderMap) -> FieldList {
    trailers::of_answer(&head::passed(map))
}

impl Stream for Content {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        self.deadline.set(self.idle);
        Box::pin(poll_fn(move |context| match self.poll(context) {
            Poll::Ready(piece) => Poll::Ready(piece.map(|piece| piece.map_err(io::Error::from))),
            Poll::Pending if self.is_silent(context) => Poll::Ready(Some(Err(Trouble::Slow.into()))),
            Poll::Pending => Poll::Pending,
        }))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        self.trailers.take()
    }
}
