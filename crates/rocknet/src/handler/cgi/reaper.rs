//! The thread that waits for programs to end, and kills those whose time is over: none is left behind, whoever leaves.

use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rocknet_io::child::signal_group;
use rustix::process::Signal;

/// After its answer a program may tidy up for so long.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks whether one has ended.
const LOOK: Duration = Duration::from_millis(20);

enum Word {
    Watch(Entry),
    /// The time of the one with this flag is over after this.
    Leave(Arc<AtomicBool>, Duration),
}

/// A process that is waited for. It is killed when this is dropped, with its group.
pub struct Watched {
    killed: Arc<AtomicBool>,
    words: Sender<Word>,
    left: bool,
}

impl Watched {
    /// Whether it has not been killed for taking too long.
    pub fn ends_itself(&self) -> bool {
        !self.killed.load(Ordering::Acquire)
    }

    /// Its answer is complete.
    pub fn leave(&mut self) {
        self.left = true;
        self.end_within(GRACE);
    }

    fn end_within(&self, time: Duration) {
        // By the flag: the number of one that has ended may be another's.
        let _ = self.words.send(Word::Leave(Arc::clone(&self.killed), time));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.left {
            self.end_within(Duration::ZERO);
        }
    }
}

/// Has a child of ours waited for, and killed when its time is over. Its place among those that run is taken until it has
/// gone, whoever has left it before.
pub fn watch(child: Child, time: Duration, place: Box<dyn Send>) -> io::Result<Watched> {
    static WORDS: Mutex<Option<Sender<Word>>> = Mutex::new(None);
    let mut known = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = match &*known {
        Some(words) => words.clone(),
        None => {
            let (words, heard) = channel();
            let start = thread::Builder::new()
                .name("rn-cgi".to_owned())
                .spawn(move || run(&heard));
            if let Err(error) = start {
                end(child);
                return Err(error);
            }
            known.insert(words).clone()
        }
    };
    drop(known);
    let killed = Arc::<AtomicBool>::default();
    let _ = words.send(Word::Watch(Entry {
        child,
        at: Instant::now() + time,
        killed: Arc::clone(&killed),
        left: false,
        _place: place,
    }));
    Ok(Watched {
        killed,
        words,
        left: false,
    })
}

fn end(mut child: Child) {
    let _ = signal_group(child.id(), Signal::KILL);
    let _ = child.wait();
}

struct Entry {
    child: Child,
    at: Instant,
    killed: Arc<AtomicBool>,
    /// Nobody reads what it says any more. Before, its end is not waited for: while it is a zombie its group keeps the
    /// number, and what it has started can be ended too.
    left: bool,
    /// Counts it for as long as it lives.
    _place: Box<dyn Send>,
}

fn run(words: &Receiver<Word>) {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let word = if all.is_empty() {
            words.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            words.recv_timeout(LOOK)
        };
        match word {
            Ok(Word::Watch(entry)) => all.push(entry),
            Ok(Word::Leave(killed, within)) => {
                let at = Instant::now() + within;
                for entry in all.iter_mut().filter(|entry| Arc::ptr_eq(&entry.killed, &killed)) {
                    entry.at = entry.at.min(at);
                    entry.left = true;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        all.retain_mut(|entry| {
            let is_over = entry.at <= now;
            if is_over {
                entry.killed.store(true, Ordering::Release);
                let _ = signal_group(entry.child.id(), Signal::KILL);
            }
            // What it has left behind with its answer complete was left on purpose. One that no signal of ours ends, since it
            // has become another user, or waits for a disk, is looked at again: nobody else may wait for it.
            !entry.left && !is_over || matches!(entry.child.try_wait(), Ok(None))
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, kill_process};
    use tokio::sync::Semaphore;

    use super::*;

    const LONG: Duration = Duration::from_secs(900);

    #[test]
    fn a_place_is_taken_until_its_program_has_gone() {
        static PLACES: Semaphore = Semaphore::const_new(1);
        let mut program = Command::new("sleep");
        let program = program.arg("1000").process_group(0).spawn().expect("a program");
        let pid = Pid::from_child(&program);
        let place = PLACES.try_acquire().expect("a place");
        let mut watched = watch(program, LONG, Box::new(place)).expect("a thread");
        // The answer is whole, and nobody speaks with it any more.
        watched.leave();
        drop(watched);
        assert_eq!(PLACES.available_permits(), 0);
        kill_process(pid, Signal::KILL).expect("it still runs");
        let deadline = Instant::now() + Duration::from_secs(10);
        while PLACES.available_permits() == 0 && Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(PLACES.available_permits(), 1);
    }

    #[test]
    fn one_that_cannot_be_killed_is_in_nobodys_way() {
        // It leads no group, so that the signal does not find it: as little as one that has become another user.
        let deaf = Command::new("sleep").arg("1000").spawn().expect("a program");
        let pid = Pid::from_child(&deaf);
        drop(watch(deaf, LONG, Box::new(())).expect("a thread"));
        let mut other = Command::new("sleep");
        let other = other.arg("1000").process_group(0).stdout(Stdio::piped());
        let mut other = other.spawn().expect("a program");
        let mut output = other.stdout.take().expect("a pipe");
        drop(watch(other, LONG, Box::new(())).expect("a thread"));
        let (ended, ends) = channel();
        thread::spawn(move || ended.send(output.read(&mut [0])));
        let end = ends.recv_timeout(Duration::from_secs(10));
        // It must not outlive a test that fails.
        let _ = kill_process(pid, Signal::KILL);
        assert!(matches!(end, Ok(Ok(0))), "nobody is killed any more: {end:?}");
    }
}
