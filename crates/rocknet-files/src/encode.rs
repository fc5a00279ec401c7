//! Content codings made by the server itself: whole for what is kept in memory, piece by piece for what is not.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::file;
use rocknet_proto::semantics::negotiation::Coding;

use crate::coding::{Encoder, Window};
use rocknet_blocking::Pool;
use rocknet_handler::open_file::OpenFile;
use rocknet_handler::response::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use crate::coding::encode;

/// Read and encoded in one go of the blocking pool: long enough to be worth the hand-over, short enough that other
/// jobs get their turn.
const PIECE: usize = 128 * 1024;

/// Files encoded while they are sent, at once, in one server. An encoder holds up to 6 MB (brotli; zstd 3, gzip half
/// a megabyte; measured) for as long as its client takes to receive, and a client may be slow on purpose: this makes
/// 240 MB at most, about what the cache has by default.
const MAX_ENCODERS: usize = 40;

/// The files of one server that are encoded while they are sent. All clones count together.
#[derive(Clone)]
pub struct EncoderLimit(Arc<Semaphore>);

impl Default for EncoderLimit {
    fn default() -> EncoderLimit {
        EncoderLimit(Arc::new(Semaphore::new(MAX_ENCODERS)))
    }
}

/// A file encoded while it is sent. No thread waits for the client: each piece is a job of its own.
pub struct EncodedFile {
    state: Option<EncodeState>,
    pool: Pool,
    priority: Priority,
}

struct EncodeState {
    /// Goes with the encoder, also where a job outlives the client that it was for.
    _permit: OwnedSemaphorePermit,
    encoder: Encoder,
    file: Arc<OpenFile>,
    offset: u64,
}

impl EncodedFile {
    /// `None`: so many files are being encoded that this one had better go out as it is.
    pub fn new(
        limit: &EncoderLimit,
        coding: Coding,
        file: Arc<OpenFile>,
        pool: Pool,
        priority: Priority,
    ) -> io::Result<Option<EncodedFile>> {
        let Ok(permit) = Arc::clone(&limit.0).try_acquire_owned() else {
            return Ok(None);
        };
        let Some(encoder) = Encoder::new(coding, Window::Large)? else {
            return Ok(None);
        };
        Ok(Some(EncodedFile {
            state: Some(EncodeState {
                _permit: permit,
                encoder,
                file,
                offset: 0,
            }),
            pool,
            priority,
        }))
    }
}

impl Stream for EncodedFile {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            let state = self.state.take()?;
            let job = self.pool.spawn(self.priority, move || state.step());
            match job.await {
                Ok(Ok((bytes, state))) => {
                    self.state = state;
                    Some(Ok(bytes))
                }
                Ok(Err(error)) => Some(Err(error)),
                Err(error) => Some(Err(io::Error::other(error.to_string()))),
            }
        })
    }
}

impl EncodeState {
    /// Reads until something has come out of the encoder.
    fn step(mut self) -> io::Result<(Bytes, Option<EncodeState>)> {
        let mut piece = vec![0; PIECE];
        loop {
            let length = (self.file.length - self.offset).min(PIECE as u64) as usize;
            if length == 0 {
                return Ok((self.encoder.finish()?.into(), None));
            }
            file::read_range(&self.file.file, self.offset, &mut piece[..length])?;
            self.offset += length as u64;
            self.encoder.write(&piece[..length])?;
            let encoded = self.encoder.take();
            if !encoded.is_empty() {
                return Ok((encoded.into(), Some(self)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_nothing_is_encoded_while_it_is_sent() {
        let file = Arc::new(OpenFile::new(tempfile::tempfile().expect("a file"), 0));
        let pool = Pool::new(1);
        let limit = EncoderLimit::default();
        let start = || {
            let (file, pool) = (Arc::clone(&file), pool.clone());
            EncodedFile::new(&limit, Coding::Gzip, file, pool, Priority::Normal).expect("an encoder")
        };
        let all: Vec<_> = std::iter::from_fn(start).take(MAX_ENCODERS + 1).collect();
        assert_eq!(all.len(), MAX_ENCODERS);
        drop(all);
        assert!(start().is_some(), "a permit that was left is free");
    }
}
