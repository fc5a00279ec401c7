//! Tests of logs that cannot be written: a full disk, a pipe without a reader, and a reader that is slow or reopens the
//! pipe.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::{LIMIT, NO_ROTATION, TestLog, count_to, numbers, write};

#[test]
fn a_full_disk_is_reported_once_and_recovers() {
    // Number of lines, of about 70 bytes each. A log holds 1 MiB.
    const MORE_THAN_IS_HELD: u64 = 40_000;
    let test_log = TestLog::new(NO_ROTATION);
    symlink("/dev/full", test_log.path("a.log")).expect("links");
    let sink = test_log.sink("a.log");
    let mut writer = test_log.logger.writer();
    for part in 0..10 {
        let count = MORE_THAN_IS_HELD / 10;
        write(&mut writer, sink, part * count, count);
        test_log.sync();
    }
    let drops = test_log.logger.drops();
    assert!(drops > 0 && drops < MORE_THAN_IS_HELD, "{drops}");
    let report = test_log.read("error.log");
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(
        report.contains("a.log: ") && report.trim_end().ends_with(": no space left on device"),
        "{report}"
    );

    fs::remove_file(test_log.path("a.log")).expect("removes");
    test_log.logger.reopen();
    write(&mut writer, sink, MORE_THAN_IS_HELD, 10);
    test_log.sync();
    let found = numbers(&test_log.read("a.log"));
    let held = MORE_THAN_IS_HELD - drops;
    assert_eq!(
        found,
        (0..held)
            .chain(MORE_THAN_IS_HELD..MORE_THAN_IS_HELD + 10)
            .collect::<Vec<u64>>()
    );
    assert_eq!(test_log.logger.drops(), drops, "nothing more is lost");
    assert!(test_log.logger.flush_and_stop(LIMIT));
    let report = test_log.read("error.log");
    assert!(
        report.lines().count() == 2 && report.contains(&format!("{drops} lines lost since ")),
        "{report}"
    );
}

#[test]
fn a_full_disk_of_one_log_does_not_affect_others() {
    let test_log = TestLog::new(NO_ROTATION);
    symlink("/dev/full", test_log.path("full.log")).expect("links");
    let (full, good) = (test_log.sink("full.log"), test_log.sink("good.log"));
    let mut writer = test_log.logger.writer();
    for part in 0..40 {
        write(&mut writer, full, 0, 1000);
        write(&mut writer, good, part * 10, 10);
        test_log.sync();
    }
    assert!(test_log.logger.drops() > 0);
    assert_eq!(numbers(&test_log.read("good.log")), count_to(400));
}

fn make_fifo(path: &Path) {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("makes a pipe");
}

fn open_reader(path: &Path) -> fs::File {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .expect("opens the pipe")
}

#[test]
fn lines_for_a_pipe_without_a_reader_are_held_and_then_counted() {
    let test_log = TestLog::new(NO_ROTATION);
    make_fifo(&test_log.path("pipe"));
    let sink = test_log.sink("pipe");
    let mut writer = test_log.logger.writer();
    for part in 0..40 {
        write(&mut writer, sink, part * 1000, 1000);
        test_log.sync();
    }
    assert!(test_log.logger.drops() > 0);
    assert!(
        test_log.read("error.log").contains("the pipe has no reader"),
        "{}",
        test_log.read("error.log")
    );
    assert!(
        !test_log.logger.flush_and_stop(Duration::ZERO),
        "held lines are lost when the thread stops"
    );
    assert_eq!(test_log.logger.drops(), 40_000);
}

#[test]
fn a_slow_pipe_never_blocks_a_worker_and_gets_whole_lines() {
    const LINES: u64 = 200_000;
    let test_log = TestLog::new(NO_ROTATION);
    make_fifo(&test_log.path("pipe"));
    let mut reader = open_reader(&test_log.path("pipe"));
    let (sink, good) = (test_log.sink("pipe"), test_log.sink("good.log"));
    let mut writer = test_log.logger.writer();
    let start = Instant::now();
    write(&mut writer, sink, 0, LINES);
    assert!(start.elapsed() < LIMIT, "writing to memory takes milliseconds");
    write(&mut writer, good, 0, 10);
    test_log.sync();
    assert_eq!(
        numbers(&test_log.read("good.log")),
        count_to(10),
        "the other log continues"
    );
    assert!(test_log.logger.drops() > 0);

    // The reader resumes: the held lines arrive complete and in order.
    let mut text = Vec::new();
    let start = Instant::now();
    while LINES - test_log.logger.drops() > text.iter().filter(|byte| **byte == b'\n').count() as u64 {
        assert!(start.elapsed() < LIMIT, "the held lines do not arrive");
        let mut part = [0; 65_536];
        match reader.read(&mut part) {
            Ok(count) => text.extend_from_slice(&part[..count]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    let found = numbers(&String::from_utf8(text).expect("ASCII"));
    assert!(found.is_sorted_by(|a, b| a < b));
    assert_eq!(found.len() as u64, LINES - test_log.logger.drops());
}

#[test]
fn a_reader_that_reopens_the_pipe_gets_whole_lines() {
    let test_log = TestLog::new(NO_ROTATION);
    make_fifo(&test_log.path("pipe"));
    let first = open_reader(&test_log.path("pipe"));
    let sink = test_log.sink("pipe");
    let mut writer = test_log.logger.writer();
    write(&mut writer, sink, 0, 3_000);
    test_log.sync();
    // The pipe is full, most likely within a line; its content is lost with its reader.
    drop(first);
    write(&mut writer, sink, 3_000, 10);
    test_log.sync();
    let mut second = open_reader(&test_log.path("pipe"));
    test_log.logger.reopen();
    test_log.sync();
    let mut text = vec![0; 30_000];
    let count = second.read(&mut text).expect("there are lines");
    text.truncate(count);
    let whole = text.iter().rposition(|byte| *byte == b'\n').expect("a line");
    let found = numbers(std::str::from_utf8(&text[..whole]).expect("ASCII"));
    assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1), "{found:?}");
}
