//! The thread that waits for programs to end, and kills those whose time is over: none is left behind, whoever leaves.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use crate::accounts::Process;
use crate::gateway::program::Child;
use rocknet_io::owned_thread::OwnedThread;

/// After its answer a program may tidy up for so long.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks whether one has ended.
const LOOK: Duration = Duration::from_millis(20);

enum Word {
    Watch(Entry),
    /// The time of the one with this flag is over after this.
    Leave(Arc<AtomicBool>, Duration),
    /// The time of all is over. The thread ends when they have, and at this time in any case.
    Stop(Instant),
}

/// A process that is waited for. It is killed when this is dropped, with its group.
pub struct Watched {
    killed: Arc<AtomicBool>,
    words: Sender<Word>,
    left: bool,
}

impl Child for Watched {
    fn ends_itself(&self) -> bool {
        !self.killed.load(Ordering::Acquire)
    }

    fn leave(&mut self) {
        self.left = true;
        self.end_within(GRACE);
    }
}

impl Watched {
    fn end_within(&self, time: Duration) {
        // By the flag: the number of one that has ended may be another's.
        let _ = self.words.send(Word::Leave(Arc::clone(&self.killed), time));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.left {
            self.end_within(Duration::ZERO);
        }
    }
}

/// The way to the thread, which is started by the first program.
#[derive(Default)]
pub struct Reaper(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Running {
        words: Sender<Word>,
        thread: OwnedThread,
    },
    Stopped,
}

impl Reaper {
    /// Has a child of this process waited for, and killed when its time is over. Its place among those that run is taken until
    /// it has gone, whoever has left it before.
    pub fn watch(&self, process: impl Into<Process>, time: Duration, place: Box<dyn Send>) -> io::Result<Watched> {
        let mut process = process.into();
        let words = match self.words() {
            Ok(words) => words,
            Err(error) => {
                process.kill();
                return Err(error);
            }
        };
        let killed = Arc::<AtomicBool>::default();
        let until = Instant::now() + time;
        let watch = Word::Watch(Entry {
            process,
            at: until,
            until,
            killed: Arc::clone(&killed),
            left: false,
            has_ended: false,
            _place: place,
        });
        // The thread may have ended meanwhile.
        if let Err(SendError(Word::Watch(mut entry))) = words.send(watch) {
            entry.process.kill();
            return Err(is_stopped());
        }
        Ok(Watched {
            killed,
            words,
            left: false,
        })
    }

    fn words(&self) -> io::Result<Sender<Word>> {
        let mut state = self.state();
        match &*state {
            State::Running { words, .. } => Ok(words.clone()),
            State::Stopped => Err(is_stopped()),
            State::Idle => {
                let (words, heard) = channel();
                let thread = OwnedThread::start("rn-cgi", move || run(&heard))?;
                *state = State::Running {
                    words: words.clone(),
                    thread,
                };
                Ok(words)
            }
        }
    }

    /// Kills all that run, with their groups, because what programs have started does not end by itself. Returns whether all
    /// had ended at `deadline`. No program is watched from now on.
    pub fn stop(&self, deadline: Instant) -> bool {
        let state = std::mem::replace(&mut *self.state(), State::Stopped);
        match state {
            State::Running { words, thread } => {
                let _ = words.send(Word::Stop(deadline));
                thread.join(deadline + LOOK)
            }
            State::Idle | State::Stopped => true,
        }
    }

    /// Nothing that can panic runs while it is locked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let State::Running { words, .. } = &*self.state() {
            let _ = words.send(Word::Stop(Instant::now() + GRACE));
        }
    }
}

fn is_stopped() -> io::Error {
    io::Error::other("the server is being stopped")
}

struct Entry {
    process: Process,
    /// When it is killed, with its group.
    at: Instant,
    /// When it is at the latest.
    until: Instant,
    killed: Arc<AtomicBool>,
    /// Nobody reads what it says any more. Before, its end is not waited for: while it is a zombie its group keeps the
    /// number, and what it has started can be ended too.
    left: bool,
    /// It was waited for. What it has started goes on.
    has_ended: bool,
    /// Counts it for as long as anything of it lives.
    _place: Box<dyn Send>,
}

impl Entry {
    /// Kills what has to be. Whether there is something left to look at again.
    fn goes_on(&mut self, now: Instant) -> bool {
        let is_over = self.at <= now;
        if is_over {
            self.killed.store(true, Ordering::Release);
            let killed = self.process.signal_group(Signal::KILL);
            if killed.is_err_and(|error| is_unclear(&error)) {
                return true;
            }
        }
        if !self.left && !is_over {
            return true;
        }
        if !self.has_ended {
            // One that no signal of ours ends, since it has become another user, or waits for a disk, is looked at again:
            // nobody else may wait for it.
            match self.process.try_wait() {
                Ok(None) => return true,
                Err(error) if is_unclear(&error) => return true,
                Ok(Some(_)) | Err(_) => {}
            }
            self.has_ended = true;
            // What it has left behind with its answer complete was left on purpose, and has all of the time.
            self.at = self.until;
        }
        !is_over && self.process.is_group_left()
    }
}

/// Whether a program may go on although a call about it failed: neither the system nor the helper has said that there is none.
fn is_unclear(error: &io::Error) -> bool {
    let is_none = [Errno::CHILD, Errno::SRCH, Errno::PERM].map(Errno::raw_os_error);
    error.kind() != io::ErrorKind::BrokenPipe && !error.raw_os_error().is_some_and(|number| is_none.contains(&number))
}

fn run(words: &Receiver<Word>) {
    let mut all: Vec<Entry> = Vec::new();
    let mut stop_by: Option<Instant> = None;
    loop {
        if stop_by.is_some_and(|until| all.is_empty() || until <= Instant::now()) {
            return;
        }
        let word = if all.is_empty() {
            words.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            words.recv_timeout(LOOK)
        };
        match word {
            Ok(Word::Watch(entry)) => all.push(entry),
            Ok(Word::Leave(killed, within)) => {
                let at = Instant::now() + within;
                for entry in all.iter_mut().filter(|entry| Arc::ptr_eq(&entry.killed, &killed)) {
                    entry.at = entry.at.min(at);
                    entry.left = true;
                }
            }
            Ok(Word::Stop(until)) => stop_by = Some(until),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        if stop_by.is_some() {
            // Those that came after the word as well.
            for entry in &mut all {
                (entry.at, entry.until, entry.left) = (now, now, true);
            }
        }
        all.retain_mut(|entry| entry.goes_on(now));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::thread;

    use rustix::process::{Pid, kill_process};
    use tokio::sync::Semaphore;

    use super::*;

    const LONG: Duration = Duration::from_secs(900);

    #[test]
    fn a_place_is_taken_until_its_program_has_gone() {
        static PLACES: Semaphore = Semaphore::const_new(1);
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let pid = Pid::from_child(&program);
        let place = PLACES.try_acquire().expect("a place");
        let reaper = Reaper::default();
        let mut watched = reaper.watch(program, LONG, Box::new(place)).expect("a thread");
        // The answer is whole, and nobody speaks with it any more.
        watched.leave();
        drop(watched);
        assert_eq!(PLACES.available_permits(), 0);
        kill_process(pid, Signal::KILL).expect("it still runs");
        let deadline = Instant::now() + Duration::from_secs(10);
        while PLACES.available_permits() == 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(PLACES.available_permits(), 1);
    }

    /// A program that has ended behind its answer, and left another one that runs for ever.
    fn left_behind(reaper: &Reaper, time: Duration, place: Box<dyn Send>) -> std::process::ChildStdout {
        let mut program = Command::new("sh");
        let program = program.args(["-c", "sleep 1000 & echo"]).process_group(0);
        let mut program = program.stdout(Stdio::piped()).spawn().expect("a program");
        let mut output = program.stdout.take().expect("a pipe");
        let mut watched = reaper.watch(program, time, place).expect("a thread");
        output.read_exact(&mut [0]).expect("a line");
        watched.leave();
        output
    }

    #[test]
    fn a_place_is_kept_while_nobody_knows_whether_its_program_has_ended() {
        for (process, goes_on) in [
            (Process::failing(|| io::ErrorKind::TimedOut.into()), true),
            (Process::failing(|| Errno::IO.into()), true),
            (Process::failing(|| Errno::CHILD.into()), false),
            (Process::failing(|| Errno::SRCH.into()), false),
            (Process::failing(|| io::ErrorKind::BrokenPipe.into()), false),
        ] {
            let now = Instant::now();
            let mut entry = Entry {
                process,
                at: now + LONG,
                until: now + LONG,
                killed: Arc::default(),
                left: true,
                has_ended: false,
                _place: Box::new(()),
            };
            assert_eq!(entry.goes_on(now), goes_on);
            assert_eq!(entry.goes_on(now + LONG), goes_on, "its time is over");
        }
    }

    #[test]
    fn what_a_program_leaves_behind_keeps_its_place_and_ends_with_its_time() {
        static PLACES: Semaphore = Semaphore::const_new(1);
        let place = PLACES.try_acquire().expect("a place");
        let began = Instant::now();
        let reaper = Reaper::default();
        let mut output = left_behind(&reaper, Duration::from_millis(300), Box::new(place));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        assert!(matches!(end, Ok(Ok(0))), "it goes on: {end:?}");
        assert!(began.elapsed() >= Duration::from_millis(300));
        while PLACES.available_permits() == 0 && began.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert_eq!(PLACES.available_permits(), 1);
    }

    #[test]
    fn one_that_cannot_be_killed_is_in_nobodys_way() {
        // It leads no group, so that the signal does not find it: as little as one that has become another user.
        let deaf = Command::new("sleep").arg("1000").spawn().expect("a program");
        let pid = Pid::from_child(&deaf);
        let reaper = Reaper::default();
        drop(reaper.watch(deaf, LONG, Box::new(())).expect("a thread"));
        let mut other = Command::new("sleep");
        let other = other.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut other = other.spawn().expect("a program");
        let mut output = other.stdout.take().expect("a pipe");
        drop(reaper.watch(other, LONG, Box::new(())).expect("a thread"));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        // It must not outlive a test that fails.
        let _ = kill_process(pid, Signal::KILL);
        assert!(matches!(end, Ok(Ok(0))), "nobody is killed any more: {end:?}");
    }

    #[test]
    fn stopping_ends_all_at_once_and_starts_nothing_again() {
        let reaper = Reaper::default();
        // Left behind by one, and spoken with still.
        let mut left = left_behind(&reaper, LONG, Box::new(()));
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let watched = reaper.watch(program, LONG, Box::new(())).expect("a thread");
        assert!(reaper.stop(Instant::now() + Duration::from_secs(60)));
        assert_eq!(left.read(&mut [0]).expect("its end"), 0);
        assert!(!watched.ends_itself());
        let mut late = Command::new("sleep");
        let late = late.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut late = late.spawn().expect("a program");
        let mut output = late.stdout.take().expect("a pipe");
        assert!(reaper.watch(late, LONG, Box::new(())).is_err());
        assert_eq!(output.read(&mut [0]).expect("its end"), 0);
    }
}
