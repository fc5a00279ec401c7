//! `rocknet man`: prints the manual page, generated from the definitions that parse the command line.

use std::io;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::control::SOCKET_VARIABLE;
use super::{Failure, print, search};

/// Print the manual page
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The command whose page to print; by default the page of RockNet itself
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// Returns the page of RockNet itself. `root` is the definition of the whole command line.
///
/// # Errors
///
/// Returns the error of the writer. A buffer in memory never fails.
pub fn page(mut root: clap::Command) -> io::Result<String> {
    // Fills in the arguments that commands inherit.
    root.build();
    let mut page = Vec::new();
    whole(root, &mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Prints a page. `root` is the definition of the whole command line.
pub fn run(options: &Options, mut root: clap::Command) -> Result<(), Failure> {
    root.build();
    let mut page = Vec::new();
    let rendered = match &options.command {
        None => whole(root, &mut page),
        Some(name) => match root.find_subcommand(name) {
            Some(command) => part(command, &mut page),
            None => {
                return Err(Failure::Usage(format!(
                    "there is no command `{name}`; `rocknet help` lists them"
                )));
            }
        },
    };
    rendered.map_err(|error| Failure::Failed(error.to_string()))?;
    print(String::from_utf8_lossy(&page));
    Ok(())
}

/// Writes the page of RockNet itself.
fn whole(command: clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    // The exit codes, which the command line shows after the help, have a section of their own on the page.
    let man = Man::new(command.after_help(None::<&str>));
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    man.render_subcommands_section(page)?;
    for Section {
        title,
        introduction,
        rows,
    } in SECTIONS
    {
        section(title, introduction, rows, page)?;
    }
    section(
        "FILES",
        "",
        &search::CONFIG_PATHS.map(|place| (place, "The configuration if no file is named.")),
        page,
    )?;
    man.render_version_section(page)
}

/// Writes the page of one command.
fn part(command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    Man::new(command.clone()).render(page)
}

/// Writes a section with a list of terms. `introduction`: text before the list, or empty. `rows`: each term with its
/// meaning.
fn section(title: &str, introduction: &str, rows: &[(&str, &str)], page: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    if !introduction.is_empty() {
        roff.text([roman(introduction)]);
    }
    for (term, meaning) in rows {
        roff.control("TP", []).text([bold(*term)]).text([roman(*meaning)]);
    }
    roff.to_writer(page)
}

/// Section of the page with a list of terms.
struct Section {
    title: &'static str,
    /// Text before the list; empty without one.
    introduction: &'static str,
    /// Each term with its meaning.
    rows: &'static [(&'static str, &'static str)],
}

/// Sections of the page that the definitions of the command line do not contain.
const SECTIONS: [Section; 4] = [
    Section {
        title: "TERMINAL COMMANDS",
        introduction: "Commands to type in the terminal in which the server runs.",
        rows: &[
            ("status", "Current connections, requests, responses and cache."),
            ("sites", "Sites with their URLs."),
            ("reload", "Reads the configuration again; a bad one changes nothing."),
            ("quit", "Finishes the responses in progress, then stops."),
            ("help", "Lists these commands."),
        ],
    },
    Section {
        title: "SIGNALS",
        introduction: "",
        rows: &[
            (
                "SIGTERM, SIGINT",
                "Responses in progress finish, then the server stops. A second signal stops it immediately.",
            ),
            (
                "SIGHUP",
                "Reads the configuration again; a bad one changes nothing, and no connection is cut.",
            ),
            ("SIGUSR1", "Reopens the log files after they were moved."),
            (
                "SIGUSR2",
                "Starts the program file again and passes the sockets to the new process, as `rocknet upgrade` does.",
            ),
        ],
    },
    Section {
        title: "EXIT STATUS",
        introduction: "",
        rows: &[
            ("0", "Good."),
            ("1", "Failed."),
            ("2", "Wrong usage."),
            ("78", "Bad configuration."),
        ],
    },
    Section {
        title: "ENVIRONMENT",
        introduction: "",
        rows: &[
            (
                rocknet_log::LEVEL_VARIABLE,
                "The level of the error log: error, warn, info, debug or trace. Overrides the configuration.",
            ),
            (
                SOCKET_VARIABLE,
                "The path of the control socket, or off for none. Overrides the configuration, for the server and for the \
                 commands that control it.",
            ),
            (
                rocknet::backend::VARIABLE,
                "The kernel interface for sockets: auto, epoll or io_uring. Overrides the configuration.",
            ),
            ("NO_COLOR", "Turns colour off."),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::super::ExitStatus;
    use super::*;

    /// Returns the rows of the section with this title.
    fn rows(title: &str) -> &'static [(&'static str, &'static str)] {
        SECTIONS.iter().find(|section| section.title == title).unwrap().rows
    }

    #[test]
    fn the_variables_keep_their_names() {
        let names: Vec<_> = rows("ENVIRONMENT").iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["ROCKNET_LOG", "ROCKNET_SOCKET", "ROCKNET_BACKEND", "NO_COLOR"]);
    }

    #[test]
    fn the_page_names_every_terminal_command_and_exit_code() {
        let names: Vec<_> = rows("TERMINAL COMMANDS").iter().map(|(name, _)| *name).collect();
        assert_eq!(names, rocknet_control::Command::ALL.map(rocknet_control::Command::name));
        let codes: Vec<_> = rows("EXIT STATUS")
            .iter()
            .map(|(code, _)| code.parse::<u8>().unwrap())
            .collect();
        assert_eq!(
            codes,
            [
                ExitStatus::Success,
                ExitStatus::Failed,
                ExitStatus::Usage,
                ExitStatus::Configuration
            ]
            .map(|exit| exit as u8)
        );
    }
}
