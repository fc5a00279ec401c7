//! The helper's side of the protocol: checks each request, executes it, and replies. When a client ends, the helper
//! ends all programs that it started for the client. After the last client and its programs, the helper ends itself.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::privileges::{self, User};

use super::programs::{EndingPrograms, INVALID, ProgramTable, REFUSED, errno};
use super::protocol::{self, HelperReply, HelperRequest, MESSAGE_SIZE};

/// Maximum number of programs of all clients together. A server needs far fewer: at most 64 CGI programs, and one
/// php-fpm for each pool.
const MAX_PROCESSES: usize = 1024;
/// Maximum number of clients: the server, and old processes of it that finish their connections after an upgrade.
const MAX_CLIENTS: usize = 64;
/// Poll interval for the end of programs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Error number of a reply if too many programs run, or if there are too many clients.
const FULL: i32 = rustix::io::Errno::AGAIN.raw_os_error();

/// State of the helper.
#[derive(Default)]
struct HelperServer {
    /// Accounts for which programs are started; `None` until they are received.
    accounts: Option<Vec<User>>,
    clients: Vec<HelperClient>,
    /// Programs of clients that have ended.
    ending: Vec<EndingPrograms>,
}

/// A process of the server.
struct HelperClient {
    channel: FdChannel,
    programs: ProgramTable,
}

/// Runs the helper until all clients have closed their channels and their programs have ended. The standard input is
/// the channel of the first client.
pub fn run() -> ExitCode {
    let Ok(channel) = FdChannel::from_stdin() else {
        return ExitCode::FAILURE;
    };
    if privileges::prepare_account_helper().is_err() {
        return ExitCode::FAILURE;
    }
    let mut server = HelperServer::default();
    server.add_client(channel);
    while server.serve() {}
    ExitCode::SUCCESS
}

impl HelperServer {
    /// Adds a client.
    fn add_client(&mut self, channel: FdChannel) {
        self.clients.push(HelperClient {
            channel,
            programs: ProgramTable::default(),
        });
    }

    /// Waits for requests and handles them. Returns false when all clients and programs have ended, or if waiting
    /// fails. After such a failure, the programs end with the helper.
    fn serve(&mut self) -> bool {
        self.ending.retain_mut(|programs| !programs.have_ended());
        if self.clients.is_empty() && self.ending.is_empty() {
            return false;
        }
        let timeout = (!self.ending.is_empty()).then_some(POLL_INTERVAL);
        let channels: Vec<&FdChannel> = self.clients.iter().map(|client| &client.channel).collect();
        let Ok(ready) = FdChannel::wait_any(&channels, timeout) else {
            return false;
        };
        // From the last to the first, because a client that has ended is removed.
        for at in ready.into_iter().rev() {
            if !self.serve_client(at) {
                let client = self.clients.remove(at);
                self.ending.push(client.programs.end());
            }
        }
        true
    }

    /// Handles a request of the client with index `at`. Returns false if the client has closed its channel, or violates
    /// the protocol: it sends a malformed request, or does not read its replies.
    fn serve_client(&mut self, at: usize) -> bool {
        // One byte more than a message, so that a longer message is recognized as malformed.
        let mut buffer = [0; MESSAGE_SIZE + 1];
        let Ok(Some((size, descriptors))) = self.clients[at].channel.recv_with_fds(&mut buffer) else {
            return false;
        };
        let Some((sequence, request)) = HelperRequest::read(&buffer[..size]) else {
            return false;
        };
        let reply = protocol::write_reply(sequence, self.handle(at, request, descriptors));
        let client = &mut self.clients[at];
        client.programs.forget_ended();
        client.channel.send(&reply, None, Blocking::No).is_ok()
    }

    /// Executes a request of the client with index `at`.
    fn handle(&mut self, at: usize, request: HelperRequest, descriptors: Vec<OwnedFd>) -> HelperReply {
        match request {
            HelperRequest::Accounts => {
                let [file] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| INVALID)?;
                if self.accounts.is_some() {
                    return Err(REFUSED);
                }
                let content = protocol::read_file(&File::from(file)).map_err(|error| errno(&error))?;
                self.accounts = Some(protocol::read_accounts(&content).ok_or(INVALID)?);
                Ok(0)
            }
            HelperRequest::Connect => {
                let [channel] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| INVALID)?;
                // All clients share the accounts that the first client has sent.
                if self.accounts.is_none() {
                    return Err(REFUSED);
                }
                if self.clients.len() >= MAX_CLIENTS {
                    return Err(FULL);
                }
                self.add_client(FdChannel::from_socket(channel).map_err(|error| errno(&error))?);
                Ok(0)
            }
            HelperRequest::Start { .. } => {
                let running: usize = self.clients.iter().map(|client| client.programs.len()).sum();
                if running >= MAX_PROCESSES {
                    return Err(FULL);
                }
                let accounts = self.accounts.as_deref().ok_or(REFUSED)?;
                self.clients[at].programs.start(request, descriptors, accounts)
            }
            _ => self.clients[at].programs.handle(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use rocknet_io::sealed_file;
    use rustix::process::Signal;

    use super::super::protocol::{ProgramSpec, RUNNING};
    use super::*;

    /// Error number of a reply if there is no program with the requested number.
    const UNKNOWN: i32 = rustix::io::Errno::SRCH.raw_os_error();

    /// Returns a helper with one client, and the channel of the client.
    fn helper() -> (HelperServer, FdChannel) {
        let (ours, theirs) = FdChannel::pair().unwrap();
        let mut server = HelperServer::default();
        server.add_client(theirs.into());
        (server, ours)
    }

    /// Returns a request to start a program as the account with this number.
    fn start(account: u8) -> HelperRequest {
        HelperRequest::Start {
            account,
            has_file: false,
            has_listener: false,
            parent_death_signal: Signal::KILL,
        }
    }

    fn null() -> OwnedFd {
        File::options().read(true).write(true).open("/dev/null").unwrap().into()
    }

    /// Returns the descriptors for a start: a file with `content`, the description of the program, and three streams.
    fn program_files(content: &[u8]) -> Vec<OwnedFd> {
        vec![sealed_file::create(content).unwrap().into(), null(), null(), null()]
    }

    /// Returns the descriptor for a request with this account. The user ID of the server is 4321.
    fn accounts_file(user: &User) -> Vec<OwnedFd> {
        let accounts = protocol::write_accounts(4321, std::slice::from_ref(user));
        vec![sealed_file::create(&accounts).unwrap().into()]
    }

    /// Sends requests that a compromised server might send.
    #[test]
    fn programs_start_only_as_an_account_on_the_list() {
        let user = User {
            name: String::new(),
            uid: 4242,
            gid: 4242,
            groups: vec![4242],
            home: None,
        };
        let program = ProgramSpec {
            path: "/bin/true".into(),
            folder: "/".into(),
            ..ProgramSpec::default()
        };
        let program = program.write();
        let (mut server, _client) = helper();
        assert_eq!(
            server.handle(0, start(0), program_files(&program)),
            Err(REFUSED),
            "before the list"
        );
        assert_eq!(server.handle(0, HelperRequest::Accounts, accounts_file(&user)), Ok(0));
        assert_eq!(
            server.handle(0, HelperRequest::Accounts, accounts_file(&user)),
            Err(REFUSED),
            "a second list"
        );
        assert_eq!(
            server.handle(0, start(1), program_files(&program)),
            Err(REFUSED),
            "not on the list"
        );
        assert_eq!(server.handle(0, start(0), program_files(b"torn")), Err(INVALID));
        let mut less = program_files(&program);
        less.pop();
        assert_eq!(server.handle(0, start(0), less), Err(INVALID));
        let mut more = program_files(&program);
        more.push(null());
        assert_eq!(server.handle(0, start(0), more), Err(INVALID));
        let mut pipe = program_files(&program);
        pipe[0] = std::io::pipe().unwrap().0.into();
        assert_eq!(
            server.handle(0, start(0), pipe),
            Err(INVALID),
            "a pipe instead of a file"
        );
        for request in [
            HelperRequest::TryWait(1),
            HelperRequest::GroupHasMembers(1),
            HelperRequest::Forget(0),
            HelperRequest::Signal {
                number: 1,
                signal: Signal::KILL,
                to_group: true,
            },
        ] {
            assert_eq!(server.handle(0, request, Vec::new()), Err(UNKNOWN), "{request:?}");
        }
        assert_eq!(server.clients[0].programs.len(), 0);
        let root = User { uid: 0, ..user };
        assert_eq!(
            helper().0.handle(0, HelperRequest::Accounts, accounts_file(&root)),
            Err(INVALID)
        );
    }

    /// Returns an account for scripts.
    fn script_account() -> User {
        User {
            name: String::new(),
            uid: 4242,
            gid: 4242,
            groups: vec![4242],
            home: None,
        }
    }

    #[test]
    fn clients_are_connected_after_the_accounts_and_bounded() {
        let (mut server, _client) = helper();
        let other = || vec![FdChannel::pair().unwrap().1];
        assert_eq!(server.handle(0, HelperRequest::Connect, other()), Err(REFUSED));
        server
            .handle(0, HelperRequest::Accounts, accounts_file(&script_account()))
            .unwrap();
        for descriptors in [Vec::new(), vec![null()], other().into_iter().chain(other()).collect()] {
            assert!(server.handle(0, HelperRequest::Connect, descriptors).is_err());
        }
        for number in 1..MAX_CLIENTS {
            assert_eq!(server.handle(0, HelperRequest::Connect, other()), Ok(0), "{number}");
        }
        assert_eq!(server.handle(0, HelperRequest::Connect, other()), Err(FULL));
        assert_eq!(
            server.handle(1, HelperRequest::Accounts, accounts_file(&script_account())),
            Err(REFUSED),
            "the accounts are those of the first client"
        );
    }

    #[test]
    fn programs_of_a_client_end_with_it_and_belong_to_it_alone() {
        if !privileges::is_root() {
            return rocknet_testing::skip(rocknet_testing::Need::Root, "only root can start programs as others");
        }
        let (mut server, first) = helper();
        server
            .handle(0, HelperRequest::Accounts, accounts_file(&script_account()))
            .unwrap();
        let (second, theirs) = FdChannel::pair().unwrap();
        server.handle(0, HelperRequest::Connect, vec![theirs]).unwrap();
        let program = ProgramSpec {
            path: "/bin/sleep".into(),
            folder: "/".into(),
            arguments: vec!["1000".into()],
            ..ProgramSpec::default()
        };
        let program = program.write();
        let of_first = server.handle(0, start(0), program_files(&program)).unwrap();
        let of_second = server.handle(1, start(0), program_files(&program)).unwrap();
        for (client, number) in [(0, of_second), (1, of_first)] {
            let kill = HelperRequest::Signal {
                number,
                signal: Signal::KILL,
                to_group: true,
            };
            assert_eq!(server.handle(client, kill, Vec::new()), Err(UNKNOWN));
        }
        drop(first);
        while server.clients.len() > 1 {
            assert!(server.serve());
        }
        while !server.ending.iter_mut().all(EndingPrograms::have_ended) {
            std::thread::yield_now();
        }
        assert_eq!(
            server.handle(0, HelperRequest::TryWait(of_second), Vec::new()),
            Ok(RUNNING)
        );
        drop(second);
        while server.serve() {}
        assert!(server.clients.is_empty());
    }
}
