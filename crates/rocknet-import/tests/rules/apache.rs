//! Tests of the rules that `RewriteRule`, `<Files>` and other directives of Apache become.

use rocknet_import::{Import, Language, import};

use crate::support::{has, has_note, is_any_weakened, rules};

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
            &["path = '~^/(.+/.*|autoload)\\\\.php($|/)'; respond = 403"],
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
            &["path = '~/(composer|package)\\\\.(json|lock)[^/]*$'; respond = 403"],
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
}

#[test]
fn a_script_is_no_error_page() {
    let import = translated("ErrorDocument 404 /index.php/error/404\nErrorDocument 403 /403.html\n");
    has(&import, "errors.\"403\" = \"/403.html\"");
    assert!(!import.toml.contains("errors.\"404\""), "{}", import.toml);
    assert!(has_note(&import, "`errors` takes files"), "{:?}", import.notes);
}
