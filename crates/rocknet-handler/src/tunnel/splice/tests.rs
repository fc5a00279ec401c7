//! Two links in memory, joined.

mod piped;

use std::task::Waker;

use rocknet_io::pipe::PipePool;
use rocknet_io::sim::{self, SimLink, SimPeer};

use super::*;

struct Joined {
    splice: Splice<SimLink>,
    link: SimLink,
    client: SimPeer,
    peer: SimPeer,
    pipes: PipePool,
    /// Bytes that are received at once.
    input: usize,
}

impl Joined {
    fn new(early: &[u8]) -> Joined {
        let (link, client) = sim::pair();
        let (upstream, peer) = sim::pair();
        Joined {
            splice: Splice::new(upstream, early.to_vec()),
            link,
            client,
            peer,
            pipes: PipePool::default(),
            input: 1024,
        }
    }

    /// So many turns.
    fn turn(&mut self, turns: usize) -> Poll<io::Result<()>> {
        let (mut input, mut queue) = (vec![0; self.input], SendQueue::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut polled = Poll::Pending;
        for _ in 0..turns {
            let scratch = Scratch {
                input: &mut input,
                queue: &mut queue,
                pipes: &self.pipes,
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
    both.client.send(b"hello").pause().send(b" there");
    both.peer.send(b"welcome");
    assert!(both.turn(3).is_pending());
    assert_eq!(*both.peer.received(), *b"hello there");
    assert_eq!(*both.client.received(), *b"early welcome");
    both.client.end();
    assert!(both.turn(2).is_pending());
    assert!(both.peer.is_shut_down() && !both.client.is_shut_down());
    both.peer.send(b", and good-bye").end();
    assert!(matches!(both.turn(2), Poll::Ready(Ok(()))));
    assert!(both.client.is_shut_down());
    assert_eq!(*both.client.received(), *b"early welcome, and good-bye");
    assert!(!both.client.is_reset() && !both.peer.is_reset());
}

#[test]
fn who_does_not_take_is_not_read_for() {
    let mut both = Joined::new(b"");
    both.peer.accept(10);
    for _ in 0..100 {
        both.client.send(&[b'x'; 1000]);
    }
    both.peer.send(b"the other way goes on");
    assert!(both.turn(50).is_pending());
    assert_eq!(both.peer.received().len(), 10);
    assert_eq!(both.client.unread(), 99 * 1000, "more was read than waits to be taken");
    assert_eq!(*both.client.received(), *b"the other way goes on");
    both.client.end();
    both.peer.accept_all().limit_writes(7);
    assert!(both.turn(20_000).is_pending());
    assert_eq!(both.peer.received().len(), 100 * 1000);
    assert!(both.peer.is_shut_down());
}

#[test]
fn what_breaks_off_is_cut_on_the_other_side() {
    for breaks in [0, 1, 2, 3] {
        let mut both = Joined::new(b"");
        let kind = io::ErrorKind::ConnectionReset;
        match breaks {
            0 => drop(both.client.fail_recv(kind)),
            1 => drop(both.client.fail_send(kind)),
            2 => drop(both.peer.fail_recv(kind)),
            _ => drop(both.peer.fail_send(kind)),
        };
        both.client.send(b"x");
        both.peer.send(b"y");
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
        both.client.send(&[b'x'; 1000]);
    }
    assert!(both.turn(1).is_pending());
    assert_eq!(both.peer.received().len(), 1000 * MAX_PIECES_PER_POLL as usize);
}
