//! The program `rocknet`: parses the command line, runs the command, and returns its exit code. The commands are in
//! `cli`; several commands for a running server are in `cli::remote`.
#![forbid(unsafe_code)]

mod cli;
mod console;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli::{Arguments, Command, ExitStatus};
use rocknet::gateway::accounts;
use rocknet::handler::controller::isolated;
use rocknet_io::service_manager::ServiceEnvironment;

/// The allocator of the program. A connection consists of a few blocks with 128-byte alignment, which glibc enlarges by
/// a third. With mimalloc, an idle connection needs a quarter less memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the path of this program. On Linux it stays valid after the file has been replaced.
fn own_program() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        Some("/proc/self/exe".into())
    } else {
        std::env::current_exe().ok()
    }
}

fn main() -> ExitCode {
    // The server starts this program again as the process of an isolated library, and as the account helper.
    if let Some(exit) = isolated::run_if_child() {
        return exit;
    }
    if let Some(exit) = accounts::run_if_helper() {
        return exit;
    }
    // An upgrade starts the file that is at the path of this program by then. The other children run the present
    // program.
    cli::remember_own_path();
    if let Some(program) = own_program() {
        accounts::set_helper_program(program.clone());
        isolated::set_program(program);
    }
    // Removes the variables of the service manager, because programs that the server starts must not notify it.
    let service = ServiceEnvironment::take();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap returns `--help` and `--version` as errors too. A failed write, such as to a closed standard output,
            // is ignored.
            let _ = error.print();
            return if error.use_stderr() {
                ExitStatus::Usage.into()
            } else {
                ExitStatus::Success.into()
            };
        }
    };
    let done = match arguments.command {
        None => cli::run::run_bare(&arguments.run, service),
        Some(Command::Run(options)) => cli::run::run(&options, service),
        Some(Command::Serve(options)) => cli::serve::run(&options, service),
        Some(Command::Status(options)) => cli::remote::status(&options),
        Some(Command::Sites(options)) => cli::remote::sites(&options),
        Some(Command::Reload(options)) => cli::remote::reload(&options),
        Some(Command::Upgrade(options)) => cli::upgrade::run(&options),
        Some(Command::Stop(options)) => cli::remote::stop(&options),
        Some(Command::LogLevel(options)) => cli::remote::log_level(&options),
        Some(Command::Config(options)) => cli::config::run(&options),
        Some(Command::Certs(options)) => cli::remote::certs(&options),
        Some(Command::Upstreams(options)) => cli::remote::upstreams(&options),
        Some(Command::Php(options)) => cli::php::php(&options),
        Some(Command::Purge(options)) => cli::remote::purge(&options),
        Some(Command::Ban(options)) => cli::ban::run(&options),
        Some(Command::Top(options)) => cli::top::run(&options),
        Some(Command::Dashboard(options)) => cli::dashboard::run(&options),
        Some(Command::Logs(options)) => cli::logs::run(&options),
        Some(Command::Check(options)) => cli::check::run(&options),
        Some(Command::Fmt(options)) => cli::fmt::run(&options),
        Some(Command::Explain(options)) => cli::explain::run(&options),
        Some(Command::Import(options)) => cli::import::run(&options),
        Some(Command::HashPassword(options)) => cli::hash_password::run(&options),
        Some(Command::Sign(options)) => cli::sign::run(&options),
        Some(Command::Trust(options)) => cli::trust::run(&options),
        Some(Command::Untrust(options)) => cli::trust::run_untrust(&options),
        Some(Command::Doctor(options)) => cli::doctor::run(&options),
        Some(Command::Service(options)) => cli::service::run(&options, Arguments::command()),
        Some(Command::Completions(options)) => cli::completions::run(&options, Arguments::command()),
        Some(Command::Man(options)) => cli::man::run(&options, Arguments::command()),
    };
    match done {
        Ok(()) => ExitStatus::Success.into(),
        Err(failure) => failure.report().into(),
    }
}
