//! Applies content codings: to whole content that is cached in memory, and piece by piece to files while they are sent.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rocknet_config::model::Priority;
use rocknet_io::file;
use rocknet_proto::semantics::negotiation::Coding;

use crate::coding::{Encoder, Window};
use crate::stepped::{self, Stepped};
use rocknet_blocking::Pool;
use rocknet_handler::open_file::OpenFile;
use rocknet_handler::response::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use crate::coding::encode;

/// Number of bytes that a job of the blocking pool reads and encodes at a time. It is large enough that the cost of
/// starting a job does not matter, and small enough not to delay other jobs.
const PIECE: usize = 128 * 1024;

/// Maximum number of files that one server encodes while it sends them. Between two pieces, a Brotli encoder holds up
/// to 10.4 MB, a Zstandard encoder 3.7 MB, and a gzip encoder half a megabyte (measured with texts of 1 MB to 60 MB).
/// An encoder exists until its client has received the file, and a client may be slow on purpose. All encoders together
/// hold at most 416 MB.
const MAX_ENCODERS: usize = 40;

/// Limits how many files of one server are encoded at the same time while they are sent. All clones share the limit.
#[derive(Clone)]
pub struct EncoderLimit(Arc<Semaphore>);

impl Default for EncoderLimit {
    fn default() -> EncoderLimit {
        EncoderLimit(Arc::new(Semaphore::new(MAX_ENCODERS)))
    }
}

/// A file that is encoded while it is sent. No thread waits for the client, because each piece is a separate job.
pub struct EncodedFile {
    /// `None` while a job has the state, at the end of the file, and after an error.
    state: Option<EncodeState>,
    pool: Pool,
    priority: Priority,
}

/// An encoder and the file that it reads, from `offset` on.
struct EncodeState {
    /// Held as long as the encoder exists, even if a job continues after its client has disconnected.
    _permit: OwnedSemaphorePermit,
    encoder: Encoder,
    file: Arc<OpenFile>,
    offset: u64,
}

impl EncodedFile {
    /// Starts encoding a file. Returns `None` if the limit is reached or the coding is identity; the file should then
    /// be sent unencoded.
    ///
    /// # Errors
    ///
    /// Returns an error if the encoder cannot be created.
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
        Box::pin(stepped::next(&mut self.state, &self.pool, self.priority))
    }
}

impl Stepped for EncodeState {
    fn step(self) -> io::Result<(Bytes, Option<EncodeState>)> {
        self.encode_piece()
    }
}

impl EncodeState {
    /// Reads and encodes the next piece. Returns the output, which is empty while the encoder holds it back, and also
    /// the state if the file has not ended.
    fn encode_piece(mut self) -> io::Result<(Bytes, Option<EncodeState>)> {
        let length = (self.file.length - self.offset).min(PIECE as u64) as usize;
        if length == 0 {
            return Ok((self.encoder.finish()?.into(), None));
        }
        let mut piece = vec![0; length];
        file::read_range(&self.file.file, self.offset, &mut piece)?;
        self.offset += length as u64;
        self.encoder.write(&piece)?;
        Ok((self.encoder.take().into(), Some(self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_files_encoded_while_sent_is_bounded() {
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
        assert!(start().is_some(), "a released permit is available");
    }
}
