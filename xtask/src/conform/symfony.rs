//! Runs a small Symfony application over HTTP/2 with `examples/symfony`.

use super::framework::Framework;
use crate::Failure;
use std::path::Path;

const KERNEL: &str = include_str!("symfony/Kernel.php");
const SYMFONY: Framework = Framework {
    name: "symfony",
    files: &[
        ("public/index.php", include_str!("symfony/index.php")),
        ("src/Kernel.php", KERNEL),
    ],
    writable: &["var/cache", "var/log", "var/sessions"],
    without_token: 403,
};

pub fn run(program: &Path) -> Result<(), Failure> {
    let application = SYMFONY.serve(program)?;
    application.check()?;
    let session = &application.session;
    // Generated addresses contain no front controller, and an address with it is redirected.
    let (path, url) = ("/boats/heron", session.url("/boats/heron"));
    application.check_json(path, "/generated", &url)?;
    application.check_json(path, "/base", "")?;
    for (path, expected) in [
        ("/index.php/boats/heron", url.as_str()),
        ("/index.php", &session.url("/")),
    ] {
        let page = session.get(path)?.expect(308, &[])?;
        if page.location != expected {
            return Err(page.wrong("another redirect"));
        }
    }
    for method in ["PUT", "PATCH", "DELETE"] {
        let page = session.request("/boats/heron", &["-X", method])?;
        page.expect(200, &[&format!("{method} heron")])?;
    }
    session.request("/text", &["-X", "PUT"])?.expect(200, &["flow"])?;
    session.request("/stream", &["-I"])?.expect(200, &[])?;
    session.request("/form", &["-X", "DELETE"])?.expect(405, &["405"])?;
    let page = session.get("/download")?.expect(200, &["class Kernel"])?;
    if page.content != KERNEL.as_bytes() {
        return Err(page.wrong("another file"));
    }
    // Symfony sends the part of the file itself.
    let page = session.request("/download", &["-r", "0-4"])?.expect(206, &[])?;
    if page.content != KERNEL.as_bytes()[..5] {
        return Err(page.wrong("another part"));
    }
    for path in ["/high/water", "/high/water.html", "/build/none.css"] {
        session.get(path)?.expect(404, &["An Error Occurred: Not Found"])?;
    }
    Ok(())
}
