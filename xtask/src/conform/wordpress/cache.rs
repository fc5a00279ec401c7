//! Checks WordPress with the response cache: visitors get pages without PHP, and a change shows at once.
//!
//! The fields are those of the plugin LiteSpeed Cache. Its own files are used if the variable [`PLUGIN`] names their
//! folder; otherwise `cache.php` sends the same fields.

use super::speed;
use crate::Failure;
use crate::command::{output, output_alone};
use crate::conform::application::Application;
use crate::conform::session::{PageResponse, Session};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable with the folder of the plugin LiteSpeed Cache.
const PLUGIN: &str = "LITESPEED_CACHE";
/// Substitute for the plugin.
const SUBSTITUTE: &str = include_str!("cache.php");
/// Counts the requests that PHP handles, beside the plugin. Permits two comments within 15 seconds.
const COUNTER: &str = "<?php
file_put_contents(WP_CONTENT_DIR . '/requests.log', ($_SERVER['REQUEST_URI'] ?? '') . \"\\n\", FILE_APPEND);
add_filter('comment_flood_filter', '__return_false', 99);
";
/// Line of the example after which the cache is enabled.
const SITE: &str = "php = \"auto\"\n";
/// Number of requests within about a second.
const FREQUENT: usize = 200;
const RELOAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Blog whose author is logged in.
pub struct PublishedBlog<'b> {
    pub application: &'b Application,
    /// Folder of the files of WordPress.
    pub root: &'b Path,
    /// URL of a post.
    pub post: &'b str,
    pub author: &'b Session,
}

/// Runs the check on a blog.
pub fn check(program: &Path, blog: &PublishedBlog<'_>) -> Result<(), Failure> {
    let author = blog.author;
    enable(program, blog, author)?;
    let visitors = [blog.application.session()?, blog.application.session()?];
    let log = blog.root.join("wp-content/requests.log");
    let post = blog.post;

    // The first visitor fills the cache. All others are served without PHP.
    for path in ["/", post] {
        fetch(&visitors[0], path)?.was("stored", path)?;
    }
    let runs = count(&log)?;
    for visitor in &visitors {
        for path in ["/", post, "/", post] {
            fetch(visitor, path)?.was("hit", path)?.has("Ebb at noon", true)?;
        }
    }
    let more = count(&log)? - runs;
    if more != 0 {
        return Err(format!("PHP handled {more} requests that the cache could serve").into());
    }
    check_frequent(program, blog, &visitors[0])?;
    speed::check(blog.application, blog.root, post, &visitors[0])?;
    let more = count(&log)? - runs;
    if more != 0 {
        return Err(format!("PHP handled {more} of many requests that the cache could serve").into());
    }

    // The author gets pages of their own, and no other client gets these.
    for path in ["/", post] {
        fetch(author, path)?.was_not("hit", path)?.has("wpadminbar", true)?;
        fetch(&visitors[1], path)?.was("hit", path)?.has("wpadminbar", false)?;
    }
    edit(author, &visitors, post)?;
    comment(&blog.application.session()?, author, &visitors, post)?;
    println!("visitors of WordPress were served from the cache, and changes showed at once");
    Ok(())
}

/// Requests the post many times over one connection, and checks that a worker sent most of the responses without a
/// lookup, although the example limits the requests to the login page.
fn check_frequent(program: &Path, blog: &PublishedBlog<'_>, visitor: &Session) -> Result<(), Failure> {
    let home = blog.application.home();
    let urls = vec![visitor.url(blog.post); FREQUENT];
    output(visitor.curl(blog.post, &[]).args(urls))?;
    let status = output_alone(Command::new(program).args(["status", "--json"]).current_dir(home))?;
    let status: serde_json::Value = serde_json::from_str(&status)?;
    let ready = status.pointer("/response_cache/ready_hits");
    let ready = ready.and_then(serde_json::Value::as_u64).unwrap_or(0);
    match ready >= FREQUENT as u64 / 2 {
        true => Ok(()),
        false => Err(format!("a lookup preceded {} of {FREQUENT} hits", FREQUENT as u64 - ready).into()),
    }
}

/// Installs the plugin, or its substitute, and enables the cache without another port: the database has the address.
fn enable(program: &Path, blog: &PublishedBlog<'_>, author: &Session) -> Result<(), Failure> {
    let content = blog.root.join("wp-content");
    fs::create_dir_all(content.join("mu-plugins"))?;
    let plugin = env::var_os(PLUGIN).map(PathBuf::from);
    match &plugin {
        Some(folder) => {
            let target = content.join("plugins/litespeed-cache");
            output(Command::new("cp").args(["-R"]).arg(folder).arg(target))?;
            fs::write(content.join("mu-plugins/counter.php"), COUNTER)?;
        }
        None => fs::write(content.join("mu-plugins/cache.php"), SUBSTITUTE)?,
    }
    blog.application.let_write(&content)?;
    let file = blog.application.home().join("rocknet.toml");
    let settings = fs::read_to_string(&file)?;
    let cached = settings.replacen(SITE, &format!("{SITE}cache = {{ litespeed = true }}\n"), 1);
    if cached == settings {
        return Err("the example has no line `php = \"auto\"`".into());
    }
    fs::write(&file, cached)?;
    output(
        Command::new(program)
            .args(["reload"])
            .current_dir(blog.application.home()),
    )?;
    let deadline = Instant::now() + RELOAD_TIMEOUT;
    // The first response with `Cache-Status` is one of the new configuration.
    while fetch(author, "/wp-admin/")?.status.is_empty() {
        if Instant::now() > deadline {
            return Err("the server does not use the new configuration".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    if plugin.is_some() {
        activate(author)?;
    }
    Ok(())
}

/// Activates the plugin, as on the page Plugins.
fn activate(author: &Session) -> Result<(), Failure> {
    let nonce = nonce(author)?;
    let options = [
        "-X",
        "POST",
        "-H",
        &nonce,
        "-H",
        "Content-Type: application/json",
        "-d",
        "{\"status\":\"active\"}",
    ];
    let page = author.request("/wp-json/wp/v2/plugins/litespeed-cache/litespeed-cache", &options)?;
    page.expect(200, &["\"active\""])?;
    // The plugin recognizes users by a cookie, which it sets with the next page.
    author.get("/wp-admin/plugins.php")?.expect(200, &["LiteSpeed Cache"])?;
    Ok(())
}

/// Edits the post by the API and by the form of the administration.
fn edit(author: &Session, visitors: &[Session; 2], post: &str) -> Result<(), Failure> {
    let number = number(author)?;
    let nonce = nonce(author)?;
    for title in ["Ebb at one", "Ebb at two"] {
        let text = format!("{{\"title\":\"{title}\"}}");
        let options = ["-H", &nonce, "-H", "Content-Type: application/json", "-d", &text];
        author
            .request(&format!("/wp-json/wp/v2/posts/{number}"), &options)?
            .expect(200, &[title])?;
        for path in ["/", post] {
            fetch(&visitors[0], path)?.was("stored", path)?.has(title, true)?;
            fetch(&visitors[1], path)?.was("hit", path)?.has(title, true)?;
        }
    }
    let form = author.get(&format!("/wp-admin/post.php?post={number}&action=edit&classic-editor"))?;
    form.expect(200, &["Ebb at two"])?;
    // The quick edit of the list of posts.
    let list = author.get("/wp-admin/edit.php")?;
    let inline = list.field("_inline_edit")?;
    let fields = [
        ("action", "inline-save"),
        ("post_type", "post"),
        ("screen", "edit-post"),
        ("post_ID", number.as_str()),
        ("_inline_edit", inline.as_str()),
        ("post_view", "list"),
        ("post_title", "Ebb at three"),
        ("post_name", "ebb-at-noon"),
        ("_status", "publish"),
        ("comment_status", "open"),
    ];
    author
        .post("/wp-admin/admin-ajax.php", &fields)?
        .expect(200, &["Ebb at three"])?;
    for path in ["/", post] {
        fetch(&visitors[0], path)?
            .was("stored", path)?
            .has("Ebb at three", true)?;
        fetch(&visitors[1], path)?.was("hit", path)?.has("Ebb at three", true)?;
    }
    Ok(())
}

/// Comments on the post as a visitor, and approves the comment as the author.
fn comment(reader: &Session, author: &Session, visitors: &[Session; 2], post: &str) -> Result<(), Failure> {
    const TEXT: &str = "The ferry sails anyway.";
    let number = reader.get(post)?.field("comment_post_ID")?;
    let form = [
        ("comment", TEXT),
        ("author", "Grace"),
        ("email", "grace@example.com"),
        ("comment_post_ID", number.as_str()),
        ("comment_parent", "0"),
        ("wp-comment-cookies-consent", "yes"),
    ];
    reader.post("/wp-comments-post.php", &form)?.expect_redirect(post)?;
    // It waits for approval, and until then only its author sees it.
    fetch(reader, post)?.was_not("hit", post)?.has(TEXT, true)?;
    fetch(&visitors[0], post)?.has(TEXT, false)?;
    fetch(&visitors[1], post)?.was("hit", post)?.has(TEXT, false)?;
    let nonce = nonce(author)?;
    let held = author.request("/wp-json/wp/v2/comments?status=hold&search=ferry", &["-H", &nonce])?;
    let id = held.json("/0/id")?;
    let options = [
        "-H",
        &nonce,
        "-H",
        "Content-Type: application/json",
        "-d",
        "{\"status\":\"approved\"}",
    ];
    author
        .request(&format!("/wp-json/wp/v2/comments/{id}"), &options)?
        .expect(200, &[])?;
    fetch(&visitors[0], post)?.was("stored", post)?.has(TEXT, true)?;
    fetch(&visitors[1], post)?.was("hit", post)?.has(TEXT, true)?;
    Ok(())
}

/// Returns the field that proves a request of the author's own pages.
fn nonce(author: &Session) -> Result<String, Failure> {
    let nonce = author.get("/wp-admin/admin-ajax.php?action=rest-nonce")?.text();
    Ok(format!("X-WP-Nonce: {nonce}"))
}

/// Returns the number of the post.
fn number(author: &Session) -> Result<String, Failure> {
    author.get("/wp-json/wp/v2/posts?slug=ebb-at-noon")?.json("/0/id")
}

/// Returns the number of requests that PHP has handled.
fn count(log: &Path) -> Result<usize, Failure> {
    Ok(fs::read_to_string(log)?.lines().count())
}

/// Page with its outcome in the cache.
struct Cached {
    page: PageResponse,
    text: String,
    /// Value of `Cache-Status`; empty without the field.
    status: String,
}

/// Fetches a page. No field for the server may reach a client.
fn fetch(session: &Session, path: &str) -> Result<Cached, Failure> {
    let page = session.request(path, &["-i"])?;
    let text = page.text();
    let head = text.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
    if head.contains("x-litespeed-") {
        return Err(page.wrong("a field for the server reached the client"));
    }
    let line = head.lines().find_map(|line| line.strip_prefix("cache-status: "));
    let status = line.unwrap_or_default().to_owned();
    Ok(Cached { page, text, status })
}

impl Cached {
    fn was(self, outcome: &str, path: &str) -> Result<Cached, Failure> {
        self.judged(outcome, path, true)
    }

    fn was_not(self, outcome: &str, path: &str) -> Result<Cached, Failure> {
        self.judged(outcome, path, false)
    }

    fn judged(self, outcome: &str, path: &str, expected: bool) -> Result<Cached, Failure> {
        let has = self
            .status
            .split("; ")
            .any(|word| word == outcome || word.starts_with(&format!("{outcome};")));
        match has == expected && self.page.status == 200 {
            true => Ok(self),
            false => Err(self.page.wrong(&format!(
                "{path}: Cache-Status is {:?}, {outcome}: {expected}",
                self.status
            ))),
        }
    }

    fn has(self, part: &str, expected: bool) -> Result<Cached, Failure> {
        match self.text.contains(part) == expected {
            true => Ok(self),
            false => Err(self
                .page
                .wrong(&format!("{part:?}: {}", if expected { "missing" } else { "shown" }))),
        }
    }
}
