//! Translates directives of Apache that pass scripts to PHP, such as `SetHandler`, or that turn PHP off.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::settings::Settings;
use crate::value::Value;

/// Translates directives that pass scripts to PHP, such as `SetHandler` and `ProxyPassMatch`. Returns false for other
/// directives.
pub(super) fn handler(directive: &Directive, site: &mut Site) -> bool {
    let name = directive.name.to_ascii_lowercase();
    match name.as_str() {
        "sethandler" | "addhandler" | "addtype" | "action" | "proxypassmatch" => {}
        _ => return false,
    }
    // The first argument is the handler or type; the others are endings of files.
    let words = match name.as_str() {
        "proxypassmatch" => directive.arguments.len(),
        _ => 1,
    };
    let is_php = directive.arguments.iter().take(words).any(|word| {
        let word = word.to_ascii_lowercase();
        word.contains("php") || word.contains("fcgi")
    });
    if !is_php {
        return false;
    }
    match address(directive) {
        Some(address) => site.settings.set("php", Value::Text(address), directive.line),
        None => {
            site.settings.set("php", Value::text("auto"), directive.line);
            let message = "`php = \"auto\"` runs the newest installed PHP by php-fpm";
            site.differs(directive, message);
        }
    }
    true
}

/// Returns true for a directive that keeps scripts of PHP from being run.
pub(super) fn disables(directive: &Directive) -> bool {
    let words: Vec<String> = directive
        .arguments
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has_php = |endings: &[&str]| {
        endings
            .iter()
            .any(|ending| ending.trim_start_matches('.').starts_with("php"))
    };
    match (directive.name.to_ascii_lowercase().as_str(), &words[..]) {
        ("php_flag" | "php_admin_flag", ["engine", "off" | "0" | "false" | "no"]) => true,
        ("php_value" | "php_admin_value", ["engine", "off" | "0" | "false" | "no"]) => true,
        ("sethandler", ["none" | "default-handler" | "text/plain" | "cgi-script"]) => true,
        ("forcetype", [kind]) => *kind != "none",
        ("removehandler" | "removetype", endings) => has_php(endings),
        ("addtype", ["text/plain" | "application/octet-stream", endings @ ..]) => has_php(endings),
        ("addhandler", [handler, endings @ ..]) => {
            !handler.contains("php") && !handler.contains("fcgi") && has_php(endings)
        }
        _ => false,
    }
}

/// Turns PHP off in a site or route.
pub(super) fn turn_off(directive: &Directive, settings: &mut Settings, notes: &mut dyn Notes) {
    settings.set("php", Value::Flag(false), directive.line);
    let message = "PHP is off, and scripts are sent as text; a rule with `respond = 403` refuses them";
    notes.differs(directive, message);
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

/// Completes the settings of PHP. Turns PHP on if `fallback` or `index` names a script. With PHP, turns off RockNet's
/// default of `fallback`, because Apache has none.
pub(super) fn finish(site: &mut Site) {
    let needs = |key: &str, settings: &Settings| {
        let is_script = |value: &Value| matches!(value, Value::Text(text) if text.ends_with(".php"));
        match settings.get(key) {
            Some(Value::List(values)) => values.iter().any(is_script),
            Some(value) => is_script(value),
            None => false,
        }
    };
    let line = site.line;
    if !site.settings.has("php") && (needs("fallback", &site.settings) || needs("index", &site.settings)) {
        site.settings.set("php", Value::text("auto"), line);
        let directive = Directive::new("index.php", Vec::new(), line);
        let message = "the handler of scripts is configured elsewhere: `php = \"auto\"` runs the newest installed PHP";
        site.differs(&directive, message);
    }
    if site.settings.has("php") {
        site.settings.set_default("fallback", Value::Flag(false), line);
    }
}
