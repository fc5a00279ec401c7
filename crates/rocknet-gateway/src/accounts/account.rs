//! The system account that a program runs as.

use std::io;

use rocknet_io::privileges::{self, User};

/// Names of the accounts that systems usually have for web applications, in the order in which they are tried.
pub(super) const USUAL_SCRIPT_ACCOUNTS: [&str; 5] = ["www-data", "nginx", "apache", "http", "nobody"];

/// Account that a program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// The account of this process.
    Own,
    /// Another account, to which this process can switch as root.
    Other(User),
    /// Another account, as which the account helper starts programs. The account helper is a process that keeps root's
    /// rights in order to do so. `number` is the index in the helper's list of accounts.
    ViaHelper { number: u8, user: User },
}

impl Account {
    /// Returns the account with this name, if this process can start programs as this account.
    pub(super) fn named(name: &str) -> io::Result<Account> {
        let user = User::find(name).map_err(io::Error::other)?;
        match privileges::is_root() {
            _ if user.uid == 0 => Err(root_error()),
            true => Ok(Account::Other(user)),
            false if user.uid == privileges::effective_uid() => Ok(Account::Own),
            false => {
                let why = "only root can run scripts as another user, and RockNet is not root";
                Err(io::Error::other(format!("{why}: start it as root, or remove `user`")))
            }
        }
    }

    /// Returns the account for scripts that have no account in the configuration: the account of this process, or the
    /// first of the usual accounts that exists if this process is root.
    ///
    /// # Errors
    ///
    /// Fails if this process is root and none of the usual accounts exists.
    pub(super) fn default() -> io::Result<Account> {
        if !privileges::is_root() {
            return Ok(Account::Own);
        }
        let user = USUAL_SCRIPT_ACCOUNTS.iter().find_map(|name| User::find(name).ok());
        user.map(Account::Other).ok_or_else(|| {
            let help =
                "RockNet is root and the system has no user for scripts: set script_user = \"NAME\" below [server]";
            io::Error::other(help)
        })
    }

    /// Returns the user of the account; `None` for the account of this process.
    pub fn user(&self) -> Option<&User> {
        match self {
            Account::Own => None,
            Account::Other(user) | Account::ViaHelper { user, .. } => Some(user),
        }
    }
}

/// Returns the error for a configuration that names root as an account for scripts.
pub(super) fn root_error() -> io::Error {
    io::Error::other("scripts are not run as root: name another user")
}

/// Returns the error for an account whose primary group is the group of root.
pub(super) fn root_group_error(name: &str) -> io::Error {
    io::Error::other(format!(
        "the primary group of `{name}` is root's group, and scripts are not run in it: name another user"
    ))
}

/// Returns the error for a configuration that names the account of the server as an account for scripts.
pub(super) fn server_account_error(name: &str) -> io::Error {
    let why = format!("RockNet itself runs as {name}, so scripts could read its private keys");
    io::Error::other(format!(
        "{why}: name another account, or give RockNet an account of its own (`user` below [server])"
    ))
}
