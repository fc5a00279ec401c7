//! Handlers for tests: one that panics, one that reads content, one that answers when told.

use std::sync::Mutex;

use rocknet::exchange::{BodyError, Exchange};
use rocknet::handler::{Handler, HandlerFuture, respond_with};
use rocknet::response::Response;
use rocknet_proto::status::Status;
use tokio::sync::{mpsc, oneshot};

/// Panics at once, or later, by the last part of the path.
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

/// Reads all content and sends it back.
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

/// Tells the test of each request, and answers when the test says so.
pub struct Waits(Mutex<mpsc::UnboundedSender<Asked>>);

/// A request that waits: what is sent here becomes its answer.
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
    /// The next request; the client's own deadline ends a test where none comes.
    pub fn next(&mut self) -> Asked {
        self.0.blocking_recv().expect("a server that still runs")
    }
}

impl Asked {
    /// False if nobody waits any more.
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
