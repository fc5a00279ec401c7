//! Program steps during the start of a server: sockets and secrets of a previous process, the sandbox, the switch to
//! another account, and the error log.

use std::path::PathBuf;

use rocknet::certificates::resumption::{SessionStores, TicketSecrets};
use rocknet::certificates::storage::FileStorage;
use rocknet::gateway::accounts;
use rocknet::limits::LimitSecrets;
use rocknet::log::{ErrorLog, Logger, init_errors};
use rocknet::registries::Registries;
use rocknet::server::StartHooks;
use rocknet::takeover::{AdoptedSockets, Predecessor};
use rocknet_config::Config;
use rocknet_config::model::Log;
use rocknet_io::inherited_sockets::InheritedSockets;
use rocknet_io::privileges::{self, User};
use rocknet_io::socket::Address;

use super::super::control;
use super::super::sandbox::{ActiveSandbox, SandboxPlan};

/// Program steps during the start of a server.
pub(super) struct ProgramStart<'a> {
    /// Account to switch to.
    pub(super) user: Option<&'a str>,
    pub(super) state: &'a StateFolder,
    /// Accounts under which scripts run.
    pub(super) scripts: &'a accounts::AccountPlan,
    pub(super) config: &'a Config,
    /// Process that this one replaces in an upgrade.
    pub(super) predecessor: Option<&'a Predecessor>,
    /// Sockets that the service manager has passed.
    pub(super) sockets: InheritedSockets,
    /// Limits to set; `None` once they are set.
    pub(super) sandbox: Option<SandboxPlan>,
    /// Limits in effect.
    pub(super) active_sandbox: ActiveSandbox,
    /// Set once the logs are open.
    pub(super) error_log: Option<ErrorLog>,
}

impl StartHooks for ProgramStart<'_> {
    fn adopted_sockets(&mut self) -> AdoptedSockets {
        let previous = self.predecessor.map(Predecessor::sites).unwrap_or_default();
        previous.with_activated(std::mem::take(&mut self.sockets))
    }

    fn before_threads(&mut self) -> Result<(), String> {
        let Some(sandbox) = self.sandbox.take() else {
            return Ok(());
        };
        sandbox.prepare()?;
        become_user(self.user, self.state, self.scripts, self.config)?;
        self.active_sandbox = sandbox.enter()?;
        Ok(())
    }

    fn log_opened(&mut self, log: &Log, logger: &Logger) {
        self.error_log = Some(init_errors(log, logger));
    }

    fn ticket_secrets(&mut self) -> Option<TicketSecrets> {
        self.predecessor?.ticket_secrets()
    }

    fn limit_secrets(&mut self) -> Option<LimitSecrets> {
        self.predecessor?.limit_secrets()
    }

    fn before_serving(
        &mut self,
        sessions: &SessionStores,
        registries: &Registries,
        unused_udp: &[Address],
    ) -> Result<(), String> {
        self.predecessor.map_or(Ok(()), |predecessor| {
            predecessor.prepared(sessions, registries, unused_udp)
        })
    }
}

/// State folder. The account that the server switches to becomes its owner.
pub(super) struct StateFolder {
    pub(super) folder: PathBuf,
    /// True if the configuration stores certificates or PHP files in the folder. The owner changes in any case,
    /// because a reload may need the folder later. If this is false, an error of that change is ignored.
    pub(super) is_needed: bool,
}

/// Switches to `user` if the process runs as root and a user is given. The state folder then belongs to that user. In
/// either case, programs that the server starts inherit no capability.
fn become_user(
    user: Option<&str>,
    state: &StateFolder,
    scripts: &accounts::AccountPlan,
    config: &Config,
) -> Result<(), String> {
    let Some(user) = user.filter(|_| privileges::is_root()) else {
        // A service manager passes the capability for low ports in the ambient set.
        return privileges::stop_inheritance().map_err(|error| error.to_string());
    };
    let user = User::find(user).map_err(|error| error.to_string())?;
    let changed_owner = FileStorage::new(&state.folder).chown(user.uid, user.gid);
    if let Err(error) = changed_owner
        && state.is_needed
    {
        return Err(format!("the state folder {}: {error}", state.folder.display()));
    }
    control::prepare_folder(config, &user);
    // The helper that starts scripts is created before privileges are dropped, because it needs root privileges.
    accounts::prepare(scripts, &user).map_err(|error| format!("scripts cannot run: {error}"))?;
    privileges::drop_to(&user).map_err(|error| error.to_string())
}
