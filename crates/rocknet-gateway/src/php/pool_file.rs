//! The pool file of a php-fpm, and the quoting of its values.
//!
//! Values of the configuration cannot end a line or a section of the file: the check of the configuration has refused
//! control characters, and names with other characters than letters, digits, `_`, `.` and `-`. Values are quoted. The
//! values of the configured environment variables are not in the file: a line `env[NAME] = $ROCKNET_ENV_NAME` refers to
//! the environment of php-fpm.

use std::fmt::Write as _;

use rocknet_config::model::PhpSettings;
use rocknet_io::privileges::User;

use super::pool::Pool;

/// Number of requests after which a process is replaced, because extensions may leak memory.
pub const MAX_REQUESTS: u32 = 10_000;
/// Prefix of the variables by which php-fpm gets the values of environment variables for scripts.
const ENV_PREFIX: &str = "ROCKNET_ENV_";

/// Values of a pool file that the settings of its pool do not determine.
pub struct PoolFile<'a> {
    /// Name of the pool in php-fpm.
    pub name: &'a str,
    /// Name of the listening socket.
    pub listen: &'a str,
    /// Account of the scripts; `None` if they run as the server's account.
    pub user: Option<&'a User>,
    /// Maximum number of processes.
    pub processes: u64,
}

impl PoolFile<'_> {
    /// Returns the text of the file.
    pub fn text(&self, pool: &Pool) -> String {
        let mut text = String::from("; Written by RockNet at each start of this php-fpm.\n[global]\n");
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name} = {value}");
        };
        line("error_log", "/dev/stderr");
        line("daemonize", "no");
        // Level `notice` includes the message by which php-fpm reports that it accepts requests.
        line("log_level", "notice");
        line(
            "process_control_timeout",
            &pool.drain_timeout.as_secs().max(1).to_string(),
        );
        let _ = writeln!(text, "[{}]", self.name);
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name} = {value}");
        };
        line("listen", &format!("\"{}\"", self.listen));
        line("pm", "ondemand");
        line("pm.max_children", &self.processes.to_string());
        let idle = pool.settings.idle.as_secs().max(1);
        line("pm.process_idle_timeout", &format!("{idle}s"));
        line("pm.max_requests", &MAX_REQUESTS.to_string());
        // Messages of scripts arrive over FastCGI with their request. If php-fpm caught them too, the log would have
        // them twice.
        line("catch_workers_output", "no");
        if let Some(slow) = pool.settings.slow {
            line("request_slowlog_timeout", &format!("{}s", slow.as_secs().max(1)));
            // The server reads the entries from standard error, and logs them with their site.
            line("slowlog", "/dev/stderr");
        }
        for (name, value) in fixed_settings(pool) {
            let _ = writeln!(text, "php_value[{name}] = \"{value}\"");
        }
        for (name, value) in pool.settings.ini.iter().filter(|(name, value)| is_in_pool(name, value)) {
            let _ = writeln!(text, "php_admin_value[{name}] = {}", quoted(value));
        }
        self.write_env(pool, &mut text);
        text
    }

    fn write_env(&self, pool: &Pool, text: &mut String) {
        let env = &pool.settings.env;
        // php-fpm sets `HOME` and `USER` itself only if it is started as root.
        if let Some(user) = self.user {
            let home = user.home.iter().filter_map(|home| home.to_str());
            for (name, value) in home.map(|home| ("HOME", home)).chain([("USER", user.name.as_str())]) {
                // These characters could end the quoted string, begin a comment, or expand as a variable.
                if !value.contains(['"', '$', '\\', '\n', ';']) && !env.contains_key(name) {
                    let _ = writeln!(text, "env[{name}] = \"{value}\"");
                }
            }
        }
        for name in env.keys() {
            let _ = writeln!(text, "env[{name}] = ${}", env_variable(name));
        }
    }
}

/// Returns the name of the environment variable of php-fpm that contains the value of the variable `name` of scripts.
/// php-fpm replaces `$NAME` in the pool file with the value, whatever characters it has. The prefix keeps the variable
/// from changing php-fpm itself, as `LD_PRELOAD` would.
pub fn env_variable(name: &str) -> String {
    format!("{ENV_PREFIX}{name}")
}

/// Returns the `php.ini` settings that RockNet sets in each pool.
pub fn fixed_settings(pool: &Pool) -> Vec<(&'static str, String)> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let size = pool.body_size.to_string();
    let mut all = vec![
        // Without its own error log, PHP sends errors over FastCGI, so that RockNet logs them with the site.
        ("log_errors", word(true)),
        ("error_log", String::new()),
        ("upload_max_filesize", size.clone()),
        ("post_max_size", size),
    ];
    if pool.dev {
        all.push(("display_errors", word(true)));
        all.push(("display_startup_errors", word(true)));
    }
    all
}

/// Returns true for a setting that the pool file sets, so that scripts cannot change it.
fn is_in_pool(name: &str, value: &str) -> bool {
    match name {
        // Loads a file. Scripts cannot change it.
        "zend_extension" => false,
        // Settings of a pool are applied after the start, when OPcache can only be turned off. It rejects being turned
        // on, even if it is on already.
        "opcache.enable" => ["", "0", "off", "no", "false", "none"]
            .iter()
            .any(|off| value.eq_ignore_ascii_case(off)),
        _ => true,
    }
}

/// Returns true for a setting that PHP reads only when it starts, such as the memory of OPcache. It has to be on the
/// command line, because settings of a pool are applied later. It is in the pool file too, because scripts could change
/// some of the settings of the command line, such as `opcache.revalidate_freq`.
fn takes_effect_at_start(name: &str) -> bool {
    name == "zend_extension" || ["opcache.", "apc."].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the arguments that set the settings that take effect when PHP starts.
pub fn start_arguments(settings: &PhpSettings) -> Vec<String> {
    let ini = settings.ini.iter().filter(|(name, _)| takes_effect_at_start(name));
    ini.flat_map(|(name, value)| ["-d".to_owned(), format!("{name}={}", quoted(value))])
        .collect()
}

/// Returns a value in quotes in which all its characters stand for themselves. Nothing is special in single quotes. In
/// double quotes, `"`, `\` and `$` are; no value has one of them together with a single quote (see
/// [`PhpSettings::ini`](rocknet_config::model::PhpSettings::ini)).
pub fn quoted(value: &str) -> String {
    // php-fpm takes empty single quotes for no value, and then does not start.
    match value.is_empty() || value.contains('\'') {
        true => format!("\"{value}\""),
        false => format!("'{value}'"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rocknet_config::model::PhpVersion;

    use super::super::pool::PhpProgram;
    use super::*;

    fn pool(dev: bool) -> Pool {
        Pool {
            program: PhpProgram::Missing(PhpVersion::Newest),
            user: None,
            settings: PhpSettings::default(),
            dev,
            body_size: 1 << 20,
            drain_timeout: Duration::from_secs(60),
        }
    }

    fn text(pool: &Pool, user: Option<&User>) -> String {
        let file = PoolFile {
            name: "rocknet-1-2",
            listen: "/nonexistent/1.sock",
            user,
            processes: 5,
        };
        file.text(pool)
    }

    #[track_caller]
    fn assert_lines(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "{line} in {text}");
        }
    }

    #[test]
    fn an_empty_value_has_double_quotes() {
        assert_eq!(["", "a", "it's"].map(quoted), ["\"\"", "'a'", "\"it's\""]);
    }

    #[test]
    fn the_pool_file_has_all_settings() {
        let user = User {
            name: "www-data".into(),
            uid: 33,
            gid: 34,
            groups: vec![34],
            home: Some("/var/www".into()),
        };
        let plain = text(&pool(false), Some(&user));
        assert_lines(
            &plain,
            &[
                "[rocknet-1-2]",
                "listen = \"/nonexistent/1.sock\"",
                "pm = ondemand",
                "pm.max_children = 5",
                "pm.process_idle_timeout = 10s",
                "process_control_timeout = 60",
                "php_value[post_max_size] = \"1048576\"",
                "php_value[log_errors] = \"on\"",
                "php_value[error_log] = \"\"",
                "env[HOME] = \"/var/www\"",
                "env[USER] = \"www-data\"",
            ],
        );
        assert!(!plain.contains("display_errors") && !plain.contains("slowlog"));
        let dev = text(&pool(true), None);
        assert!(dev.contains("php_value[display_errors] = \"on\""));
        assert!(!dev.contains("env["));
        let odd = User {
            home: Some("/a\"\nuser = root".into()),
            ..user
        };
        assert!(!text(&pool(true), Some(&odd)).contains("HOME"));
    }

    #[test]
    fn settings_of_the_site_are_quoted() {
        let map = |all: &[(&str, &str)]| {
            all.iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect()
        };
        let settings = PhpSettings {
            ini: map(&[
                ("memory_limit", "256M"),
                ("error_append_string", "a\"b;c${HOME}\\d[x] = y"),
                ("auto_prepend_file", "/it's"),
                ("opcache.memory_consumption", "64"),
                ("opcache.enable", "1"),
                ("zend_extension", "x.so"),
            ]),
            env: map(&[("SECRET", "$HOME\"\n"), ("HOME", "/elsewhere")]),
            idle: Duration::from_secs(90),
            slow: Some(Duration::from_secs(5)),
            ..PhpSettings::default()
        };
        let user = User {
            name: "alice".into(),
            uid: 33,
            gid: 34,
            groups: vec![34],
            home: Some("/home/alice".into()),
        };
        let text = text(
            &Pool {
                settings,
                ..pool(false)
            },
            Some(&user),
        );
        assert_lines(
            &text,
            &[
                "php_admin_value[memory_limit] = '256M'",
                "php_admin_value[error_append_string] = 'a\"b;c${HOME}\\d[x] = y'",
                "php_admin_value[auto_prepend_file] = \"/it's\"",
                "php_admin_value[opcache.memory_consumption] = '64'",
                "env[SECRET] = $ROCKNET_ENV_SECRET",
                "env[HOME] = $ROCKNET_ENV_HOME",
                "env[USER] = \"alice\"",
                "pm.process_idle_timeout = 90s",
                "request_slowlog_timeout = 5s",
                "slowlog = /dev/stderr",
            ],
        );
        for absent in ["opcache.enable", "zend_extension", "/home/alice"] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        assert!(is_in_pool("opcache.enable", "Off"));
    }
}
