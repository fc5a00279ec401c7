//! Tests of the rules that `RewriteRule`, `<Files>` and other directives of Apache become.

use rocknet_import::{Import, Language, import};

use crate::support::{has, has_note, is_any_weakened, is_weakened, rules, translated_apache};

fn translated(htaccess: &str) -> Import {
    import(Language::Apache, "/srv/.htaccess", htaccess).unwrap()
}

#[test]
fn rules_become_rules() {
    for (text, expected) in [
        (
            "RewriteRule !^(?:css|js)/ /app.html [L]",
            &["unless = { path = ['/css/*', '/js/*'] }; rewrite = '/app.html'; last = true"][..],
        ),
        (
            "RewriteRule ^(?:a|b)/([0-9]+)$ x.php?id=$1 [last,qsappend]",
            &["path = '~^/(?:a|b)/([0-9]+)$'; rewrite = '/x.php?id={1}'; last = true"],
        ),
        (
            "RewriteCond %{HTTP_USER_AGENT} ^$\nRewriteRule ^ - [forbidden]",
            &["unless = { header = { User-Agent = '~.' } }; respond = 403"],
        ),
        (
            "RewriteCond %{HTTP_USER_AGENT} EvilBot [nocase,or]\nRewriteCond %{HTTP_USER_AGENT} scraper [nocase]\nRewriteRule \
             .* - [F,L]",
            &["header = { User-Agent = '~*EvilBot|scraper' }; respond = 403"],
        ),
        (
            "RewriteCond %{HTTP_HOST} !^www\\. [NC]\nRewriteRule ^(.*)$ https://www.%{HTTP_HOST}/$1 [R=301,L]",
            &["unless = { host = '~*^www\\\\.' }; redirect = 'https://www.{host}/{*}'; status = 301"],
        ),
        (
            "RewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} (.+)/$\nRewriteRule ^ %1 [L,R=301]",
            &["exists = ['file', 'nothing']; path = '~(?<c1>.+)/$'; redirect = '/{c1}'; status = 301"],
        ),
        (
            "RewriteCond %{QUERY_STRING} ^id=([0-9]+)$\nRewriteRule ^product\\.php$ /products/%1? [R=301,L]",
            &["path = '/product.php'; query = { id = '~^(?<c1>[0-9]+)$' }; redirect = '/products/{c1}?'; status = 301"],
        ),
        (
            "RewriteCond %{REQUEST_FILENAME}.html -f\nRewriteRule ^(.*)$ $1.html [L]",
            &["exists = 'file'; exists_at = '{path}.html'; rewrite = '/{*}.html'; last = true"],
        ),
        (
            "RewriteRule ^admin/ - [L]\nRewriteRule ^(.*)$ index.cgi?q=$1 [L]",
            &["unless = { path = '/admin/*' }; rewrite = '/index.cgi?q={*}'; last = true"],
        ),
        ("RewriteRule ^Old/(.+)\\.HTM$ /new/$1 [NC,R=301]", &[]),
        ("RewriteRule \"/\\.|^\\.(?!well-known/)\" - [F]", &[]),
        (
            "RewriteRule \"^(.+/.*|autoload)\\.php($|/)\" - [F]",
            &["path = '~^/(.+/.*|autoload)\\\\.php($|/)'; respond = 403; resolved = true"],
        ),
        (
            "<LimitExcept GET POST>\nRequire all denied\n</LimitExcept>",
            &["unless = { method = ['GET', 'POST', 'HEAD'] }; respond = 403"],
        ),
        (
            "<Limit PUT DELETE>\nOrder deny,allow\nDeny from all\n</Limit>",
            &["method = ['PUT', 'DELETE']; respond = 403"],
        ),
        (
            "<FilesMatch \"^(composer|package)\\.(json|lock)\">\nRequire all denied\n</FilesMatch>",
            &["path = '~/(composer|package)\\\\.(json|lock)[^/]*$'; respond = 403; resolved = true"],
        ),
    ] {
        let import = translated(&format!("RewriteEngine On\n{text}\n"));
        assert_eq!(rules(&import), expected, "{text}\n{}", import.toml);
        assert!(!is_any_weakened(&import), "{text}: {:?}", import.notes);
    }
    let import = translated("RewriteEngine On\nRewriteRule ^Old/(.+)\\.HTM$ /new/$1 [NC,R=301]\n");
    assert!(
        import
            .toml
            .contains("redirects.\"~*^/Old/(.+)\\\\.HTM$\" = { to = \"/new/{1}\", status = 301 }"),
        "{}",
        import.toml
    );
}

#[test]
fn refusals_apply_to_rewritten_paths() {
    let text = "<Files \"*.bak\">\nRequire all denied\n</Files>\nRewriteEngine On\nRewriteRule ^secret$ - [F]\nRewriteRule ^x/(.*)$ \
                /y/$1 [L]\n";
    let import = translated(text);
    assert_eq!(
        rules(&import),
        [
            "path = '*.bak'; respond = 403",
            "path = '/secret'; respond = 403",
            "path = '/x/*'; rewrite = '/y/{*}'",
            "path = '*.bak'; respond = 403",
            "path = '/secret'; respond = 403",
        ]
    );
    // In a host, the rules come first, and a rule with `L` does not skip the sections.
    let text = format!(
        "<VirtualHost *:80>\nDocumentRoot /srv\n{}</VirtualHost>\n",
        text.replace("^x", "^/x")
    );
    let import = rocknet_import::import(Language::Apache, "site.conf", &text).unwrap();
    assert_eq!(
        rules(&import),
        [
            "path = '/secret'; respond = 403",
            "path = '/x/*'; rewrite = '/y/{*}'",
            "path = '*.bak'; respond = 403",
        ]
    );
}

#[test]
fn scripts_that_only_rules_name_are_run() {
    let import = translated("RewriteEngine On\nRewriteRule ^item/([0-9]+)$ item.php?id=$1 [L,QSA]\n");
    assert!(import.toml.contains("php = \"auto\""), "{}", import.toml);
}

#[test]
fn front_controllers_of_frameworks_are_recognized() {
    for (name, text) in [
        (
            "symfony",
            "RewriteCond %{REQUEST_URI}::$0 ^(/.+)/(.*)::\\2$\nRewriteRule .* - [E=BASE:%1]\nRewriteCond %{HTTP:Authorization} \
             .+\nRewriteRule ^ - [E=HTTP_AUTHORIZATION:%0]\nRewriteCond %{ENV:REDIRECT_STATUS} =\"\"\nRewriteRule \
             ^index\\.php(?:/(.*)|$) %{ENV:BASE}/$1 [R=301,L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^ \
             %{ENV:BASE}/index.php [L]\n",
        ),
        (
            "zend",
            "RewriteCond %{REQUEST_FILENAME} -s [OR]\nRewriteCond %{REQUEST_FILENAME} -l [OR]\nRewriteCond \
             %{REQUEST_FILENAME} -d\nRewriteRule ^.*$ - [L]\nRewriteRule ^.*$ index.php [L]\n",
        ),
        (
            "drupal",
            "RewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond %{REQUEST_URI} \
             !=/favicon.ico\nRewriteRule ^ index.php [L]\n",
        ),
    ] {
        let import = translated(&format!("RewriteEngine On\n{text}"));
        let untranslated = import
            .notes
            .iter()
            .filter(|note| note.kind == rocknet_import::NoteKind::NotTranslated);
        assert_eq!(untranslated.count(), 0, "{name}: {:?}", import.notes);
        let is_front =
            import.toml.contains("fallback = \"/index.php\"") || import.toml.contains("rewrite = \"/index.php\"");
        assert!(is_front, "{name}: {}", import.toml);
    }
}

#[test]
fn settings_of_php_and_ages_of_types_are_translated() {
    let import = translated(
        "DirectoryIndex index.php\nphp_value memory_limit 256M\nphp_flag display_errors off\nSetEnv APP_ENV prod\nExpiresActive \
         On\nExpiresByType text/css \"access plus 1 year\"\nExpiresByType image/jpeg \"access plus 1 day\"\n",
    );
    for expected in [
        "php = { version = \"auto\", ini = { display_errors = \"0\", memory_limit = \"256M\" }, env = { APP_ENV = \"prod\" } }",
        "route.\"*.css\"]\nheaders.\"Cache-Control\" = \"max-age=31536000\"",
        "route.\"*.jpg\"]\nheaders.\"Cache-Control\" = \"max-age=86400\"",
    ] {
        assert!(import.toml.contains(expected), "{expected}\n{}", import.toml);
    }
}

#[test]
fn refusals_are_kept_for_groups_anchors_and_rewritten_paths() {
    for (text, expected) in [
        (
            "RewriteRule ^(\\.git|vendor)/ - [F]",
            &["path = ['/.git/*', '/vendor/*']; respond = 403"][..],
        ),
        (
            "RewriteRule (?i)^admin - [F]",
            &["path = '~(?i)^/admin'; respond = 403"],
        ),
        (
            "RewriteRule ^files/(.*)$ storage/$1 [L]\nRewriteRule ^storage/private/ - [F]",
            &[
                "path = '/files/*'; rewrite = '/storage/{*}'",
                "path = '/storage/private/*'; respond = 403",
            ],
        ),
    ] {
        let text = format!("RewriteEngine On\n{text}");
        assert_eq!(rules(&translated(&text)), expected, "{text}");
    }
    let nested = "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n<Directory /srv/blog>\n<Files \".ht*\">\n\
                  Require all denied\n</Files>\n<Files \"*.bak\">\nRequire all denied\n</Files>\n</Directory>\n</VirtualHost>";
    let import = import(Language::Apache, "/etc/apache2/a.conf", nested).unwrap();
    assert_eq!(import.toml.matches("respond = 403").count(), 1, "{}", import.toml);
    assert!(import.toml.contains("bak"), "{}", import.toml);
}

#[test]
fn a_default_age_does_not_reach_the_responses_of_scripts() {
    let age = "ExpiresActive On\nExpiresDefault \"access plus 1 year\"\n";
    let scripts = "<FilesMatch \\.php$>\nExpiresActive Off\n</FilesMatch>\n";
    let import = translated(&format!("DirectoryIndex index.php index.html\n{age}{scripts}"));
    assert!(!import.toml.contains("Cache-Control"), "{}", import.toml);
    assert!(has_note(&import, "the responses of scripts too"), "{:?}", import.notes);
    // Without scripts, and in a section for files.
    for text in [
        age.to_owned(),
        format!("DirectoryIndex index.php\n<FilesMatch \"\\.css$\">\n{age}</FilesMatch>\n"),
    ] {
        let import = translated(&text);
        has(&import, "headers.\"Cache-Control\" = \"max-age=31536000\"");
        assert!(!has_note(&import, "the responses of scripts too"), "{:?}", import.notes);
    }
    let import = translated(&format!("{age}Header set Cache-Control no-store\n"));
    has(&import, "headers.\"Cache-Control\" = \"no-store\"");
    // A folder with scripts inherits the field of the site, also if it has an age of its own.
    for folder_age in ["", age] {
        let folder = format!("<Directory /srv/app>\nSetHandler application/x-httpd-php\n{folder_age}</Directory>\n");
        let import = translated_apache(&format!("{age}{folder}"));
        assert!(!import.toml.contains("Cache-Control"), "{}", import.toml);
        assert!(has_note(&import, "the responses of scripts too"), "{:?}", import.notes);
    }
    let folder = "<Directory /srv/app>\nSetHandler application/x-httpd-php\nHeader set Cache-Control \
                  no-store\n</Directory>\n";
    let import = translated_apache(&format!("{age}{folder}"));
    has(&import, "headers.\"Cache-Control\" = \"max-age=31536000\"");
    // Sections of a host, which may run scripts.
    let php = "<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>";
    for (host, section, is_kept) in [
        (php, "Directory /srv/a", false),
        (php, "Location /a/", false),
        (php, "LocationMatch ^/a/[0-9]+$", false),
        (php, "LocationMatch ^/a/.*\\.(css|js)$", true),
        (php, "FilesMatch \\.css$", true),
        (php, "Files *.php", false),
        ("", "Directory /srv/a", true),
    ] {
        // PHP may stand after the section.
        for text in [
            format!("{host}\n<{section}>\n{age}</X>\n"),
            format!("<{section}>\n{age}</X>\n{host}\n"),
        ] {
            let end = section.split(' ').next().unwrap();
            let import = translated_apache(&text.replace("</X>", &format!("</{end}>")));
            assert_eq!(
                import.toml.contains("Cache-Control\" ="),
                is_kept,
                "{text}\n{}",
                import.toml
            );
            let is_noted = has_note(&import, "the responses of scripts too");
            assert_eq!(is_noted, !is_kept, "{text}\n{:?}", import.notes);
        }
    }
    // PHP of the folder alone, and a folder without PHP.
    for (handler, is_kept) in [
        ("SetHandler application/x-httpd-php", false),
        ("php_flag engine off", true),
    ] {
        let import = translated_apache(&format!("<Directory /srv/a>\n{handler}\n{age}</Directory>\n"));
        assert_eq!(import.toml.contains("Cache-Control\" ="), is_kept, "{}", import.toml);
    }
}

#[test]
fn a_script_is_no_error_page() {
    let import = translated("ErrorDocument 404 /index.php/error/404\nErrorDocument 403 /403.html\n");
    has(&import, "errors.\"403\" = \"/403.html\"");
    assert!(!import.toml.contains("errors.\"404\""), "{}", import.toml);
    assert!(has_note(&import, "`errors` takes files"), "{:?}", import.notes);
}

/// Asserts the rules of a virtual host with these directives.
fn assert_rules_of_host(directives: &str, expected: &[&str]) -> Import {
    let text = format!("<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n{directives}\n</VirtualHost>\n");
    let import = import(Language::Apache, "/etc/apache2/a.conf", &text).unwrap();
    assert_eq!(rules(&import), expected, "{directives}\n{}", import.toml);
    import
}

#[test]
fn refusals_of_dot_names_are_kept_where_requests_are_passed_on() {
    let proxy = "ProxyPass / http://127.0.0.1:3000/\n";
    let any_but_well_known =
        "unless = { path = '~^(?:/+(?:\\\\.well-known/*)?[^./][^/]*)*(?:/+(?:\\\\.well-known/*)?)?$' }";
    for (directives, expected) in [
        (
            "RewriteRule ^/\\.git - [F]",
            "path = '~^/\\\\.git'; respond = 403".to_owned(),
        ),
        (
            "RewriteRule ^/\\.(?!well-known) - [R=404]",
            "path = '~^/\\\\.'; unless = { path = '~^/\\\\.well-known' }; respond = 404; resolved = true".to_owned(),
        ),
        (
            "RedirectMatch 404 /\\.git",
            "path = '~/\\\\.git'; respond = 404".to_owned(),
        ),
        (
            "<LocationMatch \"(^|/)\\.(?!well-known)\">\nRequire all denied\n</LocationMatch>",
            format!("path = '~/\\\\.'; {any_but_well_known}; respond = 403; resolved = true"),
        ),
    ] {
        let import = assert_rules_of_host(&format!("{proxy}{directives}"), &[&expected]);
        assert!(!is_any_weakened(&import), "{:?}", import.notes);
    }
    for directives in [
        "RewriteRule ^/\\.git - [F]",
        "<DirectoryMatch \"/\\.git\">\nRequire all denied\n</DirectoryMatch>",
    ] {
        let import = assert_rules_of_host(directives, &[]);
        assert!(has_note(&import, "are never served"), "{:?}", import.notes);
    }
    // Files in `/.well-known` are served, and scripts get the path after their names.
    assert_rules_of_host(
        "RewriteRule (^|/)\\. - [F]",
        &["path = '~(^|/)\\\\.'; respond = 403; resolved = true"],
    );
    assert_rules_of_host(
        "DirectoryIndex index.php\nRewriteRule /\\.git - [F]",
        &["path = '~/\\\\.git'; respond = 403"],
    );
    // Sections for files do not apply to `ProxyPass`, but to the rules of a folder.
    let files = "<Files \".ht*\">\nRequire all denied\n</Files>\n";
    assert_rules_of_host(&format!("{files}{proxy}"), &[]);
    let folder = "<Directory /srv>\nRewriteRule ^(.*)$ http://127.0.0.1:3000/$1 [P]\n</Directory>";
    assert_rules_of_host(
        &format!("{files}{folder}"),
        &["path = '*/.ht*'; respond = 403; resolved = true"],
    );
    // In a folder, the path has no slash at its beginning.
    let import =
        translated("RewriteEngine On\nRewriteRule /\\.|^\\.(?!well-known/) - [F]\nRewriteRule ^(.*)$ a.cgi?p=$1 [L]\n");
    assert_eq!(
        rules(&import)[..2],
        [
            "path = '~./\\\\.'; respond = 403; resolved = true",
            "path = '~^/\\\\.'; unless = { path = '/.well-known/*' }; respond = 403; resolved = true"
        ],
        "{}",
        import.toml
    );
}

#[test]
fn exceptions_are_at_most_those_of_apache() {
    let closed = "RewriteRule ^ - [F]";
    for guard in [
        "RewriteCond %{QUERY_STRING} ^open=1$\nRewriteRule ^ - [L]",
        "RewriteCond %{QUERY_STRING} open=1$ [NC]\nRewriteRule ^ - [L]",
        "RewriteCond %{QUERY_STRING} !(^|&)Closed=1(&|$) [NC]\nRewriteRule ^ - [L]",
        "RewriteCond %{SERVER_PORT} ^443$\nRewriteRule ^ - [L]",
        "RewriteCond %{HTTP_HOST} .\nRewriteRule ^ - [L]",
        "RewriteRule . - [L]",
        "RewriteRule ^/open - [L]",
        "RewriteRule ^ - [S=1]\nRewriteRule ^open - [L]",
    ] {
        let import = translated(&format!("RewriteEngine On\n{guard}\n{closed}\n"));
        assert_eq!(rules(&import), ["respond = 403"], "{guard}\n{}", import.toml);
        assert!(
            import
                .notes
                .iter()
                .any(|note| note.kind == rocknet_import::NoteKind::NotTranslated),
            "{guard}: {:?}",
            import.notes
        );
    }
    for (guard, unless) in [
        (
            "RewriteCond %{QUERY_STRING} (^|&)open=1(&|$)\nRewriteRule ^ - [L]",
            "{ query = { open = '~^1$' } }",
        ),
        ("RewriteRule ^open\\.html$ - [END]", "{ path = '/open.html' }"),
        ("RewriteRule \\Aopen\\.html\\z - [L]", "{ path = '/open.html' }"),
        ("RewriteRule ^index\\.php$ - [L]", "{ path = '/index.php' }"),
    ] {
        let import = translated(&format!("RewriteEngine On\n{guard}\n{closed}\n"));
        assert_eq!(rules(&import), [format!("unless = {unless}; respond = 403")], "{guard}");
        // The exception is needed, and has nothing to do with files.
        assert!(!has_note(&import, "existing files"), "{guard}: {:?}", import.notes);
    }
    // `L` of a host does not end the rules of its folders, and `END` does.
    let folder = "<Directory /srv>\nRewriteRule ^a/secret - [F]\n</Directory>";
    assert_rules_of_host(
        &format!("RewriteRule ^/a/ - [L]\n{folder}"),
        &["path = '~^/a/secret'; respond = 403"],
    );
    assert_rules_of_host(
        &format!("RewriteRule ^/a/ - [END]\n{folder}"),
        &["path = '~^/a/secret'; unless = { path = '/a/*' }; respond = 403; resolved = true"],
    );
    // An exception by the path before a rewrite does not open the path after it.
    let text = "RewriteRule ^/a/ - [L]\nRewriteRule ^/x/(.*)$ /a/$1\nRewriteRule ^/a/secret - [F]";
    let import = assert_rules_of_host(
        text,
        &[
            "path = '/x/*'; unless = { path = '/a/*' }; rewrite = '/a/{*}'",
            "path = '~^/a/secret'; respond = 403",
        ],
    );
    assert!(has_note(&import, "before a rewrite"), "{:?}", import.notes);
    // In a host, `REQUEST_FILENAME` is the path of the URL, which names no file. A rewrite of existing files would hide
    // them from the refusal.
    assert_rules_of_host(
        "RewriteCond %{REQUEST_FILENAME} -f\nRewriteRule ^/a /b\nRewriteRule ^/a - [F]",
        &["path = '~^/a'; respond = 403"],
    );
    // In a folder, it names the file.
    let import = translated(
        "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule ^api/(.*)$ /api.php?x=$1 [L,QSA]\nRewriteRule \
         ^secret - [F]",
    );
    assert_eq!(rules(&import).len(), 2, "{}", import.toml);
    has(&import, "php = \"auto\"");
    // Scripts of the site are not sent as text if the rewrite to one of them is not translated.
    let import = translated(
        "RewriteEngine On\nRewriteCond %{TIME_HOUR} >12\nRewriteRule ^api/(.*)$ /api.php?x=$1 [L]\nRewriteRule ^secret - [F]",
    );
    assert_eq!(
        rules(&import),
        ["path = '~^/secret'; respond = 403; resolved = true"],
        "{}",
        import.toml
    );
    has(&import, "php = \"auto\"");
}

#[test]
fn refusals_that_apply_to_fewer_requests_are_noted() {
    for condition in [
        "%{QUERY_STRING} cmd=1 [NC]",
        "%{QUERY_STRING} ^a=.*b$",
        "%{REMOTE_ADDR} ^10.1.",
        "%{REQUEST_FILENAME} -f",
        "%{SERVER_PORT} ^80$",
    ] {
        let import = translated(&format!(
            "RewriteEngine On\nRewriteCond {condition}\nRewriteRule ^ - [F]\n"
        ));
        assert!(
            rules(&import).len() == 1 && is_weakened(&import, ""),
            "{condition}: {:?}",
            import.notes
        );
    }
    for (condition, expected) in [
        ("%{QUERY_STRING} ^cmd=1$", "query = { cmd = '~^1$' }"),
        ("%{REQUEST_METHOD} ^(TRACE|LOCK)", "method = ['TRACE', 'LOCK']"),
        ("%{REQUEST_METHOD} LOCK", "method = ['LOCK', 'UNLOCK']"),
        (
            "%{REQUEST_METHOD} ^prop [NC]",
            "method = ['PROP', 'PROPFIND', 'PROPPATCH']",
        ),
        ("%{REQUEST_URI} =/Secret [NC]", "path = '~*^/Secret$'"),
        ("%{REQUEST_URI} \\A/secret\\Z", "path = '~^/secret$'"),
    ] {
        let import = translated(&format!(
            "RewriteEngine On\nRewriteCond {condition}\nRewriteRule ^ - [F]\n"
        ));
        assert_eq!(rules(&import), [format!("{expected}; respond = 403")], "{condition}");
        assert!(!is_any_weakened(&import), "{condition}: {:?}", import.notes);
    }
    // The folder of the file is the root of the site, whatever `RewriteBase` is.
    let import = translated("RewriteEngine On\nRewriteBase /app/\nRewriteRule ^secret/ - [F]\n");
    assert_eq!(
        rules(&import),
        [
            "path = '/app/secret/*'; respond = 403",
            "path = '/secret/*'; respond = 403"
        ]
    );
}

#[test]
fn paths_after_scripts_are_not_missing() {
    let import = translated(
        "RewriteEngine On\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteCond %{REQUEST_FILENAME} !-d\nRewriteCond \
         %{REQUEST_URI} !=/favicon.ico\nRewriteRule ^ index.php [L]\n",
    );
    let rule =
        "exists = 'nothing'; unless = [{ path = '/favicon.ico' }, { path = '~\\\\.php/' }]; rewrite = '/index.php'";
    assert!(
        rules(&import).iter().any(|found| found.starts_with(rule)),
        "{:?}",
        rules(&import)
    );
}
