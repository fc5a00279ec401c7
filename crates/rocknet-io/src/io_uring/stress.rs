//! Random scenarios of connections on a ring that is slow, reorders completions and fails. Data must arrive complete
//! and in order, or an error must be returned. No task may wait forever, and no descriptor, buffer or operation may
//! remain.

mod pair;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use rocknet_testing::{Need, skip};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::ResolveFlags;

use self::pair::{Flag, Pair};
use super::Driver;
use super::kernel::Kernel;
use super::path_prefetch::prefetch_path_on;
use super::read_ahead::read_ahead_on;
use super::simulated::{FaultProfile, SeededRng, SimulatedKernel};
use super::state::RingState;
use crate::confined_fs::Root;
use crate::isolated_test::in_own_process;
use crate::read_ahead::ReadAhead;
use crate::runtime::{Runtime, io_uring_unavailable};

/// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
const MAX_EVENTS: usize = 64;
/// Number of scenarios for each fault profile.
const SCENARIOS: u64 = 500;
/// Maximum number of rounds until all tasks end, once the peers read everything and send nothing more.
const DRAIN_ROUNDS: usize = 20_000;
/// Maximum time until all tasks end on the real kernel, whose threads may have to wait for a processor.
const DRAIN_TIME: Duration = Duration::from_secs(60);

/// Profile without faults, from which the other profiles differ in the named fields.
const CALM: FaultProfile = FaultProfile {
    slow: 0,
    faults: 0,
    losses: 0,
    refusals: 0,
    breaks: 0,
    submissions: 256,
    completions: 4096,
};

/// Name and faults of each profile.
#[rustfmt::skip] // A table is read by its columns.
const PROFILES: &[(&str, FaultProfile)] = &[
    ("calm", CALM),
    ("slow", FaultProfile { slow: 80, ..CALM }),
    ("faulty", FaultProfile { slow: 20, faults: 30, refusals: 20, ..CALM }),
    ("narrow", FaultProfile { slow: 20, faults: 10, submissions: 2, completions: 3, ..CALM }),
    ("lossy", FaultProfile { slow: 50, faults: 10, losses: 5, refusals: 5, ..CALM }),
    ("breaking", FaultProfile { slow: 50, faults: 10, losses: 1, refusals: 5, breaks: 10, submissions: 8, completions: 64 }),
];

#[test]
fn no_fault_of_the_ring_loses_data_or_leaks() {
    // This test runs in its own process, because it counts descriptors.
    if !in_own_process("io_uring::stress::no_fault_of_the_ring_loses_data_or_leaks") {
        return;
    }
    let runtime = Runtime::new(MAX_EVENTS).expect("a runtime");
    let before = open_descriptors();
    for (name, profile) in PROFILES {
        let mut total = Totals::default();
        for seed in 0..SCENARIOS {
            println!("{name}, scenario {seed}");
            runtime.block_on(Scenario::new(seed, Some(*profile)).run(&mut total));
        }
        println!("{name}: {total:?}");
        assert!(
            total.received > 1_000_000 && total.sent > 1_000_000,
            "too little was transferred: {total:?}"
        );
        assert!(total.large_receives > 100, "few large receives: {total:?}");
        assert!(total.piped > 100_000, "few bytes went through pipes: {total:?}");
        assert_eq!(total.lost > 0, profile.losses > 0, "{total:?}");
        assert_eq!(total.broken > 0, profile.breaks > 0, "{total:?}");
    }
    assert_eq!(open_descriptors(), before, "descriptors are left open");
}

/// Returns the number of open descriptors of this process, including the one that lists them.
fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a list").count()
}

/// Sums over the scenarios of a profile.
#[derive(Debug, Default)]
struct Totals {
    /// Bytes that the links received.
    received: usize,
    /// Bytes that the peers received from the links.
    sent: usize,
    /// Connections that sent everything.
    finished: usize,
    /// Connections that were dropped early.
    abandoned: usize,
    /// Connections that ended with an error.
    failures: usize,
    /// Connections that the simulated kernel broke.
    lost: usize,
    /// Scenarios whose ring failed permanently.
    broken: usize,
    /// File operations that ended.
    file_operations: usize,
    /// Receives without the ring.
    large_receives: usize,
    /// Bytes that receives without the ring moved into pipes.
    piped: usize,
}

#[test]
fn the_real_kernel_passes_the_same_scenarios() {
    if let Some(reason) = io_uring_unavailable() {
        skip(Need::IoUring, &reason);
        return;
    }
    let runtime = Runtime::new(MAX_EVENTS).expect("a runtime");
    let mut total = Totals::default();
    for seed in 0..SCENARIOS {
        println!("scenario {seed}");
        runtime.block_on(Scenario::new(seed, None).run(&mut total));
    }
    assert!(
        total.received > 1_000_000 && total.sent > 1_000_000 && total.file_operations > 100,
        "too little was transferred: {total:?}"
    );
}

/// Scenario with one ring and a few connections.
struct Scenario {
    rng: SeededRng,
    driver: Rc<Driver>,
    /// Inodes of the sockets whose connections the simulated kernel broke.
    lost: Rc<RefCell<HashSet<u64>>>,
    pairs: Vec<Pair>,
    /// File operations in progress, each with its waker.
    file_operations: Vec<(ReadAhead, Arc<Flag>)>,
    /// File for read-ahead.
    file: Arc<File>,
    /// Root below which paths are prefetched.
    root: Arc<Root>,
    /// Stands in for the runtime's epoll.
    events: Arc<File>,
    /// Set when the task that watches the runtime's epoll is woken.
    epoll_waker: Arc<Flag>,
    /// True on the simulated kernel, where a wait ends even without a completion.
    may_wait: bool,
}

impl Scenario {
    /// Creates a scenario, on the real kernel if there is no profile.
    fn new(seed: u64, profile: Option<FaultProfile>) -> Scenario {
        // The seed differs from that of the simulated kernel, so that the choices of the two are independent.
        let mut rng = SeededRng::new(seed ^ 0x5eed);
        let mut lost = Rc::default();
        let kernel = match profile {
            None => Kernel::new().expect("a ring"),
            Some(profile) => {
                let simulated = SimulatedKernel::new(seed, profile);
                lost = Rc::clone(&simulated.lost);
                Kernel::Simulated(Box::new(simulated))
            }
        };
        let events = File::from(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).expect("an event"));
        let state = RingState::with_kernel(kernel, events.as_raw_fd(), None);
        let driver = Driver::from_state(state.expect("a ring"));
        let pairs = (0..=rng.below(6)).map(|_| Pair::new(&driver, &mut rng)).collect();
        Scenario {
            rng,
            driver,
            lost,
            pairs,
            file_operations: Vec::new(),
            file: Arc::new(File::open("/proc/self/exe").expect("a file")),
            root: Arc::new(Root::open("/").expect("a folder")),
            events: Arc::new(events),
            epoll_waker: Arc::default(),
            may_wait: profile.is_some(),
        }
    }

    /// Performs random steps, then lets all tasks end, and checks the result.
    async fn run(mut self, total: &mut Totals) {
        for _ in 0..40 + self.rng.below(200) {
            self.step(total);
            self.runtime_turn().await;
        }
        // From here on, no connection is broken and the ring does not fail, so that all tasks can end.
        self.with_simulated(|simulated| {
            simulated.profile.losses = 0;
            simulated.profile.breaks = 0;
        });
        let started = Instant::now();
        for round in 0.. {
            self.drain_round();
            self.runtime_turn().await;
            if self.pairs.iter().all(Pair::is_over) && self.file_operations.is_empty() {
                break;
            }
            let waiting: Vec<_> = self
                .pairs
                .iter()
                .map(|pair| (pair.task.is_some(), pair.saw_end))
                .collect();
            assert!(
                self.may_drain(round, started),
                "a task waits forever: tasks and peers {waiting:?}, {} file operations, ring failed: {}",
                self.file_operations.len(),
                self.driver.has_failed()
            );
        }
        self.check(total);
    }

    /// Runs the runtime, which drives links that have lost their ring.
    async fn runtime_turn(&self) {
        if self.driver.has_failed() {
            tokio::task::yield_now().await;
        }
    }

    /// Calls `act` with the simulated kernel. Returns `None` on the real kernel, and after a failure of the ring.
    fn with_simulated<T>(&self, act: impl FnOnce(&mut SimulatedKernel) -> T) -> Option<T> {
        self.driver.with_state(|state| match &mut state.kernel {
            Kernel::Simulated(simulated) => Some(act(simulated)),
            _ => None,
        })
    }

    /// Performs one random action of a task, a peer, the ring or the runtime: the first arm that matches the random
    /// number and whose condition holds.
    fn step(&mut self, total: &mut Totals) {
        let (which, length) = (self.rng.below(self.pairs.len()), self.rng.below(30_000));
        let is_rare_case = self.rng.chance(10);
        let none_woken = !self.pairs.iter().any(|pair| pair.woken.is_set());
        let pair = &mut self.pairs[which];
        match self.rng.below(100) {
            // In rare cases a task is polled without having been woken.
            0..30 if pair.woken.take() || is_rare_case => pair.poll(),
            0..45 => drop(self.driver.turn()),
            45..55 if none_woken => {
                self.driver.turn_with(self.may_wait);
            }
            45..67 => pair.write(length),
            67..90 => pair.read(length),
            90 => pair.stop_writing(),
            91 if is_rare_case => {
                pair.peer_left = true;
                pair.peer = None;
            }
            // Drops the connection at any point.
            92 => pair.task = None,
            93 if pair.is_over() => self.replace(which, total),
            94..97 if self.file_operations.len() < 3 => {
                let operation = self.start_file_operation(length as u64);
                let woken = Arc::new(Flag::default());
                woken.wake_by_ref();
                self.file_operations
                    .extend(operation.map(|operation| (operation, woken)));
            }
            97 => drop(self.file_operations.pop()),
            98 => drop((&*self.events).write(&1_u64.to_ne_bytes())),
            _ => self.watch(),
        }
        total.file_operations += self.poll_file_operations();
    }

    /// Acts as the task that watches the runtime's epoll.
    fn watch(&mut self) {
        let mut count = [0; 8];
        let _ = (&*self.events).read(&mut count);
        self.driver.watch_epoll(&Waker::from(Arc::clone(&self.epoll_waker)));
    }

    /// Starts a read-ahead, or the prefetch of a path that exists or not.
    fn start_file_operation(&mut self, length: u64) -> Option<ReadAhead> {
        if self.rng.chance(50) {
            let name = ["proc", "proc/self", "proc/self/status", "nowhere", "proc/self/exe"][self.rng.below(5)];
            let ahead = prefetch_path_on(&self.driver, self.root.clone(), name.as_bytes(), ResolveFlags::BENEATH)?;
            return Some(Box::pin(ahead));
        }
        let offset = self.rng.below(1 << 20) as u64;
        let ahead = read_ahead_on(Rc::clone(&self.driver), &self.file, offset, length)?;
        Some(Box::pin(ahead))
    }

    /// Polls the file operations that were woken. Returns the number of those that ended.
    fn poll_file_operations(&mut self) -> usize {
        let before = self.file_operations.len();
        self.file_operations.retain_mut(|(operation, woken)| {
            let waker = Waker::from(Arc::clone(woken));
            !woken.take() || operation.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        });
        before - self.file_operations.len()
    }

    /// Replaces a connection that is over by another, which reuses its slot and descriptor.
    fn replace(&mut self, which: usize, total: &mut Totals) {
        let new = Pair::new(&self.driver, &mut self.rng);
        let pair = &self.pairs[which];
        pair.check(
            self.lost.borrow().contains(&pair.inode),
            self.driver.has_failed(),
            total,
        );
        self.pairs[which] = new;
    }

    /// Makes all peers read everything and send nothing more, and polls only woken tasks. The peer of a dropped link
    /// must receive the end of the stream without any action.
    fn drain_round(&mut self) {
        for pair in &mut self.pairs {
            if pair.task.is_some() {
                pair.stop_writing();
            }
            pair.read(200_000);
            if pair.woken.take() {
                pair.poll();
            }
        }
        self.poll_file_operations();
        self.driver.turn_with(self.may_wait);
    }

    /// Returns true if another round may follow `round` rounds since `started`. On the simulated kernel, the number of
    /// rounds decides, and otherwise the time as well.
    fn may_drain(&self, round: usize, started: Instant) -> bool {
        let is_real = !self.may_wait;
        round < DRAIN_ROUNDS || is_real && started.elapsed() < DRAIN_TIME
    }

    /// Checks the connections, and that nothing remains in the ring. Adds the scenario to `total`.
    fn check(mut self, total: &mut Totals) {
        let broken = self.driver.has_failed();
        for pair in &self.pairs {
            pair.check(self.lost.borrow().contains(&pair.inode), broken, total);
        }
        // Completes the remaining cancellations, which `counts` does not include, and closes. The real kernel may need
        // more than the minimum of 100 rounds, because its threads look paths up.
        let started = Instant::now();
        for round in 0.. {
            if !self.may_drain(round, started) {
                break;
            }
            self.driver.turn_with(self.may_wait);
            if round >= 100 && self.driver.counts() == (0, 0) {
                break;
            }
            std::thread::yield_now();
        }
        // An event of the runtime must still wake the task that watches epoll. `watch` consumes the first event, and
        // the second one has to wake the task. Several turns are needed, because the simulated kernel may be slow.
        self.epoll_waker.take();
        let _ = (&*self.events).write(&1_u64.to_ne_bytes());
        self.watch();
        let _ = (&*self.events).write(&1_u64.to_ne_bytes());
        for _ in 0..100 {
            self.driver.turn_with(self.may_wait);
        }
        assert!(broken || self.epoll_waker.take(), "events of the runtime are lost");
        assert_eq!(self.driver.counts(), (0, 0), "slots or operations remain");
        let remaining = self.with_simulated(|simulated| (simulated.unfinished(), simulated.buffers_missing()));
        assert!(
            matches!(remaining, None | Some((0, 0))),
            "operations or buffers remain: {remaining:?}"
        );
        assert!(
            self.driver.with_state(|state| state.closing.is_empty()),
            "sockets remain open"
        );
        total.broken += usize::from(broken);
        // Starts operations that are in flight when the ring is dropped.
        for _ in 0..self.rng.below(4) {
            drop(self.start_file_operation(30_000));
        }
        self.driver.turn();
        total.large_receives += self.with_simulated(|simulated| simulated.direct_calls).unwrap_or(0);
        total.piped += self.with_simulated(|simulated| simulated.bytes_piped).unwrap_or(0);
    }
}
