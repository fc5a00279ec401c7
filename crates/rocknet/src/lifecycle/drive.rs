//! Drives a client connection of any HTTP version until it has closed.

use std::io;
use std::task::{Context, Poll};

use rocknet_io::link::Link;

use super::connection::{ConnectionCore, End};
use super::deadlines::FIN_ONLY;

/// A connection of one HTTP version.
pub trait Version {
    type Link: Link;
    /// True if the connection is read while its backlog waits for the link.
    const READS_WHILE_BLOCKED: bool;

    fn core(&mut self) -> &mut ConnectionCore<Self::Link>;

    /// Sends the backlog. No step is taken before it has left: that is all the back-pressure there is.
    fn poll_backlog(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Serves exchanges as far as it can. Ready: another step may follow.
    fn step(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Counts a step in `steps`. Returns false if other connections get their turn first.
    fn begin_step(&self, steps: &mut u32) -> bool;

    /// Reads while the backlog waits for the link, where [`Version::READS_WHILE_BLOCKED`].
    fn step_while_blocked(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    /// Sets deadlines for the wait that begins. Returns true if one of an exchange has passed and was acted on.
    fn poll_exchange_deadlines(&mut self, _: &mut Context<'_>) -> bool {
        false
    }

    /// Acts on the deadline of an open connection.
    fn expire(&mut self);

    /// Records the responses under way as cut.
    fn record_cut(&mut self);

    /// Prepares the link for its shutdown.
    fn before_shut_down(&mut self) {}
}

/// Drives a connection. Ready: it has closed, and its link may be dropped.
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
                    End::Draining { .. } => Poll::Pending,
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

fn yield_now(context: &mut Context<'_>) -> Poll<()> {
    context.waker().wake_by_ref();
    Poll::Pending
}

/// Acts on a link that has failed. Mostly the client has gone. Returns true if the connection is over; false if the client is
/// still there, for instance after an invalid TLS record, and has not taken all that was sent.
#[cold]
fn fail<V: Version>(connection: &mut V, error: &io::Error) -> bool {
    // A file that ended before its length is the operator's concern.
    if error.kind() == io::ErrorKind::UnexpectedEof {
        tracing::warn!(client = %connection.core().info.client, "a response was cut off: {error}");
    }
    connection.record_cut();
    let core = connection.core();
    // Unsent bytes end in a reset in any case.
    if core.open_ended || core.backlog.is_some() || matches!(core.end, End::Draining { .. }) {
        return true;
    }
    connection.before_shut_down();
    connection.core().close_when_taken(FIN_ONLY);
    connection.core().end == End::Closed
}
