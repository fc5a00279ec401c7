//! Tests of the whole logger with real files, pipes and devices.

mod errors;
mod stuck;

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rocknet_config::model::{AccessFormat, AccessLog, Level, Log, LogTarget, Rotate};

use super::{AccessWriter, Logger, Record, SinkId};

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
            .sink(&target, AccessFormat::Common)
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

/// Returns a record whose last column is `number + 1`.
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
        duration_us: None,
    }
}

/// Writes records numbered from `from` and flushes them.
fn write(writer: &mut AccessWriter, sink: SinkId, from: u64, count: u64) {
    for number in from..from + count {
        writer.record(sink, &record(number));
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
fn lines_arrive_in_order() {
    let bench = TestLog::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    for part in 0..10 {
        write(&mut writer, sink, part * 1000, 1000);
    }
    bench.sync();
    assert_eq!(numbers(&bench.read("a.log")), count_to(10_000));
    assert_eq!((bench.logger.drops(), bench.read("error.log").as_str()), (0, ""));
}

#[test]
fn a_target_is_opened_once_and_off_has_no_sink() {
    let bench = TestLog::new(NO_ROTATION);
    let target = LogTarget::File(bench.path("a.log"));
    let sink = |format| bench.logger.sink(&target, format).expect("opens").expect("is not off");
    assert_eq!(sink(AccessFormat::Json), sink(AccessFormat::Json));
    let (text, json) = (sink(AccessFormat::Common), sink(AccessFormat::Json));
    assert_eq!(text.destination, json.destination);
    let mut writer = bench.logger.writer();
    write(&mut writer, text, 0, 1);
    write(&mut writer, json, 1, 1);
    bench.sync();
    let lines = bench.read("a.log");
    assert!(lines.starts_with("10.0.0.1") && lines.lines().nth(1).is_some_and(|line| line.starts_with("{\"time\"")));
    assert_eq!(
        bench
            .logger
            .sink(&LogTarget::Off, AccessFormat::Json)
            .expect("nothing to open"),
        None
    );
}

#[test]
fn a_log_that_cannot_be_opened_names_its_path() {
    let bench = TestLog::new(NO_ROTATION);
    let error = bench
        .logger
        .sink(&LogTarget::File(bench.path("none/a.log")), AccessFormat::Common)
        .expect_err("no folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert_eq!(
        error.to_string(),
        format!("{}: no such file or directory", bench.path("none/a.log").display())
    );
}

#[test]
fn many_writers_neither_lose_nor_mix_lines() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 2_000;
    let bench = TestLog::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    std::thread::scope(|scope| {
        for worker in 0..WRITERS {
            let mut writer = bench.logger.writer();
            scope.spawn(move || write(&mut writer, sink, worker * EACH, EACH));
        }
    });
    bench.sync();
    let mut found = numbers(&bench.read("a.log"));
    found.sort_unstable();
    assert_eq!(found, count_to(WRITERS * EACH));
    assert_eq!(bench.logger.drops(), 0);
}

#[test]
fn a_dropped_writer_sends_its_lines() {
    let bench = TestLog::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 1);
    writer.record(sink, &record(1));
    drop(writer);
    bench.sync();
    assert_eq!(numbers(&bench.read("a.log")), [0, 1]);
}

#[test]
fn rotation_by_size_keeps_every_line_of_the_youngest() {
    let bench = TestLog::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 2,
    });
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    // Ten lines have about 700 bytes, so every flush after the first begins a new file.
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        bench.sync();
    }
    for (name, expected) in [
        ("a.log", 30..40),
        ("a.log.1", 20..30),
        ("a.log.2", 10..20),
        ("a.log.3", 0..0),
    ] {
        assert_eq!(numbers(&bench.read(name)), expected.collect::<Vec<u64>>(), "{name}");
    }
}

#[test]
fn a_failed_rotation_loses_nothing_and_is_reported() {
    let bench = TestLog::new(Rotate {
        size: Some(1000),
        age: None,
        keep: 1,
    });
    // A folder occupies the name of the rotated log.
    fs::create_dir_all(bench.path("a.log.1/x")).expect("makes a folder");
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    for part in 0..4 {
        write(&mut writer, sink, part * 10, 10);
        bench.sync();
    }
    assert_eq!(numbers(&bench.read("a.log")), count_to(40));
    bench.sync();
    assert_eq!(
        bench
            .read("error.log")
            .matches("cannot be rotated and keeps growing")
            .count(),
        1,
        "{}",
        bench.read("error.log")
    );
}

#[test]
fn reopen_follows_a_rename() {
    let bench = TestLog::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 10);
    bench.sync();
    fs::rename(bench.path("a.log"), bench.path("old.log")).expect("renames");
    write(&mut writer, sink, 10, 10);
    bench.sync();
    bench.logger.reopen();
    write(&mut writer, sink, 20, 10);
    bench.sync();
    assert_eq!(numbers(&bench.read("old.log")), count_to(20));
    assert_eq!(numbers(&bench.read("a.log")), (20..30).collect::<Vec<u64>>());
}

#[test]
fn a_failed_reopen_keeps_the_old_file_and_is_reported() {
    let bench = TestLog::new(NO_ROTATION);
    fs::create_dir(bench.path("logs")).expect("makes a folder");
    let sink = bench.sink("logs/a.log");
    let mut writer = bench.logger.writer();
    fs::rename(bench.path("logs"), bench.path("moved")).expect("renames");
    bench.logger.reopen();
    write(&mut writer, sink, 0, 5);
    bench.sync();
    assert_eq!(numbers(&bench.read("moved/a.log")), count_to(5));
    assert!(
        bench.read("error.log").contains("cannot be reopened"),
        "{}",
        bench.read("error.log")
    );
}

#[test]
fn stop_writes_all_lines() {
    let bench = TestLog::new(NO_ROTATION);
    let sink = bench.sink("a.log");
    let mut writer = bench.logger.writer();
    write(&mut writer, sink, 0, 5_000);
    assert!(bench.logger.flush_and_stop(LIMIT));
    assert_eq!(numbers(&bench.read("a.log")), count_to(5_000));
    write(&mut writer, sink, 0, 7);
    assert_eq!(bench.logger.drops(), 7, "late lines are counted");
    assert!(bench.logger.flush_and_stop(LIMIT), "a second stop finds nothing to do");
}
