//! Keys of the response cache.
//!
//! A minimum or maximum without a comment only rejects values that are surely mistakes.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, SettingGroup, bound, field, list, quoted};
use crate::model::ResponseDisk;
use crate::units;
use crate::value::{response_cache, settings};

/// Sections of the keys that sites and routes accept.
const BOTH: &[Section] = &[Section::Site, Section::Route];

/// One year.
const YEAR_MS: u64 = 365 * 86_400_000;

const TIME: Kind = Kind::Duration {
    min_ms: 0,
    max_ms: YEAR_MS,
};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "cache",
        BOTH,
        Kind::Either(&[Kind::Boolean, Kind::Table(Section::ResponseCache)]),
        "Stores responses of the proxy, of PHP, of the application or of the `controller` (a function of a loaded \
         library) in memory, and sends them again while they are fresh (RFC 9111). Only responses that permit it are stored: `Cache-Control` or `Expires` states \
         their lifetime, and none with `private`, `no-store` or `Set-Cookie` is stored. Requests with `Authorization` \
         or a verified user get no stored response, unless the response is marked as `public`. The field \
         `Cache-Status` of each response states what the cache did. A table turns the cache on and accepts more \
         settings. In a route, `false` turns it off. `cache.responses` limits the memory. Files need no such cache.",
    )
    .group(SettingGroup::Handler)
    .sets(&[Target::Settings(bound!(
        read: settings::cache,
        render: |settings, _| Rendered::Value(settings.cache.is_some().to_string()),
        nested: |settings, rows| {
            if let Some(cache) = &settings.cache {
                rows.table(Section::ResponseCache, "cache", cache);
            }
        }
    ))])
    .example("cache = true")
    .foreign_names(&["proxy_cache", "fastcgi_cache", "uwsgi_cache", "scgi_cache", "CacheEnable"]),
    Key::new(
        "ttl",
        &[Section::ResponseCache],
        TIME,
        "Lifetime of responses that state none, with status 200, 203, 300, 301 or 308. With `0s`, such responses are not \
         stored.",
    )
    .sets(&[Target::ResponseCache(field!(ttl))])
    .example("ttl = \"10m\"")
    .foreign_names(&["proxy_cache_valid", "fastcgi_cache_valid", "CacheDefaultExpire"]),
    Key::new(
        "statuses",
        &[Section::ResponseCache],
        Kind::Map { name: "status", value: &TIME },
        "Lifetimes of responses that state none, by their status. They take precedence over `ttl`. With an entry for 404 \
         or 503, errors are stored too, so that repeated requests do not reach the application.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::statuses,
        render: |cache, _| Rendered::entries(
            &cache.statuses,
            ToString::to_string,
            |time| quoted(&units::format_timeout(*time))
        )
    ))])
    .example("statuses = { 404 = \"60s\", 503 = \"5s\" }"),
    Key::new(
        "heuristic",
        &[Section::ResponseCache],
        Kind::Boolean,
        "Derives the lifetime of responses that state none from `Last-Modified`: a tenth of the time since that date, at \
         most one day (RFC 9111, 4.2.2). It applies to the statuses 200, 203, 204, 300, 301, 308, 404, 405, 410, 414 and 501, \
         and to all others with `Cache-Control: public`. The derived lifetime takes precedence over `ttl`, but not over an \
         entry of `statuses`.",
    )
    .sets(&[Target::ResponseCache(field!(heuristic))])
    .example("heuristic = true")
    .foreign_names(&["CacheLastModifiedFactor"]),
    Key::new(
        "stale_while_revalidate",
        &[Section::ResponseCache],
        TIME,
        "Time after the lifetime in which a response is still sent, while a new one is requested in the background. The \
         directive `stale-while-revalidate` in `Cache-Control` takes precedence over this key. With `must-revalidate`, \
         `proxy-revalidate` or `no-cache`, neither has an effect. With `s-maxage`, this key has none.",
    )
    .sets(&[Target::ResponseCache(field!(stale_while_revalidate))])
    .example("stale_while_revalidate = \"60s\"")
    .foreign_names(&["proxy_cache_background_update"]),
    Key::new(
        "stale_if_error",
        &[Section::ResponseCache],
        TIME,
        "Time after the lifetime in which a response is sent in place of an error 500, 502, 503 or 504. The directive \
         `stale-if-error` in `Cache-Control` takes precedence over this key. With `must-revalidate`, `proxy-revalidate` \
         or `no-cache`, neither has an effect. With `s-maxage`, this key has none.",
    )
    .sets(&[Target::ResponseCache(field!(stale_if_error))])
    .example("stale_if_error = \"1d\"")
    .foreign_names(&["proxy_cache_use_stale", "fastcgi_cache_use_stale", "CacheStaleOnError"]),
    Key::new(
        "bypass_cookies",
        &[Section::ResponseCache],
        Kind::Several(&Kind::Text("name of a cookie, or its beginning with `*`")),
        "Cookies of users who are logged in: a request with one of them gets no stored response, and its response is \
         not stored. `*` at the end of a name stands for any text.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::bypass_cookies,
        render: |cache, _| Rendered::texts(&cache.bypass_cookies)
    ))])
    .example("bypass_cookies = [\"wordpress_logged_in_*\", \"woocommerce_items_in_cart\"]")
    .foreign_names(&["proxy_cache_bypass", "proxy_no_cache", "fastcgi_cache_bypass", "fastcgi_no_cache"]),
    Key::new(
        "bypass",
        &[Section::ResponseCache],
        Kind::Several(&Kind::Table(Section::RuleException)),
        "Conditions as in `unless` of rules: a request that meets all conditions of one of these tables gets no stored \
         response, and its response is not stored. `exists` is not accepted.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::bypass,
        render: |cache, _| Rendered::Value(list(cache.bypass.iter().map(|_| "{ … }".to_owned())))
    ))])
    .example("bypass = [{ query = { preview = \"*\" } }, { client = \"private\" }]"),
    Key::new(
        "key",
        &[Section::ResponseCache],
        Kind::Text("template with placeholders of the request"),
        "Text that distinguishes stored responses, with placeholders of the request. Requests with the same text get \
         the same response. By default it is host, path and query exactly as requested. Site and scheme always \
         distinguish responses, too. So do fields from which some applications read another host or scheme, such as \
         `X-Forwarded-Host`.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::key,
        render: |cache, _| cache.key.as_deref().map_or(Rendered::Unset, Rendered::text)
    ))])
    .example("key = \"{host}{path}?page={query.page}\"")
    .foreign_names(&["proxy_cache_key", "fastcgi_cache_key", "uwsgi_cache_key", "scgi_cache_key"]),
    Key::new(
        "memory",
        &[Section::ResponseCache],
        Kind::Size { min: 1 << 20, max: 1 << 46 },
        "Memory of the stored responses of this site, in addition to `cache.responses`: other sites cannot displace its \
         responses, and it cannot displace theirs. Without the key, the site shares `cache.responses`. It has no effect \
         in a route.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::memory,
        render: |cache, _| cache.memory.map_or(Rendered::Unset, |size| Rendered::text(&units::format_size(size)))
    ))])
    .example("memory = \"64MiB\"")
    .foreign_names(&["proxy_cache_path", "keys_zone", "fastcgi_cache_path"]),
    Key::new(
        "disk",
        &[Section::ResponseCache],
        Kind::Either(&[Kind::Boolean, Kind::Size { min: 0, max: 1 << 46 }]),
        "Writes stored responses to disk too, if `cache.responses_disk` is set. A size is a quota of the site, at least \
         1 MiB: when its responses exceed it, the oldest of them are dropped. A quota has no effect in a route. With \
         `false` or `0`, the responses of the site or route are only in memory.",
    )
    .sets(&[Target::ResponseCache(bound!(
        read: response_cache::disk,
        render: |cache, _| match cache.disk {
            ResponseDisk::Off => Rendered::Value("false".to_owned()),
            ResponseDisk::Shared => Rendered::Value("true".to_owned()),
            ResponseDisk::Quota(size) => Rendered::text(&units::format_size(size)),
        }
    ))])
    .example("disk = \"1GiB\""),
    Key::new(
        "max_object",
        &[Section::ResponseCache],
        Kind::Size { min: 0, max: 1 << 34 },
        "Maximum size of the body of a stored response. Larger responses are forwarded as without a cache.",
    )
    .sets(&[Target::ResponseCache(field!(max_object))])
    .example("max_object = \"50MiB\"")
    .foreign_names(&["CacheMaxFileSize"]),
    Key::new(
        "obey_clients",
        &[Section::ResponseCache],
        Kind::Boolean,
        "Obeys `no-cache`, `max-age`, `min-fresh` and `max-stale` in requests. By default these are ignored, because \
         each client could otherwise cause as many requests to the application as it likes. `no-store` and \
         `only-if-cached` are obeyed always.",
    )
    .sets(&[Target::ResponseCache(field!(obey_clients))])
    .example("obey_clients = true")
    .foreign_names(&["CacheIgnoreCacheControl"]),
    Key::new(
        "litespeed",
        &[Section::ResponseCache],
        Kind::Boolean,
        "Works with cache plugins for LiteSpeed, such as LiteSpeed Cache for WordPress: the application gets the request \
         field `X-LSCACHE`, and its fields `X-LiteSpeed-Cache-Control`, `X-LiteSpeed-Tag`, `X-LiteSpeed-Vary` and \
         `X-LiteSpeed-Purge` are obeyed. The application can purge all stored responses of its site.",
    )
    .sets(&[Target::ResponseCache(field!(litespeed))])
    .example("litespeed = true")
    .foreign_names(&["CacheLookup"]),
];
