//! Measures how fast Chromium loads a page of 60 resources over a slow link, with the server's cache cold and warm.

use super::counted::{StartedServer, start_one};
use super::lane::Lane;
use super::run::Run;
use super::slow_link::SlowLink;
use super::table::{Table, table};
use super::timed::median;
use crate::Failure;
use crate::command::find;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

const STYLES: u32 = 4;
const SCRIPTS: u32 = 15;
const IMAGES: u32 = 40;
/// Bytes of each script and style sheet before compression.
const TEXT: usize = 60 << 10;
/// Width and height of each image in pixels. An image has 48 KB.
const EDGE: u32 = 128;
const FOLDER: &str = "page";
/// Seconds after which a browser that hangs is stopped.
const TIMEOUT_SECONDS: &str = "60";

/// Script that replaces the page by its load times once everything has loaded.
const REPORT: &str = "<script>addEventListener('load', () => setTimeout(() => {
const n = performance.getEntriesByType('navigation')[0];
document.documentElement.innerHTML = `times ${n.domContentLoadedEventEnd} ${n.loadEventEnd} ${performance.getEntriesByType('resource').length} end`;
}, 0));</script>";

/// Measures DOMContentLoaded and load for the first visit after the server's start and for the second.
pub fn page(run: &Run, lanes: &[Lane]) -> Result<Table, Failure> {
    let note = "A page with 4 style sheets and 15 scripts of 60 KB and 40 images of 48 KB, by Chromium over the same relay and TLS, \
                each time with an empty profile: cold right after the server's start, then warm. RockNet compresses text when it is \
                first requested; the others send it uncompressed. Medians of the rounds.";
    let browser = find("chromium").ok_or("chromium is missing: apt-get install chromium")?;
    create(&run.site.root().join(FOLDER))?;
    let columns = ["cold, ms", "warm, ms", "cold ÷ warm", "all loaded cold, ms", "warm, ms"];
    Ok(table(lanes, &columns, note, |lane| {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for _ in 0..run.rounds {
            let started = start_one(run, lane, &[])?;
            cold.push(open(&browser, &started)?);
            warm.push(open(&browser, &started)?);
        }
        let of = |all: &[Times], figure: fn(&Times) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        let (first, second) = (of(&cold, |times| times.parsed), of(&warm, |times| times.parsed));
        let (first_load, second_load) = (of(&cold, |times| times.loaded), of(&warm, |times| times.loaded));
        Ok(vec![first, second, first / second, first_load, second_load])
    }))
}

/// Milliseconds from the start of the navigation to DOMContentLoaded (`parsed`) and to load (`loaded`).
#[derive(Debug, PartialEq)]
struct Times {
    parsed: f64,
    loaded: f64,
}

fn open(browser: &Path, started: &StartedServer) -> Result<Times, Failure> {
    let link = SlowLink::to(started.port)?;
    let profile = tempfile::tempdir()?;
    let output = Command::new("timeout")
        .arg(TIMEOUT_SECONDS)
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--ignore-certificate-errors", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("https://127.0.0.1:{}/{FOLDER}/index.html", link.port))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    times(&text).ok_or_else(|| format!("no load times in the browser's output: {text}").into())
}

/// Parses the times from the page that reports them. Returns `None` if the browser did not load all resources.
fn times(page: &str) -> Option<Times> {
    let mut words = page.split_once("times ")?.1.split_whitespace();
    let mut next = || words.next()?.parse::<f64>().ok();
    let (parsed, loaded, resources) = (next()?, next()?, next()?);
    (resources == f64::from(STYLES + SCRIPTS + IMAGES)).then_some(Times { parsed, loaded })
}

/// Writes the page into `folder`.
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut page = String::from("<!DOCTYPE html><html><head><title>Page</title>\n");
    for number in 0..STYLES {
        let _ = writeln!(page, "<link rel=stylesheet href={number}.css>");
        fs::write(
            folder.join(format!("{number}.css")),
            words(number, ".", "{color:red}\n"),
        )?;
    }
    page.push_str(REPORT);
    page.push_str("</head><body>\n");
    for number in 0..IMAGES {
        let _ = writeln!(page, "<img src={number}.bmp width=64 height=64>");
        fs::write(folder.join(format!("{number}.bmp")), image(number))?;
    }
    for number in 0..SCRIPTS {
        let _ = writeln!(page, "<script src={number}.js></script>");
        fs::write(
            folder.join(format!("{number}.js")),
            words(100 + number, "var ", "=1;\n"),
        )?;
    }
    page.push_str("</body></html>\n");
    fs::write(folder.join("index.html"), page)
}

/// Returns at least `TEXT` bytes that compress to about a quarter, as scripts do.
fn words(seed: u32, before: &str, after: &str) -> String {
    let mut random = Random(seed);
    let mut text = String::with_capacity(TEXT + 64);
    while text.len() < TEXT {
        let _ = write!(
            text,
            "{before}name{}of{}{after}",
            random.next() % 1000,
            random.next() % 1000
        );
    }
    text
}

/// Returns a bitmap of noise, which does not compress.
fn image(seed: u32) -> Vec<u8> {
    const HEADER: u32 = 54;
    let size = EDGE * EDGE * 3;
    let mut bytes = b"BM".to_vec();
    for value in [
        HEADER + size,
        0,
        HEADER,
        40,
        EDGE,
        EDGE,
        1 | 24 << 16,
        0,
        size,
        2835,
        2835,
        0,
        0,
    ] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    let mut random = Random(1000 + seed);
    bytes.extend((0..size).map(|_| random.next() as u8));
    bytes
}

/// Simple random generator with a fixed seed, so that the page is the same in each run.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_only_if_all_resources_were_loaded() {
        let page = |resources| format!("<html><head></head><body>times 812.5 2300 {resources} end</body></html>");
        let expected = Times {
            parsed: 812.5,
            loaded: 2300.0,
        };
        assert_eq!(times(&page(59)), Some(expected));
        assert_eq!(times(&page(58)), None);
        assert_eq!(times("<html>"), None);
    }

    #[test]
    fn an_image_states_its_length() {
        let image = image(1);
        assert_eq!(image[..2], *b"BM");
        assert_eq!(image[2..6], (image.len() as u32).to_le_bytes());
    }
}
