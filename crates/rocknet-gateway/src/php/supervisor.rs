//! The thread that supervises all php-fpm processes. It starts them, and the system signals them to end when this
//! thread ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::PhpSockets;
use super::event::PhpEvent;
use super::fpm_process::FpmProcess;
use super::pool::Pool;

/// Maximum interval between two checks. Normally the end of a process raises an event; the check also finds an end
/// without an event.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time for processes to end when the server stops. Processes that still run are then killed. It is short,
/// because no request is in flight when the server stops PHP.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// State of the supervisor thread.
pub struct Supervisor {
    processes: Vec<FpmProcess>,
    folder: PathBuf,
    sender: Sender<PhpEvent>,
    sockets: Arc<PhpSockets>,
}

impl Supervisor {
    /// Creates the state. `folder`: run folder of the server. `sender`: sends events to the thread itself.
    pub fn new(folder: PathBuf, sender: Sender<PhpEvent>, sockets: Arc<PhpSockets>) -> Supervisor {
        Supervisor {
            processes: Vec::new(),
            folder,
            sender,
            sockets,
        }
    }

    /// Handles events until [`PhpEvent::Stop`] or the end of the channel.
    pub fn run(mut self, events: &Receiver<PhpEvent>) {
        loop {
            let due = self.processes.iter().filter_map(FpmProcess::due).min();
            let timeout = due.map_or(CHECK_INTERVAL, |due| {
                due.saturating_duration_since(Instant::now()).min(CHECK_INTERVAL)
            });
            match events.recv_timeout(timeout) {
                Ok(PhpEvent::SetPools(pools)) => self.set_pools(pools),
                Ok(PhpEvent::Ready(number, run)) => self.process(number).map_or((), |process| process.on_ready(run)),
                Ok(PhpEvent::StderrClosed(number, run)) => {
                    if let Some(process) = self.process(number) {
                        process.on_stderr_closed(run);
                    }
                }
                Ok(PhpEvent::Restart(number)) => self.process(number).map_or((), FpmProcess::restart),
                Ok(PhpEvent::Start(number)) => self.process(number).map_or((), FpmProcess::resume),
                Ok(PhpEvent::Halt(number)) => self.process(number).map_or((), FpmProcess::halt),
                Ok(PhpEvent::Stop) | Err(RecvTimeoutError::Disconnected) => return self.stop(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick();
        }
    }

    /// Returns the process of pool `number`; `None` if the pool has ended.
    fn process(&mut self, number: u32) -> Option<&mut FpmProcess> {
        self.processes.iter_mut().find(|process| process.number == number)
    }

    fn tick(&mut self) {
        self.processes.iter_mut().for_each(FpmProcess::tick);
        self.processes.retain(|process| !process.is_gone());
    }

    /// Retires the processes of pools that are not in the list, and adds a process for each new pool.
    fn set_pools(&mut self, pools: Vec<(u32, Pool)>) {
        for process in &mut self.processes {
            if !pools.iter().any(|(number, _)| *number == process.number) {
                process.retire();
            }
        }
        for (number, pool) in pools {
            if self.process(number).is_none() {
                let (sender, sockets) = (self.sender.clone(), Arc::clone(&self.sockets));
                self.processes
                    .push(FpmProcess::new(number, pool, &self.folder, sender, sockets));
            }
        }
    }

    /// Ends all processes, and waits until they have exited.
    fn stop(mut self) {
        for process in &mut self.processes {
            // `false`: immediately, without waiting for requests.
            process.end(STOP_TIMEOUT, false);
        }
        while !self.processes.is_empty() {
            self.tick();
            let due = self.processes.iter().filter_map(FpmProcess::due).min();
            if let Some(due) = due {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }
}
