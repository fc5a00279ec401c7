//! What the server sees of it: a configuration is settled before it acts, then wanted; the end of the keeper ends all.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rocknet_config::Config;
use rocknet_config::model::{Mode, Php, PhpVersion};

use super::event::Event;
use super::overseer::Overseer;
use super::pool::{self, Pool, Program};
use super::run_folder::RunFolder;
use super::{Sockets, choose, installed, lock, settings, settings_mut, wanted};

/// Longest path that a socket can have, on every system.
const MAX_SOCKET_PATH: usize = 103;

pub struct Keeper {
    sockets: Arc<Sockets>,
    state: Mutex<State>,
}

struct State {
    state_folder: PathBuf,
    next: u32,
    /// What runs, or is about to.
    pools: Vec<(u32, Pool)>,
    running: Option<Running>,
}

/// There is something to look after, or there was.
struct Running {
    words: Sender<Event>,
    thread: Option<JoinHandle<()>>,
    /// Removed behind the thread.
    folder: RunFolder,
}

/// The pools of a configuration that is about to act.
#[must_use = "what is settled has to be wanted, or nobody listens there"]
pub struct Settled(Vec<(u32, Pool)>);

impl Keeper {
    /// Starts nothing and makes nothing before a configuration wants it.
    pub fn new(state_folder: PathBuf) -> Keeper {
        Keeper {
            sockets: Arc::default(),
            state: Mutex::new(State {
                state_folder,
                next: 0,
                pools: Vec::new(),
                running: None,
            }),
        }
    }

    /// What requests may know of it.
    pub fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }

    /// Decides which PHP runs for the configuration, and tells its sites where it will listen.
    pub fn settle(&self, config: &mut Config) -> Result<Settled, String> {
        let wanted = wanted(config);
        if wanted.is_empty() {
            return Ok(Settled(Vec::new()));
        }
        let mut state = lock(&self.state);
        let folder = state
            .folder()
            .map_err(|(path, error)| format!("PHP needs a folder below {}: {error}", path.display()))?;
        let found = installed();
        let mut pools: Vec<(u32, Pool)> = Vec::new();
        let mut places: Vec<((PhpVersion, Option<String>), PathBuf)> = Vec::new();
        for (version, user) in wanted {
            let program = match choose(&found, version) {
                Some(installed) => Program::Found(installed.clone()),
                None => Program::Missing(version),
            };
            let pool = pool(config, program, user.clone());
            let same = state.pools.iter().chain(&pools).find(|(_, known)| *known == pool);
            let number = match same {
                Some((number, _)) => *number,
                None => {
                    state.next += 1;
                    state.next
                }
            };
            if !pools.iter().any(|(known, _)| *known == number) {
                pools.push((number, pool));
            }
            let socket = pool::socket(&folder, number);
            if socket.as_os_str().len() > MAX_SOCKET_PATH {
                let help = "write a shorter folder as `state` below [server]";
                return Err(format!("{} is too long for a socket: {help}", socket.display()));
            }
            places.push(((version, user), socket));
        }
        for settings in settings_mut(config) {
            if let Some(Php::Managed { version, socket }) = &mut settings.php
                && let Some((_, place)) = places
                    .iter()
                    .find(|((known, user), _)| known == version && *user == settings.user)
            {
                socket.clone_from(place);
            }
        }
        Ok(Settled(pools))
    }

    /// Runs what was settled, and nothing else from now on.
    pub fn want(&self, settled: Settled) -> std::io::Result<()> {
        let mut state = lock(&self.state);
        let Settled(pools) = settled;
        state.pools.clone_from(&pools);
        if let Some(running) = &mut state.running {
            running.start(&self.sockets)?;
            let _ = running.words.send(Event::Want(pools));
        }
        Ok(())
    }

    /// Ends all of it, and returns when it has ended.
    pub fn stop(&self) {
        let running = lock(&self.state).running.take();
        drop(running);
    }
}

impl State {
    /// The run folder, made the first time.
    fn folder(&mut self) -> Result<PathBuf, (PathBuf, std::io::Error)> {
        if self.running.is_none() {
            let folder = RunFolder::make(&self.state_folder).map_err(|error| (self.state_folder.clone(), error))?;
            let (words, _) = channel();
            self.running = Some(Running {
                words,
                thread: None,
                folder,
            });
        }
        let folder = self.running.as_ref().map(|running| running.folder.path().to_owned());
        Ok(folder.unwrap_or_default())
    }
}

impl Running {
    fn start(&mut self, sockets: &Arc<Sockets>) -> std::io::Result<()> {
        if self.thread.is_some() {
            return Ok(());
        }
        let (words, heard) = channel();
        let overseer = Overseer::new(self.folder.path().to_owned(), words.clone(), Arc::clone(sockets));
        let run = move || overseer.run(&heard);
        self.thread = Some(thread::Builder::new().name("rn-php".to_owned()).spawn(run)?);
        self.words = words;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.words.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pool(config: &Config, program: Program, user: Option<String>) -> Pool {
    let body_size = settings(config).map(|settings| settings.body_size).max();
    let body_size = body_size.unwrap_or_default();
    Pool {
        program,
        user,
        dev: config.server.mode == Mode::Dev,
        // For PHP, 0 would mean any size.
        body_size: body_size.clamp(1, i64::MAX as u64),
        patience: config.limits.answer_timeout,
    }
}
