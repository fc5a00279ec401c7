//! Runs a small Laravel application over HTTP/2, served by two lines of configuration: routes through one front
//! controller, a form with a session, other methods, a download, and a stream.

use super::application::Application;
use super::session::Session;
use crate::Failure;
use std::fs;
use std::path::Path;

const SITE: &str = "[site.\":8080\"]\nroot = \"public\"\nphp = \"auto\"\n";
/// Files in the application's folder; the document root is `public`.
const FILES: [(&str, &str); 6] = [
    ("public/index.php", include_str!("laravel/index.php")),
    ("bootstrap.php", include_str!("laravel/bootstrap.php")),
    ("routes.php", include_str!("laravel/routes.php")),
    ("config/app.php", include_str!("laravel/app.php")),
    ("config/session.php", include_str!("laravel/session.php")),
    ("config/view.php", include_str!("laravel/view.php")),
];
/// Folders that the application writes to.
const FOLDERS: [&str; 4] = [
    "bootstrap/cache",
    "storage/framework/sessions",
    "storage/framework/views",
    "storage/logs",
];
/// Body of `/stream`: the numbers below `PIECES` in four digits, each repeated `TIMES` times.
const PIECES: usize = 1000;
const TIMES: usize = 250;
/// Bytes of an uploaded file: more than PHP accepts by default (2 MiB).
const PICTURE: usize = 5_000_000;

pub fn run(program: &Path) -> Result<(), Failure> {
    let mut application = Application::new()?;
    let home = application.home().to_owned();
    for folder in FOLDERS.iter().chain(&["public", "config"]) {
        fs::create_dir_all(home.join(folder))?;
    }
    for (name, text) in FILES {
        fs::write(home.join(name), text)?;
    }
    fs::write(home.join("public/robots.txt"), "User-agent: *\n")?;
    fs::write(home.join("picture"), vec![b'x'; PICTURE])?;
    for folder in ["bootstrap", "storage"] {
        application.let_write(&home.join(folder))?;
    }
    let session = application.serve(program, SITE)?;

    session.get("/")?.expect(200, &["Boats for hire"])?;
    session.get("/robots.txt")?.expect(200, &["User-agent"])?;
    routes(&session)?;
    form(&session, &home.join("picture"))?;
    for method in ["PUT", "PATCH", "DELETE"] {
        // A request without the CSRF token of the form is rejected.
        session.request("/boats/heron", &["-X", method])?.expect(419, &[])?;
    }
    responses(&session)?;
    for path in ["/high/water", "/high/water.html"] {
        session.get(path)?.expect(404, &["No such boat"])?;
    }
    // Files beside the document root are not served.
    let page = session.get("/../routes.php")?;
    if page.status == 200 || page.text().contains("Route::") {
        return Err(page.wrong("a file outside the root was served"));
    }
    Ok(())
}

/// Checks the path, the query and the scheme as the client wrote them.
fn routes(session: &Session) -> Result<(), Failure> {
    let rows = [
        ("/boats/heron?seats=2", "/name", "heron"),
        ("/boats/heron?seats=2", "/query", "2"),
        ("/boats/heron?seats=2", "/secure", "true"),
        ("/boats/grey%20heron", "/name", "grey heron"),
        ("/boats/h%C3%A9ron", "/name", "héron"),
        // As with other servers, the path can begin with the name of the script.
        ("/index.php/boats/heron", "/path", "boats/heron"),
    ];
    for (path, pointer, expected) in rows {
        let page = session.get(path)?.expect(200, &[])?;
        if page.json(pointer)? != expected {
            return Err(page.wrong(&format!("{pointer} is not {expected:?}")));
        }
    }
    let path = "/boats/heron?seats=2";
    let page = session.get(path)?;
    if page.json("/url")? != session.url(path) {
        return Err(page.wrong("another URL"));
    }
    Ok(())
}

/// Submits a form with a file and checks what the session keeps.
fn form(session: &Session, picture: &Path) -> Result<(), Failure> {
    session.get("/text")?.expect(200, &["nothing"])?;
    session.post("/form", &[("text", "ebb")])?.expect(419, &[])?;
    let token = session.get("/form")?.field("_token")?;
    let page = session.post("/form", &[("_token", &token), ("text", "ebb & flow")])?;
    let page = page.expect_redirect("/text")?;
    session.get(&page.location)?.expect(200, &["ebb & flow, 0"])?;
    let (token, file) = (format!("_token={token}"), format!("picture=@{}", picture.display()));
    let page = session.request("/form", &["-F", &token, "-F", "text=flow", "-F", &file])?;
    page.expect_redirect("/text")?;
    session.get("/text")?.expect(200, &[&format!("flow, {PICTURE}")])?;
    // Methods that HTML forms lack are sent as a form field.
    let token = token.trim_start_matches("_token=");
    let page = session.post("/boats/heron", &[("_token", token), ("_method", "PUT")])?;
    page.expect(200, &["PUT heron"])?;
    Ok(())
}

/// Checks responses that are not pages.
fn responses(session: &Session) -> Result<(), Failure> {
    // `/download` sends `routes.php`, the third of the files.
    let page = session.get("/download")?.expect(200, &["Route::get('/download'"])?;
    if page.content != FILES[2].1.as_bytes() {
        return Err(page.wrong("another file"));
    }
    let page = session.get("/stream")?;
    let pieces = (0..PIECES).map(|number| format!("{number:04}").repeat(TIMES));
    if page.text() != pieces.collect::<String>() {
        return Err(page.wrong("other pieces"));
    }
    Ok(())
}
