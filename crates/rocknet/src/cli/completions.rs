//! `rocknet completions`: what a shell needs to finish what is typed.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Arguments, Failure, say};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The shell: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub shell: Shell,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "rocknet", &mut script);
    say(String::from_utf8_lossy(&script));
    Ok(())
}
