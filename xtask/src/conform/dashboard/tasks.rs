//! Common tasks with the dashboard: adds, edits, disables and removes a website, edits the text, undoes changes, drains
//! an upstream.

use super::assertions::{contains, expect};
use super::form;
use super::session::DashboardSession;
use super::site::DashboardSite;
use crate::Failure;
use std::fs;
use std::net::TcpListener;

pub fn run(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    overview(session, site)?;
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let name = format!(":{free}");
    add(session, site, &name)?;
    form::run(session, site, &name)?;
    disable(session, site, &name)?;
    remove(session, site, &name)?;
    text(session, site)?;
    included(session, site)?;
    history(session, site)?;
    upstreams(session)?;
    logs(session, site)
}

/// The charts get their first values while the focus stays where it is.
fn overview(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/")?;
    session
        .browser
        .evaluate("document.querySelector('[data-do=reload]').focus()")?;
    site.visit()?;
    session
        .browser
        .wait_for("document.querySelector('[data-chart=requests] polyline').points.length > 1")?;
    session
        .browser
        .wait_for("document.querySelector('[data-field=requests]').textContent === '200'")?;
    session
        .browser
        .wait_for("document.querySelector('#sites th')?.textContent === 'files.localhost'")?;
    expect(session, "document.activeElement.dataset.do === 'reload'")?;
    // The question before a stop is left by keyboard. The server then does not stop.
    session.browser.press("Tab")?;
    session.browser.press("Enter")?;
    session.browser.wait_for("document.querySelector('dialog[open]')")?;
    session.accessible("/ with a question")?;
    session.browser.press("Escape")?;
    session.browser.wait_for("!document.querySelector('dialog')")?;
    expect(session, "document.activeElement.dataset.do === 'stop'")?;
    session.no_errors("/")
}

/// Adds a website by keyboard. Its name is a free port, because 80 and 443 may be in use.
fn add(session: &mut DashboardSession, site: &DashboardSite, name: &str) -> Result<(), Failure> {
    session.open("/websites/add")?;
    session.fill("root", "nowhere")?;
    expect(session, "document.getElementById('name').value === 'nowhere.localhost'")?;
    // The folder is checked while it is typed.
    session
        .browser
        .wait_for("document.getElementById('root').getAttribute('aria-invalid') === 'true'")?;
    expect(session, "document.activeElement.id === 'root'")?;
    session.accessible("/websites/add with a problem")?;
    session.fill("root", "garden")?;
    session.browser.wait_for("!document.querySelector('[aria-invalid]')")?;
    session.browser.press("Tab")?;
    expect(
        session,
        "document.activeElement.id === 'name' && document.activeElement.value === 'garden.localhost'",
    )?;
    session.fill("name", "files.localhost")?;
    session.browser.press("Enter")?;
    session.shows("There is a website with this name already.")?;
    session.fill("name", name)?;
    session.browser.press("Enter")?;
    session.shows(&format!("{name} is saved"))?;
    let text = site.config()?;
    let added = format!("[site.\"{name}\"]\nroot = \"garden\"");
    if !text.contains("# Comments are kept.") || !text.contains(&added) {
        return Err(format!("the website is not in the file: {text}").into());
    }
    session.open("/websites")?;
    session.shows(name)?;
    // The browser has reported the refused form as an error, so the errors are discarded.
    session.browser.errors().map(drop)
}

/// Removes a website and undoes that.
fn remove(session: &mut DashboardSession, site: &DashboardSite, name: &str) -> Result<(), Failure> {
    let row = format!("document.querySelector('[data-key=\"{name}\"]')");
    session.open("/websites")?;
    session.click(&format!("[data-key='{name}'] [data-do=remove]"))?;
    session.shows(&format!("{name} is removed from the configuration. Its files stay."))?;
    session.browser.wait_for(&format!("!{row}"))?;
    contains(site, name, false)?;
    session.click("#notice .actions button")?;
    session.shows("The change is undone.")?;
    session.browser.wait_for(&row)?;
    contains(site, name, true)?;
    session.no_errors("/websites")
}

/// Takes a website out of service, and puts it into service again.
fn disable(session: &mut DashboardSession, site: &DashboardSite, name: &str) -> Result<(), Failure> {
    let tag = |text: &str| format!("document.querySelector('[data-key=\"{name}\"] .tag').textContent === '{text}'");
    session.open("/websites")?;
    session.click(&format!("[data-key='{name}'] [data-do=disable]"))?;
    session.shows(&format!("{name} is not served any more."))?;
    session.browser.wait_for(&tag("◼ Disabled"))?;
    contains(site, "enabled = false", true)?;
    session.accessible("/websites with a disabled website")?;
    session.click(&format!("[data-key='{name}'] [data-do=serve]"))?;
    session.browser.wait_for(&tag("● Served"))?;
    contains(site, "enabled = false", false)?;
    session.no_errors("/websites")
}

/// Edits an included file, whose changes are in the history, too.
fn included(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    let file = site.included();
    let before = fs::read_to_string(&file)?;
    session.open("/settings")?;
    session.accessible("/settings with several files")?;
    session.click(".files li:last-child a")?;
    session
        .browser
        .wait_for("document.getElementById('text')?.value.startsWith('# Included.')")?;
    session
        .browser
        .wait_for("document.getElementById('verdict').dataset.state === 'valid'")?;
    session.fill("text", &format!("{before}# More.\n"))?;
    session.click("#settings .actions button")?;
    session.shows("is reloaded")?;
    if fs::read_to_string(&file)? != format!("{before}# More.\n") {
        return Err("the included file is not saved".into());
    }
    session.open("/history")?;
    session.shows("notes.toml")?;
    session.click(".changes [data-do=undo]")?;
    session.shows("The change is undone.")?;
    if fs::read_to_string(&file)? != before {
        return Err("the change of the included file is not undone".into());
    }
    contains(site, "# An end.", true)?;
    session.no_errors("/settings with an included file")
}

/// Edits the text, with an error on the way.
fn text(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/settings")?;
    session
        .browser
        .wait_for("document.getElementById('verdict').dataset.state === 'valid'")?;
    let before = site.config()?;
    let line = before.lines().count() + 1;
    session.fill("text", &format!("{before}rot = 1\n"))?;
    session
        .browser
        .wait_for("document.getElementById('verdict').dataset.state === 'invalid'")?;
    session.shows(&format!("Line {line}"))?;
    session.click("#findings button")?;
    expect(session, "document.activeElement.id === 'text'")?;
    expect(session, "getSelection().toString() === 'rot = 1'")?;
    session.accessible("/settings with an error")?;
    session.click("#settings .actions button")?;
    session.shows("is not changed: the new text is not valid")?;
    contains(site, "rot = 1", false)?;
    session.fill("text", &format!("{before}# An end.\n"))?;
    session
        .browser
        .wait_for("document.getElementById('verdict').dataset.state === 'valid'")?;
    session.click("#settings .actions button")?;
    session.shows("is reloaded")?;
    contains(site, "# An end.", true)?;
    // Another editor has changed the file in the meantime.
    site.write_config(&format!("{before}# Another end.\n"))?;
    session.fill("text", &format!("{before}# My end.\n"))?;
    session.click("#settings .actions button")?;
    session.shows("was changed by another program in the meantime")?;
    contains(site, "# Another end.", true)?;
    session
        .browser
        .evaluate("document.querySelector('[data-do=revert]').click()")?;
    // The browser has reported the refused requests as errors, so the errors are discarded.
    session.browser.errors()?;
    site.write_config(&format!("{before}# An end.\n"))
}

fn history(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/history")?;
    session.shows("+# An end.")?;
    // The changes of the included file come first. A change of the main file can be undone without them.
    expect(
        session,
        "document.querySelector('.changes time').dateTime.startsWith('20')",
    )?;
    let latest = latest_of_main(session)?;
    session.click(&format!("li[data-key='{latest}'] [data-do=undo]"))?;
    session.shows("The change is undone.")?;
    contains(site, "# An end.", false)?;
    site.check()?;
    session.no_errors("/history")
}

/// Returns the number of the latest change of the main file.
fn latest_of_main(session: &mut DashboardSession) -> Result<String, Failure> {
    let script = "[...document.querySelectorAll('.changes > li')].find(one => \
                  one.querySelector('code').textContent.endsWith('rocknet.toml')).dataset.key";
    let key = session.browser.evaluate(script)?;
    Ok(key.as_str().unwrap_or_default().to_owned())
}

fn upstreams(session: &mut DashboardSession) -> Result<(), Failure> {
    session.open("/upstreams")?;
    session.click("[data-do=drain]")?;
    session
        .browser
        .wait_for("document.querySelector('#live .tag').textContent === '◼ Drained'")?;
    session.click("[data-do=enable]")?;
    session
        .browser
        .wait_for("document.querySelector('#live .tag').textContent === '● Up'")?;
    session.no_errors("/upstreams")
}

/// Shows the log of the website with this name, or of all websites if the name is empty.
fn choose_site(session: &mut DashboardSession, name: &str) -> Result<(), Failure> {
    session.browser.evaluate(&format!(
        "document.getElementById('site').value = '{name}', \
         document.getElementById('site').dispatchEvent(new Event('input', {{ bubbles: true }}))",
    ))?;
    Ok(())
}

fn logs(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/logs")?;
    session.browser.wait_for("document.querySelector('#log .level-info')")?;
    site.visit()?;
    session
        .browser
        .wait_for("document.querySelector('#log .level-access')")?;
    choose_site(session, "none.test")?;
    session.shows("No line matches yet")?;
    choose_site(session, "")?;
    session.browser.wait_for("document.querySelector('#log .level-info')")?;
    session.browser.evaluate(
        "document.getElementById('level').value = 'error', \
         document.getElementById('level').dispatchEvent(new Event('input', { bubbles: true }))",
    )?;
    session
        .browser
        .wait_for("!document.querySelector('#log .level-info')")?;
    session.browser.evaluate(
        "document.getElementById('written').value = 'debug', \
         document.getElementById('written').dispatchEvent(new Event('input', { bubbles: true }))",
    )?;
    session.shows("of the level debug")?;
    session.no_errors("/logs")
}
