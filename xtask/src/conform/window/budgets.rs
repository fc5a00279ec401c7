//! Budgets of the desktop program: size, time to the first window, memory, and CPU time.

use super::account::Account;
use super::desk::{Desk, Display, page_titles};
use crate::Failure;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Maximum size of the program in bytes.
const MAX_SIZE: u64 = 5 << 20;

/// Maximum time to the first window. The median of some starts is judged, because other programs may use the machine.
const MAX_FIRST_WINDOW: Duration = Duration::from_millis(300);
const STARTS: usize = 5;

/// Number of websites of the budgets for memory and CPU time.
const WEBSITES: usize = 500;

/// Maximum resident memory in bytes.
const MAX_MEMORY: u64 = 45 << 20;

/// Maximum CPU time in percent of one core while the charts are shown, and the time over which it is measured.
const MAX_CPU: f64 = 0.5;
const MEASURED: Duration = Duration::from_secs(30);

/// Checks the size of the program.
pub fn size(program: &Path) -> Result<String, Failure> {
    let size = fs::metadata(program)?.len();
    judge("size", mib(size), mib(MAX_SIZE), "MiB")
}

/// Checks the time from the start of the program to its window, for a new user without a server.
pub fn first_window(display: &Display, programs: [&Path; 2]) -> Result<String, Failure> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let home = tempfile::tempdir()?;
        let account = Account::create(home.path(), programs)?;
        let desk = Desk::start(display, &account)?;
        times.push(desk.first_window);
        desk.wait_for_title("Websites – RockNet – Stopped")?;
        desk.quit()?;
    }
    println!("first window after {times:?}");
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    judge(
        "first window",
        milliseconds(times[STARTS / 2]),
        milliseconds(MAX_FIRST_WINDOW),
        "ms",
    )
}

/// Checks memory and CPU time of a window with many websites.
pub fn many_websites(display: &Display, programs: [&Path; 2]) -> Result<Vec<String>, Failure> {
    let home = tempfile::tempdir()?;
    let account = Account::create(home.path(), programs)?;
    account.write("www/index.html", "<h1>A website</h1>")?;
    let mut config = "[server]\nmode = \"dev\"\n".to_owned();
    for number in 0..WEBSITES {
        let root = home.path().join("www");
        write!(
            config,
            "\n[site.\"site-{number}.localhost\"]\nroot = \"{}\"\n",
            root.display()
        )?;
    }
    account.write(".config/rocknet/rocknet.toml", &config)?;
    account.start_server()?;
    let desk = Desk::start(display, &account)?;
    desk.wait_for_title("Websites – RockNet – Running")?;
    desk.wait_for_text(&format!("{WEBSITES} websites"))?;
    // Every page is shown once, and the list is scrolled to its end.
    desk.press(&["End", "Home"])?;
    for page in page_titles() {
        desk.show_page(page)?;
    }
    desk.show_page("Activity")?;
    desk.wait_for_text("Requests per second")?;
    let before = desk.cpu_time()?;
    thread::sleep(MEASURED);
    let cpu = (desk.cpu_time()? - before) / MEASURED.as_secs_f64() * 100.0;
    let memory = desk.memory()?;
    desk.quit()?;
    Ok(vec![
        judge("memory with 500 websites", mib(memory), mib(MAX_MEMORY), "MiB")?,
        judge("CPU with charts", cpu, MAX_CPU, "%")?,
    ])
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Returns the figure for the summary, or fails if it is above its budget.
fn judge(name: &str, figure: f64, budget: f64, unit: &str) -> Result<String, Failure> {
    let shown = format!("{name} {figure:.2} of {budget} {unit}");
    println!("{shown}");
    match figure <= budget {
        true => Ok(shown),
        false => Err(format!("a budget is exceeded: {shown}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_above_their_budget_fail() {
        assert_eq!(judge("size", 2.0, 5.0, "MiB").unwrap(), "size 2.00 of 5 MiB");
        assert!(judge("size", 5.0, 5.0, "MiB").is_ok());
        assert!(judge("size", 5.01, 5.0, "MiB").is_err());
    }
}
