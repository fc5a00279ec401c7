//! The flags of `rocknet serve` that change the served site.

use std::path::Path;
use std::time::Duration;

use rocknet::gateway::php;
use rocknet_config::Config;
use rocknet_config::model::{AccessLog, CertificateSource, Cors, Fallback, Listen, PhpVersion, SiteTls, Tls};

use super::super::Failure;

/// Page of a single-page app, which is served for each path without a file.
const APP_PAGE: &str = "index.html";

// A doc comment here would become the description of the command.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SiteFlags {
    /// Use HTTPS, with a certificate of this machine's own CA (`rocknet trust` makes browsers trust it)
    #[arg(long)]
    pub https: bool,
    /// Run PHP: the newest version, or VERSION such as 8.2. Without this flag, PHP runs if the folder has scripts
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "auto",
          value_parser = version)]
    pub php: Option<PhpVersion>,
    /// Serve a single-page app: index.html for each path without a file
    #[arg(long)]
    pub spa: bool,
    /// Let pages of all other origins read responses (CORS), with cookies. For development only
    #[arg(long)]
    pub cors: bool,
    /// Print no line for each request
    #[arg(short, long)]
    pub quiet: bool,
}

impl SiteFlags {
    /// Checks the flags against the folder and this machine, before anything starts.
    ///
    /// # Errors
    ///
    /// A message with the remedy.
    pub fn check(&self, directory: &Path, listen: Option<&Listen>) -> Result<(), Failure> {
        if self.spa && !directory.join(APP_PAGE).is_file() {
            return Err(Failure::Failed(format!(
                "cannot serve a single-page app: {} has no {APP_PAGE}: build the app first, or name the folder of the build",
                directory.display()
            )));
        }
        if self.https && matches!(listen, Some(Listen::Unix(_))) {
            return Err(Failure::Usage(
                "`--https` needs a port: remove it, or listen on a port in place of the socket".to_owned(),
            ));
        }
        Ok(())
    }

    /// Checks that the PHP of a configuration is installed.
    ///
    /// # Errors
    ///
    /// A message with the command that installs it.
    pub fn check_php(config: &Config) -> Result<(), Failure> {
        match php::missing(config).into_iter().next() {
            Some(missing) => Err(Failure::Failed(format!("cannot start: {missing}"))),
            None => Ok(()),
        }
    }

    /// Applies the flags to the configuration of the folder, except `php`.
    pub fn apply(&self, config: &mut Config) {
        let defaults = Tls::default();
        for site in &mut config.sites {
            if self.https {
                site.secure.clone_from(&site.listen);
                site.tls = Some(SiteTls {
                    source: CertificateSource::Local,
                    min: defaults.min,
                    client: None,
                    redirect: true,
                    early_data: defaults.early_data,
                    hsts: Duration::ZERO,
                });
            }
            if self.spa {
                site.settings.fallback = Fallback::Path(format!("/{APP_PAGE}"));
                site.settings.browse = None;
            }
            if self.cors {
                // During development, requests with the cookies of the application have to work from any port.
                site.settings.cors = Some(Cors {
                    credentials: true,
                    ..Cors::default()
                });
            }
            if !self.quiet {
                site.access = AccessLog::for_terminal();
            }
        }
    }
}

/// Parses a version of PHP: `auto`, `8` or `8.2`.
fn version(text: &str) -> Result<PhpVersion, String> {
    if text == "auto" {
        return Ok(PhpVersion::Newest);
    }
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u8>().ok().filter(|_| is_number)
    };
    let (major, minor) = match text.split_once('.') {
        Some((major, minor)) => (number(major), number(minor).map(Some)),
        None => (number(text), Some(None)),
    };
    match (major, minor) {
        (Some(major), Some(minor)) => Ok(PhpVersion::Of { major, minor }),
        _ => Err("write a version of PHP such as 8.2, or no value for the newest".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_php_are_parsed() {
        let of = |major, minor| Ok(PhpVersion::Of { major, minor });
        assert_eq!(version("auto"), Ok(PhpVersion::Newest));
        assert_eq!(version("8"), of(8, None));
        assert_eq!(version("8.2"), of(8, Some(2)));
        for text in ["", "8.", ".2", "+8", "8.2.1", "new", "300"] {
            assert!(version(text).is_err(), "{text}");
        }
    }
}
