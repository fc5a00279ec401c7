//! Streams whose pieces are made by jobs of the pool, one after the other.

use std::io;

use bytes::Bytes;
use rocknet_blocking::Pool;
use rocknet_config::model::Priority;

/// State of a stream, which a job takes and returns.
pub(crate) trait Stepped: Sized + Send + 'static {
    /// Makes the next piece. Returns it, and also the state if the stream has not ended. The piece may be empty, so
    /// that a job ends in time even if it has no output yet.
    ///
    /// # Errors
    ///
    /// Fails if the piece cannot be made. The stream then ends.
    fn step(self) -> io::Result<(Bytes, Option<Self>)>;
}

/// Returns the next piece of a stream; `None` after its end. `state`: `None` once the stream has ended.
///
/// # Errors
///
/// Fails if a piece cannot be made, or if the pool does not run a job. The sender of the response logs the error.
pub(crate) async fn next<S: Stepped>(
    state: &mut Option<S>,
    pool: &Pool,
    priority: Priority,
) -> Option<io::Result<Bytes>> {
    while let Some(taken) = state.take() {
        match pool.spawn(priority, move || taken.step()).await {
            Ok(Ok((bytes, rest))) => {
                *state = rest;
                // An empty piece has nothing to send, so the next job starts immediately.
                if !bytes.is_empty() {
                    return Some(Ok(bytes));
                }
            }
            Ok(Err(error)) => return Some(Err(error)),
            Err(error) => return Some(Err(io::Error::other(format!("the next piece was not made: {error}")))),
        }
    }
    None
}
