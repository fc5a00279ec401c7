//! Tests of templates: placeholders, other braces, and errors with their remedies.

use super::*;

struct Fixed;

impl Values for Fixed {
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
        match placeholder {
            Placeholder::ClientIp => Cow::Borrowed(b"10.0.0.1"),
            Placeholder::RequestHeader(name) | Placeholder::RequestCookie(name) => name.as_bytes().to_vec().into(),
            _ => Cow::Borrowed(b""),
        }
    }
}

fn rendered(text: &str) -> String {
    let template = Template::parse(text, Scope::Log).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let mut out = Vec::new();
    template.render(&Fixed, &mut out, |value, out| out.extend_from_slice(value));
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn placeholders_are_replaced_and_other_braces_are_kept() {
    // Template, and the rendered text.
    for (text, expected) in [
        ("", ""),
        ("{client.ip}", "10.0.0.1"),
        ("a {client.ip}{client.ip} b", "a 10.0.0.110.0.0.1 b"),
        ("{request.header.X-Api_Key}", "X-Api_Key"),
        ("{request.cookie.a.b}", "a.b"),
        ("{{client.ip}}", "{client.ip}"),
        ("{{{client.ip}}}", "{{client.ip}}"),
        (
            r#"{"ip":"{client.ip}","a":{"b":{}}}"#,
            r#"{"ip":"10.0.0.1","a":{"b":{}}}"#,
        ),
        ("a{color:red}", "a{color:red}"),
        ("{Host}{*}{1}{", "{Host}{*}{1}{"),
        ("{client.ip", "{client.ip"),
        ("costs $5, or 100 %{x}", "costs $5, or 100 %{x}"),
        // Every text can be written, also names of variables of other servers.
        ("$HOME $5 $$ $1 100% 50%%", "$HOME $5 $$ $1 100% 50%%"),
        ("$$host, $$$host and $$status", "$host, $$host and $status"),
        ("${{host}}", "${host}"),
        ("$${client.ip} ${client.ip}", "$$10.0.0.1 $10.0.0.1"),
        ("%%{REMOTE_ADDR}", "%{REMOTE_ADDR}"),
        ("$$$", "$$$"),
    ] {
        match text.contains(" %{x}") {
            // `x` is no placeholder, whatever stands before it.
            true => assert!(Template::parse(text, Scope::Log).is_err()),
            false => assert_eq!(rendered(text), expected, "{text}"),
        }
    }
}

#[test]
fn wrong_placeholders_are_errors_with_a_remedy() {
    // Template, scope, and parts of message and help.
    for (text, scope, message, help) in [
        ("{client.up}", Scope::Request, "`{client.up}` is not", "{client.ip}"),
        ("{remote_host}", Scope::Request, "not a placeholder", "{client.ip}"),
        (
            "{http.request.header.X-A}",
            Scope::Request,
            "not a placeholder",
            "{request.header.X-A}",
        ),
        ("{unheard-of}", Scope::Request, "not a placeholder", "{{unheard-of}}"),
        (
            "{request.header.}",
            Scope::Request,
            "not a placeholder",
            "{request.header.NAME}",
        ),
        ("{status}", Scope::Request, "before the response", "`headers`"),
        ("{duration}", Scope::Response, "before the response", "`log.format`"),
        ("$remote_addr", Scope::Log, "variable of nginx", "{client.ip}"),
        (
            "x${http_user_agent}",
            Scope::Log,
            "`$http_user_agent`",
            "{request.header.User-Agent}",
        ),
        ("$upstream_status", Scope::Log, "has no placeholder", "placeholders.md"),
        ("$5 $arg_id", Scope::Log, "`$arg_id`", "{query.id}"),
        ("echo $host", Scope::Log, "`$host`", "`$$host`"),
        ("${hostname}", Scope::Log, "`$hostname`", "`$${{hostname}}`"),
        ("%{REMOTE_ADDR}s", Scope::Log, "variable of Apache", "{client.ip}"),
        (
            "%{HTTP_USER_AGENT}",
            Scope::Log,
            "variable of Apache",
            "{request.header.User-Agent}",
        ),
    ] {
        let error = Template::parse(text, scope).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert!(error.help.contains(help), "{text}: {error:?}");
    }
    let many = "{host}".repeat(MAX_PLACEHOLDERS + 1);
    assert!(Template::parse(&many, Scope::Log).is_err());
}

#[test]
fn every_name_is_found_in_its_scope() {
    for named in NAMES {
        let name = match named.name.ends_with('.') {
            true => format!("{}x", named.name),
            false => named.name.to_owned(),
        };
        let text = format!("{{{name}}}");
        let template = Template::parse(&text, named.scope).expect("a placeholder");
        assert_eq!(template.placeholders().count(), 1, "{text}");
        assert_eq!(
            Template::parse(&text, Scope::Request).is_ok(),
            named.scope == Scope::Request
        );
    }
    for (table, of) in [("nginx", of_nginx as fn(&str) -> Option<String>), ("Apache", of_apache)] {
        assert_eq!(of("nonsense"), None, "{table}");
    }
}

#[test]
fn the_documentation_lists_every_placeholder() {
    let page = include_str!("../../../../docs/placeholders.md");
    for named in NAMES {
        let suffix = if named.name.ends_with('.') { "NAME" } else { "" };
        let row = format!("| `{{{}{suffix}}}` |", named.name);
        assert!(page.contains(&row), "docs/placeholders.md has no row {row}");
    }
}

#[test]
fn equivalents_are_placeholders() {
    let nginx = ["remote_addr", "http_x_real_ip", "cookie_id", "arg_page", "msec"].map(of_nginx);
    let caddy = ["uuid", "header.Accept", "http.request.uri.query.q"].map(of_caddy);
    for equivalent in nginx.into_iter().chain(caddy) {
        let text = format!("{{{}}}", equivalent.expect("an equivalent"));
        assert!(Template::parse(&text, Scope::Log).is_ok(), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_parsed_without_panic(text in "[{}a-z$%.A-Z]{0,40}") {
        if let Ok(template) = Template::parse(&text, Scope::Log)
            && let Some(constant) = template.as_constant()
        {
            proptest::prop_assert!(constant.len() <= text.len());
        }
    }
}
