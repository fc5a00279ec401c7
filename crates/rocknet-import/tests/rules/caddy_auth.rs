//! Tests of fields and proxies in `forward_auth` of Caddy, and of caches beside it.

use rocknet_import::{Import, Language, NoteKind, import};

use crate::support::{has, has_note, is_any_weakened, is_weakened};

/// Translates a site with these directives, and global options before it.
fn translated(options: &str, site: &str) -> Import {
    let text = format!("{{\n{options}\n}}\na.test {{\n{site}\n}}\n");
    import(Language::Caddy, "Caddyfile", &text).unwrap()
}

fn forward(fields: &str) -> String {
    format!("forward_auth a:9091 {{\nuri /verify\n{fields}\n}}")
}

fn is_closed(import: &Import) -> bool {
    import.toml.contains("deny = \"all\"")
}

#[test]
fn renamed_fields_are_set_by_proxies() {
    const PROXY: &str = "reverse_proxy localhost:3000";
    let renamed = forward("copy_headers X-User>Remote-User Remote-Groups");
    let proxy = "proxy = { to = \"http://localhost:3000\", headers = { Remote-User = \"{request.header.X-User}\" } }";
    let auth = "auth = { forward = \"http://a:9091/verify\", headers = [\"X-User\", \"Remote-Groups\"] }";
    for site in [
        format!("{renamed}\n{PROXY}"),
        // The order of directives in the file does not matter.
        format!("{PROXY}\n{renamed}"),
        format!("route {{\n{PROXY}\n{renamed}\n}}"),
        format!(
            "{}\n{PROXY}",
            forward("copy_headers {\nX-User>Remote-User\nRemote-Groups\n}")
        ),
    ] {
        let import = translated("debug", &site);
        has(&import, auth);
        has(&import, proxy);
        assert!(
            !is_closed(&import) && !is_any_weakened(&import),
            "{site}\n{}",
            import.toml
        );
        assert!(
            has_note(&import, "upstreams also get the field `Remote-User`"),
            "{:?}",
            import.notes
        );
    }
    // A proxy of another path gets the field, too: the field of a client must not take its place.
    let paths = forward("copy_headers X-User>Remote-User").replacen("forward_auth", "forward_auth /app/*", 1);
    let import = translated(
        "debug",
        &format!("{paths}\nhandle /app/* {{\n{PROXY}\n}}\nhandle {{\nreverse_proxy b:1\n}}"),
    );
    let count = import.toml.matches("Remote-User = \"{request.header.X-User}\"").count();
    assert_eq!(count, 2, "{}", import.toml);
    // An explicit value of the proxy comes later in Caddy.
    let site = format!("{}\n{PROXY}", forward("copy_headers X-User>X-User"));
    let import = translated("debug", &site);
    has(&import, "proxy = \"http://localhost:3000\"");
    assert!(!has_note(&import, "upstreams also get"), "{:?}", import.notes);
}

#[test]
fn renamed_fields_that_others_use_close_the_place() {
    let renamed = forward("copy_headers X-User>Remote-User");
    for other in [
        "php_fastcgi unix//run/php.sock",
        "handle /app/* {\nphp_fastcgi unix//run/php.sock\n}",
        "reverse_proxy b:1 {\nheader_up X-Name {header.Remote-User}\n}",
        "reverse_proxy b:1 {\nheader_up X-Name {http.request.header.remote-user}\n}",
        "reverse_proxy b:1 {\nheader_up -Remote-User\n}",
        "@staff header Remote-User ann\nrespond @staff 403",
        "request_header Remote-User ann\nreverse_proxy b:1",
    ] {
        let import = translated("debug", &format!("{renamed}\n{other}"));
        assert!(
            is_closed(&import) && has_note(&import, "renames a field"),
            "{other}\n{}",
            import.toml
        );
        // The line and the reason are beside the site.
        let note = import
            .notes
            .iter()
            .find(|note| note.directive.starts_with("forward_auth"));
        assert!(
            note.is_some_and(|note| note.line == 5 && note.kind == NoteKind::NotTranslated),
            "{:?}",
            import.notes
        );
    }
}

#[test]
fn renamed_fields_of_a_block_without_a_proxy_close_it() {
    let renamed = forward("copy_headers X-User>Remote-User");
    // The proxy of the site does not set the field, so clients could.
    for (block, is_refused) in [
        (format!("route /app/* {{\n{renamed}\n}}\nreverse_proxy b:1"), true),
        (
            format!("route /app/* {{\n{renamed}\nreverse_proxy @x b:1\n}}\nreverse_proxy b:1"),
            true,
        ),
        (
            format!("route /app/* {{\n{renamed}\nreverse_proxy b:1\n}}\nreverse_proxy b:2"),
            false,
        ),
    ] {
        let import = translated("debug", &block);
        assert_eq!(is_closed(&import), is_refused, "{block}\n{}", import.toml);
        assert_eq!(has_note(&import, "renames a field"), is_refused, "{:?}", import.notes);
    }
}

#[test]
fn proxies_that_an_authorization_service_trusts_are_those_of_the_server() {
    let trusting = |ranges: &str| format!("{}\nreverse_proxy b:1", forward(&format!("trusted_proxies {ranges}")));
    let servers = "servers {\ntrusted_proxies static 10.0.0.0/8 192.0.2.1\n}";
    let private = "servers {\ntrusted_proxies static private_ranges\n}";
    for (options, ranges, is_known) in [
        (servers, "10.0.0.0/8", true),
        (servers, "192.0.2.1 10.0.0.0/8", true),
        (private, "private_ranges", true),
        (private, "10.0.0.0/8", true),
        (servers, "private_ranges", false),
        (servers, "10.0.0.0/8 198.51.100.7", false),
        ("debug", "private_ranges", false),
    ] {
        let import = translated(options, &trusting(ranges));
        has(&import, "auth = { forward = \"http://a:9091/verify\"");
        assert_eq!(
            is_weakened(&import, "trusted_proxies"),
            !is_known,
            "{ranges}: {:?}",
            import.notes
        );
        assert!(has_note(&import, "`trusted_proxies` in [server]"), "{:?}", import.notes);
    }
}

#[test]
fn caches_are_those_of_their_places() {
    let options = "cache {\nttl 10m\nregex {\nexclude ^/private/\n}\n}";
    let import = translated(
        options,
        "cache\nreverse_proxy b:1\nhandle /app/* {\ncache {\nttl 1m\nkey {\nheaders X-Token\n}\n}\nreverse_proxy b:2\n}",
    );
    has(
        &import,
        "cache = { ttl = \"10m\", bypass = { path = \"~^/private/\" } }",
    );
    has(
        &import,
        "cache = { ttl = \"1m\", key = \"{host}{target}|{request.header.X-Token}\", bypass = { path = \"~^/private/\" } }",
    );
    // Without the directive, the options have no effect.
    let import = translated(options, "reverse_proxy b:1");
    assert!(!import.toml.contains("cache ="), "{}", import.toml);
    let import = translated("debug", "cache @get {\nttl 1m\n}\n@get method GET\nreverse_proxy b:1");
    assert!(!import.toml.contains("cache ="), "{}", import.toml);
    assert!(has_note(&import, "routes match paths only"), "{:?}", import.notes);
}

#[test]
fn two_logins_close_a_place() {
    let hash = "$2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG";
    let login = |user: &str, path: &str| format!("basic_auth {path} {{\n{user} {hash}\n}}");
    let handle = |inner: &str| format!("handle /a/* {{\n{inner}\nroot * /a\nfile_server\n}}");
    // Caddy requires both logins, which a client can only have if they have a user in common.
    for text in [
        format!("{}\n{}", login("bob", ""), handle(&login("ann", ""))),
        format!("{}\n{}", login("bob", "/a/*"), login("ann", "/a/b/*")),
    ] {
        let import = translated("", &text);
        has(&import, "deny = \"all\"");
        assert!(has_note(&import, "two logins"), "{:?}", import.notes);
    }
    let import = translated("", &format!("{}\n{}", login("bob", ""), handle(&login("bob", ""))));
    assert!(!import.toml.contains("deny = "), "{}", import.toml);
}
