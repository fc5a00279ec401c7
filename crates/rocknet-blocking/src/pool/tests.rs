//! Tests of the pool with real threads. Channels enforce every order; no test relies on sleeping.

use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};

use Priority::{High, Low, Normal};

use super::super::queue::{AGE_STEP, LEVEL_LIMIT};
use super::*;

/// Minimal executor, because the pool requires no runtime.
fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Submits a job that keeps one thread busy until the sender is dropped. Returns when the job has started.
fn occupy_thread(pool: &Pool) -> (Sender<()>, Job<()>) {
    let (report_start, started) = channel();
    let (release, released) = channel::<()>();
    let job = pool.spawn(High, move || {
        report_start.send(()).unwrap();
        assert!(released.recv().is_err(), "nothing is ever sent");
    });
    started.recv().unwrap();
    (release, job)
}

/// Submits a job that sends its name when it runs.
fn logging_job(pool: &Pool, priority: Priority, name: &'static str, log: &Sender<&'static str>) -> Job<()> {
    let log = log.clone();
    pool.spawn(priority, move || log.send(name).unwrap())
}

fn counts(pool: &Pool, priority: Priority) -> PriorityCounts {
    pool.stats().by_priority[level(priority)]
}

/// Stops the pool, which must not drop or abandon a job. Afterwards its counters are final.
fn finish(pool: &Pool) {
    assert_eq!(
        pool.stop(LONG),
        StopReport {
            dropped: 0,
            abandoned: 0
        }
    );
    assert_eq!(pool.stats().alive, 0);
}

/// Grace period that is longer than any test takes, so that reaching its end is a failure.
const LONG: Duration = Duration::from_secs(60);

/// Clock whose time in milliseconds a test sets.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

#[test]
fn a_background_job_runs_although_no_handle_waits_for_it() {
    let pool = Pool::new(1);
    let (release, busy) = occupy_thread(&pool);
    let (log, logged) = channel();
    // The job is queued, because the only thread is busy.
    let later = log.clone();
    assert_eq!(
        pool.run_in_background(Normal, move || later.send("ran").unwrap()),
        Ok(())
    );
    assert_eq!(pool.run_in_background(Normal, || panic!("for the test")), Ok(()));
    drop(release);
    assert_eq!(logged.recv().unwrap(), "ran");
    assert_eq!(wait(busy), Ok(()));
    // The thread has survived the panic.
    assert_eq!(wait(logging_job(&pool, Normal, "next", &log)), Ok(()));
    finish(&pool);
    assert_eq!((counts(&pool, Normal).done, counts(&pool, Normal).panicked), (2, 1));
    assert_eq!(pool.run_in_background(Normal, || ()), Err(JobError::Stopped));
}

#[test]
fn jobs_return_their_results() {
    let pool = Pool::new(2);
    let jobs: Vec<_> = (0..100u32)
        .map(|number| pool.spawn(Normal, move || number * number))
        .collect();
    for (number, job) in (0..100u32).zip(jobs) {
        assert_eq!(wait(job), Ok(number * number));
    }
    finish(&pool);
    assert_eq!(
        counts(&pool, Normal),
        PriorityCounts {
            done: 100,
            ..PriorityCounts::default()
        }
    );
    assert_eq!((pool.stats().threads, pool.stats().restarts), (2, 0));
}

#[test]
fn jobs_return_their_results_under_tokio() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let pool = Pool::new(1);
    let sum = runtime.block_on(async {
        let jobs: Vec<_> = (0..10u32)
            .map(|number| tokio::spawn(pool.spawn(Low, move || number)))
            .collect();
        let mut sum = 0;
        for job in jobs {
            sum += job.await.unwrap().unwrap();
        }
        sum
    });
    assert_eq!(sum, 45);
    finish(&pool);
}

#[test]
fn all_threads_run_jobs_concurrently_and_have_names() {
    let pool = Pool::new(4);
    let barrier = Arc::new(Barrier::new(4));
    let jobs: Vec<_> = (0..4)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            pool.spawn(Normal, move || {
                barrier.wait();
                thread::current().name().map(str::to_owned)
            })
        })
        .collect();
    let mut names: Vec<_> = jobs.into_iter().map(|job| wait(job).unwrap().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["rn-block-0", "rn-block-1", "rn-block-2", "rn-block-3"]);
    assert!(format!("{THREAD_NAME}{}", MAX_THREADS - 1).len() <= 15);
    finish(&pool);
}

#[test]
fn jobs_of_higher_priority_run_first() {
    let pool = Pool::with_clock(1, TestClock::default());
    let (release, blocker) = occupy_thread(&pool);
    let (log, order) = channel();
    let jobs = [
        (Low, "low"),
        (Normal, "normal"),
        (High, "high"),
        (Low, "low 2"),
        (High, "high 2"),
    ]
    .map(|(priority, name)| logging_job(&pool, priority, name, &log));
    assert_eq!(
        [High, Normal, Low].map(|priority| counts(&pool, priority).queued),
        [2, 1, 2]
    );
    assert_eq!(counts(&pool, High).running, 1);
    drop((release, log));
    assert_eq!(Vec::from_iter(order), ["high", "high 2", "normal", "low", "low 2"]);
    for job in [blocker].into_iter().chain(jobs) {
        assert_eq!(wait(job), Ok(()));
    }
    finish(&pool);
}

#[test]
fn waiting_jobs_gain_priority() {
    let clock = TestClock::default();
    let pool = Pool::with_clock(1, clock.clone());
    let (release, blocker) = occupy_thread(&pool);
    let (log, order) = channel();
    let old = logging_job(&pool, Low, "old low", &log);
    clock.0.store(2 * AGE_STEP.as_millis() as u64, Ordering::SeqCst);
    let new = [(Low, "low"), (Normal, "normal"), (High, "high")]
        .map(|(priority, name)| logging_job(&pool, priority, name, &log));
    drop((release, log));
    assert_eq!(Vec::from_iter(order), ["old low", "high", "normal", "low"]);
    for job in [blocker, old].into_iter().chain(new) {
        assert_eq!(wait(job), Ok(()));
    }
    finish(&pool);
}

#[test]
fn a_panic_ends_only_its_job() {
    let pool = Pool::new(1);
    assert_eq!(
        wait(pool.spawn(Low, || panic!("on purpose"))),
        Err::<(), _>(JobError::Panicked)
    );
    assert_eq!(wait(pool.spawn(Low, || 7)), Ok(7));
    finish(&pool);
    assert_eq!(
        counts(&pool, Low),
        PriorityCounts {
            done: 1,
            panicked: 1,
            ..PriorityCounts::default()
        }
    );
    assert_eq!(pool.stats().restarts, 0);
}

#[test]
fn a_dead_thread_is_replaced() {
    /// A panic payload that panics again when it is dropped, outside the `catch_unwind` around the job.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose, once more");
        }
    }
    let pool = Pool::new(1);
    for round in 1..=3 {
        assert_eq!(
            wait(pool.spawn(Normal, || std::panic::panic_any(Bomb))),
            Err::<(), _>(JobError::Panicked)
        );
        let name = wait(pool.spawn(High, || thread::current().name().map(str::to_owned)));
        assert_eq!(name, Ok(Some("rn-block-0".into())));
        assert_eq!((pool.stats().restarts, pool.stats().alive), (round, 1));
    }
    finish(&pool);
    assert_eq!(
        counts(&pool, Normal),
        PriorityCounts {
            panicked: 3,
            ..PriorityCounts::default()
        }
    );
    assert_eq!(
        counts(&pool, High),
        PriorityCounts {
            done: 3,
            ..PriorityCounts::default()
        }
    );
}

#[test]
fn a_dropped_job_does_not_start() {
    let pool = Pool::new(1);
    let (release, blocker) = occupy_thread(&pool);
    let (log, order) = channel();
    let kept = logging_job(&pool, Low, "kept", &log);
    let dropped = logging_job(&pool, Low, "dropped", &log);
    let (alive, gone): (Sender<()>, Receiver<()>) = channel();
    let holding = pool.spawn(Low, move || drop(alive));
    drop(dropped);
    drop(holding);
    assert!(
        gone.recv().is_err(),
        "a cancelled job keeps its captures while the thread is busy"
    );
    assert_eq!((counts(&pool, Low).queued, counts(&pool, Low).cancelled), (1, 2));
    drop((release, log));
    assert_eq!(Vec::from_iter(order), ["kept"]);
    assert_eq!((wait(blocker), wait(kept)), (Ok(()), Ok(())));
    finish(&pool);
    assert_eq!(
        counts(&pool, Low),
        PriorityCounts {
            done: 1,
            cancelled: 2,
            ..PriorityCounts::default()
        }
    );
}

#[test]
fn a_started_job_runs_to_its_end() {
    let pool = Pool::new(1);
    let (release, blocker) = occupy_thread(&pool);
    drop(blocker);
    assert_eq!(counts(&pool, High).running, 1);
    drop(release);
    finish(&pool);
    assert_eq!(
        counts(&pool, High),
        PriorityCounts {
            done: 1,
            ..PriorityCounts::default()
        }
    );
}

#[test]
fn a_full_level_rejects_jobs_and_other_levels_do_not() {
    let pool = Pool::new(1);
    let (release, blocker) = occupy_thread(&pool);
    let waiting: Vec<_> = (0..LEVEL_LIMIT).map(|_| pool.spawn(Low, || ())).collect();
    assert_eq!(wait(pool.spawn(Low, || ())), Err(JobError::Rejected));
    let high = pool.spawn(High, || ());
    drop(release);
    for job in [blocker, high].into_iter().chain(waiting) {
        assert_eq!(wait(job), Ok(()));
    }
    finish(&pool);
    assert_eq!(
        (counts(&pool, Low).rejected, counts(&pool, Low).done),
        (1, LEVEL_LIMIT as u64)
    );
}

#[test]
fn a_pool_without_threads_rejects_jobs() {
    let pool = Pool::new(0);
    assert_eq!(wait(pool.spawn(High, || ())), Err(JobError::Rejected));
    assert_eq!(
        counts(&pool, High),
        PriorityCounts {
            rejected: 1,
            ..PriorityCounts::default()
        }
    );
    finish(&pool);
    assert_eq!(wait(pool.spawn(High, || ())), Err(JobError::Stopped));
}

#[test]
fn a_stop_finishes_queued_jobs() {
    let pool = Pool::new(1);
    let (release, blocker) = occupy_thread(&pool);
    let waiting = pool.spawn(Low, || "done");
    let stop = {
        let pool = pool.clone();
        thread::spawn(move || pool.stop(LONG))
    };
    while pool.handle.shared.lock().phase == Phase::Open {
        thread::yield_now();
    }
    assert_eq!(wait(pool.spawn(Normal, || ())), Err(JobError::Stopped));
    drop(release);
    assert_eq!(
        stop.join().unwrap(),
        StopReport {
            dropped: 0,
            abandoned: 0
        }
    );
    assert_eq!((wait(blocker), wait(waiting)), (Ok(()), Ok("done")));
    assert_eq!(pool.stats().alive, 0);
}

#[test]
fn a_stop_drops_queued_jobs_after_the_grace_period() {
    let pool = Pool::new(1);
    let (release, blocker) = occupy_thread(&pool);
    let waiting = [High, Low].map(|priority| pool.spawn(priority, || ()));
    assert_eq!(
        pool.stop(Duration::ZERO),
        StopReport {
            dropped: 2,
            abandoned: 1
        }
    );
    for job in waiting {
        assert_eq!(wait(job), Err(JobError::Stopped));
    }
    assert_eq!(wait(pool.spawn(High, || ())), Err(JobError::Stopped));
    drop(release);
    assert_eq!(wait(blocker), Ok(()));
    finish(&pool);
}

#[test]
fn dropping_the_last_handle_ends_the_threads() {
    let pool = Pool::new(1);
    let shared = Arc::downgrade(&pool.handle.shared);
    let (release, blocker) = occupy_thread(&pool);
    drop(pool.clone());
    let waiting = pool.spawn(Low, || "done");
    drop(pool);
    drop(release);
    assert_eq!((wait(blocker), wait(waiting)), (Ok(()), Ok("done")));
    // Only the thread still refers to the pool, and it drops its reference when it ends.
    if let Some(shared) = shared.upgrade() {
        let state = shared
            .ended
            .wait_timeout_while(shared.lock(), LONG, |state| state.alive > 0)
            .unwrap()
            .0;
        assert_eq!(state.alive, 0);
    }
}

#[test]
fn low_priority_has_its_own_threads_in_larger_pools() {
    let pool = Pool::new(2);
    // There are more jobs than threads, and no job ends.
    let (release, blocker) = channel::<()>();
    let blocker = Arc::new(Mutex::new(blocker));
    let (names, thread_names) = channel();
    let flood: Vec<_> = (0..8)
        .map(|_| {
            let (names, blocker) = (names.clone(), Arc::clone(&blocker));
            pool.spawn(Low, move || {
                names.send(thread::current().name().map(str::to_owned)).unwrap();
                let _ = blocker.lock().unwrap().recv();
            })
        })
        .collect();
    // The pool has one additional thread for low priority, which follows the two ordinary threads in number.
    assert_eq!(thread_names.recv().unwrap().as_deref(), Some("rn-block-2"));
    for priority in [High, Normal] {
        let name = wait(pool.spawn(priority, || thread::current().name().map(str::to_owned)));
        let name = name.unwrap().unwrap();
        assert!(["rn-block-0", "rn-block-1"].contains(&name.as_str()), "{name}");
    }
    assert_eq!((pool.stats().threads, pool.stats().alive), (2, 3));
    drop(release);
    for job in flood {
        assert_eq!(wait(job), Ok(()));
    }
    // Conversely, threads busy with other priorities do not delay jobs of low priority.
    let holds = [occupy_thread(&pool), occupy_thread(&pool)];
    assert_eq!(wait(pool.spawn(Low, || 7)), Ok(7));
    for (release, job) in holds {
        drop(release);
        assert_eq!(wait(job), Ok(()));
    }
    finish(&pool);
}
