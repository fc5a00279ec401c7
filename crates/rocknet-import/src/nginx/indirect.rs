//! Files that nginx serves for other paths: indexes of folders, fallbacks, and pages of errors. nginx searches a
//! location for them again. RockNet applies their routes, and no rules.

use crate::condition;
use crate::directive::Directive;
use crate::settings::Settings;
use crate::value::Value;

use super::place::{CaseMode, LocationMatch, Locations, compiled};

/// Returns the paths of these files. A folder stands for every folder.
pub(super) fn files(server: &Directive, settings: &Settings) -> Vec<String> {
    let mut files = vec!["/index.html".to_owned()];
    if let Some(index) = settings.get("index") {
        let names = match index {
            Value::List(names) => names.clone(),
            name => vec![name.clone()],
        };
        files.extend(names.iter().filter_map(|name| match name {
            Value::Text(name) => Some(format!("/{name}")),
            _ => None,
        }));
    }
    add(server, &mut files);
    files.sort_unstable();
    files.dedup();
    files
}

fn add(block: &Directive, files: &mut Vec<String>) {
    let is_path = |word: &&String| word.starts_with('/');
    for directive in block.children() {
        let words = &directive.arguments;
        match directive.name.as_str() {
            "index" => files.extend(words.iter().map(|name| format!("/{}", name.trim_start_matches('/')))),
            "try_files" => {
                let paths = words
                    .iter()
                    .filter(is_path)
                    .map(|path| path.split(['?', '$']).next().unwrap_or(path));
                files.extend(paths.map(str::to_owned));
            }
            "error_page" => files.extend(words.last().filter(is_path).cloned()),
            // With PHP, RockNet's index is `index.php`.
            "fastcgi_pass" => files.push("/index.php".to_owned()),
            _ => add(directive, files),
        }
    }
}

/// Returns true if an expression matches one of the files, possibly in a folder, and not the path that leads to it.
pub(super) fn are_matched(expression: &str, case: CaseMode, files: &[String]) -> bool {
    let Some(regex) = compiled(expression, case) else {
        return true;
    };
    let is_matched = |file: &String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        let folder = &file[..file.len() - name.len()];
        let below = format!("/x/{name}");
        let is_reached = |folder: &str, file: &str| regex.matches(file.as_bytes()) && !regex.matches(folder.as_bytes());
        is_reached(folder, file) || is_reached("/x/", &below)
    };
    // The expression may need a folder that is not known here, such as `/uploads/.*\.php$`.
    let ends = extensions(expression);
    let has_ending = |file: &String| {
        let name = file.rsplit('/').next().unwrap_or(file);
        ends.iter()
            .any(|end| name.rsplit('.').next().is_some_and(|own| own.eq_ignore_ascii_case(end)))
    };
    files.iter().any(|file| is_matched(file) || has_ending(file))
}

/// Returns patterns of the files that a location by expression refuses if nginx selects another location for some file
/// that its expression matches; `None` if it selects no other one.
pub(super) fn refused(
    location: &Directive,
    (expression, case): (&str, CaseMode),
    files: &[String],
    locations: &Locations<'_>,
) -> Option<Vec<String>> {
    let regex = compiled(expression, case)?;
    let is_other = |file: &str| selects_other(location, file, locations);
    let is_matched = |file: &str| regex.matches(file.as_bytes());
    if !files.iter().any(|file| is_matched(file) && is_other(file)) {
        return None;
    }
    let mut patterns = Vec::new();
    for file in files {
        if !file.ends_with('/') && is_matched(file) && !is_other(file) {
            patterns.push(file.clone());
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        let below = format!("/x/{name}");
        if !name.is_empty() && is_matched(&below) && !is_other(&below) {
            patterns.push(format!("~^/.+/{}$", condition::escaped(name)));
        }
    }
    patterns.sort_unstable();
    patterns.dedup();
    Some(patterns)
}

/// Returns true if nginx selects another location for a file before it tries the expression of this one.
fn selects_other(location: &Directive, file: &str, locations: &Locations<'_>) -> bool {
    let mut longest = (0, false);
    let mut is_before = true;
    for (other, place) in locations.all.iter().zip(&locations.places) {
        is_before &= other.line != location.line || other.arguments != location.arguments;
        match place {
            LocationMatch::Exact(path) if path == file => return true,
            LocationMatch::Prefix { path, is_final } if file.starts_with(path.as_str()) && path.len() >= longest.0 => {
                longest = (path.len(), *is_final);
            }
            LocationMatch::Expression(expression, case)
                if is_before && compiled(expression, *case).is_some_and(|regex| regex.matches(file.as_bytes())) =>
            {
                return true;
            }
            _ => {}
        }
    }
    longest.1
}

/// Returns the extensions at the end of an expression such as `\.(php|html)$`; none for other expressions.
fn extensions(expression: &str) -> Vec<&str> {
    let Some((_, end)) = expression.strip_suffix('$').and_then(|rest| rest.rsplit_once("\\.")) else {
        return Vec::new();
    };
    let inner = end
        .strip_prefix("(?:")
        .or_else(|| end.strip_prefix('('))
        .map_or(Some(end), |inner| inner.strip_suffix(')'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_and_fallbacks_are_found() {
        let text =
            "server { index home.htm; location / { try_files $uri /app.php?q=1 =404; } error_page 404 /lost.html; }";
        let tree = super::super::read(text).unwrap();
        let files = files(&tree[0], &Settings::default());
        assert_eq!(files, ["/app.php", "/home.htm", "/index.html", "/lost.html"]);
        for (expression, expected) in [
            (r"\.html$", true),
            (r"\.(bak|htm)$", true),
            (r"/uploads/.*\.(?:php|phar)$", true),
            (r"^/lost", true),
            (r"\.(bak|sql)$", false),
            // The rule for the folder refuses its index, too.
            (r"^/vendor/", false),
            (r"^/", false),
        ] {
            assert_eq!(
                are_matched(expression, CaseMode::Sensitive, &files),
                expected,
                "{expression}"
            );
        }
    }
}
