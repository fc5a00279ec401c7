//! The thread that waits for programs to end, and kills those whose time is over: none is left behind, whoever leaves.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use crate::accounts::Process;
use crate::gateway::cgi_program::ProgramProcess;
use rocknet_io::owned_thread::OwnedThread;

/// After its answer a program may tidy up for so long.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks whether one has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

enum ReaperCommand {
    Watch(ReaperEntry),
    /// The time of the one with this flag is over after this.
    Release(Arc<AtomicBool>, Duration),
    /// The time of all is over. The thread ends when they have, and at this time in any case.
    Stop(Instant),
}

/// A process that is waited for. It is killed when this is dropped, with its group.
pub struct WatchedProcess {
    killed: Arc<AtomicBool>,
    commands: Sender<ReaperCommand>,
    is_released: bool,
}

impl ProgramProcess for WatchedProcess {
    fn has_not_been_killed(&self) -> bool {
        !self.killed.load(Ordering::Acquire)
    }

    fn release(&mut self) {
        self.is_released = true;
        self.end_within(GRACE);
    }
}

impl WatchedProcess {
    fn end_within(&self, time: Duration) {
        // By the flag: the number of one that has ended may be another's.
        let _ = self
            .commands
            .send(ReaperCommand::Release(Arc::clone(&self.killed), time));
    }
}

impl Drop for WatchedProcess {
    fn drop(&mut self) {
        if !self.is_released {
            self.end_within(Duration::ZERO);
        }
    }
}

/// The way to the thread, which is started by the first program.
#[derive(Default)]
pub struct Reaper(Mutex<ReaperState>);

#[derive(Default)]
enum ReaperState {
    #[default]
    Idle,
    Running {
        commands: Sender<ReaperCommand>,
        thread: OwnedThread,
    },
    Stopped,
}

impl Reaper {
    /// Has a child of this process waited for, and killed when its time is over. Its place among those that run is taken until
    /// it has gone, whoever has left it before.
    pub fn watch(
        &self,
        process: impl Into<Process>,
        time: Duration,
        permit: Box<dyn Send>,
    ) -> io::Result<WatchedProcess> {
        let mut process = process.into();
        let commands = match self.commands() {
            Ok(commands) => commands,
            Err(error) => {
                process.kill();
                return Err(error);
            }
        };
        let killed = Arc::<AtomicBool>::default();
        let latest_kill_at = Instant::now() + time;
        let watch = ReaperCommand::Watch(ReaperEntry {
            process,
            kill_at: latest_kill_at,
            latest_kill_at,
            killed: Arc::clone(&killed),
            is_released: false,
            has_ended: false,
            _permit: permit,
        });
        // The thread may have ended meanwhile.
        if let Err(SendError(ReaperCommand::Watch(mut entry))) = commands.send(watch) {
            entry.process.kill();
            return Err(is_stopped());
        }
        Ok(WatchedProcess {
            killed,
            commands,
            is_released: false,
        })
    }

    fn commands(&self) -> io::Result<Sender<ReaperCommand>> {
        let mut state = self.state();
        match &*state {
            ReaperState::Running { commands, .. } => Ok(commands.clone()),
            ReaperState::Stopped => Err(is_stopped()),
            ReaperState::Idle => {
                let (commands, receiver) = channel();
                let thread = OwnedThread::start("rn-cgi", move || run(&receiver))?;
                *state = ReaperState::Running {
                    commands: commands.clone(),
                    thread,
                };
                Ok(commands)
            }
        }
    }

    /// Kills all that run, with their groups, because what programs have started does not end by itself. Returns whether all
    /// had ended at `deadline`. No program is watched from now on.
    pub fn stop(&self, deadline: Instant) -> bool {
        let state = std::mem::replace(&mut *self.state(), ReaperState::Stopped);
        match state {
            ReaperState::Running { commands, thread } => {
                let _ = commands.send(ReaperCommand::Stop(deadline));
                thread.join(deadline + POLL_INTERVAL)
            }
            ReaperState::Idle | ReaperState::Stopped => true,
        }
    }

    /// Nothing that can panic runs while it is locked.
    fn state(&self) -> MutexGuard<'_, ReaperState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if let ReaperState::Running { commands, .. } = &*self.state() {
            let _ = commands.send(ReaperCommand::Stop(Instant::now() + GRACE));
        }
    }
}

fn is_stopped() -> io::Error {
    io::Error::other("the server is being stopped")
}

struct ReaperEntry {
    process: Process,
    /// When it is killed, with its group.
    kill_at: Instant,
    /// When it is at the latest.
    latest_kill_at: Instant,
    killed: Arc<AtomicBool>,
    /// Nobody reads what it says any more. Before, its end is not waited for: while it is a zombie its group keeps the
    /// number, and what it has started can be ended too.
    is_released: bool,
    /// It was waited for. What it has started goes on.
    has_ended: bool,
    /// Counts it for as long as anything of it lives.
    _permit: Box<dyn Send>,
}

impl ReaperEntry {
    /// Kills what has to be. Whether there is something left to look at again.
    fn update(&mut self, now: Instant) -> bool {
        let is_over = self.kill_at <= now;
        if is_over {
            self.killed.store(true, Ordering::Release);
            let killed = self.process.signal_group(Signal::KILL);
            if killed.is_err_and(|error| may_still_run(&error)) {
                return true;
            }
        }
        if !self.is_released && !is_over {
            return true;
        }
        if !self.has_ended {
            // One that no signal of ours ends, since it has become another user, or waits for a disk, is looked at again:
            // nobody else may wait for it.
            match self.process.try_wait() {
                Ok(None) => return true,
                Err(error) if may_still_run(&error) => return true,
                Ok(Some(_)) | Err(_) => {}
            }
            self.has_ended = true;
            // What it has left behind with its answer complete was left on purpose, and has all of the time.
            self.kill_at = self.latest_kill_at;
        }
        !is_over && self.process.is_group_left()
    }
}

/// Whether a program may go on although a call about it failed: neither the system nor the helper has said that there is none.
fn may_still_run(error: &io::Error) -> bool {
    let is_none = [Errno::CHILD, Errno::SRCH, Errno::PERM].map(Errno::raw_os_error);
    error.kind() != io::ErrorKind::BrokenPipe && !error.raw_os_error().is_some_and(|number| is_none.contains(&number))
}

fn run(commands: &Receiver<ReaperCommand>) {
    let mut all: Vec<ReaperEntry> = Vec::new();
    let mut stop_by: Option<Instant> = None;
    loop {
        if stop_by.is_some_and(|until| all.is_empty() || until <= Instant::now()) {
            return;
        }
        let command = if all.is_empty() {
            commands.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            commands.recv_timeout(POLL_INTERVAL)
        };
        match command {
            Ok(ReaperCommand::Watch(entry)) => all.push(entry),
            Ok(ReaperCommand::Release(killed, within)) => {
                let at = Instant::now() + within;
                for entry in all.iter_mut().filter(|entry| Arc::ptr_eq(&entry.killed, &killed)) {
                    entry.kill_at = entry.kill_at.min(at);
                    entry.is_released = true;
                }
            }
            Ok(ReaperCommand::Stop(until)) => stop_by = Some(until),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        if stop_by.is_some() {
            // Those that came after the command as well.
            for entry in &mut all {
                (entry.kill_at, entry.latest_kill_at, entry.is_released) = (now, now, true);
            }
        }
        all.retain_mut(|entry| entry.update(now));
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
    fn a_permit_is_held_until_its_program_has_ended() {
        static PERMITS: Semaphore = Semaphore::const_new(1);
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let pid = Pid::from_child(&program);
        let permit = PERMITS.try_acquire().expect("a place");
        let reaper = Reaper::default();
        let mut watched = reaper.watch(program, LONG, Box::new(permit)).expect("a thread");
        // The answer is whole, and nobody speaks with it any more.
        watched.release();
        drop(watched);
        assert_eq!(PERMITS.available_permits(), 0);
        kill_process(pid, Signal::KILL).expect("it still runs");
        let deadline = Instant::now() + Duration::from_secs(10);
        while PERMITS.available_permits() == 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(PERMITS.available_permits(), 1);
    }

    /// A program that has ended behind its answer, and left another one that runs for ever.
    fn with_background_process(reaper: &Reaper, time: Duration, permit: Box<dyn Send>) -> std::process::ChildStdout {
        let mut program = Command::new("sh");
        let program = program.args(["-c", "sleep 1000 & echo"]).process_group(0);
        let mut program = program.stdout(Stdio::piped()).spawn().expect("a program");
        let mut output = program.stdout.take().expect("a pipe");
        let mut watched = reaper.watch(program, time, permit).expect("a thread");
        output.read_exact(&mut [0]).expect("a line");
        watched.release();
        output
    }

    #[test]
    fn a_permit_is_held_while_the_state_of_its_program_is_unknown() {
        for (process, goes_on) in [
            (Process::failing(|| io::ErrorKind::TimedOut.into()), true),
            (Process::failing(|| Errno::IO.into()), true),
            (Process::failing(|| Errno::CHILD.into()), false),
            (Process::failing(|| Errno::SRCH.into()), false),
            (Process::failing(|| io::ErrorKind::BrokenPipe.into()), false),
        ] {
            let now = Instant::now();
            let mut entry = ReaperEntry {
                process,
                kill_at: now + LONG,
                latest_kill_at: now + LONG,
                killed: Arc::default(),
                is_released: true,
                has_ended: false,
                _permit: Box::new(()),
            };
            assert_eq!(entry.update(now), goes_on);
            assert_eq!(entry.update(now + LONG), goes_on, "its time is over");
        }
    }

    #[test]
    fn background_processes_hold_the_permit_and_end_at_the_time_limit() {
        static PERMITS: Semaphore = Semaphore::const_new(1);
        let permit = PERMITS.try_acquire().expect("a place");
        let began = Instant::now();
        let reaper = Reaper::default();
        let mut output = with_background_process(&reaper, Duration::from_millis(300), Box::new(permit));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        assert!(matches!(end, Ok(Ok(0))), "it goes on: {end:?}");
        assert!(began.elapsed() >= Duration::from_millis(300));
        while PERMITS.available_permits() == 0 && began.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert_eq!(PERMITS.available_permits(), 1);
    }

    #[test]
    fn a_program_that_cannot_be_killed_delays_no_other() {
        // It leads no group, so that the signal does not find it: as little as one that has become another user.
        let unkillable = Command::new("sleep").arg("1000").spawn().expect("a program");
        let pid = Pid::from_child(&unkillable);
        let reaper = Reaper::default();
        drop(reaper.watch(unkillable, LONG, Box::new(())).expect("a thread"));
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
    fn stop_kills_all_at_once_and_rejects_new_programs() {
        let reaper = Reaper::default();
        // Left behind by one, and spoken with still.
        let mut left = with_background_process(&reaper, LONG, Box::new(()));
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let watched = reaper.watch(program, LONG, Box::new(())).expect("a thread");
        assert!(reaper.stop(Instant::now() + Duration::from_secs(60)));
        assert_eq!(left.read(&mut [0]).expect("its end"), 0);
        assert!(!watched.has_not_been_killed());
        let mut late = Command::new("sleep");
        let late = late.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut late = late.spawn().expect("a program");
        let mut output = late.stdout.take().expect("a pipe");
        assert!(reaper.watch(late, LONG, Box::new(())).is_err());
        assert_eq!(output.read(&mut [0]).expect("its end"), 0);
    }
}
