//! The command line: defines its arguments. The commands are in the files of this folder, and most of those that only
//! send a request to a running server are in `remote`.

mod address_watch;
pub mod ban;
mod banner;
mod browser;
pub mod check;
pub mod completions;
pub mod config;
mod config_api;
mod config_file;
mod config_state;
mod control;
pub mod dashboard;
pub mod doctor;
mod event;
mod event_sources;
mod exit;
pub mod explain;
mod findings;
pub mod fmt;
mod handover;
pub mod hash_password;
mod host_folders;
pub mod import;
mod inspection;
mod launch;
mod loaded_files;
mod log_feed;
mod log_level;
pub mod logs;
mod main_loop;
pub mod man;
mod notifier;
mod output;
pub mod php;
mod qr_code;
mod reload;
pub mod remote;
pub mod run;
mod running;
mod sandbox;
mod search;
pub mod serve;
pub mod service;
pub mod sign;
mod site_detail;
mod site_visit;
mod terminal_text;
pub mod top;
pub mod trust;
pub mod upgrade;

pub use exit::{ExitStatus, Failure};
pub use handover::remember_own_path;
pub use output::{print, print_details, print_error, print_report, print_warning};

/// A web server: one line of TOML to host a site, at the speed limit of the kernel.
#[derive(clap::Parser)]
#[command(name = "rocknet", version, args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: run::BareOptions,
}

#[derive(clap::Subcommand)]
pub enum Command {
    Run(run::Options),
    Serve(serve::Options),
    Status(remote::StatusOptions),
    Sites(remote::SitesOptions),
    Reload(remote::ReloadOptions),
    Upgrade(upgrade::Options),
    Stop(remote::StopOptions),
    LogLevel(remote::LogLevelOptions),
    Config(config::Options),
    Certs(remote::CertsOptions),
    Upstreams(remote::UpstreamsOptions),
    Php(php::Options),
    Purge(remote::PurgeOptions),
    Ban(ban::Options),
    Logs(logs::Options),
    Top(top::Options),
    Dashboard(dashboard::Options),
    Check(check::Options),
    Fmt(fmt::Options),
    Explain(explain::Options),
    Import(import::Options),
    HashPassword(hash_password::Options),
    Sign(sign::Options),
    Trust(trust::Options),
    Untrust(trust::UntrustOptions),
    Doctor(doctor::Options),
    Service(service::Options),
    Completions(completions::Options),
    Man(man::Options),
}

const AFTER_HELP: &str = "\
Without a command, rocknet does what `rocknet run` does.

Exit codes: 0 good, 1 failed, 2 wrong usage, 78 bad configuration.";

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// Collects the source and documentation files below a folder.
    fn texts(folder: &Path, all: &mut Vec<(PathBuf, String)>) {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let is_text = |end: &std::ffi::OsStr| ["rs", "md", "html", "toml"].iter().any(|known| end == *known);
            if path.is_dir() {
                texts(&path, all);
            } else if path.extension().is_some_and(is_text) {
                all.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn every_command_that_a_text_names_exists() {
        let command = Arguments::command();
        let known: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut all = Vec::new();
        for folder in ["crates/rocknet/src", "crates/rocknet-config/src", "docs", "examples"] {
            texts(&top.join(folder), &mut all);
        }
        let readme = top.join("README.md");
        all.push((readme.clone(), std::fs::read_to_string(readme).unwrap()));
        let mut named = 0;
        for (path, text) in all {
            for after in text.split("`rocknet ").skip(1) {
                let word: String = after
                    .chars()
                    .take_while(|c| c.is_ascii_lowercase() || *c == '-')
                    .collect();
                let is_command =
                    word.is_empty() || word.starts_with('-') || word == "help" || known.contains(&word.as_str());
                assert!(is_command, "{}: there is no `rocknet {word}`", path.display());
                named += 1;
            }
        }
        // The search has found the commands in the texts.
        assert!(named > 40, "{named}");
    }

    #[test]
    fn every_command_and_option_has_a_help_text() {
        for command in Arguments::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    argument.get_id()
                );
            }
        }
    }
}
