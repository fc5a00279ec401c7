//! Keys of `[ban]`.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, bound, field};
use crate::model::OffenceRate;
use crate::value::ban;

/// One year.
const YEAR_MS: u64 = 365 * 86_400_000;

const RATE: Kind = Kind::Either(&[Kind::Boolean, Kind::Text("number and time such as \"10/10m\"")]);

const TIME: Kind = Kind::Duration {
    min_ms: 1_000,
    max_ms: YEAR_MS,
};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "ban",
        &[Section::Top],
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::Ban)]),
        "Bans clients that misbehave: their connections are closed when they are accepted, and requests that a proxy of \
         `server.trusted_proxies` forwards for them get 403. `true` uses the defaults, and `[ban]` changes them \
         (docs/bans.md).",
    )
    .default(|| "false".to_owned())
    .example("ban = true")
    .foreign_names(&["fail2ban", "crowdsec", "bans"]),
    Key::new(
        "logins",
        &[Section::Ban],
        RATE,
        "Rate of failed logins above which a client is banned: distinct wrong passwords of `auth`, and POST requests to \
         `login_paths`. `false`: they lead to no ban.",
    )
    .sets(&[Target::Ban(bound!(
        read: |check, written, settings| ban::rate(check, written, &mut settings.logins),
        render: |settings, _| rate(settings.logins)
    ))])
    .example("logins = \"5/10m\"")
    .foreign_names(&["maxretry", "findtime"]),
    Key::new(
        "not_found",
        &[Section::Ban],
        RATE,
        "Rate of responses 404 and 410 above which a client is banned. Programs that probe a site for vulnerable files \
         get many of them. `false`: they lead to no ban.",
    )
    .sets(&[Target::Ban(bound!(
        read: |check, written, settings| ban::rate(check, written, &mut settings.not_found),
        render: |settings, _| rate(settings.not_found)
    ))])
    .example("not_found = \"30/1m\""),
    Key::new(
        "refused",
        &[Section::Ban],
        RATE,
        "Rate of responses 400, 403, 405, 413, 414, 421, 429 and 431 above which a client is banned. `false`: they lead \
         to no ban.",
    )
    .sets(&[Target::Ban(bound!(
        read: |check, written, settings| ban::rate(check, written, &mut settings.refused),
        render: |settings, _| rate(settings.refused)
    ))])
    .example("refused = \"60/1m\""),
    Key::new(
        "handshakes",
        &[Section::Ban],
        RATE,
        "Rate of failed TLS handshakes above which a client is banned. Those of HTTP/3 do not count, because their \
         addresses may be forged. `false`: they lead to no ban.",
    )
    .sets(&[Target::Ban(bound!(
        read: |check, written, settings| ban::rate(check, written, &mut settings.handshakes),
        render: |settings, _| rate(settings.handshakes)
    ))])
    .example("handshakes = \"100/1m\""),
    Key::new(
        "login_paths",
        &[Section::Ban],
        Kind::Several(&Kind::Text("path such as \"/login\"")),
        "Paths of the login forms of applications, on every site. Each POST request to one of them counts as a failed \
         login, unless its response is a redirect, with which most applications confirm a login.",
    )
    .sets(&[Target::Ban(bound!(
        read: ban::login_paths,
        render: |settings, _| Rendered::texts(&settings.login_paths)
    ))])
    .example("login_paths = [\"/wp-login.php\", \"/login\"]"),
    Key::new(
        "time",
        &[Section::Ban],
        TIME,
        "Duration of the first ban of a client, and of bans by `rocknet ban add` without `--for`.",
    )
    .sets(&[Target::Ban(field!(time))])
    .example("time = \"10m\"")
    .foreign_names(&["bantime"]),
    Key::new(
        "max_time",
        &[Section::Ban],
        TIME,
        "Maximum duration of a ban. Each further ban of a client takes twice as long as the one before. If a client is \
         not banned again for as long as its last ban took, counted from the end of that ban, its earlier bans are \
         forgotten.",
    )
    .sets(&[Target::Ban(field!(max_time))])
    .example("max_time = \"30d\"")
    .foreign_names(&["bantime.maxtime", "bantime.increment"]),
    Key::new(
        "exempt",
        &[Section::Ban],
        Kind::Several(&Kind::Text("address, network, \"private\", \"unix\" or \"all\"")),
        "Clients that are never banned, not even by a file, written as in `allow`. Proxies of `server.trusted_proxies` \
         and `server.proxy_protocol` are never banned either. The list replaces its default, so keep `\"private\"` in it \
         if a program on this machine or in its network forwards requests.",
    )
    .sets(&[Target::Ban(bound!(
        read: ban::exempt,
        render: |settings, _| Rendered::texts(settings.exempt.iter().map(ToString::to_string).collect::<Vec<_>>())
    ))])
    .example("exempt = [\"private\", \"203.0.113.7\"]")
    .foreign_names(&["ignoreip"]),
    Key::new(
        "files",
        &[Section::Ban],
        Kind::Several(&Kind::Text("file")),
        "Files with banned addresses and networks, one a line; the text after `#` or `;` is a comment. A changed file is \
         read again within two seconds.",
    )
    .sets(&[Target::Ban(bound!(
        read: ban::files,
        render: |settings, _| Rendered::texts(
            settings.files.iter().map(|file| file.to_string_lossy().into_owned()).collect::<Vec<_>>()
        )
    ))])
    .example("files = [\"/etc/rocknet/bans.txt\"]")
    .foreign_names(&["blocklist", "banlist"]),
    Key::new(
        "dry_run",
        &[Section::Ban],
        Kind::Boolean,
        "Only counts and logs the bans that offences would lead to. Files and `rocknet ban add` still ban.",
    )
    .sets(&[Target::Ban(field!(dry_run))])
    .example("dry_run = true"),
];

fn rate(rate: Option<OffenceRate>) -> Rendered {
    match rate {
        Some(rate) => Rendered::text(&rate.to_string()),
        None => Rendered::Value("false".to_owned()),
    }
}
