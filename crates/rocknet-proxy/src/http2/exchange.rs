//! HTTP/2 exchange with an upstream on one stream. Both directions are forwarded at the same time, within the
//! flow-control windows.

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
use super::pool::StreamPermit;
use super::upload::{BackgroundUpload, Upload};
use crate::error::{self, ProxyError};
use crate::head::OmittedBody;
use crate::permit::Permit;
use crate::{Timeouts, trailers};
use rocknet_handler::interim::{InterimResponse, InterimSender};
use rocknet_handler::response::{Body, ErrorPage, FieldList, Response, Stream};
use rocknet_handler::services::Services;

/// Exchange whose final response head has not arrived.
pub struct H2Exchange {
    services: Rc<Services>,
    permit: StreamPermit,
    times: Timeouts,
    response: ResponseFuture,
    /// Upload of the request body; `None` without a body or after the upload.
    upload: Option<Upload>,
    /// Interim responses that are not forwarded yet, merged into one.
    interim_responses: Option<Box<InterimResponse>>,
    /// Number of received interim responses, at most [`MAX_INTERIM`].
    interim_count: u8,
}

/// Exchange whose final response head has arrived.
pub struct H2Response {
    services: Rc<Services>,
    permit: StreamPermit,
    times: Timeouts,
    head: http::Response<RecvStream>,
    /// Upload of the request body, if it is not complete yet.
    upload: Option<BackgroundUpload>,
}

impl H2Exchange {
    /// Returns an exchange whose request head was sent. `upload` sends the request body.
    pub fn new(
        services: &Rc<Services>,
        permit: StreamPermit,
        times: Timeouts,
        response: ResponseFuture,
        upload: Option<Upload>,
    ) -> H2Exchange {
        H2Exchange {
            services: Rc::clone(services),
            permit,
            times,
            response,
            upload,
            interim_responses: None,
            interim_count: 0,
        }
    }

    /// Drives the exchange until the response head has arrived. Time spent waiting for the client does not count
    /// against the upstream.
    ///
    /// # Errors
    ///
    /// Returns the error with the upload, so that a body of which nothing was consumed can be used for another try.
    pub async fn wait_for_head(
        mut self,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Result<H2Response, (ProxyError, Option<Upload>)> {
        deadline.set(self.times.first_byte);
        match poll_fn(|context| self.poll_head(context, interim, deadline)).await {
            Ok(head) => Ok(H2Response {
                services: self.services,
                permit: self.permit,
                times: self.times,
                head,
                upload: self.upload.map(Upload::into_background),
            }),
            Err(error) => {
                if matches!(error, ProxyError::Timeout) {
                    // The connection may be dead, so other requests on it would time out too.
                    self.permit.retire();
                }
                Err((error, self.upload))
            }
        }
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        interim: &mut InterimSender,
        deadline: &Deadline,
    ) -> Poll<Result<http::Response<RecvStream>, ProxyError>> {
        let mut waits_for_client = false;
        if let Some(upload) = &mut self.upload {
            let before = upload.sent_bytes();
            match upload.poll(context) {
                Poll::Ready(Ok(())) => {
                    self.upload = None;
                    deadline.set(self.times.first_byte);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(ProxyError::RequestBody(error))),
                Poll::Pending => {
                    if upload.sent_bytes() != before {
                        deadline.set(self.times.first_byte);
                    }
                    waits_for_client = upload.waits_for_client();
                }
            }
        }
        while let Poll::Ready(Some(Ok(received))) = self.response.poll_informational(context) {
            if self.permit.is_malformed(self.response.stream_id()) {
                return Poll::Ready(Err(malformed()));
            }
            self.interim_count += 1;
            if self.interim_count > MAX_INTERIM {
                let why = "too many interim responses".to_owned();
                return Poll::Ready(Err(ProxyError::InvalidH2(why)));
            }
            if let Some(status) = Status::new(received.status().as_u16()) {
                InterimResponse::merge(
                    &mut self.interim_responses,
                    status,
                    head::response_fields(received.headers()),
                );
            }
        }
        match Pin::new(&mut self.response).poll(context) {
            Poll::Ready(response) => {
                let may_repeat = !self.permit.is_first();
                let response = response.map_err(|error| error::from_h2(error, may_repeat));
                let stream = self.response.stream_id();
                Poll::Ready(response.and_then(|response| match self.permit.is_malformed(stream) {
                    true => Err(malformed()),
                    false => Ok(response),
                }))
            }
            Poll::Pending if !waits_for_client && deadline.poll_past(context.waker()) => {
                Poll::Ready(Err(ProxyError::Timeout))
            }
            Poll::Pending => {
                if self.interim_responses.is_some() {
                    // The result is ignored, because the task is polled again once the interim responses have
                    // been sent.
                    let _ = interim.poll_send(context, &mut self.interim_responses);
                }
                Poll::Pending
            }
        }
    }
}

impl H2Response {
    /// Returns the response to the client. `upstream_permit` is released when the response body is over.
    pub fn into_response(self, method: Method, upstream_permit: Permit) -> Result<Response, ProxyError> {
        let (head, body) = self.head.into_parts();
        let status = Status::new(head.status.as_u16()).ok_or_else(|| {
            let why = format!("status {}", head.status.as_u16());
            ProxyError::InvalidH2(why)
        })?;
        let fields = head::response_fields(&head.headers);
        let length = head::content_length(&head.headers);
        let date = head::date(&head.headers);
        let body = if method == Method::Head {
            Body::Stream(Box::new(OmittedBody(length)))
        } else if body.is_end_stream() {
            Body::Empty
        } else {
            Body::Stream(Box::new(H2Body {
                deadline: self.services.wheel.deadline(),
                idle: self.times.idle,
                body,
                unreleased: 0,
                length,
                trailers: None,
                upload: self.upload,
                last_sent_bytes: 0,
                permit: self.permit,
                _upstream_permit: upstream_permit,
            }))
        };
        Ok(Response {
            status,
            fields,
            body,
            error_page: ErrorPage::Never,
            is_negotiated: false,
            upstream: None,
            cache_status: "",
            stored: None,
            is_no_offence: false,
            date,
        })
    }
}

/// Response body. The flow-control window is enlarged only when the client's connection polls for the next piece, so
/// the upstream cannot send faster than the client accepts.
struct H2Body {
    body: RecvStream,
    deadline: Deadline,
    /// Idle timeout in ticks.
    idle: u32,
    /// Number of bytes that were passed on, but not yet returned to the flow-control window.
    unreleased: usize,
    /// Length of the body in bytes, if it is known.
    length: Option<u64>,
    /// Trailer fields, once the body has ended.
    trailers: Option<FieldList>,
    /// Upload of the request body, if it was not complete when the response began.
    upload: Option<BackgroundUpload>,
    /// Number of bytes of the request body that had been sent at the last check by [`H2Body::is_idle`].
    last_sent_bytes: u64,
    permit: StreamPermit,
    _upstream_permit: Permit,
}

impl H2Body {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, ProxyError>>> {
        loop {
            if self.unreleased > 0 {
                // Fails only if more bytes are released than were received.
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
                // `false`: the response has begun, so the request is not repeated.
                Some(Err(error)) => return Poll::Ready(Some(Err(error::from_h2(error, false)))),
                None => {
                    return Poll::Ready(match ready!(self.body.poll_trailers(context)) {
                        // An error is returned instead of the end, so that the client does not regard the truncated
                        // body as complete.
                        Ok(_) if self.permit.is_malformed(self.body.stream_id()) => Some(Err(malformed())),
                        Ok(trailers) => {
                            self.trailers = trailers.as_ref().map(response_trailers);
                            None
                        }
                        Err(error) => Some(Err(error::from_h2(error, false))),
                    });
                }
            }
        }
    }

    /// Returns true if the timeout passed without data in either direction.
    fn is_idle(&mut self, context: &Context<'_>) -> bool {
        while self.deadline.poll_past(context.waker()) {
            let sent_bytes = self.upload.as_ref().map_or(0, |upload| upload.sent_bytes.get());
            if sent_bytes == self.last_sent_bytes {
                return true;
            }
            self.last_sent_bytes = sent_bytes;
            self.deadline.set(self.idle);
        }
        false
    }
}

fn malformed() -> ProxyError {
    ProxyError::InvalidH2("malformed header or trailer fields".to_owned())
}

fn response_trailers(map: &HeaderMap) -> FieldList {
    trailers::for_response(&head::response_fields(map))
}

impl Stream for H2Body {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        self.deadline.set(self.idle);
        Box::pin(poll_fn(move |context| match self.poll(context) {
            Poll::Ready(piece) => Poll::Ready(piece.map(|piece| piece.map_err(io::Error::from))),
            Poll::Pending if self.is_idle(context) => Poll::Ready(Some(Err(ProxyError::Timeout.into()))),
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
