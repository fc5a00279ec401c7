//! Priority queue with ageing: high before normal before low, without starvation.

use std::collections::VecDeque;
use std::time::Duration;

use rocknet_config::model::Priority;

/// Jobs that wait, ordered by priority and age.
///
/// A job starts at the level of its priority and rises one level for every [`AGE_STEP`] of waiting, up to the highest.
/// The next job is the oldest of the highest occupied level. So no later job overtakes a job that has waited two steps:
/// that job waits only for jobs queued before it.
///
/// Ageing moves no job in memory. Within a priority the front job is the oldest, so it has risen highest, and comparing
/// the three front jobs is enough. The cost of `push` and `pop` does not depend on the length of the queue; the
/// functions with `is_eligible` search it.
#[derive(Debug)]
pub struct Queue<J> {
    levels: [VecDeque<QueuedJob<J>>; LEVELS],
    /// Number of the next job to be pushed.
    next: u64,
}

/// A job that waits.
#[derive(Debug)]
struct QueuedJob<J> {
    /// Increases with every push.
    number: u64,
    /// Time at which the job was queued.
    since: Duration,
    job: J,
}

/// Identifies a queued job for [`Queue::cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    priority: Priority,
    number: u64,
}

/// Urgency of a job, by which it is compared with jobs of other queues that wait for the same resource: first by the
/// level it has reached, then by age. The smaller value is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// Level that the job has reached; 0 is the highest.
    level: usize,
    /// Time at which the job was queued.
    since: Duration,
    /// Priority with which the job was queued.
    pub priority: Priority,
}

impl<J> Queue<J> {
    /// Creates an empty queue.
    pub fn new() -> Queue<J> {
        Queue {
            levels: [const { VecDeque::new() }; LEVELS],
            next: 0,
        }
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// Returns the job if [`LEVEL_LIMIT`] jobs of its priority are queued.
    pub fn push(&mut self, priority: Priority, job: J, now: Duration) -> Result<Ticket, J> {
        let waiting = &mut self.levels[level(priority)];
        if waiting.len() >= LEVEL_LIMIT {
            return Err(job);
        }
        let number = self.next;
        self.next += 1;
        waiting.push_back(QueuedJob {
            number,
            since: now,
            job,
        });
        Ok(Ticket { priority, number })
    }

    /// Removes and returns the next job.
    pub fn pop(&mut self, now: Duration) -> Option<(Priority, J)> {
        self.pop_of(&PRIORITIES, now)
    }

    /// Removes and returns the next job of these priorities.
    pub fn pop_of(&mut self, priorities: &[Priority], now: Duration) -> Option<(Priority, J)> {
        self.pop_where(priorities, now, |_| true)
    }

    /// Removes and returns the next job of these priorities for which `is_eligible` returns true.
    pub fn pop_where(
        &mut self,
        priorities: &[Priority],
        now: Duration,
        is_eligible: impl Fn(&J) -> bool,
    ) -> Option<(Priority, J)> {
        let (_, priority, index) = self.next_where(priorities, now, is_eligible)?;
        self.levels[level(priority)]
            .remove(index)
            .map(|waiting| (priority, waiting.job))
    }

    /// Returns the urgency of the next eligible job of these priorities.
    pub fn urgency_of(
        &self,
        priorities: &[Priority],
        now: Duration,
        is_eligible: impl Fn(&J) -> bool,
    ) -> Option<Urgency> {
        let ((current_level, _), priority, index) = self.next_where(priorities, now, is_eligible)?;
        let since = self.levels[level(priority)].get(index)?.since;
        Some(Urgency {
            level: current_level,
            since,
            priority,
        })
    }

    /// Returns the next eligible job: its current level and its number, its priority, and its index in the queue of
    /// that priority. In each queue, jobs are examined from the front until one is eligible.
    fn next_where(
        &self,
        priorities: &[Priority],
        now: Duration,
        is_eligible: impl Fn(&J) -> bool,
    ) -> Option<((usize, u64), Priority, usize)> {
        let first = |priority: Priority| {
            let mut all = self.levels[level(priority)].iter().enumerate();
            let (index, waiting) = all.find(|(_, waiting)| is_eligible(&waiting.job))?;
            let rank = (waiting.level(level(priority), now), waiting.number);
            Some((rank, priority, index))
        };
        priorities
            .iter()
            .copied()
            .filter_map(first)
            .min_by_key(|(rank, ..)| *rank)
    }

    /// Removes and returns a job if it is still queued.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<J> {
        let waiting = &mut self.levels[level(ticket.priority)];
        let index = waiting
            .binary_search_by_key(&ticket.number, |waiting| waiting.number)
            .ok()?;
        waiting.remove(index).map(|waiting| waiting.job)
    }

    /// Removes and returns all jobs. The numbers of tickets then start again, so an earlier ticket must not be used
    /// once another job has been queued.
    pub fn drain(&mut self) -> impl Iterator<Item = J> + use<J> {
        std::mem::take(self)
            .levels
            .into_iter()
            .flatten()
            .map(|waiting| waiting.job)
    }

    /// Returns the number of queued jobs of a priority.
    pub fn waiting(&self, priority: Priority) -> usize {
        self.levels[level(priority)].len()
    }

    /// Returns true if no job is queued.
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(VecDeque::is_empty)
    }
}

impl<J> Default for Queue<J> {
    fn default() -> Queue<J> {
        Queue::new()
    }
}

impl<J> QueuedJob<J> {
    /// Returns the level to which the job has risen from `first`; 0 is the highest.
    fn level(&self, first: usize, now: Duration) -> usize {
        let waited = now.saturating_sub(self.since);
        let mut level = first;
        let mut threshold = AGE_STEP;
        while level > 0 && waited >= threshold {
            level -= 1;
            threshold += AGE_STEP;
        }
        level
    }
}

/// Returns the level at which a priority starts; 0 is the highest.
pub(super) fn level(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

/// All priorities, ordered by the level at which they start.
pub(super) const PRIORITIES: [Priority; LEVELS] = [Priority::High, Priority::Normal, Priority::Low];

/// Number of levels, one for each priority.
pub(super) const LEVELS: usize = 3;

/// Waiting time after which a job rises one level. Jobs take milliseconds, so priorities are strict while the pool
/// keeps up. A low job reaches the level of high ones after half a second, before users abandon the page.
pub const AGE_STEP: Duration = Duration::from_millis(250);

/// Maximum number of queued jobs of one priority. Each priority has its own limit, so that a flood of low jobs never
/// blocks high ones. At one millisecond per job, four threads finish this many in a second. It is better to reject
/// later jobs immediately (503) than to let them wait longer.
pub const LEVEL_LIMIT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use Priority::{High, Low, Normal};

    const STEP: u64 = AGE_STEP.as_millis() as u64;

    /// Returns the time `ms` milliseconds after the start of the clock.
    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn jobs_are_popped_by_priority_and_age() {
        /// Queues one job for each priority and time in milliseconds, and pops all at the time `now`. `expected` are
        /// the indices of the jobs in the order of the pops.
        #[track_caller]
        fn check(pushes: &[(Priority, u64)], now: u64, expected: &[usize]) {
            let mut queue = Queue::new();
            for (index, &(priority, pushed)) in pushes.iter().enumerate() {
                queue.push(priority, index, at(pushed)).unwrap();
            }
            let order: Vec<_> = std::iter::from_fn(|| queue.pop(at(now)).map(|(_, job)| job)).collect();
            assert_eq!(order, expected, "{pushes:?} at {now} ms");
        }
        for (pushes, now, expected) in [
            // Priorities are strict, and jobs of the same priority are popped in their order.
            (&[(Low, 0), (Normal, 0), (High, 0)][..], 0, &[2, 1, 0][..]),
            (
                &[(Low, 0), (High, 0), (Low, 0), (High, 0), (Normal, 0)],
                0,
                &[1, 3, 4, 0, 2],
            ),
            (&[(Low, 0), (Normal, 1), (High, 2)], STEP - 1, &[2, 1, 0]),
            // After one step the normal job has the level of high ones, and precedes later ones.
            (&[(Normal, 0), (High, 1)], STEP, &[0, 1]),
            (&[(High, 0), (Normal, 0)], 10 * STEP, &[0, 1]),
            // One step raises low to normal, not to high.
            (&[(Low, 0), (Normal, STEP), (High, STEP)], STEP, &[2, 0, 1]),
            (&[(Low, 0), (Normal, 1), (High, STEP)], 2 * STEP - 1, &[1, 2, 0]),
            // Two steps raise low to high.
            (&[(Low, 0), (High, 1), (High, 2)], 2 * STEP - 1, &[1, 2, 0]),
            (&[(Low, 0), (High, 1), (High, 2)], 2 * STEP, &[0, 1, 2]),
            // No job rises above the highest level.
            (&[(High, 0), (Low, 1), (High, 2)], 100 * STEP, &[0, 1, 2]),
            // If the clock goes back, the age of a job is zero.
            (&[(Low, 5 * STEP), (High, 6 * STEP)], 0, &[1, 0]),
        ] {
            check(pushes, now, expected);
        }
    }

    #[test]
    fn jobs_that_are_not_eligible_keep_their_positions() {
        let mut queue = Queue::new();
        for (job, (priority, pushed)) in [(Low, 0), (Normal, 0), (Normal, 1), (High, 2)].into_iter().enumerate() {
            queue.push(priority, job, at(pushed)).unwrap();
        }
        // Job `but` is not eligible.
        let urgency = |queue: &Queue<usize>, but: usize, now| queue.urgency_of(&PRIORITIES, at(now), |job| *job != but);
        let of = |level, since, priority| {
            Some(Urgency {
                level,
                since: at(since),
                priority,
            })
        };
        // There is no job 7, so every job is eligible.
        assert_eq!(urgency(&queue, 7, 2), of(0, 2, High));
        assert_eq!(urgency(&queue, 3, 2), of(1, 0, Normal));
        assert_eq!(urgency(&queue, 3, STEP), of(0, 0, Normal));
        assert!(of(0, 2, High) < of(1, 0, Normal) && of(0, 0, Normal) < of(0, 2, High));
        assert_eq!(queue.pop_where(&[Normal], at(2), |job| *job != 1), Some((Normal, 2)));
        assert_eq!(queue.pop_where(&[Normal, Low], at(2), |job| *job > 1), None);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(at(2)).map(|(_, job)| job)).collect();
        assert_eq!(order, [3, 1, 0]);
    }

    #[test]
    fn a_full_level_does_not_affect_the_others() {
        let mut queue = Queue::new();
        for job in 0..LEVEL_LIMIT {
            assert!(queue.push(Low, job, at(0)).is_ok());
        }
        assert_eq!(queue.push(Low, 77, at(0)), Err(77));
        assert!(queue.push(High, 0, at(0)).is_ok());
        assert!(queue.push(Normal, 0, at(0)).is_ok());
        assert_eq!(
            [High, Normal, Low].map(|priority| queue.waiting(priority)),
            [1, 1, LEVEL_LIMIT]
        );
        assert_eq!(queue.drain().count(), LEVEL_LIMIT + 2);
        assert!(queue.is_empty() && queue.pop(at(0)).is_none());
    }

    #[test]
    fn a_cancelled_job_leaves_the_queue() {
        let mut queue = Queue::new();
        let tickets = [Low, High, Low, Low].map(|priority| queue.push(priority, priority, at(0)).unwrap());
        assert_eq!(queue.cancel(tickets[2]), Some(Low));
        assert_eq!(queue.cancel(tickets[2]), None);
        assert_eq!(queue.waiting(Low), 2);
        assert_eq!(queue.pop(at(0)), Some((High, High)));
        assert_eq!(
            queue.cancel(tickets[1]),
            None,
            "a job that has begun is no longer in the queue"
        );
        assert_eq!(queue.cancel(tickets[3]), Some(Low));
        assert_eq!(queue.pop(at(0)), Some((Low, Low)));
        assert!(queue.is_empty());
        // Each level has a limit of its own.
        for _ in 0..LEVEL_LIMIT {
            queue.push(Normal, Normal, at(0)).unwrap();
        }
        let ticket = queue.push(High, High, at(0)).unwrap();
        assert!(queue.push(Normal, Normal, at(0)).is_err());
        queue.cancel(ticket);
        assert!(
            queue.push(Normal, Normal, at(0)).is_err(),
            "cancelling a job of another level makes no room in this one"
        );
    }

    #[test]
    fn a_low_job_is_served_despite_a_flood_of_high_jobs() {
        // One thread, one job per millisecond, and a new high job every millisecond: the thread is saturated.
        let mut queue = Queue::new();
        queue.push(Low, "low", at(0)).unwrap();
        let served = (0..10 * STEP).find(|&ms| {
            queue.push(High, "high", at(ms)).unwrap();
            queue.pop(at(ms)).is_some_and(|(_, job)| job == "low")
        });
        assert_eq!(served, Some(2 * STEP));
    }

    #[derive(Debug, Clone)]
    enum TestStep {
        Push(Priority),
        Pop,
        /// Cancels the job at this index among the waiting jobs, if there is one.
        Cancel(usize),
        /// Moves the time forward by this number of milliseconds.
        Wait(u64),
    }

    fn step() -> impl proptest::strategy::Strategy<Value = TestStep> {
        use proptest::prelude::*;
        prop_oneof![
            4 => prop_oneof![Just(High), Just(Normal), Just(Low)].prop_map(TestStep::Push),
            3 => Just(TestStep::Pop),
            1 => (0..8usize).prop_map(TestStep::Cancel),
            2 => (0..STEP).prop_map(TestStep::Wait),
        ]
    }

    proptest::proptest! {
        /// Compares the queue with a linear search through all waiting jobs, and checks the bound on starvation.
        #[test]
        fn agrees_with_a_linear_search(steps in proptest::collection::vec(step(), 0..80)) {
            let mut queue = Queue::new();
            // Priority, number, time of the push in milliseconds, ticket.
            let mut list: Vec<(Priority, usize, u64, Ticket)> = Vec::new();
            let mut now = 0;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    TestStep::Wait(ms) => now += ms,
                    TestStep::Push(priority) => {
                        let ticket = queue.push(priority, number, at(now)).unwrap();
                        list.push((priority, number, now, ticket));
                    }
                    TestStep::Cancel(index) if index < list.len() => {
                        let (_, number, _, ticket) = list.remove(index);
                        proptest::prop_assert_eq!(queue.cancel(ticket), Some(number));
                    }
                    TestStep::Cancel(_) => {}
                    TestStep::Pop => {
                        let rank = |&(priority, number, since, _): &(Priority, usize, u64, Ticket)| {
                            (level(priority).saturating_sub(usize::try_from((now - since) / STEP).unwrap()), number)
                        };
                        let next = (0..list.len()).min_by_key(|&index| rank(&list[index]));
                        let expected = next.map(|index| list.remove(index)).map(|(priority, number, ..)| (priority, number));
                        proptest::prop_assert_eq!(queue.pop(at(now)), expected);
                        if let Some((_, popped)) = expected {
                            let overtaken = list.iter().any(|&(_, number, since, _)| number < popped && now - since >= 2 * STEP);
                            proptest::prop_assert!(!overtaken);
                        }
                    }
                }
                for priority in PRIORITIES {
                    let expected = list.iter().filter(|(other, ..)| *other == priority).count();
                    proptest::prop_assert_eq!(queue.waiting(priority), expected);
                }
            }
        }
    }
}
