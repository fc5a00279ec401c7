//! `rocknet doctor`: checks the requirements of a server on this machine, and prints how to fix problems. Each check is
//! a file of this folder and a line of the table in `registry`.

mod access;
mod accounts;
mod bans;
mod certificates;
mod clock;
mod configuration;
mod denied_paths;
mod facts;
mod fix;
mod folders;
mod holder;
mod hosts_file;
mod local_ca;
mod log_folder;
mod lookup;
mod names;
mod open_files;
mod php;
mod php_settings;
mod ports;
mod quic;
mod registry;
mod report;
mod sandbox_support;
mod served;
mod server_account;
mod sockets;
#[cfg(test)]
mod test_account;
mod verdict;

use std::path::Path;

use rocknet_control::doctor::DoctorVerdict;

use super::{ExitStatus, Failure, print, search};
use facts::DoctorFacts;
pub use served::{Running, ServedAddresses};
use server_account::OtherAccount;
pub use verdict::Check;

/// Check the requirements of the server on this machine, and show what is missing
///
/// Exits with 1 if something is broken. Checks that need root are listed as skipped.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub file: search::ConfigFile,
    /// Print the results as JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// Repair the hosts file, trust in the local CA and owners of folders, after a question for each
    #[arg(long)]
    pub fix: bool,
    /// Repair without questions
    #[arg(long, requires = "fix")]
    pub yes: bool,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    if options.fix {
        fix::check_options(options.yes, options.json)?;
    }
    let file = options.file.named().map(Path::to_path_buf).or_else(search::find);
    let file = file.map(|file| search::absolute(&file));
    let mut checks = check_machine(file.as_deref());
    if !options.json {
        report::print_text(&checks);
    }
    let repairs = options.fix.then(|| fix::repair(&checks, options.yes, options.json));
    if repairs.iter().flatten().any(fix::Repair::was_tried) {
        checks = check_machine(file.as_deref());
        if !options.json {
            print("\nAfter the repairs:\n");
            report::print_text(&checks);
        }
    }
    if options.json {
        report::print_json(&checks, repairs.as_deref());
    }
    if checks.iter().any(|check| check.verdict == DoctorVerdict::Bad) {
        return Err(Failure::Reported(ExitStatus::Failed));
    }
    Ok(())
}

/// Queries the running server, if there is one, and runs all checks.
fn check_machine(file: Option<&Path>) -> Vec<Check> {
    let (running, error) = match served::running_server(file) {
        Ok(running) => (running, None),
        Err(error) => {
            let check = Check::bad("server", "server-does-not-reply", error);
            (Running::default(), Some(check))
        }
    };
    let mut checks = checks(file, &running);
    checks.extend(error);
    checks
}

/// Runs all checks for a configuration. `file`: the configuration, if there is one. `running`: its running server.
pub fn checks(file: Option<&Path>, running: &Running) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(config) = configuration::load(file, running, &mut checks) {
        checks.extend(registry::run(&DoctorFacts {
            config: &config,
            running,
            other_account: OtherAccount::find(&config, running),
        }));
    }
    checks
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Returns the codes in a source: the first text in lower case with hyphens after each constructor of a finding.
    fn codes(source: &str) -> Vec<String> {
        let constructors = ["Check::fair(", "Check::bad(", "Check::skipped("];
        let after = constructors.iter().flat_map(|name| source.split(name).skip(1));
        let code = |text: &str| {
            let mut texts = text.split('"').skip(1).step_by(2).take(2);
            texts
                .find(|text| text.contains('-') && text.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
                .map(str::to_owned)
        };
        after.filter_map(code).collect()
    }

    #[test]
    fn every_code_is_documented() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(top.join("../../docs/doctor.md")).unwrap();
        let mut found = 0;
        for entry in top.join("src/cli/doctor").read_dir().unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            // Tests use codes as examples.
            let source = source.split("#[cfg(test)]").next().unwrap();
            for code in codes(source) {
                assert!(page.contains(&format!("`{code}`")), "docs/doctor.md lacks `{code}`");
                found += 1;
            }
        }
        assert!(found > 20, "{found}");
    }
}
