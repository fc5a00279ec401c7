//! The new process's side of an upgrade: receives the sockets, and reports success or failure.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rocknet_io::child;
use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::privileges::User;
use rocknet_io::socket::{Address, Listener};
use rocknet_quic::Relay;
use zeroize::Zeroizing;

use super::adopted::AdoptedSockets;
use super::message::{SocketGroup, SocketKind, ToNew, ToOld, VARIABLE, VERSION};
use super::message_bounds::MessageBounds;
use super::optional_message::{MAX_MESSAGE, OptionalMessage};
use crate::certificates::resumption::{SessionStores, TicketSecrets};
use crate::gateway::accounts::{Accounts, OfferedHelper};
use crate::limit_transfer;
use crate::limits::LimitSecrets;
use crate::registries::Registries;

/// Maximum time between two messages of the old process, and for sending a message to it. The old process sends its
/// list of sockets without a pause, and takes longer only for its reply to [`Predecessor::prepared`].
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The process from which this process takes over.
pub struct Predecessor {
    channel: FdChannel,
    /// Everything that the old process has passed; `None` until it was received completely.
    received: Mutex<Option<Received>>,
    /// True if the old process was started as root, and has dropped root's rights because its configuration had no
    /// scripts. This process must not run scripts either, because they would run as the account of the server.
    pub has_dropped_root: bool,
    /// State folder of the old process.
    pub state_folder: PathBuf,
}

/// Sockets, secrets and helper that the old process has passed.
struct Received {
    sites: AdoptedSockets,
    control: AdoptedSockets,
    /// `None` if the old process has sent no secrets in a version that this program knows.
    ticket_secrets: Option<TicketSecrets>,
    /// Secrets of the tables of clients (limits, offences, wrong passwords); `None` as for `ticket_secrets`.
    limit_secrets: Option<LimitSecrets>,
    /// Helper that starts programs as other accounts; `None` if the old process has none.
    helper: Option<OfferedHelper>,
}

impl Predecessor {
    /// Returns the predecessor if this process was started by [`Successor::start`](super::Successor::start), with the
    /// sockets that it passes. Takes over the standard input of the process in this case.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator, which was sent to the predecessor too.
    pub fn from_environment() -> Result<Option<Predecessor>, String> {
        if std::env::var_os(VARIABLE).is_none() {
            return Ok(None);
        }
        // A program that a server starts inherits the variable, but has another standard input.
        let Ok(channel) = FdChannel::from_stdin() else {
            return Ok(None);
        };
        // The program was executed from an open file, so the kernel named the process after the number of a descriptor.
        child::set_process_name(c"rocknet");
        let mut predecessor = Predecessor {
            channel,
            received: Mutex::new(None),
            has_dropped_root: false,
            state_folder: PathBuf::new(),
        };
        let received = predecessor.receive_sockets();
        match received {
            Ok(received) => {
                predecessor.received = Mutex::new(Some(received));
                Ok(Some(predecessor))
            }
            Err(error) => {
                predecessor.failed(&error);
                Err(error)
            }
        }
    }

    /// Receives the messages of the old process up to the end of its list of sockets.
    fn receive_sockets(&mut self) -> Result<Received, String> {
        let (begin, _) = self.receive()?;
        let ToNew::Begin {
            version,
            generation,
            has_dropped_root,
        } = begin
        else {
            return Err("the upgrade begins with an unknown message".to_owned());
        };
        if version != VERSION {
            return Err(format!(
                "the running process passes its sockets in version {version}, and this program knows version {VERSION}: \
                 restart the server"
            ));
        }
        self.has_dropped_root = has_dropped_root;
        let (ToNew::StateFolder(folder), _) = self.receive()? else {
            return Err("the upgrade names no state folder".to_owned());
        };
        self.state_folder = folder;
        let mut sites = AdoptedSockets::new(generation);
        let mut control = AdoptedSockets::new(generation);
        let (mut ticket_secrets, mut limit_secrets) = (None, None);
        let (mut helper, mut missing_accounts) = (None::<OfferedHelper>, 0);
        let mut bounds = MessageBounds::default();
        loop {
            let (message, socket) = self.receive()?;
            bounds.count(&message)?;
            let (group, kind, address) = match (message, socket.is_some()) {
                (ToNew::Socket { group, kind, address }, _) => (group, kind, address),
                (ToNew::Relay { generation }, true) => {
                    if let Some(channel) = socket {
                        sites.add_relay(Relay::new(generation, channel));
                    }
                    continue;
                }
                (ToNew::Optional(optional), _) => {
                    match optional {
                        Some(OptionalMessage::TicketSecrets(secrets)) => {
                            ticket_secrets = TicketSecrets::decode(&secrets.0);
                        }
                        Some(OptionalMessage::LimitSecrets(secrets)) => {
                            limit_secrets = LimitSecrets::decode(&secrets.0);
                        }
                        // Sessions and limits come later, after `prepared`. `None` is an unknown message.
                        Some(OptionalMessage::Sessions(_) | OptionalMessage::Limits) | None => {}
                    }
                    continue;
                }
                (
                    ToNew::Helper {
                        version,
                        accounts,
                        default,
                    },
                    true,
                ) => {
                    helper = socket.map(|channel| OfferedHelper {
                        channel,
                        version,
                        accounts: Accounts {
                            all: Vec::new(),
                            default,
                        },
                    });
                    missing_accounts = accounts;
                    continue;
                }
                (ToNew::Account { uid, gid, name }, _) if missing_accounts > 0 => {
                    missing_accounts -= 1;
                    if let Some(helper) = &mut helper {
                        helper.accounts.all.push(account(uid, gid, name));
                    }
                    continue;
                }
                (ToNew::End, _) if missing_accounts == 0 => {
                    return Ok(Received {
                        sites,
                        control,
                        ticket_secrets,
                        limit_secrets,
                        helper,
                    });
                }
                _ => return Err("the upgrade has an unexpected message".to_owned()),
            };
            let socket = socket.ok_or_else(|| format!("the socket of {address} was not received"))?;
            let group = match group {
                SocketGroup::Sites => &mut sites,
                SocketGroup::Control => &mut control,
            };
            let entry = group.entry(address.clone());
            match kind {
                SocketKind::Stream | SocketKind::Activated => {
                    let listener = match kind {
                        SocketKind::Activated => Listener::from_descriptor(socket),
                        _ => Listener::take_over(socket),
                    };
                    let unusable = |error| format!("the socket of {address} cannot be used: {error}");
                    entry.streams.push(listener.map_err(unusable)?);
                }
                SocketKind::Udp => entry.udp.push(socket),
            }
        }
    }

    /// Receives the next message, and the descriptor that comes with it, if any.
    fn receive(&self) -> Result<(ToNew, Option<OwnedFd>), String> {
        let ended = || "the old process has ended the upgrade".to_owned();
        if !self.channel.wait_readable(MESSAGE_TIMEOUT) {
            return Err("the old process does not respond".to_owned());
        }
        // A message may contain secrets.
        let mut buffer = Zeroizing::new(vec![0; MAX_MESSAGE]);
        let received = self.channel.recv(&mut buffer, Blocking::No);
        let received = received.map_err(|error| error.to_string())?.ok_or_else(ended)?;
        let message = ToNew::decode(&buffer[..received.size]).ok_or("the upgrade has an unknown message")?;
        Ok((message, received.fd))
    }

    /// Returns the sockets of the sites. Further calls return none.
    pub fn sites(&self) -> AdoptedSockets {
        self.take(|received| &mut received.sites)
    }

    /// Returns the sockets of the control API. Further calls return none.
    pub fn control(&self) -> AdoptedSockets {
        self.take(|received| &mut received.control)
    }

    /// Returns the helper that starts programs as other accounts, if the old process has one. Further calls return
    /// none.
    pub fn helper(&self) -> Option<OfferedHelper> {
        let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        all.as_mut().and_then(|received| received.helper.take())
    }

    /// Returns the secrets of session tickets, if the old process has passed them. Further calls return none.
    pub fn ticket_secrets(&self) -> Option<TicketSecrets> {
        let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        all.as_mut().and_then(|received| received.ticket_secrets.take())
    }

    /// Returns the secrets of the tables of clients, if the old process has passed them. Further calls return none.
    pub fn limit_secrets(&self) -> Option<LimitSecrets> {
        let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        all.as_mut().and_then(|received| received.limit_secrets.take())
    }

    /// Takes the sockets of one group. Further calls return none.
    fn take(&self, group: fn(&mut Received) -> &mut AdoptedSockets) -> AdoptedSockets {
        let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        all.as_mut().map(group).map(std::mem::take).unwrap_or_default()
    }

    /// Reports that only the workers have to be started, and waits until the old process permits their start. Adds to
    /// `sessions` the TLS sessions that the old process passes, and to `registries` the limits and offences of its
    /// clients. `unused_udp`: addresses whose UDP sockets this process does not read.
    ///
    /// # Errors
    ///
    /// Fails if the old process has ended the upgrade.
    pub fn prepared(
        &self,
        sessions: &SessionStores,
        registries: &Registries,
        unused_udp: &[Address],
    ) -> Result<(), String> {
        let unused = unused_udp.iter().cloned().map(ToOld::UnusedUdp);
        for message in unused.chain([ToOld::Prepared]) {
            self.send(&message).map_err(|error| error.to_string())?;
        }
        loop {
            let (message, file) = self.receive()?;
            match message {
                ToNew::Optional(Some(OptionalMessage::Sessions(batch))) => sessions.adopt(batch),
                ToNew::Optional(Some(OptionalMessage::Limits)) => {
                    limit_transfer::adopt(registries, file.map(File::from));
                }
                ToNew::Optional(_) => {}
                ToNew::Go => return Ok(()),
                _ => return Err("the old process has not permitted the upgrade".to_owned()),
            }
        }
    }

    /// Reports that this process serves. The old process stops accepting, and ends after its connections.
    ///
    /// # Errors
    ///
    /// Fails if the old process has ended, or no longer waits. This process serves all the same.
    pub fn ready(&self) -> io::Result<()> {
        self.send(&ToOld::Ready)
    }

    /// Waits at most for `limit` until the old process has named this process to the service manager as its successor.
    /// Before that, the service manager ignores notifications from this process.
    pub fn wait_for_release(&self, limit: Duration) {
        // The old process sends nothing more, and closes its end of the channel.
        self.channel.wait_readable(limit);
    }

    /// Reports that this process cannot take over. The old process continues, and shows the reason.
    pub fn failed(&self, error: &str) {
        let _ = self.send(&ToOld::Failed(error.to_owned()));
    }

    /// Sends a message to the old process.
    fn send(&self, message: &ToOld) -> io::Result<()> {
        self.channel.set_send_timeout(MESSAGE_TIMEOUT)?;
        self.channel.send(&message.encode(), None, Blocking::Yes)
    }
}

/// Returns an account for which the helper starts programs. The helper itself keeps the groups that the account had
/// when the helper was started. An account that the system no longer has, or whose IDs have changed, is returned
/// without groups and home folder, and is not used for new scripts.
fn account(uid: u32, gid: u32, name: String) -> User {
    let known = User::find(&name).ok().filter(|user| (user.uid, user.gid) == (uid, gid));
    known.unwrap_or_else(|| User {
        name,
        uid,
        gid,
        groups: Vec::new(),
        home: None,
    })
}
