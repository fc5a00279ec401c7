//! A program that was started, by this process or by the helper: waited for, and sent signals with its group.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child;
use rustix::process::{Pid, Signal, kill_process};

use super::helper::Started;

/// Leads a process group of its own. Dropping it leaves the program running.
pub struct Process(Kind);

enum Kind {
    Child(Child),
    Helped(Started),
}

/// Longest wait for a program that was killed: one that waits for a disk ends later, and nobody waits for that.
const END: Duration = Duration::from_secs(2);
/// Between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(2);

impl Process {
    /// How the program ended, if it has. It is not a zombie any more then.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.0 {
            Kind::Child(child) => child.try_wait(),
            Kind::Helped(started) => started.try_wait(),
        }
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match &self.0 {
            Kind::Child(child) => {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                Ok(kill_process(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
            }
            Kind::Helped(started) => started.signal(signal, false),
        }
    }

    /// Sends a signal to all of its group. Fails where nothing is left of it.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        match &self.0 {
            Kind::Child(child) => child::signal_group(child.id(), signal),
            Kind::Helped(started) => started.signal(signal, true),
        }
    }

    /// Whether anything is left of its group, after the program has been waited for.
    pub fn is_group_left(&self) -> bool {
        match &self.0 {
            Kind::Child(child) => child::is_group_left(child.id()),
            Kind::Helped(started) => started.is_group_left(),
        }
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
        Process(Kind::Child(child))
    }
}

impl From<Started> for Process {
    fn from(started: Started) -> Process {
        Process(Kind::Helped(started))
    }
}
