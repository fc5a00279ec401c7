//! Runs WordPress over HTTP/2 with `examples/wordpress`, as visitors and authors use it. The step installs WordPress
//! through its own pages, logs in, publishes a post with a picture under a pretty permalink, reads the post, checks the
//! response cache, and opens the editor in headless Chromium.

mod cache;
mod speed;

use super::application::Application;
use super::browser;
use super::database::Database;
use super::session::Session;
use super::trusted;
use crate::Failure;
use crate::command::output;
use crate::repository;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of Debian's package.
const FILES: &str = "/usr/share/wordpress";
/// Access log, in addition to the configuration of the example.
const LOG: &str = "\n[log]\naccess = \"access.log\"\n";
const SETUP: &str = "CREATE DATABASE wordpress;
CREATE USER wordpress@localhost IDENTIFIED BY 'low-tide';
GRANT ALL ON wordpress.* TO wordpress@localhost;
";
const USER: &str = "harbour";
const PASSWORD: &str = "Herons fly at ebb, 6:12";
/// Script that is stored among the uploaded pictures. No file contains its output, so a response with the output proves
/// that the script ran.
const SCRIPT_UPLOAD: &str = "<?php echo 'this', ' ', 'ran';";
const RAN: &str = "this ran";
/// PHP code that creates a picture of noise: larger than PHP accepts by default (2 MiB), and large enough for smaller
/// copies.
const PICTURE: &str = "mt_srand(7); $i = imagecreatetruecolor(1200, 900);
for ($y = 0; $y < 900; $y++) for ($x = 0; $x < 1200; $x++) imagesetpixel($i, $x, $y, mt_rand(0, 0xffffff));
imagepng($i, $argv[1]);";
const PICTURE_LEAST: usize = 2 << 20;
/// Time for the editor in milliseconds on the browser's virtual clock, which stops while the browser waits for the
/// network.
const BUDGET: &str = "--virtual-time-budget=30000";
/// Notice of jQuery in the browser's console, which is not an error.
const JQUERY_NOTICE: &str = "JQMIGRATE: Migrate is installed";
/// A page that logs in as soon as it is loaded and continues to the editor.
const LOGIN_PAGE: &str = "enter.html";

pub fn run(program: &Path) -> Result<(), Failure> {
    let blog = Blog::publish(program)?;
    let session = blog.application.session()?;
    read(&session, &blog.post, &blog.sent, &fs::read(&blog.picture)?)?;
    comment(&session, &blog.post)?;
    fs::write(blog.root.join("wp-content/uploads/evil.php"), SCRIPT_UPLOAD)?;
    check_forbidden(&session, &blog.sent)?;
    let published = cache::PublishedBlog {
        application: &blog.application,
        root: &blog.root,
        post: &blog.post,
        author: &blog.author,
    };
    cache::check(program, &published)?;
    fs::write(blog.root.join(LOGIN_PAGE), login_page())?;
    let home = blog.application.home();
    trusted::rocknet(program, "trust", home)?;
    write_in_browser(&session.url(&format!("/{LOGIN_PAGE}")), home)
}

/// WordPress with a published post.
pub struct Blog {
    pub application: Application,
    /// Session of the author, who is logged in.
    author: Session,
    /// Folder of the files of WordPress.
    root: PathBuf,
    /// URL of the post.
    pub post: String,
    pub sent: Upload,
    /// File that was uploaded.
    pub picture: PathBuf,
    _database: Database,
}

impl Blog {
    /// Installs WordPress, and publishes a post with a picture.
    pub fn publish(program: &Path) -> Result<Blog, Failure> {
        let database = Database::start(SETUP)?;
        let mut application = Application::new()?;
        let root = application.copy(FILES, "www")?;
        // Pretty permalinks are the server's task here, without Apache's file of rules.
        fs::remove_file(root.join(".htaccess"))?;
        fs::write(root.join("wp-config.php"), configuration(&database.socket()))?;
        fs::create_dir(root.join("wp-content/uploads"))?;
        application.let_write(&root.join("wp-content"))?;
        let example = repository::root().join("examples/wordpress/rocknet.toml");
        let settings = fs::read_to_string(example)? + LOG;
        let author = application.serve(program, &settings)?;

        install(&author)?;
        log_in(&author)?;
        pretty_addresses(&author)?;
        let picture = application.home().join("picture.png");
        output(Command::new("php").args(["-r", PICTURE]).arg(&picture))?;
        let (post, sent) = publish(&author, &picture)?;
        Ok(Blog {
            application,
            author,
            root,
            post,
            sent,
            picture,
            _database: database,
        })
    }
}

/// Returns the configuration of WordPress: the database, and no requests for updates to other hosts.
fn configuration(socket: &Path) -> String {
    let socket = socket.display();
    format!(
        "<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'low-tide');
define('DB_HOST', 'localhost:{socket}');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"
    )
}

/// Installs WordPress through its own pages. WordPress redirects all requests to them while its tables are missing.
fn install(session: &Session) -> Result<(), Failure> {
    let page = session.get("/")?.expect_redirect("/wp-admin/install.php")?;
    session.get(&page.location)?.expect(200, &["WordPress"])?;
    let form = [
        ("weblog_title", "Harbour news"),
        ("user_name", USER),
        ("admin_password", PASSWORD),
        ("admin_password2", PASSWORD),
        ("pw_weak", "on"),
        ("admin_email", "harbour@example.com"),
        ("Submit", "Install WordPress"),
    ];
    let page = session.post("/wp-admin/install.php?step=2", &form)?;
    page.expect(200, &["Success!", USER])?;
    session.get("/")?.expect(200, &["Harbour news", "Hello world!"])?;
    Ok(())
}

fn log_in(author: &Session) -> Result<(), Failure> {
    // The login page sets a cookie to test if the client keeps cookies.
    author.get("/wp-login.php")?.expect(200, &["user_login"])?;
    let wrong = [("log", USER), ("pwd", "flood"), ("testcookie", "1")];
    author.post("/wp-login.php", &wrong)?.expect(200, &["login_error"])?;
    author.get("/wp-admin/")?.expect_redirect("/wp-login.php")?;
    let form = [("log", USER), ("pwd", PASSWORD), ("testcookie", "1")];
    let page = author.post("/wp-login.php", &form)?.expect_redirect("/wp-admin/")?;
    author
        .get(&page.location)?
        .expect(200, &["Dashboard", "Harbour news"])?;
    Ok(())
}

/// Sets the permalink structure, as on the page Settings, Permalinks.
fn pretty_addresses(author: &Session) -> Result<(), Failure> {
    let path = "/wp-admin/options-permalink.php";
    let nonce = author.get(path)?.field("_wpnonce")?;
    let form = [
        ("_wpnonce", nonce.as_str()),
        ("selection", "custom"),
        ("permalink_structure", "/%postname%/"),
        ("submit", "Save Changes"),
    ];
    author.post(path, &form)?.expect_redirect(path)?;
    let page = author.get(path)?;
    if page.field("permalink_structure")? != "/%postname%/" {
        return Err(page.wrong("another structure"));
    }
    author.get("/hello-world/")?.expect(200, &["Hello world!"])?;
    Ok(())
}

/// URLs of an uploaded picture.
pub struct Upload {
    pub whole: String,
    small: String,
}

/// Uploads the picture and publishes a post with it, as the editor does. Returns the URL of the post.
fn publish(author: &Session, picture: &Path) -> Result<(String, Upload), Failure> {
    let nonce = author.get("/wp-admin/admin-ajax.php?action=rest-nonce")?.text();
    let nonce = format!("X-WP-Nonce: {nonce}");
    let file = format!("file=@{};type=image/png", picture.display());
    let page = author
        .request("/wp-json/wp/v2/media", &["-H", &nonce, "-F", &file])?
        .expect(201, &[])?;
    let sent = Upload {
        whole: page.json("/source_url")?,
        small: page.json("/media_details/sizes/thumbnail/source_url")?,
    };
    let post = serde_json::json!({
        "title": "Ebb at noon",
        "content": format!("<p>The water goes.</p><img src=\"{}\">", sent.whole),
        "status": "publish",
        "featured_media": page.json("/id")?.parse::<u64>()?,
    });
    let post = post.to_string();
    let options = ["-H", &nonce, "-H", "Content-Type: application/json", "-d", &post];
    let page = author.request("/wp-json/wp/v2/posts", &options)?.expect(201, &[])?;
    Ok((page.json("/link")?, sent))
}

/// Checks the post and its pictures as a visitor who is not logged in.
fn read(session: &Session, post: &str, sent: &Upload, picture: &[u8]) -> Result<(), Failure> {
    if !post.ends_with("/ebb-at-noon/") {
        return Err(format!("the post has no pretty permalink: {post}").into());
    }
    session
        .get(post)?
        .expect(200, &["Ebb at noon", "The water goes.", &sent.whole])?;
    let whole = session.get(&sent.whole)?.expect(200, &[])?;
    let small = session.get(&sent.small)?.expect(200, &[])?;
    if whole.media_type != "image/png" || whole.content != picture || picture.len() < PICTURE_LEAST {
        return Err(format!(
            "{} of {} bytes was served as {} of {}",
            sent.whole,
            picture.len(),
            whole.media_type,
            whole.content.len()
        )
        .into());
    }
    if small.media_type != "image/png" || small.content.len() >= picture.len() {
        return Err(format!("{}: no smaller picture ({})", sent.small, small.media_type).into());
    }
    session.get("/?s=water")?.expect(200, &["Ebb at noon"])?;
    session.get("/feed/")?.expect(200, &["<rss", "Ebb at noon"])?;
    session.get("/wp-json/wp/v2/posts")?.expect(200, &["ebb-at-noon"])?;
    // The error page comes from WordPress, in the design of the site.
    session.get("/high-water/")?.expect(404, &["Harbour news"])?;
    // A path without its last slash is redirected to the path with the slash.
    let page = session.get(post.trim_end_matches('/'))?.expect(301, &[])?;
    if page.location != post {
        return Err(page.wrong("not redirected to the post"));
    }
    Ok(())
}

fn comment(session: &Session, post: &str) -> Result<(), Failure> {
    let number = session.get(post)?.field("comment_post_ID")?;
    let form = [
        ("comment", "And it comes back."),
        ("author", "Ada"),
        ("email", "ada@example.com"),
        ("comment_post_ID", number.as_str()),
        ("comment_parent", "0"),
    ];
    let page = session.post("/wp-comments-post.php", &form)?.expect_redirect(post)?;
    // The comment waits for approval, and until then it is shown only to its author.
    session.get(&page.location)?.expect(200, &["And it comes back."])?;
    Ok(())
}

/// Checks that private files are refused and uploaded scripts do not run.
fn check_forbidden(session: &Session, sent: &Upload) -> Result<(), Failure> {
    let rows: &[(&str, u16)] = &[
        ("/wp-content/uploads/evil.php", 403),
        ("/wp-content/uploads/evil.php/more", 404),
        ("/wp-content/uploads/%65vil.php", 403),
        ("/wp-content/../wp-content/uploads/evil.php", 403),
        ("/wp-config.php", 403),
        ("/wp-includes/functions.php", 403),
        ("/wp-admin/includes/file.php", 403),
        ("/.htaccess", 404),
        ("/xmlrpc.php", 403),
    ];
    for (path, status) in rows {
        let page = session.get(path)?.expect(*status, &[])?;
        if page.text().contains(RAN) || page.text().contains("<?php") || page.text().contains("DB_PASSWORD") {
            return Err(page.wrong("the script was run, or its source was sent"));
        }
    }
    // A path with a script name after a picture's name must not run the picture as a script.
    let page = session.get(&format!("{}/x.php", sent.whole))?;
    if page.status == 200 {
        return Err(page.wrong("the picture was run as a script"));
    }
    Ok(())
}

fn login_page() -> String {
    format!(
        "<!doctype html><title>Enter</title>
<form action=\"/wp-login.php\" method=\"post\">
<input type=\"hidden\" name=\"log\" value=\"{USER}\"><input type=\"hidden\" name=\"pwd\" value=\"{PASSWORD}\">
<input type=\"hidden\" name=\"redirect_to\" value=\"/wp-admin/post-new.php\">
</form>
<script>document.forms[0].submit()</script>
"
    )
}

/// Opens the editor in Chromium. The editor loads a hundred scripts and styles, and its scripts send further requests.
fn write_in_browser(url: &str, home: &Path) -> Result<(), Failure> {
    let (dom, log) = browser::load_with(&[BUDGET], url, Some(home))?;
    let log: Vec<_> = log.lines().filter(|line| !line.contains(JQUERY_NOTICE)).collect();
    let log = log.join("\n");
    let parts = ["editor-post-publish-button", "editor-post-title"];
    browser::judge(&dom, &log, &parts).map_err(|wrong| format!("the editor in Chromium: {wrong}"))?;
    println!("Chromium loaded the editor");
    Ok(())
}
