//! The server's side: one request at a time, each with its reply.
//!
//! A reply that does not come in time is waited for by nobody: until it comes, all requests fail at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_io::child::{self, ChildSetup};
use rocknet_io::fd_channel::{Blocking, FdChannel};
use rocknet_io::sealed_file;
use rustix::process::Signal;

use super::protocol::{self, MAX_ACCOUNTS, MAX_MESSAGE, Program, RUNNING, Reply, Request, WORD};
use crate::accounts::{Accounts, Launch};

/// Longest wait for a reply. Starting a program takes a millisecond; a program on a network drive that hangs takes for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// The helper of this process.
pub struct Helper {
    /// None: somebody asks.
    state: Mutex<Option<State>>,
    free: Condvar,
    /// Programs that nobody asks about any more, which it has not been told of: as many as it knows at most.
    unwanted: Mutex<Vec<u64>>,
    /// Longest wait for a reply, and for one's turn.
    patience: Duration,
    has_failed: AtomicBool,
    /// It has ended, and with it all that it started.
    is_gone: AtomicBool,
    accounts: Accounts,
    _child: Child,
}

struct State {
    channel: FdChannel,
    sequence: u32,
    late: Option<Late>,
    /// Programs that were started too late. They are ended.
    strays: Vec<u64>,
}

/// A request whose reply did not come in time.
struct Late {
    sequence: u32,
    is_start: bool,
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
        let (channel, input) = FdChannel::pair()?;
        let mut command = Command::new(program);
        command.arg0("rocknet").arg(WORD).env_clear().current_dir("/");
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        child::prepare(&mut command, ChildSetup::default())?;
        let child = command.spawn()?;
        // With it goes the end that is the helper's, so that its death is seen.
        drop(command);
        let helper = Helper::new(channel, child, accounts, PATIENCE);
        let told = sealed_file::create(&protocol::write_accounts(server, &helper.accounts.all))?;
        helper.ask(Request::Accounts, &[told.as_fd()])?;
        Ok(helper)
    }

    fn new(channel: FdChannel, child: Child, accounts: Accounts, patience: Duration) -> Helper {
        Helper {
            state: Mutex::new(Some(State {
                channel,
                sequence: 0,
                late: None,
                strays: Vec::new(),
            })),
            free: Condvar::new(),
            unwanted: Mutex::default(),
            patience,
            has_failed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            accounts,
            _child: child,
        }
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
        let content = sealed_file::create(&program.write())?;
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
        let asked = match self.turn() {
            Some(mut turn) => {
                let asked = turn.state().ask(request, with, self.patience);
                if !matches!(asked, Err(Failure::Silent(_))) {
                    turn.state().tidy(&self.unwanted, self.patience);
                }
                asked
            }
            None => Err(Failure::Silent(io::ErrorKind::TimedOut.into())),
        };
        asked.map_err(|error| match error {
            Failure::Refused(errno) => io::Error::from_raw_os_error(errno),
            Failure::Silent(error) => {
                // Reset: it ended with requests unread.
                let is_gone = matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
                if is_gone {
                    self.is_gone.store(true, Ordering::Relaxed);
                }
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    tracing::error!(
                        "the helper that starts programs as other accounts does not answer ({error}): restart RockNet if PHP and \
                         CGI stay away"
                    );
                }
                let kind = if is_gone { io::ErrorKind::BrokenPipe } else { io::ErrorKind::TimedOut };
                io::Error::new(kind, format!("the helper that starts programs does not answer: {error}"))
            }
        })
    }

    /// Waits until nobody else asks, but not longer than for a reply.
    fn turn(&self) -> Option<Turn<'_>> {
        let state = lock(&self.state);
        let waited = self
            .free
            .wait_timeout_while(state, self.patience, |state| state.is_none());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let state = state.take()?;
        Some(Turn {
            helper: self,
            state: Some(state),
        })
    }
}

/// The right to ask, which one caller has at a time. Dropping it passes it on.
struct Turn<'a> {
    helper: &'a Helper,
    state: Option<State>,
}

impl Turn<'_> {
    fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("it is given back at the end alone")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.helper.state) = self.state.take();
        self.helper.free.notify_one();
    }
}

enum Failure {
    Refused(i32),
    Silent(io::Error),
}

impl State {
    fn ask(&mut self, request: Request, with: &[BorrowedFd<'_>], patience: Duration) -> Result<u64, Failure> {
        // Until it has replied to what it was asked last, nobody waits for it again.
        self.hear_late(Duration::ZERO)?;
        self.sequence = self.sequence.wrapping_add(1);
        self.channel
            .send_with_fds(&request.write(self.sequence), with, Blocking::No)
            .map_err(Failure::Silent)?;
        let reply = self.hear(patience);
        if matches!(&reply, Err(Failure::Silent(error)) if error.kind() == io::ErrorKind::TimedOut) {
            self.late = Some(Late {
                sequence: self.sequence,
                is_start: matches!(request, Request::Start { .. }),
            });
        }
        let (replied, reply) = reply?;
        if replied != self.sequence {
            return Err(Failure::Silent(io::ErrorKind::InvalidData.into()));
        }
        reply.map_err(Failure::Refused)
    }

    /// Takes the reply that did not come in time, if it has come by now.
    fn hear_late(&mut self, patience: Duration) -> Result<(), Failure> {
        let Some(late) = &self.late else {
            return Ok(());
        };
        let (sequence, is_start) = (late.sequence, late.is_start);
        let (replied, reply) = self.hear(patience)?;
        if replied != sequence {
            return Err(Failure::Silent(io::ErrorKind::InvalidData.into()));
        }
        self.late = None;
        if is_start {
            self.strays.extend(reply);
        }
        Ok(())
    }

    fn hear(&self, patience: Duration) -> Result<(u32, Reply), Failure> {
        if !self.channel.wait_readable(patience) {
            return Err(Failure::Silent(io::ErrorKind::TimedOut.into()));
        }
        let mut buffer = [0; MAX_MESSAGE + 1];
        let received = self.channel.recv_with_fds(&mut buffer).map_err(Failure::Silent)?;
        let Some((size, _)) = received else {
            return Err(Failure::Silent(io::ErrorKind::BrokenPipe.into()));
        };
        let read = protocol::read_reply(&buffer[..size]);
        read.ok_or_else(|| Failure::Silent(io::ErrorKind::InvalidData.into()))
    }

    /// Ends strays, and says what nobody asks about any more. What fails is left for the next time.
    fn tidy(&mut self, unwanted: &Mutex<Vec<u64>>, patience: Duration) {
        while let Some(&number) = self.strays.last() {
            let kill = Request::Signal {
                number,
                signal: Signal::KILL,
                to_group: true,
            };
            if let Err(Failure::Silent(_)) = self.ask(kill, &[], patience) {
                return;
            }
            self.strays.pop();
            lock(unwanted).push(number);
        }
        loop {
            let Some(number) = lock(unwanted).pop() else {
                return;
            };
            if let Err(Failure::Silent(_)) = self.ask(Request::Forget(number), &[], patience) {
                lock(unwanted).push(number);
                return;
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
        match self.helper.ask(Request::IsGroupLeft(self.number), &[]) {
            Ok(left) => left != 0,
            // Nobody knows yet.
            Err(error) => error.kind() == io::ErrorKind::TimedOut,
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let told = self.helper.ask(Request::Forget(self.number), &[]);
        if told.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            lock(&self.helper.unwanted).push(self.number);
        }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How programs end whose helper has ended: the system sends them the signal of their last word, which php-fpm obeys.
const WITH_HELPER: i32 = 15;

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(20);

    /// A helper whose side is the test's.
    fn helper(patience: Duration) -> (Helper, FdChannel) {
        let (ours, theirs) = FdChannel::pair().unwrap();
        let child = Command::new("true").spawn().unwrap();
        (Helper::new(ours, child, Accounts::default(), patience), theirs.into())
    }

    /// A program that another test is starting has a copy of every socket for a moment, so that none has gone yet.
    fn until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + LONG;
        while !is_so() {
            assert!(Instant::now() < deadline, "the helper is not seen to have gone");
            thread::yield_now();
        }
    }

    fn start() -> Request {
        Request::Start {
            account: 0,
            has_file: false,
            has_listener: false,
            last_word: Signal::KILL,
        }
    }

    fn hear(theirs: &FdChannel) -> (u32, Request) {
        let mut buffer = [0; MAX_MESSAGE + 1];
        assert!(theirs.wait_readable(LONG), "no request");
        let (size, _) = theirs.recv_with_fds(&mut buffer).unwrap().unwrap();
        Request::read(&buffer[..size]).unwrap()
    }

    fn reply(theirs: &FdChannel, sequence: u32, reply: Reply) {
        theirs
            .send(&protocol::write_reply(sequence, reply), None, Blocking::No)
            .unwrap();
    }

    #[test]
    fn after_one_late_reply_all_fail_at_once_until_it_comes() {
        for late in [Ok(7), Err(2)] {
            let (mut helper, theirs) = helper(SHORT);
            assert!(helper.ask(start(), &[]).is_err());
            // From here on nothing may be waited for.
            helper.patience = LONG;
            let before = Instant::now();
            for _ in 0..10_000 {
                let failed = helper.ask(Request::TryWait(1), &[]).expect_err("no reply");
                assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
            }
            assert!(before.elapsed() < LONG, "{:?}", before.elapsed());
            let (sequence, request) = hear(&theirs);
            assert_eq!(request, start());
            assert!(!theirs.wait_readable(Duration::ZERO), "it was asked again");
            reply(&theirs, sequence, late);
            let answers = thread::spawn(move || {
                let mut asked = Vec::new();
                for _ in 0..if late.is_ok() { 3 } else { 1 } {
                    let (sequence, request) = hear(&theirs);
                    asked.push(request);
                    reply(&theirs, sequence, Ok(0));
                }
                (asked, theirs)
            });
            assert_eq!(helper.ask(Request::TryWait(1), &[]).unwrap(), 0);
            let (asked, theirs) = answers.join().unwrap();
            let kill = Request::Signal {
                number: 7,
                signal: Signal::KILL,
                to_group: true,
            };
            let all = [Request::TryWait(1), kill, Request::Forget(7)];
            assert_eq!(asked, all[..asked.len()]);
            assert!(!theirs.wait_readable(Duration::ZERO));
        }
    }

    #[test]
    fn a_turn_is_waited_for_no_longer_than_a_reply() {
        let (helper, _theirs) = helper(SHORT);
        let turn = helper.turn().unwrap();
        let failed = helper.ask(Request::TryWait(1), &[]).expect_err("somebody asks");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        drop(turn);
        assert!(helper.turn().is_some());
    }

    #[test]
    fn a_full_socket_is_not_waited_for() {
        let (helper, theirs) = helper(SHORT);
        let mut turn = helper.turn().unwrap();
        while turn.state().channel.send_with_fds(&[1], &[], Blocking::No).is_ok() {}
        drop(turn);
        let failed = helper.ask(Request::TryWait(1), &[]).expect_err("it is full");
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
        until(|| {
            let failed = helper.ask(Request::TryWait(1), &[]).expect_err("it has gone");
            failed.kind() == io::ErrorKind::BrokenPipe
        });
    }

    #[test]
    fn what_it_could_not_be_told_is_told_later() {
        let (helper, theirs) = helper(SHORT);
        let helper: &'static Helper = Box::leak(Box::new(helper));
        drop(Started {
            helper,
            number: 9,
            status: None,
        });
        assert_eq!(*lock(&helper.unwanted), [9]);
        let (sequence, _) = hear(&theirs);
        reply(&theirs, sequence, Ok(0));
        let left = Started {
            helper,
            number: 8,
            status: None,
        };
        assert!(left.is_group_left(), "nobody has said that it is not");
        drop(theirs);
        until(|| !left.is_group_left());
    }
}
