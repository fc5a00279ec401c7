//! A display in memory with the desktop program, which is used by keyboard as a person would.

use super::account::Account;
use super::waiting::wait;
use crate::Failure;
use crate::command::{output, output_alone};
use crate::conform::cpu_time;
use rocknet_gui::model::{Model, Settings};
use rocknet_gui::{navigation_layout, pages};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Place outside of the window.
const OUTSIDE: [&str; 2] = ["1500", "900"];

/// An X server in memory, which ends with this value.
pub struct Display {
    server: Child,
    /// Value of the environment variable `DISPLAY`.
    pub name: String,
}

impl Display {
    /// Starts a display. The X server chooses a free number.
    pub fn start() -> Result<Display, Failure> {
        // Without `-noreset`, the display refuses clients for a moment after the last one has ended.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"])
            .arg("-noreset")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(numbers) = server.stdout.take() {
            BufReader::new(numbers).read_line(&mut line)?;
        }
        let name = format!(":{}", line.trim());
        let display = Display { server, name };
        match line.trim() {
            "" => Err("Xvfb has ended".into()),
            _ => Ok(display),
        }
    }

    fn xdotool(&self, arguments: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new("xdotool");
        let printed = output_alone(command.env("DISPLAY", &self.name).args(arguments))?;
        Ok(printed.trim().to_owned())
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The desktop program on a display. It is killed when dropped.
pub struct Desk<'d> {
    display: &'d Display,
    program: Child,
    /// Number of the window, for xdotool.
    window: String,
    /// Time from the start of the program until its window was on the display.
    pub first_window: Duration,
}

impl<'d> Desk<'d> {
    /// Starts the program for an account, and waits for its window.
    pub fn start(display: &'d Display, account: &Account) -> Result<Desk<'d>, Failure> {
        let began = Instant::now();
        let program = account
            .command("rocknet-gui")
            .env("DISPLAY", &display.name)
            .stdin(Stdio::null())
            .spawn()?;
        let mut desk = Desk {
            display,
            program,
            window: String::new(),
            first_window: Duration::ZERO,
        };
        let search = ["search", "--onlyvisible", "--name", "RockNet"];
        desk.window = wait("the window appears", || {
            let found = display.xdotool(&search).ok()?;
            found.lines().next().map(str::to_owned)
        })?;
        desk.first_window = began.elapsed();
        display.xdotool(&["windowfocus", "--sync", &desk.window])?;
        Ok(desk)
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &[&str]) -> Result<(), Failure> {
        let arguments = [&["key", "--clearmodifiers", "--delay", "20"], keys].concat();
        self.display.xdotool(&arguments).map(drop)
    }

    /// Presses a key several times.
    pub fn press_times(&self, key: &str, times: usize) -> Result<(), Failure> {
        self.press(&vec![key; times])
    }

    /// Types a text.
    pub fn type_text(&self, text: &str) -> Result<(), Failure> {
        self.display.xdotool(&["type", "--delay", "8", text]).map(drop)
    }

    /// Shows a page: clicks its entry in the navigation, and moves the pointer out of the window.
    pub fn show_page(&self, title: &str) -> Result<(), Failure> {
        let (place, count) = entry(title)?;
        let area = navigation_layout::entries(self.height()?, count).nth(place);
        let (x, y) = area.ok_or("no such entry")?.center();
        let (x, y) = (x.to_string(), y.to_string());
        self.display
            .xdotool(&["mousemove", "--window", &self.window, &x, &y, "click", "1"])?;
        self.display.xdotool(&["mousemove", OUTSIDE[0], OUTSIDE[1]])?;
        self.wait_for_title(title)
    }

    /// Presses a button of the heading, counted from 0, after [`show_page`](Self::show_page): the focus moves past the
    /// other entries of the navigation and the button of the server.
    pub fn press_button(&self, page: &str, button: usize) -> Result<(), Failure> {
        let (place, count) = entry(page)?;
        self.press_times("Tab", count - place + 1 + button)?;
        self.press(&["Return"])
    }

    /// Returns the height of the window in pixels.
    fn height(&self) -> Result<i32, Failure> {
        let printed = self.display.xdotool(&["getwindowgeometry", "--shell", &self.window])?;
        let height = printed.lines().find_map(|line| line.strip_prefix("HEIGHT="));
        Ok(height.ok_or("xdotool prints no height")?.parse()?)
    }

    /// Returns the title of the window.
    pub fn title(&self) -> Result<String, Failure> {
        self.display.xdotool(&["getwindowname", &self.window])
    }

    /// Waits until the title of the window begins with a text.
    pub fn wait_for_title(&self, beginning: &str) -> Result<(), Failure> {
        let mut last = String::new();
        wait(&format!("the window has the title {beginning:?}"), || {
            last = self.title().ok()?;
            last.starts_with(beginning).then_some(())
        })
        .map_err(|failure| format!("{failure}; the title is {last:?}").into())
    }

    /// Waits until the window shows a text, as a program that reads pictures finds it.
    pub fn wait_for_text(&self, text: &str) -> Result<(), Failure> {
        let mut last = String::new();
        wait(&format!("the window shows {text:?}"), || {
            last = self.text().ok()?;
            without_spaces(&last).contains(&without_spaces(text)).then_some(())
        })
        .map_err(|failure| format!("{failure}; it shows: {last}").into())
    }

    /// Waits until the window no longer shows a text.
    pub fn wait_for_end_of(&self, text: &str) -> Result<(), Failure> {
        wait(&format!("the window no longer shows {text:?}"), || {
            let shown = self.text().ok()?;
            (!without_spaces(&shown).contains(&without_spaces(text))).then_some(())
        })
    }

    /// Reads the texts in the window from a picture.
    fn text(&self) -> Result<String, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("window.png");
        // Three pixels for one make the letters as large as those of print, which tesseract is made for.
        self.picture(
            &file,
            &["-colorspace", "Gray", "-filter", "Triangle", "-resize", "300%"],
        )?;
        let mut tesseract = Command::new("tesseract");
        output_alone(tesseract.arg(&file).args(["stdout", "--psm", "11"]))
    }

    /// Writes a picture of the window. `changes`: options of ImageMagick.
    pub fn picture(&self, file: &Path, changes: &[&str]) -> Result<(), Failure> {
        let taken = tempfile::Builder::new().suffix(".png").tempfile()?;
        let mut import = Command::new("import");
        import.args(["-display", &self.display.name, "-window", &self.window]);
        output(import.arg(taken.path()))?;
        let mut convert = Command::new("convert");
        output(convert.arg(taken.path()).args(changes).arg(file)).map(drop)
    }

    /// Returns the resident memory of the program in bytes.
    pub fn memory(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Ok(kib.ok_or("the program has no resident memory")? << 10)
    }

    /// Returns the CPU time of the program in seconds.
    pub fn cpu_time(&self) -> Result<f64, Failure> {
        cpu_time::of_process(self.program.id())
    }

    /// Closes the window by keyboard, and waits until the program has ended.
    pub fn quit(mut self) -> Result<(), Failure> {
        self.press(&["ctrl+q"])?;
        let status = wait("the program ends", || self.program.try_wait().ok().flatten())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("the program has ended with {status}").into()),
        }
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns the titles of the pages in the order of the navigation.
pub fn page_titles() -> Vec<&'static str> {
    // The window is English in the locale of the account.
    let entries = pages::navigation(&Model::new(Settings::default()));
    entries.into_iter().map(|entry| entry.label).collect()
}

/// Returns the place of a page in the navigation, and the number of entries.
fn entry(title: &str) -> Result<(usize, usize), Failure> {
    let titles = page_titles();
    let place = titles.iter().position(|page| *page == title);
    let place = place.ok_or_else(|| format!("the navigation has no page {title:?}"))?;
    Ok((place, titles.len()))
}

/// Returns a text without the spaces, which tesseract sometimes misses between words.
fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}
