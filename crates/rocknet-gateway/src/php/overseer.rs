//! The thread that looks after every php-fpm. It is their parent, and they end with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::Sockets;
use super::event::Event;
use super::master::Master;
use super::pool::Pool;

/// Between two looks at processes that say nothing: their end is told at once, and this is for what nobody told.
const LOOK: Duration = Duration::from_secs(5);
/// After the last answer nothing is under way: who does not end then is killed.
const STOP: Duration = Duration::from_secs(2);

pub struct Overseer {
    masters: Vec<Master>,
    folder: PathBuf,
    sender: Sender<Event>,
    sockets: Arc<Sockets>,
}

impl Overseer {
    pub fn new(folder: PathBuf, sender: Sender<Event>, sockets: Arc<Sockets>) -> Overseer {
        Overseer {
            masters: Vec::new(),
            folder,
            sender,
            sockets,
        }
    }

    pub fn run(mut self, events: &Receiver<Event>) {
        loop {
            let due = self.masters.iter().filter_map(Master::due).min();
            let patience = due.map_or(LOOK, |due| due.saturating_duration_since(Instant::now()).min(LOOK));
            match events.recv_timeout(patience) {
                Ok(Event::Want(pools)) => self.want(pools),
                Ok(Event::Ready(number, run)) => self.of(number).map_or((), |master| master.is_ready(run)),
                Ok(Event::Silent(number, run)) => self.of(number).map_or((), |master| master.is_silent(run)),
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return self.stop(),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.tick();
        }
    }

    fn of(&mut self, number: u32) -> Option<&mut Master> {
        self.masters.iter_mut().find(|master| master.number == number)
    }

    fn tick(&mut self) {
        self.masters.iter_mut().for_each(Master::tick);
        self.masters.retain(|master| !master.is_gone());
    }

    fn want(&mut self, pools: Vec<(u32, Pool)>) {
        for master in &mut self.masters {
            if !pools.iter().any(|(number, _)| *number == master.number) {
                master.leave_soon();
            }
        }
        for (number, pool) in pools {
            if self.of(number).is_none() {
                let (sender, sockets) = (self.sender.clone(), Arc::clone(&self.sockets));
                self.masters
                    .push(Master::new(number, pool, &self.folder, sender, sockets));
            }
        }
    }

    fn stop(mut self) {
        for master in &mut self.masters {
            master.end(STOP, false);
        }
        while !self.masters.is_empty() {
            self.tick();
            let due = self.masters.iter().filter_map(Master::due).min();
            if let Some(due) = due {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }
}
