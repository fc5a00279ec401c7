//! Giving up root on Linux, where each thread has rights of its own and root is a set of capabilities.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getgid, getgroups, getuid};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use super::{RightsError, User};

pub(super) fn drop_to(user: &User) -> Result<(), RightsError> {
    if let Some(count) = threads().filter(|&count| count != 1) {
        return Err(RightsError::Threads(count));
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    let mut groups: Vec<Gid> = user.groups.iter().map(|&group| Gid::from_raw(group)).collect();
    let kept = named("capget", thread::capabilities(None))?.permitted & KEPT;

    // Without this, changing the user takes all capabilities away and there is nothing left to keep.
    named("prctl(PR_SET_KEEPCAPS)", thread::set_keep_capabilities(true))?;
    // Groups first, user last: without root's user the others may not be changed any more.
    named("setgroups", thread::set_thread_groups(&groups))?;
    named("setresgid", thread::set_thread_res_gid(gid, gid, gid))?;
    named("setresuid", thread::set_thread_res_uid(uid, uid, uid))?;
    // Nothing inheritable: programs that are started (CGI, say) have no business with low ports.
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    named("capset", thread::set_capabilities(None, sets))?;
    named("prctl(PR_SET_KEEPCAPS)", thread::set_keep_capabilities(false))?;
    match thread::clear_ambient_capability_set() {
        // A kernel without ambient capabilities; and there are none without inheritable ones in any case.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(RightsError::System("prctl(PR_CAP_AMBIENT)", errno.into())),
    }
    named("prctl(PR_SET_NO_NEW_PRIVS)", thread::set_no_new_privs(true))?;

    let mut now = named("getgroups", getgroups())?;
    now.sort_unstable_by_key(|group| group.as_raw());
    groups.sort_unstable_by_key(|group| group.as_raw());
    let capabilities = named("capget", thread::capabilities(None))?;
    let root = (Uid::ROOT, Gid::ROOT);
    let closed = getuid() == uid
        && getgid() == gid
        && now == groups
        && capabilities == sets
        && thread::set_thread_res_uid(root.0, root.0, root.0).is_err()
        && thread::set_thread_res_gid(root.1, root.1, root.1).is_err();
    if closed { Ok(()) } else { Err(RightsError::WayBack) }
}

/// How many threads run; unknown where `/proc` is not mounted.
fn threads() -> Option<usize> {
    Some(fs::read_dir("/proc/self/task").ok()?.count())
}

fn named<T>(call: &'static str, result: Result<T, Errno>) -> Result<T, RightsError> {
    result.map_err(|errno| RightsError::System(call, errno.into()))
}

/// A reload may add a site on port 80 long after the start.
const KEPT: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;
