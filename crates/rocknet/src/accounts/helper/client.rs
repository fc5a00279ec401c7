//! The server's side: one request at a time, each with its reply.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_io::child::{self, Setup};
use rocknet_io::courier::Courier;
use rocknet_io::unnamed;
use rustix::process::Signal;

use super::WORD;
use super::protocol::{self, MAX_ACCOUNTS, MAX_MESSAGE, Program, RUNNING, Request};
use crate::accounts::{Accounts, Launch};

/// Longest wait for a reply. Starting a program takes a millisecond; a program on a network drive that hangs takes for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// The helper of this process.
pub struct Helper {
    state: Mutex<State>,
    has_failed: AtomicBool,
    /// It has ended, and with it all that it started.
    is_gone: AtomicBool,
    accounts: Accounts,
    _child: Child,
}

struct State {
    courier: Courier,
    sequence: u32,
    /// Requests to start a program whose replies did not come in time. What they started is ended when they come.
    late: Vec<u32>,
    /// Programs that nobody waits for any more.
    strays: Vec<u64>,
}

/// A program that the helper started, by its number there.
pub struct Started {
    helper: &'static Helper,
    number: u64,
    status: Option<ExitStatus>,
}

impl Helper {
    /// Starts it, as root, and tells it the accounts: from then on they are fixed. `server` is the account that this process is
    /// about to become.
    pub fn start(program: &Path, server: u32, accounts: Accounts) -> io::Result<Helper> {
        if accounts.all.len() > MAX_ACCOUNTS {
            let why = format!("scripts run as {} accounts: {MAX_ACCOUNTS} at most", accounts.all.len());
            return Err(io::Error::other(why));
        }
        let (courier, input) = Courier::pair()?;
        let mut command = Command::new(program);
        command.arg0("rocknet").arg(WORD).env_clear().current_dir("/");
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        child::prepare(&mut command, Setup::default())?;
        let child = command.spawn()?;
        // With it goes the end that is the helper's, so that its death is seen.
        drop(command);
        let helper = Helper {
            state: Mutex::new(State {
                courier,
                sequence: 0,
                late: Vec::new(),
                strays: Vec::new(),
            }),
            has_failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            accounts,
            _child: child,
        };
        let told = unnamed::file(&protocol::write_accounts(server, &helper.accounts.all))?;
        helper.ask(Request::Accounts, &[told.as_fd()])?;
        Ok(helper)
    }

    /// The accounts that it starts programs as.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Starts a program as the account with this number.
    pub fn launch(&'static self, account: u8, launch: Launch) -> io::Result<Started> {
        let (listener_name, listener) = launch.listener.unzip();
        let program = Program {
            path: launch.program.into(),
            name: launch.name,
            folder: launch.folder.into(),
            listener: listener_name.unwrap_or_default(),
            arguments: launch.arguments,
            environment: launch.environment,
        };
        let content = unnamed::file(&program.write())?;
        let mut all = vec![
            content.as_fd(),
            launch.input.as_fd(),
            launch.output.as_fd(),
            launch.errors.as_fd(),
        ];
        all.extend(launch.file.as_ref().map(AsFd::as_fd));
        all.extend(listener.as_ref().map(AsFd::as_fd));
        let request = Request::Start {
            account,
            has_file: launch.file.is_some(),
            has_listener: listener.is_some(),
            last_word: launch.last_word,
        };
        let number = self.ask(request, &all)?;
        Ok(Started {
            helper: self,
            number,
            status: None,
        })
    }

    fn ask(&self, request: Request, with: &[BorrowedFd<'_>]) -> io::Result<u64> {
        let mut state = lock(&self.state);
        let asked = state.ask(request, with);
        let strays: Vec<u64> = state.strays.drain(..).collect();
        for number in strays {
            let kill = Request::Signal {
                number,
                signal: Signal::KILL,
                to_group: true,
            };
            let _ = state.ask(kill, &[]);
            let _ = state.ask(Request::Forget(number), &[]);
        }
        drop(state);
        asked.map_err(|error| match error {
            Failure::Refused(errno) => io::Error::from_raw_os_error(errno),
            Failure::Silent(error) => {
                if error.kind() == io::ErrorKind::BrokenPipe {
                    self.is_gone.store(true, Ordering::Relaxed);
                }
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the helper that starts programs as other accounts does not answer ({error}): restart RockNet if PHP and \
                         CGI stay away"
                    );
                }
                io::Error::other(format!("the helper that starts programs does not answer: {error}"))
            }
        })
    }
}

enum Failure {
    Refused(i32),
    Silent(io::Error),
}

impl State {
    fn ask(&mut self, request: Request, with: &[BorrowedFd<'_>]) -> Result<u64, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let sequence = self.sequence;
        self.courier
            .send_all(&request.write(sequence), with)
            .map_err(Failure::Silent)?;
        let mut buffer = [0; MAX_MESSAGE + 1];
        loop {
            if !self.courier.is_readable_within(PATIENCE) {
                if matches!(request, Request::Start { .. }) && self.late.len() < MAX_LATE {
                    self.late.push(sequence);
                }
                return Err(Failure::Silent(io::ErrorKind::TimedOut.into()));
            }
            let received = self.courier.recv_all(&mut buffer).map_err(Failure::Silent)?;
            let Some((size, _)) = received else {
                return Err(Failure::Silent(io::ErrorKind::BrokenPipe.into()));
            };
            match protocol::read_reply(&buffer[..size]) {
                Some((replied, reply)) if replied == sequence => return reply.map_err(Failure::Refused),
                // One that was not waited for so long.
                Some((replied, reply)) => {
                    let is_start = self.late.iter().position(|late| *late == replied);
                    if let (Some(at), Ok(number)) = (is_start, reply) {
                        self.late.swap_remove(at);
                        self.strays.push(number);
                    }
                }
                None => return Err(Failure::Silent(io::ErrorKind::InvalidData.into())),
            }
        }
    }
}

impl Started {
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let status = match self.helper.ask(Request::TryWait(self.number), &[]) {
                Err(_) if self.helper.is_gone.load(Ordering::Relaxed) => {
                    return Ok(Some(ExitStatus::from_raw(WITH_HELPER)));
                }
                status => status?,
            };
            let status = (status != RUNNING).then(|| i32::try_from(status).unwrap_or_default());
            self.status = status.map(ExitStatus::from_raw);
        }
        Ok(self.status)
    }

    pub fn signal(&self, signal: Signal, to_group: bool) -> io::Result<()> {
        let request = Request::Signal {
            number: self.number,
            signal,
            to_group,
        };
        self.helper.ask(request, &[]).map(drop)
    }

    pub fn is_group_left(&self) -> bool {
        // Where nobody can tell, nobody can end it either.
        self.helper
            .ask(Request::IsGroupLeft(self.number), &[])
            .is_ok_and(|left| left != 0)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.helper.ask(Request::Forget(self.number), &[]);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How programs end whose helper has ended: the system sends them the signal of their last word, which php-fpm obeys.
const WITH_HELPER: i32 = 15;

/// Replies that are still awaited; beyond, the helper is not going to answer at all.
const MAX_LATE: usize = 64;
