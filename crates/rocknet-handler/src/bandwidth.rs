//! A filter that limits the bandwidth of responses (`limit.bandwidth` of the configuration).
//!
//! The body of a limited response becomes a stream. Each piece has at most the bandwidth that has accumulated since the
//! previous one. The stream waits for ticks of the timer wheel, so a response causes at most one wake-up for each
//! tick. A limit applies to each response separately (`Pace`), or to all responses that share it ([`SharedBandwidth`]).

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use rocknet_blocking::Pool;
use rocknet_config::model::{BandwidthLimit, Priority};
use rocknet_config::template::NoValues;
use rocknet_io::file;
use rocknet_io::wheel::{Deadline, Wheel};

use crate::clock::TimeSource;
use crate::filter::{DeferredFilter, Filter, FilterContext, Phase};
use crate::response::{Body, FieldList, FilePart, Part, Response, Stream};
use crate::shared_bandwidth::{BandwidthPart, SharedBandwidth};

/// Maximum size of one piece, in bytes. A piece of a file is read into memory.
const MAX_PIECE: u64 = 128 * 1024;

/// Maximum time whose unused bandwidth is saved for later. A client that was slow for longer does not catch up.
const RESERVE: Duration = Duration::from_secs(1);

/// Limits the bandwidth of responses of routes with such a limit.
pub struct Bandwidth;

impl Filter for Bandwidth {
    fn phase(&self) -> Phase {
        Phase::Bandwidth
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        let (services, route) = (context.services, context.bandwidth_route);
        if !route.limits_bandwidth() || matches!(response.body, Body::Empty | Body::Tunnel(_) | Body::Abort) {
            return None;
        }
        let now = services.clock.precise_uptime_ns();
        let length = response.body.length();
        // The limit does not apply to the first `after` bytes, so a body that is not longer needs no limit.
        let is_short = |limit: &BandwidthLimit| length.is_some_and(|length| length <= limit.after);
        let limit = route.bandwidth.filter(|limit| !is_short(limit));
        let join = |shared: &Arc<dyn SharedBandwidth>| {
            let values = context.values.unwrap_or(&NoValues);
            shared.join(context.client?, values, now)
        };
        let parts: Vec<_> = route.shared_bandwidth.iter().filter_map(join).collect();
        if limit.is_none() && parts.is_empty() {
            return None;
        }
        let sources = sources(&mut response.body)?;
        response.body = Body::Stream(Box::new(LimitedBody {
            length: sources.iter().map(Source::length).sum(),
            sources,
            pace: limit.map(|limit| Pace::new(limit, now)),
            parts,
            granted: 0,
            deadline: services.wheel.deadline(),
            wheel: Rc::clone(&services.wheel),
            time: services.clock.source().clone(),
            pool: services.pool.clone(),
            priority: route.priority,
        }));
        None
    }
}

/// Takes the content of a body. Returns `None`, and leaves the body unchanged, if it is `Empty`, `Tunnel` or `Abort`.
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

/// Token bucket of one response.
#[derive(Debug)]
struct Pace {
    /// Bytes per second.
    rate: u64,
    /// Bytes that may be sent now.
    allowance: u64,
    /// Uptime in nanoseconds at which `allowance` was last updated.
    at: u64,
}

impl Pace {
    fn new(limit: BandwidthLimit, now: u64) -> Pace {
        Pace {
            rate: limit.rate,
            // The first `after` bytes are not limited. The bandwidth of the first 250 ms, the longest tick, is
            // available at once, so that the response does not begin with a wait.
            allowance: limit.after.saturating_add(limit.rate / 4),
            at: now,
        }
    }

    /// Adds the bandwidth of the time since the last call. Returns the number of bytes that may be sent now, at most
    /// one piece.
    fn available(&mut self, now: u64) -> u64 {
        let passed = Duration::from_nanos(now.saturating_sub(self.at));
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
    /// Pace of this response alone, if it has one.
    pace: Option<Pace>,
    /// Parts of this response in the bandwidth of the limits that it shares with other responses.
    parts: Vec<Box<dyn BandwidthPart>>,
    /// Bytes that were taken from each of `parts`, and are not sent yet.
    granted: u64,
    deadline: Deadline,
    wheel: Rc<Wheel>,
    time: TimeSource,
    pool: Pool,
    priority: Priority,
}

impl Drop for LimitedBody {
    fn drop(&mut self) {
        let granted = self.granted;
        self.parts.iter_mut().for_each(|part| part.give_back(granted));
    }
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
                        let length = piece.len() as u64;
                        if let Some(pace) = &mut self.pace {
                            pace.allowance = pace.allowance.saturating_sub(length);
                        }
                        self.granted = self.granted.saturating_sub(length);
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
            let available = self.poll_available(self.time.uptime_ns());
            if available > 0 {
                return available;
            }
            // One tick, after which more bandwidth is available.
            self.deadline.set(1);
            poll_fn(|task| match self.deadline.poll_past(task.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }

    /// Returns the number of bytes that may be sent now; 0 if the response has to wait.
    fn poll_available(&mut self, now: u64) -> u64 {
        let tick = self.wheel.tick_length();
        let available = match &mut self.pace {
            Some(pace) => {
                let available = pace.available(now);
                // The bandwidth of half a tick, so that a timer that is a little early causes no small pieces.
                let least = bandwidth_of(pace.rate, tick / 2).clamp(1, MAX_PIECE);
                if available < least {
                    return 0;
                }
                available
            }
            None => MAX_PIECE,
        };
        if self.parts.is_empty() {
            return available;
        }
        if self.granted == 0 {
            self.granted = self.take(available, tick.as_nanos() as u64, now);
        }
        self.granted.min(available)
    }

    /// Takes the same number of bytes, at most `max`, from each of `parts`. Returns that number; 0 if the response has
    /// to wait.
    fn take(&mut self, max: u64, interval: u64, now: u64) -> u64 {
        let mut taken = max;
        for at in 0..self.parts.len() {
            let of_part = self.parts[at].take(taken, interval, now);
            // The earlier parts have granted more than this part does.
            for other in &mut self.parts[..at] {
                other.give_back(taken - of_part);
            }
            taken = of_part;
            if taken == 0 {
                break;
            }
        }
        taken
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
        BandwidthLimit {
            rate,
            after,
            is_shared: false,
        }
    }

    /// Nanoseconds of a millisecond.
    const MS: u64 = 1_000_000;

    #[test]
    fn bytes_become_available_at_the_rate() {
        let start = 5_000 * MS;
        let at = |ms| start + ms * MS;
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
        let mut pace = Pace::new(limit(1_000, 100_000), 0);
        assert_eq!(pace.available(5_000 * MS), 100_250);
        let mut pace = Pace::new(limit(u64::MAX, 0), 0);
        assert_eq!(pace.available(5_000 * MS), MAX_PIECE);
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
