//! Copies of log lines for programs that follow the logs of a running server.

use std::collections::VecDeque;
use std::sync::Arc;

use rocknet_io::byte_budget::ByteBudget;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::sites::NamedRun;

/// Maximum number of followers. Each can hold 1 MiB of lines in memory. Further ones get the recent lines only.
pub const MAX_FOLLOWERS: usize = 16;

/// Maximum number of batches ([`FollowedLines`]) that wait for a slow follower. Lines beyond that count as lost for
/// this follower.
const MAX_BATCHES: usize = 64;

/// Maximum number of bytes in the batches that wait for a slow follower. Lines beyond that count as lost, too.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum number of recent lines of the error log that a new follower receives first.
const MAX_RECENT: usize = 200;

/// Maximum total size of the recent lines in bytes.
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
pub struct FollowedLines {
    /// Log of the lines.
    pub log: FollowedLog,
    lines: Arc<SitedLines>,
    /// Number of earlier lines that the follower has lost, because it was slow.
    pub lost: u64,
    /// Bytes that wait for the follower, those of `lines` included.
    waiting: ByteBudget,
}

/// Complete lines, each with its newline, without colours. All followers share them.
#[derive(Default)]
struct SitedLines {
    bytes: Vec<u8>,
    /// Sites of the lines in `bytes`: one run for consecutive lines of the same site.
    runs: Vec<NamedRun>,
}

impl FollowedLines {
    /// Returns all lines, each with its newline.
    pub fn bytes(&self) -> &[u8] {
        &self.lines.bytes
    }

    /// Returns the lines in their order, grouped by site: the name of the site, and complete lines. Messages that name
    /// no site have `None`.
    pub fn by_site(&self) -> impl Iterator<Item = (Option<&str>, &[u8])> {
        let mut start = 0;
        self.lines.runs.iter().map(move |run| {
            let lines = &self.lines.bytes[start..run.end];
            start = run.end;
            (run.site.as_deref(), lines)
        })
    }
}

impl Drop for FollowedLines {
    fn drop(&mut self) {
        self.waiting.release(self.lines.bytes.len() as u64);
    }
}

impl SitedLines {
    /// Copies lines without their colours. `runs`: the sites of all `bytes`.
    fn plain(bytes: &[u8], runs: &[NamedRun]) -> SitedLines {
        let mut plain = SitedLines::default();
        let mut start = 0;
        for run in runs {
            plain.push(run.site.as_ref(), &without_colours(&bytes[start..run.end]));
            start = run.end;
        }
        plain
    }

    /// Adds complete lines of one site.
    fn push(&mut self, site: Option<&Arc<str>>, lines: &[u8]) {
        self.bytes.extend_from_slice(lines);
        let end = self.bytes.len();
        match self.runs.last_mut() {
            Some(last) if last.site.as_ref() == site => last.end = end,
            _ => self.runs.push(NamedRun {
                site: site.cloned(),
                end,
            }),
        }
    }
}

/// Follower that is to be added.
pub(super) struct NewFollower {
    /// Log to follow; `None`: all logs.
    only: Option<FollowedLog>,
    sender: Sender<FollowedLines>,
}

/// Followers of the logs of one server.
#[derive(Default)]
pub(super) struct Followers {
    all: Vec<Follower>,
    /// Recent lines of the error log, without colours, and the sites that they name. The oldest line is the first.
    recent: VecDeque<(Option<Arc<str>>, Vec<u8>)>,
    /// Number of bytes in `recent`.
    recent_bytes: usize,
}

struct Follower {
    /// Log that is followed; `None`: all logs.
    only: Option<FollowedLog>,
    sender: Sender<FollowedLines>,
    /// Number of lines lost since a batch was last queued.
    lost: u64,
    /// Bytes of the queued batches, and of received batches that the follower has not dropped yet.
    waiting: ByteBudget,
}

/// Creates a follower and its queue. `only`: log to follow; `None`: all logs.
pub(super) fn queue(only: Option<FollowedLog>) -> (NewFollower, Receiver<FollowedLines>) {
    let (sender, receiver) = channel(MAX_BATCHES);
    (NewFollower { only, sender }, receiver)
}

impl Follower {
    fn follows(&self, log: FollowedLog) -> bool {
        self.only.is_none_or(|only| only == log)
    }

    /// Queues lines, or counts them as lost if there is no room for them. Returns false if the receiver of the queue
    /// has been dropped.
    fn send(&mut self, log: FollowedLog, lines: &Arc<SitedLines>) -> bool {
        if self.waiting.try_reserve(lines.bytes.len() as u64) {
            let batch = FollowedLines {
                log,
                lines: Arc::clone(lines),
                lost: self.lost,
                waiting: self.waiting.clone(),
            };
            match self.sender.try_send(batch) {
                Ok(()) => {
                    self.lost = 0;
                    return true;
                }
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(_)) => {}
            }
        }
        self.lost += lines.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        !self.sender.is_closed()
    }
}

impl Followers {
    /// Adds a follower, and sends it a first batch with the recent lines of the error log. The batch is empty if the
    /// follower follows only the access logs. If there are too many followers, the queue ends after this batch.
    pub(super) fn add(&mut self, new: NewFollower) {
        let mut follower = Follower {
            only: new.only,
            sender: new.sender,
            lost: 0,
            waiting: ByteBudget::new(MAX_BYTES),
        };
        let mut recent = SitedLines::default();
        if follower.follows(FollowedLog::Error) {
            for (site, line) in &self.recent {
                recent.push(site.as_ref(), line);
            }
        }
        self.all.retain(|follower| !follower.sender.is_closed());
        if follower.send(FollowedLog::Error, &recent.into()) && self.all.len() < MAX_FOLLOWERS {
            self.all.push(follower);
        }
    }

    /// Returns true if a log has a follower.
    pub(super) fn is_followed(&self, log: FollowedLog) -> bool {
        self.all.iter().any(|follower| follower.follows(log))
    }

    /// Sends complete lines to every follower of their log. `runs`: the sites of all lines.
    pub(super) fn push(&mut self, log: FollowedLog, bytes: &[u8], runs: &[NamedRun]) {
        // Without a follower, only error lines are processed, because they are kept for a new follower.
        if bytes.is_empty() || !self.is_followed(log) && log == FollowedLog::Access {
            return;
        }
        let plain = Arc::new(SitedLines::plain(bytes, runs));
        if log == FollowedLog::Error {
            self.remember(&plain);
        }
        self.all
            .retain_mut(|follower| !follower.follows(log) || follower.send(log, &plain));
    }

    /// Adds recent lines, and removes the oldest ones beyond the limits.
    fn remember(&mut self, lines: &SitedLines) {
        let mut start = 0;
        for run in &lines.runs {
            for line in lines.bytes[start..run.end].split_inclusive(|byte| *byte == b'\n') {
                self.recent_bytes += line.len();
                self.recent.push_back((run.site.clone(), line.to_vec()));
            }
            start = run.end;
        }
        while self.recent.len() > MAX_RECENT || self.recent_bytes > MAX_RECENT_BYTES {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_bytes -= oldest.1.len();
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

    /// Pushes lines that name no site.
    fn push(followers: &mut Followers, log: FollowedLog, bytes: &[u8]) {
        let end = bytes.len();
        followers.push(log, bytes, &[NamedRun { site: None, end }]);
    }

    #[test]
    fn a_new_follower_gets_the_recent_errors_without_colours() {
        let mut followers = Followers::default();
        push(&mut followers, FollowedLog::Access, b"not followed\n");
        for number in 0..MAX_RECENT + 1 {
            push(
                &mut followers,
                FollowedLog::Error,
                format!("\x1B[2m{number}\x1B[0m\n").as_bytes(),
            );
        }
        let (new, mut receiver) = queue(None);
        followers.add(new);
        let recent = receiver.try_recv().expect("the recent lines");
        assert!(recent.bytes().starts_with(b"1\n2\n") && recent.bytes().ends_with(b"\n200\n"));
        push(&mut followers, FollowedLog::Access, b"a\nb\n");
        let batch = receiver.try_recv().expect("a batch");
        assert_eq!(
            (batch.log, batch.bytes(), batch.lost),
            (FollowedLog::Access, &b"a\nb\n"[..], 0)
        );
        // A line longer than the limit displaces all others, and is not kept itself.
        push(&mut followers, FollowedLog::Error, &vec![b'x'; MAX_RECENT_BYTES + 1]);
        assert_eq!((followers.recent.len(), followers.recent_bytes), (0, 0));
    }

    #[test]
    fn a_slow_follower_loses_lines_and_a_closed_one_is_removed() {
        let mut followers = Followers::default();
        let (new, mut receiver) = queue(None);
        followers.add(new);
        // The empty first batch fills one place of the queue, so three batches of two lines are lost.
        for _ in 0..MAX_BATCHES + 2 {
            push(&mut followers, FollowedLog::Access, b"a\nb\n");
        }
        for _ in 0..MAX_BATCHES {
            assert_eq!(receiver.try_recv().expect("a batch").lost, 0);
        }
        push(&mut followers, FollowedLog::Access, b"c\n");
        assert_eq!(receiver.try_recv().expect("a batch").lost, 6);
        drop(receiver);
        push(&mut followers, FollowedLog::Access, b"d\n");
        assert!(followers.all.is_empty());
    }

    #[test]
    fn the_bytes_that_wait_for_a_follower_are_limited() {
        let mut followers = Followers::default();
        let (new, mut receiver) = queue(Some(FollowedLog::Access));
        followers.add(new);
        push(&mut followers, FollowedLog::Error, b"not followed\n");
        let mut half = vec![b'x'; MAX_BYTES as usize / 2 - 1];
        half.push(b'\n');
        for _ in 0..3 {
            push(&mut followers, FollowedLog::Access, &half);
        }
        assert!(receiver.try_recv().is_ok_and(|recent| recent.bytes().is_empty()));
        assert!(receiver.try_recv().is_ok_and(|batch| batch.bytes().len() == half.len()));
        // The received batch has made room for another one.
        push(&mut followers, FollowedLog::Access, b"a\n");
        assert_eq!(receiver.try_recv().map(|batch| batch.lost).ok(), Some(0));
        assert_eq!(receiver.try_recv().map(|batch| batch.lost).ok(), Some(1));
        assert!(receiver.try_recv().is_err());
    }

    #[test]
    fn the_number_of_followers_is_limited() {
        let mut followers = Followers::default();
        let mut receivers = Vec::new();
        for _ in 0..MAX_FOLLOWERS + 1 {
            let (new, receiver) = queue(None);
            followers.add(new);
            receivers.push(receiver);
        }
        push(&mut followers, FollowedLog::Access, b"a\n");
        let last = receivers.last_mut().expect("a follower");
        assert!(last.try_recv().is_ok_and(|recent| recent.bytes().is_empty()));
        assert!(last.try_recv().is_err());
        assert_eq!(followers.all.len(), MAX_FOLLOWERS);
    }

    #[test]
    fn lines_keep_their_sites_without_their_colours() {
        let mut followers = Followers::default();
        let named = |site: Option<&str>, end| NamedRun {
            site: site.map(Into::into),
            end,
        };
        let bytes = b"\x1B[2ma\x1B[0m\nb\nc\n";
        let runs = [named(Some("x"), 12), named(None, 14)];
        followers.push(FollowedLog::Error, bytes, &runs);
        let (new, mut receiver) = queue(None);
        followers.add(new);
        followers.push(FollowedLog::Access, b"d\n", &[named(Some("y"), 2)]);
        let recent = receiver.try_recv().expect("the recent lines");
        let found: Vec<_> = recent.by_site().collect();
        assert_eq!(found, [(Some("x"), &b"a\nb\n"[..]), (None, b"c\n")]);
        let batch = receiver.try_recv().expect("a batch");
        assert_eq!(batch.by_site().collect::<Vec<_>>(), [(Some("y"), &b"d\n"[..])]);
    }
}
