//! Handlers for tests: they panic, echo the request body, or respond when the test sends a signal.

use std::sync::Mutex;

use rocknet::exchange::{BodyError, Exchange};
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;
use tokio::sync::{mpsc, oneshot};

/// Panics when it is called if the path ends with `/now`, and otherwise in the future that it returns.
pub struct Panics;

impl Handler for Panics {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        assert!(
            !exchange.path.ends_with("/now"),
            "a handler that panics immediately, for a test"
        );
        respond_with(async { panic!("a handler that panics after a wait, for a test") })
    }
}

/// Reads the whole request body and sends it back.
pub struct Echo;

impl Handler for Echo {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        let mut content = exchange.body;
        respond_with(async move {
            let mut all = Vec::new();
            loop {
                match content.chunk().await {
                    Ok(Some(chunk)) => all.extend_from_slice(&chunk),
                    Ok(None) => return Response::new(Status::OK).body(all),
                    Err(BodyError::TooLarge) => return Response::new(Status::CONTENT_TOO_LARGE),
                    Err(_) => return Response::new(Status::BAD_REQUEST),
                }
            }
        })
    }
}

/// Passes each request to the test, and responds with the text that the test sends.
pub struct Deferred(Mutex<mpsc::UnboundedSender<PendingRequest>>);

/// A waiting request; the text sent through it becomes its response.
pub struct PendingRequest(oneshot::Sender<&'static str>);

/// Receiver of the requests of a [`Deferred`] handler.
pub struct PendingRequests(mpsc::UnboundedReceiver<PendingRequest>);

impl Deferred {
    pub fn new() -> (Deferred, PendingRequests) {
        let (pending, waiting) = mpsc::unbounded_channel();
        (Deferred(Mutex::new(pending)), PendingRequests(waiting))
    }
}

impl PendingRequests {
    /// Waits for the next request. Without a request, the deadline of the client makes the test fail.
    pub fn next(&mut self) -> PendingRequest {
        self.0.blocking_recv().expect("a server that still runs")
    }
}

impl PendingRequest {
    /// Sends the response. Returns false if the request was dropped.
    pub fn respond(self, text: &'static str) -> bool {
        self.0.send(text).is_ok()
    }
}

impl Handler for Deferred {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        let (response, receiver) = oneshot::channel();
        let sent = self
            .0
            .lock()
            .map(|pending| pending.send(PendingRequest(response)).is_ok())
            .unwrap_or(false);
        respond_with(async move {
            match receiver.await {
                Ok(text) if sent => Response::new(Status::OK).body(text),
                _ => Response::new(Status::SERVICE_UNAVAILABLE),
            }
        })
    }
}
