//! One php-fpm: started, listened to, started again when it ends, and ended when nobody wants it.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, PipeReader, Read};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::CONNECT;
use super::event::Event;
use super::installed::{self, Installed, Kind};
use super::pool::{self, Pool, Program};
use super::{Sockets, lock, told_missing};
use crate::accounts::Process;

/// Before one that ended is started again: none the first time, because a crash is mostly one, then this, and twice as long each
/// time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Between two looks for a version that is not installed.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// One that has run so long, or has answered a request, has had a good run: it is started again as if it were the first time.
const STEADY: Duration = Duration::from_secs(10);
/// What its last words are: as many lines as explain an end, and no more of each than a log shows.
const LAST_WORDS: usize = 6;
const MAX_LINE: u64 = 1024;

pub struct Master {
    pub number: u32,
    pub pool: Pool,
    folder: PathBuf,
    socket: PathBuf,
    /// Stays open from one php-fpm to the next, so that requests wait in its queue meanwhile; closed while none is expected.
    listener: Option<UnixListener>,
    /// Set by the first answer of the one that runs.
    answered: Arc<AtomicBool>,
    /// Processes whose php-fpm was killed, and when they are killed too: they answer what they have begun.
    orphans: Vec<(Process, Instant)>,
    words: Arc<Mutex<VecDeque<String>>>,
    sender: Sender<Event>,
    sockets: Arc<Sockets>,
    state: State,
    /// Counts those that were started, so that what the last one said is not taken for this one's.
    run: u32,
    kind: Kind,
    failures: u32,
    /// Nobody wants it from here on.
    leaves: Option<Instant>,
}

enum State {
    /// Not running; started at this time.
    Waiting(Instant),
    Running {
        process: Process,
        since: Instant,
        ready: bool,
    },
    /// Told to end; killed at this time.
    Ending {
        process: Process,
        at: Instant,
    },
    Gone,
}

impl Master {
    pub fn new(number: u32, pool: Pool, folder: &Path, sender: Sender<Event>, sockets: Arc<Sockets>) -> Master {
        let socket = pool::socket(folder, number);
        Master {
            number,
            pool,
            folder: folder.to_owned(),
            answered: sockets.answered(&socket),
            socket,
            listener: None,
            orphans: Vec::new(),
            words: Arc::default(),
            sender,
            sockets,
            state: State::Waiting(Instant::now()),
            run: 0,
            kind: Kind::Fpm,
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
            State::Ending { .. } => Some(Instant::now() + PAUSE),
            State::Running { .. } | State::Gone => None,
        };
        let orphans = (!self.orphans.is_empty()).then(|| Instant::now() + ORPHANS);
        by_state.into_iter().chain(self.leaves).chain(orphans).min()
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
        self.orphans.retain(|(process, at)| {
            let is_over = *at <= Instant::now();
            if is_over {
                let _ = process.signal_group(Signal::KILL);
            }
            !is_over && process.is_group_left()
        });
        match &mut self.state {
            State::Waiting(at) if *at <= Instant::now() => self.start(),
            State::Running { process, .. } => {
                if let Ok(Some(status)) = process.try_wait() {
                    self.ended(status);
                }
            }
            State::Ending { process, at } => {
                let is_over = matches!(process.try_wait(), Ok(Some(_)));
                if is_over || *at <= Instant::now() {
                    // Its processes too, which live on when it is killed.
                    process.kill();
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
                    self.sockets
                        .set_trouble(&self.socket, Some(told_missing(*version, &found)));
                    self.failures = 1;
                    self.state = State::Waiting(Instant::now() + LOOK_AGAIN);
                    return;
                };
                installed.clone()
            }
        };
        lock(&self.words).clear();
        self.answered.store(false, Ordering::Relaxed);
        self.run = self.run.wrapping_add(1);
        self.kind = installed.kind;
        match self.launch(&installed) {
            Ok(process) => {
                let since = Instant::now();
                let ready = false;
                self.state = State::Running { process, since, ready };
                if installed.kind == Kind::Cgi {
                    // It says nothing, and takes requests at once.
                    self.is_ready(self.run);
                }
            }
            Err(error) => {
                let why = format!("{} cannot be started: {error}", installed.program.display());
                self.failed(&why, false);
            }
        }
    }

    fn launch(&mut self, installed: &Installed) -> io::Result<Process> {
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => pool::listen(&self.socket)?,
        };
        let passed = self.listener.insert(listener).try_clone()?;
        let place = (self.number, self.folder.as_path());
        let (launch, said) = pool::launch(&self.pool, installed, place, passed.into())?;
        let process = launch.start()?;
        self.listen(said, installed);
        Ok(process)
    }

    /// Reads what it says on a thread of its own, to the end.
    fn listen(&self, stderr: PipeReader, installed: &Installed) {
        let (words, sender) = (Arc::clone(&self.words), self.sender.clone());
        let (number, run) = (self.number, self.run);
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
                if said.contains(NOTICE) {
                    if said.ends_with(READY) {
                        let _ = sender.send(Event::Ready(number, run));
                    }
                    continue;
                }
                let mut words = lock(&words);
                if words.len() == LAST_WORDS {
                    words.pop_front();
                }
                words.push_back(said);
            }
            let _ = sender.send(Event::Silent(number, run));
        };
        // Without it, nobody reads what is said, and the end is seen at the next look.
        let _ = thread::Builder::new().name(format!("rn-php-{number}")).spawn(read);
    }

    /// It takes requests.
    pub fn is_ready(&mut self, run: u32) {
        if run != self.run {
            return;
        }
        let version = self.pool.program.version();
        if let State::Running { ready, .. } = &mut self.state {
            *ready = true;
            self.sockets.set_trouble(&self.socket, None);
            tracing::info!("PHP {version} is ready");
        }
    }

    /// It says nothing more, so it most likely ends.
    pub fn is_silent(&mut self, run: u32) {
        if run != self.run {
            return;
        }
        let deadline = Instant::now() + LAST_MOMENT;
        while let State::Running { process, .. } = &mut self.state
            && Instant::now() < deadline
        {
            match process.try_wait() {
                Ok(Some(status)) => return self.ended(status),
                _ => thread::sleep(PAUSE),
            }
        }
        self.tick();
    }

    fn ended(&mut self, status: ExitStatus) {
        let mut was_ready = false;
        if let State::Running { process, since, ready } = std::mem::replace(&mut self.state, State::Gone) {
            was_ready = ready;
            if ready && (since.elapsed() >= STEADY || self.answered.load(Ordering::Relaxed)) {
                self.failures = 0;
            }
            self.let_finish(process);
        }
        let words: Vec<String> = lock(&self.words).iter().cloned().collect();
        let said = if words.is_empty() {
            String::new()
        } else {
            format!(": {}", words.join("; "))
        };
        self.failed(&format!("it ended ({status}){said}"), was_ready);
    }

    /// Has the processes of a php-fpm that was killed answer what they have begun, and nothing else.
    fn let_finish(&mut self, process: Process) {
        let is_asked = self.is_fpm() && process.signal_group(Signal::QUIT).is_ok();
        if is_asked && self.orphans.len() < MAX_ORPHANS {
            self.orphans.push((process, Instant::now() + self.pool.patience));
        } else {
            let _ = process.signal_group(Signal::KILL);
        }
    }

    /// `was_ready`: what ended had taken requests, so the next one most likely will.
    fn failed(&mut self, why: &str, was_ready: bool) {
        let pause = pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        let version = self.pool.program.version();
        let when = match pause.as_millis() {
            0 => "at once".to_owned(),
            ms => format!("in {ms} ms"),
        };
        tracing::error!("PHP {version} does not run: {why}. It is started again {when}");
        // Requests wait for one that is there again in time; otherwise they are told at once.
        let is_held = pause.is_zero() || was_ready && pause <= CONNECT;
        if !is_held {
            self.sockets
                .set_trouble(&self.socket, Some(format!("PHP {version} does not run: {why}")));
            self.close();
        }
        self.state = State::Waiting(Instant::now() + pause);
    }

    /// Takes no more connections. Those that wait in the queue are cut.
    fn close(&mut self) {
        if self.listener.take().is_some() {
            let _ = std::fs::remove_file(&self.socket);
        }
    }

    /// Whether it ends its own processes. php-cgi knows no other word than to end, and may lose one of its own.
    fn is_fpm(&self) -> bool {
        self.kind == Kind::Fpm
    }

    /// Tells it to end: when its requests are answered, or at once.
    pub fn end(&mut self, within: Duration, gracefully: bool) {
        self.sockets.set_trouble(&self.socket, None);
        let is_fpm = self.is_fpm();
        let at = Instant::now() + if is_fpm { within } else { within.min(CGI_END) };
        for (_, until) in &mut self.orphans {
            *until = at.min(*until);
        }
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Running { process, .. } => {
                let _ = match (is_fpm, gracefully) {
                    (true, true) => process.signal(Signal::QUIT),
                    (true, false) => process.signal(Signal::TERM),
                    (false, _) => process.signal_group(Signal::TERM),
                };
                State::Ending { process, at }
            }
            State::Ending { process, at: before } => State::Ending {
                process,
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
        self.close();
        self.sockets.forget(&self.socket);
        for (process, _) in self.orphans.drain(..) {
            let _ = process.signal_group(Signal::KILL);
        }
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let State::Running { process, .. } | State::Ending { process, .. } = &mut self.state {
            process.kill();
        }
        self.leave();
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

/// Between two looks whether the processes of one that was killed have ended.
const ORPHANS: Duration = Duration::from_millis(50);
/// As many that were killed have their processes finish; beyond, something kills them for fun.
const MAX_ORPHANS: usize = 16;
/// What php-fpm writes for every start, and the last of it.
const NOTICE: &str = "] NOTICE: ";
const READY: &str = "ready to handle connections";

fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        failures => FIRST_PAUSE
            .saturating_mul(1 << (failures - 1).min(16))
            .min(LONGEST_PAUSE),
    }
}

/// A line of php-fpm, in the log at the level it has itself.
fn pass_on(version: &str, line: &str) {
    let is = |word: &str| line.contains(word);
    if is(NOTICE) || is("] DEBUG: ") || line.is_empty() {
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

    use rocknet_proto::fastcgi::{self, Params};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn master(folder: &Path, kind: Kind, program: PathBuf) -> (Master, Receiver<Event>) {
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
        (Master::new(1, pool, folder, sender, Arc::default()), words)
    }

    #[test]
    fn its_last_words_are_told_and_it_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("php-fpm8.2");
        let script = "#!/bin/sh\necho \"[x] ERROR: unable to bind\" >&2\necho \"[x] ERROR: FPM initialization failed\" >&2\nexit 78\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let (mut master, words) = master(folder.path(), Kind::Fpm, program);
        // The first failure may be an accident: nothing is told before the second.
        for is_told in [false, true] {
            master.tick();
            assert!(matches!(words.recv_timeout(PATIENCE), Ok(Event::Silent(1, _))));
            assert!(UnixStream::connect(&master.socket).is_ok());
            master.is_silent(master.run);
            assert_eq!(master.sockets.trouble(&master.socket).is_some(), is_told);
        }
        assert!(UnixStream::connect(&master.socket).is_err());
        let trouble = master.sockets.trouble(&master.socket).unwrap();
        let said = "unable to bind; [x] ERROR: FPM initialization failed";
        assert!(trouble.contains(said) && trouble.contains("78"), "{trouble}");
        let due = master.due().unwrap();
        assert!(due > Instant::now() && due <= Instant::now() + FIRST_PAUSE);
        master.end(PATIENCE, false);
        assert!(master.is_gone());
        assert_eq!(master.sockets.trouble(&master.socket), None);
        // Nothing that could be started at all.
        let (mut none, _words) = self::master(folder.path(), Kind::Fpm, folder.path().join("none"));
        none.tick();
        none.tick();
        assert!(
            none.sockets
                .trouble(&none.socket)
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
        let (mut records, mut at, mut out, mut err) = (fastcgi::ResponseReader::new(), 0, Vec::new(), Vec::new());
        while at < bytes.len() {
            let received = records.receive(&bytes[at..]).unwrap();
            match received.event {
                fastcgi::RecordEvent::Stdout(place) => out.extend_from_slice(&bytes[at..][place]),
                fastcgi::RecordEvent::Stderr(place) => err.extend_from_slice(&bytes[at..][place]),
                fastcgi::RecordEvent::End(_) | fastcgi::RecordEvent::More => {}
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
        assert!(matches!(words.recv_timeout(PATIENCE), Ok(Event::Silent(1, _))));
        assert!(UnixStream::connect(&master.socket).is_err());
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        let seen: Vec<u128> = [0, 1, 2, 3, 7, 8, 9, u32::MAX].map(|n| pause(n).as_millis()).into();
        assert_eq!(seen, [0, 250, 500, 1000, 16_000, 30_000, 30_000, 30_000]);
    }
}
