//! Copies of log lines for programs that follow the logs of a running server.

use std::collections::VecDeque;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of followers. Each one costs a copy of every line.
const MAX_FOLLOWERS: usize = 16;

/// Batches that wait for a slow follower. Later lines are counted as lost for it.
const MAX_BATCHES: usize = 64;

/// Number of recent lines of the error log that a new follower gets first, and their maximum size in bytes.
const MAX_RECENT: usize = 200;
const MAX_RECENT_BYTES: usize = 64 * 1024;

/// Log from which lines come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedLog {
    /// Error log.
    Error,
    /// Access log of any site.
    Access,
}

/// Lines of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedLines {
    /// Log of the lines.
    pub log: FollowedLog,
    /// Complete lines, each with its newline, without colours.
    pub bytes: Vec<u8>,
    /// Number of earlier lines that the follower has lost, because it was slow.
    pub lost: u64,
}

/// Followers of the logs of one server.
#[derive(Default)]
pub(super) struct Followers {
    all: Vec<Follower>,
    recent: VecDeque<Vec<u8>>,
    recent_bytes: usize,
}

struct Follower {
    sender: Sender<FollowedLines>,
    lost: u64,
}

/// Creates the two ends of the queue of a follower.
pub(super) fn queue() -> (Sender<FollowedLines>, Receiver<FollowedLines>) {
    channel(MAX_BATCHES)
}

impl Followers {
    /// Adds a follower, and sends it the recent lines of the error log. If there are too many followers, its queue ends
    /// after these lines.
    pub(super) fn add(&mut self, sender: Sender<FollowedLines>) {
        let recent = FollowedLines {
            log: FollowedLog::Error,
            bytes: self.recent.iter().flatten().copied().collect(),
            lost: 0,
        };
        self.all.retain(|follower| !follower.sender.is_closed());
        if sender.try_send(recent).is_ok() && self.all.len() < MAX_FOLLOWERS {
            self.all.push(Follower { sender, lost: 0 });
        }
    }

    /// Copies complete lines to every follower.
    pub(super) fn push(&mut self, log: FollowedLog, bytes: &[u8]) {
        if bytes.is_empty() || self.all.is_empty() && log == FollowedLog::Access {
            return;
        }
        let plain = without_colours(bytes);
        if log == FollowedLog::Error {
            self.remember(&plain);
        }
        let lines = plain.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.all.retain_mut(|follower| {
            let batch = FollowedLines {
                log,
                bytes: plain.clone(),
                lost: follower.lost,
            };
            match follower.sender.try_send(batch) {
                Ok(()) => follower.lost = 0,
                Err(TrySendError::Full(_)) => follower.lost += lines,
                Err(TrySendError::Closed(_)) => return false,
            }
            true
        });
    }

    fn remember(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.recent_bytes += line.len();
            self.recent.push_back(line.to_vec());
        }
        while self.recent.len() > MAX_RECENT || self.recent_bytes > MAX_RECENT_BYTES {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.len();
        }
    }
}

/// Removes the escape sequences of colours. Text of clients contains none, because it is escaped.
fn without_colours(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(start) = rest.iter().position(|byte| *byte == b'\x1B') {
        plain.extend_from_slice(&rest[..start]);
        let end = rest[start..].iter().position(|byte| *byte == b'm');
        rest = end.map_or(&[], |end| &rest[start + end + 1..]);
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_follower_gets_the_recent_errors_without_colours() {
        let mut followers = Followers::default();
        followers.push(FollowedLog::Access, b"nobody follows\n");
        for number in 0..MAX_RECENT + 1 {
            followers.push(FollowedLog::Error, format!("\x1B[2m{number}\x1B[0m\n").as_bytes());
        }
        let (sender, mut receiver) = queue();
        followers.add(sender);
        let recent = receiver.try_recv().expect("the recent lines");
        assert!(recent.bytes.starts_with(b"1\n2\n") && recent.bytes.ends_with(b"\n200\n"));
        followers.push(FollowedLog::Access, b"a\nb\n");
        let batch = receiver.try_recv().expect("a batch");
        assert_eq!(
            (batch.log, &batch.bytes[..], batch.lost),
            (FollowedLog::Access, &b"a\nb\n"[..], 0)
        );
        followers.push(FollowedLog::Error, &vec![b'x'; MAX_RECENT_BYTES + 1]);
        assert_eq!((followers.recent.len(), followers.recent_bytes), (0, 0));
    }

    #[test]
    fn a_slow_follower_loses_lines_and_a_closed_one_is_removed() {
        let mut followers = Followers::default();
        let (sender, mut receiver) = queue();
        followers.add(sender);
        for _ in 0..MAX_BATCHES + 2 {
            followers.push(FollowedLog::Access, b"a\nb\n");
        }
        for _ in 0..MAX_BATCHES {
            assert_eq!(receiver.try_recv().expect("a batch").lost, 0);
        }
        followers.push(FollowedLog::Access, b"c\n");
        assert_eq!(receiver.try_recv().expect("a batch").lost, 6);
        drop(receiver);
        followers.push(FollowedLog::Access, b"d\n");
        assert!(followers.all.is_empty());
    }

    #[test]
    fn the_number_of_followers_is_limited() {
        let mut followers = Followers::default();
        let mut receivers = Vec::new();
        for _ in 0..MAX_FOLLOWERS + 1 {
            let (sender, receiver) = queue();
            followers.add(sender);
            receivers.push(receiver);
        }
        followers.push(FollowedLog::Access, b"a\n");
        let last = receivers.last_mut().expect("a follower");
        assert!(last.try_recv().is_ok_and(|recent| recent.bytes.is_empty()));
        assert!(last.try_recv().is_err());
        assert_eq!(followers.all.len(), MAX_FOLLOWERS);
    }
}
