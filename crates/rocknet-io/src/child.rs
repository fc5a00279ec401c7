//! Programs that are started: each leads a group of its own, gives up root where it is told to, and ends with this process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};

use crate::rights::User;

/// What a program starts with beyond what [`Command`] says.
#[derive(Default)]
pub struct ChildSetup<'a> {
    /// The account that it becomes. Only root can become another.
    pub user: Option<&'a User>,
    /// Sent to it when the thread that started it ends, which it does at the latest with this process, however that ends. Start
    /// it from a thread that stays. Systems without such a signal leave the program running.
    pub parent_death_signal: Option<Signal>,
    /// Its directory, entered as the account that it becomes.
    pub directory: Option<&'a Path>,
    /// Descriptors that it gets under the numbers that they have here. All others but the three that are common are closed.
    pub inherited: Vec<OwnedFd>,
}

/// Has `command` lead a process group of its own and start as `setup` says.
pub fn prepare(command: &mut Command, setup: ChildSetup<'_>) -> io::Result<()> {
    command.process_group(0);
    system::before_exec(command, setup)
}

/// Has `command` lead a process group of its own, become `user`, and get `parent_death_signal` when the thread that starts it ends,
/// which it does at the latest with this process, however that ends. Start it from a thread that stays. No descriptor but
/// the three that are common is passed on.
///
/// Only root can become another user. Systems without such a signal leave the program running.
pub fn bind_to_thread(command: &mut Command, user: Option<&User>, parent_death_signal: Signal) {
    let setup = ChildSetup {
        user,
        parent_death_signal: Some(parent_death_signal),
        ..ChildSetup::default()
    };
    // Only a directory's name could be refused.
    let _ = prepare(command, setup);
}

/// Sends a signal to all of a group that [`bind`] made; fails where there is none left of it.
pub fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(leader).ok().and_then(Pid::from_raw);
    Ok(kill_process_group(pid.ok_or(io::ErrorKind::InvalidInput)?, signal)?)
}

/// Whether anybody is left of a group whose leader has been waited for. Its number is nobody else's while there is.
pub fn group_has_members(leader: u32) -> bool {
    let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // The first process of a container inherits what others leave behind, and nobody else waits for it.
    while matches!(waitpgid(group, WaitOptions::NOHANG), Ok(Some(_))) {}
    // One that has become another user is there as well, and may not be sent anything.
    matches!(test_kill_process_group(group), Ok(()) | Err(Errno::PERM))
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
        let prepare = move || {
            if let Some((uid, gid, groups)) = &user {
                set_thread_groups(groups)?;
                set_thread_res_gid(*gid, *gid, *gid)?;
                set_thread_res_uid(*uid, *uid, *uid)?;
            }
            if let Some(directory) = &directory {
                chdir(directory.as_c_str())?;
            }
            set_close_on_exec();
            for inherited in &inherited {
                fcntl_setfd(inherited, FdFlags::empty())?;
            }
            if parent_death_signal.is_some() {
                // After the change of user, which takes it away.
                set_parent_process_death_signal(parent_death_signal)?;
                fail_if_orphaned(parent)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, on values that were ready before: nothing is
        // allocated, locked or freed. The errors are numbers, whose conversion allocates nothing either.
        unsafe { command.pre_exec(prepare) };
        Ok(())
    }

    /// What this process has open closes by itself when another takes its place, but for what it was started with and
    /// knows nothing of. Kernels before 5.11 cannot be asked.
    #[allow(unsafe_code)]
    fn set_close_on_exec() {
        // SAFETY: only flags of descriptors change, and none is closed before the program is replaced.
        let _ = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    }

    /// Who was left before the signal was asked for is never told.
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
            for inherited in &inherited {
                fcntl_setfd(inherited, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, on values that were ready before.
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

    /// A shell that has started another program, and printed a line.
    fn spawn_group(user: Option<&User>) -> Child {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $(id -u):$(id -g):$(id -G); wait"])
            .stdout(Stdio::piped());
        bind_to_thread(&mut command, user, Signal::KILL);
        command.spawn().unwrap()
    }

    fn line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line, reader)
    }

    #[test]
    fn a_group_is_ended_whole() {
        let mut child = spawn_group(None);
        let (_, mut reader) = line(&mut child);
        signal_group(child.id(), Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        // The end of the pipe, which the other program held too.
        assert_eq!(reader.read_line(&mut String::new()).unwrap(), 0);
        assert!(signal_group(u32::MAX, Signal::KILL).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let mut child = thread::spawn(|| {
            let mut child = spawn_group(None);
            let output = line(&mut child);
            (child, output)
        })
        .join()
        .unwrap()
        .0;
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let _ = signal_group(child.id(), Signal::KILL);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_gets_what_is_kept_and_nothing_else() {
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
        let mut command = Command::new("sh");
        let setup = ChildSetup {
            directory: Some(Path::new("a\0b")),
            ..ChildSetup::default()
        };
        assert!(prepare(&mut command, setup).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn it_becomes_a_user() {
        if !crate::rights::is_root() {
            return;
        }
        let user = User {
            name: "x".into(),
            uid: 4321,
            gid: 1234,
            groups: vec![1234, 77],
            home: None,
        };
        let mut child = spawn_group(Some(&user));
        let (output, _reader) = line(&mut child);
        signal_group(child.id(), Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(output.trim(), "4321:1234:1234 77");
    }
}
