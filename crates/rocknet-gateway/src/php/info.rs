//! Queries the settings of an installed PHP, among them those of OPcache, which keeps compiled scripts in memory.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use rocknet_config::model::PhpSettings;
use rocknet_io::program;

use super::installed::Installed;
use super::pool_file::start_arguments;

/// Timeout of `php-fpm -i`, which normally takes a tenth of a second.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of OPcache in an installed PHP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpcacheSettings {
    /// True if compiled scripts are kept.
    pub is_enabled: bool,
    /// Memory for compiled scripts in MB, as PHP prints it.
    pub memory: String,
    /// True if changed scripts are compiled again without a restart.
    pub checks_changes: bool,
}

/// Settings that change what PHP prints, and that load no code. The query runs under the account of the caller, which
/// may be that of the server, so it must not run the code of a site (`opcache.preload`, `zend_extension`).
const QUERIED: [&str; 5] = [
    "opcache.enable",
    "opcache.enable_cli",
    "opcache.memory_consumption",
    "opcache.validate_timestamps",
    "opcache.revalidate_freq",
];

/// Returns the arguments of the query.
fn query_arguments(settings: &PhpSettings) -> Vec<String> {
    let mut harmless = settings.clone();
    harmless.ini.retain(|name, _| QUERIED.contains(&name.as_str()));
    start_arguments(&harmless)
}

/// Settings that an installed PHP has, as it prints them.
pub struct PhpInfo(String);

impl PhpInfo {
    /// Runs the program, which prints its settings. `settings`: those of the site that take effect when PHP starts.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be run, or prints no settings in time.
    pub fn query(installed: &Installed, settings: &PhpSettings) -> io::Result<PhpInfo> {
        let mut command = Command::new(&installed.program);
        command
            .args(query_arguments(settings))
            .arg("-i")
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let output = program::wait_with_output(command.spawn()?, TIMEOUT)?;
        let info = PhpInfo(String::from_utf8_lossy(&output.stdout).into_owned());
        match info.has("memory_limit") {
            true => Ok(info),
            false => Err(io::Error::other("it prints no settings")),
        }
    }

    /// Returns true if PHP, with its extensions, has a setting of this name.
    pub fn has(&self, name: &str) -> bool {
        // Not among the values that PHP prints, because they only load files.
        ["extension", "zend_extension"].contains(&name) || self.value(name).is_some()
    }

    /// Returns the settings of OPcache; `None` if PHP has no OPcache.
    pub fn opcache(&self) -> Option<OpcacheSettings> {
        let is_on = |name: &str| self.value(name).is_some_and(|value| matches!(value, "On" | "1"));
        Some(OpcacheSettings {
            // php-fpm also prints whether the cache could be started; php-cgi prints the setting only.
            is_enabled: match self.value("Opcode Caching") {
                Some(state) => state == "Up and Running",
                None => is_on("opcache.enable"),
            },
            memory: self.value("opcache.memory_consumption")?.to_owned(),
            checks_changes: is_on("opcache.validate_timestamps"),
        })
    }

    /// Returns the value of a setting: in a line `name => value => default` of php-fpm, or in a row of a table of
    /// php-cgi.
    fn value(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let line = line.strip_prefix("<tr><td class=\"e\">").unwrap_or(line);
            let rest = line.strip_prefix(name)?;
            let rest = rest
                .strip_prefix(" => ")
                .or_else(|| rest.trim_start().strip_prefix("</td><td class=\"v\">"))?;
            let end = rest.find(" => ").or_else(|| rest.find('<')).unwrap_or(rest.len());
            Some(rest[..end].trim())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_runs_no_code_of_a_site() {
        let mut settings = PhpSettings::default();
        for (name, value) in [
            ("opcache.preload", "/srv/x.php"),
            ("opcache.preload_user", "root"),
            ("zend_extension", "x.so"),
            ("opcache.enable", "0"),
        ] {
            settings.ini.insert(name.to_owned(), value.to_owned());
        }
        assert_eq!(query_arguments(&settings), ["-d", "opcache.enable='0'"]);
    }

    #[test]
    fn settings_are_parsed() {
        let fpm = "memory_limit => 128M => 128M\nOpcode Caching => Up and Running\nopcache.enable => On => On\n\
                   opcache.memory_consumption => 99 => 128\nopcache.validate_timestamps => Off => On\n";
        let expected = OpcacheSettings {
            is_enabled: true,
            memory: "99".to_owned(),
            checks_changes: false,
        };
        let parse = |text: &str| PhpInfo(text.to_owned()).opcache();
        assert_eq!(parse(fpm).as_ref(), Some(&expected));
        let off = fpm.replace("Up and Running", "Disabled");
        assert!(!parse(&off).unwrap().is_enabled);
        let row = |name: &str, value: &str| {
            format!("<tr><td class=\"e\">{name}</td><td class=\"v\">{value}</td><td class=\"v\">x</td></tr>\n")
        };
        let cgi = [
            row("opcache.enable", "On"),
            row("opcache.memory_consumption", "99"),
            row("opcache.validate_timestamps", "Off"),
        ];
        assert_eq!(parse(&cgi.concat()), Some(expected));
        assert_eq!(parse("memory_limit => 128M => 128M\n"), None);
        let info = PhpInfo(fpm.to_owned());
        assert!(info.has("memory_limit") && info.has("extension"));
        assert!(!info.has("memory") && !info.has("opcache"));
    }
}
