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

fn say(peer: &Peer, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE) {
        peer.say(piece);
    }
}

#[test]
fn a_stream_is_moved_and_messages_are_copied() {
    let mut both = Joined::with_room(4);
    for _ in 0..1_000 {
        both.client.say(&[b'x'; 1_000]);
        both.peer.say(&[b'y'; PIECE]).say(b"z").say(b"z").say(b"z");
    }
    assert!(both.turn(1_000).is_pending());
    assert_eq!(both.peer.take_heard().len(), 1_000 * 1_000);
    assert_eq!(both.client.take_heard().len(), 1_000 * (PIECE + 3));
    assert_eq!(both.pipes.count(), 0, "a pipe for messages");
    let (up, down) = (pattern(1), pattern(2));
    say(&both.client, &up);
    say(&both.peer, &down);
    assert!(both.turn(100).is_pending());
    assert!(*both.peer.heard() == up[..] && *both.client.heard() == down[..]);
    assert_eq!(both.pipes.count(), 1, "not one after the other by the same pipe");
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 1);
    // Nothing flows any more.
    both.pipes.tick();
    assert_eq!(both.pipes.count(), 0);
    // It goes on as it was, until little comes again and again.
    both.client.say(&up[..PIECE]);
    assert!(both.turn(1).is_pending());
    assert_eq!(both.pipes.count(), 1);
    for _ in 0..100 {
        both.client.say(b"little");
    }
    assert!(both.turn(100).is_pending());
    both.pipes.close_idle();
    both.client.say(&up[..PIECE]);
    assert!(both.turn(1).is_pending());
    assert_eq!(both.pipes.count(), 0);
    assert_eq!(both.peer.heard().len(), up.len() + 2 * PIECE + 600);
}

#[test]
fn an_end_comes_behind_what_is_in_a_pipe() {
    let mut both = Joined::with_room(4);
    let up = pattern(0);
    both.peer.take(20 * PIECE + 5);
    say(&both.client, &up);
    both.client.end();
    assert!(both.turn(100).is_pending());
    assert_eq!((both.peer.heard().len(), both.pipes.count()), (20 * PIECE + 5, 1));
    let unreceived = both.client.unreceived();
    assert!(
        unreceived > 0 && up.len() - unreceived - both.peer.heard().len() <= PIPE_BYTES,
        "more was read than waits to be taken"
    );
    // The other way goes on, and ends.
    both.peer.say(b"what is left").end();
    assert!(both.turn(100).is_pending());
    assert!(both.client.is_shut_down() && !both.peer.is_shut_down());
    both.peer.step(10_007).take(PIECE);
    assert!(both.turn(100).is_pending());
    both.peer.take_all();
    assert!(matches!(both.turn(1_000), Poll::Ready(Ok(()))));
    assert!(both.peer.is_shut_down() && *both.peer.heard() == up[..]);
    assert_eq!(*both.client.heard(), *b"what is left");
}

#[test]
fn without_a_pipe_it_is_copied() {
    // Both ways are stuck, and there is a pipe for one of them, or none.
    for pipes in [0, 1] {
        let mut both = Joined::with_room(pipes);
        let (up, down) = (pattern(1), pattern(2));
        both.peer.take(20 * PIECE + 5);
        both.client.take(20 * PIECE + 5);
        say(&both.client, &up);
        say(&both.peer, &down);
        both.client.end();
        both.peer.end();
        assert!(both.turn(100).is_pending());
        assert_eq!(both.pipes.count(), pipes);
        both.peer.take_all();
        both.client.take_all();
        assert!(matches!(both.turn(1_000), Poll::Ready(Ok(()))));
        assert!(*both.peer.heard() == up[..] && *both.client.heard() == down[..]);
    }
}

#[test]
fn what_is_left_in_a_pipe_is_nobody_elses() {
    for breaks in [false, true] {
        let mut both = Joined::with_room(4);
        both.peer.take(20 * PIECE + 5);
        say(&both.client, &pattern(0));
        assert!(both.turn(100).is_pending());
        assert_eq!(both.pipes.count(), 1);
        if breaks {
            both.peer.refuse(io::ErrorKind::ConnectionReset);
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
        let before = both.peer.heard().len();
        assert!(both.turn(1).is_pending());
        let moved = both.peer.heard().len() - before;
        assert!((1..MAX_BYTES_PER_POLL + PIPE_BYTES).contains(&moved), "{moved}");
    }
}
