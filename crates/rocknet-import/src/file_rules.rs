//! The key `resolved` of a refusal. With it, a rule also applies to the file that a request leads to.
//!
//! With `location ~ \.php$ { deny all; }`, nginx also refuses `/` if its index file is `index.php`. nginx and Apache
//! apply their directives once more to the path of an index file, of a fallback, and of a script that is followed by
//! more of the path. Therefore refusals are translated with `resolved = true`. This module removes the key again where
//! no file of these kinds can meet the condition of the rule on the path.

use rocknet_config::model::RegexPattern;

use crate::document::Site;
use crate::regex::may_have_alternatives;
use crate::settings::Settings;
use crate::value::Value;

/// Key of a rule that also applies to files.
pub(crate) const RESOLVED: &str = "resolved";

/// Returns the keys of a refusal that also applies to files.
pub(crate) fn refusal(status: u64) -> [(&'static str, Value); 2] {
    [("respond", Value::Number(status)), (RESOLVED, Value::Flag(true))]
}

/// Removes `resolved` from the rules of a site to which it makes no difference.
pub(crate) fn settle(site: &mut Site) {
    if !site.rules.iter().any(|rule| rule.has(RESOLVED)) {
        return;
    }
    let mut files = ServedFiles::default();
    files.add(&site.settings);
    site.routes.iter().for_each(|route| files.add(&route.settings));
    files.add_default_indexes();
    for rule in &mut site.rules {
        let is_needed = rule.keys.contains(&(RESOLVED, Value::Flag(true))) && files.may_meet(&rule.keys);
        if !is_needed {
            rule.keys.retain(|(key, _)| *key != RESOLVED);
        }
    }
}

/// Files to which requests for other paths lead.
#[derive(Debug, Default)]
struct ServedFiles {
    /// Names of index files, which any folder may contain.
    names: Vec<String>,
    /// Paths of fallbacks.
    paths: Vec<String>,
    /// Endings of files with any path, such as `php`.
    endings: Vec<String>,
    /// True if a path without a slash at its end may lead to a file below it: from `/x` to `/x/a.html`, by
    /// `{path}/a.html`.
    leads_into_folder: bool,
    /// True if a path may lead to a file of any name beside it: from `/x` to `/x_a`, by `{path}_a`.
    has_any_name: bool,
    /// True if a path may lead to any file.
    has_any_path: bool,
}

impl ServedFiles {
    /// Adds the files of a site or route.
    fn add(&mut self, settings: &Settings) {
        let is_on = |key: &str| settings.get(key).is_some_and(|value| *value != Value::Flag(false));
        // PHP scripts and CGI programs also run for paths that continue after their names: `/a.php/b`. Scripts,
        // programs and applications can name any file by the response field `X-Accel-Redirect`.
        self.has_any_path |= ["php", "cgi", "fastcgi", "uwsgi", "scgi"].into_iter().any(is_on);
        let texts = |key: &str| match settings.get(key) {
            Some(Value::Text(text)) => vec![text.as_str()],
            Some(Value::List(values)) => values.iter().filter_map(text_of).collect(),
            _ => Vec::new(),
        };
        self.names.extend(texts("index").into_iter().map(str::to_owned));
        for template in texts("try").into_iter().chain(texts("fallback")) {
            self.add_template(template.split('?').next().unwrap_or(template));
        }
    }

    /// Adds the files of a template of `try`, or of a fallback.
    fn add_template(&mut self, template: &str) {
        const PATH: &str = "{path}";
        let Some(rest) = template.strip_prefix(PATH) else {
            match template.contains('{') {
                true => self.has_any_path = true,
                false => self.paths.push(template.to_owned()),
            }
            return;
        };
        let name = rest.rsplit('/').next().unwrap_or(rest);
        match (
            rest.contains('{'),
            rest.strip_prefix('/').is_some(),
            name.rsplit_once('.'),
        ) {
            (true, ..) => self.has_any_path = true,
            // `{path}/`: a folder, whose index files `add` collects.
            (false, true, _) if name.is_empty() => {}
            // `{path}/index.php`
            (false, true, _) => {
                self.names.push(name.to_owned());
                self.leads_into_folder = true;
            }
            // `{path}.php`
            (false, false, Some((_, ending))) => self.endings.push(ending.to_owned()),
            // `{path}` is the path of the request itself; `{path}_a` is another name in its folder.
            (false, false, None) => self.has_any_name |= !rest.is_empty(),
        }
    }

    /// Adds the index files of sites and routes without `index`.
    fn add_default_indexes(&mut self) {
        self.names.extend(["index.html", "index.htm"].map(str::to_owned));
    }

    /// Returns true if a file may meet the condition of a rule on the path although the path of the request does not.
    fn may_meet(&self, keys: &[(&'static str, Value)]) -> bool {
        // `exists` differs between a folder and its index, unless `exists_at` names a constant path.
        let is_constant = |(key, value): &(&'static str, Value)| {
            *key == "exists_at" && text_of(value).is_some_and(|at| !at.contains('{'))
        };
        if keys.iter().any(|(key, _)| *key == "exists") && !keys.iter().any(is_constant) {
            return true;
        }
        let has_exceptions = keys
            .iter()
            .any(|(key, value)| *key == "unless" && self.may_except(value));
        match keys.iter().find(|(key, _)| *key == "path") {
            None => has_exceptions,
            Some((_, Value::List(patterns))) => patterns
                .iter()
                .any(|pattern| text_of(pattern).is_none_or(|pattern| self.may_match(pattern, has_exceptions))),
            Some((_, pattern)) => text_of(pattern).is_none_or(|pattern| self.may_match(pattern, has_exceptions)),
        }
    }

    /// Returns true if a pattern may match a file and not the path that leads to it. `has_exceptions`: the rule has
    /// exceptions for paths, so that it may apply to a file in a folder although it does not apply to the folder.
    fn may_match(&self, pattern: &str, has_exceptions: bool) -> bool {
        if let Some(Ok(regex)) = RegexPattern::parse(pattern) {
            return self.may_match_regex(pattern, &regex, has_exceptions);
        }
        let is_folder = |prefix: &&str| prefix.starts_with('/') && prefix.ends_with('/') && !prefix.contains('*');
        if let Some(prefix) = pattern.strip_suffix('*').filter(is_folder) {
            // A path that leads to an index file in `/a/`, or to a file beside it by `{path}.html`, begins with `/a/`
            // like the file, so `/a/*` matches both. Other paths may lead into `/a/` by a constant path, such as that
            // of a fallback, or if a script or template names any file.
            return has_exceptions || self.has_any_path || self.paths.iter().any(|path| path.starts_with(prefix));
        }
        if self.has_any_path || self.has_any_name {
            return true;
        }
        let (ending, is_glob) = match pattern.strip_prefix('*') {
            Some(rest) if rest.contains('*') => return true,
            Some(rest) => (rest, true),
            None if pattern.contains('*') => return true,
            None => (pattern, false),
        };
        let is_name = |name: &String| {
            let name = format!("/{name}");
            ending.ends_with(&name) || is_glob && name.ends_with(ending)
        };
        let is_path = |path: &String| path == ending || is_glob && path.ends_with(ending);
        let has_ending = |end: &String| {
            let end = format!(".{end}");
            ending.ends_with(&end) || is_glob && end.ends_with(ending)
        };
        self.names.iter().any(is_name) || self.paths.iter().any(is_path) || self.endings.iter().any(has_ending)
    }

    /// Returns true if a request for another path may lead to the file at a path. Case is ignored.
    fn may_be_file(&self, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let is_name = |name: &String| path.ends_with(&format!("/{}", name.to_ascii_lowercase()));
        let has_ending = |ending: &String| path.ends_with(&format!(".{}", ending.to_ascii_lowercase()));
        let is_path = |own: &String| own.eq_ignore_ascii_case(&path);
        let is_known = self.names.iter().any(is_name) || self.paths.iter().any(is_path);
        self.has_any_path || self.has_any_name || is_known || self.endings.iter().any(has_ending)
    }

    /// Returns true if an exception of a rule may apply to a path, but not to the file that the path leads to.
    fn may_except(&self, exceptions: &Value) -> bool {
        // An exception for the path of a single file does not apply to folders, so their index files do not matter.
        let leads_to_others = self.has_any_path || self.has_any_name || self.leads_into_folder;
        let leads_elsewhere = leads_to_others || !self.paths.is_empty() || !self.endings.is_empty();
        let is_file = |pattern: &Value| {
            text_of(pattern).is_some_and(|text| text.starts_with('/') && !text.contains('*') && !text.ends_with('/'))
        };
        match exceptions {
            Value::Table(keys) => keys.iter().any(|(key, value)| match (key.as_str(), value) {
                ("exists", _) => true,
                ("path", Value::List(patterns)) => leads_elsewhere || !patterns.iter().all(is_file),
                ("path", pattern) => leads_elsewhere || !is_file(pattern),
                _ => false,
            }),
            Value::List(values) => values.iter().any(|value| self.may_except(value)),
            _ => false,
        }
    }

    /// Returns the result of [`ServedFiles::may_match`] for a regular expression.
    fn may_match_regex(&self, pattern: &str, regex: &RegexPattern, has_exceptions: bool) -> bool {
        let expression = pattern.trim_start_matches('~').trim_start_matches('*');
        let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
        let text = expression
            .strip_prefix('^')
            .and_then(|rest| literal(rest.strip_suffix('$').unwrap_or(rest)));
        match text {
            Some(path) if expression.ends_with('$') => return self.may_be_file(&path),
            // The expression matches all paths that begin with `path`. For `^/a/`, requests that lead to an index file
            // in `/a/` have such a path themselves. For `^/ind`, they need not: `/` may lead to `/index.php`.
            Some(path) if !has_exceptions && !self.has_any_path && !self.has_any_name => {
                let begin = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
                let begins = |name: &String| !begin.is_empty() && name.to_ascii_lowercase().starts_with(&begin);
                // For `^/x\.html`, the template `{path}.html` of `try` leads from `/x` to `/x.html`.
                let may_have_ending = begin.contains('.') && !self.endings.is_empty();
                let mut paths = self.paths.iter();
                return may_have_ending
                    || self.names.iter().any(begins)
                    || paths.any(|path| regex.matches(path.as_bytes()));
            }
            _ => {}
        }
        if is_never_served(expression, regex) {
            return false;
        }
        let Some(ends) = endings(expression) else {
            return true;
        };
        let of_file = |file: &str| file.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        let mut known = self.names.iter().chain(&self.paths).filter_map(|file| of_file(file));
        let is_end = |ending: &String| ends.iter().any(|end| end.eq_ignore_ascii_case(ending));
        self.has_any_path || self.has_any_name || known.any(|ending| is_end(&ending)) || self.endings.iter().any(is_end)
    }
}

/// Returns the text that an expression without special characters matches; `None` for other expressions.
fn literal(expression: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next().filter(|c| c.is_ascii_punctuation())?),
            c if c.is_ascii_alphanumeric() || "/-_~%,:;@=&!' ".contains(c) => text.push(c),
            _ => return None,
        }
    }
    Some(text)
}

/// Returns true if each match of an expression contains a name with a leading dot. Files with such names are never
/// served, except those in `/.well-known`.
fn is_never_served(expression: &str, regex: &RegexPattern) -> bool {
    let rest = expression.trim_start_matches('^').strip_prefix("/\\.");
    let is_dot = rest.is_some_and(|rest| !rest.starts_with(['?', '*', '{']) && !may_have_alternatives(rest));
    // Samples of the files that are served, in the folder and in a folder below it.
    let known = ["/.well-known/index.html", "/.well-known/x/index.html"];
    is_dot && !known.iter().any(|path| regex.matches(path.as_bytes()))
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the endings of names that an expression such as `\.(php|html)$` matches; `None` if it may match others.
pub(crate) fn endings(expression: &str) -> Option<Vec<String>> {
    // A group around the end, as in `^/a/.*(?:\.php$)`.
    if let Some((start, inner)) = expression.strip_suffix("$)").and_then(|rest| rest.rsplit_once("(?:")) {
        let is_whole = !inner.contains(['[', ')']) && !inner.contains('|') && !start.ends_with('\\');
        return is_whole.then(|| endings(&format!("{start}{inner}$")))?;
    }
    let (before, end) = expression.strip_suffix('$')?.rsplit_once("\\.")?;
    if before.ends_with('\\') || may_have_alternatives(before) {
        return None;
    }
    let inner = match end.strip_prefix("(?:").or_else(|| end.strip_prefix('(')) {
        Some(inner) => inner.strip_suffix(')')?,
        None => end,
    };
    let ends: Vec<&str> = inner.split('|').collect();
    let is_plain = |end: &&str| !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // Without a group, `|` separates two whole expressions.
    let is_grouped = inner.len() < end.len() || ends.len() == 1;
    (is_grouped && ends.iter().all(is_plain)).then(|| ends.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_of_expressions_are_complete() {
        for (expression, expected) in [
            (r"\.(php|html)$", Some(&["php", "html"][..])),
            (r"^/(?:a|b)/.*\.(?:bak)$", Some(&["bak"])),
            (r"/uploads/.*\.php$", Some(&["php"])),
            (r"^/a/.*?(?:\.secret$)", Some(&["secret"])),
            (r"^/a/.*(?:a|\.secret$)", None),
            (r"a|\.php$", None),
            (r"\.php|b\.bak$", None),
            (r"\.a|b$", None),
            (r"(a|\.php)$", None),
            (r"(a|b\.(?:bak|c))$", None),
            (r"[(]a|\.bak$", None),
            (r"\.ph(p|tml)$", None),
            (r"\.php?$", None),
            (r"\\.php$", None),
            (r"\.php\$", None),
            (r"\.php", None),
            (r"^/a$", None),
        ] {
            let expected: Option<Vec<String>> = expected.map(|all| all.iter().map(|end| (*end).to_owned()).collect());
            assert_eq!(endings(expression), expected, "{expression}");
        }
    }

    #[test]
    fn exceptions_for_a_file_matter_where_its_path_leads_to_another_name() {
        let exceptions = Value::Table(vec![("path".to_owned(), Value::text("/a"))]);
        for (template, expected) in [
            ("{path}", false),
            ("{path}/", false),
            ("{path}/b.txt", true),
            ("{path}_b", true),
            ("{path}.b", true),
            ("/b", true),
        ] {
            let (mut settings, mut files) = (Settings::default(), ServedFiles::default());
            settings.set("try", Value::texts([template]), 1);
            files.add(&settings);
            assert_eq!(files.may_except(&exceptions), expected, "{template}");
        }
    }

    #[test]
    fn rules_apply_to_files_only_where_files_can_meet_them() {
        let mut settings = Settings::default();
        settings.set("index", Value::texts(["home.html", "start.cgi"]), 1);
        settings.set("fallback", Value::text("/app/front.asp?x"), 1);
        settings.set("try", Value::texts(["{path}", "{path}.md", "{path}/readme.txt"]), 1);
        let mut files = ServedFiles::default();
        files.add(&settings);
        files.add_default_indexes();
        for (pattern, has_exceptions, expected) in [
            ("~\\.(bak|sql)$", false, false),
            ("~\\.(bak|HTML)$", false, true),
            ("~*\\.asp$", false, true),
            ("~\\.md$", false, true),
            ("~^/vendor/", false, false),
            ("~^/vendor/", true, true),
            ("~^/app/", false, true),
            ("~^/vendor/[a-z]+", false, true),
            ("~^/admin", false, false),
            ("~(?i)^/lib/HOME", false, true),
            ("~^/admin\\.", false, true),
            ("~^/\\.git/", false, false),
            ("~/\\.(git|svn)", false, false),
            ("~/\\.", false, true),
            ("~/\\.?git", false, true),
            ("~*^/Secret$", false, false),
            ("~*^/a/Home\\.html$", false, true),
            ("~^/app/front\\.asp$", false, true),
            ("/app/*", false, true),
            ("/lib/*", false, false),
            ("/lib/*", true, true),
            ("*.html", false, true),
            ("*.php", false, false),
            ("*.md", false, true),
            ("*/home.html", false, true),
            ("*/readme.txt", false, true),
            ("*/other.txt", false, false),
            ("/a/index.html", false, true),
            ("/a/page.html", false, false),
            ("/app/front.asp", false, true),
            ("/a*b", false, true),
        ] {
            assert_eq!(files.may_match(pattern, has_exceptions), expected, "{pattern}");
        }
        let mut with_php = Settings::default();
        with_php.set("php", Value::text("auto"), 1);
        files.add(&with_php);
        assert!(files.may_match("*.php", false) && files.may_match("/config.php", false));
        // Scripts lead to files with any path.
        assert!(files.may_match("/lib/*", false) && files.may_match("~\\.(bak|sql)$", false));
        for (key, value, expected) in [
            ("php", Value::text("auto"), true),
            ("cgi", Value::texts(["/cgi-bin/*"]), true),
            ("fastcgi", Value::text("127.0.0.1:9000"), true),
            ("uwsgi", Value::text("127.0.0.1:9000"), true),
            ("proxy", Value::text("http://127.0.0.1:9000"), false),
        ] {
            let (mut settings, mut files) = (Settings::default(), ServedFiles::default());
            settings.set(key, value, 1);
            files.add(&settings);
            assert_eq!(files.may_match("/lib/*", false), expected, "{key}");
        }
    }
}
