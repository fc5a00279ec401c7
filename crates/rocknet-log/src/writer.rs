//! Access log writer of a worker: formats records into its own buffers, and passes full buffers to the log thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rocknet_config::template::Values;

use super::custom::CustomFormat;
use super::record::{self, Record};
use super::shared::{Shared, lock, unix_ms};
use super::sites::{self, SiteRun};
use super::stamp::Stamps;
use super::{LineFormat, Message, SinkId, dev};

/// Size in bytes at which a buffer is sent: about 250 lines for one wake-up and one write.
const HAND_OVER: usize = 32 * 1024;

/// Capacity of a new buffer in bytes: the sending size and one usual record, so that it does not grow.
const CAPACITY: usize = HAND_OVER + 4 * 1024;

/// Maximum capacity in bytes of a buffer that is reused. An unusually long record can make a buffer larger.
const RECYCLED_MAX: usize = 2 * CAPACITY;

/// Maximum number of empty buffers kept by one worker. The log thread uses fewer at a time unless its disk is slow, and
/// this number of buffers occupies little memory after a burst.
const SPARES: usize = 8;

/// Maximum number of logs with buffers in one worker. When this number is reached, all buffers are sent or, if the log
/// thread is overloaded, emptied. Otherwise thousands of sites with files of their own would use hundreds of megabytes,
/// at 36 KiB for each.
const ACTIVE_MAX: usize = 64;

/// Lines of one log, on their way to the log thread.
pub(super) struct Chunk {
    /// Number of the log in the table of the log thread.
    pub(super) destination: u32,
    pub(super) buffer: Buffer,
    pub(super) lines: u64,
    /// Lines of the same log that were lost before these.
    pub(super) lost: u64,
    /// Channel by which the empty buffer returns to the writer.
    pub(super) home: SyncSender<Buffer>,
}

/// Lines and their sites. Empty buffers keep their memory and are reused.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    /// Sites of the lines in `bytes`.
    pub(super) runs: Vec<SiteRun>,
}

impl Buffer {
    fn new() -> Buffer {
        Buffer {
            bytes: Vec::with_capacity(CAPACITY),
            runs: Vec::new(),
        }
    }

    /// Empties the buffer. Returns false if it has grown too large to be reused.
    pub(super) fn recycle(&mut self) -> bool {
        self.bytes.clear();
        self.runs.clear();
        self.bytes.capacity() <= RECYCLED_MAX
    }
}

/// Access log writer of one worker. It never waits for the log thread. The built-in formats allocate nothing once the
/// buffers exist.
pub struct AccessWriter {
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
    stamps: Stamps,
    /// Formats of operators, by number: a copy, renewed when a record needs a format that it lacks.
    formats: Vec<Arc<CustomFormat>>,
    /// One slot for each destination.
    slots: Vec<Slot>,
    /// Destinations with an active slot.
    active: Vec<u32>,
    /// Destinations with lost lines that are not reported yet.
    unreported: Vec<u32>,
    /// Empty buffers that the log thread has returned.
    spares: Receiver<Buffer>,
    /// Sender for `spares`. Each chunk carries a clone to the log thread.
    home: SyncSender<Buffer>,
}

/// Lines of one log that have not been sent yet.
#[derive(Default)]
struct Slot {
    buffer: Buffer,
    lines: u64,
    /// Number of lines lost since the channel last accepted a chunk.
    lost: u64,
    /// True if the slot is in the list of slots with lost lines.
    is_unreported: bool,
    /// True if the slot has a buffer and is in the list of active slots.
    is_active: bool,
}

impl AccessWriter {
    pub(super) fn new(shared: Arc<Shared>, messages: SyncSender<Message>) -> AccessWriter {
        let (home, spares) = sync_channel(SPARES);
        let stamps = Stamps::new(shared.zone.clone(), unix_ms());
        AccessWriter {
            shared,
            messages,
            stamps,
            formats: Vec::new(),
            slots: Vec::new(),
            active: Vec::with_capacity(ACTIVE_MAX),
            unreported: Vec::new(),
            spares,
            home,
        }
    }

    /// Appends a line for `record` to `sink`. `values`: values that the record does not have. They are queried only if
    /// [`SinkId::needs_values`] returns true.
    #[inline]
    pub fn record(&mut self, sink: SinkId, record: &Record<'_>, values: &dyn Values) {
        let index = sink.destination as usize;
        if !self.slots.get(index).is_some_and(|slot| slot.is_active) {
            self.activate(index);
        }
        let slot = &mut self.slots[index];
        let buffer = &mut slot.buffer;
        match sink.format {
            LineFormat::Plain(format) => record::render(format, &self.stamps, record, &mut buffer.bytes),
            LineFormat::Dev { colour } => {
                dev::render(colour, &self.stamps, record, &mut buffer.bytes);
                buffer.bytes.push(b'\n');
            }
            LineFormat::Custom(number) => {
                let number = number as usize;
                if number >= self.formats.len() {
                    self.formats = lock(&self.shared.formats).all().to_vec();
                }
                if let Some(format) = self.formats.get(number) {
                    format.render(&self.stamps, record, values, &mut buffer.bytes);
                }
                buffer.bytes.push(b'\n');
            }
        }
        sites::extend(&mut buffer.runs, sink.site, buffer.bytes.len());
        slot.lines += 1;
        if buffer.bytes.len() >= HAND_OVER {
            self.active.retain(|active| *active as usize != index);
            self.hand_over(index);
        }
    }

    /// Sends all buffers, and reports lost lines of logs without new lines. Called at each tick of the worker, and when
    /// the worker ends.
    pub fn flush(&mut self) {
        self.send_active();
        let mut is_refused = false;
        let mut unreported = std::mem::take(&mut self.unreported);
        unreported.retain(|index| {
            let index = *index as usize;
            if self.slots[index].lost > 0 && !is_refused {
                is_refused = !self.hand_over(index);
            }
            let slot = &mut self.slots[index];
            slot.is_unreported = slot.lost > 0;
            slot.is_unreported
        });
        self.unreported = unreported;
    }

    /// Sends all buffers.
    fn send_active(&mut self) {
        while let Some(index) = self.active.pop() {
            self.hand_over(index as usize);
        }
    }

    /// Sets the time of the following records, in milliseconds since 1970. Called once per tick.
    pub fn set_time(&mut self, unix_ms: u64) {
        self.stamps.set(unix_ms);
    }

    /// Gives a slot a buffer. If too many slots have one, sends all buffers first.
    #[cold]
    fn activate(&mut self, index: usize) {
        if index >= self.slots.len() {
            self.slots.resize_with(index + 1, Slot::default);
        }
        if self.active.len() >= ACTIVE_MAX {
            self.send_active();
        }
        // Only an active slot has a buffer, so that thousands of idle logs need none.
        let slot = &mut self.slots[index];
        slot.buffer = self.spares.try_recv().unwrap_or_else(|_| Buffer::new());
        slot.is_active = true;
        self.active.push(index as u32);
    }

    /// Sends the lines of a slot and deactivates it. If the log thread is overloaded or has ended, the lines are
    /// counted as lost, and the next chunk reports them. Returns true if the lines were sent. The caller removes the
    /// slot from the list of active slots.
    #[cold]
    fn hand_over(&mut self, index: usize) -> bool {
        let slot = &mut self.slots[index];
        let chunk = Chunk {
            destination: index as u32,
            buffer: std::mem::take(&mut slot.buffer),
            lines: std::mem::take(&mut slot.lines),
            lost: std::mem::take(&mut slot.lost),
            home: self.home.clone(),
        };
        let bytes = chunk.buffer.bytes.len() as u64;
        let refused = match self.shared.lines_budget.try_reserve(bytes) {
            false => Some(chunk),
            true => match self.messages.try_send(Message::Lines(chunk)) {
                Ok(()) => None,
                Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                    self.shared.lines_budget.release(bytes);
                    match message {
                        Message::Lines(chunk) => Some(chunk),
                        // Unreachable, because the refused message was `Lines`.
                        Message::Wake => None,
                    }
                }
            },
        };
        slot.is_active = false;
        let Some(mut chunk) = refused else { return true };
        self.shared.count_drops(chunk.lines);
        slot.lost = chunk.lost + chunk.lines;
        if !std::mem::replace(&mut slot.is_unreported, true) {
            self.unreported.push(index as u32);
        }
        if chunk.buffer.recycle() && chunk.buffer.bytes.capacity() > 0 {
            // A buffer for which there is no room is freed.
            let _ = self.home.try_send(chunk.buffer);
        }
        false
    }
}

impl Drop for AccessWriter {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use rocknet_config::model::Level;
    use rocknet_config::template::NoValues;

    use super::super::record::PlainFormat;
    use super::*;

    const RECORD: Record<'static> = Record {
        client: "10.0.0.1",
        user: None,
        method: b"GET",
        target: b"/",
        version: "HTTP/1.1",
        tls: None,
        status: 200,
        received_bytes: 0,
        sent_bytes: 1,
        referer: None,
        user_agent: None,
        host: b"h",
        upstream: None,
        upstream_us: None,
        cache_status: "",
        duration_us: None,
    };

    fn sink(destination: u32) -> SinkId {
        SinkId {
            destination,
            site: 0,
            format: LineFormat::Plain(PlainFormat::Combined),
        }
    }

    /// Returns a writer whose log thread is simulated by the test, with a channel of `room` messages.
    fn writer(room: usize) -> (AccessWriter, Receiver<Message>, Arc<Shared>) {
        let shared = Arc::new(Shared::new(TimeZone::UTC, Level::Info));
        let (messages, receiver) = sync_channel(room);
        (AccessWriter::new(Arc::clone(&shared), messages), receiver, shared)
    }

    fn chunk(receiver: &Receiver<Message>) -> Chunk {
        match receiver.try_recv() {
            Ok(Message::Lines(chunk)) => chunk,
            _ => panic!("no lines in the channel"),
        }
    }

    #[test]
    fn a_full_buffer_is_sent_and_reused() {
        let (mut writer, receiver, _) = writer(2);
        let mut first = None;
        for _ in 0..3 {
            let mut records = 0;
            let chunk = loop {
                writer.record(sink(0), &RECORD, &NoValues);
                records += 1;
                if let Ok(Message::Lines(chunk)) = receiver.try_recv() {
                    break chunk;
                }
            };
            assert_eq!(chunk.lines, records);
            let mut buffer = chunk.buffer;
            assert!((HAND_OVER..CAPACITY).contains(&buffer.bytes.len()));
            assert_eq!(buffer.bytes.capacity(), CAPACITY, "the buffer has not grown");
            let all = SiteRun {
                site: 0,
                end: buffer.bytes.len(),
            };
            assert_eq!(buffer.runs, [all]);
            let memory = buffer.bytes.as_ptr();
            assert_eq!(*first.get_or_insert(memory), memory, "the same buffer each time");
            assert!(buffer.recycle());
            chunk.home.try_send(buffer).expect("room for a spare");
        }
        assert!(
            writer.active.is_empty() && writer.slots[0].buffer.bytes.capacity() == 0,
            "an idle log has no buffer"
        );
    }

    #[test]
    fn lines_rejected_by_a_full_channel_are_reported_with_the_next() {
        let (mut writer, receiver, shared) = writer(1);
        for _ in 0..3 {
            writer.record(sink(0), &RECORD, &NoValues);
            writer.record(sink(0), &RECORD, &NoValues);
            writer.flush();
        }
        assert_eq!(shared.drops(), 4);
        let chunk_before = chunk(&receiver);
        assert_eq!((chunk_before.lines, chunk_before.lost), (2, 0));
        writer.flush();
        let report = chunk(&receiver);
        assert_eq!((report.lines, report.lost, report.buffer.bytes.len()), (0, 4, 0));
        writer.flush();
        assert!(receiver.try_recv().is_err(), "nothing is reported twice");
        drop(receiver);
        writer.record(sink(0), &RECORD, &NoValues);
        writer.flush();
        assert_eq!(shared.drops(), 5);
    }

    #[test]
    fn many_logs_at_once_are_flushed_early() {
        let (mut writer, receiver, _) = writer(ACTIVE_MAX);
        for destination in 0..ACTIVE_MAX as u32 {
            writer.record(sink(destination), &RECORD, &NoValues);
        }
        assert!(receiver.try_recv().is_err());
        writer.record(sink(ACTIVE_MAX as u32), &RECORD, &NoValues);
        assert_eq!(receiver.try_iter().count(), ACTIVE_MAX);
        assert_eq!(writer.active.len(), 1);
    }

    #[test]
    fn the_number_of_buffers_is_bounded_while_the_channel_is_full() {
        const LOGS: u32 = 5 * ACTIVE_MAX as u32;
        let (mut writer, receiver, shared) = writer(1);
        for destination in 0..LOGS {
            writer.record(sink(destination), &RECORD, &NoValues);
            let buffers = writer.slots.iter().filter(|slot| slot.buffer.bytes.capacity() > 0);
            assert!(buffers.count() <= ACTIVE_MAX && writer.active.len() <= ACTIVE_MAX);
        }
        writer.flush();
        assert_eq!(shared.drops(), u64::from(LOGS) - 1);
        // Each lost line is reported once, although its log has no new lines.
        let mut reported = 0;
        while let Ok(Message::Lines(chunk)) = receiver.try_recv() {
            reported += chunk.lost;
            writer.flush();
        }
        assert_eq!(reported, u64::from(LOGS) - 1);
        assert!(writer.active.is_empty() && writer.unreported.is_empty());
    }

    #[test]
    fn the_tick_sets_the_time() {
        let (mut writer, receiver, _) = writer(1);
        writer.set_time(971_211_336_000);
        writer.record(sink(0), &RECORD, &NoValues);
        writer.flush();
        let line = String::from_utf8(chunk(&receiver).buffer.bytes).expect("ASCII");
        assert!(line.contains("[10/Oct/2000:20:55:36 +0000]"), "{line}");
    }

    #[test]
    fn lines_in_the_channel_are_bounded_in_bytes() {
        const LONG: usize = 8 * 1024;
        let (mut writer, receiver, shared) = writer(10_000);
        let long = vec![b'\x01'; LONG];
        let record = Record {
            target: &long,
            referer: Some(&long),
            user_agent: Some(&long),
            ..RECORD
        };
        let mut records = 0u64;
        while shared.drops() == 0 {
            writer.record(sink(0), &record, &NoValues);
            records += 1;
            assert!(records < 10_000, "the channel contains more bytes than its limit");
        }
        let waiting: u64 = std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|message| match message {
                Message::Lines(chunk) => {
                    shared.lines_budget.release(chunk.buffer.bytes.len() as u64);
                    chunk.buffer.bytes.len() as u64
                }
                Message::Wake => 0,
            })
            .sum();
        // The limit is 32 MiB, and the channel is nearly full when the first chunk is refused.
        assert!((24 << 20..=32 << 20).contains(&waiting), "{waiting} bytes");
        // The channel has room again, and the next buffer reports the lost lines.
        writer.record(sink(0), &record, &NoValues);
        writer.flush();
        assert!(chunk(&receiver).lost > 0);
    }
}
