//! Settings of PHP in Apache, such as `php_value`, and the effects of PHP on a whole site.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::settings::Settings;
use crate::value::Value;

/// Returns true if the target of a rewrite, such as `/index.php?q=$1`, is a script of PHP.
pub(super) fn is_script(target: &str) -> bool {
    target.split('?').next().is_some_and(|path| path.ends_with(".php"))
}

/// Completes the settings of PHP. Turns PHP on if `fallback`, `index` or the target of a rewrite names a script. Where
/// PHP is on and no `fallback` is set, sets `fallback = false`: RockNet's default there is `/index.php`, and Apache has
/// none.
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
    // Without PHP, a rewritten request would get the text of the script.
    let is_rewritten = site.rules.iter().any(|rule| {
        let target = rule
            .keys
            .iter()
            .find(|(key, _)| *key == "rewrite")
            .map(|(_, value)| value);
        matches!(target, Some(Value::Text(to)) if is_script(to))
    });
    if !site.settings.has("php")
        && (is_rewritten
            || site.rewrites_to_script
            || needs("fallback", &site.settings)
            || needs("index", &site.settings))
    {
        site.settings.set("php", Value::text("auto"), line);
        let directive = Directive::new("index.php", Vec::new(), line);
        let message = "the handler of scripts is configured elsewhere: `php = \"auto\"` runs the newest installed PHP";
        site.differs(&directive, message);
    }
    settings(site);
    if site.settings.has("php") {
        site.settings.set_default("fallback", Value::Flag(false), line);
    }
    if !site.settings.has("fallback") {
        let is_on = |settings: &Settings| settings.get("php").is_some_and(|php| *php != Value::Flag(false));
        for route in site.routes.iter_mut().filter(|route| is_on(&route.settings)) {
            route.settings.set_default("fallback", Value::Flag(false), route.line);
        }
    }
}

/// Beginnings of temporary keys, such as `php_ini.memory_limit`, each with the table of `php` to which [`finish`] moves
/// the values of these keys.
const MAPS: [(&str, &str); 2] = [("php_ini.", "ini"), ("php_env.", "env")];

/// Stores a setting of PHP under a temporary key until [`finish`] moves it. `map`: `php_ini` or `php_env`.
pub(super) fn set(settings: &mut Settings, map: &str, name: &str, value: &str, line: usize) {
    settings.set(&format!("{map}.{name}"), Value::text(value), line);
}

/// Removes the temporary keys from the settings of a site or section. Returns their values as tables `ini` and `env` of
/// `php`, and the first of their lines; 0 without such keys.
fn take(settings: &mut Settings) -> (Vec<(String, Value)>, usize) {
    let (mut tables, mut first) = (Vec::new(), 0);
    for (map, key) in MAPS {
        let names: Vec<String> = settings
            .in_order()
            .into_iter()
            .filter(|(known, _)| known.starts_with(map))
            .map(|(known, _)| known.to_owned())
            .collect();
        let mut entries = Vec::new();
        for name in names {
            if let Some(setting) = settings.remove(&name) {
                first = if first == 0 {
                    setting.line
                } else {
                    setting.line.min(first)
                };
                entries.push((name[map.len()..].to_owned(), setting.value));
            }
        }
        if !entries.is_empty() {
            tables.push((key.to_owned(), Value::Table(entries)));
        }
    }
    (tables, first)
}

/// Moves the temporary settings into the table `php`, or notes why they have no effect.
fn settings(site: &mut Site) {
    let (tables, line) = take(&mut site.settings);
    if tables.is_empty() {
        return;
    }
    let has_ini = tables.iter().any(|(key, _)| key == "ini");
    let directive = Directive::new(if has_ini { "php_value" } else { "SetEnv" }, Vec::new(), line);
    match site.settings.get("php") {
        Some(Value::Text(version)) if version == "auto" => {}
        None if has_ini => {
            let message = "`php = \"auto\"` runs the newest installed PHP by php-fpm";
            site.differs(&directive, message);
        }
        Some(Value::Flag(false)) => return site.unneeded(&directive, "PHP is off"),
        None => {
            let message = "write the variables into `params` of `cgi` or `fastcgi`, or into `env` of `php`";
            return site.skip(&directive, message);
        }
        Some(_) => {
            let message = "an address of php-fpm takes no settings: write `php` with `ini` and `env`, with which RockNet runs \
                 php-fpm, or set them in the pool";
            return site.skip(&directive, message);
        }
    }
    let mut php = vec![("version".to_owned(), Value::text("auto"))];
    php.extend(tables);
    site.settings.set("php", Value::Table(php), line);
}

/// Removes the temporary settings of PHP from those of a section, with a note. They are translated only for whole
/// sites.
pub(super) fn drop_settings(section: &Directive, settings: &mut Settings, notes: &mut dyn Notes) {
    if !take(settings).0.is_empty() {
        let message = "settings and variables of PHP in a folder: write them into `php` of a route, or into .user.ini";
        notes.skip(section, message);
    }
}
