//! `rocknet check`: reports every error in a configuration, without applying it.

use rocknet::certificates::ServerEnvironment;
use rocknet::gateway::php;
use rocknet_config::{Code, Finding, Loaded, Report, Severity};

use super::{ExitStatus, Failure, print, print_report, search};

/// Report every error in a configuration, without applying it
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Print the findings as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Checks the configuration file and prints the findings.
pub fn run(options: &Options) -> Result<(), Failure> {
    let checked = options.file.named_or_found().and_then(|file| {
        let Loaded { config, mut warnings } =
            rocknet_config::check(&file, &ServerEnvironment::new()).map_err(Failure::Configuration)?;
        warnings.extend(php::missing(&config).into_iter().map(missing_program));
        Ok((
            file,
            config,
            Report {
                findings: warnings,
                omitted: 0,
            },
        ))
    });
    match checked {
        Ok((_, _, report)) if options.json => print(format_args!("{:#}\n", report.json())),
        Ok((file, config, report)) => {
            if !report.findings.is_empty() {
                print_report(&report);
            }
            let sites = match config.sites.len() {
                1 => "1 site".to_owned(),
                sites => format!("{sites} sites"),
            };
            print(format_args!("{} is good: {sites}\n", search::absolute(&file).display()));
        }
        Err(Failure::Configuration(report)) if options.json => {
            print(format_args!("{:#}\n", report.json()));
            return Err(Failure::Reported(ExitStatus::Configuration));
        }
        Err(failure) => return Err(failure),
    }
    Ok(())
}

/// Returns the finding for a missing program. It is a warning, because the program may exist on the target machine.
fn missing_program(message: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        code: Code::Missing,
        message,
        help: None,
        location: None,
        related: Vec::new(),
    }
}
