//! Translates directives of Apache that select the handler of files, such as `SetHandler`: they run scripts by PHP, or
//! turn PHP off.
//!
//! RockNet runs files named `*.php`. Other files that Apache runs as scripts are refused, because their source would be
//! sent otherwise.

use std::collections::HashMap;

use crate::condition::{self, Condition, Conditions, escaped};
use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::file_rules::{self, refusal};
use crate::regex;
use crate::value::Value;

/// Endings of the names of PHP scripts, without the dot. RockNet runs files with the first one, `php`. It refuses those
/// with the others where the configuration key `php` is set.
const SCRIPTS: [&str; 10] = [
    "php", "phtml", "phar", "pht", "phps", "php3", "php4", "php5", "php7", "php8",
];

/// Expression for the paths of scripts that RockNet runs.
const RUN: &str = "~\\.php(/|$)";

/// Files that a directive applies to.
pub(super) enum HandledFiles<'a> {
    /// All files of these patterns, which are folders or the whole site (`/*`).
    Folder(&'a [String]),
    /// Files with certain names.
    Named(NamedFiles<'a>),
}

/// Files of a `<Files>` section.
pub(super) struct NamedFiles<'a> {
    /// The directives of the host that run scripts.
    runners: &'a ScriptRunners,
    /// Patterns of their paths; empty if no patterns match exactly these files.
    patterns: Vec<String>,
    /// Endings of the names; `None` if they are not known.
    endings: Option<Vec<String>>,
    /// True if each name with one of the endings belongs to the files.
    is_every_name: bool,
}

impl<'a> NamedFiles<'a> {
    /// Returns the files of an expression for names. `patterns`: patterns of their paths.
    pub fn new(expression: &str, patterns: Vec<String>, runners: &'a ScriptRunners) -> NamedFiles<'a> {
        // Expressions for endings, such as `^.+\.php$` and `\.php$`, may begin with any of these texts.
        let starts = ["^.+", "^.*", ".+", ".*", ""];
        let ending = starts.iter().find_map(|start| {
            let rest = expression.strip_prefix(start)?;
            rest.starts_with("\\.").then_some(rest)
        });
        let found = ending
            .and_then(regex::patterns)
            .filter(|found| found.difference.is_none());
        let endings = found.and_then(|found| {
            let ending = |pattern: &String| pattern.strip_prefix("*.").map(str::to_owned);
            found.patterns.iter().map(ending).collect()
        });
        NamedFiles {
            runners,
            patterns,
            is_every_name: endings.is_some(),
            endings: endings.or_else(|| file_rules::endings(expression)),
        }
    }

    /// Returns true if RockNet runs or refuses every one of the files where PHP is on.
    fn are_scripts(&self) -> bool {
        self.endings
            .as_ref()
            .is_some_and(|endings| endings.iter().all(|ending| is_script(ending)))
    }

    /// Returns true if some of the files may be scripts that RockNet runs.
    fn may_be_run(&self) -> bool {
        self.endings
            .as_ref()
            .is_none_or(|endings| endings.iter().any(|ending| ending == "php"))
    }

    /// Returns true if every script that RockNet runs is one of the files.
    pub fn has_every_script(&self) -> bool {
        self.is_every_name && self.may_be_run()
    }
}

/// Directives of a host that run scripts in spite of a `SetHandler` in a `<Files>` section.
#[derive(Debug, Default)]
pub(super) struct ScriptRunners {
    /// Lines of the `SetHandler` directives after which Apache applies another one that runs scripts. The value is true
    /// if that one runs every script.
    pub later: HashMap<usize, bool>,
    /// True if the type or the ending of a file selects PHP, as by `AddHandler`. `SetHandler none` does not end this.
    pub by_type: bool,
    /// True if a directive runs scripts whatever `SetHandler` a `<Files>` section has: `ProxyPassMatch`, `ProxyPass`, a
    /// `RewriteRule`, or `SetHandler` in `<If>`.
    pub by_path: bool,
}

/// Scripts that other directives run in spite of a `SetHandler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StillRun {
    NoScripts,
    /// Some scripts are run, or may be run.
    PossiblySome,
    EveryScript,
}

impl ScriptRunners {
    /// Returns the scripts that are run in spite of a `SetHandler` of a `<Files>` section.
    fn in_spite_of(&self, directive: &Directive) -> StillRun {
        if let Some(runs_every_script) = self.later.get(&directive.line) {
            return match runs_every_script {
                true => StillRun::EveryScript,
                false => StillRun::PossiblySome,
            };
        }
        let is_none = directive.argument(0).eq_ignore_ascii_case("none");
        match self.by_path || self.by_type && is_none {
            true => StillRun::PossiblySome,
            false => StillRun::NoScripts,
        }
    }
}

/// Effect of a directive on PHP.
pub(super) enum PhpEffect {
    /// The directive does not concern PHP.
    Other,
    /// Value of `php` for the site or route, which the caller sets.
    Set(Value),
    /// The effect is stored in the site, or a note names its loss.
    Done,
}

/// Translates a directive that concerns the handler of PHP.
pub(super) fn translate(directive: &Directive, files: &HandledFiles<'_>, site: &mut Site) -> PhpEffect {
    if let Some(stop) = stops(directive) {
        return turn_off(directive, stop, files, site);
    }
    if !runs(directive) {
        return PhpEffect::Other;
    }
    refuse_others(directive, files, site);
    PhpEffect::Set(match address(directive) {
        Some(address) => Value::Text(address),
        None => {
            site.differs(directive, "`php = \"auto\"` runs the newest installed PHP by php-fpm");
            Value::text("auto")
        }
    })
}

/// Returns true for a directive that passes scripts to PHP.
pub(super) fn runs(directive: &Directive) -> bool {
    // The first argument is the handler or type; the others are endings of files.
    let count = match directive.name.to_ascii_lowercase().as_str() {
        "sethandler" | "addhandler" | "addtype" | "forcetype" | "action" => 1,
        "proxypassmatch" => directive.arguments.len(),
        _ => return false,
    };
    directive.arguments.iter().take(count).any(|word| {
        let word = word.to_ascii_lowercase();
        // `application/x-httpd-php-source` shows the source.
        (word.contains("php") || word.contains("fcgi")) && !word.ends_with("-source")
    })
}

/// Returns true for a directive that keeps scripts of PHP from being run.
pub(super) fn disables(directive: &Directive) -> bool {
    stops(directive).is_some()
}

/// Response of Apache to requests for scripts that are not run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptStop {
    /// The source is sent.
    Sent,
    /// The directive alone does not show the response. A `SetHandler` in `<FilesMatch>` may have precedence, and run
    /// the scripts after all. The handler of CGI programs (`cgi-script`) runs or refuses them.
    Unknown,
}

/// Returns the response to requests for scripts that a directive keeps from being run; `None` for other directives.
fn stops(directive: &Directive) -> Option<ScriptStop> {
    let words = directive.lowercase_words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has_php = |endings: &[&str]| {
        endings
            .iter()
            .any(|ending| ending.trim_start_matches('.').starts_with("php"))
    };
    let is_unknown = match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
        ("php_flag" | "php_admin_flag" | "php_value" | "php_admin_value", ["engine", "off" | "0" | "false" | "no"]) => {
            return Some(ScriptStop::Sent);
        }
        ("sethandler", ["none" | "default-handler" | "text/plain" | "cgi-script"]) => true,
        ("forcetype", [kind]) => *kind != "none" && !runs(directive),
        ("removehandler" | "removetype", endings) => has_php(endings),
        ("addtype", ["text/plain" | "application/octet-stream", endings @ ..]) => has_php(endings),
        ("addhandler", [_, endings @ ..]) => !runs(directive) && has_php(endings),
        _ => false,
    };
    is_unknown.then_some(ScriptStop::Unknown)
}

/// Turns PHP off for files.
fn turn_off(directive: &Directive, stop: ScriptStop, files: &HandledFiles<'_>, site: &mut Site) -> PhpEffect {
    let still_run = match files {
        // Among `<Files>` and `<FilesMatch>` sections, the last `SetHandler` takes effect.
        HandledFiles::Named(files) if directive.is("SetHandler") => files.runners.in_spite_of(directive),
        // A `SetHandler` of a `<Files>` section would take precedence.
        _ => StillRun::PossiblySome,
    };
    let is_cgi = directive.argument(0).eq_ignore_ascii_case("cgi-script");
    let is_sent = stop == ScriptStop::Sent || still_run == StillRun::NoScripts && !is_cgi;
    match files {
        HandledFiles::Named(_) if still_run == StillRun::EveryScript => {
            site.unneeded(directive, "a later section runs these scripts by PHP");
            PhpEffect::Done
        }
        HandledFiles::Folder(_) if is_sent => {
            sent(directive, site);
            PhpEffect::Set(Value::Flag(false))
        }
        HandledFiles::Folder(patterns) => {
            let message = "PHP is off, and scripts are refused (403), because it depends on other directives whether \
                 Apache runs them: without the rule, they are sent as text";
            refused(directive, refused_endings(&["php"], patterns), message, site);
            PhpEffect::Set(Value::Flag(false))
        }
        HandledFiles::Named(files) if !files.may_be_run() => {
            site.unneeded(directive, "PHP runs files named *.php, and no others");
            PhpEffect::Done
        }
        HandledFiles::Named(files) if files.endings.is_none() || files.patterns.is_empty() => {
            let message = "RockNet may run some of these files as scripts: write a rule with `respond = 403` for them";
            site.skip_restriction(directive, message);
            PhpEffect::Done
        }
        HandledFiles::Named(files) if !is_sent => {
            let message = "these scripts are refused (403), because it depends on other directives whether Apache runs \
                 them: without the rule, they are run where PHP is on, and otherwise sent as text";
            refused(directive, vec![path_of(&files.patterns)], message, site);
            PhpEffect::Done
        }
        HandledFiles::Named(files) if files.has_every_script() => {
            sent(directive, site);
            PhpEffect::Set(Value::Flag(false))
        }
        HandledFiles::Named(files) => {
            sent(directive, site);
            for pattern in &files.patterns {
                let route = site.route(pattern, directive.line);
                route.set("php", Value::Flag(false), directive.line);
            }
            PhpEffect::Done
        }
    }
}

fn sent(directive: &Directive, site: &mut Site) {
    let message = "PHP is off, and scripts are sent as text; a rule with `respond = 403` refuses them";
    site.differs(directive, message);
}

/// Refuses scripts that Apache may run.
fn refused(directive: &Directive, rules: Vec<Conditions>, message: &str, site: &mut Site) {
    add(directive, rules, site);
    site.differs(directive, message);
}

/// Refuses the files that Apache runs as scripts, and RockNet does not.
fn refuse_others(directive: &Directive, files: &HandledFiles<'_>, site: &mut Site) {
    let has_endings = directive.is("AddHandler") || directive.is("AddType");
    let is_for_all = directive.is("SetHandler") || directive.is("ForceType");
    let rules = match files {
        HandledFiles::Named(files) if files.are_scripts() || !(has_endings || is_for_all) => Vec::new(),
        HandledFiles::Named(files) if files.patterns.is_empty() => {
            let message = "RockNet runs files named *.php, and would send the source of others: write a rule with \
                 `respond = 403` for them";
            return site.skip_restriction(directive, message);
        }
        HandledFiles::Named(files) => {
            let mut conditions = path_of(&files.patterns);
            if files.may_be_run() {
                conditions.push(Condition::new("path", Value::text(RUN)).negated_if(true));
            }
            vec![conditions]
        }
        HandledFiles::Folder(patterns) if has_endings => {
            let endings = directive.arguments.iter().skip(1);
            let endings: Vec<&str> = endings
                .map(|ending| ending.trim_start_matches('.'))
                .filter(|ending| !ending.is_empty() && !is_script(ending))
                .collect();
            refused_endings(&endings, patterns)
        }
        HandledFiles::Folder(patterns) if is_for_all => vec![every_file(patterns)],
        _ => Vec::new(),
    };
    if rules.is_empty() {
        return;
    }
    add(directive, rules, site);
    let message = "RockNet runs files named *.php: the others are refused (403), because their source would be sent; \
         rename them, or remove the rule if they are no scripts";
    site.differs(directive, message);
}

fn is_script(ending: &str) -> bool {
    SCRIPTS.contains(&ending.to_ascii_lowercase().as_str())
}

/// Returns the condition for patterns; none for the whole site.
fn path_of(patterns: &[String]) -> Conditions {
    match patterns.iter().any(|pattern| pattern == "/*") {
        true => Conditions::new(),
        false => vec![Condition::new("path", Value::texts(patterns))],
    }
}

/// Returns the conditions for the existing files of the patterns, except for scripts that RockNet runs.
fn every_file(patterns: &[String]) -> Conditions {
    let mut conditions = path_of(patterns);
    conditions.push(Condition::new("exists", Value::text("file")));
    conditions.push(Condition::new("path", Value::text(RUN)).negated_if(true));
    conditions
}

/// Returns the alternatives for the files with certain endings in folders.
fn refused_endings(endings: &[&str], patterns: &[String]) -> Vec<Conditions> {
    if endings.is_empty() {
        return Vec::new();
    }
    if path_of(patterns).is_empty() {
        let files = endings.iter().map(|ending| format!("*.{ending}"));
        return vec![vec![Condition::new("path", Value::texts(files))]];
    }
    let mut all = Vec::new();
    let mut paths = Vec::new();
    let endings: Vec<String> = endings.iter().map(|ending| escaped(ending)).collect();
    let ending = format!("\\.({})$", endings.join("|"));
    // A pattern without `*`, such as `/a` beside `/a/*`, is the path of the folder itself.
    for pattern in patterns.iter().filter(|pattern| pattern.contains('*')) {
        match pattern.strip_suffix('*').filter(|prefix| !prefix.contains(['*', '~'])) {
            Some(prefix) => paths.push(format!("~^{}.*{ending}", escaped(prefix))),
            // A rule cannot require two patterns of the path, so every file of this pattern is refused.
            None => {
                let only = std::slice::from_ref(pattern);
                all.push([path_of(only), vec![Condition::new("exists", Value::text("file"))]].concat());
            }
        }
    }
    if !paths.is_empty() {
        all.push(vec![Condition::new("path", Value::texts(paths))]);
    }
    all
}

/// Adds a rule that refuses requests for each alternative.
fn add(directive: &Directive, alternatives: Vec<Conditions>, site: &mut Site) {
    for conditions in alternatives {
        if let Some(mut keys) = condition::keys(&conditions) {
            keys.extend(refusal(403));
            site.rule(directive, keys);
        }
    }
}

/// Returns the address of php-fpm in an argument such as `proxy:unix:/run/php.sock|fcgi://localhost` or
/// `fcgi://127.0.0.1:9000/path`; `None` if no argument has such a form.
fn address(directive: &Directive) -> Option<String> {
    let found = |word: &String| {
        let word = word.strip_prefix("proxy:").unwrap_or(word);
        if let Some(socket) = word.strip_prefix("unix:") {
            return socket.split('|').next().map(|socket| format!("unix:{socket}"));
        }
        let rest = word.strip_prefix("fcgi://")?;
        Some(rest.split('/').next().unwrap_or(rest).to_owned())
    };
    directive.arguments.iter().find_map(found)
}
