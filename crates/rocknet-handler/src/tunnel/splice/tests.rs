//! Tests of the splice with two joined links in memory.

mod piped;

use std::task::Waker;

use rocknet_io::pipe::PipePool;
use rocknet_io::sim::{self, SimLink, SimPeer};

use super::*;

/// Tunnel between a client and an upstream. `client` and `peer` are the far ends of the two links.
struct Joined {
    splice: Splice<SimLink>,
    link: SimLink,
    client: SimPeer,
    peer: SimPeer,
    pipes: PipePool,
    /// Maximum number of bytes received at once.
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

    /// Polls the tunnel until it is ready, at most `turns` times.
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
            assert!(queue.is_empty(), "bytes remained in the worker's queue");
            if polled.is_ready() {
                break;
            }
        }
        polled
    }
}

#[test]
fn both_directions_flow_and_end_independently() {
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
fn nothing_is_received_for_a_peer_that_does_not_read() {
    let mut both = Joined::new(b"");
    both.peer.accept(10);
    for _ in 0..100 {
        both.client.send(&[b'x'; 1000]);
    }
    both.peer.send(b"the other way goes on");
    assert!(both.turn(50).is_pending());
    assert_eq!(both.peer.received().len(), 10);
    assert_eq!(both.client.unread(), 99 * 1000, "more was received than can be sent");
    assert_eq!(*both.client.received(), *b"the other way goes on");
    both.client.end();
    both.peer.accept_all().limit_writes(7);
    assert!(both.turn(20_000).is_pending());
    assert_eq!(both.peer.received().len(), 100 * 1000);
    assert!(both.peer.is_shut_down());
}

#[test]
fn an_error_on_either_side_resets_the_peer() {
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
            panic!("{breaks}: the tunnel continues");
        };
        assert_eq!(error.kind(), kind);
        assert!(both.peer.is_reset(), "{breaks}");
    }
}

#[test]
fn a_flood_yields_to_other_tasks() {
    let mut both = Joined::new(b"");
    for _ in 0..100 {
        both.client.send(&[b'x'; 1000]);
    }
    assert!(both.turn(1).is_pending());
    assert_eq!(both.peer.received().len(), 1000 * MAX_PIECES_PER_POLL as usize);
}
