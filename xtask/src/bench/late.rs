//! Measures a high-priority response that is requested late, on a slow link that is full of other responses.

use super::content;
use super::counted::start_one;
use super::http2::{PREFACE, RESPONSE_TIMEOUT, SETTINGS_ACK, Urgency, connect, read_frame, request, windows};
use super::lane::Lane;
use super::row::{MIB, Page};
use super::run::Run;
use super::slow_link::SlowLink;
use super::table::{Table, table};
use super::timed::median;
use crate::Failure;
use std::io::{self, BufReader, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Number of concurrent downloads of 1 MB.
const BULK: u32 = 20;
/// Priority of the downloads. The weight is sent minus one, so 0 is the weight 1.
const BULK_URGENCY: Urgency = Urgency {
    field: "u=5, i",
    weight: 0,
};
const LATE_URGENCY: Urgency = Urgency {
    field: "u=0",
    weight: 255,
};
/// Time from the requests for the downloads to the request for the small file.
const DELAY: Duration = Duration::from_millis(400);
/// Stream of the request for the small file.
const LATE_STREAM: u32 = 2 * BULK + 1;
/// Flow-control window of each stream and of the connection: larger than all responses together.
const WINDOW: u32 = 2 * BULK * MIB as u32;
/// Minimum bytes to receive, so that the throughput is meaningful.
const MIN_BYTES: u64 = 6 * MIB;

/// Figures of one connection.
struct LateTimes {
    /// Milliseconds from the late request to the end of its response.
    late: f64,
    /// Kilobytes of other responses received between the late request and the end of its response.
    before: f64,
    /// Throughput of all responses in Mbit/s. The link permits 10 Mbit/s.
    megabits: f64,
}

/// Measures the time to a late response on a slow link, and the bytes that were received before it.
pub fn late(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "One connection over a relay of 10 Mbit/s and 50 ms of round trip, with a receive buffer of 32 KB and a queue of \
                62 KB: 20 downloads of 1 MB begin, and 400 ms later a file of 13 bytes is requested. The downloads have \
                `priority: u=5, i` and weight 1, the late request has `u=0` and weight 256. Medians of the rounds.";
    run.site.file(Page::File(MIB))?;
    let columns = ["late response, ms", "others before it, KB", "all together, Mbit/s"];
    Ok(table(lanes, &columns, note, |lane| {
        let started = start_one(run, lane, &[])?;
        let link = SlowLink::to(started.port)?;
        let found: Vec<LateTimes> = (0..run.rounds).map(|_| measure(link.port)).collect::<io::Result<_>>()?;
        let column = |figure: fn(&LateTimes) -> f64| median(&found.iter().map(figure).collect::<Vec<_>>());
        Ok(vec![
            column(|found| found.late),
            column(|found| found.before),
            column(|found| found.megabits),
        ])
    }))
}

fn measure(port: u16) -> io::Result<LateTimes> {
    let mut stream = connect(port)?;
    let mut requests = [PREFACE, &windows(WINDOW, WINDOW), SETTINGS_ACK].concat();
    let bulk = format!("/{}", content::name(Page::File(MIB)));
    for number in 0..BULK {
        requests.extend(request(2 * number + 1, &bulk, Some(BULK_URGENCY)));
    }
    stream.write_all(&requests)?;
    let mut writer = stream.try_clone()?;
    let sender = thread::spawn(move || {
        thread::sleep(DELAY);
        let small = format!("/{}", content::name(Page::Hello));
        let at = Instant::now();
        writer.write_all(&request(LATE_STREAM, &small, Some(LATE_URGENCY)))?;
        Ok::<_, io::Error>(at)
    });
    let mut reader = BufReader::new(stream);
    let (mut all, mut first, mut late) = (0, None, None);
    // Arrival time and length of each frame of the other streams. At the end, the times are compared with the moment of
    // the late request.
    let mut others = Vec::new();
    while late.is_none() || all < MIN_BYTES {
        let frame = read_frame(&mut reader)?;
        let now = Instant::now();
        if frame.is_data() {
            first.get_or_insert(now);
            all += u64::from(frame.length);
        }
        if frame.stream != LATE_STREAM {
            others.push((now, frame.length));
        } else if frame.ends_stream() {
            late = Some(now);
        }
        if first.is_some_and(|first| now - first > RESPONSE_TIMEOUT) {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    let sent_at = sender
        .join()
        .map_err(|_| io::Error::other("the requesting thread panicked"))??;
    let (Some(late), Some(first)) = (late, first) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let between = others.iter().filter(|(at, _)| (sent_at..late).contains(at));
    let before: u64 = between.map(|(_, length)| u64::from(*length)).sum();
    Ok(LateTimes {
        late: (late - sent_at).as_secs_f64() * 1e3,
        before: before as f64 / 1e3,
        megabits: all as f64 * 8.0 / 1e6 / first.elapsed().as_secs_f64(),
    })
}
