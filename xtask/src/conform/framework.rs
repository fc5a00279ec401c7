//! A small application of a PHP framework, served over HTTP/2 by the example of that framework. The frameworks share
//! most requests: routes through one front controller, a form with a session, other methods, and a stream.

use super::application::Application;
use super::session::Session;
use crate::{Failure, repository};
use std::fs;
use std::path::{Path, PathBuf};

/// Body of `/stream`: the numbers below `PIECES` in four digits, each repeated `TIMES` times.
const PIECES: usize = 1000;
const TIMES: usize = 250;
/// Bytes of an uploaded file: more than PHP accepts by default (2 MiB).
const PICTURE: usize = 5_000_000;
/// Style sheet of the application, a file below the document root.
const STYLE: &str = "h1 { color: teal }\n";

/// The files of an application.
pub struct Framework {
    /// Name of the example, and of the folder with the sources of the application.
    pub name: &'static str,
    /// Path in the application's folder, and content. The document root is `public`.
    pub files: &'static [(&'static str, &'static str)],
    /// Folders that the application writes to.
    pub writable: &'static [&'static str],
    /// Status of a form that is submitted without the token of its page.
    pub without_token: u16,
}

/// An application that is being served.
pub struct Running {
    pub session: Session,
    /// Folder of the application, in which `public` is the document root.
    pub folder: PathBuf,
    files: &'static [(&'static str, &'static str)],
    without_token: u16,
    _application: Application,
}

impl Framework {
    /// Writes the application where its example expects it, and serves it with the configuration of the example.
    pub fn serve(&self, program: &Path) -> Result<Running, Failure> {
        let mut application = Application::new()?;
        let folder = application.home().join("app");
        fs::create_dir_all(folder.join("public/build"))?;
        for path in self.writable {
            fs::create_dir_all(folder.join(path))?;
            application.let_write(&folder.join(path))?;
        }
        let (style, settings) = ("public/build/app.css", ".env");
        let others = [(style, STYLE), (settings, "APP_SECRET=ebb\n"), ("public/.htaccess", "")];
        for (path, text) in self.files.iter().chain(&others) {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&folder))?;
            fs::write(path, text)?;
        }
        fs::write(folder.join("public/info.php"), "<?php echo 'this', ' ', 'ran';")?;
        let example = repository::root().join("examples").join(self.name).join("rocknet.toml");
        let session = application.serve(program, &fs::read_to_string(example)?)?;
        Ok(Running {
            session,
            folder,
            files: self.files,
            without_token: self.without_token,
            _application: application,
        })
    }
}

impl Running {
    /// Checks what the applications of all frameworks respond.
    pub fn check(&self) -> Result<(), Failure> {
        let session = &self.session;
        session.get("/")?.expect(200, &["Boats for hire"])?;
        let page = session.get("/build/app.css")?.expect(200, &[STYLE])?;
        if !page.media_type.starts_with("text/css") {
            return Err(page.wrong(&page.media_type));
        }
        self.check_routes()?;
        self.check_form()?;
        self.check_stream()?;
        self.check_forbidden()?;
        session
            .request("/user", &["-u", "ada:high tide"])?
            .expect(200, &["ada, high tide"])?;
        Ok(())
    }

    /// Checks the path, the query and the scheme as the client wrote them.
    fn check_routes(&self) -> Result<(), Failure> {
        let rows = [
            ("/boats/heron?seats=2", "/name", "heron"),
            ("/boats/heron?seats=2", "/query", "2"),
            ("/boats/heron?seats=2", "/secure", "true"),
            ("/boats/grey%20heron", "/name", "grey heron"),
            ("/boats/h%C3%A9ron", "/name", "héron"),
        ];
        for (path, pointer, expected) in rows {
            self.check_json(path, pointer, expected)?;
        }
        let path = "/boats/heron?seats=2";
        self.check_json(path, "/url", &self.session.url(path))?;
        // A path has no slash at its end.
        let page = self.session.get("/boats/heron/?seats=2")?.expect(301, &[])?;
        if page.location != self.session.url(path) {
            return Err(page.wrong("not redirected to the path without the slash"));
        }
        Ok(())
    }

    /// Checks the string at `pointer` of a JSON page.
    pub fn check_json(&self, path: &str, pointer: &str, expected: &str) -> Result<(), Failure> {
        let page = self.session.get(path)?.expect(200, &[])?;
        if page.json(pointer)? != expected {
            return Err(page.wrong(&format!("{pointer} is not {expected:?}")));
        }
        Ok(())
    }

    /// Submits a form with a file and checks what the session keeps.
    fn check_form(&self) -> Result<(), Failure> {
        let session = &self.session;
        let picture = self.folder.join("picture");
        fs::write(&picture, vec![b'x'; PICTURE])?;
        session.get("/text")?.expect(200, &["nothing"])?;
        session
            .post("/form", &[("text", "ebb")])?
            .expect(self.without_token, &[])?;
        let token = session.get("/form")?.field("_token")?;
        let page = session.post("/form", &[("_token", &token), ("text", "ebb & flow")])?;
        let page = page.expect_redirect("/text")?;
        session.get(&page.location)?.expect(200, &["ebb & flow, 0"])?;
        let (field, file) = (format!("_token={token}"), format!("picture=@{}", picture.display()));
        let page = session.request("/form", &["-F", &field, "-F", "text=flow", "-F", &file])?;
        page.expect_redirect("/text")?;
        session.get("/text")?.expect(200, &[&format!("flow, {PICTURE}")])?;
        // Methods that HTML forms lack are sent as a form field.
        let page = session.post("/boats/heron", &[("_token", &token), ("_method", "PUT")])?;
        page.expect(200, &["PUT heron"])?;
        Ok(())
    }

    fn check_stream(&self) -> Result<(), Failure> {
        let page = self.session.get("/stream")?;
        let pieces = (0..PIECES).map(|number| format!("{number:04}").repeat(TIMES));
        if page.text() != pieces.collect::<String>() {
            return Err(page.wrong("other pieces"));
        }
        Ok(())
    }

    /// Checks that only the front controller runs, and that files beside the document root are out of reach.
    fn check_forbidden(&self) -> Result<(), Failure> {
        let hidden = ["/.env", "/.htaccess", "/%2eenv", "/../.env", "/build/..%2f..%2f.env"];
        for path in hidden.iter().chain(&["/info.php", "/info.php/boats"]) {
            let page = self.session.get(path)?;
            let text = page.text();
            if page.status == 200 || text.contains("APP_SECRET") || text.contains("this ran") {
                return Err(page.wrong("a file that is not public was served or run"));
            }
        }
        for (path, _) in self.files.iter().filter(|(path, _)| !path.starts_with("public/")) {
            let page = self.session.get(&format!("/../{path}"))?;
            if page.status == 200 || page.text().contains("<?php") {
                return Err(page.wrong("a file outside of the root was served"));
            }
        }
        Ok(())
    }
}
