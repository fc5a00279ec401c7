//! A program that was started: waited for, and sent signals with its group.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child;
use rustix::process::{Pid, Signal, kill_process};

/// Leads a process group of its own. Dropping it leaves the program running.
pub struct Process(Child);

/// Longest wait for a program that was killed: one that waits for a disk ends later, and nobody waits for that.
const END: Duration = Duration::from_secs(2);
/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(2);

impl Process {
    /// How the program ended, if it has. It is not a zombie any more then.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
    }

    /// Sends a signal to all of its group. Fails where nothing is left of it.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        child::signal_group(self.0.id(), signal)
    }

    /// Whether anything is left of its group, after the program has been waited for.
    pub fn is_group_left(&self) -> bool {
        child::is_group_left(self.0.id())
    }

    /// Kills its group and waits for the program.
    pub fn kill(&mut self) {
        let _ = self.signal_group(Signal::KILL);
        let until = Instant::now() + END;
        while matches!(self.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(PAUSE);
        }
    }
}

impl From<Child> for Process {
    fn from(child: Child) -> Process {
        Process(child)
    }
}
