//! A thread with an event loop for background work. The first message starts it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use rocknet_io::owned_thread::OwnedThread;

/// Function whose future handles messages until the last sender is dropped.
pub type Run<T> = fn(UnboundedReceiver<T>) -> Pin<Box<dyn Future<Output = ()>>>;

/// A background thread and the channel to it.
///
/// Dropping the value ends the thread without waiting for it. [`Background::stop`] waits until it has ended.
pub struct Background<T> {
    name: &'static str,
    /// Maximum number of threads for blocking calls, such as DNS lookups.
    max_blocking: usize,
    run: Run<T>,
    /// Set by the first message, so that later messages need no lock. `None` if the thread was stopped before, or
    /// could not be started.
    messages: OnceLock<Option<UnboundedSender<T>>>,
    state: Mutex<ThreadState>,
}

#[derive(Default)]
struct ThreadState {
    running: Option<Running>,
    is_stopped: bool,
}

struct Running {
    thread: OwnedThread,
    /// Sends the deadline until which the thread waits for blocking calls.
    stop: oneshot::Sender<Instant>,
}

/// Time granted to blocking calls if the value is dropped without [`Background::stop`].
const ABANDONED_GRACE: Duration = Duration::ZERO;

impl<T: Send + 'static> Background<T> {
    /// Prepares a thread with this name and at most `max_blocking` threads for blocking calls. Nothing is started yet.
    pub const fn new(name: &'static str, max_blocking: usize, run: Run<T>) -> Background<T> {
        Background {
            name,
            max_blocking,
            run,
            messages: OnceLock::new(),
            state: Mutex::new(ThreadState {
                running: None,
                is_stopped: false,
            }),
        }
    }

    /// Sends a message, and starts the thread if this is the first one. Returns `false` if the thread was stopped or
    /// could not be started.
    pub fn send(&self, message: T) -> bool {
        let messages = self.messages.get_or_init(|| self.start()).as_ref();
        messages.is_some_and(|messages| messages.send(message).is_ok())
    }

    fn start(&self) -> Option<UnboundedSender<T>> {
        let mut state = self.state();
        if state.is_stopped {
            return None;
        }
        let name = self.name;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(self.max_blocking)
            .build()
            .map_err(|error| tracing::error!("cannot start the thread {name}: {error}"))
            .ok()?;
        let (sender, receiver) = unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let run = self.run;
        let thread = OwnedThread::start(name, move || {
            let deadline = runtime.block_on(async {
                tokio::select! {
                    deadline = stopped => deadline.ok(),
                    () = run(receiver) => None,
                }
            });
            let left = deadline.map_or(ABANDONED_GRACE, |until: Instant| {
                until.saturating_duration_since(Instant::now())
            });
            runtime.shutdown_timeout(left);
        });
        let thread = thread.map_err(|error| tracing::error!("cannot start the thread {name}: {error}"));
        state.running = Some(Running {
            thread: thread.ok()?,
            stop,
        });
        Some(sender)
    }

    /// Stops the thread, drops its tasks, and waits for it until shortly after `deadline`. Returns true if it has ended
    /// by then, never started, or was stopped by an earlier call.
    ///
    /// A DNS lookup cannot be interrupted. Its thread may outlive the deadline, and ends after the lookup.
    pub fn stop(&self, deadline: Instant) -> bool {
        let running = {
            let mut state = self.state();
            state.is_stopped = true;
            state.running.take()
        };
        running.is_none_or(|Running { thread, stop }| {
            let _ = stop.send(deadline);
            thread.join(deadline + JOIN_GRACE)
        })
    }

    fn state(&self) -> MutexGuard<'_, ThreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Additional wait for the thread after the deadline. At the deadline, its event loop gives up on blocking calls.
const JOIN_GRACE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn hold_senders(mut messages: UnboundedReceiver<mpsc::Sender<()>>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            while let Some(sender) = messages.recv().await {
                // The task keeps the sender until the event loop is dropped.
                drop(tokio::spawn(async move {
                    let _sender = sender;
                    std::future::pending::<()>().await;
                }));
            }
        })
    }

    #[test]
    fn stop_ends_all_tasks_and_refuses_messages() {
        let background = Background::new("rn-test", 1, hold_senders);
        let (sender, receiver) = mpsc::channel();
        assert!(background.send(sender.clone()));
        let deadline = Instant::now() + Duration::from_secs(60);
        assert!(background.stop(deadline) && background.stop(deadline));
        assert!(!background.send(sender));
        assert_eq!(receiver.recv(), Err(mpsc::RecvError), "a task is still running");
        let unused = Background::new("rn-test", 1, hold_senders);
        assert!(unused.stop(Instant::now()));
        assert!(!unused.send(mpsc::channel().0), "the thread started after stop");
    }

    #[test]
    fn dropping_ends_the_thread() {
        let background = Background::new("rn-test", 1, hold_senders);
        let (sender, receiver) = mpsc::channel();
        assert!(background.send(sender));
        drop(background);
        assert_eq!(receiver.recv(), Err(mpsc::RecvError));
    }
}
