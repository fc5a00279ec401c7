//! Tests of the rules and settings that `rewrite`, `if`, `return` and locations of nginx become.

use rocknet_import::{Language, Note, import};

use crate::support::{has, has_note, is_any_weakened, is_weakened, rules, translated_nginx as translated};

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
    let import = translated("location ~ ^/(a|b)/ { rewrite ^/(a|b|c)/ /y last; }");
    assert_eq!(rules(&import), ["path = ['/a/*', '/b/*']; rewrite = '/y'"]);
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
    // Without case, the expression also matches `/A/b`, which is not in the outer location.
    let import = translated("location /a/ { location ~* ^/a/b { deny all; } location ~ ^/a/c { deny all; } }");
    has(&import, "path = \"~*^/a/b\"\nunless = ");
    has(&import, "path = \"~^/a/c\"\nrespond = 403");
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
fn routes_do_not_inherit_limits_of_the_root_location() {
    let text = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\nserver { listen 80; server_name a.test; root /srv; \
                location / { limit_req zone=a burst=5; } location /static/ { expires 1d; } }\n";
    let import = import(Language::Nginx, "site.conf", text).unwrap();
    let (_, route) = import.toml.split_once("/static/*\"]").expect("a route");
    assert!(route.contains("limit = false"), "{}", import.toml);
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
fn the_target_of_a_request_only_ends_a_rewrite() {
    for (replacement, expected) in [
        ("/x$request_uri", &["rewrite = '/x{target}'; last = true"][..]),
        ("/x$request_uri$uri", &[]),
        ("/x$request_uri$request_uri", &[]),
        ("/x$request_uri/", &[]),
    ] {
        let import = translated(&format!("rewrite ^ {replacement} last;"));
        assert_eq!(rules(&import), expected, "{replacement}");
        assert_eq!(
            has_note(&import, "has no counterpart"),
            expected.is_empty(),
            "{:?}",
            import.notes
        );
    }
}

#[test]
fn files_in_a_block_of_types_are_no_types() {
    let import = translated("types { include mime.types; text/x y z; include more.types; }");
    has(&import, "types.\".y\" = \"text/x\"\ntypes.\".z\" = \"text/x\"\n");
    assert!(!import.toml.contains("\"include\""), "{}", import.toml);
    let is_noted = |note: &Note| note.directive == "include more.types" && note.message.contains("was not read");
    assert!(import.notes.iter().any(is_noted), "{:?}", import.notes);
}

#[test]
fn scripts_of_an_earlier_location_are_not_redirected() {
    let php = "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }";
    let unless = "unless = { path = '~\\\\.php$' }";
    for (location, expected) in [
        (
            "location ~ ^/old/ { return 301 /new/; }",
            vec![format!("path = '/old/*'; {unless}; redirect = '/new/'; status = 301")],
        ),
        (
            "location ~ ^/old/[0-9]+ { rewrite ^ /new/ break; }",
            vec![format!("path = '~^/old/[0-9]+'; {unless}; rewrite = '/new/'")],
        ),
        (
            "location ~ ^/old/[0-9]+ { if ($arg_x = 1) { return 301 /new/; } }",
            vec![format!(
                "path = '~^/old/[0-9]+'; query = {{ x = '~^1$' }}; {unless}; redirect = '/new/'; status = 301"
            )],
        ),
        // No script has such a name.
        ("location ~ ^/a/.*\\.(css|js)$ { return 301 /new/; }", vec![]),
        // Refusals apply to scripts too.
        (
            "location ~ ^/old/[0-9]+ { return 403; }",
            vec!["path = '~^/old/[0-9]+'; respond = 403; resolved = true".to_owned()],
        ),
    ] {
        let import = translated(&format!("{php} {location}"));
        assert_eq!(rules(&import), expected, "{location}\n{}", import.toml);
        // nginx uses the first expression that matches.
        let import = translated(&format!("{location} {php}"));
        assert!(!import.toml.contains("unless"), "{location}\n{}", import.toml);
    }
}
