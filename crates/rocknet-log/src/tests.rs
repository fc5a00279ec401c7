//! Tests of the whole logger with real files, pipes and devices.

mod errors;
mod stuck;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use std::{fs, io};

use jiff::tz::TimeZone;
use rocknet_config::model::{AccessFormat, AccessLog, Level, Log, LogTarget, Rotate};
use rocknet_config::template::NoValues;

use super::shared::Shared;
use super::thread::LogThread;
use super::{AccessWriter, CHANNEL, Logger, Record, SinkId};

/// Far longer than any test takes: it ends a test that would hang.
const LIMIT: Duration = Duration::from_secs(20);

const NO_ROTATION: Rotate = Rotate {
    size: None,
    age: None,
    keep: 3,
};

struct TestLog {
    folder: tempfile::TempDir,
    logger: Logger,
}

impl TestLog {
    fn new(rotate: Rotate) -> TestLog {
        let folder = tempfile::tempdir().expect("a folder");
        let logger = Logger::start(&log(folder.path(), rotate)).expect("starts");
        TestLog { folder, logger }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn sink(&self, name: &str) -> SinkId {
        let target = LogTarget::File(self.path(name));
        self.logger
            .sink(&target, &AccessFormat::Common, "a")
            .expect("opens")
            .expect("is not off")
    }

    fn sync(&self) {
        assert!(self.logger.sync(LIMIT), "the log thread does not reply");
    }
}

fn log(folder: &Path, rotate: Rotate) -> Log {
    let errors = LogTarget::File(folder.join("error.log"));
    Log {
        level: Level::Info,
        errors,
        access: AccessLog::default(),
        rotate,
    }
}

/// Returns a record whose last column is `number + 1`, because 0 would be written as `-`.
fn record(number: u64) -> Record<'static> {
    Record {
        client: "10.0.0.1",
        user: None,
        method: b"GET",
        target: b"/",
        version: "HTTP/1.1",
        tls: None,
        status: 200,
        received_bytes: 0,
        sent_bytes: number + 1,
        referer: None,
        user_agent: None,
        host: b"h",
        upstream: None,
        upstream_us: None,
        cache_status: "",
        duration_us: None,
    }
}

/// Writes records numbered from `from` and flushes them.
fn write(writer: &mut AccessWriter, sink: SinkId, from: u64, count: u64) {
    for number in from..from + count {
        writer.record(sink, &record(number), &NoValues);
    }
    writer.flush();
}

/// Returns the numbers of the lines; an incomplete or foreign line fails the test.
fn numbers(text: &str) -> Vec<u64> {
    text.lines()
        .map(|line| {
            assert!(line.starts_with("10.0.0.1 - - ["), "{line:?}");
            let number = line.rsplit(' ').next().expect("a last column");
            number.parse::<u64>().expect("a number") - 1
        })
        .collect()
}

fn count_to(count: u64) -> Vec<u64> {
    (0..count).collect()
}

#[test]
fn lines_of_a_log_that_was_added_during_the_stop_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (messages, receiver) = sync_channel(CHANNEL);
    let shared = Arc::new(Shared::new(TimeZone::UTC, Level::Info));
    let mut thread = LogThread::new(receiver, Arc::clone(&shared), NO_ROTATION);
    let test_log = TestLog {
        folder,
        logger: Logger { shared, messages },
    };
    // The thread has processed the command to stop. The command that adds the log is still in the inbox.
    let sink = test_log.sink("a.log");
    write(&mut test_log.logger.writer(), sink, 0, 3);
    assert!(thread.finish(Instant::now() + LIMIT));
    assert_eq!(numbers(&test_log.read("a.log")), count_to(3));
    assert_eq!(test_log.logger.drops(), 0);
}

#[test]
fn lines_arrive_in_order() {
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    for part in 0..10 {
        write(&mut writer, sink, part * 1000, 1000);
    }
    test_log.sync();
    assert_eq!(numbers(&test_log.read("a.log")), count_to(10_000));
    assert_eq!((test_log.logger.drops(), test_log.read("error.log").as_str()), (0, ""));
}

#[test]
fn a_target_is_opened_once_and_off_has_no_sink() {
    let test_log = TestLog::new(NO_ROTATION);
    let target = LogTarget::File(test_log.path("a.log"));
    let sink = |format| {
        test_log
            .logger
            .sink(&target, format, "a")
            .expect("opens")
            .expect("is not off")
    };
    assert_eq!(sink(&AccessFormat::Json), sink(&AccessFormat::Json));
    let (text, json) = (sink(&AccessFormat::Common), sink(&AccessFormat::Json));
    assert_eq!(text.destination, json.destination);
    let mut writer = test_log.logger.writer();
    write(&mut writer, text, 0, 1);
    write(&mut writer, json, 1, 1);
    test_log.sync();
    let lines = test_log.read("a.log");
    assert!(lines.starts_with("10.0.0.1") && lines.lines().nth(1).is_some_and(|line| line.starts_with("{\"time\"")));
    assert_eq!(
        test_log
            .logger
            .sink(&LogTarget::Off, &AccessFormat::Json, "a")
            .expect("nothing to open"),
        None
    );
}

#[test]
fn a_log_that_cannot_be_opened_names_its_path() {
    let test_log = TestLog::new(NO_ROTATION);
    let error = test_log
        .logger
        .sink(
            &LogTarget::File(test_log.path("none/a.log")),
            &AccessFormat::Common,
            "a",
        )
        .expect_err("no folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        format!("{}: no such file or directory", test_log.path("none/a.log").display())
    );
}

#[test]
fn many_writers_neither_lose_nor_mix_lines() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 2_000;
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    std::thread::scope(|scope| {
        for worker in 0..WRITERS {
            let mut writer = test_log.logger.writer();
            scope.spawn(move || write(&mut writer, sink, worker * EACH, EACH));
        }
    });
    test_log.sync();
    let mut found = numbers(&test_log.read("a.log"));
    found.sort_unstable();
    assert_eq!(found, count_to(WRITERS * EACH));
    assert_eq!(test_log.logger.drops(), 0);
}

#[test]
fn a_dropped_writer_sends_its_lines() {
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    write(&mut writer, sink, 0, 1);
    writer.record(sink, &record(1), &NoValues);
    drop(writer);
    test_log.sync();
    assert_eq!(numbers(&test_log.read("a.log")), [0, 1]);
}

#[test]
fn rotation_by_size_keeps_every_line_of_the_youngest() {
    let test_log = TestLog::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 2,
    });
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    // Ten lines have about 700 bytes, so every flush after the first begins a new file.
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        test_log.sync();
    }
    for (name, expected) in [
        ("a.log", 30..40),
        ("a.log.1", 20..30),
        ("a.log.2", 10..20),
        ("a.log.3", 0..0),
    ] {
        assert_eq!(numbers(&test_log.read(name)), expected.collect::<Vec<u64>>(), "{name}");
    }
}

#[test]
fn a_failed_rotation_loses_nothing_and_is_reported() {
    let test_log = TestLog::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 1,
    });
    // A folder occupies the name of the rotated log.
    fs::create_dir_all(test_log.path("a.log.1/x")).expect("makes a folder");
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        test_log.sync();
    }
    assert_eq!(numbers(&test_log.read("a.log")), count_to(40));
    test_log.sync();
    assert_eq!(
        test_log
            .read("error.log")
            .matches("cannot be rotated and keeps growing")
            .count(),
        1,
        "{}",
        test_log.read("error.log")
    );
}

#[test]
fn reopen_follows_a_rename() {
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    write(&mut writer, sink, 0, 10);
    test_log.sync();
    fs::rename(test_log.path("a.log"), test_log.path("old.log")).expect("renames");
    write(&mut writer, sink, 10, 10);
    test_log.sync();
    test_log.logger.reopen();
    write(&mut writer, sink, 20, 10);
    test_log.sync();
    assert_eq!(numbers(&test_log.read("old.log")), count_to(20));
    assert_eq!(numbers(&test_log.read("a.log")), (20..30).collect::<Vec<u64>>());
}

#[test]
fn a_failed_reopen_keeps_the_old_file_and_is_reported() {
    let test_log = TestLog::new(NO_ROTATION);
    fs::create_dir(test_log.path("logs")).expect("makes a folder");
    let sink = test_log.sink("logs/a.log");
    let mut writer = test_log.logger.writer();
    fs::rename(test_log.path("logs"), test_log.path("moved")).expect("renames");
    test_log.logger.reopen();
    write(&mut writer, sink, 0, 5);
    test_log.sync();
    assert_eq!(numbers(&test_log.read("moved/a.log")), count_to(5));
    assert!(
        test_log.read("error.log").contains("cannot be reopened"),
        "{}",
        test_log.read("error.log")
    );
}

#[test]
fn stop_writes_all_lines() {
    let test_log = TestLog::new(NO_ROTATION);
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    write(&mut writer, sink, 0, 5_000);
    assert!(test_log.logger.flush_and_stop(LIMIT));
    assert_eq!(numbers(&test_log.read("a.log")), count_to(5_000));
    write(&mut writer, sink, 0, 7);
    assert_eq!(test_log.logger.drops(), 7, "late lines are counted");
    assert!(
        test_log.logger.flush_and_stop(LIMIT),
        "a second stop finds nothing to do"
    );
}
