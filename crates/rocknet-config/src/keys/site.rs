//! Keys of sites and routes: names, listeners, handlers and filters.

use super::log::access_log;
use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, Scalar, SettingGroup, bound, field, host, list, listen, pattern, quoted};
use crate::choice::Choice;
use crate::model::{Fallback, LogTarget, Mode, Priority, Redirect, Symlinks};
use crate::value::settings;

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

/// Range of the status of a redirect; `value::settings` refuses 304 to 306.
const STATUS: Kind = Kind::Integer { min: 301, max: 308 };

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "enabled",
        &[Section::Site],
        Kind::Boolean,
        "Serves the site. A disabled site stays in the file and has no listeners, certificates or responses. Its keys \
         and the types of its values are checked, but not its files and its conflicts with other sites.",
    )
    .default(|| "true".to_owned())
    .example("enabled = false")
    .foreign_names(&["disable", "disabled", "active"]),
    Key::new(
        "aliases",
        &[Section::Site],
        Kind::Several(&Kind::Text("host name")),
        "Further host names of the site; `*.example.com` stands for every name below example.com.",
    )
    .empty_by_default()
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render: |site, _| match &site.names[..] {
        [] => Rendered::Unset,
        [_, aliases @ ..] => Rendered::Value(list(aliases.iter().map(host))),
    }))])
    .example("aliases = [\"www.example.com\", \"*.example.com\"]")
    .foreign_names(&["server_name", "ServerAlias", "ServerName", "hosts", "domains"]),
    Key::new(
        "listen",
        &[Section::Site],
        Kind::Several(&Kind::Either(&[
            Kind::Integer { min: 0, max: 65_535 },
            Kind::Text("\"IP:port\", \"[IPv6]:port\" or \"unix:/path\""),
        ])),
        "Listeners of the site: ports (on every address of the machine), `\"IP:port\"`, `\"[IPv6]:port\"` or \
         `\"unix:/path\"`, each with an optional scheme. `http://` is without TLS, and `https://` with it. `h2c://` is \
         without TLS and also accepts HTTP/2, as gRPC clients behind a proxy need it (`h2c` of `[server]` does so \
         everywhere). Without a scheme, port 80 and Unix sockets are without TLS, and any other port uses TLS if the \
         site does. In a site that is named by an \
         address, a bare port means that port of the address. For port 0 the kernel chooses a port, which is printed \
         at start. Without the key: the port of the site's name, else 80 and, with TLS, 443 (8080 and 8443 in `dev` \
         mode).",
    )
    .default(|| {
        let (clear, secure) = Mode::default().ports();
        list([clear, secure].iter().map(ToString::to_string))
    })
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render: |site, _| Rendered::Value(list(site.listen.iter().map(listen)))))])
    .example("listen = [80, 443, \"http://127.0.0.1:8080\", \"unix:/run/rocknet/site.sock\"]")
    .foreign_names(&["port", "ports", "bind", "Listen", "server.port", "address"]),
    Key::new(
        "user",
        &[Section::Site],
        Kind::Text("user name"),
        "User that runs the site's scripts: PHP that RockNet starts, and CGI programs. RockNet must be started as \
         root. The user must not be root or the server's own. Without the key: `script_user` of `[server]`.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(render: |settings, kind| settings.user.render(kind)))])
    .example("user = \"alice\"")
    .foreign_names(&["SuexecUserGroup", "AssignUserID"]),
    Key::new(
        "root",
        BOTH,
        Kind::Text("folder"),
        "Folder whose files are served, relative to the configuration file. In a route, the whole path of the request \
         is looked up below it, including the path of the route. With `{host}` as the name of one folder, such as \
         `/srv/{host}`, each folder there is a site for the host with its name (docs/placeholders.md).",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::root,
        render: |settings, _| settings.document_root().map_or(Rendered::Unset, Rendered::path)
    ))])
    .example("root = \"/var/www/example\"")
    .foreign_names(&[
        "document_root", "DocumentRoot", "docroot", "path", "dir", "directory", "file.dir", "server.document-root",
    ]),
    Key::new(
        "alias",
        &[Section::Route],
        Kind::Text("folder, or a file for a route that is one path"),
        "Folder that takes the place of the path of the route: with the route `/img/*` and `\"/srv/pictures\"`, a request \
         for `/img/a.png` gets `/srv/pictures/a.png`. It makes no difference whether the folder is written with a slash \
         at its end. For a route that is one path, such as `/favicon.ico`, it is a file. Scripts get the `root` of the \
         site as document root, and `try`, `fallback` and `errors` remain paths of the site.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::alias,
        render: |settings, _| settings.alias_target().map_or(Rendered::Unset, |target| Rendered::path(&target))
    ))])
    .example("alias = \"/srv/pictures\"")
    .foreign_names(&["Alias", "AliasMatch", "alias.url"]),
    Key::new(
        "index",
        BOTH,
        Kind::Several(&Kind::Text("file name")),
        "Files that are served for a folder: the first one that exists. If `php` is set, `index.php` is first by \
         default.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read: settings::index,
        render: |settings, _| Rendered::texts(&settings.index)
    ))])
    .example("index = [\"home.html\"]")
    .foreign_names(&["DirectoryIndex", "index-file.names", "file.index"]),
    Key::new(
        "types",
        &[Section::Server, Section::Site, Section::Route],
        Kind::Map { name: "extension of files, or `*`", value: &Kind::Text("media type") },
        "Media types of files, by the extension after the last dot of their names. They are added to the built-in table, \
         and replace its types. `\"*\"` is the type of files whose extension is not known, which are otherwise sent as \
         `application/octet-stream`. Types `text/…` without a charset get `charset=utf-8`. The types of a route are \
         merged with those of its site, and these with those of `[server]`.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read: settings::types,
        render: |settings, _| Rendered::entries(&settings.types, ToString::to_string, |value| quoted(value))
    ))])
    .example("types = { \".model\" = \"model/gltf-binary\", \"*\" = \"text/plain\" }")
    .foreign_names(&[
        "mime", "mime_types", "mimetypes", "default_type", "AddType", "ForceType", "mimetype.assign", "file.mime.settypes",
    ]),
    Key::new(
        "fallback",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Text("path below the site")]),
        "Path that is served if nothing else matches, for single-page apps. For a script, the path may have a query, such \
         as `/index.php?q={path}`, where `{path}` stands for the path of the request. The query of the request is \
         appended to it. The default is `/index.php` if `php` is set. In a route, `false` turns off this default and \
         the fallback of the site, so that missing scripts and style sheets get 404 rather than a page.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read: settings::fallback,
        render: |settings, _| match &settings.fallback {
            Fallback::Default => Rendered::Unset,
            Fallback::Off => Rendered::or_off(None),
            Fallback::Path(path) => Rendered::text(path),
        }
    ))])
    .example("fallback = \"/index.html\"")
    .foreign_names(&["FallbackResource", "spa"]),
    Key::new(
        "try",
        BOTH,
        Kind::Several(&Kind::Text("path with `{path}`")),
        "Paths that are tried in this order; `{path}` stands for the path of the request. After them `fallback` is \
         tried. For a script, a path may have a query, to which the query of the request is appended.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(bound!(
        read: settings::try_paths,
        render: |settings, _| Rendered::texts(&settings.try_paths)
    ))])
    .example("try = [\"{path}\", \"{path}.html\", \"/index.php?page={path}\"]")
    .foreign_names(&["try_files", "try-files"]),
    Key::new(
        "compress",
        BOTH,
        Kind::Boolean,
        "Compresses responses (Brotli, Zstandard or gzip) for clients that accept it: text of 1 KiB and more, or of \
         unknown length, from files, proxies, scripts, applications and controllers. Compressed files beside the \
         original (`.br`, `.zst`, `.gz`) are preferred. Responses with `Content-Encoding`, `Cache-Control: \
         no-transform`, a range or a signature (`Signature-Input`), and event streams, are not compressed. A streamed \
         response is flushed whenever its source pauses. A strong `ETag` of a compressed response becomes weak, so \
         that `If-None-Match` still works and `If-Match` does not. Set `false` where a page holds a secret, such as a \
         CSRF token, beside text from the request: the length of the compressed page can reveal the secret (BREACH).",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(field!(compress))])
    .example("compress = false")
    .foreign_names(&["gzip", "brotli", "encode", "deflate", "mod_deflate", "gzip_static"]),
    Key::new(
        "internal",
        BOTH,
        Kind::Boolean,
        "Sends files only if an application names them in its response, by `X-Accel-Redirect: /path` or `X-Sendfile: \
         /folder/file`; direct requests get 404. For downloads that an application authorizes.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(field!(internal))])
    .example("internal = true")
    .foreign_names(&["X-Sendfile", "XSendFile", "XSendFilePath", "x-sendfile-docroot"]),
    Key::new(
        "headers",
        BOTH,
        Kind::Map { name: "field name", value: &Kind::Text("field value") },
        "Header fields added to every response; an empty value removes a field. The fields of a route are merged with \
         those of its site. Fields that frame a message, such as Content-Length, Transfer-Encoding and Connection, \
         are set by the server and cannot be changed. Error responses do not get `Expires`, or `Cache-Control` with \
         `max-age`, `s-maxage`, `public` or `immutable`, because they should not be cached. Values can have \
         placeholders, such as `{request.id}`, which docs/placeholders.md lists.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read: settings::headers,
        render: |settings, _| Rendered::entries(&settings.headers, ToString::to_string, |value| quoted(value))
    ))])
    .example("headers = { \"X-Frame-Options\" = \"DENY\", \"Cache-Control\" = \"max-age=3600\" }")
    .foreign_names(&["add_header", "header", "Header", "response_headers", "setenv.add-response-header"]),
    Key::new(
        "harden",
        BOTH,
        Kind::Boolean,
        "Adds the header fields by which browsers limit attacks, unless the application sends its own: \
         `X-Content-Type-Options: nosniff`, `X-Frame-Options: SAMEORIGIN`, `Referrer-Policy: \
         strict-origin-when-cross-origin`, `Cross-Origin-Opener-Policy: same-origin-allow-popups` and \
         `Content-Security-Policy: base-uri 'self'; frame-ancestors 'self'`. `X-Powered-By`, `X-AspNet-Version` and \
         `X-Generator` of applications are removed. `headers` changes single fields.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(field!(harden))])
    .example("harden = true")
    .foreign_names(&["security_headers", "secure_headers", "helmet"]),
    Key::new(
        "push",
        BOTH,
        Kind::Map { name: "page", value: &Kind::Several(&Kind::Text("path below the site")) },
        "Files that a page needs: the path of the page, or a pattern as in `redirects`, with up to 32 paths of files. \
         Over HTTP/2 they are pushed with the page to clients that accept pushes; other clients of HTTP/2 and HTTP/3 get them in a 103 \
         (Early Hints) response. Each is sent once per connection, and not to clients that revalidate the page. A \
         handler's own `Link: <…>; rel=preload` is pushed too, unless it has `nopush`.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read: settings::push,
        render: |settings, _| Rendered::entries(&settings.push, pattern, |files| list(files.iter().map(|file| quoted(file))))
    ))])
    .example("push = { \"/\" = [\"/style.css\", \"/app.js\"], \"/blog/*\" = \"/blog.css\" }")
    .foreign_names(&[
        "http2_push", "http2_push_preload", "http2-push-preload", "H2Push", "H2PushResource", "early_hints",
    ]),
    Key::new(
        "errors",
        BOTH,
        Kind::Map { name: "status from 400 to 599", value: &Kind::Text("path below the site") },
        "Error pages: a status, and the path below the site whose content is sent with it.",
    )
    .group(SettingGroup::Filters)
    .sets(&[Target::Settings(bound!(
        read: settings::errors,
        render: |settings, _| Rendered::entries(&settings.errors, ToString::to_string, |page| quoted(page))
    ))])
    .example("errors = { 404 = \"/404.html\", 503 = \"/sorry.html\" }")
    .foreign_names(&["error_page", "ErrorDocument", "error-doc", "handle_errors", "server.error-handler"]),
    Key::new(
        "redirects",
        BOTH,
        Kind::Map { name: "path", value: &Kind::Either(&[Kind::Text("target"), Kind::Table(Section::Redirect)]) },
        "Paths that are redirected. A path may be exact, end in `/*` (everything below it), or contain `*` elsewhere \
         (any run of characters without `/`). `~` begins a regular expression, `~*` one that ignores case. The target \
         is a path, or a URL with http:// or https://; `{*}` in it stands for the part that the first `*` matched, \
         `{1}` for the first group of a regular expression, `{name}` for a group `(?<name>…)`, and placeholders such \
         as `{host}` for values of the request (docs/placeholders.md). The query of the request is kept unless the \
         target has one. The short form uses status 308.",
    )
    .group(SettingGroup::Rules)
    .sets(&[Target::Settings(bound!(
        read: settings::redirects,
        render: |settings, _| Rendered::entries(
            settings.redirects.iter().map(|redirect| (&redirect.from, redirect)),
            pattern,
            |redirect| format!("{{ to = {}, status = {} }}", quoted(&redirect.to), redirect.status),
        )
    ))])
    .example("redirects = { \"/old\" = \"/new\", \"/blog/*\" = \"/news/{*}\", \"/tmp\" = { to = \"/now\", status = 302 } }")
    .foreign_names(&[
        "rewrite", "Redirect", "redir", "RewriteRule", "RedirectMatch", "redirect", "return", "url.redirect",
    ]),
    Key::new("to", &[Section::Redirect], Kind::Text("target"), "Target: a path, or a URL with http:// or https://.")
        .foreign_names(&["target", "url", "location"]),
    Key::new(
        "status",
        &[Section::Redirect],
        STATUS,
        "Status: 301 or 308 for permanent redirects, 302 or 307 for temporary ones, 303 after a form. 307 and 308 \
         keep the method.",
    )
    .default(|| Redirect::STATUS.to_string())
    .foreign_names(&["code"]),
    Key::new(
        "symlinks",
        BOTH,
        Kind::Choice(Symlinks::WORDS),
        "Symbolic links that are followed.",
    )
    .group(SettingGroup::Files)
    .sets(&[Target::Settings(field!(symlinks))])
    .example("symlinks = \"owner\"")
    .foreign_names(&["disable_symlinks", "FollowSymLinks", "server.follow-symlink"]),
    Key::new(
        "priority",
        BOTH,
        Kind::Choice(Priority::WORDS),
        "Priority of the route's work in the pool of blocking threads, and of its requests in the queue for a server \
         of a proxy (`proxy.connections`). High priority goes before normal. In the pool, low priority has threads of \
         its own, which get little processor time while other threads are busy, so that a flood of low-priority work \
         hardly delays anything else. At a server, low priority leaves some slots to others.",
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
        read: settings::limits,
        render: |_, _| Rendered::Unset,
        nested: |settings, rows| rows.table(Section::SiteLimits, "limits", settings)
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
        "Access log of the site: its destination, or a table with `access` and `format`. Missing keys are inherited \
         from `[log]`.",
    )
    .group(SettingGroup::Site)
    .sets(&[Target::Site(bound!(render: |site, _| access_log(site)))])
    .example("log = { access = \"/var/log/rocknet/example.log\", format = \"json\" }"),
    Key::new(
        "route",
        &[Section::Site],
        Kind::Tables { name: "pattern", section: Section::Route },
        "Parts of the site with settings of their own, each a table under its pattern. The most specific matching \
         pattern takes effect, in any order of the file: an exact path (`/hello`), then the longest prefix \
         (`/api/*`), then a pattern with `*` elsewhere (`*.zip`, `/users/*/photo`), where `*` is any run of \
         characters without `/`, then the longest regular expression (`~^/v\\d+/`; `~*` ignores case). A pattern \
         that begins with `*` matches the end of a path, in any folder. A route \
         inherits the settings of its site: maps are merged, everything else is replaced.",
    )
    .example("[site.\"example.com\".route.\"/downloads/*\"]\nbrowse = true\npriority = \"low\"")
    .foreign_names(&["location", "Location", "handle", "paths", "Directory"]),
];
