//! Tests of the rules that `rewrite`, `if`, `return` and locations of nginx become.

use rocknet_import::{Import, Language, import};

use crate::support::{has_note, is_any_weakened, is_weakened, rules};

fn translated(server: &str) -> Import {
    let text = format!("server {{ listen 80; server_name a.test; root /srv; {server} }}\n");
    import(Language::Nginx, "site.conf", &text).unwrap()
}

#[test]
fn refusals_of_locations_apply_after_rewrites_with_last() {
    let import =
        translated("rewrite ^/docs/(.*)$ /files/$1 last; rewrite ^/x$ /y last; location ~ \\.bak$ { deny all; }");
    assert_eq!(
        rules(&import),
        [
            "path = '/docs/*'; rewrite = '/files/{*}'",
            "path = '/x'; rewrite = '/y'",
            "path = '*.bak'; respond = 403",
        ]
    );
    assert!(
        has_note(&import, "the rules that follow apply too"),
        "{:?}",
        import.notes
    );
    // Rewrites of locations come between two copies, because nginx searches a location before and after them.
    let import = translated("location /a/ { rewrite ^/a/(.*)$ /b/$1 last; } location ~ \\.bak$ { deny all; }");
    assert_eq!(
        rules(&import),
        [
            "path = '*.bak'; respond = 403",
            "path = '/a/*'; rewrite = '/b/{*}'; unless = { path = '*.bak' }"
                .replace(
                    "rewrite = '/b/{*}'; unless = { path = '*.bak' }",
                    "unless = { path = '~\\\\.bak$' }; rewrite = '/b/{*}'"
                )
                .as_str(),
            "path = '*.bak'; respond = 403",
        ]
    );
    // Without refusals, the other rewrites are skipped as in nginx.
    let import = translated("rewrite ^/a$ /b last; rewrite ^/b$ /c last;");
    assert_eq!(
        rules(&import),
        [
            "path = '/a'; rewrite = '/b'; last = true",
            "path = '/b'; rewrite = '/c'; last = true"
        ]
    );
}

#[test]
fn rewrites_in_locations_are_limited_to_them() {
    let import =
        translated("location / { rewrite ^/item/([0-9]+)$ /item.html?id=$1 last; } location /static/ { root /s; }");
    assert_eq!(
        rules(&import),
        ["path = '~^/item/([0-9]+)$'; rewrite = '/item.html?id={1}'"]
    );
    let import = translated("location / { rewrite ^ /index.html last; } location /static/ { root /s; }");
    assert_eq!(
        rules(&import),
        ["unless = { path = '/static/*' }; rewrite = '/index.html'"]
    );
    let import = translated("location /a/ { rewrite ^/b/([0-9]+)$ /c last; }");
    assert!(rules(&import).is_empty() && has_note(&import, "not limited to its location"));
    // The usual way to remove a prefix before an upstream.
    let import = translated(
        "location /api/ { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; }",
    );
    assert!(
        rules(&import).is_empty() && import.toml.contains("strip = \"/api\""),
        "{}",
        import.toml
    );
    // Its target would get the settings of another route.
    let import = translated("location /x/ { rewrite ^/x/a/(.*)$ /y/$1 break; proxy_pass http://b; }");
    assert!(
        rules(&import).is_empty() && has_note(&import, "settings of its own route"),
        "{:?}",
        import.notes
    );
}

#[test]
fn conditions_become_rules() {
    for (server, expected) in [
        (
            "if ($http_cookie ~ \"beta=1\") { return 302 /beta/; }",
            &["header = { Cookie = '~beta=1' }; redirect = '/beta/'; status = 302"][..],
        ),
        (
            "if (-f $document_root/maintenance.html) { return 503; }",
            &["exists = 'file'; exists_at = '/maintenance.html'; respond = 503"],
        ),
        (
            "if (-f $request_filename) { break; } rewrite ^/(.*)$ /app.php?q=$1 last;",
            &["unless = { exists = 'file' }; rewrite = '/app.php?q={*}'; last = true"],
        ),
        (
            "if (!-d $request_filename) { rewrite ^/(.+)/$ /$1 permanent; }",
            &["path = '~^/(.+)/$'; exists = ['file', 'nothing']; redirect = '/{1}'; status = 301"],
        ),
        (
            "if ($http_x_forwarded_proto = \"http\") { return 301 https://$host$request_uri; }",
            &["header = { X-Forwarded-Proto = '~^http$' }; redirect = 'https://{host}{target}'; status = 301"],
        ),
        (
            "if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }",
            &["unless = { method = ['GET', 'HEAD', 'POST'] }; respond = 405"],
        ),
        (
            "location /dl/ { if ($http_user_agent ~* wget) { return 403; } }",
            &["path = '/dl/*'; header = { User-Agent = '~*wget' }; respond = 403"],
        ),
        (
            "location /read/ { limit_except GET { allow 10.0.0.0/8; deny all; } }",
            &["path = '/read/*'; unless = [{ method = ['GET', 'HEAD'] }, { client = '10.0.0.0/8' }]; respond = 403"],
        ),
        ("rewrite ^/wp-admin$ $scheme://$host$uri/ permanent;", &[]),
    ] {
        let import = translated(server);
        assert_eq!(rules(&import), expected, "{}", import.toml);
        assert!(!is_any_weakened(&import), "{server}: {:?}", import.notes);
    }
    let import = translated("rewrite ^/wp-admin$ $scheme://$host$uri/ permanent;");
    assert!(
        import
            .toml
            .contains("\"/wp-admin\" = { to = \"{path}/\", status = 301 }")
            || import
                .toml
                .contains("redirects.\"/wp-admin\" = { to = \"{path}/\", status = 301 }"),
        "{}",
        import.toml
    );
}

#[test]
fn refusals_by_expression_have_the_exceptions_of_nginx() {
    // The front controller comes first, and the other scripts are refused.
    let import = translated(
        "location / { try_files $uri /index.php$is_args$args; } location ~ ^/index\\.php(/|$) { fastcgi_pass \
         unix:/run/php.sock; internal; } location ~ \\.php$ { return 404; }",
    );
    assert_eq!(
        rules(&import),
        [
            "path = '~^/index\\\\.php(/|$)'; respond = 404",
            "path = '*.php'; unless = { path = '~^/index\\\\.php(/|$)' }; respond = 404; resolved = true",
        ]
    );
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // An exact path and a prefix with `^~` take precedence over expressions.
    let import = translated(
        "location = /robots.txt { expires 1d; } location ^~ /notes/ { expires 1d; } location ~* \\.(txt|log)$ { deny all; }",
    );
    assert_eq!(
        rules(&import),
        ["path = '~*\\\\.(txt|log)$'; unless = { path = ['/robots.txt', '/notes/*'] }; respond = 403"]
    );
    // Every script is refused in a folder, in upper case too.
    let import = translated("location ~* /(?:uploads|files)/.*\\.php$ { deny all; }");
    assert_eq!(
        rules(&import),
        ["path = '~*/(?:uploads|files)/.*\\\\.php$'; respond = 403"]
    );
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // Look-ahead has no counterpart, which the note says.
    let import = translated("location ~ ^/(?!public).*\\.txt$ { deny all; }");
    assert!(is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn locations_in_locations_become_routes() {
    let import =
        translated("location /a/ { expires 1h; location /a/b/ { expires 1d; } location ~ \\.secret$ { deny all; } }");
    assert!(
        import
            .toml
            .contains("route.\"/a/b/*\"]\nheaders.\"Cache-Control\" = \"max-age=86400\""),
        "{}",
        import.toml
    );
    assert_eq!(rules(&import), ["path = '~^/a/.*?(?:\\\\.secret$)'; respond = 403"]);
    // Access control is inherited.
    let import = translated("location /a/ { deny all; location /a/b/ { expires 1d; } location /a/c/ { allow all; } }");
    assert!(
        import.toml.contains("route.\"/a/b/*\"]\ndeny = \"all\""),
        "{}",
        import.toml
    );
    assert!(!import.toml.contains("route.\"/a/c/*\"]\ndeny"), "{}", import.toml);
}

#[test]
fn settings_of_the_whole_server_are_moved() {
    let text = "set_real_ip_from 10.0.0.0/8; set_real_ip_from 192.0.2.1; real_ip_header X-Forwarded-For; \
                client_header_timeout 10s; client_body_timeout 30s; send_timeout 1m; large_client_header_buffers 4 8k; \
                server { server_name a.test; client_body_buffer_size 64k; location /app/ { uwsgi_pass 127.0.0.1:9000; \
                uwsgi_param MODE prod; } location / { mirror /copy; proxy_pass http://b; proxy_set_header Host $host; } \
                location = /copy { internal; proxy_pass http://test:81$request_uri; } }";
    let import = import(Language::Nginx, "site.conf", text).unwrap();
    for expected in [
        "trusted_proxies = [\"10.0.0.0/8\", \"192.0.2.1\"]",
        "header_timeout = \"10s\"",
        "body_idle = \"30s\"",
        "send_stall = \"1m\"",
        "header_size = \"32KiB\"",
        "limits.body_memory = \"64KiB\"",
        "uwsgi = { to = \"127.0.0.1:9000\", params = { MODE = \"prod\" } }",
        "mirror = \"http://test:81\"",
    ] {
        assert!(import.toml.contains(expected), "{expected}\n{}", import.toml);
    }
    assert!(!import.toml.contains("/copy"), "{}", import.toml);
}

#[test]
fn a_server_that_redirects_except_for_challenges_joins_its_site() {
    let text = "server { listen 80; server_name a.test; location /.well-known/acme-challenge/ { root /c; } location / { \
                return 301 https://$host$request_uri; } } server { listen 443 ssl; server_name a.test; root /srv; \
                ssl_certificate /c.pem; ssl_certificate_key /k.pem; }";
    let joined = import(Language::Nginx, "site.conf", text).unwrap();
    assert_eq!(joined.toml.matches("[site.").count(), 1, "{}", joined.toml);
    let text = "server { listen 80; server_name a.test; rewrite ^ https://$server_name$request_uri? permanent; } server { \
                listen 443 ssl; server_name a.test; root /srv; }";
    let joined = import(Language::Nginx, "site.conf", text).unwrap();
    assert_eq!(joined.toml.matches("[site.").count(), 1, "{}", joined.toml);
    assert!(!joined.toml.contains("redirects"), "{}", joined.toml);
}

#[test]
fn later_expressions_do_not_open_what_an_earlier_one_restricts() {
    let restricted = "location ~ ^/admin { allow 10.0.0.0/8; deny all; }";
    let import = translated(&format!("{restricted} location ~* \\.(css|json)$ {{ expires 1d; }}"));
    assert!(
        import.toml.contains("route.\"~^/admin\"]\nallow = \"10.0.0.0/8\""),
        "{}",
        import.toml
    );
    // A rule refuses the other clients before the route for the later expression applies.
    let refusal = "path = '~^/admin'; unless = { client = '10.0.0.0/8' }; respond = 403";
    assert_eq!(rules(&import), [refusal]);
    assert!(import.toml.contains("json)$\"]"), "{}", import.toml);
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
    // Passwords have no such rule.
    let password = "location ~ ^/admin { auth_basic x; auth_basic_user_file /u; }";
    let import = translated(&format!("{password} location ~* \\.(css|json)$ {{ expires 1d; }}"));
    assert!(
        !import.toml.contains("json)$\"]") && !import.toml.contains("*.json"),
        "{}",
        import.toml
    );
    assert!(
        has_note(&import, "an earlier expression restricts access"),
        "{:?}",
        import.notes
    );
    // Other beginnings and other endings do not overlap.
    let import = translated(&format!("{restricted} location ~ ^/img/[0-9]+ {{ expires 1d; }}"));
    assert!(import.toml.contains("route.\"~^/img/"), "{}", import.toml);
    // An expression before the restricted one takes precedence in nginx, too.
    let import = translated(&format!("location ~ \\.css$ {{ expires 1d; }} {restricted}"));
    assert!(import.toml.contains("*.css"), "{}", import.toml);
}

#[test]
fn routes_do_not_inherit_limits_of_the_root_location() {
    let text = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\nserver { listen 80; server_name a.test; root /srv; \
                location / { limit_req zone=a burst=5; } location /static/ { expires 1d; } }\n";
    let import = import(Language::Nginx, "site.conf", text).unwrap();
    let (_, route) = import.toml.split_once("/static/*\"]").expect("a route");
    assert!(route.contains("limit = false"), "{}", import.toml);
}

#[test]
fn names_with_a_dot_are_refused_before_upstreams() {
    let proxy = "location / { proxy_pass http://127.0.0.1:3000; }";
    // The rule has the expression and the status of the location, without look-ahead.
    for (location, expected) in [
        (
            "location ~ /\\.(?!well-known) { deny all; }",
            "path = '~/\\\\.(?:$|[^w]|w(?:$|[^e]|e(?:",
        ),
        ("location ~ /\\.ht { return 404; }", "path = '~/\\\\.ht'; respond = 404"),
        (
            "location ~ /\\. { deny all; }",
            "path = '~/\\\\.'; respond = 403; resolved = true",
        ),
        // Every name is refused if the exception has no form.
        (
            "location ~ /\\.(?!(well|known)x) { deny all; }",
            "path = '~/\\\\.'; respond = 403; resolved = true",
        ),
    ] {
        let import = translated(&format!("{location} {proxy}"));
        let rules = rules(&import);
        assert!(
            rules.len() == 1 && rules[0].starts_with(expected),
            "{location}: {rules:?}"
        );
        assert!(!is_any_weakened(&import), "{:?}", import.notes);
    }
    // Files with such names are never served, except those in `/.well-known`.
    for location in [
        "location ~ /\\.(?!well-known) { deny all; }",
        "location ~ /\\.ht { deny all; }",
    ] {
        assert_eq!(rules(&translated(location)), [""; 0], "{location}");
    }
    let import = translated("location ~ /\\. { deny all; }");
    assert_eq!(rules(&import), ["path = '~/\\\\.'; respond = 403; resolved = true"]);
    let import = translated(&format!("location ~ ^/(\\.git|vendor)/ {{ deny all; }} {proxy}"));
    assert_eq!(rules(&import), ["path = ['/.git/*', '/vendor/*']; respond = 403"]);
    let import = translated(&format!(
        "location ~ ^/\\.git/ {{ allow 10.0.0.0/8; deny all; }} {proxy}"
    ));
    let (_, route) = import.toml.split_once("route.\"/.git/*\"]").expect("a route");
    assert!(route.contains("allow = \"10.0.0.0/8\""), "{}", import.toml);
}

#[test]
fn refusals_in_a_location_of_scripts_are_noted() {
    for refusal in [
        "if ($uri ~ /uploads/) { return 403; }",
        "location ~ /files/ { deny all; }",
    ] {
        let import = translated(&format!(
            "location ~ \\.php$ {{ {refusal} fastcgi_pass unix:/run/php.sock; }}"
        ));
        assert!(has_note(&import, "THIS RESTRICTS ACCESS"), "{:?}", import.notes);
        assert!(import.toml.contains("php = \"unix:/run/php.sock\""), "{}", import.toml);
    }
}

#[test]
fn no_later_location_opens_a_path_of_an_earlier_expression() {
    let admin = "location ~ ^/admin { allow 10.0.0.0/8; deny all; }";
    // Locations, and the pattern of the route that could take precedence. A rule refuses the other clients, or the
    // route is left out.
    for (text, pattern) in [
        (
            "location ~ \\.js$ { allow 10.0.0.0/8; deny all; } location ~ \\.min\\.js$ { expires 1d; }".to_owned(),
            "*.min.js",
        ),
        (
            format!("{admin} location ~ \\.php$ {{ add_header X-A b always; fastcgi_pass unix:/run/php.sock; }}"),
            "*.php",
        ),
        (
            format!(
                "{admin} location / {{ allow 192.168.0.0/16; deny all; }} location ~ \\.css$ {{ access_log off; }}"
            ),
            "*.css",
        ),
        (
            "allow 10.0.0.0/8; deny all; location ~ ^/admin { expires 2d; } location ~ \\.css$ { allow all; }"
                .to_owned(),
            "*.css",
        ),
    ] {
        let import = translated(&text);
        let refuses = |rule: &String| rule.contains("unless = { client = '10.0.0.0/8' }; respond = 403");
        assert!(
            !import.toml.contains(&format!("route.\"{pattern}\"")) || rules(&import).iter().any(refuses),
            "{text}: {}",
            import.toml
        );
    }
    // Without an earlier expression, these routes are written.
    for text in [
        "location ~ \\.css$ { expires 1d; }",
        "location ~ \\.php$ { add_header X-A b always; fastcgi_pass unix:/run/php.sock; }",
    ] {
        assert!(translated(text).toml.contains("route.\"*."), "{text}");
    }
}

#[test]
fn refusals_by_parameters_and_targets_have_a_note_if_they_are_weaker() {
    // Texts of tests, and true if a refusal by the test applies to fewer requests.
    for (test, weakens) in [
        ("$arg_debug = 1", true),
        ("$arg_token != secret", true),
        ("$arg_debug", true),
        ("$cookie_debug", true),
        ("$request_uri != /open", true),
        ("$request_uri = /secret", false),
        ("$uri != /open", false),
        ("$request_uri ~ ^/secret/", false),
    ] {
        let import = translated(&format!("if ({test}) {{ return 403; }}"));
        assert_eq!(rules(&import).len(), 1, "{test}: {}", import.toml);
        assert_eq!(is_any_weakened(&import), weakens, "{test}: {:?}", import.notes);
    }
    for test in ["$request_uri ~ ^/a[^b]+c", "$request_uri ~ ^/a.+c"] {
        let import = translated(&format!("if ({test}) {{ return 403; }}"));
        assert!(rules(&import).is_empty(), "{test}: {}", import.toml);
        assert!(is_any_weakened(&import), "{:?}", import.notes);
    }
}

#[test]
fn fields_of_the_root_location_have_a_note_if_others_get_them() {
    let inherited = "the field is added in the routes of other blocks too";
    let root = "location / { add_header X-A b always; }";
    let import = translated(&format!("{root} location /a/ {{ expires 1d; }}"));
    assert!(has_note(&import, inherited), "{:?}", import.notes);
    for others in ["", "location /a/ { add_header X-A c always; }"] {
        assert!(
            !has_note(&translated(&format!("{root} {others}")), inherited),
            "{others}"
        );
    }
}

#[test]
fn what_only_a_script_does_is_noted() {
    let import = translated(
        "index index.php index.html /index.php$request_uri; error_page 404 /index.php; error_page 403 /403.html; \
         location ~ \\.php$ { rewrite ^/(?!index|cron) /index.php$request_uri; rewrite ^/a.php$ /b permanent; \
         fastcgi_pass unix:/run/php.sock; fastcgi_param HTTPS on; fastcgi_param front_controller_active true; }",
    );
    assert!(is_weakened(&import, "^/(?!index|cron)"), "{:?}", import.notes);
    assert!(!is_weakened(&import, "permanent"), "{:?}", import.notes);
    assert!(
        import.toml.contains("index = [\"index.php\", \"index.html\"]"),
        "{}",
        import.toml
    );
    assert!(
        import.toml.contains("errors.\"403\"") && !import.toml.contains("errors.\"404\""),
        "{}",
        import.toml
    );
    for text in ["`errors` takes files", "takes no variables", "goes to `fallback`"] {
        assert!(has_note(&import, text), "{text}: {:?}", import.notes);
    }
    let untold = import
        .notes
        .iter()
        .filter(|note| note.message.contains("takes no variables"));
    assert_eq!(untold.count(), 1, "{:?}", import.notes);
}

#[test]
fn passwords_or_addresses_are_translated() {
    let auth = "auth_basic x; auth_basic_user_file /u;";
    for (lists, expected) in [
        ("allow 10.0.0.0/8; deny all;", &["allow = \"10.0.0.0/8\""][..]),
        (
            "deny 10.0.0.1; allow 10.0.0.0/8; deny all;",
            &["allow = \"10.0.0.0/8\"", "deny = \"10.0.0.1\""],
        ),
        // Without `deny all`, the other clients need a password, too.
        ("allow 10.0.0.0/8;", &["allow = \"10.0.0.0/8\""]),
        // Every client needs a password, and a denied one too.
        ("deny all;", &["allow = \"all\""]),
        ("deny 10.0.0.1;", &["allow = \"all\""]),
        // The exception closes the site.
        ("allow 10.0.0.1; deny 10.0.0.0/8; allow all;", &["deny = \"all\""]),
    ] {
        let import = translated(&format!("satisfy any; {lists} {auth}"));
        for line in expected.iter().chain(&["satisfy = \"any\""]) {
            assert!(import.toml.contains(line), "{lists}: {line}\n{}", import.toml);
        }
        let count = ["\nallow", "\ndeny"]
            .map(|key| import.toml.matches(key).count())
            .iter()
            .sum::<usize>();
        assert_eq!(count, expected.len(), "{lists}: {}", import.toml);
    }
}

#[test]
fn folders_have_no_index_where_nginx_tries_only_files() {
    for (location, expected) in [
        ("location /a/ { try_files $uri =404; }", "index = []\n"),
        ("location /a/ { try_files $uri $uri/ =404; }", "fallback = false\n"),
        (
            "location /a/ { try_files $uri =404; autoindex on; }",
            "index = []\nfallback = false\nbrowse = false\n",
        ),
    ] {
        let import = translated(location);
        let (_, route) = import.toml.split_once("route.\"/a/*\"]\n").expect("a route");
        assert!(
            route.starts_with(expected) || route.contains(expected),
            "{location}: {route}"
        );
        assert_eq!(
            route.contains("index = []"),
            expected.contains("index"),
            "{location}: {route}"
        );
    }
    // Other locations keep their index.
    let import = translated("location / { try_files $uri /app.html; } location /b/ { expires 1d; }");
    let (site, route) = import.toml.split_once("route.\"/b/*\"]\n").expect("a route");
    assert!(
        site.contains("index = []") && route.contains("index = \"index.html\""),
        "{}",
        import.toml
    );
}

#[test]
fn paths_of_applications_get_a_slash() {
    let app = "proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host;";
    let redirect = "redirects.\"/app\" = \"/app/\"";
    for (locations, expected) in [
        (format!("location /app/ {{ {app} }}"), true),
        (format!("location /app/ {{ {app} }} location = /app {{ {app} }}"), false),
        (format!("location /app {{ {app} }}"), false),
        (format!("location / {{ {app} }}"), false),
    ] {
        let import = translated(&locations);
        assert_eq!(import.toml.contains(redirect), expected, "{locations}: {}", import.toml);
    }
}

#[test]
fn caches_apply_where_nginx_has_them() {
    let app = "proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host;";
    let import = translated(&format!(
        "proxy_cache_valid 200 5m; location / {{ {app} proxy_cache a; proxy_cache_bypass $cookie_user $arg_new; }} location \
         /own/ {{ {app} }} location /off/ {{ {app} proxy_cache off; }}"
    ));
    let cache =
        "cache = { statuses = { 200 = \"5m\" }, bypass_cookies = \"user\", bypass = { query = { new = \"~.\" } } }";
    assert!(import.toml.contains(cache), "{}", import.toml);
    assert_eq!(import.toml.matches("cache = false").count(), 2, "{}", import.toml);
    // Pages of users are not stored, because the condition is not known here.
    let php = "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; fastcgi_cache a;";
    let import = translated(&format!(
        "{php} fastcgi_cache_valid 1h; fastcgi_no_cache $skip_cache; }}"
    ));
    assert!(
        !import.toml.contains("cache = {") && !import.toml.contains("cache = true"),
        "{}",
        import.toml
    );
    assert!(has_note(&import, "the cache stays off"), "{:?}", import.notes);
    let import = translated(&format!("{php} }} location /api/ {{ {app} }}"));
    assert!(
        import.toml.contains("cache = true") && import.toml.contains("cache = false"),
        "{}",
        import.toml
    );
}

#[test]
fn inner_expressions_may_begin_in_the_prefix() {
    let inner = |expression: &str| translated(&format!("location /app/ {{ location ~ {expression} {{ deny all; }} }}"));
    assert_eq!(
        rules(&inner("/config")),
        ["path = '~^/app(?:/.*?)?(?:/config)'; respond = 403; resolved = true"]
    );
    for expression in ["(^|/)secret", "^/.*secret", "app/secret", "[^/]+/secret"] {
        let found = rules(&inner(expression));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("unless"), "{found:?}");
    }
    // The index of a folder is refused, too.
    assert!(rules(&inner("\\.html$"))[0].ends_with("respond = 403; resolved = true"));
    assert!(rules(&inner("\\.secret$"))[0].ends_with("respond = 403"));
}

#[test]
fn refusals_of_scripts_leave_the_front_controller_open() {
    let import = translated(
        "location / { try_files $uri /index.php$is_args$args; } location ~ ^/index\\.php(/|$) { fastcgi_pass \
         unix:/run/php.sock; internal; } location ~ \\.php$ { return 404; }",
    );
    assert!(!import.toml.contains("route.\"*.php\"]"), "{}", import.toml);
    // The index of a folder is still refused, and the front controller is excepted.
    let expected = "path = '*.php'; unless = { path = '~^/index\\\\.php(/|$)' }; respond = 404; resolved = true";
    assert!(rules(&import).contains(&expected.to_owned()), "{:?}", rules(&import));
}

#[test]
fn dots_that_may_be_missing_do_not_hide_names() {
    for expression in ["/\\.?(git|svn)", "/\\.*git", "/\\.{0,1}git"] {
        let import = translated(&format!("location ~ \"{expression}\" {{ deny all; }}"));
        assert_eq!(rules(&import).len(), 1, "{expression} {}", import.toml);
    }
}

#[test]
fn only_translated_responses_open_a_path() {
    let server = |text: &str| {
        translated(&format!(
            "deny all; auth_basic x; auth_basic_user_file /u; location = /a {{ {text} }}"
        ))
    };
    let opens = |import: &Import| import.toml.contains("allow = \"all\"") || import.toml.contains("auth = false");
    let import = server("return 200 ok;");
    assert!(opens(&import), "{}", import.toml);
    let import = server("return 200 $unknown;");
    assert!(!opens(&import), "{}", import.toml);
}
