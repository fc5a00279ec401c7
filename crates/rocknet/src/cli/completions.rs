//! `rocknet completions`: prints a completion script for a shell.

use clap_complete::Shell;

use super::{Failure, print};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The shell: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub shell: Shell,
}

/// Prints the script. `command` is the definition of the whole command line.
pub fn run(options: &Options, mut command: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "rocknet", &mut script);
    print(String::from_utf8_lossy(&script));
    Ok(())
}
