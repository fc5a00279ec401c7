//! Streams whose pieces are made by jobs of the pool, one after the other.

use std::io;

use bytes::Bytes;
use rocknet_blocking::Pool;
use rocknet_config::model::Priority;

/// State of a stream, which a job takes and returns.
pub(crate) trait Stepped: Sized + Send + 'static {
    /// Makes the next piece. Returns it, and also the state if the stream has not ended.
    ///
    /// # Errors
    ///
    /// Fails if the piece cannot be made. The stream then ends.
    fn step(self) -> io::Result<(Bytes, Option<Self>)>;
}

/// Returns the next piece of a stream; `None` after its end. `state`: `None` once the stream has ended.
pub(crate) async fn next<S: Stepped>(
    state: &mut Option<S>,
    pool: &Pool,
    priority: Priority,
) -> Option<io::Result<Bytes>> {
    let taken = state.take()?;
    match pool.spawn(priority, move || taken.step()).await {
        Ok(Ok((bytes, rest))) => {
            *state = rest;
            Some(Ok(bytes))
        }
        Ok(Err(error)) => Some(Err(error)),
        Err(error) => Some(Err(io::Error::other(error.to_string()))),
    }
}
