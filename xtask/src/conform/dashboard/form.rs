//! The form of a website: live checks, keyboard, kinds, names, copies, conflicts, and a connection that fails.

use super::assertions::{contains, expect};
use super::session::DashboardSession;
use super::site::DashboardSite;
use crate::Failure;
use std::fs;

pub fn run(session: &mut DashboardSession, site: &DashboardSite, name: &str) -> Result<(), Failure> {
    folder(session, site, name)?;
    checks(session)?;
    kinds(session)?;
    values(session, site)?;
    conflict(session, site)?;
    copy(session, site)?;
    user(session, site)?;
    lost_connection(session)
}

fn open(session: &mut DashboardSession, name: &str) -> Result<(), Failure> {
    session.open(&format!("/websites/edit?name={name}"))
}

/// Changes the folder, by the link in the list and by keyboard.
fn folder(session: &mut DashboardSession, site: &DashboardSite, name: &str) -> Result<(), Failure> {
    session.open("/websites")?;
    session.click(&format!("[data-key='{name}'] a.button"))?;
    session
        .browser
        .wait_for("location.pathname === '/websites/edit' && document.querySelector('form[data-ready]')")?;
    session.fill("root", "www")?;
    session.browser.press("Enter")?;
    saved(session, name)?;
    contains(site, "root = \"garden\"", false)?;
    // A reload of the page does not report the change again.
    expect(session, "!location.search.includes('saved')")?;
    session.accessible("/websites/edit after a change")?;
    session.no_errors("/websites/edit")
}

/// A wrong value is reported beside its field while it is typed. The field keeps the focus and the text.
fn checks(session: &mut DashboardSession) -> Result<(), Failure> {
    open(session, "files.localhost")?;
    session.fill("root", "nowhere")?;
    session
        .browser
        .wait_for("document.getElementById('root').getAttribute('aria-invalid') === 'true'")?;
    expect(
        session,
        "document.getElementById('root-problem').textContent.includes('nowhere')",
    )?;
    expect(
        session,
        "document.activeElement.id === 'root' && document.activeElement.value === 'nowhere'",
    )?;
    session.accessible("/websites/edit with a problem")?;
    session.fill("headers", "no separator")?;
    session
        .browser
        .wait_for("document.getElementById('headers').getAttribute('aria-invalid') === 'true'")?;
    session.fill("root", "www")?;
    session.fill("headers", "X-Frame-Options = DENY")?;
    session.browser.wait_for("!document.querySelector('[aria-invalid]')")?;
    // A form that is not complete is not sent.
    session.fill("root", " ")?;
    session.browser.press("Enter")?;
    session
        .browser
        .wait_for("document.activeElement.id === 'root' && document.activeElement.ariaInvalid === 'true'")?;
    session.shows("Fill in this field.")?;
    leave(session)?;
    // The browser has reported the refused request as an error, so the errors are discarded.
    session.browser.errors().map(drop)
}

/// The kind of content decides which fields are shown. It is chosen by keyboard.
fn kinds(session: &mut DashboardSession) -> Result<(), Failure> {
    open(session, "files.localhost")?;
    let hidden = |name: &str| format!("document.querySelector('[data-field={name}]').hidden");
    expect(
        session,
        &format!("!{} && {} && {}", hidden("root"), hidden("php"), hidden("proxy")),
    )?;
    session
        .browser
        .evaluate("document.querySelector('[name=kind]:checked').focus()")?;
    session.browser.press("ArrowDown")?;
    expect(
        session,
        &format!("!{} && !{} && {}", hidden("root"), hidden("php"), hidden("proxy")),
    )?;
    session.browser.press("ArrowDown")?;
    expect(
        session,
        &format!("{} && {} && !{}", hidden("root"), hidden("php"), hidden("proxy")),
    )?;
    session.accessible("/websites/edit of another kind")?;
    leave(session)?;
    session.no_errors("/websites/edit")
}

/// Several fields are saved together. Text of the file that the form does not show is kept.
fn values(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    let before = site.config()?;
    open(session, "files.localhost")?;
    session.fill("aliases", "papers.localhost\ndrawings.localhost")?;
    session.fill("headers", "X-Frame-Options = DENY")?;
    session.fill("limits-body_size", "1MiB")?;
    session.click("#browse")?;
    session.click("form .actions button")?;
    saved(session, "files.localhost")?;
    contains(site, "aliases = [\"papers.localhost\", \"drawings.localhost\"]", true)?;
    contains(site, "headers = { X-Frame-Options = \"DENY\" }", true)?;
    contains(site, "limits = { body_size = \"1MiB\" }", true)?;
    contains(site, "browse = true", true)?;
    contains(site, "# Comments are kept.", true)?;
    expect(
        session,
        "document.getElementById('aliases').value.includes('papers.localhost')",
    )?;
    // Saving again changes nothing. Undo is offered only with the report of a change.
    session.click("form .actions button")?;
    session.shows("Nothing is changed.")?;
    open(session, "files.localhost")?;
    session.fill("limits-body_size", "2MiB")?;
    session.click("form .actions button")?;
    saved(session, "files.localhost")?;
    session.click("[data-do=unsave]")?;
    session.browser.wait_for("location.pathname === '/websites'")?;
    contains(site, "limits = { body_size = \"1MiB\" }", true)?;
    if !site.config()?.starts_with(before.lines().next().unwrap_or_default()) {
        return Err("the beginning of the file has changed".into());
    }
    session.no_errors("/websites/edit")
}

/// Another editor has changed the file since the form was loaded.
fn conflict(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    open(session, "files.localhost")?;
    let before = site.config()?;
    site.write_config(&format!("{before}# By hand.\n"))?;
    session.fill("index", "home.html\nindex.html")?;
    session.click("form .actions button")?;
    session.shows("was changed by another program in the meantime")?;
    expect(
        session,
        "document.getElementById('index').value === 'home.html\\nindex.html'",
    )?;
    contains(site, "home.html", false)?;
    // Saving again confirms the change, which is then made in the new text of the file.
    session.click("form .actions button")?;
    saved(session, "files.localhost")?;
    contains(site, "index = [\"home.html\", \"index.html\"]", true)?;
    contains(site, "# By hand.", true)?;
    // The browser has reported the refused request as an error, so the errors are discarded.
    session.browser.errors().map(drop)
}

fn copy(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    session.open("/websites/copy?name=files.localhost")?;
    session.click("form .actions button")?;
    session.shows("Fill in this field.")?;
    session.fill("name", "shop.localhost")?;
    session
        .browser
        .wait_for("document.getElementById('name-problem').textContent.includes('already exists')")?;
    session.fill("name", "copy.localhost")?;
    session.browser.press("Enter")?;
    saved(session, "copy.localhost")?;
    contains(site, "[site.\"copy.localhost\"]", true)?;
    // The form now edits the copy, so another name renames it.
    session.fill("name", "other.localhost")?;
    session.browser.press("Enter")?;
    saved(session, "other.localhost")?;
    contains(site, "copy.localhost", false)?;
    session.click("form [data-do=remove]")?;
    session.browser.wait_for("location.pathname === '/websites'")?;
    contains(site, "other.localhost", false)?;
    session.browser.errors().map(drop)
}

/// Adds a user with a password. The file of the website gets only a hash of the password.
fn user(session: &mut DashboardSession, site: &DashboardSite) -> Result<(), Failure> {
    let before = fs::read_to_string(site.included())?;
    open(session, "notes.localhost")?;
    session.fill("new-user", "ann")?;
    session.click("form .actions button")?;
    session.shows("the password is empty")?;
    session.fill("new-password", "a long secret")?;
    session.browser.press("Enter")?;
    saved(session, "notes.localhost")?;
    let text = fs::read_to_string(site.included())?;
    if !text.contains("auth = { ann = \"$argon2id$") || text.contains("secret") {
        return Err(format!("the user is not added: {text}").into());
    }
    expect(session, "document.getElementById('new-password').value === ''")?;
    session.click("[data-do=unsave]")?;
    session.browser.wait_for("location.pathname === '/websites'")?;
    if fs::read_to_string(site.included())? != before {
        return Err("the user is not removed again".into());
    }
    session.browser.errors().map(drop)
}

/// The server does not respond: nothing that was typed is lost.
fn lost_connection(session: &mut DashboardSession) -> Result<(), Failure> {
    open(session, "files.localhost")?;
    session.browser.block(&["*/websites/edit*"])?;
    session.fill("root", "typed before")?;
    session.click("form .actions button")?;
    session.shows("The server does not respond.")?;
    expect(session, "document.getElementById('root').value === 'typed before'")?;
    session.browser.block(&[])?;
    leave(session)?;
    expect(session, "document.getElementById('root').value === 'www'")?;
    session.browser.errors().map(drop)
}

/// Waits for the report that a website is saved, on a page whose form can be used.
fn saved(session: &mut DashboardSession, name: &str) -> Result<(), Failure> {
    session.browser.wait_for(&format!(
        "document.getElementById('saved')?.textContent.includes('{name} is saved') && \
         document.querySelector('form[data-ready]')"
    ))
}

/// Discards the changes, so that the browser does not ask about them.
fn leave(session: &mut DashboardSession) -> Result<(), Failure> {
    session.click("form [type=reset]")?;
    session.browser.wait_for("!document.querySelector('[aria-invalid]')")
}
