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

/// The time of a program, all in all. Who needs longer answers first, and works elsewhere.
const TIME: Duration = Duration::from_secs(15 * 60);
/// After its answer a program may tidy up for so long.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks whether one has ended.
const LOOK: Duration = Duration::from_millis(20);

enum Word {
    Watch(Box<Child>, Arc<AtomicBool>),
    /// Its time is over after this.
    Leave(u32, Duration),
}

/// A process that is waited for. It is killed when this is dropped, with its group.
pub struct Watched {
    pid: u32,
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
        let _ = self.words.send(Word::Leave(self.pid, GRACE));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.left {
            let _ = self.words.send(Word::Leave(self.pid, Duration::ZERO));
        }
    }
}

/// Has a child of ours waited for.
pub fn watch(child: Child) -> io::Result<Watched> {
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
    let (pid, killed) = (child.id(), Arc::<AtomicBool>::default());
    let _ = words.send(Word::Watch(Box::new(child), Arc::clone(&killed)));
    Ok(Watched {
        pid,
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
    child: Box<Child>,
    at: Instant,
    killed: Arc<AtomicBool>,
    /// Nobody reads what it says any more. Before, its end is not waited for: while it is a zombie its group keeps the
    /// number, and what it has started can be ended too.
    left: bool,
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
            Ok(Word::Watch(child, killed)) => all.push(Entry {
                child,
                at: Instant::now() + TIME,
                killed,
                left: false,
            }),
            Ok(Word::Leave(pid, within)) => {
                let at = Instant::now() + within;
                for entry in all.iter_mut().filter(|entry| entry.child.id() == pid) {
                    entry.at = entry.at.min(at);
                    entry.left = true;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        all.retain_mut(|entry| {
            if entry.at <= now {
                entry.killed.store(true, Ordering::Release);
                let _ = signal_group(entry.child.id(), Signal::KILL);
                let _ = entry.child.wait();
                return false;
            }
            // What it has left behind with its answer complete was left on purpose.
            !entry.left || matches!(entry.child.try_wait(), Ok(None))
        });
    }
}
