//! Tests that bulk data is moved through pipes, and that no byte is lost.

use rocknet_io::pipe::PIPE_BYTES;

use super::*;

/// Number of bytes that one call receives, and that one call in a test sends.
const PIECE: usize = 64 * 1024;
/// Far more pieces than are copied before bulk mode begins.
const PIECES: usize = 64;

impl Joined {
    fn with_pipes(pipes: usize) -> Joined {
        Joined {
            pipes: PipePool::new(pipes),
            input: PIECE,
            ..Joined::new(b"")
        }
    }
}

/// Returns bytes whose positions can be verified.
fn pattern(seed: usize) -> Vec<u8> {
    (seed..seed + PIECES * PIECE).map(|at| (at % 251) as u8).collect()
}

fn send_all(peer: &SimPeer, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        peer.send(piece);
    }
}

#[test]
fn a_stream_is_moved_and_messages_are_copied() {
    let mut both = Joined::with_pipes(4);
    for _ in 0..1_000 {
        both.client.send(&[b'x'; 1_000]);
        both.peer.send(&[b'y'; PIECE]).send(b"z").send(b"z").send(b"z");
    }
    assert!(both.turn(1_000).is_pending());
    assert_eq!(both.peer.take_received().len(), 1_000 * 1_000);
    assert_eq!(both.client.take_received().len(), 1_000 * (PIECE + 3));
    assert_eq!(both.pipes.count(), 0, "messages were moved through a pipe");
    let (up, down) = (pattern(1), pattern(2));
    send_all(&both.client, &up);
    send_all(&both.peer, &down);
    assert!(both.turn(100).is_pending());
    assert!(*both.peer.received() == up[..] && *both.client.received() == down[..]);
    assert_eq!(both.pipes.count(), 1, "the directions do not take turns with one pipe");
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 1);
    // The flow has stopped.
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 0);
    // Bulk mode persists until little data is received repeatedly.
    both.client.send(&up[..PIECE]);
    assert!(both.turn(1).is_pending());
    assert_eq!(both.pipes.count(), 1);
    for _ in 0..100 {
        both.client.send(b"little");
    }
    assert!(both.turn(100).is_pending());
    both.pipes.close_idle();
    both.client.send(&up[..PIECE]);
    assert!(both.turn(1).is_pending());
    assert_eq!(both.pipes.count(), 0);
    assert_eq!(both.peer.received().len(), up.len() + 2 * PIECE + 600);
}

#[test]
fn an_end_follows_the_bytes_in_a_pipe() {
    let mut both = Joined::with_pipes(4);
    let up = pattern(0);
    both.peer.accept(20 * PIECE + 5);
    send_all(&both.client, &up);
    both.client.end();
    assert!(both.turn(100).is_pending());
    assert_eq!((both.peer.received().len(), both.pipes.count()), (20 * PIECE + 5, 1));
    let unreceived = both.client.unread();
    assert!(
        unreceived > 0 && up.len() - unreceived - both.peer.received().len() <= PIPE_BYTES,
        "more was received than can be sent"
    );
    // The other direction continues, and then ends.
    both.peer.send(b"what is left").end();
    assert!(both.turn(100).is_pending());
    assert!(both.client.is_shut_down() && !both.peer.is_shut_down());
    both.peer.limit_writes(10_007).accept(PIECE);
    assert!(both.turn(100).is_pending());
    both.peer.accept_all();
    assert!(matches!(both.turn(1_000), Poll::Ready(Ok(()))));
    assert!(both.peer.is_shut_down() && *both.peer.received() == up[..]);
    assert_eq!(*both.client.received(), *b"what is left");
}

#[test]
fn bytes_are_copied_without_a_pipe() {
    // Both directions are blocked. There is either no pipe, or a pipe for one direction.
    for pipes in [0, 1] {
        let mut both = Joined::with_pipes(pipes);
        let (up, down) = (pattern(1), pattern(2));
        both.peer.accept(20 * PIECE + 5);
        both.client.accept(20 * PIECE + 5);
        send_all(&both.client, &up);
        send_all(&both.peer, &down);
        both.client.end();
        both.peer.end();
        assert!(both.turn(100).is_pending());
        assert_eq!(both.pipes.count(), pipes);
        both.peer.accept_all();
        both.client.accept_all();
        assert!(matches!(both.turn(1_000), Poll::Ready(Ok(()))));
        assert!(*both.peer.received() == up[..] && *both.client.received() == down[..]);
    }
}

#[test]
fn a_pipe_with_bytes_in_it_is_not_reused() {
    for breaks in [false, true] {
        let mut both = Joined::with_pipes(4);
        both.peer.accept(20 * PIECE + 5);
        send_all(&both.client, &pattern(0));
        assert!(both.turn(100).is_pending());
        assert_eq!(both.pipes.count(), 1);
        if breaks {
            both.peer.fail_send(io::ErrorKind::ConnectionReset);
            assert!(matches!(both.turn(1), Poll::Ready(Err(_))));
            assert!(both.peer.is_reset());
        }
        let Joined { splice, pipes, .. } = both;
        drop(splice);
        assert_eq!(pipes.count(), 0, "a pipe with bytes in it was kept for reuse");
    }
}

#[test]
fn a_stream_yields_to_other_tasks() {
    let mut both = Joined::with_pipes(4);
    send_all(&both.client, &pattern(0));
    for _ in 0..3 {
        let before = both.peer.received().len();
        assert!(both.turn(1).is_pending());
        let moved = both.peer.received().len() - before;
        assert!((1..MAX_BYTES_PER_POLL + PIPE_BYTES).contains(&moved), "{moved}");
    }
}
