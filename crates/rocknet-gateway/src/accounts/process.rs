//! A started program, which is a child of this process or of the account helper: reaps the program, and sends signals
//! to it or to its process group.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::helper::HelperProcess;

/// A started program, which is the leader of its process group. Dropping the value leaves the program running.
pub struct Process(ProcessKind);

enum ProcessKind {
    Child(ChildProcess),
    ViaHelper(HelperProcess),
    /// A process for tests: every call fails, and its group has no members.
    #[cfg(test)]
    Failing(fn() -> io::Error),
}

struct ChildProcess {
    child: Child,
    /// True if the program has been reaped. Another process may then have its process number.
    is_reaped: bool,
    /// True if the process group has ended. Another group may then have its number.
    group_has_ended: AtomicBool,
}

impl ChildProcess {
    fn pid(&self) -> io::Result<Pid> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.child.try_wait()?;
        self.is_reaped |= ended.is_some();
        Ok(ended)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.is_reaped {
            return Err(Errno::SRCH.into());
        }
        Ok(kill_process(self.pid()?, signal)?)
    }

    fn signal_group(&self, signal: Signal) -> io::Result<()> {
        if !self.group_has_members() {
            return Err(Errno::SRCH.into());
        }
        child::signal_group(self.child.id(), signal)
    }

    /// Returns whether the group has members.
    ///
    /// Until the program is reaped, it is a member itself. After that, the system assigns the number of the group to no
    /// new process while the group has members. A process with that number therefore shows that the group has ended.
    fn group_has_members(&self) -> bool {
        if !self.is_reaped {
            return true;
        }
        if self.group_has_ended.load(Ordering::Relaxed) {
            return false;
        }
        let is_free = |pid| matches!(test_kill_process(pid), Err(Errno::SRCH));
        let has_members = self.pid().is_ok_and(is_free) && child::group_has_members(self.child.id());
        if !has_members {
            self.group_has_ended.store(true, Ordering::Relaxed);
        }
        has_members
    }
}

/// Maximum wait for the end of a killed program. A program that is blocked on a disk may end later.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// Poll interval for the end of a program.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl Process {
    /// Returns the process ID; `None` if it is unknown. Once the program was reaped, another process may have this ID.
    pub fn id(&self) -> Option<u32> {
        match &self.0 {
            ProcessKind::Child(own) => Some(own.child.id()),
            ProcessKind::ViaHelper(started) => started.id(),
            #[cfg(test)]
            ProcessKind::Failing(_) => None,
        }
    }

    /// Reaps the program if it has ended, and returns its exit status; `None` while it runs.
    ///
    /// # Errors
    ///
    /// Returns the error of the system or of the helper.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.0 {
            ProcessKind::Child(own) => own.try_wait(),
            ProcessKind::ViaHelper(started) => started.try_wait(),
            #[cfg(test)]
            ProcessKind::Failing(error) => Err(error()),
        }
    }

    /// Sends a signal to the program, but not to the rest of its group.
    ///
    /// # Errors
    ///
    /// Returns `ESRCH` if the program has been reaped, or the error of the system or the helper.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match &self.0 {
            ProcessKind::Child(own) => own.signal(signal),
            ProcessKind::ViaHelper(started) => started.signal(signal, false),
            #[cfg(test)]
            ProcessKind::Failing(error) => Err(error()),
        }
    }

    /// Sends a signal to the whole process group of the program.
    ///
    /// # Errors
    ///
    /// Returns `ESRCH` if the group has no members, or the error of the system or the helper.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        match &self.0 {
            ProcessKind::Child(own) => own.signal_group(signal),
            ProcessKind::ViaHelper(started) => started.signal(signal, true),
            #[cfg(test)]
            ProcessKind::Failing(error) => Err(error()),
        }
    }

    /// Returns whether the process group has members. The program itself is a member until it is reaped.
    pub fn group_has_members(&self) -> bool {
        match &self.0 {
            ProcessKind::Child(own) => own.group_has_members(),
            ProcessKind::ViaHelper(started) => started.group_has_members(),
            #[cfg(test)]
            ProcessKind::Failing(_) => false,
        }
    }

    /// Creates a process whose calls fail with this error.
    #[cfg(test)]
    pub fn failing(error: fn() -> io::Error) -> Process {
        Process(ProcessKind::Failing(error))
    }

    /// Kills the process group and waits for the end of the program, at most two seconds.
    pub fn kill(&mut self) {
        let _ = self.signal_group(Signal::KILL);
        let until = Instant::now() + KILL_TIMEOUT;
        while matches!(self.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl From<Child> for Process {
    fn from(child: Child) -> Process {
        Process(ProcessKind::Child(ChildProcess {
            child,
            is_reaped: false,
            group_has_ended: AtomicBool::new(false),
        }))
    }
}

impl From<HelperProcess> for Process {
    fn from(started: HelperProcess) -> Process {
        Process(ProcessKind::ViaHelper(started))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn no_signal_goes_to_a_process_that_reuses_the_number() {
        let mut other = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&other);
        // Simulates a process that got the number of a reaped program. The variable `other` gets another child, which
        // ends at once.
        let child = std::mem::replace(&mut other, Command::new("true").spawn().unwrap());
        let _ = other.wait();
        let mut process = Process(ProcessKind::Child(ChildProcess {
            child,
            is_reaped: true,
            group_has_ended: AtomicBool::new(false),
        }));
        assert!(process.signal(Signal::KILL).is_err());
        assert!(process.signal_group(Signal::KILL).is_err());
        assert!(!process.group_has_members());
        let ended = process.try_wait();
        let killed = kill_process(pid, Signal::KILL);
        assert!(matches!(ended, Ok(None)), "{ended:?}");
        killed.unwrap();
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
    }

    #[test]
    fn checking_the_group_does_not_reap_the_program() {
        let child = Command::new("true").process_group(0).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let mut process = Process::from(child);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(process.group_has_members());
        let ended = process.try_wait();
        assert!(matches!(ended, Ok(Some(_))), "{ended:?}");
        assert!(!process.group_has_members());
        assert!(process.signal_group(Signal::KILL).is_err());
    }
}
