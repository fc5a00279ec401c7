//! Event sources of the main loop (signals, timers and typed lines), and the queues for their events.

use std::io;
use std::thread;

use rocknet::metrics::SAMPLE_INTERVAL;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time;

use super::control::RETRY_INTERVAL;
use super::event::Event;
use super::host_folders::CHECK_INTERVAL;
use crate::console;

/// Queues of events. Signals have a queue of their own, so that they never wait for requests of the control API.
pub struct EventQueues {
    /// Signals.
    pub signals: Receiver<Event>,
    /// Other events.
    pub others: Receiver<Event>,
}

impl EventQueues {
    /// Waits for the next event; signals come first. Returns `None` once `others` is empty and has no sender.
    pub(super) async fn next(&mut self) -> Option<Event> {
        tokio::select! {
            biased;
            Some(event) = self.signals.recv() => Some(event),
            event = self.others.recv() => event,
        }
    }
}

/// Spawns tasks that send an event for each signal received.
///
/// # Errors
///
/// Fails if a signal handler cannot be installed.
pub fn catch_signals(runtime: &Runtime, events: &Sender<Event>) -> io::Result<()> {
    // `signal` has to be called in the context of a runtime.
    let _context = runtime.enter();
    let table: [(SignalKind, fn() -> Event); 5] = [
        (SignalKind::terminate(), || Event::Stop),
        (SignalKind::interrupt(), || Event::Stop),
        (SignalKind::hangup(), || Event::Reload),
        (SignalKind::user_defined1(), || Event::Reopen),
        (SignalKind::user_defined2(), || Event::Upgrade),
    ];
    for (kind, event) in table {
        let (mut signals, events) = (signal(kind)?, events.clone());
        runtime.spawn(async move {
            while signals.recv().await.is_some() {
                if events.send(event()).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Sends an event whenever the main loop should try to start the control API again.
pub async fn schedule_retries(events: Sender<Event>) {
    loop {
        time::sleep(RETRY_INTERVAL).await;
        if events.send(Event::RetryControl).await.is_err() {
            return;
        }
    }
}

/// Sends an event whenever the main loop should look for new folders of hosts.
pub async fn schedule_folder_checks(events: Sender<Event>) {
    loop {
        time::sleep(CHECK_INTERVAL).await;
        if events.send(Event::CheckHostFolders).await.is_err() {
            return;
        }
    }
}

/// Sends an event whenever the main loop should record the counters.
pub async fn schedule_samples(events: Sender<Event>) {
    let mut interval = time::interval_at(time::Instant::now() + SAMPLE_INTERVAL, SAMPLE_INTERVAL);
    // While the main loop is busy, for example with a long reload, the queue can fill, so that `send` waits. Ticks that
    // are missed meanwhile are dropped.
    interval.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if events.send(Event::SampleLoad).await.is_err() {
            return;
        }
    }
}

/// Starts a thread that sends an event for each typed line. The thread is not joined, because it may still wait for
/// input when the program ends. The program continues if the thread ends.
///
/// # Errors
///
/// Fails if the thread cannot be started.
pub fn read_commands(events: Sender<Event>) -> io::Result<()> {
    let read = move || {
        console::read(console::TerminalInput, |line| {
            events.blocking_send(Event::Line(line)).is_ok()
        });
    };
    thread::Builder::new()
        .name("rn-console".to_owned())
        .stack_size(CONSOLE_STACK)
        .spawn(read)
        .map(drop)
}

/// Maximum number of events in each queue; further senders block.
pub const MAX_EVENTS: usize = 16;

/// Stack size in bytes of the console thread, which only splits lines and compares words.
const CONSOLE_STACK: usize = 128 * 1024;
