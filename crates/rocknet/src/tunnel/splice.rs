//! A splice: two links, each of which is sent what the other one brings.
//!
//! ```text
//! client ──▶ up ──▶ peer          each way: receive, send; what does not leave waits, and nothing more is received
//! client ◀── down ◀── peer        until it has left. An end is passed on once all before it has left.
//! ```

use std::io;
use std::task::{Context, Poll, ready};

use rocknet_io::link::{Link, Received};
use rocknet_io::queue::SendQueue;

use super::{Scratch, Tunnel};

/// Pieces moved in one direction before others get their turn: what is received at once is at most 64 KiB, so a tunnel
/// that is never empty has the worker for half a megabyte.
const PIECES_PER_TURN: u32 = 8;

/// A client joined with a peer.
pub struct Splice<P> {
    peer: P,
    up: Way,
    down: Way,
}

/// One direction.
#[derive(Default)]
struct Way {
    /// What was received and has not left; there until the link says that it has.
    waiting: Option<Box<SendQueue>>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The source has ended; the other side is told when it has all.
    Ending,
    Over,
}

impl<P: Link> Splice<P> {
    /// `early`: what the peer said already.
    pub fn new(mut peer: P, early: Vec<u8>) -> Splice<P> {
        // Nobody else would ever notice that it has vanished.
        peer.keep_alive();
        let mut down = Way::default();
        if !early.is_empty() {
            let mut waiting = SendQueue::default();
            waiting.push_owned(early.into());
            down.waiting = Some(Box::new(waiting));
        }
        // What was said to it before may still be on its way.
        peer.flush();
        let mut up = Way::default();
        if let Some(unsent) = peer.take_unsent() {
            let mut waiting = SendQueue::default();
            waiting.put_back(unsent);
            up.waiting = Some(Box::new(waiting));
        }
        Splice { peer, up, down }
    }
}

impl<P: Link> Tunnel for Splice<P> {
    fn poll(&mut self, context: &mut Context<'_>, client: &mut dyn Link, scratch: Scratch<'_>) -> Poll<io::Result<()>> {
        let Scratch { input, queue } = scratch;
        let up = self.up.pump(context, client, &mut self.peer, input, queue);
        let down = self.down.pump(context, &mut self.peer, client, input, queue);
        match (up, down) {
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => {
                client.finish();
                self.peer.finish();
                Poll::Ready(Ok(()))
            }
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => {
                // Neither side is to take a part for the whole.
                self.peer.reset();
                Poll::Ready(Err(error))
            }
            _ => Poll::Pending,
        }
    }
}

impl Way {
    fn pump(
        &mut self,
        context: &mut Context<'_>,
        from: &mut dyn Link,
        to: &mut dyn Link,
        input: &mut [u8],
        queue: &mut SendQueue,
    ) -> Poll<io::Result<()>> {
        for _ in 0..PIECES_PER_TURN {
            if let Some(waiting) = &mut self.waiting {
                ready!(to.poll_send(context, waiting))?;
                self.waiting = None;
            }
            match self.stage {
                Stage::Open => {}
                Stage::Ending => {
                    to.shut_down()?;
                    self.stage = Stage::Over;
                    return Poll::Ready(Ok(()));
                }
                Stage::Over => return Poll::Ready(Ok(())),
            }
            match ready!(from.poll_recv(context, input))? {
                received if received.is_empty() => {
                    self.stage = Stage::Ending;
                    continue;
                }
                Received::Lent(bytes) => queue.buffer().extend_from_slice(bytes),
                Received::Held(bytes) => queue.push_owned(bytes),
            }
            match to.poll_send(context, queue) {
                Poll::Ready(sent) => {
                    queue.clear();
                    sent?;
                }
                Poll::Pending => self.waiting = Some(Box::new(queue.take_rest())),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use rocknet_io::sim::{self, Peer, Sim};

    use super::*;

    struct Joined {
        splice: Splice<Sim>,
        link: Sim,
        client: Peer,
        peer: Peer,
    }

    impl Joined {
        fn new(early: &[u8]) -> Joined {
            let (link, client) = sim::pipe();
            let (upstream, peer) = sim::pipe();
            Joined {
                splice: Splice::new(upstream, early.to_vec()),
                link,
                client,
                peer,
            }
        }

        /// So many turns.
        fn turn(&mut self, turns: usize) -> Poll<io::Result<()>> {
            let (mut input, mut queue) = (vec![0; 1024], SendQueue::default());
            let mut context = Context::from_waker(Waker::noop());
            let mut polled = Poll::Pending;
            for _ in 0..turns {
                let scratch = Scratch {
                    input: &mut input,
                    queue: &mut queue,
                };
                polled = self.splice.poll(&mut context, &mut self.link, scratch);
                assert!(queue.is_empty(), "something stayed in the worker's queue");
                if polled.is_ready() {
                    break;
                }
            }
            polled
        }
    }

    #[test]
    fn both_ways_flow_and_each_ends_for_itself() {
        let mut both = Joined::new(b"early ");
        both.client.say(b"hello").pause().say(b" there");
        both.peer.say(b"welcome");
        assert!(both.turn(3).is_pending());
        assert_eq!(*both.peer.heard(), *b"hello there");
        assert_eq!(*both.client.heard(), *b"early welcome");
        both.client.end();
        assert!(both.turn(2).is_pending());
        assert!(both.peer.is_shut_down() && !both.client.is_shut_down());
        both.peer.say(b", and good-bye").end();
        assert!(matches!(both.turn(2), Poll::Ready(Ok(()))));
        assert!(both.client.is_shut_down());
        assert_eq!(*both.client.heard(), *b"early welcome, and good-bye");
        assert!(!both.client.is_reset() && !both.peer.is_reset());
    }

    #[test]
    fn who_does_not_take_is_not_read_for() {
        let mut both = Joined::new(b"");
        both.peer.take(10);
        for _ in 0..100 {
            both.client.say(&[b'x'; 1000]);
        }
        both.peer.say(b"the other way goes on");
        assert!(both.turn(50).is_pending());
        assert_eq!(both.peer.heard().len(), 10);
        assert_eq!(
            both.client.unreceived(),
            99 * 1000,
            "more was read than waits to be taken"
        );
        assert_eq!(*both.client.heard(), *b"the other way goes on");
        both.client.end();
        both.peer.take_all().step(7);
        assert!(both.turn(20_000).is_pending());
        assert_eq!(both.peer.heard().len(), 100 * 1000);
        assert!(both.peer.is_shut_down());
    }

    #[test]
    fn what_breaks_off_is_cut_on_the_other_side() {
        for breaks in [0, 1, 2, 3] {
            let mut both = Joined::new(b"");
            let kind = io::ErrorKind::ConnectionReset;
            match breaks {
                0 => drop(both.client.fail(kind)),
                1 => drop(both.client.refuse(kind)),
                2 => drop(both.peer.fail(kind)),
                _ => drop(both.peer.refuse(kind)),
            };
            both.client.say(b"x");
            both.peer.say(b"y");
            let Poll::Ready(Err(error)) = both.turn(3) else {
                panic!("{breaks}: goes on");
            };
            assert_eq!(error.kind(), kind);
            assert!(both.peer.is_reset(), "{breaks}");
        }
    }

    #[test]
    fn a_flood_lets_others_have_their_turn() {
        let mut both = Joined::new(b"");
        for _ in 0..100 {
            both.client.say(&[b'x'; 1000]);
        }
        assert!(both.turn(1).is_pending());
        assert_eq!(both.peer.heard().len(), 1000 * PIECES_PER_TURN as usize);
    }
}
