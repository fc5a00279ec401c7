//! Instructions from forms, such as a purge of the cache or the restart of a PHP pool: parses the form, executes the
//! request, and reports the result.

mod traffic;

use form_urlencoded::parse;
use rocknet_control::api::{ApiError, Level, LogLevel, LogLevelChange, Reply, Request};
use rocknet_control::php::PhpPoolName;
use rocknet_control::upgrade::UpgradeOrder;

use super::frame::{PageKind, other_reply};
use super::notice::Notice;
use crate::Control;

/// Word in the form that gives a module the level of all other modules.
pub const DEFAULT_LEVEL: &str = "default";

/// Result of an instruction.
#[derive(Debug)]
pub enum Outcome {
    /// The server continues. The next page shows this report.
    Reported(Notice),
    /// Another process has taken over and does not know the session. The visitor sees this text.
    TakenOver(String),
}

/// Carries out the instruction in a form of a page.
///
/// # Errors
///
/// Fails with status 400 if the page has no such form or a field is not valid, or with the error of the request.
pub async fn carry_out<C: Control>(page: PageKind, form: &[u8], control: &C) -> Result<Outcome, ApiError> {
    let request = request(page, form)?;
    let is_upgrade = matches!(request, Request::Upgrade(_));
    Ok(match control.execute(request).await? {
        Reply::Done(done) if is_upgrade => Outcome::TakenOver(done.message),
        Reply::Done(done) => Outcome::Reported(done.into()),
        Reply::LogLevel(level) => Outcome::Reported(Notice::good(levels(&level))),
        _ => return Err(other_reply()),
    })
}

/// Parses a form.
fn request(page: PageKind, form: &[u8]) -> Result<Request, ApiError> {
    let field = |wanted: &str| {
        let found = parse(form).find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    let invalid = |message: String| ApiError::new(400, message);
    match (page, field("do").as_deref()) {
        (PageKind::Maintenance, Some("purge")) => Ok(Request::PurgeFileCache),
        (PageKind::Maintenance, Some("upgrade")) => Ok(Request::Upgrade(UpgradeOrder {
            binary: field("binary"),
            timeout: None,
        })),
        (PageKind::Maintenance, Some("log-level")) => {
            let word = field("level").unwrap_or_default();
            let level = Level::from_name(&word);
            if level.is_none() && word != DEFAULT_LEVEL {
                return Err(invalid(format!("there is no log level \"{word}\"")));
            }
            let module = field("module");
            let change = LogLevelChange { level, module };
            if change.level.is_none() && change.module.is_none() {
                return Err(invalid("name the module that gets the level of all others".to_owned()));
            }
            change.check().map_err(invalid)?;
            Ok(Request::SetLogLevel(change))
        }
        (PageKind::Php, Some(action @ ("restart" | "start" | "stop"))) => {
            let pool = PhpPoolName {
                name: field("name").unwrap_or_default(),
            };
            Ok(match action {
                "start" => Request::StartPhpPool(pool),
                "stop" => Request::StopPhpPool(pool),
                _ => Request::RestartPhpPool(pool),
            })
        }
        (PageKind::Traffic, Some("ban")) => traffic::ban(field),
        (PageKind::Traffic, Some("lift")) => traffic::lift(field),
        (PageKind::Traffic, Some("purge")) => traffic::purge(field),
        _ => Err(invalid("the page has no such form".to_owned())),
    }
}

/// Describes the levels after a change.
fn levels(level: &LogLevel) -> String {
    let mut text = format!(
        "The server writes messages of the level {} and worse until the next reload.",
        level.level
    );
    if !level.modules.is_empty() {
        let modules: Vec<_> = level
            .modules
            .iter()
            .map(|(module, level)| format!("{module} {level}"))
            .collect();
        text = format!("{text} Modules with a level of their own: {}.", modules.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_become_requests() {
        let parsed = |page, form: &str| request(page, form.as_bytes()).map_err(|error| error.status);
        let maintenance = |form| parsed(PageKind::Maintenance, form);
        let level = |level, module: Option<&str>| {
            Ok(Request::SetLogLevel(LogLevelChange {
                level,
                module: module.map(str::to_owned),
            }))
        };
        assert_eq!(maintenance("do=purge"), Ok(Request::PurgeFileCache));
        let binary = Some("/a b".to_owned());
        let order = |binary| Ok(Request::Upgrade(UpgradeOrder { binary, timeout: None }));
        assert_eq!(maintenance("do=upgrade&binary=+%2Fa+b+"), order(binary));
        assert_eq!(maintenance("do=upgrade&binary="), order(None));
        assert_eq!(
            maintenance("do=log-level&level=debug&module="),
            level(Some(Level::Debug), None)
        );
        assert_eq!(
            maintenance("do=log-level&level=default&module=rocknet_proxy"),
            level(None, Some("rocknet_proxy"))
        );
        let pool = PhpPoolName { name: "8.2@ann".into() };
        assert_eq!(
            parsed(PageKind::Php, "do=restart&name=8.2%40ann"),
            Ok(Request::RestartPhpPool(pool.clone()))
        );
        assert_eq!(
            parsed(PageKind::Php, "do=stop&name=8.2%40ann"),
            Ok(Request::StopPhpPool(pool.clone()))
        );
        assert_eq!(
            parsed(PageKind::Php, "do=start&name=8.2%40ann"),
            Ok(Request::StartPhpPool(pool))
        );
        for (page, form) in [
            (PageKind::Maintenance, ""),
            (PageKind::Maintenance, "do=restart&name=8.2"),
            (PageKind::Maintenance, "do=log-level"),
            (PageKind::Maintenance, "do=log-level&level=loud"),
            (PageKind::Maintenance, "do=log-level&level=default"),
            (PageKind::Maintenance, "do=log-level&level=debug&module=a+b"),
            (PageKind::Php, "do=purge"),
            (PageKind::Overview, "do=purge"),
            (PageKind::Traffic, "address=192.0.2.7"),
        ] {
            assert_eq!(parsed(page, form), Err(400), "{page:?} {form}");
        }
    }
}
