//! Sends comments in a stream of server-sent events while there is no event, so that neither side mistakes the
//! silence for an error.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use rocknet_handler::response::Stream;
use rocknet_handler::services::Services;
use rocknet_io::wheel::Deadline;

/// Silence after which a comment is sent. It must be shorter than `limits.answer_timeout` (60 s by default), because
/// the server cuts off a response that has no new chunk for that time.
const SILENCE: Duration = Duration::from_secs(15);

/// A comment of server-sent events, which clients ignore.
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// Stream of events with comments during silence. When a comment is due, the future of the next event is dropped.
/// Dropping this future must not lose the event.
pub struct Heartbeat {
    events: Box<dyn Stream>,
    deadline: Deadline,
    /// [`SILENCE`] in ticks of the timer wheel.
    silence_ticks: u32,
}

impl Heartbeat {
    /// Adds comments to a stream.
    pub fn new(events: Box<dyn Stream>, services: &Services) -> Heartbeat {
        Heartbeat {
            events,
            deadline: services.wheel.deadline(),
            silence_ticks: services.wheel.ticks(SILENCE),
        }
    }
}

impl Stream for Heartbeat {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
        Box::pin(async {
            self.deadline.set(self.silence_ticks);
            let chunk = self.deadline.within(self.events.next()).await;
            chunk.unwrap_or(Some(Ok(COMMENT)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::{pending, ready};
    use std::task::{Context, Poll, Waker};

    use rocknet_io::wheel::Wheel;

    use super::*;

    /// Stream of these events. The text `end` ends the stream; without it, the stream is pending after the last event.
    struct Events(VecDeque<&'static str>);

    impl Stream for Events {
        fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<io::Result<Bytes>>> + '_>> {
            match self.0.pop_front() {
                Some("end") => Box::pin(ready(None)),
                Some(event) => Box::pin(ready(Some(Ok(event.into())))),
                None => Box::pin(pending()),
            }
        }
    }

    #[test]
    fn comments_are_sent_in_silence_only() {
        let wheel = Wheel::new(SILENCE, 1);
        let heartbeat = |events: &[&'static str]| Heartbeat {
            events: Box::new(Events(events.iter().copied().collect())),
            deadline: wheel.deadline(),
            silence_ticks: 1,
        };
        let mut context = Context::from_waker(Waker::noop());
        let mut stream = heartbeat(&["data"]);
        // Polls the next chunk, and again after each of `ticks` ticks. The chunk must be pending before the last tick.
        let mut poll = |stream: &mut Heartbeat, ticks| {
            let mut next = stream.next();
            let mut polled = next.as_mut().poll(&mut context);
            for _ in 0..ticks {
                assert!(polled.is_pending());
                wheel.advance();
                polled = next.as_mut().poll(&mut context);
            }
            polled.map(|chunk| chunk.map(Result::unwrap))
        };
        assert_eq!(poll(&mut stream, 0), Poll::Ready(Some("data".into())));
        assert_eq!(poll(&mut stream, 0), Poll::Pending);
        assert_eq!(poll(&mut stream, 1), Poll::Ready(Some(COMMENT)));
        assert_eq!(poll(&mut stream, 1), Poll::Ready(Some(COMMENT)));
        assert_eq!(poll(&mut heartbeat(&["end"]), 0), Poll::Ready(None));
    }
}
