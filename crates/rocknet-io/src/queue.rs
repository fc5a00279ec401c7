//! The send queue: all that waits to leave on one link, in order, as few system calls as can be.

use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

#[cfg(unix)]
use crate::file::{FileError, read_range, read_resident};
use crate::pipe::Pipe;

/// Bytes that many answers of one worker send at once; counted without atomics.
pub type SharedBytes = Rc<dyn AsRef<[u8]>>;

/// One stretch of what is to be sent.
pub enum Segment {
    /// A stretch of the queue's own buffer.
    Written {
        start: usize,
        end: usize,
    },
    Owned(Bytes),
    Shared {
        bytes: SharedBytes,
        start: usize,
        end: usize,
    },
    File {
        file: Arc<File>,
        offset: u64,
        length: u64,
    },
    /// So much of what the kernel holds.
    Piped {
        pipe: Pipe,
        length: u64,
    },
}

/// Content shorter than this is copied behind its head: one stretch of memory costs the kernel less than two.
/// On loopback the copy won up to about 4 KiB.
pub const COPY_BELOW: usize = 4096;

/// Most stretches handed to the kernel at once; far under IOV_MAX (1024), and an array of them fits the stack.
pub const MAX_SLICES: usize = 64;

/// What waits to be sent: heads and small content written into a buffer of its own, larger things by reference.
#[derive(Default)]
pub struct SendQueue {
    written: Vec<u8>,
    /// How much of `written` the segments already name.
    segmented: usize,
    /// How much of `written` has left, as long as there are no segments.
    sent: usize,
    segments: VecDeque<Segment>,
    /// Bytes in `segments`, files and pipes included.
    queued: u64,
}

/// A queue of what is written already.
impl From<Vec<u8>> for SendQueue {
    fn from(written: Vec<u8>) -> SendQueue {
        SendQueue {
            written,
            ..SendQueue::default()
        }
    }
}

impl SendQueue {
    pub fn with_capacity(bytes: usize) -> SendQueue {
        SendQueue {
            written: Vec::with_capacity(bytes),
            ..SendQueue::default()
        }
    }

    /// The buffer to append heads and small content to. Never shorten it.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.written
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.sent == self.written.len()
    }

    /// Bytes that wait, files and pipes included.
    #[inline]
    pub fn len(&self) -> u64 {
        self.queued + (self.written.len() - self.segmented.max(self.sent)) as u64
    }

    pub fn push_owned(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BELOW {
            self.written.extend_from_slice(&bytes);
        } else {
            self.segment_written();
            self.queued += bytes.len() as u64;
            self.segments.push_back(Segment::Owned(bytes));
        }
    }

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

    pub fn push_file(&mut self, file: Arc<File>, offset: u64, length: u64) {
        if length > 0 {
            self.segment_written();
            self.queued += length;
            self.segments.push_back(Segment::File { file, offset, length });
        }
    }

    /// All that is in a pipe.
    pub fn push_pipe(&mut self, pipe: Pipe) {
        let length = pipe.buffered();
        if length > 0 {
            self.segment_written();
            self.queued += length;
            self.segments.push_back(Segment::Piped { pipe, length });
        }
    }

    /// Puts bytes in front of all others: they were taken to be sent, and did not leave.
    pub fn put_back(&mut self, bytes: Vec<u8>) {
        self.segment_written();
        self.queued += bytes.len() as u64;
        self.segments.push_front(Segment::Owned(bytes.into()));
    }

    /// Forgets everything but keeps the buffer for the next answers.
    pub fn clear(&mut self) {
        self.written.clear();
        self.segments.clear();
        (self.segmented, self.sent, self.queued) = (0, 0, 0);
    }

    /// Gives back memory beyond `bytes` that an unusual answer took.
    pub fn shrink(&mut self, bytes: usize) {
        if self.is_empty() && self.written.capacity() > bytes {
            self.written = Vec::with_capacity(bytes);
            (self.segmented, self.sent) = (0, 0);
        }
    }

    /// Moves what has not left into a queue that a connection can keep; this one is empty then.
    pub fn take_rest(&mut self) -> SendQueue {
        let mut rest = SendQueue::default();
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

    /// The front of the queue, if it is plain memory alone: the common case, one `send`.
    #[inline]
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        self.segments.is_empty().then(|| &self.written[self.sent..])
    }

    /// The memory at the front as slices; true as second when something else follows them.
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

    /// The memory at the front that lies in one piece; `None` where the queue is empty or begins with a file or pipe.
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

    /// Moves what is in front into `room`, for links that have to see what they send: memory, and files as far as
    /// `file_budget` allows. What of a file is not in memory has to be waited for, as with `sendfile`.
    #[cfg(unix)]
    pub(crate) fn take_front(&mut self, room: &mut [u8], file_budget: &mut u64) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < room.len() {
            let left = &mut room[filled..];
            let taken = if let Some(front) = self.front() {
                let taken = front.len().min(left.len());
                left[..taken].copy_from_slice(&front[..taken]);
                taken
            } else if let Some((file, offset, length)) = self.file() {
                let wanted = (*length).min(*file_budget).min(left.len() as u64) as usize;
                if wanted == 0 {
                    break;
                }
                let taken = match read_resident(file, *offset, &mut left[..wanted])? {
                    Some(0) => return Err(FileError::Truncated { at: *offset }.into()),
                    Some(taken) => taken,
                    None => {
                        read_range(file, *offset, &mut left[..wanted])?;
                        wanted
                    }
                };
                *file_budget -= taken as u64;
                taken
            } else if let Some(pipe) = self.pipe() {
                pipe.read(left)?
            } else {
                break;
            };
            self.advance(taken);
            filled += taken;
        }
        Ok(filled)
    }

    /// Takes up to `max` bytes off the front, in one piece, for links within links; nothing where a file or pipe is in front.
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

    #[cfg(unix)]
    /// Puts another queue behind this one; only memory of its own buffer may be in it.
    pub(crate) fn append_written(&mut self, other: &mut SendQueue) {
        if let Some(plain) = other.plain() {
            self.written.extend_from_slice(plain);
        }
        other.clear();
    }

    #[cfg(unix)]
    /// Whether something follows a stretch of a file.
    pub(crate) fn has_data_after_file(&self) -> bool {
        let ends = usize::from(self.segmented.max(self.sent) == self.written.len());
        let mut behind = self.segments.iter().rev().skip(ends);
        behind.any(|segment| matches!(segment, Segment::File { .. }))
    }

    #[cfg(unix)]
    pub(crate) fn file(&mut self) -> Option<(&File, &mut u64, &mut u64)> {
        match self.segments.front_mut() {
            Some(Segment::File { file, offset, length }) => Some((file, offset, length)),
            _ => None,
        }
    }

    pub(crate) fn pipe(&mut self) -> Option<&mut Pipe> {
        match self.segments.front_mut() {
            Some(Segment::Piped { pipe, .. }) => Some(pipe),
            _ => None,
        }
    }

    /// Takes `bytes` off the front: they have left.
    pub fn advance(&mut self, bytes: usize) {
        if self.segments.is_empty() {
            self.sent += bytes;
            if self.sent == self.written.len() {
                self.written.clear();
                (self.segmented, self.sent) = (0, 0);
            }
            return;
        }
        let mut left = bytes as u64;
        self.queued -= left;
        while let Some(segment) = self.segments.front_mut() {
            let length = segment.len();
            if length > left {
                segment.skip(left);
                return;
            }
            left -= length;
            self.segments.pop_front();
        }
        debug_assert_eq!(left, 0, "more bytes left than were queued");
        if self.segmented == self.written.len() {
            self.written.clear();
            (self.segmented, self.sent) = (0, 0);
        } else {
            self.sent = self.segmented;
        }
    }

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

impl Segment {
    fn len(&self) -> u64 {
        match self {
            Segment::Written { start, end } | Segment::Shared { start, end, .. } => (end - start) as u64,
            Segment::Owned(bytes) => bytes.len() as u64,
            Segment::File { length, .. } | Segment::Piped { length, .. } => *length,
        }
    }

    fn skip(&mut self, bytes: u64) {
        match self {
            Segment::Written { start, .. } | Segment::Shared { start, .. } => *start += bytes as usize,
            Segment::Owned(owned) => bytes::Buf::advance(owned, bytes as usize),
            Segment::File { offset, length, .. } => {
                *offset += bytes;
                *length -= bytes;
            }
            Segment::Piped { length, .. } => *length -= bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `queue` through a pipe that takes `step` bytes at a time, moving the rest over after every `moves` steps.
    fn drain(mut queue: SendQueue, step: usize, moves: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut steps = 0;
        while !queue.is_empty() {
            let before = queue.len();
            let taken = if let Some(plain) = queue.plain() {
                let taken = plain.len().min(step);
                out.extend_from_slice(&plain[..taken]);
                taken
            } else {
                let mut slices = [IoSlice::new(&[]); MAX_SLICES];
                let (count, _) = queue.slices(&mut slices);
                let all: Vec<u8> = slices[..count].iter().flat_map(|s| s.iter().copied()).collect();
                let taken = all.len().min(step);
                out.extend_from_slice(&all[..taken]);
                taken
            };
            assert!(taken > 0);
            queue.advance(taken);
            assert_eq!(queue.len(), before - taken as u64);
            steps += 1;
            if steps % moves == 0 {
                queue = queue.take_rest();
            }
        }
        assert_eq!(queue.len(), 0);
        out
    }

    #[test]
    fn keeps_order_whatever_the_steps() {
        let large: SharedBytes = Rc::new(vec![b's'; COPY_BELOW + 10]);
        for step in [1, 7, 4096, 1 << 20] {
            for moves in [1, 3, usize::MAX] {
                let mut queue = SendQueue::default();
                let mut expected = Vec::new();
                for round in 0..5u8 {
                    queue.buffer().extend_from_slice(&[b'a' + round; 50]);
                    expected.extend_from_slice(&[b'a' + round; 50]);
                    queue.push_shared(&large, 5, COPY_BELOW + 5);
                    expected.extend_from_slice(&[b's'; COPY_BELOW]);
                    queue.push_owned(Bytes::from(vec![b'0' + round; COPY_BELOW * 2]));
                    expected.extend_from_slice(&vec![b'0' + round; COPY_BELOW * 2]);
                    queue.push_owned(Bytes::from_static(b"small"));
                    expected.extend_from_slice(b"small");
                }
                assert_eq!(queue.len(), expected.len() as u64);
                if step * 2000 > expected.len() {
                    assert!(drain(queue, step, moves) == expected, "step {step} moves {moves}");
                }
            }
        }
    }

    #[test]
    fn appending_while_sending_keeps_order() {
        let mut queue = SendQueue::default();
        queue.buffer().extend_from_slice(b"hello ");
        queue.advance(3);
        queue.push_owned(Bytes::from(vec![b'x'; COPY_BELOW]));
        queue.buffer().extend_from_slice(b"end");
        let mut expected = b"lo ".to_vec();
        expected.extend_from_slice(&[b'x'; COPY_BELOW]);
        expected.extend_from_slice(b"end");
        assert!(drain(queue, 100, usize::MAX) == expected);
    }

    #[cfg(unix)]
    #[test]
    fn tells_what_stands_behind_a_file() {
        let file = Arc::new(File::open("/dev/null").unwrap());
        // H: a head, F: a stretch of a file, M: memory by reference.
        for (parts, expected) in [
            ("", false),
            ("H", false),
            ("HF", false),
            ("HM", false),
            ("HFH", true),
            ("FF", true),
            ("FM", true),
            ("HFHM", true),
            ("MHF", false),
        ] {
            let mut queue = SendQueue::default();
            for part in parts.bytes() {
                match part {
                    b'H' => queue.buffer().extend_from_slice(b"head"),
                    b'F' => queue.push_file(Arc::clone(&file), 0, 10),
                    _ => queue.push_owned(Bytes::from(vec![b'm'; COPY_BELOW])),
                }
            }
            assert_eq!(queue.has_data_after_file(), expected, "{parts}");
        }
    }
}
