//! What the server sees of it: a configuration is plan before it acts, then wanted; the end of the keeper ends all.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rocknet_config::Config;
use rocknet_config::model::{Mode, Php, PhpVersion};

use super::event::PhpEvent;
use super::pool::{self, PhpProgram, Pool};
use super::run_folder::RunFolder;
use super::supervisor::Supervisor;
use super::{PhpSockets, choose, installed, lock, settings, settings_mut, wanted};

/// Longest path that a socket can have, on every system.
const MAX_SOCKET_PATH: usize = 103;

pub struct PhpManager {
    sockets: Arc<PhpSockets>,
    state: Mutex<ManagerState>,
}

struct ManagerState {
    state_folder: PathBuf,
    next: u32,
    /// What runs, or is about to.
    pools: Vec<(u32, Pool)>,
    running: Option<RunningSupervisor>,
}

/// There is something to look after, or there was.
struct RunningSupervisor {
    events: Sender<PhpEvent>,
    thread: Option<JoinHandle<()>>,
    /// Removed behind the thread.
    folder: RunFolder,
}

/// The pools of a configuration that is about to act.
#[must_use = "the plan must be applied, otherwise no PHP listens on its sockets"]
pub struct PhpPlan(Vec<(u32, Pool)>);

impl PhpManager {
    /// Starts nothing and makes nothing before a configuration wants it.
    pub fn new(state_folder: PathBuf) -> PhpManager {
        PhpManager {
            sockets: Arc::default(),
            state: Mutex::new(ManagerState {
                state_folder,
                next: 0,
                pools: Vec::new(),
                running: None,
            }),
        }
    }

    /// What requests may know of it.
    pub fn sockets(&self) -> &Arc<PhpSockets> {
        &self.sockets
    }

    /// Decides which PHP runs for the configuration, and tells its sites where it will listen.
    pub fn plan(&self, config: &mut Config) -> Result<PhpPlan, String> {
        let wanted = wanted(config);
        if wanted.is_empty() {
            return Ok(PhpPlan(Vec::new()));
        }
        let mut state = lock(&self.state);
        let folder = state
            .folder()
            .map_err(|(path, error)| format!("PHP needs a folder below {}: {error}", path.display()))?;
        let found = installed();
        let mut pools: Vec<(u32, Pool)> = Vec::new();
        let mut sockets: Vec<((PhpVersion, Option<String>), PathBuf)> = Vec::new();
        for (version, user) in wanted {
            let program = match choose(&found, version) {
                Some(installed) => PhpProgram::Found(installed.clone()),
                None => PhpProgram::Missing(version),
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
            sockets.push(((version, user), socket));
        }
        for settings in settings_mut(config) {
            if let Some(Php::Managed { version, socket }) = &mut settings.php
                && let Some((_, path)) = sockets
                    .iter()
                    .find(|((known, user), _)| known == version && *user == settings.user)
            {
                socket.clone_from(path);
            }
        }
        Ok(PhpPlan(pools))
    }

    /// Runs what was plan, and nothing else from now on.
    pub fn apply(&self, plan: PhpPlan) -> std::io::Result<()> {
        let mut state = lock(&self.state);
        let PhpPlan(pools) = plan;
        state.pools.clone_from(&pools);
        if let Some(running) = &mut state.running {
            running.start(&self.sockets)?;
            let _ = running.events.send(PhpEvent::SetPools(pools));
        }
        Ok(())
    }

    /// Ends all of it, and returns when it has ended.
    pub fn stop(&self) {
        let running = lock(&self.state).running.take();
        drop(running);
    }
}

impl ManagerState {
    /// The run folder, made the first time.
    fn folder(&mut self) -> Result<PathBuf, (PathBuf, std::io::Error)> {
        if self.running.is_none() {
            let folder = RunFolder::make(&self.state_folder).map_err(|error| (self.state_folder.clone(), error))?;
            let (events, _) = channel();
            self.running = Some(RunningSupervisor {
                events,
                thread: None,
                folder,
            });
        }
        let folder = self.running.as_ref().map(|running| running.folder.path().to_owned());
        Ok(folder.unwrap_or_default())
    }
}

impl RunningSupervisor {
    fn start(&mut self, sockets: &Arc<PhpSockets>) -> std::io::Result<()> {
        if self.thread.is_some() {
            return Ok(());
        }
        let (events, receiver) = channel();
        let supervisor = Supervisor::new(self.folder.path().to_owned(), events.clone(), Arc::clone(sockets));
        let run = move || supervisor.run(&receiver);
        self.thread = Some(thread::Builder::new().name("rn-php".to_owned()).spawn(run)?);
        self.events = events;
        Ok(())
    }
}

impl Drop for RunningSupervisor {
    fn drop(&mut self) {
        let _ = self.events.send(PhpEvent::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pool(config: &Config, program: PhpProgram, user: Option<String>) -> Pool {
    let body_size = settings(config).map(|settings| settings.body_size).max();
    let body_size = body_size.unwrap_or_default();
    Pool {
        program,
        user,
        dev: config.server.mode == Mode::Dev,
        // For PHP, 0 would mean any size.
        body_size: body_size.clamp(1, i64::MAX as u64),
        drain_timeout: config.limits.answer_timeout,
    }
}
