//! A filter that limits the bandwidth of responses: `bandwidth` of a limit.
//!
//! The body of a limited response becomes a stream whose pieces are as large as the bandwidth permits since the last
//! one. The stream waits for ticks of the timer wheel, so a response causes at most one wake-up for each tick.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocknet_blocking::Pool;
use rocknet_config::model::{BandwidthLimit, Priority};
use rocknet_io::file;
use rocknet_io::wheel::{Deadline, Wheel};

use crate::filter::{DeferredFilter, Filter, FilterContext, Phase};
use crate::response::{Body, FieldList, FilePart, Part, Response, Stream};

/// Maximum size of one piece, in bytes. A piece of a file is read into memory.
const MAX_PIECE: u64 = 128 * 1024;

/// Time whose bandwidth a response may have in reserve. A client that was slow for longer does not catch up.
const RESERVE: Duration = Duration::from_secs(1);

/// Limits the bandwidth of responses of routes with such a limit.
pub struct Bandwidth;

impl Filter for Bandwidth {
    fn phase(&self) -> Phase {
        Phase::Bandwidth
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        let limit = context.route.bandwidth?;
        let is_short = response.body.length().is_some_and(|length| length <= limit.after);
        if !is_short && let Some(sources) = sources(&mut response.body) {
            response.body = Body::Stream(Box::new(LimitedBody {
                length: sources.iter().map(Source::length).sum(),
                sources,
                pace: Pace::new(limit, Instant::now()),
                deadline: context.services.wheel.deadline(),
                wheel: Rc::clone(&context.services.wheel),
                pool: context.services.pool.clone(),
                priority: context.route.priority,
            }));
        }
        None
    }
}

/// Takes the parts of a body; `None` if it has no bytes that are sent.
fn sources(body: &mut Body) -> Option<VecDeque<Source>> {
    let part = |part| match part {
        Part::Bytes(bytes) => Source::Bytes(bytes),
        Part::File(part) => Source::File(part),
    };
    Some(match std::mem::take(body) {
        Body::Bytes(bytes) => VecDeque::from([Source::Bytes(bytes)]),
        Body::File(file) => VecDeque::from([Source::File(file)]),
        Body::Parts(parts) => parts.into_iter().map(part).collect(),
        Body::Stream(stream) => VecDeque::from([Source::Stream(stream, Bytes::new())]),
        other @ (Body::Empty | Body::Tunnel(_) | Body::Abort) => {
            *body = other;
            return None;
        }
    })
}

/// Part of a body.
enum Source {
    Bytes(Bytes),
    File(FilePart),
    /// A stream, and the rest of its last piece.
    Stream(Box<dyn Stream>, Bytes),
}

impl Source {
    fn length(&self) -> Option<u64> {
        match self {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::File(part) => Some(part.length),
            Source::Stream(stream, _) => stream.length(),
        }
    }
}

/// Number of bytes that may be sent at a time.
#[derive(Debug)]
struct Pace {
    /// Bytes per second.
    rate: u64,
    /// Bytes that may be sent now.
    allowance: u64,
    /// Time up to which `allowance` has the bandwidth.
    at: Instant,
}

impl Pace {
    fn new(limit: BandwidthLimit, now: Instant) -> Pace {
        Pace {
            rate: limit.rate,
            // The first bytes leave at once.
            allowance: limit.after.saturating_add(limit.rate / 4),
            at: now,
        }
    }

    /// Returns the number of bytes that may be sent at a time: at most that of one piece.
    fn available(&mut self, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.at);
        self.at = now;
        let bytes = |time: Duration| u64::try_from(u128::from(self.rate) * time.as_nanos() / 1_000_000_000);
        let earned = bytes(passed.min(RESERVE)).unwrap_or(u64::MAX);
        // The reserve does not take away what `after` permits.
        let most = self.allowance.max(bytes(RESERVE).unwrap_or(u64::MAX));
        self.allowance = self.allowance.saturating_add(earned).min(most);
        self.allowance.min(MAX_PIECE)
    }
}

/// Body that is sent with a limited bandwidth.
struct LimitedBody {
    sources: VecDeque<Source>,
    length: Option<u64>,
    pace: Pace,
    deadline: Deadline,
    wheel: Rc<Wheel>,
    pool: Pool,
    priority: Priority,
}

impl Stream for LimitedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async move {
            loop {
                let available = self.available().await;
                let piece = match self.sources.front_mut()? {
                    Source::Bytes(bytes) if bytes.is_empty() => None,
                    Source::Bytes(bytes) => Some(Ok(take(bytes, available))),
                    Source::File(part) if part.length == 0 => None,
                    Source::File(part) => Some(read(part, available, &self.pool, self.priority).await),
                    Source::Stream(stream, rest) => {
                        if rest.is_empty() {
                            match stream.next().await {
                                Some(Ok(piece)) => *rest = piece,
                                Some(Err(error)) => return Some(Err(error)),
                                // The trailers are taken from the stream after its end.
                                None => return None,
                            }
                        }
                        Some(Ok(take(rest, available)))
                    }
                };
                match piece {
                    Some(Ok(piece)) => {
                        self.pace.allowance -= (piece.len() as u64).min(self.pace.allowance);
                        return Some(Ok(piece));
                    }
                    Some(Err(error)) => return Some(Err(error)),
                    None => drop(self.sources.pop_front()),
                }
            }
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&mut self) -> Option<FieldList> {
        match self.sources.front_mut()? {
            Source::Stream(stream, _) => stream.trailers(),
            Source::Bytes(_) | Source::File(_) => None,
        }
    }
}

impl LimitedBody {
    /// Waits until bytes may be sent, and returns their number.
    async fn available(&mut self) -> u64 {
        loop {
            let available = self.pace.available(Instant::now());
            // The bandwidth of half a tick, so that a timer that is a little early causes no small pieces.
            let least = bandwidth_of(self.pace.rate, self.wheel.tick_length() / 2);
            if available >= least.clamp(1, MAX_PIECE) {
                return available;
            }
            self.deadline.set(1);
            poll_fn(|task| match self.deadline.poll_past(task.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }
}

/// Returns the number of bytes of a bandwidth in a short time.
fn bandwidth_of(rate: u64, time: Duration) -> u64 {
    rate.saturating_mul(time.as_millis() as u64) / 1_000
}

/// Takes at most `max` bytes from the beginning.
fn take(bytes: &mut Bytes, max: u64) -> Bytes {
    let length = usize::try_from(max).map_or(bytes.len(), |max| max.min(bytes.len()));
    bytes.split_to(length)
}

/// Reads at most `max` bytes from the beginning of a part, in the pool.
async fn read(part: &mut FilePart, max: u64, pool: &Pool, priority: Priority) -> io::Result<Bytes> {
    let length = part.length.min(max);
    let (open_file, offset) = (part.file.clone(), part.offset);
    let job = pool.spawn(priority, move || {
        let mut buffer = vec![0; length as usize];
        file::read_range(&open_file.file, offset, &mut buffer).map(|()| Bytes::from(buffer))
    });
    let read = job.await.map_err(|error| io::Error::other(error.to_string()))?;
    part.offset += length;
    part.length -= length;
    read.map_err(|error| io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: u64, after: u64) -> BandwidthLimit {
        BandwidthLimit { rate, after }
    }

    #[test]
    fn bytes_become_available_at_the_rate() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(limit(1_000, 500), start);
        assert_eq!(pace.available(start), 750);
        pace.allowance = 0;
        assert_eq!(pace.available(at(0)), 0);
        assert_eq!(pace.available(at(100)), 100);
        pace.allowance -= 100;
        assert_eq!(pace.available(at(350)), 250);
        // A client that was slow gets the bandwidth of one second at once.
        assert_eq!(pace.available(at(9_000)), 1_000);
        // A clock that goes back earns nothing.
        assert_eq!(pace.available(at(8_000)), 1_000);
    }

    #[test]
    fn what_is_free_at_the_beginning_is_kept() {
        let start = Instant::now();
        let mut pace = Pace::new(limit(1_000, 100_000), start);
        assert_eq!(pace.available(start + Duration::from_secs(5)), 100_250);
        let mut pace = Pace::new(limit(u64::MAX, 0), start);
        assert_eq!(pace.available(start + Duration::from_secs(5)), MAX_PIECE);
    }

    #[test]
    fn parts_are_taken_in_order_and_other_bodies_stay() {
        let parts = || Body::Parts(vec![Part::Bytes("ab".into()), Part::Bytes("cde".into())]);
        let taken = sources(&mut parts()).unwrap();
        assert_eq!(taken.iter().map(Source::length).sum::<Option<u64>>(), Some(5));
        let mut body = Body::Abort;
        assert!(sources(&mut body).is_none() && matches!(body, Body::Abort));
        let mut bytes = Bytes::from_static(b"abc");
        assert_eq!((&*take(&mut bytes, 2), &*take(&mut bytes, 9)), (&b"ab"[..], &b"c"[..]));
    }
}
