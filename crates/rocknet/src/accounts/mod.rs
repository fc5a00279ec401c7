//! The accounts of the system that scripts run as, and the programs that are started as them.
//!
//! ```text
//! php/pool.rs, handler/cgi ─▶ launch.rs: what to start, as which account ─▶ process.rs: a running program
//!                                  └─ helper/: starts it, once the server has given up root's rights
//! ```
//! Private keys belong to the account of the server. Scripts of a server that was started as root never run as that account,
//! unless the system has no other.

mod helper;
mod launch;
mod plan;
mod process;
mod reach;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rocknet_io::rights::{self, User};

use self::helper::Helper;

pub use self::helper::entered;
pub use self::launch::{Launch, pipe};
pub use self::plan::{Accounts, Plan, apply_default, runs_scripts, server_account};
pub use self::process::Process;
pub use self::reach::reachable;

/// The accounts that systems have for web applications, in the order in which they are tried.
const FOR_SCRIPTS: [&str; 5] = ["www-data", "nginx", "apache", "http", "nobody"];

/// How scripts get their account in this process, since it has given up the rights of root.
static RIGHTS: OnceLock<Rights> = OnceLock::new();

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

enum Rights {
    /// Programs are started as others by a process that kept the right to.
    Helped(Helper),
    /// There was no script when they were given up.
    Given,
    /// There was no account for scripts but that of the server.
    Shared,
}

/// The account that a program is started as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// That of this process.
    Own,
    /// Another one, which this process has the rights to become.
    Other(User),
    /// Another one, by its number at the helper.
    Helped { number: u8, user: User },
}

/// Sets the program that is started as the helper: one whose `main` calls [`entered`]. The first call counts.
pub fn run_by(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// Prepares for the loss of root's rights, which has to follow: starts the helper where the plan has scripts. `server` is the
/// account that this process becomes.
pub fn prepare(plan: &Plan, server: &User) -> io::Result<()> {
    let accounts = plan.accounts(server)?;
    let rights = if accounts.all.is_empty() {
        Rights::Shared
    } else if plan.needs_helper() {
        if plan.needs_default {
            accounts.of_unnamed()?;
        }
        let program = PROGRAM.get().map(PathBuf::as_path);
        Rights::Helped(Helper::start(
            program.unwrap_or(Path::new("/proc/self/exe")),
            server.uid,
            accounts,
        )?)
    } else {
        Rights::Given
    };
    let _ = RIGHTS.set(rights);
    Ok(())
}

fn helper() -> Option<&'static Helper> {
    match RIGHTS.get() {
        Some(Rights::Helped(helper)) => Some(helper),
        _ => None,
    }
}

/// Whether this process can start programs as other accounts.
pub fn can_choose() -> bool {
    helper().is_some() || rights::is_root()
}

/// The warning for the operator where scripts and the server share an account although the server was started as root, or where
/// the default for scripts is not what one would expect.
pub fn warning(scripts: bool) -> Option<String> {
    if !scripts {
        return None;
    }
    match RIGHTS.get()? {
        Rights::Shared => Some(
            "scripts run as the account of the server and can read its private keys, because there is no other account for \
             them: create one (useradd --system www-data) and restart"
                .to_owned(),
        ),
        Rights::Helped(helper) => plan::unusual_default(helper.accounts().of_unnamed().ok()?.1),
        Rights::Given => None,
    }
}

impl Account {
    /// The account of scripts: `wanted` where the configuration names one, else the default for this process.
    pub fn of_scripts(wanted: Option<&str>) -> io::Result<Account> {
        match (RIGHTS.get(), wanted) {
            (Some(Rights::Helped(helper)), wanted) => Account::of_helper(helper, wanted),
            (Some(Rights::Given), wanted) => {
                let wanted = wanted.unwrap_or("another account");
                let why =
                    format!("RockNet gave up root's rights when it had no scripts, and cannot run any as {wanted} now");
                Err(io::Error::other(format!(
                    "{why}: restart it (script_user = \"NAME\" below [server] keeps a reload able to)"
                )))
            }
            (Some(Rights::Shared), None) => Ok(Account::Own),
            (_, Some(name)) => Account::named(name),
            (None, None) => Account::default(),
        }
    }

    fn of_helper(helper: &Helper, wanted: Option<&str>) -> io::Result<Account> {
        let accounts = helper.accounts();
        let at = match wanted {
            None => {
                let (number, user) = accounts.of_unnamed()?;
                return Ok(Account::Helped {
                    number,
                    user: user.clone(),
                });
            }
            Some(name) => {
                let user = User::find(name).map_err(io::Error::other)?;
                if user.uid == 0 {
                    return Err(is_root());
                }
                if user.uid == rights::own_uid() {
                    return Err(is_servers(name));
                }
                accounts
                    .all
                    .iter()
                    .position(|known| (known.uid, known.gid) == (user.uid, user.gid))
            }
        };
        let found = at.and_then(|at| Some((u8::try_from(at).ok()?, accounts.all.get(at)?)));
        found.map(|(number, user)| Account::Helped { number, user: user.clone() }).ok_or_else(|| {
            io::Error::other(
                "the accounts of scripts are fixed when RockNet starts as root, and this one was not in the configuration then: \
                 restart RockNet",
            )
        })
    }

    fn named(name: &str) -> io::Result<Account> {
        let user = User::find(name).map_err(io::Error::other)?;
        match rights::is_root() {
            _ if user.uid == 0 => Err(is_root()),
            true => Ok(Account::Other(user)),
            false if user.uid == rights::own_uid() => Ok(Account::Own),
            false => {
                let help = "only root can run scripts as somebody else, and RockNet is not root";
                Err(io::Error::other(help))
            }
        }
    }

    fn default() -> io::Result<Account> {
        if !rights::is_root() {
            return Ok(Account::Own);
        }
        let user = FOR_SCRIPTS.iter().find_map(|name| User::find(name).ok());
        user.map(Account::Other).ok_or_else(|| {
            let help =
                "RockNet is root, and there is no user to run scripts as: write script_user = \"NAME\" below [server]";
            io::Error::other(help)
        })
    }

    /// Its entry in the tables of the system, if it is not that of this process.
    pub fn user(&self) -> Option<&User> {
        match self {
            Account::Own => None,
            Account::Other(user) | Account::Helped { user, .. } => Some(user),
        }
    }
}

fn is_root() -> io::Error {
    io::Error::other("scripts are not run as root: name another user")
}

fn is_servers(name: &str) -> io::Error {
    let why = format!("RockNet itself runs as {name}, whose scripts could read its private keys");
    io::Error::other(format!(
        "{why}: name another account, or one for RockNet alone as `user` below [server]"
    ))
}
