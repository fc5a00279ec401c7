//! Receives the body of a response that is stored, while it is sent to a client.
//!
//! A task of the worker receives the body at the speed of the upstream, so a slow client delays no other client, and
//! the body is complete even if the client has left. A body that becomes larger than the limit is not stored: its rest
//! is received at the speed of the client, as without a cache. After the client has left, the rest must arrive within a
//! limited time, because a stream may have no end.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use rocknet_handler::response::{FieldList, Stream};
use rocknet_io::runtime;
use rocknet_io::wheel::Deadline;

/// Divisor of the capacity of the memory store. All bodies in progress together may use this part, a quarter, in
/// addition to the store.
pub(crate) const FILL_SHARE: u64 = 4;

/// Limits of a fill: of receiving one body.
pub struct FillLimits {
    /// Share of the site in the memory for all bodies in progress.
    pub budget: Arc<SiteFills>,
    /// Maximum size of the body in bytes.
    pub size: u64,
    /// Maximum size of all bodies in progress of all sites, in bytes.
    pub all: u64,
    /// Deadline for the next piece.
    pub deadline: Deadline,
    /// Deadline for the whole rest of the body after the client has left.
    pub abandonment: Deadline,
    /// Maximum number of ticks without a piece, and for the rest of a body whose client has left.
    pub ticks: u32,
}

/// Limit on the memory of all bodies in progress, so that many slow clients cannot fill the memory.
#[derive(Debug, Default)]
pub struct FillBudget {
    /// Bytes in use.
    used: AtomicU64,
}

impl FillBudget {
    /// Reserves memory. Returns false if more than `limit` bytes would be in use.
    fn reserve(&self, size: u64, limit: u64) -> bool {
        let reserved = self.used.fetch_add(size, Ordering::Relaxed);
        if reserved + size <= limit {
            return true;
        }
        self.release(size);
        false
    }

    fn release(&self, size: u64) {
        self.used.fetch_sub(size, Ordering::Relaxed);
    }
}

/// A site may use this many times the memory that all sites leave free, so that slow responses of one site leave a part
/// to the others: one site at most 3/4, two sites 3/7 each.
const FREE_FACTOR: u64 = 3;

/// Share of one site in a [`FillBudget`].
#[derive(Debug)]
pub struct SiteFills {
    all: Arc<FillBudget>,
    /// Bytes in use by the site.
    used: AtomicU64,
}

impl SiteFills {
    /// Creates the share of a site without bodies in progress.
    pub fn new(all: &Arc<FillBudget>) -> SiteFills {
        SiteFills {
            all: Arc::clone(all),
            used: AtomicU64::new(0),
        }
    }

    /// Reserves memory. Returns false if all sites would use more than `limit` bytes, or this site too many of them.
    fn reserve(&self, size: u64, limit: u64) -> bool {
        if !self.all.reserve(size, limit) {
            return false;
        }
        let used = self.used.fetch_add(size, Ordering::Relaxed) + size;
        let free = limit.saturating_sub(self.all.used.load(Ordering::Relaxed));
        if used <= free.saturating_mul(FREE_FACTOR) {
            return true;
        }
        self.release(size);
        false
    }

    fn release(&self, size: u64) {
        self.used.fetch_sub(size, Ordering::Relaxed);
        self.all.release(size);
    }
}

/// Memory of a body that is read from disk, released when the value is dropped.
pub(crate) struct Reserved {
    budget: Arc<FillBudget>,
    size: u64,
}

impl Reserved {
    /// Reserves memory; `None` if more than `limit` bytes would be in use.
    pub fn new(budget: &Arc<FillBudget>, size: u64, limit: u64) -> Option<Reserved> {
        budget.reserve(size, limit).then(|| Reserved {
            budget: Arc::clone(budget),
            size,
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.release(self.size);
    }
}

/// Body in progress.
struct Fill {
    budget: Arc<SiteFills>,
    /// Number of bytes that are reserved.
    reserved: u64,
    /// Pieces so far.
    pieces: Vec<Bytes>,
    /// Number of pieces that were sent.
    next: usize,
    /// Number of bytes that were sent.
    sent: usize,
    state: FillState,
    trailers: Option<FieldList>,
    /// The task of the client.
    reader: Option<Waker>,
    /// The task that receives, until the client has left.
    receiver: Option<Waker>,
    /// True once the client has left.
    has_left: bool,
}

enum FillState {
    Filling,
    Complete,
    Failed(Option<io::Error>),
    /// The body is too large, or no memory is left for it. Holds the rest until the reader takes it over.
    TooLarge(Option<Box<dyn Stream>>),
}

/// Starts to receive a body. `done` is called with the whole body, or with `None` if it is not stored.
pub fn start(
    source: Box<dyn Stream>,
    limits: FillLimits,
    done: impl FnOnce(Option<Bytes>) + 'static,
) -> impl Stream + 'static {
    let length = source.length();
    let fill = Rc::new(RefCell::new(Fill {
        budget: Arc::clone(&limits.budget),
        reserved: 0,
        pieces: Vec::new(),
        next: 0,
        sent: 0,
        state: FillState::Filling,
        trailers: None,
        reader: None,
        receiver: None,
        has_left: false,
    }));
    runtime::spawn(receive(Rc::clone(&fill), source, limits, done));
    FillReader {
        fill,
        rest: None,
        length,
    }
}

/// Receives the body until it ends or is too large.
async fn receive(
    fill: Rc<RefCell<Fill>>,
    mut source: Box<dyn Stream>,
    limits: FillLimits,
    done: impl FnOnce(Option<Bytes>),
) {
    let mut size = 0;
    let mut is_abandoned = false;
    let state = loop {
        match next_piece(&mut *source, &limits, &fill, &mut is_abandoned).await {
            Some(Ok(piece)) => {
                let length = piece.len() as u64;
                size += length;
                let mut filling = fill.borrow_mut();
                filling.pieces.push(piece);
                let has_memory = limits.budget.reserve(length, limits.all);
                if has_memory {
                    filling.reserved += length;
                }
                if size > limits.size || !has_memory {
                    break FillState::TooLarge(Some(source));
                }
                filling.wake();
            }
            Some(Err(error)) => break FillState::Failed(Some(error)),
            None => {
                fill.borrow_mut().trailers = source.trailers();
                break FillState::Complete;
            }
        }
    };
    let whole = matches!(state, FillState::Complete).then(|| concat(&fill.borrow().pieces, size));
    let mut filling = fill.borrow_mut();
    if let Some(whole) = &whole {
        // The pieces that were not sent yet become a part of the whole, so that the body is in memory once. If all were
        // sent, that part is empty, and `next` skips it.
        filling.pieces = vec![whole.slice(filling.sent..)];
        filling.next = usize::from(filling.sent == whole.len());
    }
    filling.state = state;
    filling.wake();
    drop(filling);
    done(whole);
}

/// Returns the next piece, or an error after a deadline. `is_abandoned`: true once the deadline for the rest is set.
async fn next_piece(
    source: &mut dyn Stream,
    limits: &FillLimits,
    fill: &RefCell<Fill>,
    is_abandoned: &mut bool,
) -> Option<io::Result<Bytes>> {
    limits.deadline.set(limits.ticks);
    let mut piece = source.next();
    poll_fn(|context| {
        let mut filling = fill.borrow_mut();
        if filling.has_left && !*is_abandoned {
            *is_abandoned = true;
            limits.abandonment.set(limits.ticks);
        } else if !filling.has_left {
            filling.receiver = Some(context.waker().clone());
        }
        drop(filling);
        let is_late = *is_abandoned && limits.abandonment.poll_past(context.waker());
        match piece.as_mut().poll(context) {
            Poll::Ready(piece) if !is_late || piece.is_none() => Poll::Ready(piece),
            Poll::Pending if !is_late && !limits.deadline.poll_past(context.waker()) => Poll::Pending,
            _ => Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into()))),
        }
    })
    .await
}

/// Joins the pieces; copies only if there are several.
fn concat(pieces: &[Bytes], size: u64) -> Bytes {
    if let [piece] = pieces {
        return piece.clone();
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(size).unwrap_or_default());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.budget.release(self.reserved);
    }
}

impl Fill {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The body as the client receives it.
struct FillReader {
    fill: Rc<RefCell<Fill>>,
    /// The rest of a body that is too large.
    rest: Option<Box<dyn Stream>>,
    length: Option<u64>,
}

impl FillReader {
    /// Returns the next received piece, or sets `rest`.
    fn poll_received(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut fill = self.fill.borrow_mut();
        if let Some(piece) = fill.pieces.get(fill.next).cloned() {
            fill.next += 1;
            fill.sent += piece.len();
            return Poll::Ready(Some(Ok(piece)));
        }
        match &mut fill.state {
            FillState::Filling => {
                fill.reader = Some(context.waker().clone());
                Poll::Pending
            }
            FillState::Complete => Poll::Ready(None),
            FillState::Failed(error) => {
                let error = error.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
                Poll::Ready(Some(Err(error)))
            }
            FillState::TooLarge(rest) => {
                self.rest = rest.take();
                fill.pieces = Vec::new();
                // The client receives the rest without the store.
                let reserved = std::mem::take(&mut fill.reserved);
                fill.budget.release(reserved);
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for FillReader {
    fn drop(&mut self) {
        let receiver = {
            let mut fill = self.fill.borrow_mut();
            fill.has_left = true;
            fill.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl Stream for FillReader {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            if self.rest.is_none() {
                let received = poll_fn(|context| self.poll_received(context)).await;
                if received.is_some() || self.rest.is_none() {
                    return received;
                }
            }
            self.rest.as_mut()?.next().await
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        match &mut self.rest {
            Some(rest) => rest.trailers(),
            None => self.fill.borrow_mut().trailers.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_limits_all_bodies_together() {
        let budget = FillBudget::default();
        assert!(budget.reserve(6, 10) && budget.reserve(4, 10));
        assert!(!budget.reserve(1, 10));
        budget.release(4);
        assert!(!budget.reserve(5, 10) && budget.reserve(4, 10));
    }

    #[test]
    fn a_site_leaves_memory_to_the_others() {
        let budget = Arc::new(FillBudget::default());
        let (slow, other) = (SiteFills::new(&budget), SiteFills::new(&budget));
        let reserved = (0..100).take_while(|_| slow.reserve(1, 100)).count();
        assert_eq!(reserved, 75);
        let of_other = (0..100).take_while(|_| other.reserve(1, 100)).count();
        assert_eq!(of_other, 18);
        // Memory that the slow site gives back is there for both.
        slow.release(75);
        assert!(other.reserve(20, 100) && slow.reserve(20, 100));
        assert_eq!(budget.used.load(Ordering::Relaxed), 58);
    }
}
