//! Drops privileges on Linux, where each thread has its own capabilities.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getgid, getgroups, getuid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use super::{PrivilegeError, User};

/// Changes the whole process to `user` permanently, and checks that returning to root fails. Keeps the capability to
/// bind ports below 1024, if the process has it. Fails if the process has several threads.
pub(super) fn drop_to(user: &User) -> Result<(), PrivilegeError> {
    // Without `/proc`, the threads cannot be counted, and this check is left out.
    if let Some(count) = threads().filter(|&count| count != 1) {
        return Err(PrivilegeError::Threads(count));
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let mut groups: Vec<Gid> = user.groups.iter().map(|&group| Gid::from_raw(group)).collect();
    let kept = named("capget", thread::capabilities(None))?.permitted & KEPT_CAPABILITIES;

    // Without this flag, changing the user would clear all capabilities.
    named("prctl(PR_SET_KEEPCAPS)", thread::set_keep_capabilities(true))?;
    // The user comes last, because only root may change the groups.
    named("setgroups", thread::set_thread_groups(&groups))?;
    named("setresgid", thread::set_thread_res_gid(gid, gid, gid))?;
    named("setresuid", thread::set_thread_res_uid(uid, uid, uid))?;
    // Nothing is inheritable, because started programs (such as CGI) must not bind low ports.
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    named("capset", thread::set_capabilities(None, sets))?;
    named("prctl(PR_SET_KEEPCAPS)", thread::set_keep_capabilities(false))?;
    clear_ambient_set()?;
    named("prctl(PR_SET_NO_NEW_PRIVS)", thread::set_no_new_privs(true))?;

    let mut current_groups = named("getgroups", getgroups())?;
    current_groups.sort_unstable_by_key(|group| group.as_raw());
    groups.sort_unstable_by_key(|group| group.as_raw());
    let capabilities = named("capget", thread::capabilities(None))?;
    let (root_user, root_group) = (Uid::ROOT, Gid::ROOT);
    let is_complete = getuid() == uid
        && getgid() == gid
        && current_groups == groups
        && capabilities == sets
        && thread::set_thread_res_uid(root_user, root_user, root_user).is_err()
        && thread::set_thread_res_gid(root_group, root_group, root_group).is_err();
    if is_complete {
        Ok(())
    } else {
        Err(PrivilegeError::Incomplete)
    }
}

/// Runs `work` on a thread with the groups and IDs of `user`. The kernel removes the capabilities of a thread that
/// stops being root.
pub(super) fn with_rights_of<T: Send>(user: &User, work: impl FnOnce() -> T + Send) -> Result<T, PrivilegeError> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let groups: Vec<Gid> = user.groups.iter().map(|&group| Gid::from_raw(group)).collect();
    let with_rights = || {
        // The user comes last, because only root may change the groups.
        named("setgroups", thread::set_thread_groups(&groups))?;
        named("setresgid", thread::set_thread_res_gid(gid, gid, gid))?;
        named("setresuid", thread::set_thread_res_uid(uid, uid, uid))?;
        Ok(work())
    };
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, with_rights);
        let started = started.map_err(|error| PrivilegeError::System("clone", error))?;
        // A panic of `work` continues in the caller.
        started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Drops all capabilities except `PROCESS_CAPABILITIES`, and blocks signals. Fails if the process has several threads.
pub(super) fn prepare_account_helper() -> Result<(), PrivilegeError> {
    if let Some(count) = threads().filter(|&count| count != 1) {
        return Err(PrivilegeError::Threads(count));
    }
    let kept = named("capget", thread::capabilities(None))?.permitted & PROCESS_CAPABILITIES;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    clear_ambient_set()?;
    named("capset", thread::set_capabilities(None, sets))?;
    block_signals();
    Ok(())
}

/// Returns the names of the effective capabilities of this thread, `all` or `none`; `None` if the system call fails.
pub(super) fn capabilities() -> Option<String> {
    let sets = thread::capabilities(None).ok()?;
    // A thread of root has all capabilities that the kernel knows, which may be fewer than this program knows.
    let last: Option<u32> = fs::read_to_string("/proc/sys/kernel/cap_last_cap")
        .ok()
        .and_then(|number| number.trim().parse().ok());
    // Capabilities are numbered from 0, so the kernel knows `last + 1` of them.
    let effective = sets.effective.bits();
    if last.is_some_and(|last| u64::from(effective.count_ones()) == u64::from(last) + 1) {
        return Some("all".to_owned());
    }
    let names: Vec<String> = sets
        .effective
        .iter_names()
        .map(|(name, _)| format!("CAP_{name}"))
        .collect();
    Some(if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(" ")
    })
}

/// Empties the ambient and inheritable sets, so that started programs inherit no capability from this process.
pub(super) fn stop_inheritance() -> Result<(), PrivilegeError> {
    clear_ambient_set()?;
    let sets = named("capget", thread::capabilities(None))?;
    if sets.inheritable.is_empty() {
        return Ok(());
    }
    // A program whose file has inheritable capabilities would gain those that are in the inheritable sets of both the
    // file and this process.
    let sets = CapabilitySets {
        inheritable: CapabilitySet::empty(),
        ..sets
    };
    match thread::set_capabilities(None, sets) {
        // EPERM: a filter of the service manager denies the call. Files with inheritable capabilities are very rare.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(PrivilegeError::System("capset", errno.into())),
    }
}

/// Lets the next program inherit the capability to bind ports below 1024, if this thread has it. Makes only system
/// calls, because it runs between fork and exec.
pub(super) fn pass_on_low_ports() {
    let Ok(sets) = thread::capabilities(None) else { return };
    if !sets.permitted.contains(KEPT_CAPABILITIES) {
        return;
    }
    let sets = CapabilitySets {
        inheritable: sets.inheritable | KEPT_CAPABILITIES,
        ..sets
    };
    if thread::set_capabilities(None, sets).is_ok() {
        let _ = thread::configure_capability_in_ambient_set(KEPT_CAPABILITIES, true);
    }
}

/// Removes the capabilities that started programs gain without being root.
fn clear_ambient_set() -> Result<(), PrivilegeError> {
    match thread::clear_ambient_capability_set() {
        // EINVAL: a kernel without ambient capabilities, before Linux 4.3.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(PrivilegeError::System("prctl(PR_CAP_AMBIENT)", errno.into())),
    }
}

/// Blocks the signals that a service manager or a terminal sends to all processes of the service, because this process
/// has to outlive the programs that it started. Those programs start without the mask (`child.rs`).
#[allow(unsafe_code)]
fn block_signals() {
    // SAFETY: `sigemptyset` initializes the set, and the calls access no other memory.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Returns the number of threads; `None` if `/proc` is not mounted.
fn threads() -> Option<usize> {
    Some(fs::read_dir("/proc/self/task").ok()?.count())
}

/// Adds the name of the system call to its error.
fn named<T>(call: &'static str, result: Result<T, Errno>) -> Result<T, PrivilegeError> {
    result.map_err(|errno| PrivilegeError::System(call, errno.into()))
}

/// Capabilities to start a program under another account, and to kill it.
const PROCESS_CAPABILITIES: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Capability that the server keeps, because a reload can add a site on port 80 long after startup.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;
