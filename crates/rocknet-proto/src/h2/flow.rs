//! Windows: how much data each side may still send, for a stream and for the connection (RFC 9113 §5.2, §6.9).

/// The window of a connection, and of a stream until SETTINGS says otherwise (RFC 9113 §6.9.2).
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// The largest window (RFC 9113 §6.9.1).
pub(crate) const WINDOW_MAX: u32 = (1 << 31) - 1;

/// A window would be above the largest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

/// More data came than the window had room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exceeded;

/// What the peer lets us send; below zero after it made its initial window smaller (RFC 9113 §6.9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self(size as i64)
    }

    #[inline]
    pub(crate) fn available(self) -> u64 {
        self.0.max(0) as u64
    }

    /// The peer grants more.
    #[inline]
    pub(crate) fn grow(&mut self, by: u32) -> Result<(), TooLarge> {
        self.change(i64::from(by))
    }

    /// The peer changed the initial window by so much.
    pub(crate) fn change(&mut self, by: i64) -> Result<(), TooLarge> {
        let size = self.0.saturating_add(by);
        if size > i64::from(WINDOW_MAX) {
            return Err(TooLarge);
        }
        self.0 = size;
        Ok(())
    }

    /// Data is sent; never more than is available.
    #[inline]
    pub(crate) fn take(&mut self, size: u64) {
        debug_assert!(size <= self.available());
        self.0 -= size.min(self.available()) as i64;
    }
}

/// What we let the peer send, and what we owe it of what has been used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReceiveWindow {
    left: u32,
    /// Taken by its reader and not yet granted again.
    owed: u32,
    size: u32,
}

impl ReceiveWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            left: size,
            owed: 0,
            size,
        }
    }

    #[inline]
    pub(crate) fn left(self) -> u32 {
        self.left
    }

    /// Data came in.
    #[inline]
    pub(crate) fn take(&mut self, size: u32) -> Result<(), Exceeded> {
        self.left = self.left.checked_sub(size).ok_or(Exceeded)?;
        Ok(())
    }

    /// So much was used up. `Some` is the grant that is due: half a window at a time, so that WINDOW_UPDATE stays rare and
    /// the peer never stands still.
    #[inline]
    pub(crate) fn give_back(&mut self, size: u32) -> Option<u32> {
        self.owed = self.owed.saturating_add(size).min(self.size - self.left.min(self.size));
        if self.owed < self.size.div_ceil(2) {
            return None;
        }
        self.left += self.owed;
        Some(std::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_bounded_from_both_sides() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(5), Ok(()));
        assert_eq!(window.change(-20), Ok(()));
        assert_eq!((window.available(), window), (0, SendWindow(-15)));
        assert_eq!(window.grow(15), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(WINDOW_MAX), Ok(()));
        assert_eq!(window.grow(1), Err(TooLarge));
        assert_eq!(window.available(), u64::from(WINDOW_MAX));
    }

    #[test]
    fn grants_come_in_halves() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(60), Ok(()));
        assert_eq!(window.take(41), Err(Exceeded));
        assert_eq!(window.left(), 40);
        assert_eq!(window.give_back(49), None);
        assert_eq!(window.give_back(1), Some(50));
        assert_eq!(window.left(), 90);
        // Nobody gives back what did not come.
        assert_eq!(window.give_back(1000), None);
        assert_eq!(window.take(90), Ok(()));
        assert_eq!(window.give_back(1000), Some(100));
        assert_eq!(window.left(), 100);
    }
}
