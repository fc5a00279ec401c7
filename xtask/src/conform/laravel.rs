//! Runs a small Laravel application over HTTP/2 with `examples/laravel`.

use super::framework::{Framework, Running};
use crate::Failure;
use std::fs;
use std::path::Path;

const ROUTES: &str = include_str!("laravel/routes.php");
/// Folder of files that are uploaded and public. Its address is `/storage/`.
const STORAGE: &str = "storage/app/public";
const LARAVEL: Framework = Framework {
    name: "laravel",
    files: &[
        ("public/index.php", include_str!("laravel/index.php")),
        ("bootstrap.php", include_str!("laravel/bootstrap.php")),
        ("routes.php", ROUTES),
        ("config/app.php", include_str!("laravel/app.php")),
        ("config/session.php", include_str!("laravel/session.php")),
        ("config/view.php", include_str!("laravel/view.php")),
    ],
    writable: &[
        "bootstrap/cache",
        "storage/framework/sessions",
        "storage/framework/views",
        "storage/logs",
        STORAGE,
    ],
    without_token: 419,
};

pub fn run(program: &Path) -> Result<(), Failure> {
    let application = LARAVEL.serve(program)?;
    application.check()?;
    let session = &application.session;
    // As with nginx and Apache, the path can begin with the name of the script.
    application.check_json("/index.php/boats/heron", "/path", "boats/heron")?;
    for method in ["PUT", "PATCH", "DELETE"] {
        // A request without the CSRF token of the form is rejected.
        session.request("/boats/heron", &["-X", method])?.expect(419, &[])?;
    }
    let page = session.get("/download")?.expect(200, &["Route::get('/download'"])?;
    if page.content != ROUTES.as_bytes() {
        return Err(page.wrong("another file"));
    }
    for path in ["/high/water", "/high/water.html", "/build/none.css"] {
        session.get(path)?.expect(404, &["No such boat"])?;
    }
    check_storage(&application)
}

/// Checks that uploaded files are served, with and without the link that `artisan storage:link` creates, and that no
/// script among them runs.
fn check_storage(application: &Running) -> Result<(), Failure> {
    let (session, folder) = (&application.session, application.folder.join(STORAGE));
    fs::write(folder.join("heron.txt"), "two seats")?;
    fs::write(folder.join("evil.php"), "<?php echo 'this', ' ', 'ran';")?;
    for is_linked in [false, true] {
        if is_linked {
            std::os::unix::fs::symlink(&folder, application.folder.join("public/storage"))?;
        }
        session.get("/storage/heron.txt")?.expect(200, &["two seats"])?;
        session.get("/storage/none.txt")?.expect(404, &["No such boat"])?;
        for path in ["/storage/evil.php", "/storage/evil.php/more", "/storage/../logs"] {
            let page = session.get(path)?;
            if page.status == 200 || page.text().contains("this ran") || page.text().contains("<?php") {
                return Err(page.wrong("the script was run, or its source was sent"));
            }
        }
    }
    Ok(())
}
