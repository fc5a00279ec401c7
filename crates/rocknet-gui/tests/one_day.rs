//! A day of charts and log lines on virtual time: the memory of the model stops growing after the first hour.

#![allow(unsafe_code)] // `GlobalAlloc` is an unsafe trait

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::time::Duration;

use rocknet_control::logs::{LogEvent, LogKind};
use rocknet_control::route::RouteTraffic;
use rocknet_control::{SiteKind, SiteSummary, Status};
use rocknet_gui::act::{Act, PageName, Span};
use rocknet_gui::job::{Poll, Report};
use rocknet_gui::model::{MAX_SAMPLES, Model, Settings};
use rocknet_gui::pages;
use rocknet_gui::screen::Body;

/// Bytes that the test holds. It has one thread.
static HELD: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator. Counting uses only a static.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size().cast_signed(), Relaxed);
        // SAFETY: the caller upholds the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size().cast_signed(), Relaxed);
        // SAFETY: the caller upholds the contract of this method, and the memory came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// Interval in seconds at which the worker sends the list of websites, and the window draws a page of each kind.
/// The window stops following the logs after five minutes on another page, so the interval is shorter.
const DRAWN_EVERY: u64 = 240;

/// Interval in seconds of bursts of log lines, and the number of lines of a burst: as many as a batch may have.
const BURST_EVERY: u64 = 1_800;
const BURST: u64 = 2_000;

fn sites() -> Vec<SiteSummary> {
    let site = |number| SiteSummary {
        name: format!("site-{number}.localhost"),
        urls: vec![format!("https://site-{number}.localhost:8443/")],
        kind: SiteKind::Files,
        ..SiteSummary::default()
    };
    (0..20).map(site).collect()
}

/// Returns the state of a server that gets more requests at noon than at night.
fn polled(second: u64) -> Report {
    let traffic = |site: SiteSummary| RouteTraffic {
        site: site.name,
        route: "/*".to_owned(),
        responses: second * 3,
        ..RouteTraffic::default()
    };
    let hour = second / HOUR;
    let requests = second * 40 + hour.min(24 - hour.min(24)) * (second % HOUR);
    Report::Polled(Box::new(Poll {
        at: Duration::from_secs(second),
        status: Status {
            version: "0.1.0".to_owned(),
            requests,
            cpu_ms: second * 30,
            memory_bytes: (34 + hour) << 20,
            connections_open: second % 90,
            duration_counts: (0..20).map(|bucket| requests * (bucket + 1) / 20).collect(),
            ..Status::default()
        },
        sites: second.is_multiple_of(DRAWN_EVERY).then(sites),
        traffic: second
            .is_multiple_of(DRAWN_EVERY)
            .then(|| sites().into_iter().map(traffic).collect()),
        ..Poll::default()
    }))
}

/// Returns a line of a log. All lines of a kind have the same length, except that some are far too long.
fn line(number: u64) -> LogEvent {
    let site = number % 20 + 10;
    let access = format!(
        r#"{{"time":"2026-11-28T19:30:39+00:00","client":"127.0.0.1","method":"GET","target":"/{number:012}","host":"site-{site}.localhost","status":200,"duration_us":158}}"#
    );
    // A pattern of 100 lines, so that every 2,000 lines have the same total length.
    let (kind, line) = match number % 100 {
        0 | 25 | 50 | 75 => (
            LogKind::Error,
            format!("2026-11-28T00:00:00 WARN  slow {number:012} site=site-{site}.localhost"),
        ),
        1 => (LogKind::Error, format!("{number:012} {}", "x".repeat(20_000))),
        _ => (LogKind::Access, access),
    };
    LogEvent {
        kind,
        line,
        site: Some(format!("site-{site}.localhost")),
        lost: 0,
    }
}

/// Draws the charts of each span, the logs and the websites, as a user who looks at them from time to time.
fn draw(model: &mut Model) {
    model.act(Act::Show(PageName::Activity));
    for span in Span::ALL {
        model.act(Act::ShowSpan(span));
        let Body::Charts(charts) = pages::screen(model).body else {
            panic!("no charts")
        };
        assert_eq!(charts.len(), 5);
    }
    for page in [PageName::Logs, PageName::Websites] {
        model.act(Act::Show(page));
        pages::screen(model);
    }
}

#[test]
fn a_day_of_charts_and_log_lines_needs_no_more_memory_than_an_hour() {
    // Bytes after the first five minutes, and at the end of each hour.
    let (mut early, mut hours) = (0, Vec::with_capacity(24));
    let began = HELD.load(Relaxed);
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/rocknet/control.sock".into()));
    model.act(Act::Show(PageName::Logs));
    let mut lines = 0;
    for second in 1..=DAY {
        model.tick(Duration::from_secs(second));
        model.report(polled(second));
        let new = if second % BURST_EVERY == BURST_EVERY / 2 {
            BURST
        } else {
            1
        };
        model.report(Report::Log((lines..lines + new).map(line).collect()));
        lines += new;
        if second.is_multiple_of(DRAWN_EVERY) {
            draw(&mut model);
        }
        let held = HELD.load(Relaxed) - began;
        if second == DRAWN_EVERY {
            early = held;
        }
        if second.is_multiple_of(HOUR) {
            hours.push(held);
        }
    }
    let shown = |bytes: isize| format!("{} KiB", bytes >> 10);
    println!("after an hour: {}, after a day: {}", shown(hours[0]), shown(hours[23]));
    assert_eq!(model.samples.iter().count(), MAX_SAMPLES);
    assert!(model.log.received > DAY, "{}", model.log.received);
    assert!(
        early < hours[0] / 4,
        "the test does not fill the buffers: {early}, {hours:?}"
    );
    assert!(hours.iter().all(|bytes| *bytes == hours[0]), "{hours:?}");
    assert!(hours[0] < 4 << 20, "{}", shown(hours[0]));
}
