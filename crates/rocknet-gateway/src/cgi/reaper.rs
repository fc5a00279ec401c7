//! The thread that waits for CGI programs to end and kills them at their time limit, so that no program runs
//! indefinitely.

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

/// Time that a program has to end after its response is complete.
const GRACE: Duration = Duration::from_secs(5);
/// Poll interval for programs that have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Command to the thread.
enum ReaperCommand {
    /// Watches a program.
    Watch(ReaperEntry),
    /// Kills the program with this `killed` flag after the duration, unless the program ends earlier.
    Release(Arc<AtomicBool>, Duration),
    /// Kills all programs immediately. The thread ends when they have ended, or at this deadline.
    Stop(Instant),
}

/// Handle of a watched process. Dropping it kills the process with its group, unless it was released.
pub struct WatchedProcess {
    /// Set when the process is killed.
    killed: Arc<AtomicBool>,
    commands: Sender<ReaperCommand>,
    /// True once the process may end by itself.
    is_released: bool,
}

impl ProgramProcess for WatchedProcess {
    fn was_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    fn release(&mut self) {
        self.is_released = true;
        self.end_within(GRACE);
    }
}

impl WatchedProcess {
    /// Permits the program to run for this time at most, after which it is killed.
    fn end_within(&self, time: Duration) {
        // The flag identifies the program, because its process number may have been reused. Sending fails only after
        // the server has stopped the thread, which kills all programs.
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

/// Handle of the thread, which is started with the first program.
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
    /// Watches a started program and kills it after `time`. `permit` is held until the process and its group have
    /// ended, even if the handle is dropped earlier.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started or the server is being stopped. In both cases the process is
    /// killed.
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
        // The thread may have ended in the meantime.
        if let Err(SendError(ReaperCommand::Watch(mut entry))) = commands.send(watch) {
            entry.process.kill();
            entry.has_ended = true;
            return Err(stopped_error());
        }
        Ok(WatchedProcess {
            killed,
            commands,
            is_released: false,
        })
    }

    /// Returns the sender of commands to the thread, and starts the thread if it does not run yet.
    fn commands(&self) -> io::Result<Sender<ReaperCommand>> {
        let mut state = self.state();
        match &*state {
            ReaperState::Running { commands, .. } => Ok(commands.clone()),
            ReaperState::Stopped => Err(stopped_error()),
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

    /// Kills all programs with their groups, because background processes of programs do not end by themselves. Rejects
    /// new programs from now on. Returns whether the thread ended by `deadline`. A program that cannot be killed delays
    /// the thread up to the deadline.
    pub fn stop(&self, deadline: Instant) -> bool {
        let state = std::mem::replace(&mut *self.state(), ReaperState::Stopped);
        match state {
            ReaperState::Running { commands, thread } => {
                let _ = commands.send(ReaperCommand::Stop(deadline));
                // The thread notices the deadline up to one interval late.
                thread.join(deadline + POLL_INTERVAL)
            }
            ReaperState::Idle | ReaperState::Stopped => true,
        }
    }

    /// Locks the state. Poisoning is ignored, because no code that can panic runs while it is locked.
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

fn stopped_error() -> io::Error {
    io::Error::other("the server is being stopped")
}

/// A watched process.
struct ReaperEntry {
    process: Process,
    /// Time at which the process is killed with its group.
    kill_at: Instant,
    /// Upper bound of `kill_at`: the time limit of the program.
    latest_kill_at: Instant,
    /// Set when the process is killed. Identifies the process in commands.
    killed: Arc<AtomicBool>,
    /// True if the output of the process is no longer read. Until then, or until `kill_at`, the process is not reaped:
    /// a zombie keeps the number of its group, so that its background processes can be killed too.
    is_released: bool,
    /// True if the process has been reaped. Its background processes may still run.
    has_ended: bool,
    /// Held until the process and its group have ended.
    _permit: Box<dyn Send>,
}

impl Drop for ReaperEntry {
    /// Kills a process that has not been reaped. This happens only when the server is being stopped: at the deadline,
    /// and if the process was added after the thread had ended.
    fn drop(&mut self) {
        if !self.has_ended {
            self.killed.store(true, Ordering::Release);
            let _ = self.process.signal_group(Signal::KILL);
        }
    }
}

impl ReaperEntry {
    /// Kills the process if its time is over, and reaps it if it has ended. Returns whether the process or its group is
    /// still to be watched.
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
            // A process may survive the signal if it has changed its user or waits for a disk. It is watched further,
            // because only this thread may reap it.
            match self.process.try_wait() {
                Ok(None) => return true,
                Err(error) if may_still_run(&error) => return true,
                Ok(Some(_)) | Err(_) => {}
            }
            self.has_ended = true;
            // Background processes of a program whose response is complete are intended, and may use the whole time
            // limit.
            self.kill_at = self.latest_kill_at;
        }
        !is_over && self.process.group_has_members()
    }
}

/// Returns true if a program may still run although a call failed with this error. Returns false for `ECHILD` and
/// `ESRCH`, which mean that there is no such process. Returns false for a broken pipe to the account helper, because
/// programs end with the helper that has started them. Returns false for `EPERM`, which means that the processes have
/// changed their user; the result of `try_wait` then decides.
fn may_still_run(error: &io::Error) -> bool {
    let ignored = [Errno::CHILD, Errno::SRCH, Errno::PERM].map(Errno::raw_os_error);
    error.kind() != io::ErrorKind::BrokenPipe && !error.raw_os_error().is_some_and(|number| ignored.contains(&number))
}

/// Runs the thread: executes commands, and updates all processes in each poll interval.
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
            // Programs that were added after the command are included.
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

    /// Time limit that no test reaches.
    const LONG: Duration = Duration::from_secs(900);

    #[test]
    fn a_permit_is_held_until_its_program_has_ended() {
        static PERMITS: Semaphore = Semaphore::const_new(1);
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let pid = Pid::from_child(&program);
        let permit = PERMITS.try_acquire().expect("a permit");
        let reaper = Reaper::default();
        let mut watched = reaper.watch(program, LONG, Box::new(permit)).expect("a thread");
        // The response is complete and the exchange is over.
        watched.release();
        drop(watched);
        assert_eq!(PERMITS.available_permits(), 0);
        kill_process(pid, Signal::KILL).expect("the program still runs");
        let deadline = Instant::now() + Duration::from_secs(10);
        while PERMITS.available_permits() == 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(PERMITS.available_permits(), 1);
    }

    /// Starts a program that ends after its output and leaves a background process that does not end. Returns the
    /// output, which ends with the background process.
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
        // Every call for one of these processes fails with this error.
        for (process, is_watched) in [
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
            assert_eq!(entry.update(now), is_watched);
            assert_eq!(entry.update(now + LONG), is_watched, "after its time limit");
        }
    }

    #[test]
    fn background_processes_hold_the_permit_and_end_at_the_time_limit() {
        static PERMITS: Semaphore = Semaphore::const_new(1);
        let permit = PERMITS.try_acquire().expect("a permit");
        let began = Instant::now();
        let reaper = Reaper::default();
        let mut output = with_background_process(&reaper, Duration::from_millis(300), Box::new(permit));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        assert!(matches!(end, Ok(Ok(0))), "the background process still runs: {end:?}");
        assert!(began.elapsed() >= Duration::from_millis(300));
        while PERMITS.available_permits() == 0 && began.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        assert_eq!(PERMITS.available_permits(), 1);
    }

    #[test]
    fn a_program_that_cannot_be_killed_delays_no_other() {
        // The program leads no process group, so the signal does not reach it. The same happens to a process that has
        // changed its user.
        let unkillable = Command::new("sleep").arg("1000").spawn().expect("a program");
        let pid = Pid::from_child(&unkillable);
        let reaper = Reaper::default();
        // Dropping the handle makes the thread kill the program.
        drop(reaper.watch(unkillable, LONG, Box::new(())).expect("a thread"));
        let mut other = Command::new("sleep");
        let other = other.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut other = other.spawn().expect("a program");
        let mut output = other.stdout.take().expect("a pipe");
        drop(reaper.watch(other, LONG, Box::new(())).expect("a thread"));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        // Killed here, so that it does not outlive a failing test.
        let _ = kill_process(pid, Signal::KILL);
        assert!(matches!(end, Ok(Ok(0))), "the other program is not killed: {end:?}");
    }

    #[test]
    fn a_program_that_is_added_after_the_end_of_the_thread_is_killed() {
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut program = program.spawn().expect("a program");
        let pid = Pid::from_child(&program);
        let mut output = program.stdout.take().expect("a pipe");
        let kill_at = Instant::now() + LONG;
        let entry = ReaperEntry {
            process: program.into(),
            kill_at,
            latest_kill_at: kill_at,
            killed: Arc::default(),
            is_released: false,
            has_ended: false,
            _permit: Box::new(()),
        };
        let (commands, receiver) = channel();
        let stop = ReaperCommand::Stop(Instant::now() + LONG);
        commands.send(stop).expect("a channel");
        commands.send(ReaperCommand::Watch(entry)).expect("a channel");
        run(&receiver);
        drop(receiver);
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        let _ = kill_process(pid, Signal::KILL);
        assert!(matches!(end, Ok(Ok(0))), "the program still runs: {end:?}");
    }

    #[test]
    fn stop_kills_all_at_once_and_rejects_new_programs() {
        let reaper = Reaper::default();
        // One background process of a released program, and one program that is still in use.
        let mut background_output = with_background_process(&reaper, LONG, Box::new(()));
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let watched = reaper.watch(program, LONG, Box::new(())).expect("a thread");
        assert!(reaper.stop(Instant::now() + Duration::from_secs(60)));
        assert_eq!(background_output.read(&mut [0]).expect("the end of the output"), 0);
        assert!(watched.was_killed());
        let mut late = Command::new("sleep");
        let late = late.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut late = late.spawn().expect("a program");
        let mut output = late.stdout.take().expect("a pipe");
        assert!(reaper.watch(late, LONG, Box::new(())).is_err());
        assert_eq!(output.read(&mut [0]).expect("the end of the output"), 0);
    }
}
