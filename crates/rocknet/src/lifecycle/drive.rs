//! Drives a client connection of HTTP/1 or HTTP/2 until it has closed.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::Link;

use super::connection::{ConnectionCore, End};
use super::deadlines::FIN_ONLY;

/// A connection of one HTTP version that uses a [`ConnectionCore`]: HTTP/1 or HTTP/2. Its link is the byte transport: a
/// socket, or TLS over one.
pub trait Version {
    type Link: Link;
    /// True if the connection is read while its backlog waits for the link.
    const READS_WHILE_BLOCKED: bool;

    /// Returns the part of the connection that is the same for both HTTP versions.
    fn core(&mut self) -> &mut ConnectionCore<Self::Link>;

    /// Sends the backlog. [`Version::step`] is called only once the backlog is empty; there is no other back-pressure.
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Serves exchanges until it has to wait. Ready if another step may follow.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Counts a step in `steps`, which begins at 0 in each call of [`drive`]. HTTP/1 counts only steps that send a
    /// body. Returns false if other connections must be served first.
    fn begin_step(&self, steps: &mut u32) -> bool;

    /// Reads while the backlog waits for the link. Called only if [`Version::READS_WHILE_BLOCKED`] is true.
    fn step_while_blocked(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    /// Sets the deadlines of the exchanges that wait. Returns true if the deadline of an exchange has passed and was
    /// acted on.
    fn poll_exchange_deadlines(&mut self, _: &mut Context<'_>) -> bool {
        false
    }

    /// Acts on the passed deadline of an open connection.
    fn expire(&mut self);

    /// Records the responses in progress as cut.
    fn record_cut(&mut self);

    /// Prepares the link for its shutdown. Called again before each read of a lingering connection, so repeated calls
    /// must have no further effect.
    fn before_shut_down(&mut self) {}
}

/// Drives a connection. Ready once the connection has closed and its link may be dropped.
pub fn drive<V: Version>(connection: &mut V, context: &mut Context<'_>) -> Poll<()> {
    let mut steps = 0;
    loop {
        let progress = match connection.poll_backlog(context) {
            Poll::Ready(Ok(())) => {
                let end = connection.core().end;
                match end {
                    End::Open if !connection.begin_step(&mut steps) => return yield_now(context),
                    End::Open => connection.step(context),
                    End::Lingering => {
                        connection.before_shut_down();
                        connection.core().poll_linger(context)
                    }
                    End::AwaitingAck { .. } => Poll::Pending,
                    End::Closed => {
                        connection.record_cut();
                        return Poll::Ready(());
                    }
                }
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if V::READS_WHILE_BLOCKED && connection.core().is_open() => {
                if !connection.begin_step(&mut steps) {
                    return yield_now(context);
                }
                connection.step_while_blocked(context)
            }
            Poll::Pending => Poll::Pending,
        };
        match progress {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                if fail(connection, &error) {
                    return Poll::Ready(());
                }
            }
            Poll::Pending => {
                let mut has_acted = connection.poll_exchange_deadlines(context);
                if connection.core().poll_past(context) {
                    has_acted = true;
                    if connection.core().is_open() {
                        connection.expire();
                    } else {
                        connection.core().expire_end();
                    }
                }
                if !has_acted {
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Lets other tasks run before the connection is polled again.
fn yield_now(context: &mut Context<'_>) -> Poll<()> {
    context.waker().wake_by_ref();
    Poll::Pending
}

/// Handles the failure of a link, usually because the client has closed the connection. Returns true if the connection
/// is over; false if the client is still connected, for instance after an invalid TLS record, and has not acknowledged
/// all sent bytes.
#[cold]
fn fail<V: Version>(connection: &mut V, error: &io::Error) -> bool {
    // `UnexpectedEof`: a file became shorter while it was sent. Only the operator can correct this, so it is logged.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        tracing::warn!(client = %connection.core().info.client, "a response was cut off: {error}");
    }
    connection.record_cut();
    let core = connection.core();
    // An incomplete response or unsent bytes lead to a reset when the connection is dropped, so there is nothing to
    // wait for. A connection that was awaiting acknowledgements already does not begin that wait again.
    if core.ends_with_connection || core.backlog.is_some() || matches!(core.end, End::AwaitingAck { .. }) {
        return true;
    }
    connection.before_shut_down();
    // Closes the connection once the client has acknowledged all sent bytes. `FIN_ONLY`: a sent FIN counts as one byte,
    // which need not be acknowledged.
    connection.core().close_or_await_ack(FIN_ONLY);
    connection.core().end == End::Closed
}
