//! What is much goes through pipes, and nothing is lost in them.

use rocknet_io::pipe::PIPE_BYTES;

use super::*;

/// What is received at once, and what the scripts say at once.
const PIECE: usize = 64 * 1024;
/// Far more than is copied before a stream is taken for one.
const PIECES: usize = 64;

impl Joined {
    fn with_room(pipes: usize) -> Joined {
        Joined {
            pipes: PipePool::new(pipes),
            input: PIECE,
            ..Joined::new(b"")
        }
    }
}

/// Bytes whose place can be told from them.
fn pattern(seed: usize) -> Vec<u8> {
    (seed..seed + PIECES * PIECE).map(|at| (at % 251) as u8).collect()
}

fn say(peer: &SimPeer, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        peer.send(piece);
    }
}

#[test]
fn a_stream_is_moved_and_messages_are_copied() {
    let mut both = Joined::with_room(4);
    for _ in 0..1_000 {
        both.client.send(&[b'x'; 1_000]);
        both.peer.send(&[b'y'; PIECE]).send(b"z").send(b"z").send(b"z");
    }
    assert!(both.turn(1_000).is_pending());
    assert_eq!(both.peer.take_received().len(), 1_000 * 1_000);
    assert_eq!(both.client.take_received().len(), 1_000 * (PIECE + 3));
    assert_eq!(both.pipes.count(), 0, "a pipe for messages");
    let (up, down) = (pattern(1), pattern(2));
    say(&both.client, &up);
    say(&both.peer, &down);
    assert!(both.turn(100).is_pending());
    assert!(*both.peer.received() == up[..] && *both.client.received() == down[..]);
    assert_eq!(both.pipes.count(), 1, "not one after the other by the same pipe");
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 1);
    // Nothing flows any more.
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 0);
    // It goes on as it was, until little comes again and again.
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
fn an_end_comes_behind_what_is_in_a_pipe() {
    let mut both = Joined::with_room(4);
    let up = pattern(0);
    both.peer.accept(20 * PIECE + 5);
    say(&both.client, &up);
    both.client.end();
    assert!(both.turn(100).is_pending());
    assert_eq!((both.peer.received().len(), both.pipes.count()), (20 * PIECE + 5, 1));
    let unreceived = both.client.unread();
    assert!(
        unreceived > 0 && up.len() - unreceived - both.peer.received().len() <= PIPE_BYTES,
        "more was read than waits to be taken"
    );
    // The other way goes on, and ends.
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
fn without_a_pipe_it_is_copied() {
    // Both ways are stuck, and there is a pipe for one of them, or none.
    for pipes in [0, 1] {
        let mut both = Joined::with_room(pipes);
        let (up, down) = (pattern(1), pattern(2));
        both.peer.accept(20 * PIECE + 5);
        both.client.accept(20 * PIECE + 5);
        say(&both.client, &up);
        say(&both.peer, &down);
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
fn what_is_left_in_a_pipe_is_nobody_elses() {
    for breaks in [false, true] {
        let mut both = Joined::with_room(4);
        both.peer.accept(20 * PIECE + 5);
        say(&both.client, &pattern(0));
        assert!(both.turn(100).is_pending());
        assert_eq!(both.pipes.count(), 1);
        if breaks {
            both.peer.fail_send(io::ErrorKind::ConnectionReset);
            assert!(matches!(both.turn(1), Poll::Ready(Err(_))));
            assert!(both.peer.is_reset());
        }
        let Joined { splice, pipes, .. } = both;
        drop(splice);
        assert_eq!(pipes.count(), 0, "it may be used again");
    }
}

#[test]
fn a_stream_lets_others_have_their_turn() {
    let mut both = Joined::with_room(4);
    say(&both.client, &pattern(0));
    for _ in 0..3 {
        let before = both.peer.received().len();
        assert!(both.turn(1).is_pending());
        let moved = both.peer.received().len() - before;
        assert!((1..MAX_BYTES_PER_POLL + PIPE_BYTES).contains(&moved), "{moved}");
    }
}
