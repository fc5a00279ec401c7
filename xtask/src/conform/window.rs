//! The desktop program as a user finds it: the first five minutes by keyboard alone, its messages about failures, and
//! its budgets.

mod account;
mod attackers;
mod budgets;
mod desk;
mod example;
mod failures;
mod first_minutes;
mod pictures;
mod waiting;

use self::account::Account;
use self::desk::Display;
use crate::command::{cargo, run as run_command};
use crate::{Failure, repository};
use std::path::{Path, PathBuf};

/// Uses the program, and returns the figures for the summary. `server`: the program `rocknet`. `is_given`: it is not a
/// build of this run, and the desktop program beside it is used if there is one. `pictures`: folder that gets pictures
/// of all views.
pub fn run(server: &Path, is_given: bool, pictures: Option<&Path>) -> Result<Option<String>, Failure> {
    let programs = [server, &program(server, is_given)?];
    let display = Display::start()?;
    if let Some(folder) = pictures {
        pictures::run(&display, programs, folder)?;
    }
    let home = tempfile::tempdir()?;
    let account = Account::create(home.path(), programs)?;
    let (desk, minutes) = first_minutes::run(&display, &account)?;
    failures::run(&desk, &account)?;
    desk.quit()?;
    drop(account);
    let mut figures = vec![minutes, budgets::size(programs[1])?];
    figures.push(budgets::first_window(&display, programs)?);
    figures.extend(budgets::many_websites(&display, programs)?);
    Ok(Some(figures.join("; ")))
}

/// Returns the desktop program, which is built unless it is given: see [`run`].
pub fn program(server: &Path, is_given: bool) -> Result<PathBuf, Failure> {
    let beside = server.with_file_name("rocknet-gui");
    if is_given && beside.is_file() {
        return Ok(beside);
    }
    run_command(cargo().args(["build", "--profile", "desktop", "--locked", "-p", "rocknet-gui"]))?;
    Ok(repository::target().join("desktop/rocknet-gui"))
}
