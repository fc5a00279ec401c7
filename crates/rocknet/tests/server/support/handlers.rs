//! Handlers for tests: one panics, one reads the request body, and one responds on a signal.

use std::sync::Mutex;

use rocknet::exchange::{BodyError, Exchange};
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;
use tokio::sync::{mpsc, oneshot};

/// Panics at once, or later, depending on the last part of the path.
pub struct Panics;

impl Handler for Panics {
    fn handle(&self, exchange: Exchange) -> HandlerFuture {
        assert!(
            !exchange.path.ends_with("/now"),
            "a handler that panics at once, for a test"
        );
        respond_with(async { panic!("a handler that panics while it is waited for, for a test") })
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

/// Hands each request to the test, and responds when the test provides the text.
pub struct Waits(Mutex<mpsc::UnboundedSender<Asked>>);

/// A waiting request; the text sent through it becomes its response.
pub struct Asked(oneshot::Sender<&'static str>);

/// The test's end of [`Waits`].
pub struct Waiting(mpsc::UnboundedReceiver<Asked>);

impl Waits {
    pub fn new() -> (Waits, Waiting) {
        let (asked, waiting) = mpsc::unbounded_channel();
        (Waits(Mutex::new(asked)), Waiting(waiting))
    }
}

impl Waiting {
    /// Waits for the next request; if none comes, the client's own deadline ends the test.
    pub fn next(&mut self) -> Asked {
        self.0.blocking_recv().expect("a server that still runs")
    }
}

impl Asked {
    /// Sends the response. Returns false if the request was dropped.
    pub fn answer(self, text: &'static str) -> bool {
        self.0.send(text).is_ok()
    }
}

impl Handler for Waits {
    fn handle(&self, _: Exchange) -> HandlerFuture {
        let (answer, told) = oneshot::channel();
        let sent = self
            .0
            .lock()
            .map(|asked| asked.send(Asked(answer)).is_ok())
            .unwrap_or(false);
        respond_with(async move {
            match told.await {
                Ok(text) if sent => Response::new(Status::OK).body(text),
                _ => Response::new(Status::SERVICE_UNAVAILABLE),
            }
        })
    }
}
