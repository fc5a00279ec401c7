//! Tests that child processes inherit neither the ring nor its sockets.

use std::future::Future;
use std::io::{Read, Write};
use std::process::Command;

use super::{on_ring, once, pair, queue_of, receive, send};
use crate::runtime::drain_events;

#[test]
fn children_do_not_inherit_the_ring() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains(" -> ") && !listed.contains("io_uring"), "{listed}");
        peer.write_all(b"still here").expect("sent");
        assert_eq!(receive(&mut link, 100).await.expect("bytes"), b"still here");
    });
}

#[test]
fn a_running_child_keeps_no_socket_open() {
    on_ring(async |driver| {
        let (mut link, mut peer) = pair(&driver);
        let mut waiting = Box::pin(async move {
            let received = receive(&mut link, 100).await;
            (link, received)
        });
        assert!(once(|context| waiting.as_mut().poll(context)).await.is_pending());
        drain_events().await;
        // The child starts while an operation is in flight, and runs until its input is closed.
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        peer.write_all(b"word").expect("sent");
        let (mut link, received) = waiting.await;
        assert_eq!(received.expect("bytes"), b"word");
        send(&mut link, &mut queue_of(b"answer")).await.expect("sent");
        drop(link);
        drain_events().await;
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("an end");
        assert_eq!(all, b"answer");
        drop(child.stdin.take());
        assert!(child.wait().expect("an end").success());
    });
}
