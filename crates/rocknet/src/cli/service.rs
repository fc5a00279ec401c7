//! `rocknet service`: installs the server as a service of systemd on a machine without a package, removes the service,
//! and shows its state.

mod layout;
mod plan;
mod status;

use std::path::{Path, PathBuf};

use rocknet::certificates::ServerEnvironment;
use rocknet_io::privileges::is_root;

use super::remote::print_json;
use super::{Failure, man, print};
use layout::Layout;
use plan::{Plan, Step};

/// Install, remove or show the service of systemd
///
/// For a machine without a package of RockNet: `install` copies the program, writes the unit and a configuration, and
/// starts the service. A package does the same by itself.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Install the service and start it; an existing configuration stays as it is
    Install(ChangeOptions),
    /// Stop the service and remove its unit; configuration, state, logs and sites stay
    Uninstall(ChangeOptions),
    /// Show the state of the service
    Status(status::Options),
}

#[derive(Debug, clap::Args)]
struct ChangeOptions {
    /// Print the steps, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write the files below this folder, and start or stop nothing: for images of machines
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    root: Option<PathBuf>,
    /// Print JSON: `steps` and `notes`
    #[arg(long)]
    json: bool,
}

/// Runs the command. `root` is the definition of the whole command line.
pub fn run(options: &Options, root: clap::Command) -> Result<(), Failure> {
    match &options.action {
        Action::Install(options) => change(options, "install", |layout| install(layout, root)),
        Action::Uninstall(options) => change(options, "uninstall", uninstall),
        Action::Status(options) => {
            check_systemd()?;
            status::run(options)
        }
    }
}

/// Plans a change, then prints the plan or carries it out. `name` is the name of the subcommand, for messages.
fn change(
    options: &ChangeOptions,
    name: &str,
    plan: impl FnOnce(&Layout) -> Result<Plan, Failure>,
) -> Result<(), Failure> {
    let layout = Layout::new(options.root.as_deref());
    if !options.dry_run && layout.is_this_system() {
        check_system(name)?;
    }
    let plan = plan(&layout)?;
    if !options.dry_run {
        plan.carry_out(|step| {
            if !options.json {
                print(format_args!("{step}\n"));
            }
        })?;
    }
    if options.json {
        return print_json(&plan.summary());
    }
    print(if options.dry_run {
        plan.to_string()
    } else {
        plan.notes()
    });
    Ok(())
}

/// Fails unless this process can control the service manager.
fn check_system(name: &str) -> Result<(), Failure> {
    if !is_root() {
        return Err(Failure::Failed(format!(
            "`rocknet service {name}` needs root: run it with sudo, or add --dry-run to see the steps"
        )));
    }
    check_systemd()
}

/// Fails if this system was not started by systemd.
fn check_systemd() -> Result<(), Failure> {
    if Path::new(SYSTEMD_IS_RUNNING).is_dir() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "this system does not run systemd ({SYSTEMD_IS_RUNNING} does not exist): start `rocknet run` by its service \
         manager, or write the files of an image with `--root FOLDER`"
    )))
}

/// Returns the plan of an installation. `root` is the definition of the whole command line.
fn install(layout: &Layout, root: clap::Command) -> Result<Plan, Failure> {
    if let Some(unit) = layout.packaged_unit() {
        return Err(Failure::Failed(format!(
            "{} exists: a package has installed the service; use `systemctl enable --now rocknet`",
            unit.display()
        )));
    }
    let own = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find the file of this program: {error}")))?;
    let mut plan = Plan::default();
    if !layout.is_program(&own) {
        plan.add(Step::Copy(own, layout.program()));
    }
    let page = man::page(root).map_err(|error| Failure::Failed(format!("cannot write the man page: {error}")))?;
    plan.add(Step::Write(layout.man_page(), page));
    plan.add(Step::Write(layout.account(), layout::ACCOUNT.to_owned()));
    let configuration = layout.configuration();
    let is_configured = configuration.exists();
    let has_folder = layout.configuration_folder().exists();
    if is_configured {
        if layout.is_this_system() {
            // The restart below would stop a running service if its configuration were invalid.
            rocknet_config::load(&configuration, &ServerEnvironment::new()).map_err(Failure::Configuration)?;
        }
        plan.note(format!("{} exists and stays as it is", configuration.display()));
    } else {
        plan.add(Step::Write(configuration, layout::CONFIGURATION.to_owned()));
    }
    // An existing folder may contain a site, to which no page is added.
    if !layout.site().exists() {
        plan.add(Step::Write(layout.site().join("index.html"), layout::PAGE.to_owned()));
    }
    plan.add(Step::Write(layout.unit(), layout.unit_text()));
    if layout.is_this_system() {
        let account = layout.account().display().to_string();
        plan.add_command(&["systemd-sysusers", &account]);
        if !is_configured {
            // Makes `rocknet` the owner of a new configuration, so that `rocknet config` and the dashboard can edit it.
            // An existing folder, which `new` leaves out, keeps its owner, because the server must not be able to
            // replace the files in it. If that owner is another account, the account could put a link in place of the
            // new file, so links are not followed (`-h`).
            let new = &layout::CONFIGURATION_PATHS[usize::from(has_folder)..];
            plan.add_command(&[&["chown", "-h", "rocknet:rocknet"], new].concat());
            if has_folder {
                plan.note(format!(
                    "{} exists and keeps its owner: {}",
                    layout.configuration_folder().display(),
                    permit_edits()
                ));
            }
        }
        plan.add_command(&["systemctl", "daemon-reload"]);
        plan.add_command(&["systemctl", "enable", layout::UNIT_NAME]);
        // The restart also replaces a server that runs an older program.
        plan.add_command(&["systemctl", "restart", layout::UNIT_NAME]);
    } else {
        // The service manager of the image is not running, so the plan creates the link that the manager would
        // create.
        let (link, target) = layout.start_link();
        plan.add(Step::Link(link, target));
        if !is_configured {
            // The account may not exist in the image yet, or may have another ID than on this system.
            plan.note(format!("{} in the image", permit_edits()));
        }
    }
    plan.note("`rocknet service status` shows the service, `rocknet status` its connections".to_owned());
    Ok(plan)
}

/// Returns how to permit changes of the configuration by the server. The command is for the installed system, so its
/// paths do not begin with the folder of `--root`.
fn permit_edits() -> String {
    format!(
        "to let `rocknet config` and the dashboard change the configuration, run `chown rocknet: {}`",
        layout::CONFIGURATION_PATHS.join(" ")
    )
}

/// Returns the plan of a removal.
fn uninstall(layout: &Layout) -> Result<Plan, Failure> {
    let unit = layout.unit();
    if !unit.exists() {
        return Err(Failure::Failed(format!(
            "{} does not exist: no service was installed by `rocknet service install`",
            unit.display()
        )));
    }
    let mut plan = Plan::default();
    if layout.is_this_system() {
        plan.add_command(&["systemctl", "disable", "--now", layout::UNIT_NAME]);
    }
    plan.add(Step::Remove(unit));
    // On this system, `systemctl disable` has already removed the link.
    plan.add(Step::Remove(layout.start_link().0));
    plan.add(Step::Remove(layout.man_page()));
    plan.add(Step::Remove(layout.account()));
    if layout.is_this_system() {
        plan.add_command(&["systemctl", "daemon-reload"]);
    }
    for (kept, what) in layout.kept() {
        plan.note(format!("kept: {} ({what})", kept.display()));
    }
    plan.note("kept: the account `rocknet`, because files of sites may belong to it".to_owned());
    Ok(plan)
}

/// Folder that exists if systemd is the service manager: `sd_booted(3)`.
const SYSTEMD_IS_RUNNING: &str = "/run/systemd/system";
