//! Flow-control windows: the number of bytes each side may still send on a stream or the connection (RFC 9113 §5.2,
//! §6.9).

/// Initial window in bytes of a connection, and of a stream unless SETTINGS changes it (RFC 9113 §6.9.2).
pub(crate) const INITIAL_WINDOW: u32 = 65_535;

/// Largest window in bytes (RFC 9113 §6.9.1).
pub(crate) const WINDOW_MAX: u32 = (1 << 31) - 1;

/// Error for a window that would exceed [`WINDOW_MAX`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowOverflow;

/// Error for received data that exceeds the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowExceeded;

/// Payload in bytes that is worth a DATA frame, regardless of the size of the window. Below it, the frame header, the
/// TLS record and the system call cost more than the data is worth.
pub(crate) const USEFUL_FRAME: u64 = 512;

/// Minimum payload in bytes of a DATA frame that counts for the flood budget although a window has cut it short. The
/// budget limits the number of WINDOW_UPDATE frames from a client, and each DATA frame that counts permits some more.
/// Without this minimum, a client could grant a few bytes at a time and make the server send a frame for each update.
pub(crate) const CREDITED_FRAME: u64 = 32;

/// Lower bound in bytes of a useful payload, however small the windows are. A stream that has more to send, but whose
/// window stays below this size, is reset after the configured time `limits.send_stall`.
const MIN_USEFUL_FRAME: u64 = 16;

/// Window for sending: the number of bytes that the peer still permits. It can become negative when the peer reduces
/// its initial window (RFC 9113 §6.9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SendWindow {
    size: i64,
    /// Largest size the window has had, less all later reductions of the initial window.
    largest: i64,
    /// Number of bytes sent since the window was last used up, at most [`USEFUL_FRAME`].
    sent: u64,
}

impl SendWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            size: size as i64,
            largest: size as i64,
            sent: 0,
        }
    }

    /// Returns the number of bytes that may be sent; 0 while the window is negative.
    #[inline]
    pub(crate) fn available(self) -> u64 {
        self.size.max(0) as u64
    }

    /// Returns true if the window admits a useful frame out of `ready` bytes: all of them, 512 bytes, or half of the
    /// largest window but at least 16 bytes. TCP avoids the silly window syndrome in the same way, also with half of
    /// the window (RFC 1122 §4.2.3.4). Waiting for more could stall the stream, because a peer with a small window may
    /// grant more only once all of the window is used up.
    ///
    /// For the same reason, a smaller frame is admitted if it would be useful together with the bytes sent since the
    /// window was last used up. Such a frame occurs, for instance, if few bytes are left in the window of a stream,
    /// because the window of the connection has cut the previous frame short. Small frames remain rare, because each
    /// of them uses up a window. `sent` is then 0, so the next frame needs a window of useful size again.
    #[inline]
    pub(crate) fn admits(self, ready: u64) -> bool {
        let available = self.available();
        available > 0 && (available >= ready.min(USEFUL_FRAME) || available + self.sent >= self.min_useful())
    }

    /// Returns the minimum payload in bytes of a useful frame in this window.
    fn min_useful(self) -> u64 {
        (self.largest.max(0) as u64 / 2).clamp(MIN_USEFUL_FRAME, USEFUL_FRAME)
    }

    /// Adds the increment of a WINDOW_UPDATE.
    #[inline]
    pub(crate) fn grow(&mut self, by: u32) -> Result<(), WindowOverflow> {
        self.change(i64::from(by))
    }

    /// Applies a change of the initial window (RFC 9113 §6.9.2).
    pub(crate) fn change(&mut self, by: i64) -> Result<(), WindowOverflow> {
        let size = self.size.saturating_add(by);
        if size > i64::from(WINDOW_MAX) {
            return Err(WindowOverflow);
        }
        self.size = size;
        // After a reduction of the initial window, the peer grants smaller windows.
        self.largest = self.largest.saturating_add(by.min(0)).max(size);
        Ok(())
    }

    /// Subtracts sent data, at most the available bytes.
    #[inline]
    pub(crate) fn consume(&mut self, size: u64) {
        debug_assert!(size <= self.available());
        self.size -= size.min(self.available()) as i64;
        self.sent = match self.size {
            ..=0 => 0,
            _ => self.sent.saturating_add(size).min(USEFUL_FRAME),
        };
    }
}

/// Window for receiving: the number of bytes that the peer may still send, and the consumed bytes that have not been
/// granted again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReceiveWindow {
    /// Bytes the peer may still send.
    available: u32,
    /// Bytes consumed by the reader and not granted again.
    released: u32,
    /// Announced size in bytes. Grants refill the window up to this size.
    size: u32,
}

impl ReceiveWindow {
    pub(crate) const fn new(size: u32) -> Self {
        Self {
            available: size,
            released: 0,
            size,
        }
    }

    #[inline]
    pub(crate) fn available(self) -> u32 {
        self.available
    }

    /// Subtracts received data.
    #[inline]
    pub(crate) fn consume(&mut self, size: u32) -> Result<(), WindowExceeded> {
        self.available = self.available.checked_sub(size).ok_or(WindowExceeded)?;
        Ok(())
    }

    /// Adds `size` consumed bytes; bytes that never arrived do not count. Returns the increment for a WINDOW_UPDATE
    /// once at least half a window is consumed, and `None` before, so that such frames are rare and the peer does not
    /// stall.
    #[inline]
    pub(crate) fn release(&mut self, size: u32) -> Option<u32> {
        self.released = self
            .released
            .saturating_add(size)
            .min(self.size - self.available.min(self.size));
        if self.released < self.size.div_ceil(2) {
            return None;
        }
        self.available += self.released;
        Some(std::mem::take(&mut self.released))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn send_window_is_bounded_on_both_sides() {
        let mut window = SendWindow::new(10);
        window.consume(10);
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(5), Ok(()));
        assert_eq!(window.change(-20), Ok(()));
        assert_eq!((window.available(), window.size), (0, -15));
        assert_eq!(window.grow(15), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(WINDOW_MAX), Ok(()));
        assert_eq!(window.grow(1), Err(WindowOverflow));
        assert_eq!(window.available(), u64::from(WINDOW_MAX));
    }

    #[test]
    fn windows_admit_useful_frames() {
        // Initial size of the window, bytes used, bytes granted, bytes ready, and true if the window admits a frame.
        for (size, used, granted, ready, expected) in [
            (65_535, 65_535, 0, 1, false),
            (65_535, 65_535, 1, 1, true),
            (65_535, 65_535, 1, 2, false),
            (65_535, 65_535, 511, 5_000, false),
            (65_535, 65_535, 511, 511, true),
            (65_535, 65_535, 512, 5_000, true),
            // A client with small windows grants at most the size of its buffer.
            (300, 300, 149, 5_000, false),
            (300, 300, 150, 5_000, true),
            (100, 100, 49, 5_000, false),
            (100, 100, 50, 5_000, true),
            (1, 1, 15, 5_000, false),
            (1, 1, 16, 5_000, true),
        ] {
            let mut window = SendWindow::new(size);
            window.consume(used);
            window.grow(granted).unwrap();
            assert_eq!(window.admits(ready), expected, "{size} {used} {granted} {ready}");
        }
        let mut window = SendWindow::new(65_535);
        window.consume(65_535);
        window.change(512 - 65_535).unwrap();
        window.grow(65_023 + 255).unwrap();
        assert!(!window.admits(5_000));
        window.grow(1).unwrap();
        assert!(window.admits(5_000), "half of the new initial window");
    }

    #[test]
    fn windows_admit_the_last_bytes_of_a_useful_size() {
        let mut window = SendWindow::new(600);
        for sent in [250, 349] {
            window.consume(sent);
            assert!(window.admits(5_000), "{sent}");
        }
        // The last byte uses the window up, after which small grants do not suffice.
        window.consume(1);
        for (granted, expected) in [(1, false), (298, false), (1, true)] {
            window.grow(granted).unwrap();
            assert_eq!(window.admits(5_000), expected, "{granted}");
        }
    }

    #[test]
    fn updates_grant_half_a_window() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.consume(60), Ok(()));
        assert_eq!(window.consume(41), Err(WindowExceeded));
        assert_eq!(window.available(), 40);
        assert_eq!(window.release(49), None);
        assert_eq!(window.release(1), Some(50));
        assert_eq!(window.available(), 90);
        // Bytes that never arrived cannot be released.
        assert_eq!(window.release(1000), None);
        assert_eq!(window.consume(90), Ok(()));
        assert_eq!(window.release(1000), Some(100));
        assert_eq!(window.available(), 100);
    }
}
