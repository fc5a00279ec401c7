//! The server's side of the helper protocol: sends one request at a time and waits for its reply.
//!
//! If a reply does not arrive in time, all further requests fail immediately until that reply has arrived.

mod connection;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rocknet_io::child::{self, ChildSetup};
use rocknet_io::fd_channel::FdChannel;
use rocknet_io::sealed_file;
use rustix::process::Signal;

use self::connection::{HelperConnection, HelperError, lock};
use super::protocol::{self, HELPER_ARGUMENT, HelperRequest, MAX_ACCOUNTS, ProgramSpec, RUNNING};
use crate::accounts::{Accounts, Launch};

/// Timeout of a reply. Starting a program normally takes a millisecond, but the start of a program on a network drive
/// that hangs never returns.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// The helper of this process.
pub struct Helper {
    /// `None` while a caller uses the connection.
    state: Mutex<Option<HelperConnection>>,
    /// Notified when a caller has returned the connection to `state`.
    free: Condvar,
    /// Numbers of programs for which [`HelperRequest::Forget`] is still to be sent: at most as many as there are
    /// programs in the helper.
    to_forget: Mutex<Vec<u64>>,
    /// Maximum wait for the connection, and for a reply.
    timeout: Duration,
    /// True if a failure has been logged. Further failures are not logged.
    has_failed: AtomicBool,
    /// True if the helper has ended. All programs that it started have then ended too.
    has_exited: AtomicBool,
    accounts: Accounts,
    /// Process of the helper, which ends by itself and is not waited for. `None` if a previous process of the server
    /// has started the helper.
    _child: Option<Child>,
}

/// A program started by the helper, identified by the helper's number.
pub struct HelperProcess {
    helper: &'static Helper,
    number: u64,
    /// Exit status; `None` until the program has been reaped.
    status: Option<ExitStatus>,
}

impl Helper {
    /// Starts the helper as root and sends it the accounts, which cannot change later. `server`: user id to which this
    /// process is about to switch.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many accounts, or if the helper does not start or reply.
    pub fn start(program: &Path, server: u32, accounts: Accounts) -> io::Result<Helper> {
        if accounts.all.len() > MAX_ACCOUNTS {
            let why = format!(
                "scripts run as {} accounts, more than the maximum of {MAX_ACCOUNTS}: let sites share accounts",
                accounts.all.len()
            );
            return Err(io::Error::other(why));
        }
        let (channel, input) = FdChannel::pair()?;
        let mut command = Command::new(program);
        command
            .arg0("rocknet")
            .arg(HELPER_ARGUMENT)
            .env_clear()
            .current_dir("/");
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        child::prepare(&mut command, ChildSetup::default())?;
        let child = command.spawn()?;
        // Dropping the command closes the helper's end of the channel in this process, so that this process notices
        // when the helper ends.
        drop(command);
        let helper = Helper::new(channel, Some(child), accounts, REPLY_TIMEOUT);
        let file = sealed_file::create(&protocol::write_accounts(server, &helper.accounts.all))?;
        helper.call(HelperRequest::Accounts, &[file.as_fd()])?;
        Ok(helper)
    }

    /// Returns the helper of a previous process. `channel`: the result of [`Helper::connect`] in that process.
    pub fn adopt(channel: OwnedFd, accounts: Accounts) -> Helper {
        Helper::new(channel.into(), None, accounts, REPLY_TIMEOUT)
    }

    /// Opens another channel to the helper. Returns its end for a process that takes over from this one.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or an error if the helper refuses or does not reply.
    pub fn connect(&self) -> io::Result<OwnedFd> {
        let (helper_end, successor_end) = FdChannel::pair()?;
        self.call(HelperRequest::Connect, &[helper_end.as_fd()])?;
        Ok(successor_end)
    }

    fn new(channel: FdChannel, child: Option<Child>, accounts: Accounts, timeout: Duration) -> Helper {
        Helper {
            state: Mutex::new(Some(HelperConnection {
                channel,
                sequence: 0,
                late: None,
                abandoned: Vec::new(),
            })),
            free: Condvar::new(),
            to_forget: Mutex::default(),
            timeout,
            has_failed: AtomicBool::new(false),
            has_exited: AtomicBool::new(false),
            accounts,
            _child: child,
        }
    }

    /// Returns the accounts for which the helper starts programs.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Starts a program as the account with this number.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or an error if the helper does not reply.
    pub fn launch(&'static self, account: u8, launch: Launch) -> io::Result<HelperProcess> {
        let (listener_name, listener) = launch.listener.unzip();
        let program = ProgramSpec {
            path: launch.program.into(),
            name: launch.name,
            folder: launch.folder.into(),
            listener: listener_name.unwrap_or_default(),
            arguments: launch.arguments,
            environment: launch.environment,
        };
        let content = sealed_file::create(&program.write())?;
        let mut all = vec![
            content.as_fd(),
            launch.stdin.as_fd(),
            launch.stdout.as_fd(),
            launch.stderr.as_fd(),
        ];
        all.extend(launch.file.as_ref().map(AsFd::as_fd));
        all.extend(listener.as_ref().map(AsFd::as_fd));
        let request = HelperRequest::Start {
            account,
            has_file: launch.file.is_some(),
            has_listener: listener.is_some(),
            parent_death_signal: launch.parent_death_signal,
        };
        let number = self.call(request, &all)?;
        Ok(HelperProcess {
            helper: self,
            number,
            status: None,
        })
    }

    /// Sends a request with descriptors, and returns the number in the reply. Logs the first failure of the helper.
    ///
    /// # Errors
    ///
    /// Returns the error in the reply, `BrokenPipe` if the helper has ended, or `TimedOut` if it is not available for
    /// another reason.
    fn call(&self, request: HelperRequest, fds: &[BorrowedFd<'_>]) -> io::Result<u64> {
        let replied = match self.lock_connection() {
            Some(mut connection) => {
                let replied = connection.get().call(request, fds, self.timeout);
                if !matches!(replied, Err(HelperError::Unavailable(_))) {
                    connection.get().clean_up(&self.to_forget, self.timeout);
                }
                replied
            }
            None => Err(HelperError::Unavailable(io::ErrorKind::TimedOut.into())),
        };
        replied.map_err(|error| match error {
            HelperError::Refused(errno) => io::Error::from_raw_os_error(errno),
            HelperError::Unavailable(error) => {
                // `ECONNRESET` means that the helper ended before it had read all requests.
                let has_exited = matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
                if has_exited {
                    self.has_exited.store(true, Ordering::Relaxed);
                }
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the helper that starts programs as other accounts does not respond ({error}): restart RockNet \
                         if PHP and CGI keep failing"
                    );
                }
                let kind = if has_exited {
                    io::ErrorKind::BrokenPipe
                } else {
                    io::ErrorKind::TimedOut
                };
                io::Error::new(
                    kind,
                    format!("the helper that starts programs does not respond: {error}"),
                )
            }
        })
    }

    /// Waits until no other caller uses the connection; `None` if the timeout of a reply passes first.
    fn lock_connection(&self) -> Option<ConnectionGuard<'_>> {
        let state = lock(&self.state);
        let result = self
            .free
            .wait_timeout_while(state, self.timeout, |state| state.is_none());
        let (mut state, _) = result.unwrap_or_else(PoisonError::into_inner);
        let state = state.take()?;
        Some(ConnectionGuard {
            helper: self,
            state: Some(state),
        })
    }
}

/// Exclusive use of the connection. Dropping it returns the connection.
struct ConnectionGuard<'a> {
    helper: &'a Helper,
    state: Option<HelperConnection>,
}

impl ConnectionGuard<'_> {
    fn get(&mut self) -> &mut HelperConnection {
        self.state.as_mut().expect("the connection is returned only on drop")
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.helper.state) = self.state.take();
        self.helper.free.notify_one();
    }
}

impl HelperProcess {
    /// Returns the process ID, which is the lower half of the helper's number; `None` if the ID is unknown.
    pub fn id(&self) -> Option<u32> {
        Some(self.number as u32).filter(|pid| *pid != 0)
    }

    /// Reaps the program if it has ended, and returns its exit status; `None` while it runs. If the helper has ended,
    /// the program counts as ended too.
    ///
    /// # Errors
    ///
    /// Returns an error if the helper does not reply.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let status = match self.helper.call(HelperRequest::TryWait(self.number), &[]) {
                Err(_) if self.helper.has_exited.load(Ordering::Relaxed) => {
                    return Ok(Some(ExitStatus::from_raw(ENDED_WITH_HELPER)));
                }
                status => status?,
            };
            let status = (status != RUNNING).then(|| i32::try_from(status).unwrap_or_default());
            self.status = status.map(ExitStatus::from_raw);
        }
        Ok(self.status)
    }

    /// Sends a signal to the program, or to its whole process group if `to_group` is true.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, or an error if the helper does not reply.
    pub fn signal(&self, signal: Signal, to_group: bool) -> io::Result<()> {
        let request = HelperRequest::Signal {
            number: self.number,
            signal,
            to_group,
        };
        self.helper.call(request, &[]).map(drop)
    }

    /// Returns true if the process group has members, or if this is unknown because the helper does not reply. Returns
    /// false if the helper has ended.
    pub fn group_has_members(&self) -> bool {
        match self.helper.call(HelperRequest::GroupHasMembers(self.number), &[]) {
            Ok(left) => left != 0,
            Err(error) => error.kind() == io::ErrorKind::TimedOut,
        }
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        let result = self.helper.call(HelperRequest::Forget(self.number), &[]);
        if result.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            lock(&self.helper.to_forget).push(self.number);
        }
    }
}

/// Wait status of a program whose helper has ended, because the true status is lost. It means "killed by SIGTERM"
/// (15), the parent-death signal that the system sends to php-fpm.
const ENDED_WITH_HELPER: i32 = 15;

#[cfg(test)]
mod tests;
