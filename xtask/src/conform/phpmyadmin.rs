//! Runs phpMyAdmin over HTTP/2, served with only `php = "auto"`: its login page, a wrong password, the right password,
//! and a table created from an uploaded file.

use super::application::Application;
use super::database::Database;
use super::session::{PageResponse, Session};
use crate::Failure;
use std::fs;
use std::path::Path;

/// Folder of Debian's package.
const FILES: &str = "/usr/share/phpmyadmin";
const USER: &str = "pilot";
const PASSWORD: &str = "spring tide 7:31";
const SETUP: &str = "CREATE DATABASE harbour;
CREATE USER pilot@localhost IDENTIFIED BY 'spring tide 7:31';
GRANT ALL ON harbour.* TO pilot@localhost;
";
const SITE: &str = "[site.\":8080\"]\nroot = \"www\"\nphp = \"auto\"\n";
/// File of the package that names its configuration and its writable folders.
const VENDOR_CONFIG: &str = "libraries/vendor_config.php";
/// SQL that is uploaded and run.
const DUMP: &str = "CREATE TABLE boats (name VARCHAR(40) PRIMARY KEY, seats INT);
INSERT INTO boats VALUES ('Heron', 2), ('Cormorant', 6);
";

pub fn run(program: &Path) -> Result<(), Failure> {
    let database = Database::start(SETUP)?;
    let mut application = Application::new()?;
    let root = application.copy(FILES, "www")?;
    let home = application.home().to_owned();
    let settings = home.join("config.inc.php");
    fs::write(&settings, configuration(&database.socket()))?;
    fs::create_dir(root.join("tmp"))?;
    application.let_write(&root.join("tmp"))?;
    let paths = fs::read_to_string(root.join(VENDOR_CONFIG))?
        .replace("/etc/phpmyadmin/config.inc.php", &settings.display().to_string())
        .replace("'/var/lib/phpmyadmin/tmp/'", "ROOT_PATH . 'tmp/'");
    fs::write(root.join(VENDOR_CONFIG), paths)?;
    let session = application.serve(program, SITE)?;

    session.get("/themes/pmahomme/css/theme.css")?.expect(200, &[])?;
    let page = log_in(&session, "neap tide")?;
    if !page.text().contains("Access denied for user") {
        return Err(page.wrong("a wrong password was accepted"));
    }
    let page = log_in(&session, PASSWORD)?.expect_redirect("/index.php")?;
    let page = session.get(&page.location)?.expect(200, &["pilot@localhost"])?;
    let token = page.field("token")?;

    let dump = home.join("boats.sql");
    fs::write(&dump, DUMP)?;
    let file = format!("import_file=@{};type=application/sql", dump.display());
    let token = format!("token={token}");
    let mut options = vec!["-F", file.as_str(), "-F", &token];
    for field in ["db=harbour", "import_type=database", "format=sql", "ajax_request=1"] {
        options.extend(["-F", field]);
    }
    let page = session.request("/index.php?route=/import", &options)?;
    page.expect(200, &["\"success\":true"])?;
    session
        .get("/index.php?route=/sql&db=harbour&table=boats&pos=0")?
        .expect(200, &["Heron", "Cormorant"])?;
    Ok(())
}

/// Returns the configuration of phpMyAdmin: one database server, reached by its socket.
fn configuration(socket: &Path) -> String {
    let socket = socket.display();
    format!(
        "<?php
$cfg['blowfish_secret'] = 'thirty-two bytes for the cookies';
$cfg['Servers'][1] = [
    'auth_type' => 'cookie', 'host' => 'localhost', 'socket' => '{socket}', 'AllowNoPassword' => false,
];
"
    )
}

/// Submits the login form.
fn log_in(session: &Session, password: &str) -> Result<PageResponse, Failure> {
    let page = session.get("/")?.expect(200, &["Welcome to"])?;
    let (token, php_session) = (page.field("token")?, page.field("set_session")?);
    let form = [
        ("route", "/"),
        ("token", &token),
        ("set_session", &php_session),
        ("pma_username", USER),
        ("pma_password", password),
        ("server", "1"),
    ];
    session.post("/index.php?route=/", &form)
}
