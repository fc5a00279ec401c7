//! Parses values that name folders and files on disk, or paths below a site.

use std::path::{Component, Path, PathBuf};

use crate::choice::{Choice, Word};
use crate::context::Check;
use crate::environment::FileKind;
use crate::file::{Node, Value};
use crate::finding::Code;
use crate::message::{nearest, short};
use crate::model::{HostFolders, LogTarget};
use crate::source::Span;
use crate::source::normalize;
use crate::template::{Scope, Template};
use crate::value::typed;

/// Reads a folder that is served, as [`existing_folder`] does, or a path with `{host}` as the name of one folder. The
/// folder before `{host}` must exist.
pub(crate) fn root(check: &mut Check<'_>, node: &Node) -> Option<PathBuf> {
    let text = node.as_text()?;
    let has_placeholder = Template::parse(text, Scope::Request).is_ok_and(|text| text.as_constant().is_none());
    if !has_placeholder {
        return existing_folder(check, "root", node);
    }
    check_path(check, "root", text, node.span)?;
    let path = check.resolve(node.span, text);
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['{', '}']);
    let parent: PathBuf = path.components().take_while(is_plain).collect();
    let mut below = path.components().skip_while(is_plain);
    let is_host = |part: Component<'_>| part.as_os_str() == HostFolders::HOST;
    if !below.next().is_some_and(is_host) || !below.all(|part| is_plain(&part)) {
        let message = format!(
            "`root`: \"{}\" must have {{host}} as the whole name of one folder, and no other placeholder",
            short(if has_variables(node) {
                typed::as_written(node)
            } else {
                text
            })
        );
        check.error(
            Code::BadValue,
            node.span,
            message,
            "write root = \"/srv/{host}\" or \"/srv/{host}/public\"",
        );
        return None;
    }
    if check.env.kind(&parent) != Some(FileKind::Directory) {
        let message = format!("`root`: the folder {} does not exist", shown(node, &parent));
        let help = "create the folder, and in it a folder for each host";
        check.site_error(Code::Missing, node.span, message, help);
    }
    Some(path)
}

/// Reads a folder that must exist. A missing folder is a site error, see [`Check::site_error`], and its path is
/// returned all the same. Returns `None` if the value is not a path.
pub(crate) fn existing_folder(check: &mut Check<'_>, key: &str, node: &Node) -> Option<PathBuf> {
    let text = node.as_text()?;
    check_path(check, key, text, node.span)?;
    let path = check.resolve(node.span, text);
    let shown = shown(node, &path);
    match check.env.kind(&path) {
        Some(FileKind::Directory) => {}
        Some(_) => {
            let help = "name the folder of the file";
            check.site_error(
                Code::Missing,
                node.span,
                format!("`{key}`: {shown} is not a folder"),
                help,
            );
        }
        None if check.env.is_hidden(&path) => {
            let message = format!("`{key}`: this account may not see the folder {shown}");
            check.site_error(Code::Missing, node.span, message, HIDDEN_HELP);
        }
        None => {
            let help =
                "create the folder, or correct the path; relative paths start at the folder of the configuration file";
            check.site_error(
                Code::Missing,
                node.span,
                format!("`{key}`: the folder {shown} does not exist"),
                help,
            );
        }
    }
    Some(path)
}

/// Help for a path that this account may not see.
const HIDDEN_HELP: &str = "give the account of the server the right `x` to each folder above it";

/// Returns true if the value as written contains variables.
fn has_variables(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text.template.is_some())
}

/// Returns the text of a path for a message: the resolved path, or the value as written if it contains variables,
/// because their values may be secrets.
fn shown(node: &Node, path: &Path) -> String {
    if has_variables(node) {
        typed::as_written(node).to_owned()
    } else {
        normalize(path).display().to_string()
    }
}

/// Reads a file that must exist. A missing file is a site error, see [`Check::site_error`], and its path is returned
/// all the same. Returns `None` if the value is not a path.
pub(crate) fn file(check: &mut Check<'_>, key: &str, node: &Node) -> Option<PathBuf> {
    file_at(check, key, node, node.as_text()?)
}

/// Reads a file as [`file`] does, for a key whose value contains more than the path. `text`: the path.
pub(crate) fn file_at(check: &mut Check<'_>, key: &str, node: &Node, text: &str) -> Option<PathBuf> {
    let span = node.span;
    check_path(check, key, text, span)?;
    let path = check.resolve(span, text);
    let error = match check.env.kind(&path) {
        Some(FileKind::File | FileKind::Other) => return Some(path),
        Some(FileKind::Directory) => "is a folder",
        None if check.env.is_hidden(&path) => {
            let message = format!("`{key}`: this account may not see the file {}", shown(node, &path));
            check.site_error(Code::Missing, span, message, HIDDEN_HELP);
            return Some(path);
        }
        None => "does not exist",
    };
    let message = format!("`{key}`: the file {} {error}", shown(node, &path));
    let help = "correct the path; relative paths start at the folder of the configuration file";
    check.site_error(Code::Missing, span, message, help);
    Some(path)
}

/// Reads a folder without checking that it exists.
pub(crate) fn folder(check: &mut Check<'_>, key: &str, node: &Node) -> Option<PathBuf> {
    let text = node.as_text()?;
    check_path(check, key, text, node.span)?;
    Some(check.resolve(node.span, text))
}

/// Reads a list of folders or files without checking that they exist.
pub(crate) fn list(check: &mut Check<'_>, key: &str, node: &Node) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for (written, span) in typed::texts(node) {
        if check_path(check, key, &written.value, span).is_some() {
            all.push(check.resolve(span, &written.value));
        }
    }
    all
}

/// Reads the destination of a log: a word or a file.
pub(crate) fn log_target(check: &mut Check<'_>, key: &str, node: &Node) -> Option<LogTarget> {
    let (words, example) = if key == "errors" {
        (LogTarget::WORDS, "logs/error.log")
    } else {
        (LogTarget::ACCESS, "logs/access.log")
    };
    match word_or_file(check, key, node, words, example)? {
        WordOrFile::Word(word) => LogTarget::of(word),
        WordOrFile::File(file) => {
            if check.env.lacks_log_folder(&file) {
                let shown = PathBuf::from(shown(node, &file));
                let folder = shown.parent().unwrap_or(&shown).display();
                let message = format!("`{key}`: the folder {folder} does not exist, so the log cannot be opened");
                check.warning(
                    Code::Missing,
                    node.span,
                    message,
                    format!("create it: mkdir -p {folder}"),
                );
            }
            Some(LogTarget::File(file))
        }
    }
}

/// Value of a key that takes a word or the path of a file.
pub(crate) enum WordOrFile {
    Word(&'static str),
    File(PathBuf),
}

/// Reads a word or the path of a file; `None` after an error. `example`: a path that the error message suggests.
pub(crate) fn word_or_file(
    check: &mut Check<'_>,
    key: &str,
    node: &Node,
    words: &'static [Word],
    example: &str,
) -> Option<WordOrFile> {
    let text = node.as_text()?;
    if let Some(word) = words.iter().find(|word| word.text == text) {
        return Some(WordOrFile::Word(word.text));
    }
    // A word without `/` and `.` is far more often a mistyped word such as "stdout" than a file name.
    if !text.contains(['/', '.']) {
        let message = format!("`{key}` cannot be \"{}\"", short(typed::as_written(node)));
        let words: Vec<_> = words.iter().map(|word| word.text).collect();
        let help = match nearest(text, words.iter().copied()) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => format!("write \"{}\" or a file such as \"{example}\"", words.join("\", \"")),
        };
        check.error(Code::BadValue, node.span, message, help);
        return None;
    }
    check_path(check, key, text, node.span)?;
    if text.ends_with('/') {
        check.error(
            Code::BadValue,
            node.span,
            format!("`{key}` takes a file, not a folder"),
            "add a file name",
        );
        return None;
    }
    Some(WordOrFile::File(check.resolve(node.span, text)))
}

/// Reports an error and returns `None` if a text is empty, has a control character, or begins with `~`. Returns
/// `Some(())` for any other text.
fn check_path(check: &mut Check<'_>, key: &str, text: &str, span: Span) -> Option<()> {
    // Text as it is written in the file, with its quotes and escape sequences.
    let raw = check.sources.slice(span);
    let error = if text.is_empty() {
        Some((
            "is empty".to_owned(),
            "write a path, or \".\" for the folder of this file".to_owned(),
        ))
    } else if text.contains(|c: char| c.is_control()) {
        Some((
            "contains a control character".to_owned(),
            match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
                // A Windows path such as "C:\new", in which `\n` is an escape sequence.
                Some(raw) if raw.get(1..3) == Some(":\\") && !raw.contains('\'') => {
                    format!("in \"…\" a backslash begins an escape sequence: write '{}'", short(raw))
                }
                _ => "in \"…\" a backslash begins an escape sequence; write '…' or `\\\\`".to_owned(),
            },
        ))
    } else if text == "~" || text.starts_with("~/") {
        Some((
            "begins with `~`, which only shells expand".to_owned(),
            "write \"${HOME}/…\"".to_owned(),
        ))
    } else {
        None
    };
    match error {
        None => Some(()),
        Some((what, help)) => {
            check.error(Code::BadValue, span, format!("the path of `{key}` {what}"), help);
            None
        }
    }
}

/// Reads a path below the site, such as that of an error page.
pub(crate) fn site_path(check: &mut Check<'_>, key: &str, node: &Node) -> Option<String> {
    let written = node.written()?;
    if let Some((message, help)) = site_path_error(&written.value) {
        check.bad_text(written, node.span, format!("`{key}`: {message}"), help);
        return None;
    }
    Some(written.value.clone())
}

/// Placeholder for the path of the request, in `try`, `exists_at` and the query of `fallback`.
pub(crate) const PATH_PLACEHOLDER: &str = "{path}";

/// Reads a path below the site that may have a query, for `fallback`.
pub(crate) fn fallback(check: &mut Check<'_>, node: &Node) -> Option<String> {
    let written = node.written()?;
    let text = written.value.as_str();
    let (path, query) = text
        .split_once('?')
        .map_or((text, None), |(path, query)| (path, Some(query)));
    if let Some((message, help)) = site_path_error(path).or_else(|| query.and_then(query_error)) {
        check.bad_text(written, node.span, format!("`fallback`: {message}"), help);
        return None;
    }
    Some(text.to_owned())
}

/// Checks a path below the site, in which `{path}` stands for the path of the request, and its query, if it has one.
pub(crate) fn template_with_query(text: &str) -> Result<(), (String, String)> {
    let Some((path, query)) = text.split_once('?') else {
        return path_template(text);
    };
    path_template(path)?;
    query_error(query).map_or(Ok(()), Err)
}

/// Returns message and help if a text is not a query in which `{path}` stands for the path of the request.
fn query_error(query: &str) -> Option<(String, String)> {
    let shown = short(query);
    let plain = query.replace(PATH_PLACEHOLDER, "");
    if plain.contains(['$', '{', '}']) {
        return Some((
            format!("{{path}} is the only placeholder in a query, not \"{shown}\""),
            "remove it; the query of the request is added automatically".to_owned(),
        ));
    }
    let is_written = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`|".contains(&byte);
    (!plain.bytes().all(is_written)).then(|| {
        (
            format!("the query \"{shown}\" contains a character that URLs cannot have"),
            "percent-encode it: a space is %20".to_owned(),
        )
    })
}

/// Checks a path below the site in which `{path}` stands for the path of the request.
pub(crate) fn path_template(text: &str) -> Result<(), (String, String)> {
    // The placeholder is replaced with a sample path, because the result must be a valid path.
    let sample = text.replace(PATH_PLACEHOLDER, "/x");
    if sample.contains(['{', '}', '$']) {
        return Err((
            format!("{{path}} is the only placeholder, not \"{}\"", short(text)),
            "write \"{path}\" for the path of the request".to_owned(),
        ));
    }
    let Some((message, help)) = site_path_error(&sample) else {
        return Ok(());
    };
    // Without a placeholder, the error concerns the text itself, otherwise the text after the replacement.
    let expanded = format!("\"{}\" does not expand to a path", short(text));
    Err(match (sample == text, text.starts_with(['/', '{'])) {
        (true, _) => (message, help),
        (false, true) => (expanded, help),
        (false, false) => (expanded, "begin it with {path} or `/`".to_owned()),
    })
}

/// Returns message and help if a text is not a valid path below the site.
pub(crate) fn site_path_error(text: &str) -> Option<(String, String)> {
    if !text.starts_with('/') {
        return Some((
            format!("\"{}\" does not begin with `/`", short(text)),
            format!("write \"/{}\": paths are relative to the root of the site", short(text)),
        ));
    }
    path_error(text)
}

/// Returns message and help if a path or pattern is invalid. The text need not begin with `/`.
pub(crate) fn path_error(text: &str) -> Option<(String, String)> {
    let error = if text.contains("//") {
        (
            "contains `//`",
            "write one `/`: requests are matched after `//` is reduced to `/`",
        )
    } else if text.contains(['?', '#']) {
        (
            "contains a query or fragment",
            "only paths are matched; remove the part from `?` or `#`",
        )
    } else if text.contains('\\') {
        ("contains a backslash", "write `/`")
    } else if text.contains(|c: char| c.is_control()) {
        ("contains a control character", "remove it")
    } else if text.split('/').any(|part| part == ".." || part == ".") {
        ("contains `.` or `..`", "write the resolved path")
    } else if percent_encoded(text) {
        (
            "is percent-encoded",
            "write it decoded: requests are matched after decoding",
        )
    } else {
        return None;
    };
    Some((format!("\"{}\" {}", short(text), error.0), error.1.to_owned()))
}

/// Returns true if a text contains `%` and two hexadecimal digits.
fn percent_encoded(text: &str) -> bool {
    let hex = |b: Option<&u8>| b.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .any(|(at, b)| *b == b'%' && hex(bytes.get(at + 1)) && hex(bytes.get(at + 2)))
}
