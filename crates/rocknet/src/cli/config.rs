//! `rocknet config`: shows and edits the configuration of a running server.

use std::path::{Path, PathBuf};

use rocknet_config::edit;
use rocknet_control::api::Request;
use rocknet_control::config::{Change, ChangeList, ConfigFileName, ConfigText, Edit, Edits, Saved, Undo};

use super::remote::{Target, print_json};
use super::{Failure, print, print_warning};

/// Show or edit the configuration of the running server
///
/// An edit is checked, written to the file and loaded. If the server cannot use it, nothing changes. Comments, order
/// and spacing of the file are kept.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    target: Target,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the configuration file
    Show {
        /// An included file; by default the main file
        file: Option<PathBuf>,
    },
    /// List the configuration file and the files that it includes
    Files,
    /// Set a key
    Set {
        /// The key, such as 'site."example.com".root'
        key: String,
        /// The value in TOML; other text is taken as a string
        value: String,
    },
    /// Remove a key or a table
    Unset {
        /// The key, such as 'site."example.com".redirects'
        key: String,
    },
    /// Add a site that serves a folder
    AddSite {
        /// Its name, such as example.com or :8081
        name: String,
        /// The folder
        root: String,
    },
    /// Remove a site from the configuration; its files stay
    RemoveSite {
        /// Its name
        name: String,
    },
    /// Add a copy of a site, without its aliases
    CopySite {
        /// The site
        from: String,
        /// The name of the copy
        to: String,
    },
    /// Give a site another name
    RenameSite {
        /// The site
        from: String,
        /// Its new name
        to: String,
    },
    /// Keep a site in the configuration without serving it
    DisableSite {
        /// Its name
        name: String,
    },
    /// Serve a disabled site again
    EnableSite {
        /// Its name
        name: String,
    },
    /// List the changes that were made by these commands, the dashboard and other programs
    History,
    /// Restore the text before a change
    Undo {
        /// The number of the change; by default the last one
        id: Option<u64>,
    },
}

pub fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::Show { file } => show(options, file.as_deref()),
        Action::Files => files(options),
        Action::History => history(options),
        Action::Undo { id } => undo(options, *id),
        action => {
            let edit = edit(action)?;
            change(
                options,
                &Request::EditConfig(Edits {
                    edits: vec![edit],
                    ..Edits::default()
                }),
            )
        }
    }
}

/// Returns the edit of an action that sets, removes or adds something; an error for the other actions.
fn edit(action: &Action) -> Result<Edit, Failure> {
    let path = |key: &str| edit::key_path(key).map_err(|error| Failure::Failed(error.to_string()));
    Ok(match action {
        Action::Set { key, value } => Edit::Set {
            path: path(key)?,
            value: if edit::is_value(value) {
                value.clone()
            } else {
                edit::text(value)
            },
        },
        Action::Unset { key } => Edit::Remove { path: path(key)? },
        Action::AddSite { name, root } => Edit::AddSite {
            name: name.clone(),
            root: root.clone(),
        },
        Action::RemoveSite { name } => Edit::Remove {
            path: vec!["site".to_owned(), name.clone()],
        },
        Action::CopySite { from, to } => Edit::CopySite {
            from: from.clone(),
            to: to.clone(),
        },
        Action::RenameSite { from, to } => Edit::RenameSite {
            from: from.clone(),
            to: to.clone(),
        },
        Action::DisableSite { name } => enabled(name, "false"),
        Action::EnableSite { name } => enabled(name, ""),
        Action::Show { .. } | Action::Files | Action::History | Action::Undo { .. } => {
            return Err(Failure::Failed("this action edits nothing".to_owned()));
        }
    })
}

/// Returns the edit of the key `enabled` of a site. An empty text removes the key.
fn enabled(site: &str, text: &str) -> Edit {
    Edit::SetField {
        site: site.to_owned(),
        field: "enabled".to_owned(),
        text: text.to_owned(),
    }
}

fn show(options: &Options, file: Option<&Path>) -> Result<(), Failure> {
    // A name is relative to this folder if there is such a file, else to the folder of the main file.
    let file = file.map(|file| match std::path::absolute(file) {
        Ok(absolute) if absolute.exists() => absolute,
        _ => file.to_owned(),
    });
    let config: ConfigText = options.target.call(&Request::Config(ConfigFileName { file }))?;
    if options.json {
        return print_json(&config);
    }
    print(&config.text);
    if !config.is_loaded {
        print_warning(format_args!(
            "{} was edited and is not loaded yet: `rocknet reload`",
            config.file.display()
        ));
    }
    Ok(())
}

fn files(options: &Options) -> Result<(), Failure> {
    let config: ConfigText = options.target.call(&Request::Config(ConfigFileName::default()))?;
    if options.json {
        return print_json(&config.files);
    }
    for file in &config.files {
        print(format_args!("{}\n", file.display()));
    }
    Ok(())
}

fn history(options: &Options) -> Result<(), Failure> {
    let changes: Vec<Change> = options.target.call(&Request::ConfigHistory)?;
    if options.json {
        return print_json(&changes);
    }
    print(ChangeList(&changes));
    Ok(())
}

/// Restores the text before a change. A change with a given `id` may not be the last one, and undoing it also undoes
/// all later changes. The server therefore requires the present revision of the file, which is queried first.
fn undo(options: &Options, id: Option<u64>) -> Result<(), Failure> {
    let revision = match id {
        Some(id) => {
            let changes: Vec<Change> = options.target.call(&Request::ConfigHistory)?;
            let change = changes.into_iter().find(|change| change.id == id);
            change.map(|change| change.revision)
        }
        None => None,
    };
    change(options, &Request::UndoConfig(Undo { id, revision }))
}

/// Sends a request that changes the configuration file, and prints the result.
fn change(options: &Options, request: &Request) -> Result<(), Failure> {
    let saved: Saved = options.target.call(request)?;
    if options.json {
        return print_json(&saved);
    }
    print(format_args!("{}\n", saved.message));
    for finding in &saved.findings {
        print_warning(format_args!("line {}: {}", finding.line, finding.message));
    }
    Ok(())
}
