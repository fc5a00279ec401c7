//! Timer wheel. Its deadlines are cheap to move, never expire early, and expire less than two ticks late.
//!
//! ```text
//! slot:   0    1    2  …  255       a deadline waits in the slot of the tick it was first set to;
//!        [ ]  [a]  [ ]   [b c]      at that tick it expires (wakes its task), or moves to a later slot if it was moved
//! ```
//!
//! Moving a deadline further away only stores its new tick. This has to be cheap, because deadlines move with every
//! request, and nearly always further away. The entry remains in its slot until the old tick, and then moves to its new
//! slot. A deadline that moves nearer is immediately entered into a second slot. The entry in the old slot then has no
//! effect, and is removed when that slot is processed.
//!
//! Ticks are counted in 32 bits, because every connection stores several. With ticks of 10 ms, the shortest that can be
//! configured, the counter wraps around after 497 days. Two ticks are therefore compared by their wrapping difference,
//! and no deadline is further away than half of the range.

mod timeout;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// Number of slots. With ticks of 250 ms one round is 64 s, so that a usual deadline is examined only once.
const SLOTS: usize = 256;

/// Maximum number of ticks from now to a deadline: half of the range, which is 248 days with ticks of 10 ms. Longer
/// times are shortened to this maximum.
const MAX_TICKS: u32 = i32::MAX as u32;

/// Moment of a wheel, counted in ticks. The order of two moments is defined if they are less than half of the range
/// apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick(u32);

impl Tick {
    /// Returns the moment `ticks` later (see [`Wheel::ticks`]). A number of ticks above half of the range is shortened
    /// to half of the range.
    #[inline]
    pub fn after(self, ticks: u32) -> Tick {
        Tick(self.0.wrapping_add(ticks.min(MAX_TICKS)))
    }

    /// Returns the number of ticks since an earlier moment.
    #[inline]
    pub fn since(self, earlier: Tick) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns whether this moment is later than `other`.
    #[inline]
    pub fn is_later(self, other: Tick) -> bool {
        (self.0.wrapping_sub(other.0) as i32) > 0
    }

    /// Returns the index of the slot that is processed at this tick.
    fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }
}

// Wrapping around must lead from the last slot to the first.
const _: () = assert!((1_u64 << 32).is_multiple_of(SLOTS as u64));

/// All deadlines of one worker.
pub struct Wheel {
    now: Cell<Tick>,
    /// Time between two ticks.
    tick: Duration,
    /// `tick` in nanoseconds.
    tick_ns: u64,
    /// Entries of all deadlines, and entries that a new deadline can reuse.
    entries: RefCell<Vec<TimerEntry>>,
    /// Indexes of entries without a deadline. A new deadline reuses such an entry together with its place in a slot.
    /// Otherwise a deadline that is created, set and dropped for each request would leave an index in a slot each time.
    /// The index would stay there until the tick to which the deadline was set, often for a minute.
    free: RefCell<Vec<u32>>,
    /// Indexes of entries by slot.
    slots: RefCell<Vec<Vec<u32>>>,
}

/// Entry of one deadline.
struct TimerEntry {
    /// Tick at which the deadline expires. Valid only if `state` is `Set`. Never before `slot_tick`.
    due: Tick,
    /// Tick at which the entry is processed next, in the slot of that tick. Valid only if `is_in_slot` is true. Never
    /// before the current tick.
    slot_tick: Tick,
    state: DeadlineState,
    /// True while the entry waits in the slot of `slot_tick`. A deadline that has moved nearer also leaves the entry in
    /// its old slot, which this flag does not count.
    is_in_slot: bool,
    /// Waker of the task that waits for the deadline.
    waker: Option<Waker>,
}

/// State of a deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeadlineState {
    /// Never set, or dropped.
    Unset,
    /// Waits for its tick.
    Set,
    /// Has expired.
    Past,
}

// Every idle connection has an entry, so entries are small.
const _: () = assert!(size_of::<TimerEntry>() <= 32);

/// Deadline of one task, initially not set. Dropping it removes it from the wheel.
pub struct Deadline {
    wheel: Rc<Wheel>,
    /// Index of the entry in the wheel.
    index: u32,
}

impl Wheel {
    /// Creates a wheel. `tick` is the time between two calls of [`Wheel::advance`]; less than 1 ms counts as 1 ms.
    /// `deadlines` is the number of deadlines for which memory is reserved.
    pub fn new(tick: Duration, deadlines: usize) -> Rc<Wheel> {
        let tick = tick.max(Duration::from_millis(1));
        Rc::new(Wheel {
            now: Cell::new(Tick(0)),
            tick,
            tick_ns: u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX),
            entries: RefCell::new(Vec::with_capacity(deadlines)),
            free: RefCell::default(),
            slots: RefCell::new((0..SLOTS).map(|_| Vec::new()).collect()),
        })
    }

    /// Returns the time between two ticks.
    pub fn tick_length(&self) -> Duration {
        self.tick
    }

    /// Returns the current tick.
    #[inline]
    pub fn now(&self) -> Tick {
        self.now.get()
    }

    /// Returns whether there are no deadlines.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().len() == self.free.borrow().len()
    }

    /// Returns the number of ticks from now that last at least `time`, so that a deadline never expires early. Times
    /// longer than half of the range are shortened to half of the range.
    pub fn ticks(&self, time: Duration) -> u32 {
        // Every request calls this, and a division of 128-bit numbers would call a slow library function.
        let Ok(nanos) = u64::try_from(time.as_nanos()) else {
            return MAX_TICKS;
        };
        let ticks = nanos.div_ceil(self.tick_ns);
        // One tick more, because the current tick may be nearly over.
        u32::try_from(ticks).map_or(MAX_TICKS, |ticks| ticks.saturating_add(1).min(MAX_TICKS))
    }

    /// Creates a deadline, which is not set.
    pub fn deadline(self: &Rc<Wheel>) -> Deadline {
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut entries = self.entries.borrow_mut();
            entries.push(TimerEntry {
                due: self.now.get(),
                slot_tick: self.now.get(),
                state: DeadlineState::Unset,
                is_in_slot: false,
                waker: None,
            });
            (entries.len() - 1) as u32
        });
        Deadline {
            index,
            wheel: Rc::clone(self),
        }
    }

    /// Advances by one tick and wakes the tasks whose deadlines have expired. Returns their number.
    pub fn advance(&self) -> usize {
        let now = self.now.get().after(1);
        self.now.set(now);
        let waiting = std::mem::take(&mut self.slots.borrow_mut()[now.slot()]);
        let mut woken = Vec::new();
        let mut later = Vec::new();
        {
            let mut entries = self.entries.borrow_mut();
            for &index in &waiting {
                let entry = &mut entries[index as usize];
                if entry.is_in_slot && entry.slot_tick.is_later(now) {
                    // The entry waits in this slot for a later round of the wheel, or it waits in another slot and has
                    // been left here by a move. In the second case, it is only removed from this slot.
                    if entry.slot_tick.slot() == now.slot() {
                        later.push((now.slot(), index));
                    }
                    continue;
                }
                entry.is_in_slot = false;
                if entry.state != DeadlineState::Set {
                    continue;
                }
                if entry.due.is_later(now) {
                    (entry.slot_tick, entry.is_in_slot) = (entry.due, true);
                    later.push((entry.due.slot(), index));
                } else {
                    entry.state = DeadlineState::Past;
                    woken.extend(entry.waker.take());
                }
            }
        }
        let mut slots = self.slots.borrow_mut();
        for (slot, index) in later {
            slots[slot].push(index);
        }
        drop(slots);
        let count = woken.len();
        woken.into_iter().for_each(Waker::wake);
        count
    }

    /// Wakes the tasks of all deadlines, expired or not, after a change that concerns all of them.
    pub fn wake_all(&self) {
        let woken: Vec<Waker> = self
            .entries
            .borrow_mut()
            .iter_mut()
            .filter_map(|entry| entry.waker.take())
            .collect();
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Deadline {
    /// Sets the deadline to `ticks` from now (see [`Wheel::ticks`]); 0 counts as 1.
    #[inline]
    pub fn set(&self, ticks: u32) {
        // The slot of the current tick has already been processed.
        let due = self.wheel.now.get().after(ticks.max(1));
        let mut entries = self.wheel.entries.borrow_mut();
        let entry = &mut entries[self.index as usize];
        entry.due = due;
        entry.state = DeadlineState::Set;
        if !entry.is_in_slot || entry.slot_tick.is_later(due) {
            (entry.slot_tick, entry.is_in_slot) = (due, true);
            self.wheel.slots.borrow_mut()[due.slot()].push(self.index);
        }
    }

    /// Returns the number of ticks until the deadline expires; 0 if it has expired or is not set.
    pub fn left(&self) -> u32 {
        let entry = &self.wheel.entries.borrow()[self.index as usize];
        match entry.state {
            DeadlineState::Set => entry.due.since(self.wheel.now.get()),
            DeadlineState::Unset | DeadlineState::Past => 0,
        }
    }

    /// Returns whether the deadline has expired. If not, `waker` is woken when it expires.
    #[inline]
    pub fn poll_past(&self, waker: &Waker) -> bool {
        let mut entries = self.wheel.entries.borrow_mut();
        let entry = &mut entries[self.index as usize];
        let past = entry.state == DeadlineState::Past;
        if !past && !entry.waker.as_ref().is_some_and(|current| current.will_wake(waker)) {
            entry.waker = Some(waker.clone());
        }
        past
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let waker = {
            let entry = &mut self.wheel.entries.borrow_mut()[self.index as usize];
            entry.state = DeadlineState::Unset;
            entry.waker.take()
        };
        self.wheel.free.borrow_mut().push(self.index);
        // Dropped outside of the borrows above, because dropping the last waker may drop the task, and with it further
        // deadlines.
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often its task is woken.
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Initial ticks. Most of them soon wrap around or cross half of the range.
    const STARTS: [u32; 5] = [0, 1 << 31, (1 << 31) - 7, u32::MAX, u32::MAX - 301];

    fn wheel() -> Rc<Wheel> {
        wheel_from(0)
    }

    /// A wheel with ticks of 250 ms whose current tick is `start`.
    fn wheel_from(start: u32) -> Rc<Wheel> {
        let wheel = Wheel::new(Duration::from_millis(250), 4);
        wheel.now.set(Tick(start));
        wheel
    }

    /// Returns the number of ticks after which a deadline expires, or `None` if it has not expired after `until` ticks.
    /// A move `(at, ticks)` sets the deadline at tick `at` to `ticks` from then.
    fn past_at(start: u32, moves: &[(u32, u32)], until: u32) -> Option<u32> {
        let wheel = wheel_from(start);
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let deadline = wheel.deadline();
        for tick in 0..until {
            for (_, ticks) in moves.iter().filter(|(at, _)| *at == tick) {
                deadline.set(*ticks);
            }
            assert!(!deadline.poll_past(&waker));
            wheel.advance();
            if count.0.load(Ordering::Relaxed) > 0 {
                assert!(deadline.poll_past(&waker));
                return Some(wheel.now().since(Tick(start)));
            }
        }
        None
    }

    #[test]
    fn expires_at_its_tick_however_often_it_moved() {
        type Row<'a> = (&'a [(u32, u32)], Option<u32>);
        // Moves as in `past_at`, and the number of ticks after which the deadline expires.
        let rows: &[Row<'_>] = &[
            (&[(0, 3)], Some(3)),
            (&[(0, 3), (2, 3)], Some(5)),
            (&[(0, 300)], Some(300)),
            (&[(0, 300), (1, 2)], Some(3)),
            (&[(0, 10), (1, 2), (2, 100)], Some(102)),
            (&[(0, 256)], Some(256)),
            (&[(0, 2000)], None),
            (&[], None),
            (&[(0, 300), (5, 3), (6, 600)], Some(606)),
            (&[(0, MAX_TICKS)], None),
            (&[(0, u32::MAX)], None),
            (&[(0, u32::MAX), (3, 4)], Some(7)),
            (&[(4, 0)], Some(5)),
        ];
        for start in STARTS {
            for (moves, expected) in rows {
                assert_eq!(past_at(start, moves, 1000), *expected, "{moves:?} from {start}");
            }
        }
    }

    #[test]
    fn ticks_are_ordered_across_wraparound() {
        for start in STARTS.map(Tick) {
            for ticks in [1, 2, 300, MAX_TICKS] {
                let later = start.after(ticks);
                assert_eq!(later.since(start), ticks);
                assert!(later.is_later(start) && !start.is_later(later), "{start:?} {ticks}");
            }
            assert!(!start.is_later(start));
            assert_eq!(start.after(u32::MAX), start.after(MAX_TICKS));
        }
    }

    #[test]
    fn a_dropped_deadline_wakes_no_task_even_if_its_entry_is_reused() {
        let wheel = wheel();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let first = wheel.deadline();
        first.set(2);
        first.poll_past(&Waker::from(Arc::clone(&count)));
        drop(first);
        let second = wheel.deadline();
        second.poll_past(&Waker::from(Arc::clone(&count)));
        assert_eq!((0..600).map(|_| wheel.advance()).sum::<usize>(), 0);
        assert!(!wheel.is_empty());
        drop(second);
        assert!(wheel.is_empty());
    }

    #[test]
    fn moving_does_not_fill_the_slots() {
        let wheel = wheel();
        let deadline = wheel.deadline();
        for _ in 0..10_000 {
            deadline.set(260);
            deadline.set(40);
        }
        assert!(wheel.slots.borrow().iter().map(Vec::len).sum::<usize>() <= 2);
    }

    #[test]
    fn deadlines_of_many_requests_do_not_fill_the_slots() {
        let wheel = wheel();
        for request in 0..10_000 {
            let (connect, answer) = (wheel.deadline(), wheel.deadline());
            // Usual timeouts of 3 s and 60 s, with ticks of 250 ms.
            connect.set(13);
            answer.set(241);
            if request % 100 == 0 {
                wheel.advance();
            }
        }
        let in_slots = wheel.slots.borrow().iter().map(Vec::len).sum::<usize>();
        // Each of the two entries may be in two slots.
        assert!(
            in_slots <= 4 && wheel.entries.borrow().len() == 2 && wheel.is_empty(),
            "{in_slots}"
        );
    }

    #[test]
    fn remaining_ticks_count_down() {
        for start in STARTS {
            let wheel = wheel_from(start);
            let deadline = wheel.deadline();
            assert_eq!(deadline.left(), 0);
            deadline.set(3);
            let left: Vec<u32> = (0..5)
                .map(|_| {
                    let left = deadline.left();
                    wheel.advance();
                    left
                })
                .collect();
            assert_eq!(left, [3, 2, 1, 0, 0], "from {start}");
        }
    }

    #[test]
    fn ticks_are_rounded_up() {
        let wheel = wheel();
        // The tick has 250 ms. One tick is added, because the current tick may be nearly over.
        assert_eq!(wheel.ticks(Duration::from_millis(250)), 2);
        assert_eq!(wheel.ticks(Duration::from_millis(251)), 3);
        assert_eq!(wheel.ticks(Duration::ZERO), 1);
        assert_eq!(wheel.ticks(Duration::from_nanos(u64::MAX)), MAX_TICKS);
        assert_eq!(wheel.ticks(Duration::MAX), MAX_TICKS);
    }
}
