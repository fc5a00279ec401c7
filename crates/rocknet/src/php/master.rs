//! One php-fpm: started, listened to, started again when it ends, and ended when nobody wants it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ExitStatus};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child::signal_group;
use rustix::process::{Pid, Signal, kill_process};

use super::installed::{self, Installed, Kind};
use super::overseer::Word;
use super::pool::{self, Pool, Program};
use super::{lock, set_trouble, told_missing};

/// Before one that ended is started again: short at first, for a crash is mostly one, and longer each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between two looks for a version that is not installed.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// One that has run so long is started again as if it were the first time.
const STEADY: Duration = Duration::from_secs(60);
/// What its last words are: as many lines as explain an end, and no more of each than a log shows.
const LAST_WORDS: usize = 6;
const MAX_LINE: u64 = 1024;

pub struct Master {
    pub number: u32,
    pub pool: Pool,
    folder: PathBuf,
    socket: PathBuf,
    words: Arc<Mutex<VecDeque<String>>>,
    sender: Sender<Word>,
    state: State,
    failures: u32,
    /// Nobody wants it from here on.
    leaves: Option<Instant>,
}

enum State {
    /// Not running; started at this time.
    Waiting(Instant),
    Running {
        child: Child,
        since: Instant,
        ready: bool,
    },
    /// Told to end; killed at this time.
    Ending {
        child: Child,
        at: Instant,
    },
    Gone,
}

impl Master {
    pub fn new(number: u32, pool: Pool, folder: &Path, sender: Sender<Word>) -> Master {
        Master {
            number,
            pool,
            folder: folder.to_owned(),
            socket: pool::socket(folder, number),
            words: Arc::default(),
            sender,
            state: State::Waiting(Instant::now()),
            failures: 0,
            leaves: None,
        }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    /// When [`Master::tick`] has something to do, if nobody says anything before.
    pub fn due(&self) -> Option<Instant> {
        let by_state = match self.state {
            State::Waiting(at) => Some(at),
            State::Ending { .. } | State::Running { ready: false, .. } => Some(Instant::now() + PAUSE),
            State::Running { .. } | State::Gone => None,
        };
        by_state.into_iter().chain(self.leaves).min()
    }

    /// Has it end a moment later, with its requests answered: workers still hear of the configuration without it.
    pub fn leave_soon(&mut self) {
        self.leaves.get_or_insert_with(|| Instant::now() + SWAP);
    }

    /// Does what is due.
    pub fn tick(&mut self) {
        if self.leaves.take_if(|at| *at <= Instant::now()).is_some() {
            self.end(self.pool.patience, true);
        }
        match &mut self.state {
            State::Waiting(at) if *at <= Instant::now() => self.start(),
            State::Running { child, ready, .. } => {
                if let Ok(Some(status)) = child.try_wait() {
                    self.ended(status);
                } else if !*ready && self.socket.exists() {
                    self.is_ready();
                }
            }
            State::Ending { child, at } => {
                let is_over = matches!(child.try_wait(), Ok(Some(_)));
                if is_over || *at <= Instant::now() {
                    // Its processes too, which live on when it is killed.
                    let _ = signal_group(child.id(), Signal::KILL);
                    let _ = child.wait();
                    self.leave();
                }
            }
            State::Waiting(_) | State::Gone => {}
        }
    }

    fn start(&mut self) {
        let installed = match &self.pool.program {
            Program::Found(installed) => installed.clone(),
            Program::Missing(version) => {
                let found = installed::all();
                let Some(installed) = installed::choose(&found, *version) else {
                    if self.failures == 0 {
                        tracing::error!("{}", told_missing(*version, &found));
                    }
                    set_trouble(&self.socket, Some(told_missing(*version, &found)));
                    self.failures = 1;
                    self.state = State::Waiting(Instant::now() + LOOK_AGAIN);
                    return;
                };
                installed.clone()
            }
        };
        lock(&self.words).clear();
        match pool::command(&self.pool, &installed, self.number, &self.folder).and_then(|mut command| command.spawn()) {
            Ok(mut child) => {
                if let Some(stderr) = child.stderr.take() {
                    self.listen(stderr, &installed);
                }
                let since = Instant::now();
                let ready = false;
                self.state = State::Running { child, since, ready };
            }
            Err(error) => self.failed(&format!("{} cannot be started: {error}", installed.program.display())),
        }
    }

    /// Reads what it says on a thread of its own, to the end.
    fn listen(&self, stderr: ChildStderr, installed: &Installed) {
        let (words, sender, number) = (Arc::clone(&self.words), self.sender.clone(), self.number);
        let version = installed.version();
        let read = move || {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            loop {
                line.clear();
                match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                    Ok(read) if read > 0 => {}
                    _ => break,
                }
                let said = String::from_utf8_lossy(line.trim_ascii()).into_owned();
                pass_on(&version, &said);
                let mut words = lock(&words);
                if words.len() == LAST_WORDS {
                    words.pop_front();
                }
                words.push_back(said);
            }
            let _ = sender.send(Word::Silent(number));
        };
        // Without it, nobody reads what is said, and the end is seen at the next look.
        let _ = thread::Builder::new().name(format!("rn-php-{number}")).spawn(read);
    }

    /// It takes connections.
    fn is_ready(&mut self) {
        let version = self.pool.program.version();
        if let State::Running { ready, .. } = &mut self.state {
            *ready = true;
            set_trouble(&self.socket, None);
            tracing::info!("PHP {version} is ready");
        }
    }

    /// It says nothing more, so it most likely ends.
    pub fn is_silent(&mut self) {
        let deadline = Instant::now() + LAST_MOMENT;
        while let State::Running { child, .. } = &mut self.state
            && Instant::now() < deadline
        {
            match child.try_wait() {
                Ok(Some(status)) => return self.ended(status),
                _ => thread::sleep(PAUSE),
            }
        }
        self.tick();
    }

    fn ended(&mut self, status: ExitStatus) {
        if let State::Running { child, since, ready } = &self.state {
            let _ = signal_group(child.id(), Signal::KILL);
            if *ready && since.elapsed() >= STEADY {
                self.failures = 0;
            }
        }
        let words: Vec<String> = lock(&self.words).iter().cloned().collect();
        let said = if words.is_empty() {
            String::new()
        } else {
            format!(": {}", words.join("; "))
        };
        self.failed(&format!("it ended ({status}){said}"));
    }

    fn failed(&mut self, why: &str) {
        let pause = pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        let version = self.pool.program.version();
        tracing::error!(
            "PHP {version} does not run: {why}. It is started again in {} ms",
            pause.as_millis()
        );
        set_trouble(&self.socket, Some(format!("PHP {version} does not run: {why}")));
        self.state = State::Waiting(Instant::now() + pause);
    }

    /// Tells it to end: when its requests are answered, or at once.
    pub fn end(&mut self, within: Duration, gracefully: bool) {
        set_trouble(&self.socket, None);
        // php-fpm tells its own processes. php-cgi knows no other word than to end, and may lose one of its own.
        let is_fpm = matches!(&self.pool.program, Program::Found(installed) if installed.kind == Kind::Fpm);
        let at = Instant::now() + if is_fpm { within } else { within.min(CGI_END) };
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Running { child, .. } => {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                match pid.filter(|_| is_fpm) {
                    Some(pid) => {
                        let word = if gracefully { Signal::QUIT } else { Signal::TERM };
                        let _ = kill_process(pid, word);
                    }
                    None => {
                        let _ = signal_group(child.id(), Signal::TERM);
                    }
                }
                State::Ending { child, at }
            }
            State::Ending { child, at: before } => State::Ending {
                child,
                at: before.min(at),
            },
            State::Waiting(_) | State::Gone => State::Gone,
        };
        if self.is_gone() {
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.state = State::Gone;
        self.leaves = None;
        set_trouble(&self.socket, None);
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(self.folder.join(format!("{}.conf", self.number)));
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let State::Running { child, .. } | State::Ending { child, .. } = &mut self.state {
            let _ = signal_group(child.id(), Signal::KILL);
            let _ = child.wait();
        }
        set_trouble(&self.socket, None);
    }
}

/// php-cgi that was told to end and does not is killed with all its processes after this time.
const CGI_END: Duration = Duration::from_secs(2);
/// Workers take a new configuration in their next turn.
const SWAP: Duration = Duration::from_secs(1);
/// A process that has closed all it could speak by is gone a moment later.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// Between two looks whether a process has ended.
const PAUSE: Duration = Duration::from_millis(10);

fn pause(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE)
}

/// A line of php-fpm, in the log at the level it has itself.
fn pass_on(version: &str, line: &str) {
    let is = |word: &str| line.contains(word);
    if is("] NOTICE: ") || is("] DEBUG: ") || line.is_empty() {
        tracing::debug!(php = version, "{line}");
    } else if is("] WARNING: ") {
        tracing::warn!(php = version, "{line}");
    } else {
        tracing::error!(php = version, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, channel};

    use rocknet_proto::fastcgi::{self, Event, Params};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn master(folder: &Path, kind: Kind, program: PathBuf) -> (Master, Receiver<Word>) {
        let (sender, words) = channel();
        let installed = Installed {
            major: 8,
            minor: 2,
            kind,
            program,
        };
        let pool = Pool {
            program: Program::Found(installed),
            user: None,
            dev: false,
            body_size: 1 << 20,
            patience: PATIENCE,
        };
        (Master::new(1, pool, folder, sender), words)
    }

    #[test]
    fn its_last_words_are_told_and_it_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("php-fpm8.2");
        let script = "#!/bin/sh\necho \"[x] ERROR: unable to bind\" >&2\necho \"[x] ERROR: FPM initialization failed\" >&2\nexit 78\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (mut master, words) = master(folder.path(), Kind::Fpm, program);
        master.tick();
        assert!(matches!(words.recv_timeout(PATIENCE), Ok(Word::Silent(1))));
        master.is_silent();
        let trouble = super::super::trouble(&master.socket).unwrap();
        let said = "unable to bind; [x] ERROR: FPM initialization failed";
        assert!(trouble.contains(said) && trouble.contains("78"), "{trouble}");
        let due = master.due().unwrap();
        assert!(due > Instant::now() && due <= Instant::now() + FIRST_PAUSE);
        master.end(PATIENCE, false);
        assert!(master.is_gone());
        assert_eq!(super::super::trouble(&master.socket), None);
        // Nothing that could be started at all.
        let (mut none, _words) = self::master(folder.path(), Kind::Fpm, folder.path().join("none"));
        none.tick();
        assert!(
            super::super::trouble(&none.socket)
                .unwrap()
                .contains("cannot be started")
        );
    }

    #[test]
    fn php_cgi_serves_where_there_is_no_php_fpm() {
        let program = PathBuf::from("/usr/bin/php-cgi8.2");
        assert!(
            program.exists(),
            "php-cgi, which `cargo xtask test` installs (php8.2-cgi)"
        );
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("a.php")] {
            if !path.exists() {
                std::fs::write(
                    &path,
                    "<?php echo ini_get('post_max_size'), getenv('HTTP_A'); error_log('oh');",
                )
                .unwrap();
            }
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (mut master, words) = master(folder.path(), Kind::Cgi, program);
        master.tick();
        let mut request = Vec::new();
        fastcgi::begin(&mut request, false);
        let mut params = Params::new(&mut request);
        let script = folder.path().join("a.php");
        for (name, value) in [
            ("REQUEST_METHOD", "GET"),
            ("SCRIPT_FILENAME", script.to_str().unwrap()),
            ("REDIRECT_STATUS", "200"),
            ("HTTP_A", "!"),
        ] {
            params.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        params.finish();
        fastcgi::stdin_end(&mut request);
        let mut stream = UnixStream::connect(&master.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&request).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let (mut records, mut at, mut out, mut err) = (fastcgi::Response::new(), 0, Vec::new(), Vec::new());
        while at < bytes.len() {
            let received = records.receive(&bytes[at..]).unwrap();
            match received.event {
                Event::Stdout(place) => out.extend_from_slice(&bytes[at..][place]),
                Event::Stderr(place) => err.extend_from_slice(&bytes[at..][place]),
                Event::End(_) | Event::More => {}
            }
            at += received.consumed;
        }
        assert!(out.ends_with(b"\r\n\r\n1048576!"), "{}", String::from_utf8_lossy(&out));
        assert!(
            err.starts_with(b"PHP message: oh") || err.starts_with(b"oh"),
            "{}",
            String::from_utf8_lossy(&err)
        );
        master.end(PATIENCE, true);
        while !master.is_gone() {
            master.tick();
            thread::sleep(PAUSE);
        }
        // All that held its error stream have ended.
        assert!(matches!(words.recv_timeout(PATIENCE), Ok(Word::Silent(1))));
        assert!(UnixStream::connect(&master.socket).is_err());
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let seen: Vec<u128> = [0, 1, 2, 6, 7, 8, u32::MAX].map(|n| pause(n).as_millis()).into();
        assert_eq!(seen, [250, 500, 1000, 16_000, 30_000, 30_000, 30_000]);
    }
}
