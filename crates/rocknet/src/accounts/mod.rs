//! The accounts of the system that scripts run as, and the programs that are started as them.
//!
//! ```text
//! php/pool.rs, handler/cgi ─▶ launch.rs: what to start, as which account ─▶ process.rs: a running program
//! ```

mod launch;
mod process;

use std::io;

use rocknet_io::rights::{self, User};

pub use self::launch::{Launch, pipe};
pub use self::process::Process;

/// The accounts that systems have for web applications, in the order in which they are tried.
const FOR_SCRIPTS: [&str; 5] = ["www-data", "nginx", "apache", "http", "nobody"];

/// The account that a program is started as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// That of this process.
    Own,
    /// Another one, which this process has the rights to become.
    Other(User),
}

impl Account {
    /// The account of scripts: `wanted` where the configuration names one, else the default for this process.
    pub fn of_scripts(wanted: Option<&str>) -> io::Result<Account> {
        if let Some(name) = wanted {
            let user = User::find(name).map_err(io::Error::other)?;
            return match rights::is_root() {
                _ if user.uid == 0 => Err(io::Error::other("scripts are not run as root: name another user")),
                true => Ok(Account::Other(user)),
                false if user.uid == rights::own_uid() => Ok(Account::Own),
                false => {
                    let help = "only root can run scripts as somebody else, and RockNet is not root";
                    Err(io::Error::other(help))
                }
            };
        }
        if !rights::is_root() {
            return Ok(Account::Own);
        }
        let user = FOR_SCRIPTS.iter().find_map(|name| User::find(name).ok());
        user.map(Account::Other).ok_or_else(|| {
            let help = "RockNet is root, and there is no user to run scripts as: write user = \"NAME\" below [server]";
            io::Error::other(help)
        })
    }

    /// Its entry in the tables of the system, if it is not that of this process.
    pub fn user(&self) -> Option<&User> {
        match self {
            Account::Own => None,
            Account::Other(user) => Some(user),
        }
    }
}
