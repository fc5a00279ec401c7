//! Prepares child processes. Each leads its own process group, can run as another user, and can be killed when the
//! thread that started it ends.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};

use crate::privileges::User;

/// Settings of a child process beyond those of [`Command`].
#[derive(Default)]
pub struct ChildSetup<'a> {
    /// The account under which the program runs; `None` for the account of this process. Only root can choose another
    /// account.
    pub user: Option<&'a User>,
    /// Signal sent to the program when the thread that started it ends, at the latest when this process ends. Start the
    /// program from a thread that lives long enough. Systems other than Linux send no signal.
    pub parent_death_signal: Option<Signal>,
    /// Working directory, entered as the account under which the program runs; `None` for the directory of this
    /// process.
    pub directory: Option<&'a Path>,
    /// Descriptors that the program inherits under the same numbers. All other descriptors except the standard streams
    /// are closed. Before Linux 5.11 and on other systems, only descriptors marked close-on-exec are closed.
    pub inherited: Vec<OwnedFd>,
    /// True for a program that takes the place of this process. The limits of [`crate::sandbox::limit_programs`] do not
    /// apply to it, but all limits of this process do. On Linux, it keeps the capability to bind ports below 1024.
    pub is_successor: bool,
}

/// Prepares `command` to lead its own process group, to block no signals, and to start with `setup`.
///
/// # Errors
///
/// On Linux, this function fails if the name of the directory contains a NUL byte. On other systems, starting the
/// command fails instead.
pub fn prepare(command: &mut Command, setup: ChildSetup<'_>) -> io::Result<()> {
    command.process_group(0);
    system::before_exec(command, setup)
}

/// Unblocks all signals. A program inherits the mask of the thread that starts it, and would not end on SIGTERM if that
/// thread blocks it. Called between fork and exec, so it makes only system calls.
#[allow(unsafe_code)]
fn unblock_signals() -> io::Result<()> {
    // SAFETY: `sigemptyset` initializes the set, and the calls access no other memory.
    let result = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Prepares `command` to lead its own process group, to run as `user`, and to receive `parent_death_signal` when the
/// thread that starts it ends, at the latest when this process ends. Start the command from a thread that lives long
/// enough. The program inherits only the standard streams, apart from the exceptions for older kernels and other
/// systems that [`ChildSetup::inherited`] describes.
///
/// Only root can choose another user. Systems other than Linux send no signal, so the program keeps running.
pub fn bind_to_thread(command: &mut Command, user: Option<&User>, parent_death_signal: Signal) {
    let setup = ChildSetup {
        user,
        parent_death_signal: Some(parent_death_signal),
        ..ChildSetup::default()
    };
    // Only the name of a directory can cause an error, and no directory is set.
    let _ = prepare(command, setup);
}

/// Sends a signal to all processes of a group created by [`prepare`] or [`bind_to_thread`]. `leader` is the process ID
/// of the started program, which leads the group.
///
/// # Errors
///
/// `ESRCH` if the group has no processes left; `EPERM` if this process may signal none of its members; `InvalidInput`
/// if `leader` cannot be a process ID.
pub fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(leader).ok().and_then(Pid::from_raw);
    Ok(kill_process_group(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
}

/// Returns whether a group whose leader has been waited for still has members. First reaps the members that have ended
/// and are children of this process. While a group has members, the kernel gives its number to no other group.
pub fn group_has_members(leader: u32) -> bool {
    let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // Reaps members whose parent has ended: if this is the first process of a container, it is their new parent.
    while matches!(waitpgid(group, WaitOptions::NOHANG), Ok(Some(_))) {}
    // EPERM: this process must not signal the member, which runs as another user. But the member exists.
    matches!(test_kill_process_group(group), Ok(()) | Err(Errno::PERM))
}

/// Sets the name that `ps` shows for the process, at most 15 bytes. To be called on the main thread. Without this call,
/// the name of a program that was executed from an open file is the number of that file's descriptor. Does nothing on
/// systems other than Linux.
pub fn set_process_name(name: &CStr) {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(name);
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

#[cfg(target_os = "linux")]
mod system {
    use std::ffi::CString;
    use std::io;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::io::{FdFlags, fcntl_setfd};
    use rustix::process::{Gid, Pid, Uid, chdir, getpid, getppid, set_parent_process_death_signal};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    use super::ChildSetup;

    /// Makes the child process apply `setup` between fork and exec.
    #[allow(unsafe_code)]
    pub(super) fn before_exec(command: &mut Command, setup: ChildSetup<'_>) -> io::Result<()> {
        let parent = getpid();
        let user = setup.user.map(|user| {
            let groups: Vec<Gid> = user.groups.iter().map(|&group| Gid::from_raw(group)).collect();
            (Uid::from_raw(user.uid), Gid::from_raw(user.gid), groups)
        });
        let directory = setup
            .directory
            .map(|directory| CString::new(directory.as_os_str().as_bytes()));
        let (directory, parent_death_signal, inherited) =
            (directory.transpose()?, setup.parent_death_signal, setup.inherited);
        let is_successor = setup.is_successor;
        let prepare = move || {
            super::unblock_signals()?;
            if is_successor {
                crate::privileges::pass_on_low_ports();
            } else {
                // Apply the sandbox before the change of user, because the new user may lack the right to apply it.
                crate::sandbox::apply_to_program();
            }
            if let Some((uid, gid, groups)) = &user {
                set_thread_groups(groups)?;
                set_thread_res_gid(*gid, *gid, *gid)?;
                set_thread_res_uid(*uid, *uid, *uid)?;
            }
            if let Some(directory) = &directory {
                chdir(directory.as_c_str())?;
            }
            set_close_on_exec();
            for descriptor in &inherited {
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            if parent_death_signal.is_some() {
                // The signal is set after the change of user, because that change would clear it.
                set_parent_process_death_signal(parent_death_signal)?;
                fail_if_orphaned(parent)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, on values prepared before. Nothing is allocated,
        // locked or freed; the errors are numbers, whose conversion does not allocate either.
        unsafe { command.pre_exec(prepare) };
        Ok(())
    }

    /// Marks all descriptors except the standard streams close-on-exec. Descriptors that this process opened are marked
    /// already, but those that it inherited may not be. Does nothing on kernels before 5.11, which lack the flag.
    #[allow(unsafe_code)]
    fn set_close_on_exec() {
        // SAFETY: only flags of descriptors change; no descriptor is closed before the program is replaced.
        let _ = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    }

    /// Fails if the parent ended before the signal was requested, because the signal is then never sent.
    fn fail_if_orphaned(parent: Pid) -> io::Result<()> {
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(rustix::io::Errno::SRCH.into())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::io::{FdFlags, fcntl_setfd};

    use super::ChildSetup;

    /// Makes the child process apply `setup` before exec, without the settings that only Linux has.
    #[allow(unsafe_code)]
    pub(super) fn before_exec(command: &mut Command, setup: ChildSetup<'_>) -> io::Result<()> {
        if let Some(user) = setup.user {
            command.uid(user.uid).gid(user.gid);
        }
        if let Some(directory) = setup.directory {
            command.current_dir(directory);
        }
        let inherited = setup.inherited;
        let prepare = move || {
            super::unblock_signals()?;
            for descriptor in &inherited {
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, on values prepared before.
        unsafe { command.pre_exec(prepare) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Stdio};
    use std::thread;

    use super::*;

    /// Starts a shell that starts a second program and prints its own user and groups.
    fn spawn_group(user: Option<&User>) -> Child {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $(id -u):$(id -g):$(id -G); wait"])
            .stdout(Stdio::piped());
        bind_to_thread(&mut command, user, Signal::KILL);
        command.spawn().unwrap()
    }

    /// Reads the first line of the output. Also returns the reader, because dropping it would close the pipe.
    fn first_line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line, reader)
    }

    #[test]
    fn a_whole_group_is_killed() {
        let mut child = spawn_group(None);
        let (_, mut reader) = first_line(&mut child);
        signal_group(child.id(), Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        // The pipe ends only after the second program, which also holds the writing end.
        assert_eq!(reader.read_line(&mut String::new()).unwrap(), 0);
        assert!(
            signal_group(u32::MAX, Signal::KILL).is_err(),
            "no process ID is this large"
        );
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_child_does_not_inherit_blocked_signals() {
        let blocking = thread::spawn(|| {
            // SAFETY: `sigemptyset` initializes the set, and the mask of this thread alone changes.
            unsafe {
                let mut set = std::mem::zeroed::<libc::sigset_t>();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, libc::SIGTERM);
                assert_eq!(
                    libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()),
                    0
                );
            }
            let mut command = Command::new("sh");
            command.args(["-c", "kill -TERM $$; exit 7"]);
            prepare(&mut command, ChildSetup::default()).unwrap();
            command.status().unwrap()
        });
        assert_eq!(blocking.join().unwrap().signal(), Some(libc::SIGTERM));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let mut child = thread::spawn(|| {
            let mut child = spawn_group(None);
            // The shell prints the line once it has started the second program.
            let output = first_line(&mut child);
            (child, output)
        })
        .join()
        .unwrap()
        .0;
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        // The parent-death signal has ended only the shell. This call ends the second program.
        let _ = signal_group(child.id(), Signal::KILL);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_given_descriptors_are_inherited() {
        use std::os::fd::AsRawFd;
        let directory = std::env::temp_dir().canonicalize().unwrap();
        let (given, other) = (io::pipe().unwrap(), io::pipe().unwrap());
        let (inherited, hidden) = (given.1.as_raw_fd(), other.1.as_raw_fd());
        let script =
            format!("pwd; [ -e /proc/self/fd/{inherited} ] && echo kept; [ -e /proc/self/fd/{hidden} ] || echo closed");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let setup = ChildSetup {
            directory: Some(&directory),
            inherited: vec![given.1.into()],
            ..ChildSetup::default()
        };
        prepare(&mut command, setup).unwrap();
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert_eq!(output, format!("{}\nkept\nclosed\n", directory.display()));
        // The name of a directory must not contain a NUL byte.
        let mut command = Command::new("sh");
        let setup = ChildSetup {
            directory: Some(Path::new("a\0b")),
            ..ChildSetup::default()
        };
        assert!(prepare(&mut command, setup).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_runs_as_the_user() {
        if !crate::privileges::is_root() {
            return rocknet_testing::skip(rocknet_testing::Need::Root, "the tests do not run as root");
        }
        let user = User {
            name: "x".into(),
            uid: 4321,
            gid: 1234,
            groups: vec![1234, 77],
            home: None,
        };
        let mut child = spawn_group(Some(&user));
        let (output, _reader) = first_line(&mut child);
        signal_group(child.id(), Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(output.trim(), "4321:1234:1234 77");
    }
}
