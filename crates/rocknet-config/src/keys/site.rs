//! Keys of a site and of its routes: names, listeners, actions and filters.

use super::log::access_log;
use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, SettingGroup, bound, field, host, list, listen, pattern, quoted};
use crate::choice::Choice;
use crate::model::{Fallback, LogTarget, Mode, Priority, Redirect, Symlinks};
use crate::value::settings;

const BOTH: &[Section] = &[Section::Site, Section::Route];

const STATUS: Kind = Kind::Integer { min: 301, max: 308 };

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "aliases",
        &[Section::Site],
        Kind::Several(&Kind::Text("host name")),
        "Other names the site answers to; `*.example.com` stands for every name below example.com.",
    )
    .empty()
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render |site, _| match &site.names[..] {
        [] => Rendered::Unset,
        [_, aliases @ ..] => Rendered::Value(list(aliases.iter().map(host))),
    }))])
    .example("aliases = [\"www.example.com\", \"*.example.com\"]")
    .elsewhere(&["server_name", "ServerAlias", "ServerName", "hosts", "domains"]),
    Key::new(
        "listen",
        &[Section::Site],
        Kind::Several(&Kind::Either(&[
            Kind::Integer { min: 0, max: 65_535 },
            Kind::Text("\"IP:port\", \"[IPv6]:port\" or \"unix:/path\""),
        ])),
        "Where the site is reached: ports (on every address of the machine), `\"IP:port\"`, `\"[IPv6]:port\"` or \
         `\"unix:/path\"`, each with `http://` or `https://` before it if need be: without, port 80 and sockets are in \
         the clear, and any other port has TLS where the site has. On a site that is named by an address a port alone \
         means that port of that address. Port 0 lets the kernel choose one, told at start. Without the key: what the \
         site's name says, else 80 and, where the site has TLS, 443 (8080 and 8443 in `dev` mode).",
    )
    .default(|| {
        let (clear, secure) = Mode::default().ports();
        list([clear, secure].iter().map(ToString::to_string))
    })
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render |site, _| Rendered::Value(list(site.listen.iter().map(listen)))))])
    .example("listen = [80, 443, \"http://127.0.0.1:8080\", \"unix:/run/rocknet/site.sock\"]")
    .elsewhere(&["port", "ports", "bind", "Listen", "server.port", "address"]),
    Key::new(
        "user",
        &[Section::Site],
        Kind::Text("user name"),
        "The account that the site's scripts run as: PHP that RockNet runs itself, and CGI programs. It needs a RockNet that is \
         started as root, and may not be root or the server's own. Without the key: `script_user` of `[server]`.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(render |settings, kind| settings.user.render(kind)))])
    .example("user = \"alice\"")
    .elsewhere(&["SuexecUserGroup", "AssignUserID"]),
    Key::new(
        "root",
        BOTH,
        Kind::Text("folder"),
        "The folder whose files are served, relative to the file it is written in. In a route the whole path of the \
         request is looked up below it, the route's own part included.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::root,
        render |settings, _| settings.root.as_deref().map_or(Rendered::Unset, Rendered::path)
    ))])
    .example("root = \"/var/www/example\"")
    .elsewhere(&["document_root", "DocumentRoot", "docroot", "path", "dir", "directory", "file.dir", "server.document-root"]),
    Key::new(
        "index",
        BOTH,
        Kind::Several(&Kind::Text("file name")),
        "What is served for a folder: the first of these that exists. Where `php` is set and this is not, `index.php` \
         comes first.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read settings::index,
        render |settings, _| Rendered::texts(&settings.index)
    ))])
    .example("index = [\"home.html\"]")
    .elsewhere(&["DirectoryIndex", "index-file.names", "file.index"]),
    Key::new(
        "browse",
        BOTH,
        Kind::Boolean,
        "Whether a folder without an index shows a list of what is in it.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(field!(browse))])
    .example("browse = true")
    .elsewhere(&["autoindex", "dirlisting", "file.dirlisting", "dir-listing.activate", "Indexes", "list"]),
    Key::new(
        "fallback",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Text("path below the site")]),
        "The path that is served when nothing else matches: for single-page apps. Without it that is `/index.php` where \
         `php` is set. `false` turns both off for a route: scripts and styles that are gone are 404 then, not a page.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read settings::fallback,
        render |settings, _| match &settings.fallback {
            Fallback::Default => Rendered::Unset,
            Fallback::Off => Rendered::or_off(None),
            Fallback::Path(path) => Rendered::text(path),
        }
    ))])
    .example("fallback = \"/index.html\"")
    .elsewhere(&["FallbackResource", "spa"]),
    Key::new(
        "try",
        BOTH,
        Kind::Several(&Kind::Text("path with `{path}`")),
        "Paths looked up in this order; `{path}` is the path of the request. After them comes `fallback`.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read settings::try_paths,
        render |settings, _| Rendered::texts(&settings.try_paths)
    ))])
    .example("try = [\"{path}\", \"{path}.html\", \"/index.html\"]")
    .elsewhere(&["try_files", "try-files"]),
    Key::new(
        "compress",
        BOTH,
        Kind::Boolean,
        "Whether texts of 1 KiB and more, or of unknown length, are compressed (Brotli, Zstandard or gzip) for clients \
         that accept it: files and the responses of proxies, scripts, applications and controllers. Files that stand \
         ready beside the original (`.br`, `.zst`, `.gz`) come first. Responses that have a `Content-Encoding`, \
         `Cache-Control: no-transform`, a range or a signature (`Signature-Input`), and event streams, stay as they \
         are. A streamed response is flushed whenever its source pauses. A strong `ETag` of a compressed response \
         becomes weak, so that `If-None-Match` still works and `If-Match` does not. Set `false` where a page holds a \
         secret, such as a token against forged requests, beside text that the request chose: the length of the \
         compressed page can reveal the secret (BREACH).",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(field!(compress))])
    .example("compress = false")
    .elsewhere(&["gzip", "brotli", "encode", "deflate", "mod_deflate", "gzip_static"]),
    Key::new(
        "php",
        BOTH,
        Kind::Either(&[
            Kind::Boolean,
            Kind::Text("\"auto\", \"8.2\", \"unix:/path\", \"/path\" or \"host:port\""),
        ]),
        "Who runs PHP, by FastCGI. `\"auto\"` is the newest PHP that is installed, `\"8.2\"` that version: RockNet starts its \
         php-fpm, looks after it, and ends it with itself. `\"unix:/path\"` is the socket file of a php-fpm that somebody \
         else looks after, `\"host:port\"` its address; `false` turns it off for a route. \
         Files named `*.php` are then run and never sent. `index.php` comes first among the names of `index`, and what \
         nothing else answers goes to `/index.php` at the root, unless `fallback` says otherwise. A path below a script \
         that exists is its `PATH_INFO`. Nothing is run from folders named `uploads`, and other files that PHP may hold \
         (`*.phtml`, `*.phar` and the like) are refused.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read settings::php,
        render |settings, _| Rendered::or_off(settings.php.as_ref().map(|php| Rendered::text(&php.to_string())))
    ))])
    .example("php = \"auto\"")
    .elsewhere(&["php_fastcgi", "fastcgi_pass", "php-fpm", "ProxyPassMatch"]),
    Key::new(
        "internal",
        BOTH,
        Kind::Boolean,
        "Whether what is here is sent only where an application names it in its answer, by `X-Accel-Redirect: /path` or \
         `X-Sendfile: /folder/file`; who asks for it gets 404. For downloads that an application decides about.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(field!(internal))])
    .example("internal = true")
    .elsewhere(&["X-Sendfile", "XSendFile", "XSendFilePath", "x-sendfile-docroot"]),
    Key::new(
        "headers",
        BOTH,
        Kind::Map { name: "field name", value: &Kind::Text("field value") },
        "Header fields added to every answer; an empty value removes a field. The fields of a route join those of its \
         site. Fields that frame a message (Content-Length, Transfer-Encoding, Connection and the like) belong to the \
         server. Errors do not get those that have answers kept: `Expires`, and `Cache-Control` with `max-age`, \
         `s-maxage`, `public` or `immutable`.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read settings::headers,
        render |settings, _| Rendered::entries(&settings.headers, ToString::to_string, |value| quoted(value))
    ))])
    .example("headers = { \"X-Frame-Options\" = \"DENY\", \"Cache-Control\" = \"max-age=3600\" }")
    .elsewhere(&["add_header", "header", "Header", "response_headers", "setenv.add-response-header"]),
    Key::new(
        "push",
        BOTH,
        Kind::Map { name: "page", value: &Kind::Several(&Kind::Text("path below the site")) },
        "What a page needs, so that nobody has to read the page before asking for it: a path, or a pattern as in \
         `redirects`, and up to 32 paths. Over HTTP/2 these are pushed with the page to clients that take pushes; all \
         others are told of them by 103 (Early Hints). Each is pushed or told of once a connection, and not to clients \
         that ask whether a page has changed. A handler's own `Link: <…>; rel=preload` is pushed too, unless it says \
         `nopush`.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read settings::push,
        render |settings, _| Rendered::entries(&settings.push, pattern, |files| list(files.iter().map(|file| quoted(file))))
    ))])
    .example("push = { \"/\" = [\"/style.css\", \"/app.js\"], \"/blog/*\" = \"/blog.css\" }")
    .elsewhere(&["http2_push", "http2_push_preload", "http2-push-preload", "H2Push", "H2PushResource", "early_hints"]),
    Key::new(
        "errors",
        BOTH,
        Kind::Map { name: "status from 400 to 599", value: &Kind::Text("path below the site") },
        "Pages for errors: a status, and the path below the site whose content is sent with it.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read settings::errors,
        render |settings, _| Rendered::entries(&settings.errors, ToString::to_string, |page| quoted(page))
    ))])
    .example("errors = { 404 = \"/404.html\", 503 = \"/sorry.html\" }")
    .elsewhere(&["error_page", "ErrorDocument", "error-doc", "handle_errors", "server.error-handler"]),
    Key::new(
        "redirects",
        BOTH,
        Kind::Map { name: "path", value: &Kind::Either(&[Kind::Text("target"), Kind::Table(Section::Redirect)]) },
        "Paths that have moved. A path may be exact, end in `/*` (everything below), or hold `*` elsewhere (any run \
         without `/`); `{*}` in the target is what the first `*` stood for. The target is a path, or a URL with http:// \
         or https://; the query of the request is kept unless the target has one. The short form answers 308.",
    )
    .group(SettingGroup::Rules)
    .sets(&[Target::Settings(bound!(
        read settings::redirects,
        render |settings, _| Rendered::entries(
            settings.redirects.iter().map(|redirect| (&redirect.from, redirect)),
            pattern,
            |redirect| format!("{{ to = {}, status = {} }}", quoted(&redirect.to), redirect.status),
        )
    ))])
    .example("redirects = { \"/old\" = \"/new\", \"/blog/*\" = \"/news/{*}\", \"/tmp\" = { to = \"/now\", status = 302 } }")
    .elsewhere(&["rewrite", "Redirect", "redir", "RewriteRule", "RedirectMatch", "redirect", "return", "url.redirect"]),
    Key::new("to", &[Section::Redirect], Kind::Text("target"), "A path, or a URL with http:// or https://.")
        .elsewhere(&["target", "url", "location"]),
    Key::new(
        "status",
        &[Section::Redirect],
        STATUS,
        "301 or 308 when it has moved for good, 302 or 307 for now, 303 after a form. 307 and 308 keep the method.",
    )
    .default(|| Redirect::STATUS.to_string())
    .elsewhere(&["code"]),
    Key::new(
        "symlinks",
        BOTH,
        Kind::Choice(Symlinks::WORDS),
        "Which symbolic links are followed.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(field!(symlinks))])
    .example("symlinks = \"owner\"")
    .elsewhere(&["disable_symlinks", "FollowSymLinks", "server.follow-symlink"]),
    Key::new(
        "priority",
        BOTH,
        Kind::Choice(Priority::WORDS),
        "Which work goes first in the pool of blocking threads, and where requests wait for a server of a proxy \
         (`proxy.connections`). High goes before normal. In the pool low has threads of its own, which the system runs when \
         others leave the processor free, so that a flood of it keeps nobody waiting; at a server it leaves some places free.",
    )
    .group(SettingGroup::Limits)
    .sets(&[Target::Settings(field!(priority))])
    .example("priority = \"high\""),
    Key::new(
        "limits",
        BOTH,
        Kind::Table(Section::SiteLimits),
        "Limits of this site or route, where they differ from `[limits]`.",
    )
    .group(SettingGroup::Limits)
    .sets(&[Target::Settings(bound!(
        read settings::limits,
        render |_, _| Rendered::Unset,
        nested |settings, rows| rows.table(Section::SiteLimits, "limits", settings)
    ))])
    .example("limits = { body_size = \"1GiB\", answer_timeout = \"5m\" }"),
    Key::new(
        "log",
        &[Section::Site],
        Kind::Either(&[
            Kind::Choice(LogTarget::ACCESS),
            Kind::Text("file name, with `/` or `.` in it"),
            Kind::Table(Section::SiteLog),
        ]),
        "The site's own access log: where it goes, or a table with `access` and `format`. What it does not say comes \
         from `[log]`.",
    )
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render |site, _| access_log(site)))])
    .example("log = { access = \"/var/log/rocknet/example.log\", format = \"json\" }"),
    Key::new(
        "route",
        &[Section::Site],
        Kind::Tables { name: "pattern", section: Section::Route },
        "Parts of the site with settings of their own, each a table under its pattern. The most specific pattern \
         holds, wherever it is written: an exact path (`/hello`), then the longest prefix (`/api/*`), then a pattern \
         with `*` elsewhere (`*.zip`, `/users/*/photo`; there `*` is any run without `/`). A route has the settings of \
         its site, with its own over them: maps are joined, all else is replaced.",
    )
    .example("[site.\"example.com\".route.\"/downloads/*\"]\nbrowse = true\npriority = \"low\"")
    .elsewhere(&["location", "Location", "handle", "paths", "Directory"]),
];
