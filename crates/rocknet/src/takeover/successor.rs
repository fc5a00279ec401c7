//! The old process's side of an upgrade: starts the new program, and passes the sockets to it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child::{self, ChildSetup};
use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::socket::Address;
use rustix::process::Signal;

use zeroize::Zeroizing;

use super::message::{MAX_SOCKETS, OfferedSocket, SocketGroup, ToNew, ToOld, VARIABLE, VERSION};
use super::message_bounds::MAX_RELAYS;
use super::optional_message::{MAX_MESSAGE, OptionalMessage, SecretBytes, session_batches};
use crate::certificates::resumption::SiteSessions;
use crate::gateway::accounts::{Accounts, OfferedHelper};

/// Maximum wait for the exit status of a process that has closed its channel.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// Interval at which the exit status is queried.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum time to pass sessions for early data. It is short, because no process reads the UDP sockets meanwhile, and
/// because sessions only save round trips.
const SESSIONS_TIME: Duration = Duration::from_millis(500);

/// Parameters of the start of a new process.
pub struct Offer {
    /// Program to start.
    pub program: PathBuf,
    /// Command line, beginning with the name of the program.
    pub arguments: Vec<OsString>,
    /// Sockets of the sites and of the control API.
    pub sockets: Vec<(SocketGroup, OfferedSocket)>,
    /// Channels to this process and older ones for datagrams of their QUIC connections, each with the number of the
    /// process.
    pub relays: Vec<(u16, OwnedFd)>,
    /// Number of the new process for its QUIC connection IDs.
    pub generation: u16,
    /// Helper that starts programs as other accounts, if this process has one.
    pub helper: Option<OfferedHelper>,
    /// Encoded secrets of session tickets.
    pub ticket_secrets: Zeroizing<Vec<u8>>,
    /// Encoded secrets of the tables of clients (limits, offences, wrong passwords).
    pub limit_secrets: Zeroizing<Vec<u8>>,
    /// True if this process was started as root, and has dropped root's rights because its configuration had no
    /// scripts. The new process must not run scripts either, because they would run as the account of the server.
    pub has_dropped_root: bool,
    /// State folder of the server.
    pub state_folder: PathBuf,
    /// Variables that are added to the environment of the new process.
    pub environment: Vec<(&'static str, OsString)>,
    /// Time until the new process has to be ready.
    pub timeout: Duration,
}

/// A new process that has started everything but its workers. It is killed when dropped, unless [`Successor::finish`]
/// has succeeded.
pub struct Successor {
    channel: FdChannel,
    child: Child,
    deadline: Instant,
    timeout: Duration,
    is_ready: bool,
    unused_udp: Vec<Address>,
}

/// Reason why the new process has not taken over.
#[derive(Debug)]
pub struct UpgradeError(pub String);

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UpgradeError {}

impl Successor {
    /// Starts the new process, passes the sockets, and waits until it is prepared.
    ///
    /// # Errors
    ///
    /// Returns why the new process cannot take over. The process has been killed, if it had not ended already.
    pub fn start(offer: Offer) -> Result<Successor, UpgradeError> {
        let deadline = Instant::now() + offer.timeout;
        let program = offer.program.as_path();
        let cannot = |error: io::Error| UpgradeError(format!("{} cannot be started: {error}", program.display()));
        let file = open_program(program).map_err(cannot)?;
        let (channel, input) = FdChannel::pair().map_err(cannot)?;
        let mut command = Command::new(path_of(&file, program));
        let name = offer.arguments.first().map_or("rocknet".into(), OsString::clone);
        command
            .arg0(name)
            .args(offer.arguments.iter().skip(1))
            .env(VARIABLE, VERSION.to_string())
            .envs(offer.environment.iter().cloned())
            .stdin(input);
        let setup = ChildSetup {
            is_successor: true,
            ..ChildSetup::default()
        };
        child::prepare(&mut command, setup).map_err(cannot)?;
        let child = command.spawn().map_err(cannot)?;
        // The other end of the channel must be open in the new process only, so that this process notices when the new
        // one ends. The command holds that end too.
        drop(command);
        let mut successor = Successor {
            channel,
            child,
            deadline,
            timeout: offer.timeout,
            is_ready: false,
            unused_udp: Vec::new(),
        };
        let sent = successor.send_offer(offer);
        match (sent, successor.receive_report()) {
            // The message of the new process is more precise than the error of the channel.
            (_, Err(error)) => Err(error),
            (Err(error), _) => Err(UpgradeError(format!("the sockets cannot be passed: {error}"))),
            (Ok(()), Ok(ToOld::Prepared)) => Ok(successor),
            (Ok(()), Ok(_)) => Err(UpgradeError("the new process was ready too early".to_owned())),
        }
    }

    /// Sends the parameters of the upgrade, the helper, the secrets, the channels for QUIC datagrams, and the sockets.
    fn send_offer(&self, offer: Offer) -> io::Result<()> {
        if offer.sockets.len() > MAX_SOCKETS {
            return Err(io::Error::other(format!("there are more than {MAX_SOCKETS} of them")));
        }
        if offer.relays.len() > MAX_RELAYS {
            let message = format!("more than {MAX_RELAYS} older processes still serve connections");
            return Err(io::Error::other(message));
        }
        self.send(&ToNew::Begin {
            version: VERSION,
            generation: offer.generation,
            has_dropped_root: offer.has_dropped_root,
        })?;
        self.send(&ToNew::StateFolder(offer.state_folder))?;
        if let Some(helper) = offer.helper {
            self.send_helper(&helper)?;
        }
        let ticket_secrets = OptionalMessage::TicketSecrets(SecretBytes(offer.ticket_secrets));
        let limit_secrets = OptionalMessage::LimitSecrets(SecretBytes(offer.limit_secrets));
        for secrets in [ticket_secrets, limit_secrets] {
            self.send(&ToNew::Optional(Some(secrets)))?;
        }
        for (generation, channel) in offer.relays {
            self.channel.set_send_timeout(self.left())?;
            let message = ToNew::Relay { generation }.encode();
            self.channel.send(&message, Some(channel.as_fd()), Blocking::Yes)?;
        }
        for (group, OfferedSocket { kind, address, socket }) in offer.sockets {
            self.channel.set_send_timeout(self.left())?;
            let message = ToNew::Socket { group, kind, address }.encode();
            self.channel.send(&message, Some(socket.as_fd()), Blocking::Yes)?;
        }
        self.send(&ToNew::End)
    }

    /// Sends the channel of the helper, and the accounts for which it starts programs.
    fn send_helper(&self, helper: &OfferedHelper) -> io::Result<()> {
        let Accounts { all, default } = &helper.accounts;
        let message = ToNew::Helper {
            version: helper.version,
            accounts: all.len(),
            default: *default,
        };
        self.channel.set_send_timeout(self.left())?;
        let channel = helper.channel.as_fd();
        self.channel.send(&message.encode(), Some(channel), Blocking::Yes)?;
        for user in all {
            self.send(&ToNew::Account {
                uid: user.uid,
                gid: user.gid,
                name: user.name.clone(),
            })?;
        }
        Ok(())
    }

    /// Sends a message without a descriptor.
    fn send(&self, message: &ToNew) -> io::Result<()> {
        self.channel.set_send_timeout(self.left())?;
        self.channel.send(&message.encode(), None, Blocking::Yes)
    }

    /// Returns the time until the new process has to be ready.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits for the next message of the new process. An error that the new process reports is returned as an error.
    fn receive(&mut self) -> Result<ToOld, UpgradeError> {
        if !self.channel.wait_readable(self.left()) {
            let timeout = self.timeout.as_secs();
            return Err(UpgradeError(format!(
                "the new process was not ready within {timeout} s"
            )));
        }
        let mut buffer = vec![0; MAX_MESSAGE];
        let received = self.channel.recv(&mut buffer, Blocking::No);
        let failed = |error: io::Error| UpgradeError(format!("the new process does not respond: {error}"));
        let Some(message) = received.map_err(failed)? else {
            return Err(self.ended());
        };
        match ToOld::decode(&buffer[..message.size]) {
            Some(ToOld::Failed(error)) => Err(UpgradeError(error)),
            Some(message) => Ok(message),
            // An unknown message is ignored only if it is marked as optional; it is then `ToOld::Unknown`.
            None => Err(UpgradeError("the new process sent an unknown message".to_owned())),
        }
    }

    /// Receives the next message that reports progress.
    fn receive_report(&mut self) -> Result<ToOld, UpgradeError> {
        loop {
            match self.receive()? {
                ToOld::UnusedUdp(address) => self.unused_udp.push(address),
                // An optional message of a newer program, which this program may ignore.
                ToOld::Unknown => {}
                message => return Ok(message),
            }
        }
    }

    /// Returns the error of a process that has closed its channel.
    fn ended(&mut self) -> UpgradeError {
        let deadline = Instant::now() + EXIT_WAIT;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return UpgradeError(format!("the new process ended before it was ready: {status}"));
            }
            thread::sleep(EXIT_POLL_INTERVAL);
        }
        UpgradeError("the new process did not take the sockets: its program cannot take over from RockNet".to_owned())
    }

    /// Returns the addresses whose UDP sockets the new process does not read.
    pub fn unused_udp(&self) -> &[Address] {
        &self.unused_udp
    }

    /// Returns the process ID of the new process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Passes the tables of clients to the prepared process. `file`: a file of
    /// [`limit_transfer::write`](crate::limit_transfer::write).
    ///
    /// # Errors
    ///
    /// Fails if the new process does not respond. It is prepared all the same.
    pub fn send_limits(&self, file: &File) -> io::Result<()> {
        self.channel.set_send_timeout(self.left())?;
        let message = ToNew::Optional(Some(OptionalMessage::Limits)).encode();
        self.channel.send(&message, Some(file.as_fd()), Blocking::Yes)
    }

    /// Passes sessions for at most [`SESSIONS_TIME`]. The remaining sessions are lost, and their clients make a full
    /// handshake.
    fn send_sessions(&self, sites: Vec<SiteSessions>) {
        let deadline = self.deadline.min(Instant::now() + SESSIONS_TIME);
        for batch in sites.into_iter().flat_map(session_batches) {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = ToNew::Optional(Some(batch)).encode();
            let sent = self
                .channel
                .set_send_timeout(left)
                .and_then(|()| self.channel.send(&message, None, Blocking::Yes));
            if left.is_zero() || sent.is_err() {
                return;
            }
        }
    }

    /// Permits the new process to serve, and waits until it does. The new process notifies the service manager once the
    /// returned value is dropped, which closes the channel. `sessions`: sessions for early data that were taken out of
    /// the stores of this process.
    ///
    /// # Errors
    ///
    /// Fails in the same cases as [`Successor::start`].
    pub fn finish(mut self, sessions: Vec<SiteSessions>) -> Result<Successor, UpgradeError> {
        self.send_sessions(sessions);
        let permitted = self.send(&ToNew::Go);
        match (permitted, self.receive_report()) {
            (_, Err(error)) => Err(error),
            (Ok(()), Ok(ToOld::Ready)) => {
                self.is_ready = true;
                Ok(self)
            }
            _ => Err(UpgradeError("the new process did not become ready".to_owned())),
        }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.is_ready {
            // The new process leads a process group of its own.
            let _ = child::signal_group(self.child.id(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Opens a program. Executing the open file runs the checked program even if its path is replaced meanwhile.
fn open_program(program: &Path) -> io::Result<File> {
    let file = File::open(program)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is not an executable file",
        ));
    }
    Ok(file)
}

/// Returns the path by which an open program is executed.
#[cfg(target_os = "linux")]
fn path_of(file: &File, _program: &Path) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Returns the path of the program itself, because other systems cannot execute an open file by a path.
#[cfg(not(target_os = "linux"))]
fn path_of(_file: &File, program: &Path) -> PathBuf {
    program.to_owned()
}
