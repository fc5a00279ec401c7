//! The first five minutes of a new user, by keyboard alone: the server is started, a website in PHP is added, and a
//! browser shows it with a padlock.

use super::super::devtools::DevTools;
use super::account::{Account, get};
use super::desk::{Desk, Display};
use super::waiting::wait;
use crate::Failure;
use rocknet_control::SiteSummary;
use rocknet_control::api::Request;
use std::fs;
use std::time::{Duration, Instant};

/// Maximum time from the start of the program to the padlock.
const MAX_TIME: Duration = Duration::from_secs(300);

/// The website: its folder, its name as the window suggests it, and its script.
const FOLDER: &str = "websites/hello";
pub const NAME: &str = "hello.localhost";
const SCRIPT: &str = "<?php echo 'This is PHP ', PHP_VERSION;";

/// Runs the first minutes, and returns the window with the figure for the summary.
pub fn run<'d>(display: &'d Display, account: &Account) -> Result<(Desk<'d>, String), Failure> {
    account.write(&format!("{FOLDER}/index.php"), SCRIPT)?;
    let began = Instant::now();
    let desk = Desk::start(display, account)?;
    start_server(&desk, account)?;
    let started = began.elapsed();
    println!("\"It works\" after {:.1} s", started.as_secs_f64());
    let url = add_website(&desk, account)?;
    trust(&desk, account)?;
    let mut browser = DevTools::start_in(Some(&account.home))?;
    let seen = browser.open_secure(&url)?;
    let total = began.elapsed();
    if !seen.starts_with("This is PHP 8.") {
        return Err(format!("{url} shows {seen:?}").into());
    }
    println!(
        "{url} has a padlock and shows {seen:?} after {:.1} s",
        total.as_secs_f64()
    );
    edit(&desk, account, &mut browser, &url)?;
    if total > MAX_TIME {
        return Err(format!("the first minutes have taken {total:?}").into());
    }
    let shown = format!(
        "first page after {:.1} s, PHP with a padlock after {:.1} of {} s",
        started.as_secs_f64(),
        total.as_secs_f64(),
        MAX_TIME.as_secs()
    );
    Ok((desk, shown))
}

/// Starts the server with the button that has the focus, and requests the first page.
fn start_server(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    desk.wait_for_title("Websites – RockNet – Stopped")?;
    desk.wait_for_text("Welcome to RockNet")?;
    desk.press(&["Return"])?;
    desk.wait_for_title("Websites – RockNet – Running")?;
    let sites: Vec<SiteSummary> = wait("the server replies", || account.request(&Request::Sites))?;
    // The port is another one if a program of this machine holds 8080.
    let port = sites.first().and_then(|site| site.name.strip_prefix(':')?.parse().ok());
    let port = port.ok_or("the first page has no port")?;
    let url = format!("http://localhost:{port}/");
    wait("the browser opens the first page", || {
        (account.opened() == [url.clone()]).then_some(())
    })?;
    let page = get(port)?;
    match page.contains("It works") {
        true => Ok(()),
        false => Err(format!("the first page is {page}").into()),
    }
}

/// Adds the website: only its folder is typed. Returns the URL that was opened in the browser.
fn add_website(desk: &Desk<'_>, account: &Account) -> Result<String, Failure> {
    desk.press(&["ctrl+n"])?;
    desk.wait_for_title("Add website")?;
    desk.type_text(&account.home.join(FOLDER).to_string_lossy())?;
    desk.wait_for_text("PHP scripts")?;
    desk.wait_for_text("The server accepts these settings")?;
    desk.press(&["Return"])?;
    desk.wait_for_title(&format!("{NAME} is ready"))?;
    let url = format!("https://{NAME}");
    wait("the browser opens the website", || {
        account.opened().pop().filter(|opened| opened.starts_with(&url))
    })
}

/// Lets the browsers of the account trust the certificate, by the button beside the check.
fn trust(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    desk.wait_for_text("Chromium: not yet")?;
    // The focus is at the button below the checks, which opens the website.
    desk.press(&["shift+Tab", "Return"])?;
    desk.wait_for_text("Browsers trust the certificate")?;
    println!("the stores below {} have the local CA", account.home.display());
    Ok(())
}

/// Edits the script by hand, which the browser shows, and returns to the websites.
fn edit(desk: &Desk<'_>, account: &Account, browser: &mut DevTools, url: &str) -> Result<(), Failure> {
    let file = account.home.join(FOLDER).join("index.php");
    fs::write(file, "<?php echo 'Edited';")?;
    // PHP looks for changes of a script every two seconds.
    wait("the browser shows the edit", || {
        (browser.open_secure(url).ok()? == "Edited").then_some(())
    })?;
    desk.press(&["Escape"])?;
    desk.wait_for_title("Websites")
}
