//! Uses the dashboard in headless Chromium: each view with data and in the states empty, loading, error and
//! disconnected, by keyboard, on a small screen, and judged by axe-core in light and dark colours.

mod arrival;
mod assertions;
mod form;
mod maintenance;
mod session;
mod site;
mod states;
mod tasks;
mod traffic;

use self::session::{DashboardSession, VIEWS};
use self::site::DashboardSite;
use crate::{Failure, tools};
use std::fs;
use std::path::Path;

/// Runs all checks. `pictures`: folder that gets pictures of some views.
pub fn run(program: &Path, pictures: Option<&Path>) -> Result<(), Failure> {
    let axe = fs::read_to_string(tools::npm_file("axe-core", "4.14.1", "axe.min.js")?)?;
    let mut session = DashboardSession::new(axe)?;
    let empty = DashboardSite::empty(program)?;
    session.sign_in(&empty)?;
    states::empty(&mut session)?;
    println!("views without data are correct");
    // A page that is open would report that its server has gone.
    session.browser.open("about:blank")?;
    drop(empty);

    let site = DashboardSite::full(program)?;
    session.sign_in(&site)?;
    tasks::run(&mut session, &site)?;
    site.visit()?;
    println!("a website was added, edited, removed and restored");
    for view in VIEWS {
        session.judge(view)?;
    }
    println!("all views are accessible and fit on a small screen");
    if let Some(folder) = pictures {
        session.pictures(folder, &site)?;
    }
    maintenance::run(&mut session)?;
    traffic::run(&mut session)?;
    println!("instructions are given by forms, with and without scripts");
    arrival::run(&mut session, &site)?;
    println!("links of other sites and unknown addresses lead to pages");
    states::loading(&mut session)?;
    states::errors(&mut session, &site)?;
    states::read_only(&mut session, &site)?;
    states::disconnected(&mut session, site)?;
    println!("the states loading, error and disconnected are shown");
    Ok(())
}
