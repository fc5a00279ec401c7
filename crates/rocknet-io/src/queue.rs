//! Send queue of a link: the data to be sent, in order, stored so that few system calls send it.

mod segment;

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(unix)]
use crate::file::{FileError, read_range, read_resident};
use crate::pipe::Pipe;

pub use self::segment::{Segment, SharedBytes};

/// Size in bytes below which data is copied into the queue's buffer, because sending one buffer costs the kernel less
/// than sending two. On loopback, copying was faster up to about 4 KiB.
pub const COPY_BELOW: usize = 4096;

/// Maximum number of buffers in one `sendmsg` call: far below `IOV_MAX` (1024), so that their array fits on the stack.
pub const MAX_SLICES: usize = 64;

/// Data waiting to be sent: heads and small bodies in its own buffer, larger data by reference.
///
/// ```
/// use bytes::Bytes;
/// use rocknet_io::queue::SendQueue;
///
/// let mut queue = SendQueue::default();
/// queue.buffer().extend_from_slice(b"head ");
/// queue.push_owned(Bytes::from_static(b"body"));
/// assert_eq!(queue.len(), 9);
///
/// // A link sends the front and then advances the queue.
/// assert_eq!(queue.front(), Some(&b"head body"[..]));
/// queue.advance(9);
/// assert!(queue.is_empty());
/// ```
#[derive(Default)]
pub struct SendQueue {
    /// The queue's own buffer.
    written: Vec<u8>,
    /// Length of the front part of `written` that segments cover.
    segmented: usize,
    /// Length of the front part of `written` that was sent; not updated while there are segments.
    sent: usize,
    /// Data to send, in order. The bytes of `written` that no segment covers follow.
    segments: VecDeque<Segment>,
    /// Bytes in `segments`, including files and pipes.
    queued: u64,
    /// Values that are dropped once the queue is empty.
    kept: Vec<Rc<dyn Any>>,
}

/// Creates a queue whose buffer contains the given bytes.
impl From<Vec<u8>> for SendQueue {
    fn from(written: Vec<u8>) -> SendQueue {
        SendQueue {
            written,
            ..SendQueue::default()
        }
    }
}

impl SendQueue {
    /// Creates an empty queue whose buffer has room for `bytes`.
    pub fn with_capacity(bytes: usize) -> SendQueue {
        SendQueue {
            written: Vec::with_capacity(bytes),
            ..SendQueue::default()
        }
    }

    /// Returns the buffer to which heads and small bodies are appended. The caller must not shorten it.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.written
    }

    /// Returns whether everything was sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.sent == self.written.len()
    }

    /// Returns the number of bytes waiting, including files and pipes.
    #[inline]
    pub fn len(&self) -> u64 {
        self.queued + (self.written.len() - self.segmented.max(self.sent)) as u64
    }

    /// Appends bytes: a copy if they are fewer than [`COPY_BELOW`], otherwise by reference.
    pub fn push_owned(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BELOW {
            self.written.extend_from_slice(&bytes);
        } else {
            self.segment_written();
            self.queued += bytes.len() as u64;
            self.segments.push_back(Segment::Owned(bytes));
        }
    }

    /// Appends the range `start..end` of shared bytes: a copy if it is shorter than [`COPY_BELOW`], otherwise by
    /// reference.
    ///
    /// # Panics
    ///
    /// Panics if the range lies outside of the bytes: immediately if it is copied, otherwise when it is sent.
    pub fn push_shared(&mut self, bytes: &SharedBytes, start: usize, end: usize) {
        let all: &[u8] = (**bytes).as_ref();
        if end - start < COPY_BELOW {
            self.written.extend_from_slice(&all[start..end]);
        } else {
            self.segment_written();
            self.queued += (end - start) as u64;
            self.segments.push_back(Segment::Shared {
                bytes: Rc::clone(bytes),
                start,
                end,
            });
        }
    }

    /// Appends `length` bytes of a file from `offset`. Sending fails if the file ends before the range does.
    pub fn push_file(&mut self, file: Arc<File>, offset: u64, length: u64) {
        if length > 0 {
            self.segment_written();
            self.queued += length;
            self.segments.push_back(Segment::File { file, offset, length });
        }
    }

    /// Appends all bytes that are buffered in a pipe.
    pub fn push_pipe(&mut self, pipe: Pipe) {
        let length = pipe.buffered();
        if length > 0 {
            self.segment_written();
            self.queued += length;
            self.segments.push_back(Segment::Piped { pipe, length });
        }
    }

    /// Keeps a value until all data of the queue has been sent or discarded, such as a permit that a client occupies
    /// while it receives its response. If the queue is empty, the value is dropped at once.
    pub fn keep_until_sent(&mut self, value: Rc<dyn Any>) {
        if !self.is_empty() {
            self.kept.push(value);
        }
    }

    /// Drops the kept values, because no data is left. Most queues keep none, so the test comes first.
    #[inline]
    fn drop_kept(&mut self) {
        if !self.kept.is_empty() {
            self.kept.clear();
        }
    }

    /// Takes the kept values, for [`SendQueue::keep_all`].
    #[cfg(unix)]
    pub(crate) fn take_kept(&mut self) -> Vec<Rc<dyn Any>> {
        std::mem::take(&mut self.kept)
    }

    /// Keeps values as [`SendQueue::keep_until_sent`] does.
    #[cfg(unix)]
    pub(crate) fn keep_all(&mut self, values: Vec<Rc<dyn Any>>) {
        if !self.is_empty() {
            self.kept.extend(values);
        }
    }

    /// Returns true if the queue keeps a value until its data has been sent.
    #[inline]
    pub fn keeps_values(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Puts bytes back at the front of the queue, after a batched write could not send them.
    pub fn put_back(&mut self, bytes: Vec<u8>) {
        self.segment_written();
        self.queued += bytes.len() as u64;
        self.segments.push_front(Segment::Owned(bytes.into()));
    }

    /// Discards everything but keeps the buffer's memory.
    pub fn clear(&mut self) {
        self.written.clear();
        self.segments.clear();
        (self.segmented, self.sent, self.queued) = (0, 0, 0);
        self.drop_kept();
    }

    /// Releases the buffer's memory beyond `bytes`, if the queue is empty.
    pub fn shrink(&mut self, bytes: usize) {
        if self.is_empty() && self.written.capacity() > bytes {
            self.written = Vec::with_capacity(bytes);
            (self.segmented, self.sent) = (0, 0);
        }
    }

    /// Moves all unsent data into a new queue, which a connection can store. Empties this queue but keeps its buffer
    /// for reuse.
    pub fn take_rest(&mut self) -> SendQueue {
        let mut rest = SendQueue {
            kept: std::mem::take(&mut self.kept),
            ..SendQueue::default()
        };
        if self.segments.is_empty() {
            rest.written.extend_from_slice(&self.written[self.sent..]);
        } else {
            self.segment_written();
            for segment in self.segments.drain(..) {
                rest.queued += segment.len();
                if let Segment::Written { start, end } = segment {
                    let at = rest.written.len();
                    rest.written.extend_from_slice(&self.written[start..end]);
                    rest.segments.push_back(Segment::Written {
                        start: at,
                        end: rest.written.len(),
                    });
                } else {
                    rest.segments.push_back(segment);
                }
            }
            rest.segmented = rest.written.len();
        }
        self.clear();
        rest
    }

    /// Returns the unsent bytes if all of them are in the queue's own buffer, so that one `send` is enough. This is the
    /// common case. Returns `None` if there are segments.
    #[inline]
    pub(crate) fn contiguous(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.written[self.sent..])
    }

    /// Fills `slices` with the data in memory at the front, up to the first file or pipe. Returns the number of slices,
    /// and whether more data follows them.
    pub(crate) fn slices<'q>(&'q mut self, slices: &mut [IoSlice<'q>; MAX_SLICES]) -> (usize, bool) {
        self.segment_written();
        let (mut count, queue) = (0, &*self);
        for segment in &queue.segments {
            if count == MAX_SLICES {
                return (count, true);
            }
            slices[count] = IoSlice::new(match segment {
                Segment::Written { start, end } => &queue.written[*start..*end],
                Segment::Owned(bytes) => bytes,
                Segment::Shared { bytes, start, end } => &(**bytes).as_ref()[*start..*end],
                Segment::File { .. } | Segment::Piped { .. } => return (count, true),
            });
            count += 1;
        }
        (count, false)
    }

    /// Returns the bytes at the front that are contiguous in memory; `None` if the queue is empty or begins with a file
    /// or pipe.
    pub fn front(&self) -> Option<&[u8]> {
        let bytes = match self.segments.front() {
            None => &self.written[self.sent..],
            Some(Segment::Written { start, end }) => &self.written[*start..*end],
            Some(Segment::Owned(bytes)) => bytes,
            Some(Segment::Shared { bytes, start, end }) => &(**bytes).as_ref()[*start..*end],
            Some(Segment::File { .. } | Segment::Piped { .. }) => return None,
        };
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Moves data from the front into `room`, and returns the number of bytes moved. Used by links that have to read
    /// the data that they send, such as TLS. Reads at most `file_budget` bytes of files, and reduces the budget by
    /// the number read. Blocks the thread while a part of a file that is not in the page cache is read, as `sendfile`
    /// does.
    #[cfg(unix)]
    pub(crate) fn take_front(&mut self, room: &mut [u8], file_budget: &mut u64) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < room.len() {
            let free = &mut room[filled..];
            let taken = if let Some(front) = self.front() {
                let taken = front.len().min(free.len());
                free[..taken].copy_from_slice(&front[..taken]);
                taken
            } else if let Some((file, offset, length)) = self.file() {
                let wanted = (*length).min(*file_budget).min(free.len() as u64) as usize;
                if wanted == 0 {
                    break;
                }
                let taken = match read_resident(file, *offset, &mut free[..wanted])? {
                    Some(0) => return Err(FileError::Truncated { at: *offset }.into()),
                    Some(taken) => taken,
                    None => {
                        read_range(file, *offset, &mut free[..wanted])?;
                        wanted
                    }
                };
                *file_budget -= taken as u64;
                taken
            } else if let Some(pipe) = self.pipe() {
                pipe.read(free)?
            } else {
                break;
            };
            self.advance(taken);
            filled += taken;
        }
        Ok(filled)
    }

    /// Removes up to `max` bytes from the front and returns them in one piece, for links without a socket, such as a
    /// stream of HTTP/2. Returns no bytes if a file or pipe is at the front.
    pub fn take(&mut self, max: usize) -> Bytes {
        let taken = match self.segments.front() {
            Some(Segment::Owned(bytes)) => bytes.slice(..bytes.len().min(max)),
            _ => self.front().map_or_else(Bytes::new, |front| {
                Bytes::copy_from_slice(&front[..front.len().min(max)])
            }),
        };
        self.advance(taken.len());
        taken
    }

    /// Moves the bytes of another queue to the end of this one. The other queue must have no segments, because their
    /// data would be discarded, and must keep no values.
    #[cfg(unix)]
    pub(crate) fn append_written(&mut self, other: &mut SendQueue) {
        if let Some(bytes) = other.contiguous() {
            self.written.extend_from_slice(bytes);
        }
        other.clear();
    }

    /// Returns whether any data follows a range of a file.
    #[cfg(unix)]
    pub(crate) fn has_data_after_file(&self) -> bool {
        // The end of the queue is skipped, because no data follows it. The end consists of the unsegmented bytes if
        // there are any, otherwise of the last segment.
        let skipped = usize::from(self.segmented.max(self.sent) == self.written.len());
        let mut following = self.segments.iter().rev().skip(skipped);
        following.any(|segment| matches!(segment, Segment::File { .. }))
    }

    /// Returns the file at the front with its offset and remaining length; `None` if other data is at the front.
    #[cfg(unix)]
    pub(crate) fn file(&mut self) -> Option<(&File, &mut u64, &mut u64)> {
        match self.segments.front_mut() {
            Some(Segment::File { file, offset, length }) => Some((file, offset, length)),
            _ => None,
        }
    }

    /// Returns the pipe at the front; `None` if other data is at the front.
    pub(crate) fn pipe(&mut self) -> Option<&mut Pipe> {
        match self.segments.front_mut() {
            Some(Segment::Piped { pipe, .. }) => Some(pipe),
            _ => None,
        }
    }

    /// Removes this number of bytes from the front after they were sent.
    ///
    /// # Panics
    ///
    /// May panic if the queue contains fewer bytes.
    pub fn advance(&mut self, bytes: usize) {
        if self.segments.is_empty() {
            self.sent += bytes;
            if self.sent == self.written.len() {
                self.written.clear();
                (self.segmented, self.sent) = (0, 0);
                self.drop_kept();
            }
            return;
        }
        let mut remaining = bytes as u64;
        self.queued -= remaining;
        while let Some(segment) = self.segments.front_mut() {
            let length = segment.len();
            if length > remaining {
                segment.skip(remaining);
                return;
            }
            remaining -= length;
            self.segments.pop_front();
        }
        debug_assert_eq!(remaining, 0, "advanced by more bytes than were queued");
        if self.segmented == self.written.len() {
            self.written.clear();
            (self.segmented, self.sent) = (0, 0);
            self.drop_kept();
        } else {
            self.sent = self.segmented;
        }
    }

    /// Appends a segment for the unsent part of `written` that no segment covers, if there is such a part.
    fn segment_written(&mut self) {
        let from = self.segmented.max(self.sent);
        if from < self.written.len() {
            self.queued += (self.written.len() - from) as u64;
            self.segments.push_back(Segment::Written {
                start: from,
                end: self.written.len(),
            });
        }
        self.segmented = self.written.len();
    }
}

#[cfg(test)]
mod tests;
