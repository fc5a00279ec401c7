//! Event loop in a separate thread, so that the connections of a client make progress while the test does other work.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::DEADLINE;

/// Time limit for the orderly end of a client.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);

/// Orderly end of a client.
type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runtime in a separate thread, which ends when the value is dropped.
pub struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<Closing>>,
}

impl Background {
    /// Starts the thread.
    pub fn start() -> Background {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (stop, stopped) = oneshot::channel::<Closing>();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || {
            runtime.block_on(async {
                if let Ok(closing) = stopped.await {
                    let _ = timeout(CLOSING_LIMIT, closing).await;
                }
            });
        });
        Background {
            handle,
            stop: Some(stop),
        }
    }

    /// Ends the thread after the future `closing`, which may take up to [`CLOSING_LIMIT`].
    pub fn end_after(&mut self, closing: impl Future<Output = ()> + Send + 'static) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(Box::pin(closing));
        }
    }

    /// Waits for a future, which must complete in time.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.try_block_on(DEADLINE, future).expect("nothing came in time")
    }

    /// Waits for a future. Returns `None` after `limit`.
    pub fn try_block_on<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        self.handle.block_on(async { timeout(limit, future).await }).ok()
    }

    /// Runs a future on the thread.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.handle.spawn(future)
    }
}
