//! In-memory link for tests: its input is scripted, its output is recorded, and it fails where the script contains an
//! error.
//!
//! The link never blocks the thread and reads no clock.

use std::cell::{Ref, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};

#[cfg(unix)]
use crate::file::read_range;
use crate::link::{Link, Received};
use crate::pipe::Pipe;
use crate::queue::{MAX_SLICES, SendQueue};

/// Maximum number of bytes that one write takes from a file or pipe in the queue. It bounds the memory of one write.
const READ_STEP: usize = 16 * 1024;

/// End of the link that the code under test uses.
pub struct SimLink(Rc<RefCell<SimState>>);

/// End of the link that the test uses to send, receive and inject errors.
#[derive(Clone)]
pub struct SimPeer(Rc<RefCell<SimState>>);

/// State that both ends share.
#[derive(Default)]
struct SimState {
    /// Script of what the code under test receives.
    incoming: VecDeque<ScriptedInput>,
    /// Bytes that the peer has received.
    received: Vec<u8>,
    /// Number of writes so far. On a socket, each would be a system call.
    write_count: usize,
    /// Number of bytes that the peer still accepts; `None` for no limit.
    window: Option<usize>,
    /// Maximum bytes of one write; `None` for no limit.
    max_write: Option<usize>,
    /// Error of all further sends.
    send_error: Option<io::ErrorKind>,
    /// Argument of the last call of `limit_unsent`.
    unsent_limit: Option<u32>,
    /// Number of calls of `limit_unsent`.
    unsent_limit_count: usize,
    /// True if the code under test has shut down its sending side or dropped the link.
    shut_down: bool,
    /// Number of bytes that `in_flight` returns.
    unacknowledged: u64,
    /// True if the code under test has reset the link.
    reset: bool,
    /// True if the code under test has dropped the link.
    is_dropped: bool,
    /// Waker of the task that waits to receive.
    receiving: Option<Waker>,
    /// Waker of the task that waits to send.
    sending: Option<Waker>,
}

/// Input in the script, in the order of the polls that return it.
enum ScriptedInput {
    /// Bytes that are copied into the caller's buffer, as far as the buffer has room.
    Borrowed(Bytes),
    /// Bytes in a buffer of the link.
    Owned(Bytes),
    /// No data for one poll. This poll wakes its task, so that the task polls again.
    Pause,
    /// An error for one poll.
    Fail(io::ErrorKind),
    /// End of the stream, for this poll and every later one.
    End,
}

/// Returns both ends of a new link.
pub fn pair() -> (SimLink, SimPeer) {
    let state = Rc::new(RefCell::new(SimState::default()));
    (SimLink(Rc::clone(&state)), SimPeer(state))
}

impl SimPeer {
    /// Sends bytes, which arrive in the caller's buffer. One poll returns as many of them as fit, and no bytes of the
    /// next send. Empty `bytes` make one poll return the end of the stream.
    pub fn send(&self, bytes: &[u8]) -> &SimPeer {
        self.script(ScriptedInput::Borrowed(Bytes::copy_from_slice(bytes)))
    }

    /// Sends bytes, which arrive in a buffer of the link: one poll returns all of them, regardless of the size of the
    /// caller's buffer.
    pub fn send_owned(&self, bytes: &[u8]) -> &SimPeer {
        self.script(ScriptedInput::Owned(Bytes::copy_from_slice(bytes)))
    }

    /// Makes one poll pending. Input that follows is available in the next poll.
    pub fn pause(&self) -> &SimPeer {
        self.script(ScriptedInput::Pause)
    }

    /// Ends the sending side of the peer, which still receives.
    pub fn end(&self) -> &SimPeer {
        self.script(ScriptedInput::End)
    }

    /// Makes one poll fail after everything sent so far. Input that follows is available in the next poll.
    pub fn fail_recv(&self, error: io::ErrorKind) -> &SimPeer {
        self.script(ScriptedInput::Fail(error))
    }

    /// Makes sending fail from now on.
    pub fn fail_send(&self, error: io::ErrorKind) -> &SimPeer {
        self.0.borrow_mut().send_error = Some(error);
        self.wake_sender()
    }

    /// Accepts `bytes` more bytes, and then blocks the sender until the next call of `accept` or `accept_all`.
    pub fn accept(&self, bytes: usize) -> &SimPeer {
        self.0.borrow_mut().window = Some(bytes);
        self.wake_sender()
    }

    /// Accepts everything from now on.
    pub fn accept_all(&self) -> &SimPeer {
        self.0.borrow_mut().window = None;
        self.wake_sender()
    }

    /// Sets the number of bytes that count as sent but not acknowledged.
    pub fn set_unacknowledged(&self, bytes: u64) -> &SimPeer {
        self.0.borrow_mut().unacknowledged = bytes;
        self
    }

    /// Limits each write to `bytes` (at least 1), to produce short writes.
    pub fn limit_writes(&self, bytes: usize) -> &SimPeer {
        self.0.borrow_mut().max_write = Some(bytes.max(1));
        self
    }

    /// Returns everything received so far.
    pub fn received(&self) -> Ref<'_, [u8]> {
        Ref::map(self.0.borrow(), |state| &state.received[..])
    }

    /// Returns the number of writes received so far. On a socket, each would be a system call.
    pub fn write_count(&self) -> usize {
        self.0.borrow().write_count
    }

    /// Returns everything received so far and removes it.
    pub fn take_received(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().received)
    }

    /// Returns the number of bytes sent that the code under test has not received.
    pub fn unread(&self) -> usize {
        let length = |input: &ScriptedInput| match input {
            ScriptedInput::Borrowed(bytes) | ScriptedInput::Owned(bytes) => bytes.len(),
            ScriptedInput::Pause | ScriptedInput::Fail(_) | ScriptedInput::End => 0,
        };
        self.0.borrow().incoming.iter().map(length).sum()
    }

    /// Returns the last argument with which the code under test called `limit_unsent` (`None` also if it never did),
    /// and the number of these calls, including those with `None`.
    pub fn unsent_limit(&self) -> (Option<u32>, usize) {
        let state = self.0.borrow();
        (state.unsent_limit, state.unsent_limit_count)
    }

    /// Returns whether the code under test has ended its sending side or dropped the link.
    pub fn is_shut_down(&self) -> bool {
        self.0.borrow().shut_down
    }

    /// Returns whether the code under test has reset the link.
    pub fn is_reset(&self) -> bool {
        self.0.borrow().reset
    }

    /// Returns whether the code under test has dropped the link.
    pub fn is_dropped(&self) -> bool {
        self.0.borrow().is_dropped
    }

    /// Appends input to the script, and wakes the task that waits to receive.
    fn script(&self, input: ScriptedInput) -> &SimPeer {
        self.0.borrow_mut().incoming.push_back(input);
        self.wake(|state| state.receiving.take())
    }

    /// Wakes the task that waits to send.
    fn wake_sender(&self) -> &SimPeer {
        self.wake(|state| state.sending.take())
    }

    /// Wakes the task whose waker `take` removes from the state, if any. The state is not borrowed during the wake,
    /// because a waker may poll immediately.
    fn wake(&self, take: impl FnOnce(&mut SimState) -> Option<Waker>) -> &SimPeer {
        let waker = take(&mut self.0.borrow_mut());
        if let Some(waker) = waker {
            waker.wake();
        }
        self
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        state.shut_down = true;
        state.is_dropped = true;
    }
}

impl Link for SimLink {
    fn poll_recv<'b>(&mut self, context: &mut Context<'_>, buffer: &'b mut [u8]) -> Poll<io::Result<Received<'b>>> {
        let mut state = self.0.borrow_mut();
        match state.incoming.pop_front() {
            None => {
                state.receiving = Some(context.waker().clone());
                Poll::Pending
            }
            Some(ScriptedInput::Pause) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Some(ScriptedInput::Borrowed(mut bytes)) => {
                let part = bytes.split_to(bytes.len().min(buffer.len()));
                if !bytes.is_empty() {
                    state.incoming.push_front(ScriptedInput::Borrowed(bytes));
                }
                let borrowed = &mut buffer[..part.len()];
                borrowed.copy_from_slice(&part);
                Poll::Ready(Ok(Received::Borrowed(borrowed)))
            }
            Some(ScriptedInput::Owned(bytes)) => Poll::Ready(Ok(Received::Owned(bytes))),
            Some(ScriptedInput::Fail(error)) => Poll::Ready(Err(error.into())),
            Some(ScriptedInput::End) => {
                // Every later receive returns the end too.
                state.incoming.push_front(ScriptedInput::End);
                Poll::Ready(Ok(Received::Borrowed(&buffer[..0])))
            }
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, queue: &mut SendQueue) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        while !queue.is_empty() {
            if let Some(error) = state.send_error {
                return Poll::Ready(Err(error.into()));
            }
            let room = state
                .window
                .unwrap_or(usize::MAX)
                .min(state.max_write.unwrap_or(usize::MAX));
            if room == 0 {
                state.sending = Some(context.waker().clone());
                return Poll::Pending;
            }
            let sent = copy_front(queue, room, &mut state.received)?;
            state.write_count += 1;
            queue.advance(sent);
            if let Some(window) = &mut state.window {
                *window -= sent;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn fill_pipe(&mut self, _: &mut Context<'_>, pipe: &mut Pipe) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        let Some(ScriptedInput::Borrowed(bytes) | ScriptedInput::Owned(bytes)) = state.incoming.front_mut() else {
            return Ok(0);
        };
        let moved = pipe.write(bytes)?;
        bytes.advance(moved);
        if bytes.is_empty() {
            state.incoming.pop_front();
        }
        Ok(moved)
    }

    fn shut_down(&mut self) -> io::Result<()> {
        self.0.borrow_mut().shut_down = true;
        Ok(())
    }

    fn reset(&mut self) {
        self.0.borrow_mut().reset = true;
    }

    fn limit_unsent(&mut self, bytes: Option<u32>) {
        let mut state = self.0.borrow_mut();
        state.unsent_limit = bytes;
        state.unsent_limit_count += 1;
    }

    fn in_flight(&self) -> u64 {
        self.0.borrow().unacknowledged
    }

    fn is_zero_copy(&self) -> bool {
        true
    }
}

/// Simulates one system call: copies at most `room` bytes from the front of the queue to `out`, and returns the number
/// of bytes copied. The queue is not advanced.
fn copy_front(queue: &mut SendQueue, room: usize, out: &mut Vec<u8>) -> io::Result<usize> {
    let before = out.len();
    if let Some(bytes) = queue.contiguous() {
        out.extend_from_slice(&bytes[..bytes.len().min(room)]);
        return Ok(out.len() - before);
    }
    #[cfg(unix)]
    if let Some((file, offset, length)) = queue.file() {
        let wanted = usize::try_from(*length).unwrap_or(usize::MAX).min(room).min(READ_STEP);
        let mut bytes = vec![0; wanted];
        read_range(file, *offset, &mut bytes)?;
        out.extend_from_slice(&bytes);
        return Ok(wanted);
    }
    if let Some(pipe) = queue.pipe() {
        let mut bytes = vec![0; room.min(READ_STEP)];
        let read = pipe.read(&mut bytes)?;
        out.extend_from_slice(&bytes[..read]);
        return Ok(read);
    }
    let mut slices = [IoSlice::new(&[]); MAX_SLICES];
    let (count, _) = queue.slices(&mut slices);
    for slice in &slices[..count] {
        let remaining = room - (out.len() - before);
        out.extend_from_slice(&slice[..slice.len().min(remaining)]);
    }
    Ok(out.len() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a queue with data in its buffer and by reference, and the bytes of that data in order.
    fn queue() -> (SendQueue, Vec<u8>) {
        let mut queue = SendQueue::default();
        let mut expected = b"head".to_vec();
        queue.buffer().extend_from_slice(b"head");
        queue.push_owned(Bytes::from(vec![b'x'; crate::queue::COPY_BELOW + 3]));
        expected.extend_from_slice(&vec![b'x'; crate::queue::COPY_BELOW + 3]);
        queue.push_owned(Bytes::from_static(b"tail"));
        expected.extend_from_slice(b"tail");
        (queue, expected)
    }

    #[test]
    fn short_writes_deliver_everything_in_order() {
        let mut context = Context::from_waker(Waker::noop());
        for (max_write, window) in [(usize::MAX, 0), (1, 3), (7, 4096), (4096, 1)] {
            let (mut link, peer) = pair();
            let (mut queue, expected) = queue();
            peer.limit_writes(max_write).accept(window);
            assert!(link.poll_send(&mut context, &mut queue).is_pending());
            assert_eq!(*peer.received(), expected[..window]);
            peer.accept_all();
            assert!(matches!(link.poll_send(&mut context, &mut queue), Poll::Ready(Ok(()))));
            assert!(
                *peer.received() == expected[..],
                "max write {max_write} window {window}"
            );
        }
    }

    #[test]
    fn input_arrives_in_the_scripted_order() {
        let mut context = Context::from_waker(Waker::noop());
        let (mut link, peer) = pair();
        peer.send(b"abcdef")
            .send_owned(b"ghi")
            .pause()
            .send(b"j")
            .fail_recv(io::ErrorKind::ConnectionReset)
            .end();
        let mut seen = Vec::new();
        for _ in 0..8 {
            let mut buffer = [0; 4];
            seen.push(match link.poll_recv(&mut context, &mut buffer) {
                Poll::Pending => "pending".to_owned(),
                Poll::Ready(Err(error)) => error.kind().to_string(),
                Poll::Ready(Ok(Received::Borrowed(bytes))) => format!("borrowed {}", String::from_utf8_lossy(bytes)),
                Poll::Ready(Ok(Received::Owned(bytes))) => format!("owned {}", String::from_utf8_lossy(&bytes)),
            });
        }
        let expected = [
            "borrowed abcd",
            "borrowed ef",
            "owned ghi",
            "pending",
            "borrowed j",
            "connection reset",
            "borrowed ",
            "borrowed ",
        ];
        assert_eq!(seen, expected);
        assert!(!peer.is_shut_down());
        drop(link);
        assert!(peer.is_shut_down() && peer.is_dropped());
    }
}
