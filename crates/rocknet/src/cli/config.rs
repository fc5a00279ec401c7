//! `rocknet config`: shows and edits the configuration of a running server.

use std::path::{Path, PathBuf};

use rocknet_config::edit;
use rocknet_control::SiteSummary;
use rocknet_control::api::Request;
use rocknet_control::config::{Change, ChangeList, ConfigFileName, ConfigText, Edit, Edits, Saved, Undo};
use rocknet_control::text;

use super::remote::{Target, print_json};
use super::{Failure, print, print_details, print_warning, search};

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
        /// The folder; a relative path is relative to the current folder
        #[arg(value_hint = clap::ValueHint::DirPath)]
        root: PathBuf,
        /// An included file that gets the site, such as sites/shop.toml, relative to the folder of the main file; it is
        /// created if it does not exist
        #[arg(long)]
        file: Option<PathBuf>,
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
    /// Restore the text before a change, which also undoes later changes
    ///
    /// If this would discard edits by hand, nothing changes, and the edits are printed.
    Undo {
        /// The number of the change; by default the last one
        id: Option<u64>,
        /// Discard edits by hand too
        #[arg(long)]
        discard_edits: bool,
    },
}

pub fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Action::Show { file } => show(options, file.as_deref()),
        Action::Files => files(options),
        Action::History => history(options),
        Action::Undo { id, discard_edits } => undo(options, *id, *discard_edits),
        Action::AddSite { name, root, file } => add_site(options, name, root, file.as_deref()),
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

/// Returns the edit of an action that makes a single edit. Fails for an action that edits nothing, and for `AddSite`
/// and `Undo`, because [`run`] handles them separately.
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
        // A site without the key is served.
        Action::EnableSite { name } => enabled(name, ""),
        Action::Show { .. } | Action::Files | Action::History | Action::AddSite { .. } | Action::Undo { .. } => {
            return Err(Failure::Failed("this action edits nothing".to_owned()));
        }
    })
}

/// Adds a site, and prints its URLs. `file` is the file to add it to, relative to the folder of the main file.
fn add_site(options: &Options, name: &str, root: &Path, file: Option<&Path>) -> Result<(), Failure> {
    let config: ConfigText = options.target.call(&Request::Config(ConfigFileName::default()))?;
    // The server resolves the name in the same way, in the folder of the main file.
    let path = file.map(|file| config.file.with_file_name("").join(file));
    let is_known = |path: &PathBuf| config.files.contains(path);
    let edit = Edit::AddSite {
        name: name.to_owned(),
        root: root_of_file(root, path.as_ref().unwrap_or(&config.file))?,
    };
    change(
        options,
        &Request::EditConfig(Edits {
            edits: vec![edit],
            create: path.as_ref().is_some_and(|path| !is_known(path)),
            file: file.map(Path::to_path_buf),
            ..Edits::default()
        }),
    )?;
    if options.json {
        return Ok(());
    }
    let sites: Vec<SiteSummary> = options.target.call(&Request::Sites)?;
    let added = sites.iter().find(|site| site.name == name);
    for url in added.into_iter().flat_map(|site| &site.urls) {
        print(format_args!("{}\n", text::sanitized(url, MAX_URL)));
    }
    Ok(())
}

/// Returns the value of `root` for a folder named relative to the current folder. The value is relative if the folder
/// is inside the folder of the configuration file, and absolute otherwise. Symbolic links are not resolved, because
/// their targets may change with the next release of the site.
fn root_of_file(root: &Path, file: &Path) -> Result<String, Failure> {
    let absolute = search::resolved(root);
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(file.parent().unwrap_or(Path::new("/")));
    // Takes the outermost match, because a link inside may lead back to the folder.
    let above = absolute.ancestors().filter(|above| real(above) == folder).last();
    let value = match above.and_then(|above| absolute.strip_prefix(above).ok()) {
        Some(inside) if inside.as_os_str().is_empty() => Path::new("."),
        Some(inside) => inside,
        None => &absolute,
    };
    let value = value.to_str().map(str::to_owned);
    value.ok_or_else(|| Failure::Failed(format!("the path {} is not valid UTF-8", root.display())))
}

/// Maximum number of characters of a URL that are shown: enough for the longest host name (253) with its port.
const MAX_URL: usize = 500;

/// Returns the edit of the key `enabled` of a site. An empty text removes the key.
fn enabled(site: &str, text: &str) -> Edit {
    Edit::SetField {
        site: site.to_owned(),
        field: "enabled".to_owned(),
        text: text.to_owned(),
    }
}

fn show(options: &Options, file: Option<&Path>) -> Result<(), Failure> {
    // A relative path refers to the current folder if the file exists there. Otherwise the server resolves the path
    // in the folder of the main file.
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

/// Restores the text before a change.
fn undo(options: &Options, id: Option<u64>, discard_edits: bool) -> Result<(), Failure> {
    // Each change has the revision of the current text of its file. With it, the server discards only the edits in the
    // current text: if the file is edited again before the undo, the server does not change it. The history lists the
    // latest change first. If no revision is found, the change does not exist, and the server reports that.
    let revision = if discard_edits {
        let changes: Vec<Change> = options.target.call(&Request::ConfigHistory)?;
        let change = changes.into_iter().find(|change| id.is_none_or(|id| change.id == id));
        change.map(|change| change.revision)
    } else {
        None
    };
    let request = Request::UndoConfig(Undo {
        id,
        discard_edits: discard_edits && revision.is_some(),
        revision,
    });
    let saved = options.target.try_call(&request)?.map_err(|error| {
        if let Some(details) = &error.details {
            print_details(&text::indented(details, 4));
        }
        match error.status {
            // Without details, the undo is refused for another reason: the file changed meanwhile, or an upgrade is in
            // progress.
            409 if !discard_edits && error.details.is_some() => {
                let id = id.map_or_else(String::new, |id| format!(" {id}"));
                Failure::Failed(format!(
                    "{error}; `rocknet config undo{id} --discard-edits` discards them"
                ))
            }
            _ => Failure::Failed(error.to_string()),
        }
    })?;
    print_saved(options, &saved)
}

/// Sends a request that changes the configuration file, and prints the result.
fn change(options: &Options, request: &Request) -> Result<(), Failure> {
    print_saved(options, &options.target.call(request)?)
}

fn print_saved(options: &Options, saved: &Saved) -> Result<(), Failure> {
    if options.json {
        return print_json(saved);
    }
    print(format_args!("{}\n", saved.message));
    saved.findings.iter().for_each(print_warning);
    Ok(())
}
