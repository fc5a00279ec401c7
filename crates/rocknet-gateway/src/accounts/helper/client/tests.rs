//! Tests of calls to a helper that replies late, that has a full socket, or that has ended.

use std::thread;
use std::time::Instant;

use rocknet_io::fd_channel::Blocking;

use super::super::protocol::{HelperReply, MESSAGE_SIZE};
use super::*;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// Creates a helper without a process, and the helper's end of its channel. The child is only a placeholder.
fn helper(timeout: Duration) -> (Helper, FdChannel) {
    let (ours, theirs) = FdChannel::pair().unwrap();
    let child = Command::new("true").spawn().unwrap();
    (
        Helper::new(ours, Some(child), Accounts::default(), timeout),
        theirs.into(),
    )
}

/// Waits for a condition. A program that another test is starting holds a copy of every socket for a moment, which
/// delays the detection of a closed socket.
fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "the end of the helper is not noticed");
        thread::yield_now();
    }
}

/// Returns a request to start a program.
fn start() -> HelperRequest {
    HelperRequest::Start {
        account: 0,
        has_file: false,
        has_listener: false,
        parent_death_signal: Signal::KILL,
    }
}

/// Receives a request at the helper's end, with its sequence number.
fn receive(theirs: &FdChannel) -> (u32, HelperRequest) {
    let mut buffer = [0; MESSAGE_SIZE + 1];
    assert!(theirs.wait_readable(LONG), "no request");
    let (size, _) = theirs.recv_with_fds(&mut buffer).unwrap().unwrap();
    HelperRequest::read(&buffer[..size]).unwrap()
}

/// Sends a reply from the helper's end.
fn reply(theirs: &FdChannel, sequence: u32, reply: HelperReply) {
    theirs
        .send(&protocol::write_reply(sequence, reply), None, Blocking::No)
        .unwrap();
}

#[test]
fn every_call_fails_immediately_until_an_overdue_reply_arrives() {
    // The overdue reply: program 7 was started, or the start failed with error number 2 (ENOENT).
    for late in [Ok(7), Err(2)] {
        let (mut helper, theirs) = helper(SHORT);
        assert!(helper.call(start(), &[]).is_err());
        // With this timeout, the test would fail if a call waited.
        helper.timeout = LONG;
        let before = Instant::now();
        for _ in 0..10_000 {
            let failed = helper.call(HelperRequest::TryWait(1), &[]).expect_err("no reply");
            assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        }
        assert!(before.elapsed() < LONG, "{:?}", before.elapsed());
        let (sequence, request) = receive(&theirs);
        assert_eq!(request, start());
        assert!(!theirs.wait_readable(Duration::ZERO), "another request was sent");
        reply(&theirs, sequence, late);
        let server = thread::spawn(move || {
            let mut requests = Vec::new();
            // After a late success, the program that was started is killed and forgotten.
            for _ in 0..if late.is_ok() { 3 } else { 1 } {
                let (sequence, request) = receive(&theirs);
                requests.push(request);
                reply(&theirs, sequence, Ok(0));
            }
            (requests, theirs)
        });
        assert_eq!(helper.call(HelperRequest::TryWait(1), &[]).unwrap(), 0);
        let (requests, theirs) = server.join().unwrap();
        let kill = HelperRequest::Signal {
            number: 7,
            signal: Signal::KILL,
            to_group: true,
        };
        let all = [HelperRequest::TryWait(1), kill, HelperRequest::Forget(7)];
        assert_eq!(requests, all[..requests.len()]);
        assert!(!theirs.wait_readable(Duration::ZERO));
    }
}

#[test]
fn waiting_for_the_connection_is_bounded_by_the_reply_timeout() {
    let (helper, _theirs) = helper(SHORT);
    let connection = helper.lock_connection().unwrap();
    let failed = helper
        .call(HelperRequest::TryWait(1), &[])
        .expect_err("the connection is in use");
    assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    drop(connection);
    assert!(helper.lock_connection().is_some());
}

#[test]
fn a_call_on_a_full_socket_times_out_until_the_helper_has_ended() {
    let (helper, theirs) = helper(SHORT);
    let mut connection = helper.lock_connection().unwrap();
    while connection.get().channel.send_with_fds(&[1], &[], Blocking::No).is_ok() {}
    drop(connection);
    let failed = helper
        .call(HelperRequest::TryWait(1), &[])
        .expect_err("the socket is full");
    assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    drop(theirs);
    until(|| {
        let failed = helper
            .call(HelperRequest::TryWait(1), &[])
            .expect_err("the helper has ended");
        failed.kind() == io::ErrorKind::BrokenPipe
    });
}

#[test]
fn without_replies_a_forget_is_kept_and_a_group_counts_as_running() {
    let (helper, theirs) = helper(SHORT);
    let helper: &'static Helper = Box::leak(Box::new(helper));
    drop(HelperProcess {
        helper,
        number: 9,
        status: None,
    });
    assert_eq!(*lock(&helper.to_forget), [9]);
    let (sequence, _) = receive(&theirs);
    reply(&theirs, sequence, Ok(0));
    let other = HelperProcess {
        helper,
        number: 8,
        status: None,
    };
    assert!(other.group_has_members(), "the state of the group is unknown");
    drop(theirs);
    until(|| !other.group_has_members());
}
