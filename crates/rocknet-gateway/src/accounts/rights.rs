//! The rights of this process to start programs as other accounts: it is root itself, or has a helper with these
//! rights.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rocknet_config::Config;
use rocknet_io::privileges::{self, User};

use super::account::{Account, root_error, server_account_error};
use super::helper::{HELPER_VERSION, Helper};
use super::launch::Launch;
use super::plan::{self, AccountPlan, Accounts};
use super::process::Process;

/// Rights to start scripts after this process has dropped root's rights. Not set in a process that drops no rights.
/// Only the first value is kept.
static RIGHTS: OnceLock<Rights> = OnceLock::new();

/// Program that is started as the helper. If it is not set, the program of this process is used.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

enum Rights {
    /// The helper, which kept root's rights, starts programs as other accounts.
    ViaHelper(Helper),
    /// The rights were dropped while the configuration had no scripts.
    Dropped,
    /// Scripts run as the account of the server, because there is no other account for them.
    Shared,
}

/// Sets the program that is started as the helper. The `main` of that program has to call `run_if_helper`. Only the
/// first call has an effect.
pub fn set_helper_program(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
}

/// Prepares for dropping root's rights: starts the helper if the plan needs it. The caller has to drop the rights
/// afterwards. `server`: the account to which this process switches.
///
/// # Errors
///
/// Returns an error if an account of the plan cannot be used, if the plan needs a default account that does not exist,
/// or if the helper cannot be started.
pub fn prepare(plan: &AccountPlan, server: &User) -> io::Result<()> {
    let accounts = plan.accounts(server)?;
    let rights = if accounts.all.is_empty() {
        Rights::Shared
    } else if plan.needs_helper() {
        if plan.needs_default {
            accounts.default_account()?;
        }
        let program = PROGRAM.get().map(PathBuf::as_path);
        Rights::ViaHelper(Helper::start(
            program.unwrap_or(Path::new("/proc/self/exe")),
            server.uid,
            accounts,
        )?)
    } else {
        Rights::Dropped
    };
    let _ = RIGHTS.set(rights);
    Ok(())
}

/// Returns the helper of this process, if it has one.
fn helper() -> Option<&'static Helper> {
    match RIGHTS.get() {
        Some(Rights::ViaHelper(helper)) => Some(helper),
        _ => None,
    }
}

/// Returns whether this process can start programs as other accounts.
pub fn can_switch_accounts() -> bool {
    helper().is_some() || privileges::is_root()
}

/// Returns true if this process has dropped root's rights, and cannot start programs as other accounts.
pub fn has_dropped_rights() -> bool {
    matches!(RIGHTS.get(), Some(Rights::Dropped))
}

/// Makes [`has_dropped_rights`] return true, because this process takes over from one that has dropped its rights.
/// Scripts are then refused, and do not run as the account of the server.
pub fn inherit_dropped_rights() {
    let _ = RIGHTS.set(Rights::Dropped);
}

/// The helper of a process, on the way to a process that takes over.
pub struct OfferedHelper {
    /// Channel to the helper.
    pub channel: OwnedFd,
    /// Version of the messages of the helper.
    pub version: u32,
    /// Accounts for which the helper starts programs.
    pub accounts: Accounts,
}

/// Connects a process that takes over to the helper of this process; `None` if there is no helper.
///
/// # Errors
///
/// Returns an error if the helper refuses, because too many old processes use it, or does not reply.
pub fn offer_helper() -> io::Result<Option<OfferedHelper>> {
    let Some(helper) = helper() else { return Ok(None) };
    Ok(Some(OfferedHelper {
        channel: helper.connect()?,
        version: HELPER_VERSION,
        accounts: helper.accounts().clone(),
    }))
}

/// Uses the helper of the process from which this process takes over.
///
/// # Errors
///
/// Returns a message for the operator if the helper has another version.
pub fn adopt_helper(offered: OfferedHelper) -> Result<(), String> {
    if offered.version != HELPER_VERSION {
        return Err(format!(
            "scripts run as other accounts, and the process that starts them has version {} of its messages, while this \
             program knows version {HELPER_VERSION}: restart the server",
            offered.version
        ));
    }
    let _ = RIGHTS.set(Rights::ViaHelper(Helper::adopt(offered.channel, offered.accounts)));
    Ok(())
}

/// Returns a warning for the operator if scripts run as an unsafe account: `nobody`, or the account of the server
/// although the server was started as root. `has_scripts`: true if the configuration has scripts.
pub fn warning(has_scripts: bool) -> Option<String> {
    if !has_scripts {
        return None;
    }
    match RIGHTS.get()? {
        Rights::Shared => Some(
            "scripts run as the account of the server and can read its private keys, because there is no other account \
             for them: create one (useradd --system www-data) and restart"
                .to_owned(),
        ),
        Rights::ViaHelper(helper) => plan::unusual_default(helper.accounts().default_account().ok()?.1),
        Rights::Dropped => None,
    }
}

/// Sets `user` to `server.script_user` in all sites and routes that name no account. Changes nothing if this process
/// cannot start programs as other accounts, because it would then refuse scripts that its own account can run.
pub fn apply_default(config: &mut Config) {
    let Some(default) = config.server.script_user.clone().filter(|_| can_switch_accounts()) else {
        return;
    };
    for site in &mut config.sites {
        let routes = site.routes.iter_mut().map(|route| &mut route.settings);
        for settings in std::iter::once(&mut site.settings).chain(routes) {
            settings.user.get_or_insert_with(|| default.clone());
        }
    }
}

impl Launch {
    /// Starts the program. The calling thread has to outlive the program, because the system signals a child when the
    /// thread that started it ends.
    ///
    /// # Errors
    ///
    /// Returns the error of the system or of the helper.
    pub fn start(self) -> io::Result<Process> {
        match self.account {
            Account::ViaHelper { number, .. } => {
                let helper = helper().ok_or(io::ErrorKind::NotConnected)?;
                Ok(helper.launch(number, self)?.into())
            }
            Account::Own | Account::Other(_) => Ok(self.start_child()?.into()),
        }
    }
}

impl Account {
    /// Returns the account of scripts: `wanted` if the configuration names one, else the default.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if this process cannot start programs as that account.
    pub fn for_scripts(wanted: Option<&str>) -> io::Result<Account> {
        match (RIGHTS.get(), wanted) {
            (Some(Rights::ViaHelper(helper)), wanted) => Account::from_helper(helper, wanted),
            (Some(Rights::Dropped), wanted) => {
                let wanted = wanted.unwrap_or("another account");
                let why = format!(
                    "RockNet dropped root's rights when it had no scripts, and cannot run scripts as {wanted} now"
                );
                Err(io::Error::other(format!(
                    "{why}: restart it (to add scripts later by a reload, set script_user = \"NAME\" below [server])"
                )))
            }
            (Some(Rights::Shared), None) => Ok(Account::Own),
            (_, Some(name)) => Account::named(name),
            (None, None) => Account::default(),
        }
    }

    /// Returns the account of scripts, like [`Account::for_scripts`], from the accounts of the helper.
    fn from_helper(helper: &Helper, wanted: Option<&str>) -> io::Result<Account> {
        let accounts = helper.accounts();
        let at = match wanted {
            None => {
                let (number, user) = accounts.default_account()?;
                return Ok(Account::ViaHelper {
                    number,
                    user: user.clone(),
                });
            }
            Some(name) => {
                let user = User::find(name).map_err(io::Error::other)?;
                if user.uid == 0 {
                    return Err(root_error());
                }
                if user.uid == privileges::effective_uid() {
                    return Err(server_account_error(name));
                }
                accounts
                    .all
                    .iter()
                    .position(|account| (account.uid, account.gid) == (user.uid, user.gid))
            }
        };
        let found = at.and_then(|at| Some((u8::try_from(at).ok()?, accounts.all.get(at)?)));
        found
            .map(|(number, user)| Account::ViaHelper {
                number,
                user: user.clone(),
            })
            .ok_or_else(|| {
                io::Error::other(
                    "the accounts of scripts are fixed when RockNet starts as root, and the configuration did not name \
                     this one then: restart RockNet",
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_with_other_messages_is_refused() {
        let (_, channel) = rocknet_io::fd_channel::FdChannel::pair().unwrap();
        let refused = adopt_helper(OfferedHelper {
            channel,
            version: HELPER_VERSION + 1,
            accounts: Accounts::default(),
        });
        assert!(refused.unwrap_err().ends_with("restart the server"));
        // The helper was not adopted, so only root can switch accounts.
        assert!(!can_switch_accounts() || privileges::is_root());
    }
}
