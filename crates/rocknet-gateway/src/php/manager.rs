//! The server's interface to the PHP that it runs itself: plans the pools of a configuration, then applies the plan.
//! Dropping the manager ends all pools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rocknet_config::Config;
use rocknet_config::model::{Mode, Php};

use super::event::PhpEvent;
use super::pool::{self, PhpProgram, Pool};
use super::report::{PoolReport, processes};
use super::run_folder::RunFolder;
use super::sockets::PoolDescription;
use super::supervisor::Supervisor;
use super::{PhpSockets, WantedPhp, choose, installed, lock, pool_names, settings, settings_mut, wanted};

/// Maximum length of the path of a Unix socket in bytes that every supported system accepts.
const MAX_SOCKET_PATH: usize = 103;

/// Runs the PHP of one server.
pub struct PhpManager {
    sockets: Arc<PhpSockets>,
    state: Mutex<ManagerState>,
}

struct ManagerState {
    state_folder: PathBuf,
    /// Number of the pool that was created last.
    last_number: u32,
    /// Pools of the configuration in force, with their numbers.
    pools: Vec<(u32, Pool)>,
    running: Option<RunningSupervisor>,
}

/// Run folder and supervisor thread. Created when a configuration first requires PHP.
struct RunningSupervisor {
    events: Sender<PhpEvent>,
    /// `None` until a plan is applied.
    thread: Option<JoinHandle<()>>,
    /// Removed on drop, after the thread has ended.
    folder: RunFolder,
}

/// Pools of a configuration that is not in force yet. Dropping it without applying it leaves the pools in force as they
/// are.
#[must_use = "the plan must be applied, otherwise no PHP listens on its sockets"]
pub struct PhpPlan {
    pools: Vec<(u32, Pool)>,
    /// Names and sites of the pools, by socket.
    descriptions: BTreeMap<PathBuf, PoolDescription>,
    /// Sockets of pools that are not in force, whose state is removed if the plan is not applied.
    added: Vec<PathBuf>,
    sockets: Arc<PhpSockets>,
}

impl Drop for PhpPlan {
    fn drop(&mut self) {
        for socket in &self.added {
            self.sockets.forget(socket);
        }
    }
}

impl PhpManager {
    /// Creates the manager. It starts no process and creates no folder until a configuration requires PHP.
    pub fn new(state_folder: PathBuf) -> PhpManager {
        PhpManager {
            sockets: Arc::default(),
            state: Mutex::new(ManagerState {
                state_folder,
                last_number: 0,
                pools: Vec::new(),
                running: None,
            }),
        }
    }

    /// Returns the states of the sockets, which requests share with the supervisor thread.
    pub fn sockets(&self) -> &Arc<PhpSockets> {
        &self.sockets
    }

    /// Plans the pools of a configuration, and sets the socket path of each site and route that uses one.
    ///
    /// # Errors
    ///
    /// Returns a message for the operator if the run folder cannot be created, or if its path is too long.
    pub fn plan(&self, config: &mut Config) -> Result<PhpPlan, String> {
        let wanted = wanted(config);
        if wanted.is_empty() {
            return Ok(self.new_plan(Vec::new(), BTreeMap::new(), Vec::new()));
        }
        let mut state = lock(&self.state);
        let folder = state.folder().map_err(|(path, error)| {
            format!("cannot create the run folder of PHP below {}: {error}", path.display())
        })?;
        let found = installed();
        let mut pools: Vec<(u32, Pool)> = Vec::new();
        let mut sockets: Vec<(WantedPhp, PathBuf)> = Vec::new();
        for wanted in wanted {
            let program = match choose(&found, wanted.version) {
                Some(installed) => PhpProgram::Found(installed.clone()),
                None => PhpProgram::Missing(wanted.version),
            };
            let pool = pool(config, program, &wanted);
            // A pool without changes keeps its number, its php-fpm and its socket.
            let existing = state.pools.iter().chain(&pools).find(|(_, other)| *other == pool);
            let number = match existing {
                Some((number, _)) => *number,
                None => {
                    state.last_number += 1;
                    state.last_number
                }
            };
            if !pools.iter().any(|(other, _)| *other == number) {
                pools.push((number, pool));
            }
            let socket = pool::socket(&folder, number);
            if socket.as_os_str().len() > MAX_SOCKET_PATH {
                let help = "set a shorter `state` folder below [server]";
                return Err(format!(
                    "{} is too long for the path of a socket: {help}",
                    socket.display()
                ));
            }
            sockets.push((wanted, socket));
        }
        for settings in settings_mut(config) {
            let wanted = WantedPhp::of(settings);
            if let Some(Php::Managed { socket, .. }) = &mut settings.php
                && let Some((_, path)) = sockets.iter().find(|(planned, _)| wanted.as_ref() == Some(planned))
            {
                socket.clone_from(path);
            }
        }
        let planned = pools
            .iter()
            .map(|(number, pool)| (pool::socket(&folder, *number), pool));
        let descriptions = pool_names::describe(config, planned);
        let is_in_force = |socket: &PathBuf| {
            let mut in_force = state.pools.iter();
            in_force.any(|(number, _)| pool::socket(&folder, *number) == *socket)
        };
        // Back ends are created before the plan is applied, and are named by their pools. Pools of the configuration in
        // force keep their names until then.
        let new = descriptions.iter().filter(|(socket, _)| !is_in_force(socket));
        let new: BTreeMap<_, _> = new.map(|(socket, new)| (socket.clone(), new.clone())).collect();
        let added = new.keys().cloned().collect();
        self.sockets.describe(new, |_| true);
        Ok(self.new_plan(pools, descriptions, added))
    }

    fn new_plan(
        &self,
        pools: Vec<(u32, Pool)>,
        descriptions: BTreeMap<PathBuf, PoolDescription>,
        added: Vec<PathBuf>,
    ) -> PhpPlan {
        PhpPlan {
            pools,
            descriptions,
            added,
            sockets: Arc::clone(&self.sockets),
        }
    }

    /// Runs the planned pools, and retires all others.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if the supervisor thread cannot be started. The pools in force then stay.
    pub fn apply(&self, mut plan: PhpPlan) -> std::io::Result<()> {
        let mut state = lock(&self.state);
        let ManagerState { pools, running, .. } = &mut *state;
        if let Some(running) = running {
            running.start(&self.sockets)?;
            let folder = running.folder.path();
            // Pools that retire keep their names until they have ended.
            let in_force = pools.iter().map(|(number, _)| pool::socket(folder, *number));
            let in_force: Vec<_> = in_force.collect();
            self.sockets.describe(std::mem::take(&mut plan.descriptions), |socket| {
                in_force.iter().any(|kept| kept == socket)
            });
            let _ = running.events.send(PhpEvent::SetPools(plan.pools.clone()));
        }
        plan.added.clear();
        *pools = std::mem::take(&mut plan.pools);
        Ok(())
    }

    /// Returns the state of each pool of the configuration in force, in the order of their numbers.
    pub fn report(&self) -> Vec<PoolReport> {
        let state = lock(&self.state);
        let Some(running) = &state.running else {
            return Vec::new();
        };
        let report = |(number, pool): &(u32, Pool)| {
            let socket = pool::socket(running.folder.path(), *number);
            let progress = self.sockets.progress(&socket);
            PoolReport {
                name: self.name(&socket, pool),
                version: pool.program.version(),
                user: pool.user.clone(),
                is_ready: progress.is_ready,
                is_stopped: progress.is_stopped,
                fault: self.sockets.failure(&socket),
                processes: progress.pid.map_or(0, processes),
                restarts: progress.starts.saturating_sub(1).into(),
                socket,
            }
        };
        state.pools.iter().map(report).collect()
    }

    /// Restarts the pools with the name `wanted`, and starts those that were halted. Returns how many pools have this
    /// name.
    pub fn restart(&self, wanted: &str) -> usize {
        self.instruct(wanted, PhpEvent::Restart)
    }

    /// Starts the pools with the name `wanted` that do not run: those that were halted, and those that have failed and
    /// wait for their next start. Returns how many pools have this name.
    pub fn start(&self, wanted: &str) -> usize {
        // Pools that run get the event too, and ignore it. Their published progress cannot exclude them, because an
        // event that halts a pool may still be waiting.
        self.instruct(wanted, PhpEvent::Start)
    }

    /// Ends the processes of the pools with the name `wanted` once their requests are complete, until the pools are
    /// started again or their settings change. Returns how many pools have this name.
    pub fn halt(&self, wanted: &str) -> usize {
        self.instruct(wanted, PhpEvent::Halt)
    }

    /// Sends an event to each pool with the name `wanted`. Returns the number of events that were sent.
    fn instruct(&self, wanted: &str, event: impl Fn(u32) -> PhpEvent) -> usize {
        let state = lock(&self.state);
        let Some(running) = &state.running else {
            return 0;
        };
        let all = state
            .pools
            .iter()
            .map(|(number, pool)| (number, pool, pool::socket(running.folder.path(), *number)));
        all.filter(|(_, pool, socket)| self.name(socket, pool) == wanted)
            .filter(|(number, _, socket)| {
                let (progress, event) = (self.sockets.progress(socket), event(**number));
                if progress.is_stopped && matches!(event, PhpEvent::Restart(_) | PhpEvent::Start(_)) {
                    // Requests wait for the start from now on, even before the thread handles the event.
                    self.sockets.set_failure(socket, None);
                }
                running.events.send(event).is_ok()
            })
            .count()
    }

    /// Returns the name of a pool for operators.
    fn name(&self, socket: &Path, pool: &Pool) -> String {
        self.sockets.name(socket).unwrap_or_else(|| pool.base_name())
    }

    /// Ends all pools. Blocks until they have ended.
    pub fn stop(&self) {
        let running = lock(&self.state).running.take();
        drop(running);
    }
}

impl ManagerState {
    /// Returns the path of the run folder, which the first call creates. An error is returned together with the path of
    /// the state folder.
    fn folder(&mut self) -> Result<PathBuf, (PathBuf, std::io::Error)> {
        if self.running.is_none() {
            let folder = RunFolder::make(&self.state_folder).map_err(|error| (self.state_folder.clone(), error))?;
            // No thread receives from this channel. `RunningSupervisor::start` replaces it.
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
    /// Starts the supervisor thread, unless it runs already.
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

/// Returns the pool that runs the program for sites and routes that want this PHP.
fn pool(config: &Config, program: PhpProgram, wanted: &WantedPhp) -> Pool {
    let body_size = settings(config).map(|settings| settings.body_size).max();
    let body_size = body_size.unwrap_or_default();
    Pool {
        program,
        user: wanted.user.clone(),
        settings: wanted.settings.clone(),
        dev: config.server.mode == Mode::Dev,
        // PHP reads 0 as unlimited, and its sizes are signed numbers of 64 bits.
        body_size: body_size.clamp(1, i64::MAX as u64),
        drain_timeout: config.limits.answer_timeout,
    }
}

#[cfg(test)]
mod tests;
