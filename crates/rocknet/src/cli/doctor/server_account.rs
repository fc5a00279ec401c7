//! Determines whether the server of the configuration runs under another account than the doctor, whose rights then say
//! nothing about those of the server.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;

use rocknet::certificates::state_folder;
use rocknet_config::model::Config;
use rocknet_io::privileges::{self, User};
use rustix::fs::Access;

use super::served::Running;
use super::verdict::Check;

/// Code of the checks that only root, or the account of the server, can carry out.
const CODE: &str = "needs-root";

/// Another account that runs the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherAccount {
    name: String,
}

impl OtherAccount {
    /// Returns the account of the server if it is not that of this process, and if this process is not root. The
    /// account is that of the running server, `server.user`, or the owner of a state folder that this process cannot
    /// write.
    pub fn find(config: &Config, running: &Running) -> Option<OtherAccount> {
        if privileges::is_root() || running.is_this_process() {
            return None;
        }
        let own = privileges::effective_uid();
        if let Some(pid) = running.pid
            && let Ok(process) = fs::metadata(format!("/proc/{pid}"))
        {
            return (process.uid() != own).then(|| OtherAccount::of(process.uid()));
        }
        if let Some(name) = &config.server.user {
            let is_own = User::find(name).is_ok_and(|user| user.uid == own);
            return (!is_own).then(|| OtherAccount { name: name.clone() });
        }
        let state = state_folder(config);
        let owner = fs::metadata(&state).ok()?.uid();
        let is_denied = rustix::fs::access(&state, Access::WRITE_OK | Access::EXEC_OK).is_err();
        (owner != own && is_denied).then(|| OtherAccount::of(owner))
    }

    fn of(uid: u32) -> OtherAccount {
        let name = User::find(&uid.to_string()).map_or_else(|_| format!("account {uid}"), |user| user.name);
        OtherAccount { name }
    }

    /// Returns the result of a check that this account cannot carry out. `what`: the object of the check.
    pub fn skipped(&self, subject: &'static str, what: &str) -> Check {
        let why = format!("{what}: not checked, because {self} runs the server");
        needs_root(subject, why)
    }
}

impl fmt::Display for OtherAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the result of a check that needs root. `why`: the message.
pub(super) fn needs_root(subject: &'static str, why: String) -> Check {
    Check::skipped(subject, CODE, why).command("sudo rocknet doctor")
}
