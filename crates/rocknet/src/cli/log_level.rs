//! Levels of the error log of a running server, as the control API queries and changes them.

use rocknet::log::ErrorLog;
use rocknet_config::model;
use rocknet_control::api::{ApiError, Level, LogLevel, LogLevelChange};

/// Crates of this program that write messages. Each module of them can have a level of its own.
const CRATES: [&str; 16] = [
    "rocknet",
    "rocknet_access",
    "rocknet_cache",
    "rocknet_certificates",
    "rocknet_files",
    "rocknet_gateway",
    "rocknet_handler",
    "rocknet_io",
    "rocknet_log",
    "rocknet_proxy",
    "rocknet_quic",
    "rocknet_telemetry",
    "quinn_proto",
    "quinn_udp",
    "h2",
    "hyper_util",
];

/// Returns the levels.
pub fn levels(log: &ErrorLog) -> LogLevel {
    let modules = log.module_levels().into_iter();
    LogLevel {
        level: from_model(log.level()),
        modules: modules.map(|(module, level)| (module, from_model(level))).collect(),
    }
}

/// Changes the general level, or the level of a module, until the next reload. If the change names a module and no
/// level, removes the level of the module, so that the general level applies to it again.
///
/// # Errors
///
/// Status 400 if the change names neither a module nor a level. Status 404 if a module has no level of its own that
/// could be removed. Status 422 if no crate of this program has the module, or if too many modules have a level.
pub fn change(log: &ErrorLog, change: &LogLevelChange) -> Result<(), ApiError> {
    match (&change.module, change.level) {
        (None, Some(level)) => {
            log.set_level(to_model(level));
            tracing::info!("the log level is {level} until the next reload, except for modules with their own level");
        }
        (Some(module), Some(level)) => {
            check(module)?;
            if !log.set_module_level(module, to_model(level)) {
                return Err(ApiError::new(422, "too many modules have a level of their own"));
            }
            tracing::info!("the log level of {module} is {level} until the next reload");
        }
        (Some(module), None) => {
            if !log.remove_module_level(module) {
                return Err(ApiError::new(404, format!("{module} has no level of its own")));
            }
            tracing::info!("{module} no longer has a log level of its own");
        }
        (None, None) => return Err(ApiError::new(400, "`level` is missing")),
    }
    Ok(())
}

/// Checks that the module can be in this program. Only the name of its crate is checked, because the modules of a crate
/// are not known here.
fn check(module: &str) -> Result<(), ApiError> {
    let name = module.split("::").next().unwrap_or_default();
    if CRATES.contains(&name) {
        return Ok(());
    }
    let known = CRATES.join(", ");
    Err(ApiError::new(
        422,
        format!("there is no module {module}: the path must begin with one of {known}"),
    ))
}

fn to_model(level: Level) -> model::Level {
    match level {
        Level::Error => model::Level::Error,
        Level::Warn => model::Level::Warn,
        Level::Info => model::Level::Info,
        Level::Debug => model::Level::Debug,
        Level::Trace => model::Level::Trace,
    }
}

fn from_model(level: model::Level) -> Level {
    match level {
        model::Level::Error => Level::Error,
        model::Level::Warn => Level::Warn,
        model::Level::Info => Level::Info,
        model::Level::Debug => Level::Debug,
        model::Level::Trace => Level::Trace,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn modules_of_other_crates_are_refused() {
        for module in ["rocknet", "rocknet_proxy::background", "quinn_proto"] {
            assert!(check(module).is_ok(), "{module}");
        }
        for module in ["", "rocknet_nope", "rocknet_prox", "::rocknet"] {
            assert_eq!(check(module).unwrap_err().status, 422, "{module}");
        }
    }

    #[test]
    fn every_crate_that_writes_messages_is_known() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for entry in fs::read_dir(crates).unwrap() {
            let folder = entry.unwrap().path();
            let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
                continue;
            };
            let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
            if dependencies.lines().any(|line| line.starts_with("tracing")) {
                let name = folder.file_name().unwrap().to_str().unwrap().replace('-', "_");
                assert!(CRATES.contains(&name.as_str()), "{name}");
            }
        }
    }
}
