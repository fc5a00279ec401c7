//! Failures under the window: the server is killed, the configuration has an error, and its file cannot be written. The
//! window has to show each of them.

use super::account::Account;
use super::desk::Desk;
use super::first_minutes::NAME;
use super::waiting::wait;
use crate::Failure;
use crate::command::output;
use rocknet_control::api::Request;
use rocknet_control::{SiteSummary, Status};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Runs all failures in a window that shows the websites of the first minutes.
pub fn run(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    killed(desk, account)?;
    println!("a server that was killed is started again by its button");
    broken(desk, account)?;
    println!("an error in the configuration is shown until it is repaired");
    broken_at_start(desk, account)?;
    println!("a start that fails names the error, and succeeds after the repair");
    read_only(desk, account)?;
    println!("a file that cannot be written is named, and nothing changes");
    Ok(())
}

/// Kills the server. The window says so and names the cause, and its button starts the server again.
fn killed(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    kill(account)?;
    desk.wait_for_title("Websites – RockNet – Stopped")?;
    desk.wait_for_text("The server has ended unexpectedly")?;
    desk.wait_for_text("It was killed")?;
    desk.press(&["Tab", "Return"])?;
    desk.wait_for_title("Websites – RockNet – Running")?;
    desk.wait_for_text(NAME)?;
    is_served(account)
}

/// Breaks the configuration by hand and reloads it: the old one stays in use, and the window says where the error is.
fn broken(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    let text = fs::read_to_string(account.config())?;
    let line = text.lines().count() + 1;
    fs::write(account.config(), format!("{text}rot = 1\n"))?;
    desk.press(&["F5"])?;
    desk.wait_for_text("unknown key")?;
    desk.wait_for_text(&format!("rocknet.toml:{line}"))?;
    is_served(account)?;
    fs::write(account.config(), &text)?;
    desk.press(&["F5"])?;
    desk.wait_for_end_of("unknown key")
}

/// Starts the server with a broken configuration, and once more after the repair.
fn broken_at_start(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    let text = fs::read_to_string(account.config())?;
    fs::write(account.config(), format!("{text}rot = 1\n"))?;
    kill(account)?;
    desk.wait_for_title("Websites – RockNet – Stopped")?;
    desk.press(&["Tab", "Return"])?;
    desk.wait_for_title("Websites – RockNet – Not started")?;
    desk.wait_for_text("The server could not start")?;
    desk.wait_for_text("unknown key")?;
    fs::write(account.config(), &text)?;
    desk.press(&["Return"])?;
    desk.wait_for_title("Websites – RockNet – Running")?;
    is_served(account)
}

/// Removes the website while the file and its folder cannot be written.
fn read_only(desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    let config = account.config();
    let folder = config.parent().ok_or("the configuration has no folder")?;
    let text = fs::read_to_string(&config)?;
    desk.wait_for_text(NAME)?;
    let set = |file: u32, all: u32| {
        fs::set_permissions(&config, fs::Permissions::from_mode(file))?;
        fs::set_permissions(folder, fs::Permissions::from_mode(all))
    };
    set(0o444, 0o555)?;
    desk.press(&["End", "Delete"])?;
    let shown = desk.wait_for_text("ermission denied");
    set(0o600, 0o755)?;
    shown?;
    if fs::read_to_string(&config)? != text {
        return Err("the file was changed, although it is read-only".into());
    }
    is_served(account)?;
    // The same key works once the file can be written.
    desk.press(&["Delete"])?;
    wait("the website is removed", || {
        let sites: Vec<SiteSummary> = account.request(&Request::Sites)?;
        sites.iter().all(|site| site.name != NAME).then_some(())
    })
}

/// Kills the server, and waits until it has ended.
fn kill(account: &Account) -> Result<(), Failure> {
    let status: Status = account.request(&Request::Status).ok_or("the server does not reply")?;
    output(Command::new("kill").args(["-9", &status.pid.to_string()]))?;
    wait("the server has ended", || {
        account.request::<Status>(&Request::Status).is_none().then_some(())
    })
}

/// Checks that the website is served.
fn is_served(account: &Account) -> Result<(), Failure> {
    let sites: Vec<SiteSummary> = account.request(&Request::Sites).ok_or("the server does not reply")?;
    match sites.iter().any(|site| site.name == NAME && site.fault.is_none()) {
        true => Ok(()),
        false => Err(format!("{NAME} is not served: {sites:?}").into()),
    }
}
