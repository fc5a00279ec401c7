//! Deadlines, coarse and cheap: moving one is a store, and nothing happens until a tick finds it past.
//!
//! ```text
//! slot:   0    1    2  …  63        a deadline waits in the slot of the tick it was first set to;
//!        [ ]  [a]  [ ]   [b c]      when that tick comes it is past (woken), or was moved (put into a later slot)
//! ```
//! Deadlines move on with every request, nearly always further away, so a moved one stays in its slot until its old
//! tick comes. Only one that comes nearer is put into a second slot at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use slab::Slab;

/// Slots in the wheel: with ticks of 250 ms one turn is 64 s, so that the usual deadlines need one look each.
const SLOTS: usize = 256;
const NEVER: u32 = u32::MAX;

/// All deadlines of one worker.
pub struct Wheel {
    now: Cell<u32>,
    tick: Duration,
    entries: RefCell<Slab<Entry>>,
    slots: RefCell<Vec<Vec<(u32, u32)>>>,
    /// Distinguishes an entry from a former one under the same key.
    serial: Cell<u32>,
}

struct Entry {
    /// The tick at which it is past, or `NEVER`.
    due: u32,
    /// The earliest tick whose slot holds it, or `NEVER`.
    slotted: u32,
    serial: u32,
    past: bool,
    waker: Option<Waker>,
}

/// One deadline, not set at first. Dropping it forgets it.
pub struct Deadline {
    wheel: Rc<Wheel>,
    key: usize,
}

impl Wheel {
    /// `connections`: room reserved at once.
    pub fn new(tick: Duration, connections: usize) -> Rc<Wheel> {
        Rc::new(Wheel {
            now: Cell::new(0),
            tick: tick.max(Duration::from_millis(1)),
            entries: RefCell::new(Slab::with_capacity(connections)),
            slots: RefCell::new((0..SLOTS).map(|_| Vec::new()).collect()),
            serial: Cell::new(0),
        })
    }

    pub fn tick_length(&self) -> Duration {
        self.tick
    }

    /// Ticks since the wheel was made.
    #[inline]
    pub fn now(&self) -> u32 {
        self.now.get()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }

    /// Whole ticks that are surely not shorter than `time`, counted from now.
    pub fn ticks(&self, time: Duration) -> u32 {
        let ticks = time.as_nanos().div_ceil(self.tick.as_nanos());
        u32::try_from(ticks).unwrap_or(NEVER / 2).min(NEVER / 2) + 1
    }

    pub fn deadline(self: &Rc<Wheel>) -> Deadline {
        let serial = self.serial.get().wrapping_add(1);
        self.serial.set(serial);
        let entry = Entry {
            due: NEVER,
            slotted: NEVER,
            serial,
            past: false,
            waker: None,
        };
        Deadline {
            key: self.entries.borrow_mut().insert(entry),
            wheel: Rc::clone(self),
        }
    }

    /// Goes one tick on and wakes the owners of deadlines now past. Returns how many.
    pub fn advance(&self) -> usize {
        let now = self.now.get() + 1;
        self.now.set(now);
        let slot = now as usize % SLOTS;
        let waiting = std::mem::take(&mut self.slots.borrow_mut()[slot]);
        let mut woken = Vec::new();
        let mut later = Vec::new();
        {
            let mut entries = self.entries.borrow_mut();
            for &(key, serial) in &waiting {
                let Some(entry) = entries.get_mut(key as usize).filter(|entry| entry.serial == serial) else {
                    continue;
                };
                if entry.slotted > now && entry.slotted != NEVER {
                    // Put here for a later turn of the wheel, or a second time into a slot still to come.
                    if entry.slotted as usize % SLOTS == slot {
                        later.push((slot, (key, serial)));
                    }
                    continue;
                }
                entry.slotted = NEVER;
                if entry.due == NEVER {
                    continue;
                }
                if entry.due <= now {
                    entry.past = true;
                    entry.due = NEVER;
                    woken.extend(entry.waker.take());
                } else {
                    entry.slotted = entry.due;
                    later.push((entry.due as usize % SLOTS, (key, serial)));
                }
            }
        }
        let mut slots = self.slots.borrow_mut();
        for (slot, item) in later {
            slots[slot].push(item);
        }
        drop(slots);
        let count = woken.len();
        woken.into_iter().for_each(Waker::wake);
        count
    }

    /// Wakes the owners of all deadlines, past or not: something has changed for everybody.
    pub fn wake_all(&self) {
        let woken: Vec<Waker> = self
            .entries
            .borrow_mut()
            .iter_mut()
            .filter_map(|(_, entry)| entry.waker.take())
            .collect();
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Deadline {
    /// Sets it to `ticks` from now (see [`Wheel::ticks`]).
    #[inline]
    pub fn set(&self, ticks: u32) {
        let due = self.wheel.now.get() + ticks;
        let mut entries = self.wheel.entries.borrow_mut();
        let entry = &mut entries[self.key];
        entry.due = due;
        entry.past = false;
        if due < entry.slotted {
            entry.slotted = due;
            let item = (self.key as u32, entry.serial);
            self.wheel.slots.borrow_mut()[due as usize % SLOTS].push(item);
        }
    }

    /// Ticks until it is past; 0 if it is, or is not set.
    pub fn left(&self) -> u32 {
        match self.wheel.entries.borrow()[self.key].due {
            NEVER => 0,
            due => due.saturating_sub(self.wheel.now.get()),
        }
    }

    /// Whether it is past; if not, `waker` is woken when it is.
    #[inline]
    pub fn poll_past(&self, waker: &Waker) -> bool {
        let mut entries = self.wheel.entries.borrow_mut();
        let entry = &mut entries[self.key];
        if !entry.past && !entry.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            entry.waker = Some(waker.clone());
        }
        entry.past
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.wheel.entries.borrow_mut().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wheel() -> Rc<Wheel> {
        Wheel::new(Duration::from_millis(250), 4)
    }

    /// The tick at which a deadline becomes past after these (at tick, set to) moves.
    fn past_at(moves: &[(u32, u32)], until: u32) -> Option<u32> {
        let wheel = wheel();
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
                return Some(wheel.now());
            }
        }
        None
    }

    #[test]
    fn comes_at_its_tick_however_often_it_moved() {
        type Row<'a> = (&'a [(u32, u32)], Option<u32>);
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
        ];
        for (moves, expected) in rows {
            assert_eq!(past_at(moves, 1000), *expected, "{moves:?}");
        }
    }

    #[test]
    fn a_dropped_deadline_wakes_nobody_even_if_its_place_is_taken_again() {
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
    fn what_is_left_grows_less_with_each_tick() {
        let wheel = wheel();
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
        assert_eq!(left, [3, 2, 1, 0, 0]);
    }

    #[test]
    fn ticks_are_never_too_few() {
        let wheel = wheel();
        assert_eq!(wheel.ticks(Duration::from_millis(250)), 2);
        assert_eq!(wheel.ticks(Duration::from_millis(251)), 3);
        assert!(wheel.ticks(Duration::MAX) >= NEVER / 2);
    }
}
